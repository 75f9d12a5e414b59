/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which cards a container gets, of those that passed their checks. One order of preference serves single
 * cards and groups of cards; each rule about several cards is one struct vg_choice.
 */
#include <string.h>

#include "base/limits.h"
#include "scheduler/scheduler_internal.h"

/* ---- the order of preference ------------------------------------------------------------------ */

/*
 * How much a card is preferred, as one number: its score in the policy's direction and its NUMA id in the
 * policy's order, then the place in the list, which ends every tie. Scores are never negative, so their
 * bits grow with them.
 */
static uint64_t preference(const struct vg_order *order, float score, int16_t numa, size_t card)
{
	uint64_t by_numa = order->numa ? (uint16_t)(numa - INT16_MIN) : 0;
	uint64_t tie = UINT16_MAX - card;
	uint32_t by_score = 0;

	if (order->score) {
		memcpy(&by_score, &score, sizeof(by_score));
		if (order->emptiest_first)
			by_score = ~by_score;
	}
	if (order->numa_first)
		return by_numa << 48 | (uint64_t)by_score << 16 | tie;
	return (uint64_t)by_score << 32 | by_numa << 16 | tie;
}

static size_t preferred_card(uint64_t preference)
{
	return UINT16_MAX - (preference & UINT16_MAX);
}

/* Fills set->ranks with the preferences of the cards that passed. */
static void rank(const struct vg_card_set *set, const struct vg_want_plan *want,
		 const struct vg_plan *plan)
{
	uint64_t *to = set->ranks;

	for (size_t i = 0; i < set->count; i++) {
		float score;

		if (set->reason[i] != VG_CARD_OK)
			continue;
		score = vg_card_score(&set->cards[i], &set->own[i], want, plan->policy);
		*to++ = preference(&plan->order, score, set->cards[i].numa, i);
	}
}

/* Brings the `front` greatest of `count` numbers to the front, in order. For a handful of cards this is
 * cheaper than the sorts that are better on paper. */
static void sort_front(uint64_t *ranks, size_t count, size_t front)
{
	for (size_t i = 0; i < front; i++) {
		size_t best = i;
		uint64_t swap = ranks[i];

		for (size_t j = i + 1; j < count; j++)
			if (ranks[j] > ranks[best])
				best = j;
		ranks[i] = ranks[best];
		ranks[best] = swap;
	}
}

/* ---- the most preferred cards ----------------------------------------------------------------- */

static bool choose_in_order(const struct vg_card_set *set, const struct vg_want_plan *want,
			    const struct vg_plan *plan, uint16_t *picks)
{
	size_t need = (size_t)want->count;

	if (set->passed_count < need)
		return false;
	rank(set, want, plan);
	sort_front(set->ranks, set->passed_count, need);
	for (size_t i = 0; i < need; i++)
		picks[i] = (uint16_t)preferred_card(set->ranks[i]);
	return true;
}

/* The cards that passed and are of the NUMA node, if `numa` is not NULL, into set->among in the order of
 * set->ranks. Returns how many. */
static size_t list_ranked(const struct vg_card_set *set, const int16_t *numa)
{
	size_t count = 0;

	for (size_t i = 0; i < set->passed_count; i++) {
		size_t card = preferred_card(set->ranks[i]);

		if (!numa || set->cards[card].numa == *numa)
			set->among[count++] = (uint16_t)card;
	}
	return count;
}

static bool choose_linked(const struct vg_card_set *set, const struct vg_want_plan *want,
			  const struct vg_plan *plan, uint16_t *picks)
{
	size_t need = (size_t)want->count;

	if (set->passed_count < need)
		return false;
	rank(set, want, plan);
	sort_front(set->ranks, set->passed_count, set->passed_count);
	vg_pick_linked(set, set->among, list_ranked(set, NULL), need, picks);
	return true;
}

static bool blame_too_few(struct vg_card_set *set, const struct vg_want_plan *want)
{
	for (size_t i = 0; i < set->count; i++)
		set->reason[i] = set->reason[i] == VG_CARD_OK ? VG_CARD_TOO_FEW : set->reason[i];
	return set->possible_count >= (size_t)want->count;
}

const struct vg_choice vg_choice_in_order = { choose_in_order, blame_too_few };
const struct vg_choice vg_choice_linked = { choose_linked, blame_too_few };

/* ---- all from one NUMA node ------------------------------------------------------------------- */

/* Counts the cards of each NUMA node into set->numa_nodes, and returns how many there are. */
static size_t count_numa_nodes(const struct vg_card_set *set)
{
	struct vg_numa_node *nodes = set->numa_nodes;
	size_t count = 0;
	size_t at = 0;

	for (size_t i = 0; i < set->count; i++) {
		int16_t id = set->cards[i].numa;

		/* Mostly the NUMA node of the card before. */
		if (at == count || nodes[at].id != id)
			for (at = 0; at < count && nodes[at].id != id; at++)
				;
		if (at == count)
			nodes[count++] = (struct vg_numa_node){ .id = id };
		nodes[at].passed += set->reason[i] == VG_CARD_OK;
		nodes[at].possible += set->possible[i];
	}
	return count;
}

