/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One pod on one node. Containers are placed in the pod's order: all init containers, with the sidecars
 * among them, then the apps.
 *
 *	                 sees on the cards                               keeps its cards
 *	init container   others' pods, sidecars that started before it   no: it ends before the next
 *	sidecar          the same                                        yes
 *	app              the same, and the apps before it                yes
 *
 * What fits like this holds at every moment of the pod's life, and so do the charges that
 * vg_allocation_charges() makes of it: per card the larger of what stays and the peak of what does not. The
 * same goes for the quota of the namespace and vg_allocation_totals(): what stays is held against it.
 */
#include <string.h>

#include "scheduler/scheduler_internal.h"

/* ---- the checks of one card ------------------------------------------------------------------- */

/* What is used of a card by everybody; 64 bits, so that no sum of two can overflow. */
struct use {
	int64_t mem_mib;
	int64_t cores;
	int64_t slots;
};

static inline struct use use_of(const struct vg_card *card, const struct vg_own_use *own)
{
	return (struct use){
		.mem_mib = (int64_t)card->mem_used_mib + own->mem_mib,
		.cores = (int64_t)card->cores_used + own->cores,
		.slots = (int64_t)card->slots_used + own->slots,
	};
}

/* What a container may have of the namespace's quota, and what is used of that by other pods. */
struct quota_room {
	int64_t mem_hard; /* MiB; less what the pod's own containers hold, which no eviction gives back */
	int64_t mem_used;
	int64_t cores_hard;
	int64_t cores_used;
};

/* With these numbers the checks pass whatever is asked for, which the compiler knows, too. */
static const struct quota_room no_quota = { VG_QUOTA_NO_LIMIT, 0, VG_QUOTA_NO_LIMIT, 0 };

static struct quota_room quota_room(const struct vg_fit *fit, const struct vg_want_plan *want)
{
	const struct vg_total *hard = &fit->quota->hard[want->class_index];
	const struct vg_total *used = &fit->quota->used[want->class_index];
	const struct vg_total *held = &fit->held[want->class_index];
	struct quota_room room = no_quota;

	/* Who takes none of it does not mind that others have too much. */
	if (hard->mem_mib != VG_QUOTA_NO_LIMIT && (want->mem_mib || want->mem_percent)) {
		room.mem_hard = hard->mem_mib - held->mem_mib;
		room.mem_used = used->mem_mib;
	}
	if (hard->cores != VG_QUOTA_NO_LIMIT && want->cores) {
		room.cores_hard = hard->cores - held->cores;
		room.cores_used = used->cores;
	}
	return room;
}

static inline bool uuid_ok(const struct vg_want_plan *want, const char *uuid)
{
	return !want->uuid_lists || vg_plan_uuid_ok(want, uuid);
}

/*
 * The reason of the first check that fails, or VG_CARD_OK; and whether the card would pass if nobody
 * were on it. The second question begins where the first one ended, since what passes on a used card
 * passes on an empty one. Inlined into both loops below, which is a third of the time of a decision that
 * fits nowhere.
 */
__attribute__((always_inline)) static inline uint8_t
check_card(const struct vg_want_plan *want, const struct quota_room *quota,
	   const struct vg_card *card, const struct vg_own_use *own, bool *ret_possible)
{
	struct use use = use_of(card, own);
	uint8_t reason;

#define CHECK(name, REASON, offered, taken, needed, help)                                          \
	if ((int64_t)(offered) - (int64_t)(taken) < (int64_t)(needed)) {                           \
		reason = VG_CARD_##REASON;                                                         \
		goto name##_failed;                                                                \
	}
#include "scheduler/checks.def"
#undef CHECK
	*ret_possible = true;
	return VG_CARD_OK;

/* clang-format off */
#define CHECK(name, REASON, offered, taken, needed, help)                                          \
	name##_failed:                                                                             \
		if ((int64_t)(offered) < (int64_t)(needed)) {                                      \
			*ret_possible = false;                                                     \
			return reason;                                                             \
		}
/* clang-format on */
#include "scheduler/checks.def"
#undef CHECK
	*ret_possible = true;
	return reason;
}

