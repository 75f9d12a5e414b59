/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which node. Among the candidates that fit, the one with the best score wins, so a candidate with a
 * worse score than one that is known to fit need not be looked at. Scores cost a fraction of a fit, so
 * on a cluster with room a decision looks closely at a handful of nodes; on a full one, at all of them,
 * and then no score is needed.
 */
#include "scheduler/decide.h"

#include <string.h>

#include "scheduler/scheduler_internal.h"

struct best {
	bool found;
	uint32_t candidate;
	const char *name;
	float score;
	uint16_t *picks;
	size_t fit_count;
};

static bool is_better(enum vg_node_policy policy, float score, const char *name, uint32_t candidate,
		      const struct best *best)
{
	int order;

	if (!best->found)
		return true;
	if (score != best->score)
		return policy == VG_NODE_SPREAD ? score < best->score : score > best->score;
	order = strcmp(name, best->name);
	return order ? order < 0 : candidate < best->candidate;
}

/*
 * The candidates are walked in steps of about 0.618 of their number: every one is met once, and whatever
 * order they come in, a better one than any before is met only about log(count) times. In their own
 * order, a list that happens to rise would have every node looked at.
 */
static size_t stride(size_t count)
{
	/* Never past count - 1, which has no factor in common with count. */
	size_t step = count > 1 ? count * 618 / 1000 : 1;

	for (;; step++) {
		size_t a = count;
		size_t b = step;

		while (b) {
			size_t rest = a % b;

			a = b;
			b = rest;
		}
		if (a <= 1)
			return step;
	}
}

static size_t step_on(size_t at, size_t step, size_t count)
{
	return at + step < count ? at + step : at + step - count;
}

/* Most of a decision's time would be waiting for memory: what comes next is asked for ahead. */
static void prefetch_node(const struct vg_node *node)
{
	if (!node)
		return;
	__builtin_prefetch(&node->cards);
	__builtin_prefetch(&node->sums.slots_used);
}

static void prefetch_cards(const struct vg_node *node)
{
	if (!node)
		return;
	for (size_t i = 0; i < node->card_count; i++)
		__builtin_prefetch(&node->cards[i]);
}

static void trace_node(const struct vg_trace *trace, const struct vg_node *node,
		       const struct vg_verdict *verdict, uint32_t candidate)
{
	static const struct vg_sums nothing;
	float parts[3];
	struct vg_node_trace report = {
		.candidate = candidate,
		.verdict = verdict,
		.score = vg_node_score(node ? &node->sums : &nothing, parts),
	};

	report.score_slots = parts[0];
	report.score_cores = parts[1];
	report.score_mem = parts[2];
	trace->node(trace->ctx, &report);
}

/* The allocation of the cards that were picked on the node. */
static void fill_allocation(const struct vg_plan *plan, const struct vg_node *node,
			    const uint16_t *picks, struct vg_arena *arena,
			    struct vg_allocation *ret_allocation)
{
	size_t count = 0;
	struct vg_grant *grant;

	for (size_t i = 0; i < plan->want_count; i++)
		count += (size_t)plan->wants[i].count;
	grant = vg_arena_new_array(arena, count, sizeof(*grant));
	ret_allocation->grants = grant;
	ret_allocation->grant_count = count;
	for (size_t i = 0; i < plan->want_count; i++) {
		const struct vg_want_plan *want = &plan->wants[i];

		for (int32_t j = 0; j < want->count; j++, grant++) {
			const struct vg_card *card = &node->cards[*picks++];

			*grant = (struct vg_grant){
				.uuid = card->uuid,
				.mem_mib = vg_card_mem_needed(want, card),
				.cores = want->cores,
				.container = want->container,
				.class_index = want->class_index,
			};
		}
	}
}

/* Marks every candidate as not tried, or as not registered. Returns the most cards that one has. */
static size_t survey(const struct vg_decide_args *args, struct vg_verdict *verdicts)
{
	size_t cards_max = 0;

	for (size_t i = 0; i < args->candidate_count; i++) {
		const struct vg_node *node = args->candidates[i];
		size_t cards = node ? node->card_count : 0;

		verdicts[i].reason = cards ? VG_NODE_NOT_TRIED : VG_NODE_UNREGISTERED;
		if (cards > cards_max)
			cards_max = cards;
	}
	return cards_max;
}

/* Looks at one candidate if it can be the best one. */
static void consider(const struct vg_decide_args *args, struct vg_fit *fit, uint32_t candidate,
		     struct vg_verdict *verdict, struct best *best)
{
	const struct vg_node *node = args->candidates[candidate];
	enum vg_node_policy policy = args->request->policy.node;
	bool all = args->evaluate_all || args->trace;
	uint16_t *picks;
	float score;

	if (verdict->reason == VG_NODE_UNREGISTERED)
		return;
	if (best->found && !all) {
		score = vg_node_score(&node->sums, NULL);
		if (!is_better(policy, score, node->name, candidate, best))
			return;
	}
	if (!vg_fit_node(fit, node, candidate, verdict))
		return;
	best->fit_count++;
	score = vg_node_score(&node->sums, NULL);
	if (!is_better(policy, score, node->name, candidate, best))
		return;
	best->found = true;
	best->candidate = candidate;
	best->name = node->name;
	best->score = score;
	/* Keeps the picks and gives the fit the other array to write to. */
	picks = best->picks;
	best->picks = fit->picks;
	fit->picks = picks;
}

void vg_decide(const struct vg_decide_args *args, struct vg_arena *arena,
	       struct vg_decision *ret_decision)
{
	size_t count = args->candidate_count;
	bool all = args->evaluate_all || args->trace;
	size_t step = all ? 1 : stride(count);
	struct vg_verdict *verdicts = vg_arena_new_array(arena, count, sizeof(*verdicts));
	struct best best = { 0 };
	struct vg_fit fit;

	vg_fit_init(&fit, args, survey(args, verdicts), arena);
	best.picks = vg_arena_new_array(arena, fit.pick_room, sizeof(*best.picks));
	for (size_t i = 0, at = 0; i < count; i++) {
		size_t next = step_on(at, step, count);

		prefetch_node(args->candidates[step_on(next, step, count)]);
		if (!best.found)
			prefetch_cards(args->candidates[next]);
		consider(args, &fit, (uint32_t)at, &verdicts[at], &best);
		if (args->trace && args->trace->node)
			trace_node(args->trace, args->candidates[at], &verdicts[at], (uint32_t)at);
		at = next;
	}

	*ret_decision = (struct vg_decision){
		.found = best.found,
		.candidate = best.candidate,
		.score = best.score,
		.verdicts = verdicts,
		.fit_count = best.fit_count,
	};
	ret_decision->allocation.container_count = args->request->container_count;
	if (best.found)
		fill_allocation(&fit.plan, args->candidates[best.candidate], best.picks, arena,
				&ret_decision->allocation);
}
