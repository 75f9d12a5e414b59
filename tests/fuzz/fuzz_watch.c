/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an API server sends: watch lines and list pages, split as the first bytes of the input say. The
 * split must make no difference, and neither may anything be read that is not there.
 */
#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "base/mem.h"
#include "device/class.h"
#include "device/node.h"
#include "device/pod.h"
#include "device/quota.h"
#include "kube/decoder_internal.h"

/* Small, so that the fuzzer reaches them. */
#define LINE_MAX_BYTES 512
#define ITEM_MAX_BYTES 256
#define PAGE_MAX_BYTES 2048
#define CUTS           4

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything that was said, as text, to compare two runs. */
struct record {
	struct vg_buf text;
	const struct vg_classes *classes;
	bool decode; /* objects, too: once is enough */
};

static void decode_object(const struct record *record, const json_t *object)
{
	struct vg_quota_info quota;
	struct vg_node_info node;
	struct vg_arena arena;
	struct vg_pod pod;

	vg_arena_init(&arena);
	vg_pod_decode(object, record->classes, &arena, &pod, NULL);
	vg_node_decode(object, record->classes, &arena, &node, NULL);
	vg_quota_decode(object, record->classes, &arena, &quota, NULL);
	vg_arena_release(&arena);
}

static void note_json(struct record *record, const char *what, const json_t *value)
{
	char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);

	vg_buf_addf(&record->text, "%s %s\n", what, text ? text : "-");
	free(text);
}

static bool on_event(void *ctx, enum vg_event_type type, const json_t *object)
{
	struct record *record = ctx;

	assert(type < VG_EVENT_TYPE_COUNT);
	assert(json_is_object(object));
	vg_buf_addf(&record->text, "%d", (int)type);
	note_json(record, "event", object);
	if (record->decode)
		decode_object(record, object);
	return true;
}

static bool on_unreadable(void *ctx, const char *why)
{
	struct record *record = ctx;

	assert(why);
	vg_buf_adds(&record->text, "unreadable\n");
	return true;
}

static bool on_begin(void *ctx, const json_t *head)
{
	note_json(ctx, "head", head);
	return true;
}

static bool on_item(void *ctx, const char *text, size_t size, bool whole)
{
	struct record *record = ctx;
	char namespace[VG_LIMIT_NAME_BYTES + 1];
	char name[VG_LIMIT_NAME_BYTES + 1];

	assert(size <= ITEM_MAX_BYTES);
	vg_buf_addf(&record->text, "item %d ", whole);
	vg_buf_add(&record->text, text, size);
	if (vg_peek_name(text, size, namespace, name, sizeof(name))) {
		assert(name[0] && strlen(name) < sizeof(name) &&
		       strlen(namespace) < sizeof(namespace));
		vg_buf_addf(&record->text, " %s/%s", namespace, name);
	}
	vg_buf_adds(&record->text, "\n");
	return true;
}

static const struct vg_watch_decoder_ops watch_ops = { on_event, on_unreadable };
static const struct vg_list_decoder_ops list_ops = { on_begin, on_item };

/* A piece in memory of its own, so that a read past its end is seen. */
static char *copy_piece(const uint8_t *data, size_t from, size_t to)
{
	char *piece = malloc(to > from ? to - from : 1);

	memcpy(piece, data + from, to - from);
	return piece;
}

/* *ret_code is how the list page ended. */
static char *run(const uint8_t *data, const size_t *ends, size_t count,
		 const struct vg_classes *classes, bool decode, int *ret_code)
{
	struct record record = { .classes = classes, .decode = decode };
	struct vg_watch_decoder watch;
	struct vg_list_decoder list;
	json_t *head = NULL;
	size_t at = 0;
	int r = 0;

	vg_buf_init(&record.text, 64u << 20);
	vg_watch_decoder_init(&watch, LINE_MAX_BYTES, &watch_ops, &record);
	vg_list_decoder_init(&list, ITEM_MAX_BYTES, PAGE_MAX_BYTES, &list_ops, &record);
	for (size_t i = 0; i < count; i++) {
		char *piece = copy_piece(data, at, ends[i]);

		assert(vg_watch_decoder_feed(&watch, piece, ends[i] - at));
		free(piece);
		at = ends[i];
	}
	at = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		char *piece = copy_piece(data, at, ends[i]);

		r = vg_list_decoder_feed(&list, piece, ends[i] - at, NULL);
		free(piece);
		at = ends[i];
	}
	if (r == 0)
		r = vg_list_decoder_end(&list, &head, NULL);
	if (r == 0)
		note_json(&record, "end", head);
	*ret_code = r;
	json_decref(head);
	vg_watch_decoder_release(&watch);
	vg_list_decoder_release(&list);
	return vg_buf_steal(&record.text, NULL);
}

static int by_value(const void *a, const void *b)
{
	size_t x = *(const size_t *)a;
	size_t y = *(const size_t *)b;

	return (x > y) - (x < y);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t cuts[CUTS + 1];
	struct vg_classes classes;
	int whole_code;
	int split_code;
	char *whole;
	char *split;

	if (size < CUTS)
		return 0;
	for (size_t i = 0; i < CUTS; i++)
		cuts[i] = size == CUTS ? 0 : data[i] * (size - CUTS) / 255;
	qsort(cuts, CUTS, sizeof(cuts[0]), by_value);
	data += CUTS;
	size -= CUTS;
	cuts[CUTS] = size;

	vg_classes_init(&classes);
	whole = run(data, &size, 1, &classes, true, &whole_code);
	split = run(data, cuts, CUTS + 1, &classes, false, &split_code);
	/* A page that is refused may be refused a few items earlier or later, and if it is both too
	 * long and malformed, for either. */
	assert((whole_code == 0) == (split_code == 0));
	if (whole_code == 0)
		assert(strcmp(whole, split) == 0);
	free(whole);
	free(split);
	vg_classes_release(&classes);
	return 0;
}
