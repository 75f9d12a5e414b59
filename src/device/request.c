/* SPDX-License-Identifier: Apache-2.0 */
#include "device/request.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "device/quantity.h"

/* What of a wrong value an error message repeats. */
#define SHOWN_MAX 128

static int shown(const char *text)
{
	size_t size = strlen(text);

	return (int)(size < SHOWN_MAX ? size : SHOWN_MAX);
}

/* ---- policy ---------------------------------------------------------------------------------- */

static void add_key(struct vg_policy *policy, enum vg_card_key key)
{
	for (size_t i = 0; i < policy->key_count; i++)
		if (policy->keys[i] == key)
			return;
	policy->keys[policy->key_count++] = key;
}

static void set_node_policy(const char *text, struct vg_policy *policy)
{
	policy->node =
		vg_span_eq(vg_trim(VG_SPAN(text)), "spread") ? VG_NODE_SPREAD : VG_NODE_BINPACK;
}

/* One word, or a chain of words with commas; words that are not known say nothing. */
static void set_card_policy(const char *text, struct vg_policy *policy)
{
	struct vg_span rest = VG_SPAN(text);
	struct vg_span word;

	policy->key_count = 0;
	policy->chain = vg_span_has(rest, ',');
	policy->mutex = false;
	policy->topology = false;
	while (vg_cut(&rest, ',', &word)) {
		word = vg_trim(word);
		if (vg_span_eq(word, "binpack")) {
			add_key(policy, VG_KEY_BINPACK);
		} else if (vg_span_eq(word, "spread")) {
			add_key(policy, VG_KEY_SPREAD);
		} else if (vg_span_eq(word, "numa")) {
			add_key(policy, VG_KEY_NUMA);
			policy->chain = true;
		} else if (vg_span_eq(word, "mutex")) {
			policy->mutex = true;
		} else if (vg_span_eq(word, "topology-aware")) {
			policy->topology = true;
		}
	}
}

void vg_policy_parse(const char *node_text, const char *card_text, struct vg_policy *ret_policy)
{
	struct vg_policy policy = { .weight_slot = 1, .weight_core = 1, .weight_mem = 1 };

	set_node_policy(node_text, &policy);
	set_card_policy(card_text, &policy);
	*ret_policy = policy;
}

/* ---- weights --------------------------------------------------------------------------------- */

enum weight {
	WEIGHT_SLOT,
	WEIGHT_CORE,
	WEIGHT_MEMORY,
	WEIGHT_COUNT,
};

static const char *const weight_key[WEIGHT_COUNT] = { "slot", "core", "memory" };

static enum weight find_weight(struct vg_span key)
{
	enum weight weight = WEIGHT_SLOT;

	while (weight < WEIGHT_COUNT && !vg_span_eq(key, weight_key[weight]))
		weight++;
	return weight;
}

/* One "key=value"; -1 in `weights` marks what has not been given. */
static int parse_weight(struct vg_span entry, int32_t *weights, struct vg_err *err)
{
	struct vg_span rest = entry;
	struct vg_span key;
	enum weight weight;
	int64_t value = 0;
	int key_shown;

	vg_cut(&rest, '=', &key);
	if (!rest.data)
		return vg_fail(err, EINVAL, "expected key=value entries");
	key = vg_trim(key);
	key_shown = (int)(key.size < SHOWN_MAX ? key.size : SHOWN_MAX);
	weight = find_weight(key);
	if (weight < WEIGHT_COUNT && weights[weight] >= 0)
		return vg_fail(err, EINVAL, "duplicate \"%.*s\" weight", key_shown, key.data);
	if (vg_parse_i64(vg_trim(rest), INT64_MIN, INT64_MAX, &value, NULL) < 0)
		return vg_fail(err, EINVAL, "\"%.*s\" weight must be an integer", key_shown,
			       key.data);
	if (value < 0)
		return vg_fail(err, EINVAL, "\"%.*s\" weight must not be negative", key_shown,
			       key.data);
	if (weight == WEIGHT_COUNT)
		return vg_fail(err, EINVAL, "unknown weight \"%.*s\"", key_shown, key.data);
	if (value > INT32_MAX)
		return vg_fail(err, EINVAL, "\"%.*s\" weight must be at most %d", key_shown,
			       key.data, INT32_MAX);
	weights[weight] = (int32_t)value;
	return 0;
}

