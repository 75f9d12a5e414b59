/* SPDX-License-Identifier: Apache-2.0 */
#include "server/json_in_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/limits.h"

void vg_in_init(struct vg_in *in, struct vg_span json)
{
	*in = (struct vg_in){ json.data, json.data, json.data + json.size };
}

int vg_in_fail(const struct vg_in *in, struct vg_err *err, const char *format, ...)
{
	char text[256];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	return vg_fail(err, EINVAL, "byte %zu: %s", (size_t)(in->at - in->start) + 1, text);
}

static int fail_here(const struct vg_in *in, struct vg_err *err, const char *expected)
{
	unsigned char byte;

	if (in->at >= in->end)
		return vg_in_fail(in, err, "the text ends where %s is expected", expected);
	byte = (unsigned char)*in->at;
	if (byte >= 0x20 && byte < 0x7f)
		return vg_in_fail(in, err, "'%c' where %s is expected", byte, expected);
	return vg_in_fail(in, err, "byte 0x%02x where %s is expected", byte, expected);
}

char vg_in_peek(struct vg_in *in)
{
	const char *at = in->at;
	const char *end = in->end;

	while (at < end && (*at == ' ' || *at == '\t' || *at == '\n' || *at == '\r'))
		at++;
	in->at = at;
	return at < end ? *at : '\0';
}

/* ---- strings ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* -1 when it is none. */
static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* At the character behind a backslash. */
static int skip_escape(struct vg_in *in, struct vg_err *err)
{
	if (in->at >= in->end || !strchr("\"\\/bfnrtu", *in->at) || !*in->at)
		return fail_here(in, err, "an escape (one of \"\\/bfnrtu)");
	if (*in->at++ != 'u')
		return 0;
	for (int i = 0; i < 4; i++, in->at++)
		if (in->at >= in->end || hex_value(*in->at) < 0)
			return fail_here(in, err, "a hex digit");
	return 0;
}

static int skip_string(struct vg_in *in, struct vg_err *err)
{
	if (vg_in_peek(in) != '"')
		return fail_here(in, err, "a string");
	in->at++;
	for (;;) {
		/* Most bytes of a request pass here. */
		const char *at = in->at;
		const char *end = in->end;

		while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20)
			at++;
		in->at = at;
		if (in->at >= in->end)
			return vg_in_fail(in, err, "the text ends inside a string");
		if (*in->at == '"') {
			in->at++;
			return 0;
		}
		if (*in->at != '\\')
			return vg_in_fail(in, err, "control character 0x%02x inside a string",
					  (unsigned)*in->at);
		in->at++;
		if (skip_escape(in, err) < 0)
			return -EINVAL;
	}
}

static unsigned hex4(const char *at)
{
	unsigned value = 0;

	for (int i = 0; i < 4; i++)
		value = value << 4 | (unsigned)hex_value(at[i]);
	return value;
}

static char *put_utf8(char *to, unsigned code)
{
	if (code < 0x80) {
		*to++ = (char)code;
		return to;
	}
	if (code < 0x800) {
		*to++ = (char)(0xc0 | code >> 6);
	} else {
		if (code < 0x10000) {
			*to++ = (char)(0xe0 | code >> 12);
		} else {
			*to++ = (char)(0xf0 | code >> 18);
			*to++ = (char)(0x80 | (code >> 12 & 0x3f));
		}
		*to++ = (char)(0x80 | (code >> 6 & 0x3f));
	}
	*to++ = (char)(0x80 | (code & 0x3f));
	return to;
}

/* The escape at *from, behind its backslash; half a surrogate pair is U+FFFD, as Go has it. */
static char *put_escape(char *to, const char **from)
{
	static const char plain[] = "\"\\/bfnrt";
	static const char means[] = "\"\\/\b\f\n\r\t";
	const char *at = *from;
	unsigned code;

	if (*at != 'u') {
		*to++ = means[strchr(plain, *at) - plain];
		*from = at + 1;
		return to;
	}
	code = hex4(at + 1);
	at += 5;
	if (code >= 0xd800 && code < 0xdc00 && at[0] == '\\' && at[1] == 'u') {
		unsigned low = hex4(at + 2);

		if (low >= 0xdc00 && low < 0xe000) {
			code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
			at += 6;
		}
	}
	if (code >= 0xd800 && code < 0xe000)
		code = 0xfffd;
	*from = at;
	return put_utf8(to, code);
}

