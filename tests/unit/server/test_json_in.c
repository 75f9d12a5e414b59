/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/limits.h"
#include "base/mem.h"
#include "server/json_in_internal.h"

static void test_values(void **state)
{
	static const struct {
		const char *json;
		int code;
		const char *value; /* the text of the value, or of the error */
	} rows[] = {
		{ "null", 0, "null" },
		{ " true ", 0, "true" },
		{ "false,", 0, "false" },
		{ "0", 0, "0" },
		{ "-0.5e+10 x", 0, "-0.5e+10" },
		{ "1E9]", 0, "1E9" },
		{ "\"a\\\"b\\u00e9\\n\"", 0, "\"a\\\"b\\u00e9\\n\"" },
		{ "{}", 0, "{}" },
		{ "[ ]", 0, "[ ]" },
		{ "\n[1,[2,{\"a\":[]}],{}] tail", 0, "[1,[2,{\"a\":[]}],{}]" },
		{ "{\"a\":{\"b\":[true,null]},\"c\":\"}\"}}", 0,
		  "{\"a\":{\"b\":[true,null]},\"c\":\"}\"}" },
		{ "", -EINVAL, "byte 1: the text ends where a value is expected" },
		{ "   ", -EINVAL, "byte 4: the text ends where a value is expected" },
		{ "nul", -EINVAL, "byte 1: 'n' where a value is expected" },
		{ "+1", -EINVAL, "byte 1: '+' where a value is expected" },
		{ "-", -EINVAL, "byte 2: the text ends where a digit is expected" },
		{ "1.", -EINVAL, "byte 3: the text ends where a digit is expected" },
		{ "1.e", -EINVAL, "byte 3: 'e' where a digit is expected" },
		{ "1e", -EINVAL, "byte 3: the text ends where a digit is expected" },
		{ "[1 2]", -EINVAL, "byte 4: '2' where ',' or ']' is expected" },
		{ "[1,]", -EINVAL, "byte 4: ']' where a value is expected" },
		{ "[,1]", -EINVAL, "byte 2: ',' where a value is expected" },
		{ "[}", -EINVAL, "byte 2: '}' where ',' or ']' is expected" },
		{ "{]", -EINVAL, "byte 2: ']' where ',' or '}' is expected" },
		{ "{\"a\" 1}", -EINVAL, "byte 6: '1' where ':' is expected" },
		{ "{\"a\":1,}", -EINVAL, "byte 8: '}' where a string is expected" },
		{ "{a:1}", -EINVAL, "byte 2: 'a' where a string is expected" },
		{ "{1:1}", -EINVAL, "byte 2: '1' where a string is expected" },
		{ "\"abc", -EINVAL, "byte 5: the text ends inside a string" },
		{ "\"\\x\"", -EINVAL,
		  "byte 3: 'x' where an escape (one of \"\\/bfnrtu) is expected" },
		{ "\"\\u12g4\"", -EINVAL, "byte 6: 'g' where a hex digit is expected" },
		{ "\"\\u12", -EINVAL, "byte 6: the text ends where a hex digit is expected" },
		{ "\"\\", -EINVAL,
		  "byte 3: the text ends where an escape (one of \"\\/bfnrtu) is expected" },
		{ "\"\t\"", -EINVAL, "byte 2: control character 0x09 inside a string" },
		{ "\xff", -EINVAL, "byte 1: byte 0xff where a value is expected" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_err err = { 0 };
		struct vg_span value = { 0 };
		struct vg_in in;
		int r;

		vg_in_init(&in, VG_SPAN(rows[i].json));
		r = vg_in_value(&in, &value, &err);
		if (r != rows[i].code)
			fail_msg("%s: %d, want %d (%s)", rows[i].json, r, rows[i].code, err.msg);
		if (r == 0 && !vg_span_eq(value, rows[i].value))
			fail_msg("%s: %.*s", rows[i].json, (int)value.size, value.data);
		if (r < 0 && strcmp(err.msg, rows[i].value) != 0)
			fail_msg("%s: \"%s\", want \"%s\"", rows[i].json, err.msg, rows[i].value);
	}
}

static void test_depth(void **state)
{
	for (unsigned depth = VG_LIMIT_JSON_DEPTH - 1; depth <= VG_LIMIT_JSON_DEPTH + 1; depth++) {
		char json[2 * VG_LIMIT_JSON_DEPTH + 8];
		struct vg_err err = { 0 };
		struct vg_span value;
		struct vg_in in;

		memset(json, '[', depth);
		memset(json + depth, ']', depth);
		vg_in_init(&in, (struct vg_span){ json, (size_t)depth * 2 });
		assert_int_equal(vg_in_value(&in, &value, &err),
				 depth > VG_LIMIT_JSON_DEPTH ? -E2BIG : 0);
		if (depth > VG_LIMIT_JSON_DEPTH)
			assert_string_equal(err.msg, "byte 129: nested deeper than 128");
		/* The deepest one, with its end missing. */
		vg_in_init(&in, (struct vg_span){ json, depth });
		assert_true(vg_in_value(&in, &value, &err) < 0);
	}
	(void)state;
}

static void test_strings(void **state)
{
	static const struct {
		const char *json;
		const char *text;
	} rows[] = {
		{ "\"\"", "" },
		{ "\"plain\"", "plain" },
		{ "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t" },
		{ "\"\\u0041\\u00e9\\u20ac\"", "A\xc3\xa9\xe2\x82\xac" },
		{ "\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80" },
		{ "\"\\ud83d\"", "\xef\xbf\xbd" },
		{ "\"\\ud83d\\uffff\"", "\xef\xbf\xbd\xef\xbf\xbf" },
		{ "\"\\ude00x\"", "\xef\xbf\xbdx" },
		{ "\"\\ud83d\\u0041\"", "\xef\xbf\xbd"
					"A" },
		{ "\"\xc3\xa9\"", "\xc3\xa9" },
	};
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *text = NULL;
		struct vg_in in;

		vg_in_init(&in, VG_SPAN(rows[i].json));
		assert_int_equal(vg_in_string(&in, &arena, &text, NULL), 0);
		assert_string_equal(text, rows[i].text);
		assert_ptr_equal(in.at, in.end);
	}
	vg_arena_release(&arena);
}

