/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Policy topology-aware: the cards that are linked best, by the pair scores that the node reports.
 *
 *	one card       the one whose links to the others that are left add up to the least, so that what
 *	               stays behind is worth the most
 *	several cards  the set with the greatest sum over its pairs
 *
 * Among equals the policy's order of preference decides: the set whose cards come first in it.
 *
 * Up to VG_LINKS_EXACT cards the best set is found by looking at all of them, depth first, without those
 * branches that cannot win any more: C(16, 8) = 12,870 sets at the most. Beyond, a set is grown from each
 * card in turn by what it is linked to best, each is improved by exchanging single cards for as long as
 * that helps, at most as often as there are cards, and the best one is taken: O(n^3 k) steps, and not
 * always the best set that there is.
 */
#include <string.h>

#include "base/limits.h"
#include "scheduler/scheduler_internal.h"

#define VG_LINKS_EXACT 16

/* The cards to choose from, in the order of preference, and their pair scores. */
struct pool {
	size_t count;
	size_t need;
	int32_t link[VG_LIMIT_CARDS_PER_NODE][VG_LIMIT_CARDS_PER_NODE];
	int32_t best_link; /* the greatest of all */
};

static void fill_pool(struct pool *pool, const struct vg_card_set *set, const uint16_t *among,
		      size_t count, size_t need)
{
	pool->count = count;
	pool->need = need;
	pool->best_link = INT32_MIN;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			int32_t link = vg_card_set_link(set, among[i], among[j]);

			pool->link[i][j] = link;
			if (i != j && link > pool->best_link)
				pool->best_link = link;
		}
}

/* ---- one card --------------------------------------------------------------------------------- */

static size_t least_linked(const struct pool *pool)
{
	int64_t least = INT64_MAX;
	size_t best = 0;

	for (size_t i = 0; i < pool->count; i++) {
		int64_t sum = 0;

		for (size_t j = 0; j < pool->count; j++)
			sum += pool->link[i][j];
		if (sum < least) {
			least = sum;
			best = i;
		}
	}
	return best;
}

/* ---- several, exactly ------------------------------------------------------------------------- */

struct search {
	const struct pool *pool;
	uint8_t chosen[VG_LINKS_EXACT];
	uint8_t best[VG_LINKS_EXACT];
	int64_t best_sum;
	bool found;
};

/* The most that `left` more cards from `first` on can add, were all their pairs among the best ones. */
static int64_t most_to_gain(const struct pool *pool, const int32_t *gain, size_t first, size_t left)
{
	int32_t most = INT32_MIN;

	for (size_t i = first; i < pool->count; i++)
		most = gain[i] > most ? gain[i] : most;
	return (int64_t)left * most + (int64_t)(left * (left - 1) / 2) * pool->best_link;
}

/* Sets are met in the order of preference, so the first of equals stays. `gain[i]`: what card i adds to
 * the cards that are chosen already. */
static void search_from(struct search *search, size_t depth, size_t first, int64_t sum,
			const int32_t *gain)
{
	const struct pool *pool = search->pool;
	size_t left = pool->need - depth;

	for (size_t i = first; i + left <= pool->count; i++) {
		int64_t next_sum = sum + gain[i];
		int32_t next_gain[VG_LINKS_EXACT] = { 0 };

		search->chosen[depth] = (uint8_t)i;
		if (left == 1) {
			if (!search->found || next_sum > search->best_sum) {
				search->found = true;
				search->best_sum = next_sum;
				memcpy(search->best, search->chosen, pool->need);
			}
			continue;
		}
		for (size_t j = 0; j < pool->count; j++)
			next_gain[j] = gain[j] + pool->link[i][j];
		if (search->found &&
		    next_sum + most_to_gain(pool, next_gain, i + 1, left - 1) <= search->best_sum)
			continue;
		search_from(search, depth + 1, i + 1, next_sum, next_gain);
	}
}

static void search_exactly(const struct pool *pool, uint8_t *ret_best)
{
	struct search search = { .pool = pool };
	const int32_t nothing[VG_LINKS_EXACT] = { 0 };

	search_from(&search, 0, 0, 0, nothing);
	memcpy(ret_best, search.best, pool->need);
}

/* ---- several of many -------------------------------------------------------------------------- */

struct grown {
	bool in[VG_LIMIT_CARDS_PER_NODE];
	int64_t gain[VG_LIMIT_CARDS_PER_NODE]; /* what a card is linked to the set with */
	int64_t sum;
};

static void grown_add(const struct pool *pool, struct grown *set, size_t card)
{
	set->sum += set->gain[card];
	set->in[card] = true;
	for (size_t i = 0; i < pool->count; i++)
		set->gain[i] += pool->link[card][i];
}

static void grown_remove(const struct pool *pool, struct grown *set, size_t card)
{
	set->sum -= set->gain[card];
	set->in[card] = false;
	for (size_t i = 0; i < pool->count; i++)
		set->gain[i] -= pool->link[card][i];
}

static void grow_from(const struct pool *pool, size_t start, struct grown *ret_set)
{
	struct grown set = { 0 };

	grown_add(pool, &set, start);
	for (size_t size = 1; size < pool->need; size++) {
		size_t best = pool->count;

		for (size_t i = 0; i < pool->count; i++)
			if (!set.in[i] && (best == pool->count || set.gain[i] > set.gain[best]))
				best = i;
		grown_add(pool, &set, best);
	}
	*ret_set = set;
}

/* Makes the one exchange that helps most. False when none helps. */
static bool exchange(const struct pool *pool, struct grown *set)
{
	int64_t best_change = 0;
	size_t best_out = 0;
	size_t best_in = 0;

	for (size_t out = 0; out < pool->count; out++) {
		for (size_t in = 0; set->in[out] && in < pool->count; in++) {
			int64_t change;

			if (set->in[in])
				continue;
			change = set->gain[in] - pool->link[in][out] - set->gain[out];
			if (change > best_change) {
				best_change = change;
				best_out = out;
				best_in = in;
			}
		}
	}
	if (best_change == 0)
		return false;
	grown_remove(pool, set, best_out);
	grown_add(pool, set, best_in);
	return true;
}

static void search_greedily(const struct pool *pool, uint8_t *ret_best)
{
	struct grown best = { 0 };
	size_t count = 0;

	for (size_t start = 0; start < pool->count; start++) {
		struct grown set;

		grow_from(pool, start, &set);
		for (size_t i = 0; i < pool->count && exchange(pool, &set); i++)
			;
		if (start == 0 || set.sum > best.sum)
			best = set;
	}
	for (size_t i = 0; i < pool->count; i++)
		if (best.in[i])
			ret_best[count++] = (uint8_t)i;
}

/* ---- all -------------------------------------------------------------------------------------- */

int64_t vg_pick_linked(const struct vg_card_set *set, const uint16_t *among, size_t count,
		       size_t need, uint16_t *picks)
{
	uint8_t best[VG_LIMIT_CARDS_PER_NODE];
	struct pool pool;
	int64_t sum = 0;

	fill_pool(&pool, set, among, count, need);
	if (need == 1)
		best[0] = (uint8_t)least_linked(&pool);
	else if (count <= VG_LINKS_EXACT)
		search_exactly(&pool, best);
	else
		search_greedily(&pool, best);
	for (size_t i = 0; i < need; i++) {
		picks[i] = among[best[i]];
		for (size_t j = i + 1; j < need; j++)
			sum += pool.link[best[i]][best[j]];
	}
	return sum;
}
