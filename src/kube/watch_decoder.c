/* SPDX-License-Identifier: Apache-2.0 */
/* A watch: one JSON object per line, {"type": …, "object": …}. */
#include "kube/decoder_internal.h"

#include <string.h>

#include <jansson.h>

#include "base/str.h"
#include "kube/json_internal.h"

static const char *const type_word[VG_EVENT_TYPE_COUNT] = {
	[VG_EVENT_ADDED] = "ADDED",     [VG_EVENT_MODIFIED] = "MODIFIED",
	[VG_EVENT_DELETED] = "DELETED", [VG_EVENT_BOOKMARK] = "BOOKMARK",
	[VG_EVENT_ERROR] = "ERROR",     [VG_EVENT_OTHER] = "",
};

void vg_watch_decoder_init(struct vg_watch_decoder *decoder, size_t max,
			   const struct vg_watch_decoder_ops *ops, void *ctx)
{
	*decoder = (struct vg_watch_decoder){ .ops = ops, .ctx = ctx };
	vg_buf_init(&decoder->line, max);
}

void vg_watch_decoder_release(struct vg_watch_decoder *decoder)
{
	if (decoder)
		vg_buf_release(&decoder->line);
}

void vg_watch_decoder_clear(struct vg_watch_decoder *decoder)
{
	vg_buf_clear(&decoder->line);
	decoder->skipping = false;
}

static bool take_line(struct vg_watch_decoder *decoder, const char *text, size_t size)
{
	enum vg_event_type type = VG_EVENT_ADDED;
	json_error_t error;
	const char *word;
	json_t *event;
	json_t *object;
	bool more;

	if (vg_trim((struct vg_span){ text, size }).size == 0)
		return true;
	event = json_loadb(text, size, JSON_REJECT_DUPLICATES, &error);
	if (!event)
		return decoder->ops->unreadable(decoder->ctx, error.text);
	object = json_object_get(event, "object");
	word = vg_json_text(event, "type");
	if (!*word || !json_is_object(object)) {
		more = decoder->ops->unreadable(decoder->ctx, "not an event: type or object is "
							      "missing");
	} else {
		while (type < VG_EVENT_OTHER && !vg_streq(word, type_word[type]))
			type++;
		more = decoder->ops->event(decoder->ctx, type, object);
	}
	json_decref(event);
	return more;
}

/* One piece of a line; `whole` when its end is there. */
static bool take_piece(struct vg_watch_decoder *decoder, const char *data, size_t size, bool whole)
{
	bool more;

	if (decoder->skipping) {
		decoder->skipping = !whole;
		return true;
	}
	/* Most lines arrive in one piece and need no copy. */
	if (whole && decoder->line.used == 0 && size <= decoder->line.max)
		return take_line(decoder, data, size);
	if (vg_buf_add(&decoder->line, data, size) < 0) {
		vg_buf_clear(&decoder->line);
		decoder->skipping = !whole;
		return decoder->ops->unreadable(decoder->ctx, "the line is too long");
	}
	if (!whole)
		return true;
	more = take_line(decoder, decoder->line.data, decoder->line.used);
	vg_buf_clear(&decoder->line);
	return more;
}

bool vg_watch_decoder_feed(struct vg_watch_decoder *decoder, const char *data, size_t size)
{
	while (size) {
		const char *newline = memchr(data, '\n', size);
		size_t piece = newline ? (size_t)(newline - data) : size;
		size_t taken = newline ? piece + 1 : piece;

		if (!take_piece(decoder, data, piece, newline))
			return false;
		data += taken;
		size -= taken;
	}
	return true;
}
