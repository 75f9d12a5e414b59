/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "region/text.h"

static void test_bytes(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t bytes;
	} table[] = {
		{ "0", 0, 0 },
		{ "1", 0, 1 },
		{ "2000m", 0, 2000ull << 20 },
		{ "2000M", 0, 2000ull << 20 },
		{ " 12 ", 0, 12 },
		{ "3k", 0, 3072 },
		{ "3G\n", 0, 3ull << 30 },
		{ "2T", 0, 2ull << 40 },
		{ "010", 0, 10 }, /* not octal */
		{ "9223372036854775807", 0, INT64_MAX },
		{ "9223372036854775808", -ERANGE, 0 },
		{ "18446744073709551617", -ERANGE, 0 },
		{ "8388608T", -ERANGE, 0 },
		{ "8388607T", 0, 8388607ull << 40 },
		{ "", -EINVAL, 0 },
		{ " ", -EINVAL, 0 },
		{ "-1", -EINVAL, 0 },
		{ "+1", -EINVAL, 0 },
		{ "1.5g", -EINVAL, 0 },
		{ "10Gi", -EINVAL, 0 },
		{ "10GB", -EINVAL, 0 },
		{ "10 GiB", -EINVAL, 0 },
		{ "10 G", -EINVAL, 0 },
		{ "0x10", -EINVAL, 0 },
		{ "1m2", -EINVAL, 0 },
		{ "m", -EINVAL, 0 },
		{ "unlimited", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t bytes = 4711;
		int r = region_text_bytes(table[i].text, &bytes);

		if (r != table[i].result)
			fail_msg("'%s': %d, not %d", table[i].text, r, table[i].result);
		assert_int_equal(bytes, r == 0 ? table[i].bytes : 4711);
	}
}

static void test_percent(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t percent;
	} table[] = {
		{ "0", 0, 0 },          { "30", 0, 30 },       { " 30 ", 0, 30 },
		{ "100", 0, 100 },      { "250", 0, 250 },     { "30%", -EINVAL, 0 },
		{ "-5", -EINVAL, 0 },   { "50m", -EINVAL, 0 }, { "", -EINVAL, 0 },
		{ "half", -EINVAL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t percent = 4711;
		int r = region_text_percent(table[i].text, &percent);

		if (r != table[i].result)
			fail_msg("'%s': %d, not %d", table[i].text, r, table[i].result);
		assert_int_equal(percent, r == 0 ? table[i].percent : 4711);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_percent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
