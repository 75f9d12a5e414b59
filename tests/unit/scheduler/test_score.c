/* SPDX-License-Identifier: Apache-2.0 */
/* The published formulas, with the examples that their documentation gives. */
#include "unit/scheduler/cases.h"

#include "scheduler/scheduler_internal.h"

static void test_node_score(void **state)
{
	static const struct {
		struct vg_sums sums;
		float score;
		float parts[3];
	} rows[] = {
		/* mem, used, cores, used, slots, used */
		{ { 160000, 60000, 400, 150, 40, 12 }, 10.5f, { 0.3f, 0.375f, 0.375f } },
		{ { 16000, 0, 100, 0, 10, 0 }, 0.0f, { 0, 0, 0 } },
		{ { 16000, 16000, 100, 100, 10, 10 }, 30.0f, { 1, 1, 1 } },
		{ { 16000, 8000, 100, 200, 10, 0 }, 25.0f, { 0, 2, 0.5f } },
		/* Any total of 0. */
		{ { 0, 0, 100, 50, 10, 5 }, 0.0f, { 0.5f, 0.5f, 0 } },
		{ { 16000, 8000, 0, 0, 10, 5 }, 0.0f, { 0.5f, 0, 0.5f } },
		{ { 16000, 8000, 100, 50, 0, 0 }, 0.0f, { 0, 0.5f, 0.5f } },
		{ { 0 }, 0.0f, { 0, 0, 0 } },
		/* 20,000 cards of 2 TiB. */
		{ { 41943040000, 20971520000, 2000000, 1000000, 200000, 100000 },
		  15.0f,
		  { 0.5f, 0.5f, 0.5f } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		float parts[3];

		assert_float_equal(vg_node_score(&rows[i].sums, parts), rows[i].score, 0.00001);
		for (size_t j = 0; j < 3; j++)
			assert_float_equal(parts[j], rows[i].parts[j], 0.00001);
		assert_float_equal(vg_node_score(&rows[i].sums, NULL), rows[i].score, 0.00001);
	}
}

static void test_card_score(void **state)
{
	static const struct {
		struct vg_card card;
		struct vg_own_use own;
		int32_t mem_mib;
		int32_t mem_percent;
		int32_t cores;
		int32_t weights[3]; /* slot, core, memory */
		float score;
	} rows[] = {
		/* 10 x (4/10 + 50/100 + 6000/16000) */
		{ { .slots = 10,
		    .slots_used = 3,
		    .cores = 100,
		    .cores_used = 20,
		    .mem_mib = 16000,
		    .mem_used_mib = 4000 },
		  { 0 },
		  2000,
		  0,
		  30,
		  { 1, 1, 1 },
		  12.75f },
		/* The same with weights, in percent of memory, and beside an earlier container. */
		{ { .slots = 10,
		    .slots_used = 3,
		    .cores = 100,
		    .cores_used = 20,
		    .mem_mib = 16000,
		    .mem_used_mib = 4000 },
		  { 0 },
		  2000,
		  0,
		  30,
		  { 2, 0, 4 },
		  23.0f },
		{ { .slots = 10,
		    .slots_used = 3,
		    .cores = 100,
		    .cores_used = 20,
		    .mem_mib = 16000,
		    .mem_used_mib = 4000 },
		  { 0 },
		  0,
		  50,
		  30,
		  { 1, 1, 1 },
		  16.5f },
		{ { .slots = 10, .cores = 100, .mem_mib = 16000 },
		  { 1600, 10, 1 },
		  1600,
		  0,
		  10,
		  { 1, 1, 1 },
		  6.0f },
		/* Any total of 0. */
		{ { .slots = 0, .cores = 100, .mem_mib = 16000 }, { 0 }, 8, 0, 0, { 1, 1, 1 }, 0 },
		{ { .slots = 9, .cores = 0, .mem_mib = 16000 }, { 0 }, 8, 0, 0, { 1, 1, 1 }, 0 },
		{ { .slots = 9, .cores = 100, .mem_mib = 0 }, { 0 }, 8, 0, 0, { 1, 1, 1 }, 0 },
		/* Large weights and sizes do not overflow. */
		{ { .slots = 1, .cores = 100, .mem_mib = INT32_MAX, .mem_used_mib = INT32_MAX },
		  { 0 },
		  0,
		  0,
		  0,
		  { 0, 0, INT32_MAX },
		  21474836480.0f },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_want_plan want = { .mem_mib = rows[i].mem_mib,
					     .mem_percent = rows[i].mem_percent,
					     .cores = rows[i].cores };
		struct vg_policy policy = { .weight_slot = rows[i].weights[0],
					    .weight_core = rows[i].weights[1],
					    .weight_mem = rows[i].weights[2] };
		float score = vg_card_score(&rows[i].card, &rows[i].own, &want, &policy);

		assert_float_equal(score, rows[i].score, 0.00001);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_node_score),
		cmocka_unit_test(test_card_score),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
