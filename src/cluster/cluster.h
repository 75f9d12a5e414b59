/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our view of the cluster: nodes with their cards, pods with what they hold, reservations. The only
 * mutable state that threads share; every function here may be called from any thread, and none of them
 * waits for anything but the one mutex, which is held for a decision at most.
 *
 * The ledger is a function of the pods, nodes and quotas that the source reported. What this process adds
 * are reservations: a filter's decision counts at once, against cards and quotas alike, and lapses when the
 * pod is filtered again, deleted, or not bound in time.
 *
 *	a pod's life here:  (filter) RESERVED -> (bind) BINDING -> (API server said yes) BOUND
 *	                    put_pod with spec.nodeName and an allocation: BOUND, whatever was before
 */
#ifndef VGPU_CLUSTER_CLUSTER_H
#define VGPU_CLUSTER_CLUSTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/class.h"
#include "device/request.h"
#include "device/sink.h"
#include "scheduler/decide.h"

struct vg_cluster;

struct vg_cluster_options {
	const struct vg_classes *classes; /* lives as long as the cluster */
	struct vg_policy policy;          /* the daemon's own, overridden by pods */
	int64_t reservation_ns; /* how long a decision waits for its bind; 0 = VG_RESERVATION_NS */
	int64_t stale_ns; /* not ready after hearing nothing for so long; 0 = never stale (snapshot) */
	/* One pod per node between bind and allocate; the others wait for their turn. Off where nobody
	 * acknowledges allocations (snapshot). */
	bool bind_queue;
};

/* kube-scheduler binds within milliseconds unless a Permit plugin (a gang) makes it wait. */
#define VG_RESERVATION_NS (300LL * 1000000000LL)
/* A bind waits so long for its turn: below the 30 s httpTimeout of the extender stanza. */
#define VG_BIND_WAIT_NS   (25LL * 1000000000LL)
/* A pod that was bound and not acknowledged for so long no longer keeps others waiting. */
#define VG_BIND_TURN_NS   (60LL * 1000000000LL)

struct vg_cluster *vg_cluster_new(const struct vg_cluster_options *options);
/* Nobody may be in a call any more. Waiting tickets are told -ECANCELED. */
void vg_cluster_free(struct vg_cluster *cluster);

/* Where a source reports to. Its calls read the monotonic clock for `heard`. */
struct vg_sink vg_cluster_sink(struct vg_cluster *cluster);

/* Whether all lists were filled and the source was heard of lately; a kind that the source may not read and
 * that we can do without (device/sink.h) counts as filled. When not, ret_reason (room for 160
 * bytes, may be NULL) says what is missing. */
#define VG_READY_REASON_BYTES 160
bool vg_cluster_ready(struct vg_cluster *cluster, int64_t now_ns, char *ret_reason);

/* To be called a few times a second: reservations and waits that are over. */
void vg_cluster_tick(struct vg_cluster *cluster, int64_t now_ns);

/* ---- filter ----------------------------------------------------------------------------------- */

struct vg_placement {
	bool found;
	size_t candidate; /* index into the names that were asked about */
	float score;
	struct vg_allocation allocation; /* everything copied into the arena */
	struct vg_verdict *verdicts;     /* one per candidate */
	int64_t decision_ns;             /* time that the decision itself took */
};

/* Decides among the named nodes and reserves on the chosen one, replacing an earlier reservation of the
 * same UID. A pod that is bound already is decided as if it were not there, and nothing is reserved. */
void vg_cluster_place(struct vg_cluster *cluster, const struct vg_request *request,
		      const char *const *node_names, size_t node_count, int64_t now_ns,
		      struct vg_arena *arena, struct vg_placement *ret_placement);

/*
 * Looks at every named node, without any effect: each verdict is FITS or says why not, and scores[i] is
 * the node's score (scheduler/decide.h) before this pod. In the arena.
 */
void vg_cluster_rank(struct vg_cluster *cluster, const struct vg_request *request,
		     const char *const *node_names, size_t node_count, struct vg_arena *arena,
		     struct vg_placement *ret_placement, float **ret_scores);

/* Decides among nodes as given, without any effect. Cards carry the usage that we know of. */
void vg_cluster_simulate(struct vg_cluster *cluster, const struct vg_request *request,
			 const struct vg_node_info *nodes, size_t node_count,
			 struct vg_arena *arena, struct vg_placement *ret_placement);

/* ---- waking those who wait -------------------------------------------------------------------- */

/* A pod that a filter refused, and that fits now on a node on which something was freed. */
struct vg_wake {
	const char *namespace;
	const char *name;
	const char *uid;
};

/* A pod is woken again after this time at the earliest, twice that the next time, and so on. */
#define VG_WAKE_AGAIN_NS     (1LL * 1000000000LL)
#define VG_WAKE_AGAIN_MAX_NS (300LL * 1000000000LL)
/* So many at a time, decisions about so many, and looks at so many nodes for all of them, which takes a
 * few ms: the rest has its turn with the next call. */
#define VG_WAKE_MAX          64
#define VG_WAKE_DECISIONS    256
#define VG_WAKE_LOOKS        16384

/*
 * Whom to wake, the longest refused first; up to VG_WAKE_MAX, in the arena. kube-scheduler itself would
 * try them again when it hears of the deleted pod, which may be before we do, or in five minutes.
 */
size_t vg_cluster_wake(struct vg_cluster *cluster, int64_t now_ns, struct vg_arena *arena,
		       struct vg_wake **ret_list);

/* ---- bind ------------------------------------------------------------------------------------- */