/* Decodes what skip_string() accepted, quotes included; never longer than its text. Returns the end of
 * the decoded text, where a NUL stands. */
static char *decode_string(struct vg_span quoted, char *to)
{
	const char *at = quoted.data + 1;
	const char *end = quoted.data + quoted.size - 1;

	while (at < end) {
		if (*at != '\\') {
			*to++ = *at++;
			continue;
		}
		at++;
		to = put_escape(to, &at);
	}
	*to = '\0';
	return to;
}

int vg_in_string(struct vg_in *in, struct vg_arena *arena, const char **ret_text,
		 struct vg_err *err)
{
	struct vg_span quoted;
	char *text;
	int r;

	vg_in_peek(in);
	quoted.data = in->at;
	r = skip_string(in, err);
	if (r < 0)
		return r;
	quoted.size = (size_t)(in->at - quoted.data);
	text = vg_arena_new(arena, quoted.size);
	decode_string(quoted, text);
	*ret_text = text;
	return 0;
}

/* ---- other values ----------------------------------------------------------------------------- */

static int skip_digits(struct vg_in *in, struct vg_err *err)
{
	if (in->at >= in->end || !is_digit(*in->at))
		return fail_here(in, err, "a digit");
	while (in->at < in->end && is_digit(*in->at))
		in->at++;
	return 0;
}

static int skip_number(struct vg_in *in, struct vg_err *err)
{
	if (*in->at == '-')
		in->at++;
	if (in->at < in->end && *in->at == '0')
		in->at++;
	else if (skip_digits(in, err) < 0)
		return -EINVAL;
	if (in->at < in->end && *in->at == '.') {
		in->at++;
		if (skip_digits(in, err) < 0)
			return -EINVAL;
	}
	if (in->at < in->end && (*in->at == 'e' || *in->at == 'E')) {
		in->at++;
		if (in->at < in->end && (*in->at == '+' || *in->at == '-'))
			in->at++;
		if (skip_digits(in, err) < 0)
			return -EINVAL;
	}
	return 0;
}

static int skip_word(struct vg_in *in, const char *word, struct vg_err *err)
{
	size_t size = strlen(word);

	if ((size_t)(in->end - in->at) < size || memcmp(in->at, word, size) != 0)
		return fail_here(in, err, "a value");
	in->at += size;
	return 0;
}

static int skip_scalar(struct vg_in *in, struct vg_err *err)
{
	switch (vg_in_peek(in)) {
	case '"':
		return skip_string(in, err);
	case 't':
		return skip_word(in, "true", err);
	case 'f':
		return skip_word(in, "false", err);
	case 'n':
		return skip_word(in, "null", err);
	case '-':
	case '0':
	case '1':
	case '2':
	case '3':
	case '4':
	case '5':
	case '6':
	case '7':
	case '8':
	case '9':
		return skip_number(in, err);
	default:
		return fail_here(in, err, "a value");
	}
}

static int skip_key(struct vg_in *in, struct vg_err *err)
{
	if (skip_string(in, err) < 0)
		return -EINVAL;
	if (vg_in_peek(in) != ':')
		return fail_here(in, err, "':'");
	in->at++;
	return 0;
}

int vg_in_value(struct vg_in *in, struct vg_span *ret_json, struct vg_err *err)
{
	char open[VG_LIMIT_JSON_DEPTH];
	size_t depth = 0;
	const char *from;

	vg_in_peek(in);
	from = in->at;
	for (;;) {
		char next = vg_in_peek(in);

		if (next == '{' || next == '[') {
			if (depth == VG_LIMIT_JSON_DEPTH)
				return vg_fail(err, E2BIG, "byte %zu: nested deeper than %u",
					       (size_t)(in->at - in->start) + 1,
					       VG_LIMIT_JSON_DEPTH);
			open[depth++] = next;
			in->at++;
			next = vg_in_peek(in);
			if (next != '}' && next != ']') {
				if (open[depth - 1] == '{' && skip_key(in, err) < 0)
					return -EINVAL;
				continue;
			}
		} else if (skip_scalar(in, err) < 0) {
			return -EINVAL;
		}
		/* Behind a value, or in front of the end of an empty list. */
		while (depth) {
			char end = open[depth - 1] == '{' ? '}' : ']';

			next = vg_in_peek(in);
			if (next == ',') {
				in->at++;
				if (end == '}' && skip_key(in, err) < 0)
					return -EINVAL;
				break;
			}
			if (next != end)
				return fail_here(in, err, end == '}' ? "',' or '}'" : "',' or ']'");
			in->at++;
			depth--;
		}
		if (!depth)
			break;
	}
	*ret_json = (struct vg_span){ from, (size_t)(in->at - from) };
	return 0;
}

