/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include <time.h>

#include "base/clock.h"

static void test_monotonic(void **state)
{
	const struct timespec two_ms = { .tv_nsec = 2 * VG_NS_PER_MS };
	int64_t before = vg_clock_mono_ns();
	int64_t after;

	(void)state;
	nanosleep(&two_ms, NULL);
	after = vg_clock_mono_ns();
	assert_true(after - before >= 2 * VG_NS_PER_MS);
	assert_true(after - before < 60 * VG_NS_PER_S);
}

static void test_unix(void **state)
{
	int64_t before = (int64_t)time(NULL);
	int64_t now = vg_clock_unix_s();

	(void)state;
	/* time() may read a coarser clock, which lags by less than a second. */
	assert_true(now >= before);
	assert_true(now <= (int64_t)time(NULL) + 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_monotonic),
		cmocka_unit_test(test_unix),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