struct vg_bind_args {
	const char *namespace;
	const char *name;
	const char *uid;
	const char *node;
	int64_t now_ns; /* monotonic */
	int64_t unix_s;
	/* Called at most once, from any thread and not under the lock, if the outcome was
	 * VG_BIND_WAITING: code 0 = it is your turn, call vg_cluster_bind_begin() again; else the wait
	 * ended without a turn, and the message says who was waited for. */
	void (*turn)(void *ctx, int code, const char *message);
	void *turn_ctx;
};

enum vg_bind_outcome {
	VG_BIND_POST,    /* send ret_call, then report with vg_cluster_bind_end() */
	VG_BIND_DONE,    /* this pod is bound to this node already: success, nothing to send */
	VG_BIND_WAITING, /* another pod of the node is between bind and allocate: turn() will come */
};

/*
 * Begins a bind. The reservation's allocation is used; if it was lost, or was for another node, the cards
 * are decided again on this node. ret_call and what it points to are in the arena.
 * -ENOENT: no such pod, or another UID; -EBUSY: it is being bound right now; -ENOSPC: the cards are gone
 * (the text has the reasons); -EEXIST: bound to another node; -EINVAL: its request is malformed.
 */
int vg_cluster_bind_begin(struct vg_cluster *cluster, const struct vg_bind_args *args,
			  struct vg_arena *arena, enum vg_bind_outcome *ret_outcome,
			  struct vg_bind_call *ret_call, struct vg_err *err);
/*
 * 0: bound. -ETIMEDOUT, -ECANCELED: unknown; the cards stay taken until the source tells or a reservation's
 * time is over, nobody else is let in at the node for VG_BIND_TURN_NS, and the same bind may be tried again.
 * Anything else: not bound, the reservation is dropped.
 */
void vg_cluster_bind_end(struct vg_cluster *cluster, const char *uid, int code, int64_t now_ns);

/* ---- looking ---------------------------------------------------------------------------------- */

enum vg_pod_state {
	VG_STATE_PENDING, /* asks for cards, holds none */
	VG_STATE_RESERVED,
	VG_STATE_BINDING,
	VG_STATE_BOUND,
};

extern const char *const vg_pod_state_word[];

/* A pod as the ledger has it. */
struct vg_pod_copy {
	const char *namespace;
	const char *name;
	const char *uid;
	const char *node; /* "" while pending */
	enum vg_pod_state state;
	bool allocating; /* bound, and the node agent has not acknowledged yet */
	bool terminating;
	int64_t age_ns; /* since the reservation or bind of this process; 0 when it came from the source */
	int64_t lapses_in_ns; /* reservations; 0 = never */
	struct vg_allocation allocation;
};

struct vg_node_copy {
	struct vg_node node;        /* with cards and all texts */
	const char *register_error; /* NULL, or why its cards could not be read */
	int64_t allocatable;        /* -1 = unknown */
};

/* A namespace that has a quota about cards, or pods that hold some. */
struct vg_space_copy {
	const char *namespace;
	bool limited;
	struct vg_quota quota;
	/* By class: the names of the ResourceQuotas that give the limits; NULL where there is none. */
	const char *mem_by[VG_CLASSES_MAX];
	const char *cores_by[VG_CLASSES_MAX];
};

struct vg_cluster_copy {
	struct vg_models models;
	struct vg_node_copy *nodes; /* sorted by name */
	size_t node_count;
	struct vg_pod_copy *pods; /* sorted by namespace and name; only with_pods */
	size_t pod_count;
	struct vg_space_copy *spaces; /* sorted by name; only with_pods */
	size_t space_count;
	const struct vg_space_copy
		*quota;        /* of args->namespace; NULL when it has none about cards */
	bool quotas_forbidden; /* the source may not read quotas: there may be some */
};

struct vg_copy_args {
	const char *const
		*names; /* NULL: all nodes. Else one entry per name, in that order; an unknown
				   * name gives a node without cards. */
	size_t name_count;
	/* Leave out what the pod of this UID holds, as a decision about it does. NULL: nobody. */
	const char *without_uid;
	const char *namespace; /* whose quota is wanted; NULL: nobody's */
	bool with_pods;
};

/* A private copy in the arena: whoever explains or prints does it outside the lock. */
void vg_cluster_copy(struct vg_cluster *cluster, const struct vg_copy_args *args, int64_t now_ns,
		     struct vg_arena *arena, struct vg_cluster_copy *ret_copy);

/* The quota of a namespace, in the arena; false when it has none about cards. */
bool vg_cluster_space(struct vg_cluster *cluster, const char *namespace, struct vg_arena *arena,
		      struct vg_space_copy *ret_copy);

struct vg_cluster_stats {
	size_t nodes;            /* known to the source */
	size_t nodes_registered; /* with cards */
	size_t cards;
	size_t pods[VG_STATE_BOUND + 1];
	size_t bind_waiting;
	uint64_t reservations_made;
	uint64_t reservations_lapsed;
	uint64_t woken;
	uint64_t decided_at_bind;          /* reservations that had been lost */
	uint64_t malformed[VG_KIND_COUNT]; /* objects and annotations that could not be read */
	uint64_t
		unknown_cards; /* grants, of the pods there are now, on cards that their node does not have */
	int64_t since_heard_ns[VG_KIND_COUNT]; /* -1 = never */
	size_t quotas;                         /* ResourceQuotas, whatever they limit */
	bool forbidden[VG_KIND_COUNT];         /* the source may not read them, and we do without */
	uint64_t stale_events; /* events that were older than what was known, and were ignored */
};

void vg_cluster_stats(struct vg_cluster *cluster, int64_t now_ns,
		      struct vg_cluster_stats *ret_stats);

#endif
