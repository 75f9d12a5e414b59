/* SPDX-License-Identifier: Apache-2.0 */
/* A page of a list: {"kind": …, "metadata": …, "items": [ … ]}, in any order of its members. */
#include "kube/decoder_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include <jansson.h>

#include "base/limits.h"
#include "base/str.h"

#define ITEMS_KEY "\"items\""

void vg_list_decoder_init(struct vg_list_decoder *decoder, size_t item_max, size_t page_max,
			  const struct vg_list_decoder_ops *ops, void *ctx)
{
	*decoder = (struct vg_list_decoder){ .ops = ops, .ctx = ctx, .page_max = page_max };
	vg_buf_init(&decoder->head, VG_LIMIT_LIST_HEAD_BYTES);
	vg_buf_init(&decoder->item, item_max);
}

void vg_list_decoder_release(struct vg_list_decoder *decoder)
{
	if (!decoder)
		return;
	vg_buf_release(&decoder->head);
	vg_buf_release(&decoder->item);
}

void vg_list_decoder_clear(struct vg_list_decoder *decoder)
{
	struct vg_buf head = decoder->head;
	struct vg_buf item = decoder->item;

	*decoder = (struct vg_list_decoder){
		.ops = decoder->ops,
		.ctx = decoder->ctx,
		.page_max = decoder->page_max,
		.head = head,
		.item = item,
	};
	vg_buf_clear(&decoder->head);
	vg_buf_clear(&decoder->item);
}

static int stopped(struct vg_err *err)
{
	return vg_fail(err, ECANCELED, "stopped by the reader");
}

