/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include <errno.h>

#include "base/num.h"

static void test_i64(void **state)
{
	static const struct {
		const char *text;
		int64_t min;
		int64_t max;
		int code;
		int64_t value;
	} rows[] = {
		{ "0", INT64_MIN, INT64_MAX, 0, 0 },
		{ "-0", INT64_MIN, INT64_MAX, 0, 0 },
		{ "+7", INT64_MIN, INT64_MAX, 0, 7 },
		{ "007", INT64_MIN, INT64_MAX, 0, 7 },
		{ "9223372036854775807", INT64_MIN, INT64_MAX, 0, INT64_MAX },
		{ "9223372036854775808", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "-9223372036854775808", INT64_MIN, INT64_MAX, 0, INT64_MIN },
		{ "-9223372036854775809", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "99999999999999999999999", INT64_MIN, INT64_MAX, -ERANGE, 0 },
		{ "5", 5, 9, 0, 5 },
		{ "9", 5, 9, 0, 9 },
		{ "4", 5, 9, -ERANGE, 0 },
		{ "10", 5, 9, -ERANGE, 0 },
		{ "-1", 0, 9, -ERANGE, 0 },
		{ "", 0, 9, -EINVAL, 0 },
		{ "-", -9, 9, -EINVAL, 0 },
		{ "+", -9, 9, -EINVAL, 0 },
		{ "--1", -9, 9, -EINVAL, 0 },
		{ " 1", 0, 9, -EINVAL, 0 },
		{ "1 ", 0, 9, -EINVAL, 0 },
		{ "1.0", 0, 9, -EINVAL, 0 },
		{ "0x1", 0, 9, -EINVAL, 0 },
		{ "1e1", 0, 99, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_err err = { 0 };
		int64_t value = 12345;
		int r = vg_parse_i64(VG_SPAN(rows[i].text), rows[i].min, rows[i].max, &value, &err);

		if (r != rows[i].code)
			fail_msg("\"%s\": %d, not %d", rows[i].text, r, rows[i].code);
		assert_int_equal(err.code, r);
		assert_int_equal(value, r < 0 ? 12345 : rows[i].value);
	}
}

static void test_u64(void **state)
{
	static const struct {
		const char *text;
		uint64_t min;
		uint64_t max;
		int code;
		uint64_t value;
	} rows[] = {
		{ "0", 0, UINT64_MAX, 0, 0 },
		{ "18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX },
		{ "18446744073709551616", 0, UINT64_MAX, -ERANGE, 0 },
		{ "184467440737095516150", 0, UINT64_MAX, -ERANGE, 0 },
		{ "3", 1, 3, 0, 3 },
		{ "4", 1, 3, -ERANGE, 0 },
		{ "0", 1, 3, -ERANGE, 0 },
		{ "+1", 0, 9, -EINVAL, 0 },
		{ "-1", 0, 9, -EINVAL, 0 },
		{ "", 0, 9, -EINVAL, 0 },
		{ "1a", 0, 9, -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint64_t value = 12345;
		int r = vg_parse_u64(VG_SPAN(rows[i].text), rows[i].min, rows[i].max, &value, NULL);

		if (r != rows[i].code)
			fail_msg("\"%s\": %d, not %d", rows[i].text, r, rows[i].code);
		assert_true(value == (r < 0 ? 12345 : rows[i].value));
	}
}

/* A span ends where it says, whatever stands behind it. */
static void test_spans(void **state)
{
	int64_t value = 0;

	(void)state;
	assert_int_equal(vg_parse_i64((struct vg_span){ "1234", 2 }, 0, 99, &value, NULL), 0);
	assert_int_equal(value, 12);
}

static void test_bool(void **state)
{
	static const struct {
		const char *text;
		int code;
		bool value;
	} rows[] = {
		{ "1", 0, true },           { "t", 0, true },
		{ "T", 0, true },           { "TRUE", 0, true },
		{ "true", 0, true },        { "True", 0, true },
		{ "0", 0, false },          { "f", 0, false },
		{ "F", 0, false },          { "FALSE", 0, false },
		{ "false", 0, false },      { "False", 0, false },
		{ "", -EINVAL, false },     { "yes", -EINVAL, false },
		{ "tRUE", -EINVAL, false }, { "true ", -EINVAL, false },
		{ "2", -EINVAL, false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		bool value = !rows[i].value;
		int r = vg_parse_bool(VG_SPAN(rows[i].text), &value, NULL);

		if (r != rows[i].code)
			fail_msg("\"%s\": %d, not %d", rows[i].text, r, rows[i].code);
		assert_int_equal(value, r < 0 ? !rows[i].value : rows[i].value);
	}
}

/* Messages repeat what was wrong, but not all of it. */
static void test_messages(void **state)
{
	struct vg_err err = { 0 };
	char text[2000];
	int64_t value;
	bool flag;

	(void)state;
	vg_parse_i64(VG_SPAN("16Gi"), 0, 9, &value, &err);
	assert_string_equal(err.msg, "\"16Gi\" is not a whole number");
	vg_parse_i64(VG_SPAN("16"), -1, 9, &value, &err);
	assert_string_equal(err.msg, "16 is outside -1 to 9");
	vg_parse_bool(VG_SPAN("yes"), &flag, &err);
	assert_string_equal(err.msg, "\"yes\" is neither true nor false");
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	vg_parse_i64(VG_SPAN(text), 0, 9, &value, &err);
	assert_true(strlen(err.msg) < 120);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_i64),      cmocka_unit_test(test_u64),
		cmocka_unit_test(test_spans),    cmocka_unit_test(test_bool),
		cmocka_unit_test(test_messages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