static int parse_weights(const char *text, int32_t *weights, struct vg_err *err)
{
	struct vg_span entry;
	size_t count = 0;

	for (struct vg_span rest = VG_SPAN(text); vg_cut(&rest, ',', &entry);)
		count++;
	if (count != WEIGHT_COUNT)
		return vg_fail(err, EINVAL, "expected slot, core, and memory weights");
	for (struct vg_span rest = VG_SPAN(text); vg_cut(&rest, ',', &entry);) {
		int r = parse_weight(entry, weights, err);

		if (r < 0)
			return r;
	}
	if (!weights[WEIGHT_SLOT] && !weights[WEIGHT_CORE] && !weights[WEIGHT_MEMORY])
		return vg_fail(err, EINVAL, "at least one weight must be positive");
	return 0;
}

int vg_weights_parse(const char *text, struct vg_policy *policy, struct vg_err *err)
{
	int32_t weights[WEIGHT_COUNT] = { -1, -1, -1 };
	int r = parse_weights(text, weights, err);

	if (r < 0)
		return vg_err_wrap(err, r, "invalid %s annotation \"%.*s\"",
				   vg_annotation_key[VG_ANNO_POD_WEIGHTS], shown(text), text);
	policy->weight_slot = weights[WEIGHT_SLOT];
	policy->weight_core = weights[WEIGHT_CORE];
	policy->weight_mem = weights[WEIGHT_MEMORY];
	return 0;
}

/* ---- quantities ------------------------------------------------------------------------------ */

/* One resource of one container, for messages. */
struct asked {
	const struct vg_container *container;
	const char *resource;
	const char *text;
};

/* `container "main": nvidia.com/gpumem "16Gi" why` */
static int complain(const struct asked *asked, struct vg_err *err, const char *why)
{
	return vg_fail(err, EINVAL, "container \"%s\": %s \"%.*s\" %s", asked->container->name,
		       asked->resource, shown(asked->text), asked->text, why);
}

/* Where the container says nothing about the resource, only *ret_given is set: to false. */
static int find_quantity(const struct vg_container *container, const char *resource,
			 struct asked *ret_asked, struct vg_quantity *ret_quantity, bool *ret_given,
			 struct vg_err *err)
{
	struct asked asked = { container, resource, vg_container_resource(container, resource) };
	struct vg_quantity quantity = { 0 };
	int r;

	if (!asked.text) {
		*ret_given = false;
		return 0;
	}
	r = vg_quantity_parse(VG_SPAN(asked.text), &quantity, NULL);
	if (r == -ERANGE)
		return complain(&asked, err, "is too large");
	if (r < 0)
		return complain(&asked, err, "is not a quantity; write a whole number");
	if (quantity.value < 0)
		return complain(&asked, err, "is negative; write a whole number");
	*ret_asked = asked;
	*ret_quantity = quantity;
	*ret_given = true;
	return 0;
}

static int parse_count(const struct vg_container *container, const struct vg_class *class,
		       int32_t *ret_count, bool *ret_given, struct vg_err *err)
{
	struct vg_quantity quantity = { 0 };
	struct asked asked;
	bool given = false;
	int r;

	r = find_quantity(container, class->resource_count, &asked, &quantity, &given, err);
	if (r < 0)
		return r;
	if (given && !quantity.exact)
		return complain(&asked, err,
				"is not a whole number of cards; for a part of a card ask for 1 "
				"card and for its memory and cores");
	if (given && quantity.value > VG_LIMIT_CARDS_PER_REQUEST)
		return vg_fail(err, EINVAL,
			       "container \"%s\": %s \"%.*s\" is more than the %u cards that a "
			       "container may ask for",
			       container->name, asked.resource, shown(asked.text), asked.text,
			       VG_LIMIT_CARDS_PER_REQUEST);
	*ret_count = (int32_t)quantity.value;
	*ret_given = given;
	return 0;
}

#define BYTES_PER_MIB ((int64_t)1 << 20)

/*
 * Memory is a count of MiB (times the class's factor). Quantities of bytes are the mistake that
 * people make, so the message says which count they mean.
 */
static int complain_memory(const struct asked *asked, const struct vg_quantity *quantity,
			   int32_t factor, struct vg_err *err)
{
	int64_t mib = quantity->value / BYTES_PER_MIB + (quantity->value % BYTES_PER_MIB != 0);
	int64_t count = mib / factor + (mib % factor != 0);
	char unit[32] = "MiB";

	if (factor > 1)
		snprintf(unit, sizeof(unit), "%d MiB", factor);
	if (quantity->value < BYTES_PER_MIB || count > INT32_MAX / factor)
		return vg_fail(err, EINVAL,
			       "container \"%s\": %s \"%.*s\" is not a count of %s; write a whole "
			       "number, at most %d",
			       asked->container->name, asked->resource, shown(asked->text),
			       asked->text, unit, INT32_MAX / factor);
	return vg_fail(err, EINVAL,
		       "container \"%s\": %s \"%.*s\" is not a count of %s; write %lld",
		       asked->container->name, asked->resource, shown(asked->text), asked->text,
		       unit, (long long)count);
}