static int malformed(const struct vg_list_decoder *decoder, const char *why, struct vg_err *err)
{
	return vg_fail(err, EINVAL, "the list page is not JSON: %s, before byte %zu", why,
		       decoder->seen);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Parses what stands around the items; `tail` closes what is still open. */
static int parse_head(const struct vg_list_decoder *decoder, const char *tail, json_t **ret_head,
		      struct vg_err *err)
{
	struct vg_buf text;
	json_error_t error;
	json_t *head;

	vg_buf_init(&text, decoder->head.used + 16);
	vg_buf_add(&text, decoder->head.data, decoder->head.used);
	vg_buf_adds(&text, tail);
	head = json_loadb(text.data ? text.data : "", text.used, JSON_REJECT_DUPLICATES, &error);
	vg_buf_release(&text);
	if (!json_is_object(head)) {
		json_decref(head);
		return vg_fail(err, EINVAL, "the list page is not a JSON object: %s", error.text);
	}
	*ret_head = head;
	return 0;
}

static int enter_items(struct vg_list_decoder *decoder, struct vg_err *err)
{
	json_t *head;
	bool more;
	int r = parse_head(decoder, "]}", &head, err);

	if (r < 0)
		return r;
	more = decoder->ops->begin(decoder->ctx, head);
	json_decref(head);
	decoder->in_items = true;
	return more ? 0 : stopped(err);
}

/*
 * The bytes from..to belong to an item; `ends` when it ends there. Items that stand in one piece are
 * not copied.
 */
static int take_item(struct vg_list_decoder *decoder, const char *from, const char *to, bool ends,
		     struct vg_err *err)
{
	struct vg_buf *item = &decoder->item;
	size_t size = (size_t)(to - from);
	bool more = true;

	if (ends && item->used == 0 && !decoder->item_cut && size <= item->max) {
		more = decoder->ops->item(decoder->ctx, from, size, true);
	} else {
		if (!decoder->item_cut && vg_buf_add(item, from, size) < 0) {
			/* Its beginning tells whose it is. */
			vg_buf_add(item, from, item->max - item->used);
			decoder->item_cut = true;
		}
		if (ends)
			more = decoder->ops->item(decoder->ctx, item->data, item->used,
						  !decoder->item_cut);
	}
	if (ends) {
		vg_buf_clear(item);
		decoder->item_started = false;
		decoder->item_cut = false;
	}
	return more ? 0 : stopped(err);
}

/* Inside the array of items. Returns how many bytes were used up, or a negative errno. */
static ssize_t feed_items(struct vg_list_decoder *decoder, const char *data, size_t size,
			  struct vg_err *err)
{
	const char *end = data + size;
	const char *from = data; /* of the item's bytes */
	const char *c;
	int r;

	for (c = data; c < end; c++) {
		if (decoder->in_string) {
			if (decoder->escaped)
				decoder->escaped = false;
			else if (*c == '\\')
				decoder->escaped = true;
			else if (*c == '"')
				decoder->in_string = false;
			continue;
		}
		if (!decoder->item_started) {
			from = c;
			if (is_space(*c))
				continue;
			if (*c == ']')
				break;
			/* A comma with nothing before it: an empty item, which its reader refuses. */
			decoder->item_started = true;
		}
		if (*c == '"') {
			decoder->in_string = true;
		} else if (*c == '{' || *c == '[') {
			decoder->depth++;
		} else if (decoder->depth == 2 && (*c == ',' || *c == ']')) {
			r = take_item(decoder, from, c, true, err);
			if (r < 0)
				return r;
			if (*c == ']')
				break;
		} else if (*c == '}' || *c == ']') {
			if (decoder->depth <= 2)
				return malformed(decoder, "a bracket too many", err);
			decoder->depth--;
		}
	}
	if (c < end) {
		decoder->in_items = false;
		return c - data; /* the "]" belongs to the head */
	}
	if (decoder->item_started) {
		r = take_item(decoder, from, end, false, err);
		if (r < 0)
			return r;
	}
	return (ssize_t)size;
}

/* One byte outside the items. */
static int feed_head(struct vg_list_decoder *decoder, char c, struct vg_err *err)
{
	bool is_value = decoder->after_colon;

	if (decoder->done)
		return is_space(c) ? 0 : malformed(decoder, "something follows its end", err);
	if (decoder->depth == 0 && c != '{')
		return is_space(c) ? 0 : malformed(decoder, "it does not begin with {", err);
	if (vg_buf_add(&decoder->head, &c, 1) < 0)
		return vg_fail(err, E2BIG,
			       "what stands around the items of a list is over %zu bytes",
			       decoder->head.max);
	if (decoder->in_string) {
		if (decoder->escaped) {
			decoder->escaped = false;
		} else if (c == '\\') {
			decoder->escaped = true;
		} else if (c == '"') {
			decoder->in_string = false;
			if (decoder->depth == 1)
				decoder->key_size = decoder->head.used - decoder->key_start;
		}
		return 0;
	}
	if (is_space(c))
		return 0;
	decoder->after_colon = c == ':' && decoder->depth == 1;
	switch (c) {
	case '"':
		decoder->in_string = true;
		if (decoder->depth == 1)
			decoder->key_start = decoder->head.used - 1;
		break;
	case '{':
	case '[':
		decoder->depth++;
		if (is_value && c == '[' && decoder->key_size == strlen(ITEMS_KEY) &&
		    memcmp(decoder->head.data + decoder->key_start, ITEMS_KEY, decoder->key_size) ==
			    0)
			return enter_items(decoder, err);
		break;
	case '}':
	case ']':
		decoder->depth--;
		decoder->done = decoder->depth == 0;
		break;
	default:
		break;
	}
	return 0;
}

int vg_list_decoder_feed(struct vg_list_decoder *decoder, const char *data, size_t size,
			 struct vg_err *err)
{
	while (size) {
		ssize_t used = 1;

		if (decoder->in_items) {
			used = feed_items(decoder, data, size, err);
		} else {
			int r = feed_head(decoder, *data, err);

			if (r < 0)
				return r;
		}
		if (used < 0)
			return (int)used;
		decoder->seen += (size_t)used;
		if (decoder->seen > decoder->page_max)
			return vg_fail(err, E2BIG, "a list page is over %zu bytes",
				       decoder->page_max);
		data += used;
		size -= (size_t)used;
	}
	return 0;
}

int vg_list_decoder_end(struct vg_list_decoder *decoder, json_t **ret_head, struct vg_err *err)
{
	if (!decoder->done)
		return vg_fail(err, EINVAL, "the list page ends before its end, after %zu bytes",
			       decoder->seen);
	return parse_head(decoder, "", ret_head, err);
}
