/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include "kube/retry_internal.h"

static void test_backoff(void **state)
{
	static const struct {
		uint32_t attempt;
		int32_t min_ms;
		int32_t max_ms;
		int32_t least; /* the whole wait less half of it */
		int32_t most;
	} rows[] = {
		{ 0, 200, 15000, 100, 200 },
		{ 1, 200, 15000, 200, 400 },
		{ 2, 200, 15000, 400, 800 },
		{ 6, 200, 15000, 6400, 12800 },
		{ 7, 200, 15000, 7500, 15000 },
		{ 8, 200, 15000, 7500, 15000 },
		{ UINT32_MAX, 200, 15000, 7500, 15000 },
		{ 31, 1, INT32_MAX, INT32_MAX / 2 + 1, INT32_MAX },
		{ 0, 20, 10, 5, 10 }, /* the maximum holds even against the minimum */
		{ 5, 1, 1, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int32_t span = rows[i].most - rows[i].least;
		int32_t wait;

		/* The shortest and the longest are both reached, and nothing outside. */
		wait = vg_backoff_ms(rows[i].attempt, rows[i].min_ms, rows[i].max_ms, 0);
		assert_int_equal(wait, rows[i].most);
		wait = vg_backoff_ms(rows[i].attempt, rows[i].min_ms, rows[i].max_ms,
				     (uint32_t)span);
		assert_int_equal(wait, rows[i].least);
		for (uint32_t bits = 1; bits; bits <<= 1) {
			wait = vg_backoff_ms(rows[i].attempt, rows[i].min_ms, rows[i].max_ms,
					     bits * 2654435761u);
			assert_in_range(wait, rows[i].least, rows[i].most);
		}
	}
}

static void test_retry_after(void **state)
{
	/* 784111777 is Sun, 06 Nov 1994 08:49:37 GMT, the date that RFC 9110 uses. */
	static const struct {
		const char *text;
		int64_t now_unix_s;
		int32_t ms;
	} rows[] = {
		{ "0", 0, 0 },
		{ "1", 0, 1000 },
		{ " 5\r\n", 0, 5000 },
		{ "60", 0, 60000 },
		{ "61", 0, VG_RETRY_AFTER_MAX_MS },
		{ "99999999999999999999999", 0, VG_RETRY_AFTER_MAX_MS },
		{ "-1", 0, -1 },
		{ "-99999999999999999999999", 0, -1 },
		{ "1.5", 0, -1 },
		{ "soon", 0, -1 },
		{ "", 0, -1 },
		{ "   ", 0, -1 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 784111770, 7000 },
		{ "Sunday, 06-Nov-94 08:49:37 GMT", 784111770, 7000 },
		{ "Sun Nov  6 08:49:37 1994", 784111770, 7000 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 784111777, 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 784111999, 0 },
		{ "Sun, 06 Nov 1994 08:49:37 GMT", 784111000, VG_RETRY_AFTER_MAX_MS },
		{ "Sun, 06 Nov 1994 08:49:37 GMT, and then some more words behind it all", 0, -1 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		int32_t ms = vg_retry_after_ms(rows[i].text, rows[i].now_unix_s);

		if (ms != rows[i].ms)
			fail_msg("\"%s\": %d, not %d", rows[i].text, ms, rows[i].ms);
	}
}

static void test_random(void **state)
{
	struct vg_random a = { .state = 1 };
	struct vg_random b = { .state = 1 };
	uint32_t seen[4] = { 0 };

	(void)state;
	for (int i = 0; i < 1000; i++) {
		int32_t pick = vg_random_up_to(&a, 3);

		assert_int_equal(pick, vg_random_up_to(&b, 3));
		assert_in_range(pick, 0, 3);
		seen[pick]++;
	}
	for (size_t i = 0; i < COUNT(seen); i++)
		assert_in_range(seen[i], 200, 300);
	assert_int_equal(vg_random_up_to(&a, 0), 0);
	assert_int_equal(vg_random_up_to(&a, -5), 0);
	vg_random_init(&a);
	vg_random_init(&b);
	assert_true(a.state != b.state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_backoff),
		cmocka_unit_test(test_retry_after),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests_name("kube/retry", tests, NULL, NULL);
}
