/* SPDX-License-Identifier: Apache-2.0 */
#include "server/json_out_internal.h"

#include <math.h>
#include <string.h>

#include "server/decimal_internal.h"

void vg_out_init(struct vg_out *out, struct vg_buf *buf)
{
	*out = (struct vg_out){ .buf = buf };
}

/* In front of a value or key. */
static void begin(struct vg_out *out)
{
	if (out->comma)
		vg_buf_add(out->buf, ",", 1);
	out->comma = true;
}

void vg_out_open(struct vg_out *out, char bracket)
{
	begin(out);
	vg_buf_add(out->buf, &bracket, 1);
	out->comma = false;
}

void vg_out_close(struct vg_out *out, char bracket)
{
	vg_buf_add(out->buf, &bracket, 1);
	out->comma = true;
}

/* How many bytes the UTF-8 sequence at `text` has; 0 when it is none. The text ends with a NUL, which
 * is no continuation byte. */
static size_t sequence(const unsigned char *text)
{
	unsigned code;
	size_t size;

	if (text[0] < 0xc2 || text[0] > 0xf4)
		return 0;
	size = text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	code = text[0] & (0xffu >> (size + 1));
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3fu);
	}
	/* Longer than needed, surrogates, beyond Unicode. */
	if ((size == 3 && code < 0x800) || (size == 4 && (code < 0x10000 || code > 0x10ffff)) ||
	    (code >= 0xd800 && code <= 0xdfff))
		return 0;
	return size;
}

static void add_quoted(struct vg_buf *buf, const char *text)
{
	const unsigned char *from = (const unsigned char *)text;
	const unsigned char *at = from;

	vg_buf_add(buf, "\"", 1);
	while (*at) {
		size_t size = 1;

		if (*at >= 0x20 && *at < 0x7f && *at != '"' && *at != '\\') {
			at++;
			continue;
		}
		size = *at >= 0x80 ? sequence(at) : 0;
		if (size) {
			at += size;
			continue;
		}
		vg_buf_add(buf, from, (size_t)(at - from));
		if (*at == '"' || *at == '\\')
			vg_buf_addf(buf, "\\%c", *at);
		else if (*at == '\n')
			vg_buf_add(buf, "\\n", 2);
		else if (*at == '\t')
			vg_buf_add(buf, "\\t", 2);
		else
			vg_buf_addf(buf, "\\u%04x", *at >= 0x80 ? 0xfffdu : *at);
		from = ++at;
	}
	vg_buf_add(buf, from, (size_t)(at - from));
	vg_buf_add(buf, "\"", 1);
}

void vg_out_key(struct vg_out *out, const char *key)
{
	begin(out);
	vg_buf_add(out->buf, "\"", 1);
	vg_buf_adds(out->buf, key);
	vg_buf_add(out->buf, "\":", 2);
	out->comma = false;
}

void vg_out_key_text(struct vg_out *out, const char *key)
{
	begin(out);
	add_quoted(out->buf, key);
	vg_buf_add(out->buf, ":", 1);
	out->comma = false;
}

void vg_out_text(struct vg_out *out, const char *text)
{
	if (!text) {
		vg_out_null(out);
		return;
	}
	begin(out);
	add_quoted(out->buf, text);
}

void vg_out_i64(struct vg_out *out, int64_t value)
{
	begin(out);
	vg_buf_add_decimal(out->buf, value);
}

void vg_out_real(struct vg_out *out, double value)
{
	if (!isfinite(value)) {
		vg_out_null(out);
		return;
	}
	begin(out);
	vg_buf_addf(out->buf, "%.6g", value);
}

void vg_out_bool(struct vg_out *out, bool value)
{
	begin(out);
	vg_buf_adds(out->buf, value ? "true" : "false");
}

void vg_out_null(struct vg_out *out)
{
	begin(out);
	vg_buf_add(out->buf, "null", 4);
}

void vg_out_raw(struct vg_out *out, struct vg_span json)
{
	begin(out);
	vg_buf_add(out->buf, json.data, json.size);
}

void vg_out_member_text(struct vg_out *out, const char *key, const char *text)
{
	vg_out_key(out, key);
	vg_out_text(out, text);
}

void vg_out_member_i64(struct vg_out *out, const char *key, int64_t value)
{
	vg_out_key(out, key);
	vg_out_i64(out, value);
}

void vg_out_member_real(struct vg_out *out, const char *key, double value)
{
	vg_out_key(out, key);
	vg_out_real(out, value);
}

void vg_out_member_bool(struct vg_out *out, const char *key, bool value)
{
	vg_out_key(out, key);
	vg_out_bool(out, value);
}
