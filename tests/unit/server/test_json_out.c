/* SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "server/json_out_internal.h"

static void test_shape(void **state)
{
	struct vg_buf buf;
	struct vg_out out;

	(void)state;
	vg_buf_init(&buf, 4096);
	vg_out_init(&out, &buf);
	vg_out_open(&out, '{');
	vg_out_key(&out, "empty");
	vg_out_open(&out, '{');
	vg_out_close(&out, '}');
	vg_out_key(&out, "list");
	vg_out_open(&out, '[');
	vg_out_i64(&out, INT64_MIN);
	vg_out_open(&out, '[');
	vg_out_close(&out, ']');
	vg_out_real(&out, 0.5);
	vg_out_real(&out, (double)INFINITY);
	vg_out_real(&out, (double)NAN);
	vg_out_real(&out, 1e21);
	vg_out_bool(&out, true);
	vg_out_null(&out);
	vg_out_raw(&out, VG_SPAN("{\"raw\":1}"));
	vg_out_close(&out, ']');
	vg_out_key_text(&out, "a \"key\"");
	vg_out_text(&out, NULL);
	vg_out_member_text(&out, "t", "x");
	vg_out_member_i64(&out, "i", 7);
	vg_out_member_real(&out, "r", 2);
	vg_out_member_bool(&out, "b", false);
	vg_out_close(&out, '}');
	assert_string_equal(
		buf.data,
		"{\"empty\":{},\"list\":[-9223372036854775808,[],0.5,null,null,1e+21,true,"
		"null,{\"raw\":1}],\"a \\\"key\\\"\":null,\"t\":\"x\",\"i\":7,\"r\":2,\"b\":"
		"false}");
	vg_buf_release(&buf);
}

static void test_texts(void **state)
{
	static const struct {
		const char *text;
		const char *json;
	} rows[] = {
		{ "", "\"\"" },
		{ "plain", "\"plain\"" },
		{ "a\"b\\c", "\"a\\\"b\\\\c\"" },
		{ "\n\t\r\x01\x1f\x7f", "\"\\n\\t\\u000d\\u0001\\u001f\\u007f\"" },
		{ "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80",
		  "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"" },
		/* No UTF-8: a lone continuation, a cut sequence, too long a form, a surrogate, too high. */
		{ "a\x80z", "\"a\\ufffdz\"" },
		{ "a\xc3", "\"a\\ufffd\"" },
		{ "a\xe2\x82z", "\"a\\ufffd\\ufffdz\"" },
		{ "\xc0\xaf", "\"\\ufffd\\ufffd\"" },
		{ "\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\"" },
		{ "\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\"" },
		{ "\xff", "\"\\ufffd\"" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_buf buf;
		struct vg_out out;
		json_t *value;

		vg_buf_init(&buf, 4096);
		vg_out_init(&out, &buf);
		vg_out_text(&out, rows[i].text);
		assert_string_equal(buf.data, rows[i].json);
		value = json_loads(buf.data, JSON_DECODE_ANY, NULL);
		assert_true(json_is_string(value));
		json_decref(value);
		vg_buf_release(&buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shape),
		cmocka_unit_test(test_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
