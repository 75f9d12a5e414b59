/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of this folder share. Everything here is used under cluster->lock. */
#ifndef VGPU_CLUSTER_CLUSTER_INTERNAL_H
#define VGPU_CLUSTER_CLUSTER_INTERNAL_H

#include <pthread.h>

#include "base/map.h"
#include "cluster/cluster.h"

struct cluster_pod;

/* A bind that waits for its turn at a node. */
struct ticket {
	struct ticket *next;
	struct cluster_pod *pod; /* NULL once it is due */
	struct cluster_node *node;
	void (*turn)(void *ctx, int code, const char *message);
	void *turn_ctx;
	int64_t deadline_ns;
	int code; /* once due */
	char *message;
};

struct cluster_node {
	struct vg_node view; /* what decisions read; its name is ours below */
	char *name;
	bool known; /* the source has it; else only pods refer to it */
	uint64_t resource_version;
	uint64_t generation; /* of the last list that had it */
	int64_t allocatable;
	struct vg_arena texts; /* of the cards and the error; a new one with each put */
	const char *register_error;
	bool freed;    /* more is free than before: pods that were refused may fit now */
	bool in_round; /* those who wait are being tried on it */
	bool links_broken;
	size_t links_odd;
	struct cluster_pod *pods; /* all that hold cards here */
	struct ticket *waiting;   /* first come first */
	struct ticket **waiting_end;
	/* Whose turn came and who has not begun yet; nobody may slip in between. */
	struct cluster_pod *granted;
	int64_t granted_until_ns;
};

/* One ResourceQuota. */
struct cluster_quota {
	char *name;
	struct cluster_space *space;
	struct cluster_quota *next; /* of the namespace */
	uint64_t resource_version;
	uint64_t generation;
	struct vg_total hard[VG_CLASSES_MAX];
	char *problem; /* said already; NULL = none */
};

/* A namespace, as long as a pod of it holds cards or a quota is in it. */
struct cluster_space {
	char *name;
	size_t holders; /* pods that hold cards */
	struct cluster_quota *quotas;
	struct vg_quota
		quota; /* what decisions read: the tightest of each limit, and the sum of pods */
	bool limited;  /* any limit at all */
	bool freed;    /* more may be had than before: its pods may fit now, on any node */
	bool in_round; /* that was so when the round began */
	/* Names of the quotas that give the limits, by class; NULL where there is none. */
	const char *mem_by[VG_CLASSES_MAX];
	const char *cores_by[VG_CLASSES_MAX];
};

struct cluster_pod {
	char *namespace;
	char *name;
	char *uid;
	char *key; /* "namespace/name" */
	enum vg_pod_state state;
	bool from_source; /* the source has shown it */
	bool malformed;   /* said so already */
	bool terminating;
	bool allocating;
	bool unknown; /* BINDING: the bind has ended, and nobody can say how */
	uint64_t resource_version;
	uint64_t generation;
	int64_t since_ns;    /* reservation or bind of this process, else 0 */
	int64_t deadline_ns; /* RESERVED: lapses; allocating: no longer keeps others waiting */

	struct vg_arena asked;      /* of the request; released once it is bound */
	struct vg_request *request; /* NULL: bound, or malformed: then request_error says why */
	const char *request_error;

	struct vg_arena held; /* of the allocation and the charges */
	struct vg_allocation allocation;
	struct vg_charge *charges;
	size_t charge_count;
	size_t charges_unknown; /* how many of them found no card */
	int64_t decided_unix_s;
	struct cluster_node *node;   /* NULL: holds nothing */
	struct cluster_space *space; /* that of its namespace; NULL with node */
	struct vg_total *totals;     /* what it holds of each class */
	struct cluster_pod *prev;    /* among node->pods */
	struct cluster_pod *next;

	/* Waiting pods: when a filter found no room for it last, 0 = it was not, or fits since. */
	int64_t refused_ns;
	int64_t nudge_after_ns; /* not before */
	unsigned nudge_count;   /* since it was placed last */
	uint64_t round;         /* of nudge.c: the last that tried it */

	struct ticket *ticket;           /* it waits for its turn */
	struct cluster_node *granted_at; /* its turn came there and it has not begun yet */
};

struct listing {
	bool complete;  /* at least one list was seen to its end */
	bool forbidden; /* nobody may tell us, and we do without; what is known stays */
	uint64_t generation;
	int64_t started_ns;
	int64_t heard_ns; /* 0 = never */
};

struct vg_cluster {
	struct vg_cluster_options options;
	pthread_mutex_t lock;

	struct vg_map nodes;       /* by name: struct cluster_node */
	struct vg_map pods;        /* by UID: struct cluster_pod */
	struct vg_map pods_by_key; /* by namespace/name */
	struct vg_map spaces;      /* by name: struct cluster_space */

	const char **models; /* by index; the texts are ours */
	size_t model_count;
	struct vg_map model_map; /* by name: index + 1 */

	struct listing listing[VG_KIND_COUNT];
	struct vg_cluster_stats stats; /* the counters; sizes are computed when asked */
	struct ticket *due;            /* to be told after the lock is released */
	struct vg_arena scratch;       /* for what does not outlive the lock */
	bool freed;                    /* some node or namespace is */
	uint64_t round;                /* of nudge.c, the current or the last one */
	bool round_open;
	bool round_woke; /* it has woken somebody */
};