/* MiB per card; 0 when not given, or given as 0. */
static int parse_memory(const struct vg_container *container, const struct vg_class *class,
			int32_t *ret_mem_mib, struct vg_err *err)
{
	int32_t factor = class->mem_factor > 1 ? class->mem_factor : 1;
	struct vg_quantity quantity = { 0 };
	struct asked asked;
	bool given = false;
	bool bytes;
	int r;

	r = find_quantity(container, class->resource_mem, &asked, &quantity, &given, err);
	if (r < 0)
		return r;
	/* "2k" may be a way to write 2000; no card has the 2^20 MiB that "1Mi" would be. */
	bytes = quantity.large_suffix && quantity.value >= BYTES_PER_MIB;
	if (given && (!quantity.exact || bytes || quantity.value > INT32_MAX / factor))
		return complain_memory(&asked, &quantity, factor, err);
	*ret_mem_mib = (int32_t)(quantity.value * factor);
	return 0;
}

/* 1 to 100 as is, more is 100; 0 and nothing are VG_MEM_PERCENT_UNSET. */
static int parse_percent(const struct vg_container *container, const struct vg_class *class,
			 int32_t *ret_percent, struct vg_err *err)
{
	struct vg_quantity quantity = { 0 };
	struct asked asked;
	bool given = false;
	int r;

	r = find_quantity(container, class->resource_mem_percent, &asked, &quantity, &given, err);
	if (r < 0)
		return r;
	if (given && !quantity.exact)
		return complain(&asked, err, "is not a whole number of percent; write 1 to 100");
	if (!quantity.value)
		*ret_percent = VG_MEM_PERCENT_UNSET;
	else
		*ret_percent = quantity.value < 100 ? (int32_t)quantity.value : 100;
	return 0;
}

static int parse_cores(const struct vg_container *container, const struct vg_class *class,
		       int32_t *ret_cores, bool *ret_given, struct vg_err *err)
{
	struct vg_quantity quantity = { .value = class->default_cores };
	struct asked asked;
	bool given = false;
	int r;

	r = find_quantity(container, class->resource_cores, &asked, &quantity, &given, err);
	if (r < 0)
		return r;
	if (given && !quantity.exact)
		return complain(&asked, err, "is not a whole number of percent; write 0 to 100");
	*ret_cores = quantity.value < 100 ? (int32_t)quantity.value : 100;
	*ret_given = given;
	return 0;
}

/* ---- wants ----------------------------------------------------------------------------------- */

/* *ret_want.count is 0 when the container asks for no card of the class. */
static int parse_want(const struct vg_container *container, const struct vg_class *class,
		      struct vg_want *ret_want, struct vg_err *err)
{
	struct vg_want want = { .kind = (uint8_t)container->kind };
	bool count_given = false;
	bool cores_given = false;
	int r;

	r = parse_count(container, class, &want.count, &count_given, err);
	/* Nothing else of the class counts for a container that asks for 0 cards. */
	if (r == 0 && count_given && !want.count) {
		ret_want->count = 0;
		return 0;
	}
	if (r == 0)
		r = parse_memory(container, class, &want.mem_mib, err);
	if (r == 0)
		r = parse_percent(container, class, &want.mem_percent, err);
	if (r == 0)
		r = parse_cores(container, class, &want.cores, &cores_given, err);
	if (r < 0)
		return r;
	if (!count_given) {
		bool part = want.mem_mib || want.mem_percent != VG_MEM_PERCENT_UNSET ||
			    (cores_given && want.cores);

		if (part && !class->default_count)
			return vg_fail(err, EINVAL,
				       "container \"%s\": a part of a card is asked for, but no "
				       "card; set %s to 1",
				       container->name, class->resource_count);
		want.count = part ? class->default_count : 0;
	}
	if (want.mem_mib) {
		want.mem_percent = VG_MEM_PERCENT_UNSET;
	} else if (want.mem_percent == VG_MEM_PERCENT_UNSET) {
		want.mem_mib = class->default_mem_mib;
		if (!want.mem_mib)
			want.mem_percent = 100;
	}
	*ret_want = want;
	return 0;
}

static bool names_count(const struct vg_container *container, const struct vg_class *class)
{
	return vg_container_resource(container, class->resource_count) != NULL;
}

static int parse_wants(const struct vg_pod *pod, const struct vg_classes *classes,
		       struct vg_arena *arena, struct vg_request *request, struct vg_err *err)
{
	size_t users = 0;