/* Most namespaces have no quota, and then there is nothing to check. */
__attribute__((always_inline)) static inline void
check_each(struct vg_card_set *set, const struct vg_want_plan *restrict want,
	   const struct quota_room *restrict quota)
{
	const struct vg_card *restrict cards = set->cards;
	const struct vg_own_use *restrict own = set->own;
	uint8_t *restrict reason = set->reason;
	bool *restrict possible = set->possible;
	size_t passed_count = 0;
	size_t possible_count = 0;
	size_t count = set->count;

	for (size_t i = 0; i < count; i++) {
		reason[i] = check_card(want, quota, &cards[i], &own[i], &possible[i]);
		passed_count += reason[i] == VG_CARD_OK;
		possible_count += possible[i];
	}
	set->passed_count = passed_count;
	set->possible_count = possible_count;
}

/* Apart, so that the loop without a quota has the registers to itself. */
__attribute__((noinline)) static void check_cards_and_quota(const struct vg_fit *fit,
							    struct vg_card_set *set,
							    const struct vg_want_plan *want)
{
	struct quota_room room = quota_room(fit, want);

	check_each(set, want, &room);
}

static void check_cards(const struct vg_fit *fit, struct vg_card_set *set,
			const struct vg_want_plan *want)
{
	if (fit->quota)
		check_cards_and_quota(fit, set, want);
	else
		check_each(set, want, &no_quota);
}

/* ---- tracing ---------------------------------------------------------------------------------- */

static void trace_checks(struct vg_check *checks, const struct vg_want_plan *want,
			 const struct quota_room *quota, const struct vg_card *card,
			 const struct vg_own_use *own)
{
	struct use use = use_of(card, own);

#define CHECK(name, REASON, offered, taken, needed, help)                                          \
	checks[VG_CHECK_##name] = (struct vg_check){                                               \
		.id = VG_CHECK_##name,                                                             \
		.reason = VG_CARD_##REASON,                                                        \
		.passed = (int64_t)(offered) - (int64_t)(taken) >= (int64_t)(needed),              \
		.have = (int64_t)(offered) - (int64_t)(taken),                                     \
		.need = (needed),                                                                  \
		.total = (offered),                                                                \
	};
#include "scheduler/checks.def"
#undef CHECK
}

/* `picks`: the cards that were chosen, as indexes into the set; NULL when the container does not fit. */
static void trace_cards(const struct vg_fit *fit, const struct vg_card_set *set, size_t first,
			const struct vg_want_plan *want, const uint16_t *picks, uint32_t candidate)
{
	struct quota_room room = fit->quota ? quota_room(fit, want) : no_quota;

	for (size_t i = 0; i < set->count; i++) {
		struct vg_card_trace trace = {
			.candidate = candidate,
			.container = want->container,
			.class_index = want->class_index,
			.card = (uint16_t)(first + i),
			.score =
				vg_card_score(&set->cards[i], &set->own[i], want, fit->plan.policy),
			.reason = set->reason[i],
		};

		for (int32_t j = 0; picks && j < want->count; j++)
			trace.chosen |= picks[j] == i;
		trace_checks(trace.checks, want, &room, &set->cards[i], &set->own[i]);
		fit->trace->card(fit->trace->ctx, &trace);
	}
}

/* ---- one container ---------------------------------------------------------------------------- */

/* The node's cards of one class; cards are sorted by class. */
static struct vg_card_set cards_of_class(const struct vg_fit *fit, const struct vg_node *node,
					 uint8_t class_index)
{
	size_t first = 0;
	size_t end = node->card_count;

	while (first < end && node->cards[first].class_index < class_index)
		first++;
	while (end > first && node->cards[end - 1].class_index > class_index)
		end--;
	return (struct vg_card_set){
		.cards = node->cards + first,
		.own = fit->own + first,
		.count = end - first,
		.reason = fit->reason,
		.possible = fit->possible,
		.ranks = fit->ranks,
		.numa_nodes = fit->numa_nodes,
		.among = fit->among,
		.links = node->links,
		.links_stride = node->card_count,
		.links_first = first,
	};
}

/* Whether the want fits beside what the pod's earlier containers hold. Writes want->count indexes into
 * the node's cards to picks. */
