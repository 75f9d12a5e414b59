/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The register annotation of a node, in its two forms: a JSON array of cards, and the comma form
 * "id,count,devmem,devcore,type,numa,health[,index,mode]:" that device plugins up to 2.7 wrote.
 */
#include "device/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "device/json_internal.h"

/* Linux says -1 for a device that belongs to no NUMA node. */
#define NUMA_MIN (-1)
#define NUMA_MAX INT16_MAX

/* Fields of a card in the comma form; index and mode came later. */
enum comma_field {
	FIELD_ID,
	FIELD_COUNT,
	FIELD_DEVMEM,
	FIELD_DEVCORE,
	FIELD_TYPE,
	FIELD_NUMA,
	FIELD_HEALTH,
	FIELD_INDEX,
	FIELD_MODE,
	FIELDS_NEW,
	FIELDS_OLD = FIELD_INDEX,
};

struct card_list {
	struct vg_card_info *cards;
	size_t count;
	uint8_t class_index;
	struct vg_arena *arena;
};

static enum vg_card_mode mode_of(struct vg_span word)
{
	for (int mode = 0; mode < VG_MODE_COUNT; mode++)
		if (vg_span_eq(word, vg_card_mode_word[mode]))
			return (enum vg_card_mode)mode;
	return VG_MODE_OTHER;
}

/*
 * A UUID must survive the device list of allocation annotations, where , : ; separate and a suffix
 * in brackets has a meaning of its own.
 */
static int check_uuid(struct vg_span uuid, struct vg_err *err)
{
	if (!uuid.size)
		return vg_fail(err, EINVAL, "id is missing");
	if (uuid.size > VG_LIMIT_UUID_BYTES)
		return vg_fail(err, E2BIG, "id has %zu bytes; at most %u are accepted", uuid.size,
			       VG_LIMIT_UUID_BYTES);
	for (size_t i = 0; i < uuid.size; i++) {
		unsigned char c = (unsigned char)uuid.data[i];

		if (c <= ' ' || c > '~' || strchr(",:;[]", c))
			return vg_fail(err, EINVAL,
				       "id holds byte 0x%02x, which a device list cannot carry", c);
	}
	return 0;
}

/* For the comma form; JSON texts are UTF-8 already. */
static int check_model(struct vg_span model, struct vg_err *err)
{
	json_t *string;

	if (model.size > VG_LIMIT_MODEL_BYTES)
		return vg_fail(err, E2BIG, "type has %zu bytes; at most %u are accepted",
			       model.size, VG_LIMIT_MODEL_BYTES);
	string = json_stringn(model.data, model.size);
	if (!string)
		return vg_fail(err, EINVAL, "type is not UTF-8");
	json_decref(string);
	return 0;
}

static int wrap_card(struct vg_err *err, int r, size_t index, const char *uuid)
{
	if (uuid && uuid[0])
		return vg_err_wrap(err, r, "card %zu (%.*s)", index, (int)VG_LIMIT_UUID_BYTES,
				   uuid);
	return vg_err_wrap(err, r, "card %zu", index);
}

static int too_many(size_t count, struct vg_err *err)
{
	return vg_fail(err, E2BIG, "%zu cards; at most %u are accepted on a node", count,
		       VG_LIMIT_CARDS_PER_NODE);
}

/* ---- JSON form ------------------------------------------------------------------------------- */

static int json_number(const json_t *object, const char *key, int32_t min, int32_t max,
		       int32_t *ret_value, struct vg_err *err)
{
	int64_t value = 0;
	int r = vg_json_i64(object, key, min, max, &value, err);

	if (r == 0)
		*ret_value = (int32_t)value;
	return r;
}

static int decode_json_card(const json_t *object, struct card_list *list,
			    struct vg_card_info *ret_card, struct vg_err *err)
{
	struct vg_card_info card = { .class_index = list->class_index };
	const char *mode = "";
	int r;

