/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "libvgpu/limiter_budget.h"

static void test_refill(void **state)
{
	static const struct {
		const char *what;
		int64_t budget;
		uint64_t last, now;
		uint32_t percent;
		int64_t expect;
	} table[] = {
		{ "first time", -5, 0, 1000, 50, VG_QUANTUM_NS },
		{ "grows by the share", 0, 1000, 1001000, 50, 500000 },
		{ "debt is paid off", -3000000, 1000, 1001000, 25, -2750000 },
		{ "no time, nothing", 7, 1000, 1000, 50, 7 },
		{ "a little back is nothing", 7, 2000, 1000, 50, 7 },
		{ "capped", 0, 1000, 100000001000, 50, 50000000 },
		{ "a small share still saves two quanta", 0, 1000, 100000001000, 1,
		  2 * VG_QUANTUM_NS },
		{ "what was saved under a larger share stays", 90000000, 1000, 2000, 10, 90000000 },
		{ "debt larger than the cap grows unhindered", -500000000, 1000, 400001000, 50,
		  -300000000 },
		{ "a clock of another boot", -77, 5000000000000, 1000, 50, VG_QUANTUM_NS },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct vgpu_region_device d = { .budget_ns = table[i].budget,
						.refilled_ns = table[i].last };

		vg_budget_refill(&d, table[i].now, table[i].percent);
		if (d.budget_ns != table[i].expect)
			fail_msg("%s: %lld, not %lld", table[i].what, (long long)d.budget_ns,
				 (long long)table[i].expect);
	}
}

static void test_wait(void **state)
{
	struct vgpu_region_device d = { .budget_ns = VG_QUANTUM_NS };

	(void)state;
	assert_true(vg_budget_open(&d));
	assert_int_equal(vg_budget_wait(&d, 50), 1);
	vg_budget_take(&d, VG_QUANTUM_NS + 1000000);
	assert_false(vg_budget_open(&d));
	assert_int_equal(vg_budget_wait(&d, 50), 2 * (VG_QUANTUM_NS + 1000000) + 1);
	vg_budget_take(&d, -1000001);
	assert_true(vg_budget_open(&d));
}

static void test_busy(void **state)
{
	static const struct {
		uint64_t start, end, fresh, count;
	} table[] = {
		{ 100, 200, 100, 1 }, /* first */
		{ 100, 200, 0, 1 },   /* again */
		{ 150, 250, 50, 1 },  /* half new */
		{ 400, 500, 100, 2 }, /* apart */
		{ 90, 95, 5, 3 },     /* before */
		{ 300, 350, 50, 4 },  /* between */
		{ 240, 410, 100, 2 }, /* joins three: 250-300 and 350-400 are new */
		{ 0, 1000, 595, 1 },  /* around everything: what was missing */
		{ 10, 990, 0, 1 },    { 500, 400, 0, 1 }, /* backwards */
	};
	struct vgpu_region_device d = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t fresh = vg_busy_add(&d, table[i].start, table[i].end);

		if (fresh != table[i].fresh || d.busy_count != table[i].count)
			fail_msg("row %zu: %llu fresh in %llu, not %llu in %llu", i,
				 (unsigned long long)fresh, (unsigned long long)d.busy_count,
				 (unsigned long long)table[i].fresh,
				 (unsigned long long)table[i].count);
	}
}

/* Against a bitmap, with more intervals than are remembered. */
static void test_busy_random(void **state)
{
	static unsigned char covered[20000];
	struct vgpu_region_device d = { 0 };
	uint32_t r = 7;

	(void)state;
	for (int i = 0; i < 3000; i++) {
		/* In the order of time, with some disorder, as completions come. */
		uint64_t start = (uint64_t)i * 6 + (r >> 8) % 60, end, expect = 0, got;

		r = r * 1664525u + 1013904223u;
		end = start + 1 + (r >> 8) % 9;
		r = r * 1664525u + 1013904223u;
		for (uint64_t k = start; k < end; k++) {
			expect += !covered[k];
			covered[k] = 1;
		}
		got = vg_busy_add(&d, start, end);
		if (got != expect)
			fail_msg("interval %d: %llu, not %llu", i, (unsigned long long)got,
				 (unsigned long long)expect);
		assert_true(d.busy_count <= VGPU_REGION_BUSY);
		for (uint64_t k = 1; k < d.busy_count; k++)
			assert_true(d.busy[k - 1].end_ns < d.busy[k].start_ns);
	}
}