static bool fit_want(struct vg_fit *fit, const struct vg_node *node, uint32_t candidate,
		     const struct vg_want_plan *want, uint16_t *picks, struct vg_verdict *verdict)
{
	struct vg_card_set set = cards_of_class(fit, node, want->class_index);
	size_t first = (size_t)(set.cards - node->cards);
	bool fits;

	verdict->container = want->container;
	verdict->card_count = (uint16_t)set.count;
	if ((size_t)want->count > set.count) {
		verdict->reason = set.count ? VG_NODE_TOO_FEW_CARDS : VG_NODE_NO_CLASS;
		return false;
	}
	check_cards(fit, &set, want);
	fits = want->choice->choose(&set, want, &fit->plan, picks);
	if (!fits) {
		verdict->reason = VG_NODE_CARDS;
		verdict->curable = want->choice->blame(&set, want);
		for (size_t i = 0; i < set.count; i++)
			verdict->counts[set.reason[i]]++;
	}
	if (fit->trace && fit->trace->card)
		trace_cards(fit, &set, first, want, fits ? picks : NULL, candidate);
	for (int32_t i = 0; fits && i < want->count; i++)
		picks[i] = (uint16_t)(picks[i] + first);
	return fits;
}

/* ---- all containers --------------------------------------------------------------------------- */

static void hold(struct vg_total *held, const struct vg_node *node, const struct vg_want_plan *want,
		 const uint16_t *picks)
{
	for (int32_t i = 0; i < want->count; i++)
		held->mem_mib += vg_card_mem_needed(want, &node->cards[picks[i]]);
	held->cores += (int64_t)want->count * want->cores;
}

static void take(struct vg_fit *fit, const struct vg_node *node, const struct vg_want_plan *want,
		 const uint16_t *picks)
{
	for (int32_t i = 0; i < want->count; i++) {
		struct vg_own_use *own = &fit->own[picks[i]];

		own->mem_mib += vg_card_mem_needed(want, &node->cards[picks[i]]);
		own->cores += want->cores;
		own->slots++;
	}
	if (fit->quota)
		hold(&fit->held[want->class_index], node, want, picks);
}

/* Makes `own` all zero again. */
static void give_back(struct vg_fit *fit, const uint16_t *end)
{
	for (const uint16_t *pick = fit->picks; pick < end; pick++)
		fit->own[*pick] = (struct vg_own_use){ 0 };
	if (fit->quota)
		memset(fit->held, 0, sizeof(fit->held));
}

void vg_fit_init(struct vg_fit *fit, const struct vg_decide_args *args, size_t cards_max,
		 struct vg_arena *arena)
{
	*fit = (struct vg_fit){ .trace = args->trace, .quota = args->quota };
	vg_plan_init(&fit->plan, args->request, args->models, arena);
	/* A container never gets more cards than the node has. */
	fit->pick_room = fit->plan.want_count * cards_max;
	fit->picks = vg_arena_new_array(arena, fit->pick_room, sizeof(*fit->picks));
	fit->own = vg_arena_new_array(arena, cards_max, sizeof(*fit->own));
	fit->reason = vg_arena_new_array(arena, cards_max, sizeof(*fit->reason));
	fit->possible = vg_arena_new_array(arena, cards_max, sizeof(*fit->possible));
	fit->ranks = vg_arena_new_array(arena, cards_max, sizeof(*fit->ranks));
	fit->numa_nodes = vg_arena_new_array(arena, cards_max, sizeof(*fit->numa_nodes));
	fit->among = vg_arena_new_array(arena, cards_max, sizeof(*fit->among));
}

bool vg_fit_node(struct vg_fit *fit, const struct vg_node *node, uint32_t candidate,
		 struct vg_verdict *verdict)
{
	uint16_t *picks = fit->picks;
	bool fits = true;

	for (size_t i = 0; i < fit->plan.want_count; i++) {
		const struct vg_want_plan *want = &fit->plan.wants[i];

		fits = fit_want(fit, node, candidate, want, picks, verdict);
		if (!fits)
			break;
		if (want->stays)
			take(fit, node, want, picks);
		picks += want->count;
	}
	give_back(fit, picks);
	if (fits)
		*verdict = (struct vg_verdict){ .reason = VG_NODE_FITS };
	return fits;
}