	r = vg_json_text(object, "id", VG_LIMIT_UUID_BYTES, list->arena, &card.uuid, err);
	if (r == 0)
		r = check_uuid(VG_SPAN(card.uuid), err);
	if (r == 0)
		r = json_number(object, "index", 0, INT32_MAX, &card.index, err);
	if (r == 0)
		r = json_number(object, "count", 0, INT32_MAX, &card.slots, err);
	if (r == 0)
		r = json_number(object, "devmem", 0, INT32_MAX, &card.mem_mib, err);
	if (r == 0)
		r = json_number(object, "devcore", 0, INT32_MAX, &card.cores, err);
	if (r == 0)
		r = vg_json_text(object, "type", VG_LIMIT_MODEL_BYTES, list->arena, &card.model,
				 err);
	if (r == 0)
		r = json_number(object, "numa", NUMA_MIN, NUMA_MAX, &card.numa, err);
	if (r == 0)
		r = vg_json_word(object, "mode", &mode, err);
	if (r == 0)
		r = vg_json_bool(object, "health", &card.healthy, err);
	if (r < 0)
		return r;
	card.mode = mode_of(VG_SPAN(mode));
	*ret_card = card;
	return 0;
}

static int decode_json_array(const json_t *array, struct card_list *list, struct vg_err *err)
{
	json_t *object;
	size_t i;

	if (json_array_size(array) > VG_LIMIT_CARDS_PER_NODE)
		return too_many(json_array_size(array), err);
	list->cards = vg_arena_new_array(list->arena, json_array_size(array), sizeof(*list->cards));
	json_array_foreach(array, i, object)
	{
		int r;

		if (!json_is_object(object))
			return vg_fail(err, EINVAL, "card %zu is %s, not an object", i,
				       vg_json_kind(object));
		r = decode_json_card(object, list, &list->cards[i], err);
		if (r < 0)
			return wrap_card(err, r, i,
					 json_string_value(json_object_get(object, "id")));
		list->count++;
	}
	return 0;
}

static int decode_json(const char *text, size_t size, struct card_list *list, struct vg_err *err)
{
	json_error_t error;
	json_t *array = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	int r;

	if (!array)
		return vg_fail(err, EINVAL, "not JSON: %s at byte %d", error.text, error.position);
	if (json_is_array(array))
		r = decode_json_array(array, list, err);
	else
		r = vg_fail(err, EINVAL, "%s instead of an array of cards", vg_json_kind(array));
	json_decref(array);
	return r;
}

/* ---- comma form ------------------------------------------------------------------------------ */

static int comma_number(const struct vg_span *fields, enum comma_field field, const char *name,
			int32_t min, int32_t max, int32_t *ret_value, struct vg_err *err)
{
	int64_t value = 0;
	int r = vg_parse_i64(fields[field], min, max, &value, err);

	if (r < 0)
		return vg_err_wrap(err, -EINVAL, "%s", name);
	*ret_value = (int32_t)value;
	return 0;
}

static int decode_comma_card(struct vg_span text, struct card_list *list,
			     struct vg_card_info *ret_card, struct vg_err *err)
{
	struct vg_card_info card = { .class_index = list->class_index, .mode = VG_MODE_HAMI_CORE };
	struct vg_span field[FIELDS_NEW];
	struct vg_span piece;
	size_t count = 0;
	int r;

	for (struct vg_span rest = text; vg_cut(&rest, ',', &piece); count++)
		if (count < FIELDS_NEW)
			field[count] = piece;
	if (count != FIELDS_OLD && count != FIELDS_NEW)
		return vg_fail(err, EINVAL, "%zu fields instead of %d or %d", count, FIELDS_OLD,
			       FIELDS_NEW);
	r = check_uuid(field[FIELD_ID], err);
	if (r == 0)
		r = check_model(field[FIELD_TYPE], err);
	if (r == 0)
		r = comma_number(field, FIELD_COUNT, "count", 0, INT32_MAX, &card.slots, err);
	if (r == 0)
		r = comma_number(field, FIELD_DEVMEM, "memory", 0, INT32_MAX, &card.mem_mib, err);
	if (r == 0)
		r = comma_number(field, FIELD_DEVCORE, "cores", 0, INT32_MAX, &card.cores, err);
	if (r == 0)
		r = comma_number(field, FIELD_NUMA, "numa", NUMA_MIN, NUMA_MAX, &card.numa, err);
	if (r == 0)
		r = vg_parse_bool(field[FIELD_HEALTH], &card.healthy, err);
	if (r == 0 && count == FIELDS_NEW)
		r = comma_number(field, FIELD_INDEX, "index", 0, INT32_MAX, &card.index, err);
	if (r < 0)
		return r;
	if (count == FIELDS_NEW)
		card.mode = mode_of(field[FIELD_MODE]);
	card.uuid = vg_arena_strndup(list->arena, field[FIELD_ID].data, field[FIELD_ID].size);
	card.model = vg_arena_strndup(list->arena, field[FIELD_TYPE].data, field[FIELD_TYPE].size);
	*ret_card = card;
	return 0;
}