	for (size_t i = 0; i < pod->container_count; i++)
		users += pod->containers[i].resource_count > 0;
	request->wants = vg_arena_new_array(arena, users * classes->count, sizeof(*request->wants));
	request->kinds = vg_arena_new_array(arena, pod->container_count, sizeof(*request->kinds));
	request->container_count = pod->container_count;
	for (size_t i = 0; i < pod->container_count; i++) {
		const struct vg_container *container = &pod->containers[i];

		request->kinds[i] = (uint8_t)container->kind;
		for (size_t c = 0; container->resource_count && c < classes->count; c++) {
			struct vg_want want = { 0 };
			int r = parse_want(container, &classes->item[c], &want, err);

			if (r < 0)
				return r;
			if (want.count <= 0)
				continue;
			want.container = (uint16_t)i;
			want.class_index = (uint8_t)c;
			if (!request->uncounted && !names_count(container, &classes->item[c]))
				request->uncounted = container->name;
			request->wants[request->want_count++] = want;
		}
	}
	return 0;
}

/* ---- annotations ----------------------------------------------------------------------------- */

/* Splits a comma list; blank members do not count, and a list without any is no list. */
static int parse_words(const struct vg_pod *pod, enum vg_annotation annotation,
		       struct vg_arena *arena, struct vg_words *ret_words, struct vg_err *err)
{
	const char *text = pod->annotations.value[annotation];
	struct vg_words words = { 0 };
	struct vg_span piece;

	if (!text)
		return 0;
	for (struct vg_span rest = VG_SPAN(text); vg_cut(&rest, ',', &piece);)
		words.count += vg_trim(piece).size > 0;
	if (words.count > VG_LIMIT_WORDS_PER_LIST)
		return vg_fail(err, EINVAL, "%s lists %zu members; at most %u are accepted",
			       vg_annotation_key[annotation], words.count, VG_LIMIT_WORDS_PER_LIST);
	if (!words.count)
		return 0;
	words.item = vg_arena_new_array(arena, words.count, sizeof(*words.item));
	words.count = 0;
	for (struct vg_span rest = VG_SPAN(text); vg_cut(&rest, ',', &piece);) {
		piece = vg_trim(piece);
		if (piece.size)
			words.item[words.count++] = piece;
	}
	*ret_words = words;
	return 0;
}

static int parse_policy(const struct vg_pod *pod, const struct vg_policy *defaults,
			struct vg_policy *ret_policy, struct vg_err *err)
{
	const char *node = pod->annotations.value[VG_ANNO_POD_NODE_POLICY];
	const char *card = pod->annotations.value[VG_ANNO_POD_GPU_POLICY];
	const char *weights = pod->annotations.value[VG_ANNO_POD_WEIGHTS];

	*ret_policy = *defaults;
	if (node)
		set_node_policy(node, ret_policy);
	if (card)
		set_card_policy(card, ret_policy);
	return weights ? vg_weights_parse(weights, ret_policy, err) : 0;
}

int vg_request_parse(const struct vg_pod *pod, const struct vg_classes *classes,
		     const struct vg_policy *defaults, struct vg_arena *arena,
		     struct vg_request *ret_request, struct vg_err *err)
{
	const char *const *annotation = pod->annotations.value;
	struct vg_request request = {
		.namespace = pod->namespace,
		.name = pod->name,
		.uid = pod->uid,
	};
	int r;

	r = parse_wants(pod, classes, arena, &request, err);
	/* A pod that asks for no device may carry any annotation. */
	if (r == 0 && request.want_count) {
		r = parse_policy(pod, defaults, &request.policy, err);
		if (r == 0)
			r = parse_words(pod, VG_ANNO_POD_USE_TYPE, arena, &request.use_type, err);
		if (r == 0)
			r = parse_words(pod, VG_ANNO_POD_NOUSE_TYPE, arena, &request.nouse_type,
					err);
		if (r == 0)
			r = parse_words(pod, VG_ANNO_POD_USE_UUID, arena, &request.use_uuid, err);
		if (r == 0)
			r = parse_words(pod, VG_ANNO_POD_NOUSE_UUID, arena, &request.nouse_uuid,
					err);
	}
	if (r < 0)
		return r;
	if (annotation[VG_ANNO_POD_MODE] && vg_trim(VG_SPAN(annotation[VG_ANNO_POD_MODE])).size)
		request.mode = annotation[VG_ANNO_POD_MODE];
	/* Text that is no boolean is "off", as the plugin's other readers have it. */
	if (annotation[VG_ANNO_POD_NUMA_BIND])
		vg_parse_bool(VG_SPAN(annotation[VG_ANNO_POD_NUMA_BIND]), &request.numa_bind, NULL);
	*ret_request = request;
	return 0;
}
