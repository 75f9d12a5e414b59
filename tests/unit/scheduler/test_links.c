/* SPDX-License-Identifier: Apache-2.0 */
/* The best-linked cards: against all sets, one by one. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdlib.h>

#include "base/limits.h"
#include "scheduler/scheduler_internal.h"

#define CARDS_MAX VG_LIMIT_CARDS_PER_NODE

static int32_t links[CARDS_MAX * CARDS_MAX];

static struct vg_card_set card_set(size_t count)
{
	return (struct vg_card_set){ .count = count, .links = links, .links_stride = count };
}

static void link_pair(size_t count, size_t a, size_t b, int32_t score)
{
	links[a * count + b] = links[b * count + a] = score;
}

static void random_links(size_t count, int32_t low, int32_t high)
{
	for (size_t i = 0; i < count; i++) {
		links[i * count + i] = 0;
		for (size_t j = i + 1; j < count; j++)
			link_pair(count, i, j, low + rand() % (high - low + 1));
	}
}

/* An order of preference that is not that of the cards. */
static void shuffled(uint16_t *among, size_t count)
{
	for (size_t i = 0; i < count; i++)
		among[i] = (uint16_t)i;
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)rand() % i;
		uint16_t swap = among[i - 1];

		among[i - 1] = among[j];
		among[j] = swap;
	}
}

/* Every set in the order of preference; the first of the best ones. */
static int64_t slow_best(const uint16_t *among, size_t count, size_t need, uint16_t *ret_picks)
{
	int64_t best = INT64_MIN;

	for (uint32_t set = 1u << count; set-- > 0;) {
		uint16_t picks[16];
		size_t size = 0;
		int64_t sum = 0;

		/* Bit count-1 stands for the most preferred card, so that falling numbers are the
		 * order of preference. */
		for (size_t i = 0; i < count; i++)
			if (set >> (count - 1 - i) & 1)
				picks[size++] = among[i];
		if (size != need)
			continue;
		for (size_t i = 0; i < size; i++)
			for (size_t j = i + 1; j < size; j++)
				sum += links[picks[i] * count + picks[j]];
		if (sum > best) {
			best = sum;
			for (size_t i = 0; i < size; i++)
				ret_picks[i] = picks[i];
		}
	}
	return best;
}

static void test_exact_search_is_exact(void **state)
{
	(void)state;
	srand(3);
	for (int round = 0; round < 600; round++) {
		size_t count = 2 + (size_t)rand() % 8;
		size_t need = 2 + (size_t)rand() % (count - 1);
		struct vg_card_set set = card_set(count);
		uint16_t among[16], picks[16], expected[16];
		int64_t best;

		/* Few different scores make many ties. */
		random_links(count, round % 3 == 0 ? -5 : 0, round % 2 ? 2 : 1000);
		shuffled(among, count);
		best = slow_best(among, count, need, expected);
		assert_true(vg_pick_linked(&set, among, count, need, picks) == best);
		for (size_t i = 0; i < need; i++)
			assert_int_equal(picks[i], expected[i]);
	}
}

/* Two boards of four: 0-3 and 4-7, linked within, hardly between. */
static void test_boards(void **state)
{
	struct vg_card_set set = card_set(8);
	uint16_t in_order[8] = { 0, 1, 2, 3, 4, 5, 6, 7 };
	uint16_t some[5] = { 1, 2, 4, 5, 6 };
	uint16_t picks[8];

	(void)state;
	for (size_t i = 0; i < 8; i++)
		for (size_t j = i + 1; j < 8; j++)
			link_pair(8, i, j, i / 4 == j / 4 ? 300 : 10);
	vg_pick_linked(&set, in_order, 8, 4, picks);
	assert_int_equal(picks[0], 0);
	assert_int_equal(picks[3], 3);
	vg_pick_linked(&set, some, 5, 3, picks);
	assert_int_equal(picks[0], 4);
	assert_int_equal(picks[2], 6);
	/* One card: from the board that is broken already. */
	vg_pick_linked(&set, some, 5, 1, picks);
	assert_int_equal(picks[0], 1);
	/* All alike: the order of preference. */
	random_links(8, 50, 50);
	vg_pick_linked(&set, some, 5, 2, picks);
	assert_int_equal(picks[0], 1);
	assert_int_equal(picks[1], 2);
	vg_pick_linked(&set, some, 5, 1, picks);
	assert_int_equal(picks[0], 1);
}

/* Beyond the exact search: a set of the right size, never worse than the order of preference alone, and
 * the best one where it is plain to see. */
static void test_many_cards(void **state)
{
	(void)state;
	srand(4);
	for (int round = 0; round < 60; round++) {
		size_t count = 17 + (size_t)rand() % 20;
		size_t need = 2 + (size_t)rand() % (count - 2);
		struct vg_card_set set = card_set(count);
		uint16_t among[CARDS_MAX], picks[CARDS_MAX];
		bool seen[CARDS_MAX] = { 0 };
		int64_t plain = 0;

		random_links(count, 0, 500);
		shuffled(among, count);
		for (size_t i = 0; i < need; i++)
			for (size_t j = i + 1; j < need; j++)
				plain += links[among[i] * count + among[j]];
		assert_true(vg_pick_linked(&set, among, count, need, picks) >= plain);
		for (size_t i = 0; i < need; i++) {
			assert_in_range(picks[i], 0, count - 1);
			assert_false(seen[picks[i]]);
			seen[picks[i]] = true;
		}
	}
}

/* Four boards of eight: eight cards come from one. */
static void test_many_cards_of_boards(void **state)
{
	struct vg_card_set set = card_set(32);
	uint16_t among[CARDS_MAX], picks[CARDS_MAX];

	(void)state;
	for (size_t i = 0; i < 32; i++)
		for (size_t j = i + 1; j < 32; j++)
			link_pair(32, i, j, i / 8 == j / 8 ? 400 : 20);
	shuffled(among, 32);
	vg_pick_linked(&set, among, 32, 8, picks);
	for (size_t i = 1; i < 8; i++)
		assert_int_equal(picks[i] / 8, picks[0] / 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exact_search_is_exact),
		cmocka_unit_test(test_boards),
		cmocka_unit_test(test_many_cards),
		cmocka_unit_test(test_many_cards_of_boards),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
