/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the API server sends, cut into objects while it arrives, wherever the network split it: the
 * lines of a watch, and the items of a list page.
 */
#ifndef VGPU_KUBE_DECODER_INTERNAL_H
#define VGPU_KUBE_DECODER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct json_t;

/* ---- watch --------------------------------------------------------------------------------------- */

enum vg_event_type {
	VG_EVENT_ADDED,
	VG_EVENT_MODIFIED,
	VG_EVENT_DELETED,
	VG_EVENT_BOOKMARK,
	VG_EVENT_ERROR,
	VG_EVENT_OTHER, /* a word that this version does not know */
	VG_EVENT_TYPE_COUNT,
};

struct vg_watch_decoder_ops {
	/* One event; the object is borrowed. false ends the decoding. */
	bool (*event)(void *ctx, enum vg_event_type type, const struct json_t *object);
	/*
	 * A line that is no event, or longer than `max`: what it said is not known, so only a new list
	 * makes the picture whole again. false ends the decoding.
	 */
	bool (*unreadable)(void *ctx, const char *why);
};

struct vg_watch_decoder {
	const struct vg_watch_decoder_ops *ops;
	void *ctx;
	struct vg_buf line; /* the beginning of a line whose end has not come yet */
	bool skipping;      /* inside a line that is too long */
};

/* `max` is the longest line in bytes; VG_LIMIT_WATCH_LINE_BYTES outside of tests. */
void vg_watch_decoder_init(struct vg_watch_decoder *decoder, size_t max,
			   const struct vg_watch_decoder_ops *ops, void *ctx);
void vg_watch_decoder_release(struct vg_watch_decoder *decoder);
/* For a new stream: forgets an unfinished line, which the server will send again. */
void vg_watch_decoder_clear(struct vg_watch_decoder *decoder);
/* false when an op ended it. */
bool vg_watch_decoder_feed(struct vg_watch_decoder *decoder, const char *data, size_t size);

/* ---- list ---------------------------------------------------------------------------------------- */

struct vg_list_decoder_ops {
	/*
	 * Before the first item: the members that came so far, which from an API server are kind,
	 * apiVersion and metadata. Borrowed. false ends the decoding.
	 */
	bool (*begin)(void *ctx, const struct json_t *head);
	/*
	 * The text of one item, valid during the call. An item that is too long comes with its first
	 * bytes and whole = false. false ends the decoding.
	 */
	bool (*item)(void *ctx, const char *text, size_t size, bool whole);
};

/*
 * Lets one item at a time through, so that a page of large objects is never in memory as a whole, and
 * collects everything around the items (the head). Only as much JSON is understood here as it takes to
 * find where an item ends; whether the item itself is JSON is for its reader to find out.
 */
struct vg_list_decoder {
	const struct vg_list_decoder_ops *ops;
	void *ctx;
	struct vg_buf head; /* the page without its items */
	struct vg_buf item; /* an item whose end has not come yet */
	size_t page_max;
	size_t seen; /* bytes of the page so far */
	unsigned depth;
	bool in_string;
	bool escaped;
	bool in_items;
	bool item_started;
	bool item_cut;    /* the item is too long: its rest is not kept */
	size_t key_start; /* of the last string at depth 1, in the head */
	size_t key_size;  /* 0: none */
	bool after_colon; /* at depth 1: what comes next is the key's value */
	bool done;
};

void vg_list_decoder_init(struct vg_list_decoder *decoder, size_t item_max, size_t page_max,
			  const struct vg_list_decoder_ops *ops, void *ctx);
void vg_list_decoder_release(struct vg_list_decoder *decoder);
/* For the next page. */
void vg_list_decoder_clear(struct vg_list_decoder *decoder);
/*
 * -ECANCELED: an op ended it. -E2BIG: the page, or what stands around its items, is too long.
 * -EINVAL: not a JSON object.
 */
int vg_list_decoder_feed(struct vg_list_decoder *decoder, const char *data, size_t size,
			 struct vg_err *err);
/* At the end of the page: its head with an empty list of items, a new reference. -EINVAL: cut short. */
int vg_list_decoder_end(struct vg_list_decoder *decoder, struct json_t **ret_head,
			struct vg_err *err);

/*
 * Name and namespace ("" when there is none) of an object of which only the beginning is there; false
 * when they do not stand in it.
 */
bool vg_peek_name(const char *text, size_t size, char *namespace, char *name, size_t room);

#endif
