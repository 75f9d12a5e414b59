/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include <errno.h>

#include "device/quantity.h"

enum { EXACT = 1, LARGE = 2 };

static void test_values(void **state)
{
	static const struct {
		const char *text;
		int64_t value;
		int flags;
	} rows[] = {
		{ "0", 0, EXACT },
		{ "2", 2, EXACT },
		{ "+2", 2, EXACT },
		{ "-2", -2, EXACT },
		{ "-0", 0, EXACT },
		{ "007", 7, EXACT },
		{ "9223372036854775807", INT64_MAX, EXACT },
		{ "-9223372036854775807", -INT64_MAX, EXACT },
		/* Fractions: whole numbers are exact however they are written, the rest rounds away
		 * from zero. */
		{ "2.", 2, EXACT },
		{ "2.0", 2, EXACT },
		{ "2.000000000000000000000000000000000", 2, EXACT },
		{ ".5", 1, 0 },
		{ "0.5", 1, 0 },
		{ "1.5", 2, 0 },
		{ "-1.5", -2, 0 },
		{ "0.0000000000000000000000000000000001", 1, 0 },
		{ "-0.1", -1, 0 },
		/* Decimal suffixes. */
		{ "1k", 1000, EXACT | LARGE },
		{ "1M", 1000000, EXACT | LARGE },
		{ "1G", 1000000000, EXACT | LARGE },
		{ "1T", 1000000000000, EXACT | LARGE },
		{ "1P", 1000000000000000, EXACT | LARGE },
		{ "1E", 1000000000000000000, EXACT | LARGE },
		{ "9E", 9000000000000000000, EXACT | LARGE },
		{ "9.223372036854775807E", INT64_MAX, EXACT | LARGE },
		{ "1.5k", 1500, EXACT | LARGE },
		{ "1.0005k", 1001, LARGE },
		{ "500m", 1, 0 },
		{ "1000m", 1, EXACT },
		{ "1001m", 2, 0 },
		{ "-1500m", -2, 0 },
		{ "1000000u", 1, EXACT },
		{ "1u", 1, 0 },
		{ "1000000000n", 1, EXACT },
		{ "1n", 1, 0 },
		{ "0n", 0, EXACT },
		/* Exponents; "E" alone is the suffix. */
		{ "1e3", 1000, EXACT },
		{ "1E3", 1000, EXACT },
		{ "1e+3", 1000, EXACT },
		{ "1e0", 1, EXACT },
		{ "1500e-3", 2, 0 },
		{ "2000e-3", 2, EXACT },
		{ "1.25e2", 125, EXACT },
		{ "0.00125e5", 125, EXACT },
		{ "9.223372036854775807e18", INT64_MAX, EXACT },
		{ "1e-999999999999999999999999", 1, 0 },
		{ "0e999999999999999999999999", 0, EXACT },
		{ "0.000e99", 0, EXACT },
		{ "10000000000000000000000e-21", 10, EXACT },
		/* Binary suffixes. */
		{ "1Ki", 1024, EXACT | LARGE },
		{ "1Mi", 1 << 20, EXACT | LARGE },
		{ "16Gi", 17179869184, EXACT | LARGE },
		{ "1Ti", (int64_t)1 << 40, EXACT | LARGE },
		{ "1Pi", (int64_t)1 << 50, EXACT | LARGE },
		{ "7Ei", (int64_t)7 << 60, EXACT | LARGE },
		{ "7.5Ei", (int64_t)15 << 59, EXACT | LARGE },
		{ "16.0Gi", 17179869184, EXACT | LARGE },
		{ "0.5Ki", 512, EXACT | LARGE },
		{ "0.1Ki", 103, LARGE },
		{ "-0.1Ki", -103, LARGE },
		{ "1.1Ki", 1127, LARGE },
		{ "0.0009765625Ki", 1, EXACT | LARGE },
		{ "0.00097656250000000000000000000000000001Ki", 2, LARGE },
		/* 2^-60 as a decimal fraction has 60 digits; times 2^60 it is 1 and not nearly 1. */
		{ "0.000000000000000000867361737988403547205962240695953369140625Ei", 1,
		  EXACT | LARGE },
		{ "0.999999999999999999132638262011596452794037759304046630859375Ei",
		  ((int64_t)1 << 60) - 1, EXACT | LARGE },
		{ "7.999999999999999999132638262011596452794037759304046630859375Ei", INT64_MAX,
		  EXACT | LARGE },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_quantity quantity = { 0 };
		struct vg_err err = { 0 };
		int r = vg_quantity_parse(VG_SPAN(rows[i].text), &quantity, &err);

		if (r != 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
		if (quantity.value != rows[i].value)
			fail_msg("%s: %lld, not %lld", rows[i].text, (long long)quantity.value,
				 (long long)rows[i].value);
		if (quantity.exact != !!(rows[i].flags & EXACT))
			fail_msg("%s: exact is %d", rows[i].text, quantity.exact);
		if (quantity.large_suffix != !!(rows[i].flags & LARGE))
			fail_msg("%s: large_suffix is %d", rows[i].text, quantity.large_suffix);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
	} rows[] = {
		{ "", -EINVAL },
		{ "+", -EINVAL },
		{ "-", -EINVAL },
		{ ".", -EINVAL },
		{ "-.", -EINVAL },
		{ "Gi", -EINVAL },
		{ "abc", -EINVAL },
		{ "1.2.3", -EINVAL },
		{ "1..2", -EINVAL },
		{ "1 ", -EINVAL },
		{ " 1", -EINVAL },
		{ "1 Gi", -EINVAL },
		{ "1gi", -EINVAL },
		{ "1GI", -EINVAL },
		{ "1Gib", -EINVAL },
		{ "1GB", -EINVAL },
		{ "1K", -EINVAL },
		{ "1ki", -EINVAL },
		{ "1mi", -EINVAL },
		{ "1e", -EINVAL },
		{ "1e+", -EINVAL },
		{ "1e-", -EINVAL },
		{ "1e1.5", -EINVAL },
		{ "1e3k", -EINVAL },
		{ "1e3Ki", -EINVAL },
		{ "1Ki3", -EINVAL },
		{ "--1", -EINVAL },
		{ "+-1", -EINVAL },
		{ "0x10", -EINVAL },
		{ "1,5", -EINVAL },
		{ "nan", -EINVAL },
		{ "inf", -EINVAL },
		{ "1\xc2\xb5", -EINVAL },
		{ "9223372036854775808", -ERANGE },
		{ "-9223372036854775808", -ERANGE },
		{ "99999999999999999999999999999", -ERANGE },
		{ "9223372036854775807.1", -ERANGE },
		{ "10E", -ERANGE },
		{ "8Ei", -ERANGE },
		{ "9.223372036854775808E", -ERANGE },
		{ "16000000000Gi", -ERANGE },
		{ "1e19", -ERANGE },
		{ "1e99999999999999999999999", -ERANGE },
		{ "0.1e999999999999999999999", -ERANGE },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_quantity quantity = { .value = 4711 };
		struct vg_err err = { 0 };
		int r = vg_quantity_parse(VG_SPAN(rows[i].text), &quantity, &err);

		if (r != rows[i].code)
			fail_msg("\"%s\": %d, not %d", rows[i].text, r, rows[i].code);
		assert_int_equal(err.code, r);
		assert_int_equal(quantity.value, 4711);
	}
	assert_int_equal(vg_quantity_parse(VG_SPAN("x"), &(struct vg_quantity){ 0 }, NULL),
			 -EINVAL);
}

/* A span ends where it says; and the longest text costs time in proportion, not more. */
static void test_spans_and_long_texts(void **state)
{
	static char text[200002];
	struct vg_quantity quantity = { 0 };

	(void)state;
	assert_int_equal(vg_quantity_parse((struct vg_span){ "16Gi", 2 }, &quantity, NULL), 0);
	assert_int_equal(quantity.value, 16);
	memset(text, '0', sizeof(text) - 1);
	text[1] = '.';
	memcpy(text + sizeof(text) - 4, "7Ei", 3);
	assert_int_equal(vg_quantity_parse(VG_SPAN(text), &quantity, NULL), 0);
	assert_int_equal(quantity.value, 1);
	assert_false(quantity.exact);
	memset(text, '9', sizeof(text) - 1);
	assert_int_equal(vg_quantity_parse(VG_SPAN(text), &quantity, NULL), -ERANGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_spans_and_long_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