static int decode_comma(struct vg_span text, struct card_list *list, struct vg_err *err)
{
	struct vg_span piece;
	size_t count = 0;

	if (!vg_span_has(text, ':'))
		return vg_fail(err, EINVAL,
			       "neither a JSON array nor a list of cards that end in \":\"");
	for (struct vg_span rest = text; vg_cut(&rest, ':', &piece);)
		count += vg_trim(piece).size > 0;
	if (count > VG_LIMIT_CARDS_PER_NODE)
		return too_many(count, err);
	list->cards = vg_arena_new_array(list->arena, count, sizeof(*list->cards));
	for (struct vg_span rest = text; vg_cut(&rest, ':', &piece);) {
		int r;

		piece = vg_trim(piece);
		if (!piece.size)
			continue;
		r = decode_comma_card(piece, list, &list->cards[list->count], err);
		if (r < 0)
			return wrap_card(err, r, list->count, NULL);
		list->count++;
	}
	return 0;
}

/* ---- both ------------------------------------------------------------------------------------ */

static int compare_uuids(const void *a, const void *b)
{
	const struct vg_card_info *const *left = a;
	const struct vg_card_info *const *right = b;

	return strcmp((*left)->uuid, (*right)->uuid);
}

static int compare_cards(const void *a, const void *b)
{
	const struct vg_card_info *left = a;
	const struct vg_card_info *right = b;

	if (left->index != right->index)
		return left->index < right->index ? -1 : 1;
	return strcmp(left->uuid, right->uuid);
}

static int check_duplicates(const struct card_list *list, struct vg_err *err)
{
	const struct vg_card_info *sorted[VG_LIMIT_CARDS_PER_NODE];

	for (size_t i = 0; i < list->count; i++)
		sorted[i] = &list->cards[i];
	qsort(sorted, list->count, sizeof(sorted[0]), compare_uuids);
	for (size_t i = 1; i < list->count; i++)
		if (vg_streq(sorted[i - 1]->uuid, sorted[i]->uuid))
			return vg_fail(err, EINVAL, "card %s is listed twice", sorted[i]->uuid);
	return 0;
}

int vg_register_decode(const char *text, uint8_t class_index, struct vg_arena *arena,
		       struct vg_card_info **ret_cards, size_t *ret_count, struct vg_err *err)
{
	struct card_list list = { .class_index = class_index, .arena = arena };
	struct vg_span span = VG_SPAN(text);
	int r;

	if (span.size > VG_LIMIT_ANNOTATION_BYTES)
		return vg_fail(err, E2BIG, "%zu bytes; at most %u are accepted", span.size,
			       VG_LIMIT_ANNOTATION_BYTES);
	span = vg_trim(span);
	if (!span.size)
		return vg_fail(err, EINVAL, "the text is empty");
	if (span.data[0] == '[' || span.data[0] == '{')
		r = decode_json(span.data, span.size, &list, err);
	else
		r = decode_comma(span, &list, err);
	if (r == 0)
		r = check_duplicates(&list, err);
	if (r < 0)
		return r;
	if (list.count)
		qsort(list.cards, list.count, sizeof(*list.cards), compare_cards);
	*ret_cards = list.cards;
	*ret_count = list.count;
	return 0;
}

static json_t *encode_card(const struct vg_card_info *card)
{
	json_t *object = json_pack("{s:s, s:i, s:i, s:i, s:i, s:s, s:i}", "id", card->uuid, "index",
				   (int)card->index, "count", (int)card->slots, "devmem",
				   (int)card->mem_mib, "devcore", (int)card->cores, "type",
				   card->model, "numa", (int)card->numa);

	if (object && card->mode != VG_MODE_NONE)
		json_object_set_new(object, "mode", json_string(vg_card_mode_word[card->mode]));
	if (object)
		json_object_set_new(object, "health", json_boolean(card->healthy));
	return object;
}

char *vg_register_encode(const struct vg_card_info *cards, size_t count, struct vg_arena *arena)
{
	json_t *array = json_array();
	char *text = NULL;
	char *copy;

	for (size_t i = 0; i < count; i++)
		json_array_append_new(array, encode_card(&cards[i]));
	if (json_array_size(array) == count)
		text = json_dumps(array, JSON_COMPACT);
	if (!text) {
		fprintf(stderr, "out of memory, or a card whose texts are not UTF-8\n");
		abort();
	}
	copy = vg_arena_strdup(arena, text);
	free(text);
	json_decref(array);
	return copy;
}
