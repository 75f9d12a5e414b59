/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks JSON text without building anything: the outer shape of requests, where a list of 20,000 node
 * names would cost more in a tree than the decision about them. Inner objects (a Pod, a Node) are handed
 * to jansson as the span of text that they are.
 *
 * Every byte that is walked over is checked; what is no JSON is -EINVAL with its place. Nesting deeper
 * than VG_LIMIT_JSON_DEPTH is -E2BIG.
 */
#ifndef VGPU_SERVER_JSON_IN_INTERNAL_H
#define VGPU_SERVER_JSON_IN_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"

struct vg_in {
	const char *start;
	const char *at;
	const char *end;
};

void vg_in_init(struct vg_in *in, struct vg_span json);

/* Behind white space: '{', '[', '"', 'n' (null), … of the next value, '\0' at the end. */
char vg_in_peek(struct vg_in *in);
/* Walks over one value and gives its text. */
int vg_in_value(struct vg_in *in, struct vg_span *ret_json, struct vg_err *err);
/* A string, decoded. ret_text lives in the arena; a NUL inside ends it early. */
int vg_in_string(struct vg_in *in, struct vg_arena *arena, const char **ret_text,
		 struct vg_err *err);

/*
 * Objects and arrays: enter, then next until *ret_more is false. next stands in front of a value, which
 * the caller has to walk over. Anything else than the bracket is -EINVAL.
 */
int vg_in_enter(struct vg_in *in, char bracket, struct vg_err *err);
int vg_in_next_member(struct vg_in *in, bool first, struct vg_arena *arena, bool *ret_more,
		      const char **ret_key, struct vg_err *err);
int vg_in_next_item(struct vg_in *in, bool first, bool *ret_more, struct vg_err *err);

/*
 * An array of strings, at most `max`, each of at most `size_max` bytes. In the arena: the list and one
 * block with all texts.
 */
int vg_in_strings(struct vg_in *in, size_t max, size_t size_max, struct vg_arena *arena,
		  const char *const **ret_list, size_t *ret_count, struct vg_err *err);

/* -EINVAL with the place and printf text. */
int vg_in_fail(const struct vg_in *in, struct vg_err *err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
