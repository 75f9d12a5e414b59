/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share. The decision, from the top:
 *
 *	decide.c   which node: walks the candidates and keeps the best one that fits
 *	fit.c      one pod on one node: container by container, card by card (checks.def)
 *	choose.c   which of the cards that passed their checks
 *	links.c    of these, the ones that are linked best
 *	score.c    the scores of nodes and cards
 *	plan.c     the request prepared once per decision, and what is particular to a device class
 *	reasons.c  the texts
 */
#ifndef VGPU_SCHEDULER_INTERNAL_H
#define VGPU_SCHEDULER_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/str.h"
#include "device/node.h"
#include "device/request.h"
#include "scheduler/decide.h"
#include "scheduler/view.h"

/* Asking for so many percent of a card means asking for a card of one's own. */
#define VG_CORES_WHOLE 100

struct vg_choice;

/* ---- plan.c: the request, prepared ------------------------------------------------------------ */

/* The UUIDs of an annotation, sorted. */
struct vg_uuid_set {
	struct vg_span *item;
	size_t count; /* 0: the annotation constrains nothing */
};

/* A want with everything resolved that does not depend on the node. */
struct vg_want_plan {
	uint16_t container;
	uint8_t class_index;
	bool stays; /* what it takes is still held while the next containers run */
	bool mutex; /* by policy: only a card that nobody is on */
	bool whole; /* by its cores: the same */
	int32_t count;
	int32_t mem_mib;     /* used when mem_percent is 0 */
	int32_t mem_percent; /* of the card's memory */
	int32_t cores;
	const bool *model_ok; /* by index into the models */
	bool mode_ok[VG_MODE_COUNT];
	bool uuid_lists; /* one of the two sets constrains */
	struct vg_uuid_set use_uuid;
	struct vg_uuid_set nouse_uuid;
	const struct vg_choice *choice;
};

/* The policy's keys, put together: BINPACK and SPREAD are the two directions of one key. */
struct vg_order {
	bool score; /* the score counts */
	bool emptiest_first;
	bool numa; /* the NUMA id counts, the highest first: before the score, or after it */
	bool numa_first;
};

struct vg_plan {
	struct vg_want_plan *wants; /* in the request's order */
	size_t want_count;
	const struct vg_policy *policy;
	struct vg_order order;
};

/* The plan points into the request and the arena. */
void vg_plan_init(struct vg_plan *plan, const struct vg_request *request,
		  const struct vg_models *models, struct vg_arena *arena);

/* Whether the want's UUID lists admit the card. */
bool vg_plan_uuid_ok(const struct vg_want_plan *want, const char *uuid);

/* ---- score.c ---------------------------------------------------------------------------------- */

/* What this pod's earlier containers hold of a card. */
struct vg_own_use {
	int32_t mem_mib;
	int32_t cores;
	int32_t slots;
};

/*
 * The memory that the want takes of the card, MiB. A percentage never gives 0: in an allocation that
 * would mean "no limit".
 */
static inline int32_t vg_card_mem_needed(const struct vg_want_plan *want,
					 const struct vg_card *card)
{
	int64_t part = (int64_t)card->mem_mib * want->mem_percent / 100;

	return want->mem_percent ? (int32_t)part + !part : want->mem_mib;
}

/*
 * The device score by HAMi's published formula, with the want on the card:
 * 10 x (w_slot (used + 1) / slots + w_core (used + want) / cores + w_mem (used + want) / memory),
 * 0 when any total is 0. `used` includes `own`.
 */
float vg_card_score(const struct vg_card *card, const struct vg_own_use *own,
		    const struct vg_want_plan *want, const struct vg_policy *policy);

/* ---- choose.c --------------------------------------------------------------------------------- */

/* How many cards of a NUMA node passed their checks, and how many would if nobody were on them. */
struct vg_numa_node {
	int16_t id;
	uint32_t passed;
	uint32_t possible;
};

/* The cards of one class on one node, with what the checks said. Arrays have `count` entries. */
struct vg_card_set {
	const struct vg_card *cards;
	const struct vg_own_use *own;
	size_t count;
	uint8_t *reason; /* enum vg_card_reason; VG_CARD_OK = passed */
	bool *possible;  /* would pass if nobody were on it */
	size_t passed_count;
	size_t possible_count;
	uint64_t *ranks;                 /* scratch of the choice */
	struct vg_numa_node *numa_nodes; /* the same */
	uint16_t *among;                 /* the same */
	const int32_t *links;            /* of the whole node; NULL: all alike */
	size_t links_stride;
	size_t links_first; /* where this class begins in it */
};

static inline int32_t vg_card_set_link(const struct vg_card_set *set, size_t a, size_t b)
{
	if (!set->links)
		return 0;
	return set->links[(set->links_first + a) * set->links_stride + set->links_first + b];
}

/* A rule by which the cards of a container are chosen among those that passed their checks. */
struct vg_choice {
	/*
	 * Writes want->count indexes into set->cards to picks, in the order in which the container will
	 * see the cards. False when the cards do not satisfy the rule: picks is then undefined.
	 */
	bool (*choose)(const struct vg_card_set *set, const struct vg_want_plan *want,
		       const struct vg_plan *plan, uint16_t *picks);
	/*
	 * After a failure: gives the cards that passed the reason why that was not enough. Returns
	 * whether empty cards would have done, as struct vg_verdict defines it.
	 */
	bool (*blame)(struct vg_card_set *set, const struct vg_want_plan *want);
};

extern const struct vg_choice vg_choice_in_order;
extern const struct vg_choice vg_choice_one_numa_node;
extern const struct vg_choice vg_choice_linked;
extern const struct vg_choice vg_choice_linked_one_numa_node;

/* ---- links.c ---------------------------------------------------------------------------------- */

/*
 * Picks `need` of the cards `among` (indexes into the set, in the order of preference) by how they are
 * linked, and writes them to picks in that order. Returns the sum over the pairs that were picked.
 */
int64_t vg_pick_linked(const struct vg_card_set *set, const uint16_t *among, size_t count,
		       size_t need, uint16_t *picks);

/* ---- fit.c ------------------------------------------------------------------------------------ */

struct vg_fit {
	struct vg_plan plan;
	const struct vg_quota *quota; /* NULL: the namespace has none */
	const struct vg_trace *trace; /* NULL: off */
	/* The cards that the last node which fitted would give: indexes into its cards, the wants one
	 * after the other. The caller may exchange it for another array of pick_room entries. */
	uint16_t *picks;
	size_t pick_room;
	/* Scratch for one node; `own` is all zero between nodes. */
	struct vg_own_use *own;
	/* What this pod's earlier containers hold of each class, on whatever cards; only with a quota. */
	struct vg_total held[VG_CLASSES_MAX];
	uint8_t *reason;
	bool *possible;
	uint64_t *ranks;
	struct vg_numa_node *numa_nodes;
	uint16_t *among;
};

/* `cards_max`: the most cards that any candidate has. */
void vg_fit_init(struct vg_fit *fit, const struct vg_decide_args *args, size_t cards_max,
		 struct vg_arena *arena);

/* Whether the pod fits on the node, which has cards. Fills the verdict, which was zeroed, and picks. */
bool vg_fit_node(struct vg_fit *fit, const struct vg_node *node, uint32_t candidate,
		 struct vg_verdict *verdict);

#endif
