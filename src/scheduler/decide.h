/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision: which node, which cards. Pure: same input, same output, no I/O, clock, thread or global.
 * Filter, bind, explain, simulation, replay and tests all call vg_decide().
 *
 * Ties break by score, then node name, then card index.
 */
#ifndef VGPU_SCHEDULER_DECIDE_H
#define VGPU_SCHEDULER_DECIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/buf.h"
#include "device/allocation.h"
#include "device/request.h"
#include "scheduler/view.h"

enum vg_card_reason {
#define CARD(name, word, help) VG_CARD_##name,
#define NODE(name, text, help)
#include "scheduler/reasons.def"
#undef CARD
#undef NODE
	VG_CARD_REASON_COUNT,
	VG_CARD_OK = VG_CARD_REASON_COUNT,
};

/* The checks of a card, in order. Several may give the same reason. */
enum vg_check_id {
#define CHECK(name, reason, offered, taken, needed, help) VG_CHECK_##name,
#include "scheduler/checks.def"
#undef CHECK
	VG_CHECK_COUNT,
};

enum vg_node_reason {
#define CARD(name, word, help)
#define NODE(name, text, help) VG_NODE_##name,
#include "scheduler/reasons.def"
#undef CARD
#undef NODE
	VG_NODE_REASON_COUNT,
};

extern const char *const vg_card_reason_word[VG_CARD_REASON_COUNT];
extern const char *const vg_card_reason_help[VG_CARD_REASON_COUNT];
extern const char *const vg_node_reason_text[VG_NODE_REASON_COUNT];
extern const char *const vg_node_reason_help[VG_NODE_REASON_COUNT];
extern const char *const vg_check_name[VG_CHECK_COUNT]; /* "memory" */
extern const char *const vg_check_help[VG_CHECK_COUNT];

/* What became of one candidate. */
struct vg_verdict {
	uint8_t reason; /* enum vg_node_reason */
	/* With VG_NODE_CARDS: at least as many cards as the container asks for would pass every check if
	 * nobody were on them. */
	bool curable;
	uint16_t container;  /* the container that did not fit, index in the pod */
	uint16_t card_count; /* cards of the class that were looked at: the "m" of "n/m Reason" */
	uint16_t counts[VG_CARD_REASON_COUNT]; /* with VG_NODE_CARDS: cards per reason */
};

/*
 * The text that HAMi gives for a verdict: "1/8 CardNotHealth, 7/8 CardInsufficientMemory" (reasons
 * sorted as text) or the node's text. Appends.
 */
void vg_verdict_text(const struct vg_verdict *verdict, struct vg_buf *buf);
/*
 * Whether evicting pods could cure it: kube-scheduler must not evict anybody for the rest. False where
 * too few cards would do even if they were empty: unhealthy, cordoned, of the wrong type, mode or UUID,
 * too small, in the wrong NUMA node; and for a node without enough cards of the class. A node that was
 * not tried is not hopeless.
 */
bool vg_verdict_curable(const struct vg_verdict *verdict);

/* ---- tracing, for /explain -------------------------------------------------------------------- */

/* One check of one card for one container. The numbers are MiB, percent, slots or 0/1. */
struct vg_check {
	enum vg_check_id id;
	enum vg_card_reason reason; /* the reason that failing it gives */
	bool passed;                /* have >= need */
	int64_t have;               /* below 0: more was given out than there is */
	int64_t need;
	int64_t total; /* what there would be if nobody were on the card; INT64_MAX: no limit */
};

struct vg_card_trace {
	uint32_t candidate;
	uint16_t container;
	uint8_t class_index;
	uint16_t card; /* index into the node's cards */
	float score;   /* device score by which cards were ordered */
	/* As counted in the verdict. VG_CARD_OK: passed all checks, and the container fits. */
	enum vg_card_reason reason;
	bool chosen;
	struct vg_check checks[VG_CHECK_COUNT]; /* all, also those behind the first failed one */
};

struct vg_node_trace {
	uint32_t candidate;
	const struct vg_verdict *verdict;
	float score;       /* node score before this pod, as used for the choice */
	float score_slots; /* the three parts of it: used/total, 0..1 */
	float score_cores;
	float score_mem;
};

/*
 * Called in the order of evaluation, which is that of the candidates, containers and cards; the node
 * after its cards. A node is left at the first container that does not fit. The pointers are valid
 * during the call. Either function may be NULL.
 */
struct vg_trace {
	void *ctx;
	void (*card)(void *ctx, const struct vg_card_trace *trace);
	void (*node)(void *ctx, const struct vg_node_trace *trace);
};

/* ---- the decision ----------------------------------------------------------------------------- */

struct vg_decide_args {
	const struct vg_models *models;
	const struct vg_request *request; /* want_count > 0 */
	const struct vg_quota *quota;     /* NULL: the pod's namespace has none */
	/* Candidates; an entry is NULL, or has no cards, where nothing is registered under that name. */
	const struct vg_node *const *candidates;
	size_t candidate_count;
	/* Evaluate every candidate, and not only as far as needed to know the best: explain. */
	bool evaluate_all;
	const struct vg_trace *trace; /* NULL: none. Implies evaluate_all. */
};

struct vg_decision {
	bool found;
	uint32_t candidate; /* index of the chosen one, if found */
	float score;
	/* The cards, if found. Its UUIDs point into the view. In the arena. */
	struct vg_allocation allocation;
	struct vg_verdict *verdicts; /* one per candidate, in the arena */
	size_t fit_count;            /* candidates that fit, among those that were tried */
};

/* Cannot fail: every input has an answer. The arena is the only memory it takes. */
void vg_decide(const struct vg_decide_args *args, struct vg_arena *arena,
	       struct vg_decision *ret_decision);

/* The node score by HAMi's published formula: 10 × (used/total over slots, cores and memory), 0 when
 * any total is 0. The parts (0..1) go to ret_parts[3] when not NULL: slots, cores, memory. */
float vg_node_score(const struct vg_sums *sums, float ret_parts[3]);

#endif