static void test_lists(void **state)
{
	static const struct {
		const char *json;
		int code;
		const char *list; /* joined by "|", or the error */
	} rows[] = {
		{ "[]", 0, "" },
		{ " [ \"a\" , \"bb\",\"\" ,\"c\"]", 0, "a|bb||c|" },
		{ "[\"a\\\"\",\"\\\\\",\"x\\u0041\"]", 0, "a\"|\\|xA|" },
		{ "[\"a\",\"b\",\"c\",\"d\",\"e\"]", -E2BIG, "byte 18: more than 4 entries" },
		{ "[\"a\",\"123456789\"]", -E2BIG, "byte 6: an entry of more than 8 bytes" },
		{ "[\"a\",]", -EINVAL, "byte 6: ']' where a string is expected" },
		{ "[\"a\" \"b\"]", -EINVAL, "byte 6: '\"' where ',' or ']' is expected" },
		{ "[1]", -EINVAL, "byte 2: '1' where a string is expected" },
		{ "{}", -EINVAL, "byte 1: '{' where an array is expected" },
		{ "[\"a\"", -EINVAL, "byte 5: the text ends where ',' or ']' is expected" },
	};
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *const *list = NULL;
		struct vg_err err = { 0 };
		char joined[256] = "";
		size_t count = 0;
		size_t used = 0;
		struct vg_in in;
		int r;

		vg_in_init(&in, VG_SPAN(rows[i].json));
		r = vg_in_strings(&in, 4, 8, &arena, &list, &count, &err);
		if (r != rows[i].code)
			fail_msg("%s: %d (%s)", rows[i].json, r, err.msg);
		for (size_t k = 0; k < count; k++)
			used += (size_t)snprintf(joined + used, sizeof(joined) - used, "%s|",
						 list[k]);
		if (strcmp(r == 0 ? joined : err.msg, rows[i].list) != 0)
			fail_msg("%s: \"%s\", want \"%s\"", rows[i].json, r == 0 ? joined : err.msg,
				 rows[i].list);
		if (r == 0)
			assert_ptr_equal(in.at, in.end);
	}
	vg_arena_release(&arena);
}

/* Any prefix and any changed byte of a text: the same verdict as another parser's. */
static void test_like_jansson(void **state)
{
	static const char *const texts[] = {
		"{\"Pod\":{\"a\":[1,-2.5e3,true,null,\"x\\u0041\\n\"]},\"NodeNames\":[\"n1\",\"n2\"]}",
		"[[],{},[{}],\"\",0,-1,1e1,[[[[1]]]]]",
	};
	static const char bytes[] = "{}[]:,\"\\0123456789eE+-.tfnu x\n\x01";

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		size_t size = strlen(texts[i]);

		for (size_t at = 0; at < size; at++) {
			for (size_t b = 0; b < sizeof(bytes); b++) {
				char *text = vg_strdup(texts[i]);
				struct vg_span value;
				struct vg_in in;
				json_t *tree;
				bool ours;

				text[at] = bytes[b];
				/* The last entry cuts the text there. */
				vg_in_init(&in, (struct vg_span){ text, bytes[b] ? size : at });
				ours = vg_in_value(&in, &value, NULL) == 0 &&
				       vg_in_peek(&in) == '\0';
				tree = json_loadb(text, bytes[b] ? size : at,
						  JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);
				if (ours != (tree != NULL))
					fail_msg("%s: %d, jansson %d", text, ours, tree != NULL);
				json_decref(tree);
				free(text);
			}
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),       cmocka_unit_test(test_depth),
		cmocka_unit_test(test_strings),      cmocka_unit_test(test_lists),
		cmocka_unit_test(test_like_jansson),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