/* ---- objects and arrays ----------------------------------------------------------------------- */

int vg_in_enter(struct vg_in *in, char bracket, struct vg_err *err)
{
	if (vg_in_peek(in) != bracket)
		return fail_here(in, err, bracket == '{' ? "an object" : "an array");
	in->at++;
	return 0;
}

static int next(struct vg_in *in, bool first, char end, bool *ret_more, struct vg_err *err)
{
	char c = vg_in_peek(in);

	if (c == end) {
		in->at++;
		*ret_more = false;
		return 0;
	}
	if (!first) {
		if (c != ',')
			return fail_here(in, err, end == '}' ? "',' or '}'" : "',' or ']'");
		in->at++;
	}
	*ret_more = true;
	return 0;
}

int vg_in_next_member(struct vg_in *in, bool first, struct vg_arena *arena, bool *ret_more,
		      const char **ret_key, struct vg_err *err)
{
	bool more = false;
	int r = next(in, first, '}', &more, err);

	if (r < 0)
		return r;
	if (more) {
		r = vg_in_string(in, arena, ret_key, err);
		if (r < 0)
			return r;
		if (vg_in_peek(in) != ':')
			return fail_here(in, err, "':'");
		in->at++;
	}
	*ret_more = more;
	return 0;
}

int vg_in_next_item(struct vg_in *in, bool first, bool *ret_more, struct vg_err *err)
{
	return next(in, first, ']', ret_more, err);
}

/* Walks over the array and counts. */
static int measure_strings(struct vg_in *in, size_t max, size_t size_max, size_t *ret_count,
			   struct vg_err *err)
{
	size_t count = 0;
	bool more = false;
	int r = vg_in_enter(in, '[', err);

	if (r < 0)
		return r;
	for (;;) {
		const char *from;

		r = vg_in_next_item(in, count == 0, &more, err);
		if (r < 0)
			return r;
		if (!more)
			break;
		if (count == max)
			return vg_fail(err, E2BIG, "byte %zu: more than %zu entries",
				       (size_t)(in->at - in->start) + 1, max);
		vg_in_peek(in);
		from = in->at;
		r = skip_string(in, err);
		if (r < 0)
			return r;
		if ((size_t)(in->at - from) - 2 > size_max)
			return vg_fail(err, E2BIG, "byte %zu: an entry of more than %zu bytes",
				       (size_t)(from - in->start) + 1, size_max);
		count++;
	}
	*ret_count = count;
	return 0;
}

/* What measure_strings() accepted, behind the bracket. */
static void copy_strings(struct vg_span json, size_t count, const char **list, char *texts)
{
	bool escapes = memchr(json.data, '\\', json.size);
	const char *at = json.data;

	for (size_t i = 0; i < count; i++) {
		size_t left = json.size - (size_t)(at - json.data);
		const char *from = memchr(at, '"', left);
		const char *to = from + 1;

		list[i] = texts;
		if (escapes) {
			for (; *to != '"'; to++)
				if (*to == '\\')
					to++;
			texts = decode_string((struct vg_span){ from, (size_t)(to + 1 - from) },
					      texts);
		} else {
			to = memchr(to, '"', left - (size_t)(to - at));
			memcpy(texts, from + 1, (size_t)(to - from - 1));
			texts += to - from - 1;
		}
		*texts++ = '\0';
		at = to + 1;
	}
}

int vg_in_strings(struct vg_in *in, size_t max, size_t size_max, struct vg_arena *arena,
		  const char *const **ret_list, size_t *ret_count, struct vg_err *err)
{
	const char **list;
	const char *from;
	size_t count = 0;
	int r;

	vg_in_peek(in);
	from = in->at;
	r = measure_strings(in, max, size_max, &count, err);
	if (r < 0)
		return r;
	list = vg_arena_new_array(arena, count, sizeof(*list));
	copy_strings((struct vg_span){ from, (size_t)(in->at - from) }, count, list,
		     vg_arena_new(arena, (size_t)(in->at - from)));
	*ret_list = list;
	*ret_count = count;
	return 0;
}