static void test_batch_work(void **state)
{
	static const struct {
		uint64_t pair, submit, estimate, work;
	} table[] = {
		{ 1000, 100, 950, 950 },   /* inside what is possible: the estimate */
		{ 1000, 100, 500, 900 },   /* the device cannot have idled that much */
		{ 1000, 100, 5000, 1000 }, /* nor worked more than the time */
		{ 1000, 5000, 200, 200 },  /* a slow host pays for its work alone */
		{ 1000, 5000, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		assert_int_equal(vg_batch_work(table[i].pair, table[i].submit, table[i].estimate),
				 table[i].work);
}

static void test_estimates(void **state)
{
	struct vg_estimate e = { .key = 1 };
	struct vg_batch b;

	(void)state;
	assert_int_equal(vg_estimate_ns(&e), VG_UNKNOWN_NS);
	assert_true(vg_estimate_wants_solo(&e));
	/* First launch: 30 ms of loading before 25 ms of work. */
	vg_estimate_solo(&e, 55000000, 30000000);
	for (int i = 0; i < 20; i++)
		vg_estimate_solo(&e, 25002000, 5000);
	assert_in_range(vg_estimate_ns(&e), 24500000, 26500000);
	/* The kernel's data grow: the estimate follows. */
	for (int i = 0; i < 40; i++) {
		vg_batch_open(&b, 0);
		for (int k = 0; k < 4; k++)
			vg_batch_launched(&b, &e, vg_estimate_ns(&e), 10000);
		assert_in_range(vg_batch_settle(&b, 200000000, VG_PART_WHOLE, false), 199000000,
				200000000);
	}
	assert_in_range(vg_estimate_ns(&e), 48000000, 52000000);
}

static uint64_t settle_one(struct vg_estimate *e, uint64_t pair, uint32_t part)
{
	struct vg_batch b;

	vg_batch_open(&b, 0);
	vg_batch_launched(&b, e, vg_estimate_ns(e), 1000);
	return vg_batch_settle(&b, pair, part, true);
}

static uint64_t settle_many(struct vg_estimate *e, int launches, uint64_t pair, uint32_t part)
{
	struct vg_batch b;

	vg_batch_open(&b, 0);
	for (int i = 0; i < launches; i++)
		vg_batch_launched(&b, e, vg_estimate_ns(e), 1000);
	return vg_batch_settle(&b, pair, part, true);
}

/* Kernels shorter than a slice, with other tenants about. */
static void test_shared_short(void **state)
{
	const uint32_t half = VG_PART_WHOLE / 2;
	struct vg_estimate e = { .key = 1 };

	(void)state;
	for (int i = 0; i < 20; i++)
		(void)settle_one(&e, 92000, half); /* not interrupted, whatever the others say */
	assert_in_range(vg_estimate_ns(&e), 88000, 92000);
	(void)settle_one(&e, 900000, half); /* interrupted */
	assert_in_range(vg_estimate_ns(&e), 88000, 92000);
	/* 20 of them, interrupted once, and the other way round. */
	assert_in_range(settle_many(&e, 20, 4000000, half * 3 / 2), 1760000, 1840000);
	/* Not interrupted: the time itself. */
	assert_in_range(settle_many(&e, 20, 1850000, half), 1840000, 1850000);
	assert_in_range(settle_many(&e, 20, 1850000, VG_PART_WHOLE), 1840000, 1850000);
	/* Never more than the time that passed, never less than half of the fair part. */
	assert_int_equal(settle_many(&e, 20, 1000000, half), 1000000);
	assert_int_equal(settle_many(&e, 2, 8000000, half), 2000000);
	/* It has become longer: believed when it goes on. */
	for (int i = 0; i < 60; i++)
		(void)settle_one(&e, 502000, half);
	assert_in_range(vg_estimate_ns(&e), 400000, 502000);
}

/* Kernels longer than a slice are always interrupted. */
/* Pairs around one launch hold its submission; batches that nobody interrupted put that right. */
static void test_shared_batches_correct_solos(void **state)
{
	const uint32_t half = VG_PART_WHOLE / 2;
	struct vg_estimate e = { .key = 1 };

	(void)state;
	for (int i = 0; i < 20; i++)
		(void)settle_one(&e, 98000, half);
	assert_in_range(vg_estimate_ns(&e), 95000, 96000);
	for (int i = 0; i < 60; i++) {
		if (i % 6 == 0)
			(void)settle_one(&e, 98000, half);
		/* One in three is interrupted, and teaches nothing. */
		(void)settle_many(&e, 20, i % 3 ? 1800000 : 3800000, half);
	}
	assert_in_range(vg_estimate_ns(&e), 89500, 91500);
	assert_in_range(settle_many(&e, 20, 3600000, half), 1790000, 1830000);
}

static void test_shared_long(void **state)
{
	struct vg_estimate e = { .key = 1 };

	(void)state;
	for (int i = 0; i < 40; i++)
		(void)settle_one(&e, 50000000, VG_PART_WHOLE / 2);
	assert_in_range(vg_estimate_ns(&e), 24500000, 25500000);
	assert_in_range(settle_one(&e, 50000000, VG_PART_WHOLE / 2), 24500000, 25500000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shared_short),
		cmocka_unit_test(test_shared_batches_correct_solos),
		cmocka_unit_test(test_shared_long),
		cmocka_unit_test(test_refill),
		cmocka_unit_test(test_wait),
		cmocka_unit_test(test_busy),
		cmocka_unit_test(test_busy_random),
		cmocka_unit_test(test_batch_work),
		cmocka_unit_test(test_estimates),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