/* ledger.c: who holds what */

struct cluster_node *vg_ledger_node(struct vg_cluster *cluster, const char *name);
/* Takes a node's struct out if the source does not have it and nothing refers to it. */
void vg_ledger_node_settle(struct vg_cluster *cluster, struct cluster_node *node);
/* Cards as `node` says, with the usage of the pods that are there. */
void vg_ledger_node_put(struct vg_cluster *cluster, const struct vg_node_info *info);
void vg_ledger_node_gone(struct vg_cluster *cluster, struct cluster_node *node);
uint16_t vg_ledger_model(struct vg_cluster *cluster, const char *model);
void vg_ledger_card(struct vg_cluster *cluster, const struct vg_node_info *info, size_t index,
		    struct vg_card *ret_card);
struct vg_card *vg_ledger_card_find(const struct vg_node *node, const char *uuid);

struct cluster_pod *vg_ledger_pod(struct vg_cluster *cluster, const char *namespace,
				  const char *name, const char *uid);
/* The source shows the pod under its name: an earlier pod of that name is gone, its delete was missed. */
void vg_ledger_claim_name(struct vg_cluster *cluster, struct cluster_pod *pod);
/* Copies the allocation and charges its node. */
void vg_ledger_hold(struct vg_cluster *cluster, struct cluster_pod *pod, struct cluster_node *node,
		    const struct vg_allocation *allocation, const uint8_t *kinds, size_t kind_count,
		    bool init_done);
/* Gives its cards back. */
void vg_ledger_drop(struct vg_cluster *cluster, struct cluster_pod *pod);
/* Takes what it holds out of the sums, or puts it back; the allocation stays. */
void vg_ledger_uncharge(struct vg_cluster *cluster, struct cluster_pod *pod);
void vg_ledger_charge(struct vg_cluster *cluster, struct cluster_pod *pod);
/* Gives its cards back and forgets it; a waiting bind of it ends. */
void vg_ledger_pod_gone(struct vg_cluster *cluster, struct cluster_pod *pod);
/* After a reservation ended: a pod that the source has becomes pending again, another one is forgotten. */
void vg_ledger_unreserve(struct vg_cluster *cluster, struct cluster_pod *pod);

struct vg_allocation vg_allocation_copy(const struct vg_allocation *from, struct vg_arena *arena);

/* nudge.c: who may fit now */

/* The node has more to give than before. */
void vg_nudge_freed(struct vg_cluster *cluster, struct cluster_node *node);
/* The namespace may have more than before, if its quota is what kept its pods waiting. */
void vg_nudge_space(struct vg_cluster *cluster, const char *namespace);
/* A filter found no room for the pod, or found some. */
void vg_nudge_refused(struct cluster_pod *pod, int64_t now_ns);
void vg_nudge_placed(struct cluster_pod *pod);

/* quota.c: namespaces */

struct cluster_space *vg_space(struct vg_cluster *cluster, const char *name);
/* Forgets it if nothing refers to it. */
void vg_space_settle(struct vg_cluster *cluster, struct cluster_space *space);
/* Counts what the pod's allocation holds, and no longer. */
void vg_space_hold(struct vg_cluster *cluster, struct cluster_pod *pod, const uint8_t *kinds,
		   size_t kind_count, bool init_done);
void vg_space_drop(struct vg_cluster *cluster, struct cluster_pod *pod);
/* Whether any of the totals was larger. */
bool vg_totals_shrank(const struct vg_total *before, const struct vg_total *now);
struct cluster_quota *vg_quota_find(struct vg_cluster *cluster, const char *namespace,
				    const char *name);
struct cluster_quota *vg_quota_put(struct vg_cluster *cluster, const struct vg_quota_info *info);
void vg_quota_gone(struct vg_cluster *cluster, struct cluster_quota *quota);
/* For a decision about a pod of the namespace: NULL when it has no quota. What `without` holds (NULL:
 * nobody) is left out; `room` is for the numbers then. */
const struct vg_quota *vg_quota_for(const struct vg_cluster *cluster, const char *namespace,
				    const struct cluster_pod *without, struct vg_quota *room);
void vg_space_copy(const struct cluster_space *space, struct vg_arena *arena,
		   struct vg_space_copy *ret_copy);

/* bind.c: turns */

/* Whether a pod is between bind and allocate at the node. ret_holder may be NULL. */
bool vg_turn_taken(const struct cluster_node *node, int64_t now_ns,
		   const struct cluster_pod **ret_holder);
/* Lets the next one in, if there is one and the way is free. now_ns 0 where the caller has no time at
 * hand: a turn that is over by time alone is then left to the next tick. */
void vg_turn_next(struct vg_cluster *cluster, struct cluster_node *node, int64_t now_ns);
/* Ends a wait; the caller is told after the lock is released. */
void vg_turn_cancel(struct vg_cluster *cluster, struct ticket *ticket, int code, char *message);
void vg_turn_expire(struct vg_cluster *cluster, struct cluster_node *node, int64_t now_ns);

/* cluster.c */

void vg_cluster_lock(struct vg_cluster *cluster);
/* Also tells everybody whose wait ended meanwhile. */
void vg_cluster_unlock(struct vg_cluster *cluster);

#endif