static bool numa_node_has(const struct vg_card_set *set, size_t need)
{
	size_t count = count_numa_nodes(set);

	for (size_t i = 0; i < count; i++)
		if (set->numa_nodes[i].passed >= need)
			return true;
	return false;
}

/*
 * The preference of the NUMA node that the first of these ranks belongs to: what it offers are its `need`
 * most preferred cards, and their scores count together. 0 when it has fewer.
 */
static uint64_t group_preference(const struct vg_card_set *set, const struct vg_want_plan *want,
				 const struct vg_plan *plan, const uint64_t *ranks, size_t count)
{
	size_t first = preferred_card(ranks[0]);
	int16_t numa = set->cards[first].numa;
	int32_t taken = 0;
	float sum = 0.0f;

	for (size_t i = 0; i < count && taken < want->count; i++) {
		size_t card = preferred_card(ranks[i]);

		if (set->cards[card].numa != numa)
			continue;
		sum += vg_card_score(&set->cards[card], &set->own[card], want, plan->policy);
		taken++;
	}
	return taken == want->count ? preference(&plan->order, sum, numa, first) : 0;
}

/*
 * NUMA nodes compare as cards do, by what they offer: binpack takes the fullest that has room, spread the
 * emptiest.
 */
static bool choose_one_numa_node(const struct vg_card_set *set, const struct vg_want_plan *want,
				 const struct vg_plan *plan, uint16_t *picks)
{
	size_t need = (size_t)want->count;
	size_t count = set->passed_count;
	uint64_t best = 0;
	int16_t numa;

	if (!numa_node_has(set, need))
		return false;
	rank(set, want, plan);
	sort_front(set->ranks, count, count);
	/* Seen from a later card of its own, a NUMA node offers less or the same: no harm, and no need
	 * to remember which ones were seen. */
	for (size_t i = 0; i + need <= count; i++) {
		uint64_t group = group_preference(set, want, plan, set->ranks + i, count - i);

		if (group > best)
			best = group;
	}
	numa = set->cards[preferred_card(best)].numa;
	for (size_t i = 0, taken = 0; taken < need; i++) {
		size_t card = preferred_card(set->ranks[i]);

		if (set->cards[card].numa == numa)
			picks[taken++] = (uint16_t)card;
	}
	return true;
}

/*
 * Several cards: of the NUMA nodes that have enough, the one whose best-linked set is linked best; of
 * equals, the one that would be taken without regard to links. A single card: it is in one NUMA node.
 */
static bool choose_linked_one_numa_node(const struct vg_card_set *set,
					const struct vg_want_plan *want, const struct vg_plan *plan,
					uint16_t *picks)
{
	uint16_t trial[VG_LIMIT_CARDS_PER_NODE];
	size_t need = (size_t)want->count;
	int64_t best = INT64_MIN;
	uint64_t best_group = 0;

	if (need == 1)
		return choose_linked(set, want, plan, picks);
	if (!numa_node_has(set, need))
		return false;
	rank(set, want, plan);
	sort_front(set->ranks, set->passed_count, set->passed_count);
	for (size_t i = 0; i + need <= set->passed_count; i++) {
		size_t first = preferred_card(set->ranks[i]);
		size_t count = list_ranked(set, &set->cards[first].numa);
		uint64_t group;
		int64_t sum;

		/* Only at the first card of each NUMA node. */
		if (set->among[0] != first || count < need)
			continue;
		sum = vg_pick_linked(set, set->among, count, need, trial);
		group = group_preference(set, want, plan, set->ranks + i, set->passed_count - i);
		if (sum > best || (sum == best && group > best_group)) {
			best = sum;
			best_group = group;
			memcpy(picks, trial, need * sizeof(*picks));
		}
	}
	return true;
}

/* The NUMA node that came closest has too few cards that fit; those on other ones are of no use. */
static bool blame_numa(struct vg_card_set *set, const struct vg_want_plan *want)
{
	size_t count = count_numa_nodes(set);
	const struct vg_numa_node *closest = &set->numa_nodes[0];
	bool possible = false;

	for (size_t i = 0; i < count; i++) {
		const struct vg_numa_node *node = &set->numa_nodes[i];

		if (node->passed > closest->passed)
			closest = node;
		possible |= node->possible >= (size_t)want->count;
	}
	for (size_t i = 0; i < set->count; i++)
		if (set->reason[i] == VG_CARD_OK)
			set->reason[i] = set->cards[i].numa == closest->id ? VG_CARD_TOO_FEW
									   : VG_CARD_NUMA_NOT_FIT;
	return possible;
}

const struct vg_choice vg_choice_one_numa_node = { choose_one_numa_node, blame_numa };
const struct vg_choice vg_choice_linked_one_numa_node = { choose_linked_one_numa_node, blame_numa };
