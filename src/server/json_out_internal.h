/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON text straight into a buffer: replies have thousands of members, and a tree of them would
 * cost more than the decision. Commas come by themselves; the caller balances open and close.
 */
#ifndef VGPU_SERVER_JSON_OUT_INTERNAL_H
#define VGPU_SERVER_JSON_OUT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/str.h"

struct vg_out {
	struct vg_buf *buf;
	bool comma; /* the next value or key is not the first of its parent */
};

void vg_out_init(struct vg_out *out, struct vg_buf *buf);

/* `bracket` is one of "{[" and "}]". */
void vg_out_open(struct vg_out *out, char bracket);
void vg_out_close(struct vg_out *out, char bracket);
/* Of an object's next member; a literal without characters that need escapes. */
void vg_out_key(struct vg_out *out, const char *key);
/* The same for any text. */
void vg_out_key_text(struct vg_out *out, const char *key);

/* Bytes that are no UTF-8 become U+FFFD. NULL gives null. */
void vg_out_text(struct vg_out *out, const char *text);
void vg_out_i64(struct vg_out *out, int64_t value);
/* Six digits; what is no number gives null. */
void vg_out_real(struct vg_out *out, double value);
void vg_out_bool(struct vg_out *out, bool value);
void vg_out_null(struct vg_out *out);
/* A value that is JSON text already. */
void vg_out_raw(struct vg_out *out, struct vg_span json);

/* Key and value at once. */
void vg_out_member_text(struct vg_out *out, const char *key, const char *text);
void vg_out_member_i64(struct vg_out *out, const char *key, int64_t value);
void vg_out_member_real(struct vg_out *out, const char *key, double value);
void vg_out_member_bool(struct vg_out *out, const char *key, bool value);

#endif
