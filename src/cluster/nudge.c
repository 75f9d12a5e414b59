/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who may fit now. kube-scheduler hears of a deleted pod on a watch of its own and may try a waiting pod
 * again before our watch has shown the deletion; refused then, it waits for up to five minutes. So we
 * remember whom we refused, and when something is freed we say who fits there.
 *
 * That happens in rounds: everybody who waits is tried once on all nodes that were freed before the round
 * began, and on all nodes there are when it was his namespace's quota that was eased. Many who wait make it take several calls, so that nobody holds the lock for long.
 */
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_internal.h"

/*
 * A pod that was woken and not placed is woken for the same cards again after 1, 2, 4 and 8 s. After that
 * something else keeps it from the node, a taint perhaps, and only another card that is freed counts.
 */
#define CHASE_NS (10LL * 1000000000LL)

void vg_nudge_freed(struct vg_cluster *cluster, struct cluster_node *node)
{
	node->freed = true;
	cluster->freed = true;
}

void vg_nudge_space(struct vg_cluster *cluster, const char *namespace)
{
	struct cluster_space *space = vg_map_get(&cluster->spaces, namespace);

	if (!space || !space->limited)
		return;
	space->freed = true;
	cluster->freed = true;
}

void vg_nudge_refused(struct cluster_pod *pod, int64_t now_ns)
{
	if (!pod->refused_ns)
		pod->refused_ns = now_ns;
}

void vg_nudge_placed(struct cluster_pod *pod)
{
	pod->refused_ns = 0;
	pod->nudge_after_ns = 0;
	pod->nudge_count = 0;
}

/* Everything that was freed so far is what this round is about; what is freed from here on waits for the
 * next one. */
static void begin_round(struct vg_cluster *cluster)
{
	struct cluster_space *space;
	struct cluster_node *node;
	size_t cursor = 0;

	while ((node = vg_map_next(&cluster->nodes, &cursor))) {
		node->in_round = node->freed;
		node->freed = false;
	}
	cursor = 0;
	while ((space = vg_map_next(&cluster->spaces, &cursor))) {
		space->in_round = space->freed;
		space->freed = false;
	}
	cluster->freed = false;
	cluster->round++;
	cluster->round_open = true;
	cluster->round_woke = false;
}

/* With `again`, the next round is about the same nodes and namespaces once more. */
static void end_round(struct vg_cluster *cluster, bool again)
{
	struct cluster_space *space;
	struct cluster_node *node;
	size_t cursor = 0;

	while ((node = vg_map_next(&cluster->nodes, &cursor))) {
		if (again && node->in_round && node->view.card_count)
			vg_nudge_freed(cluster, node);
		node->in_round = false;
	}
	cursor = 0;
	while ((space = vg_map_next(&cluster->spaces, &cursor))) {
		if (again && space->in_round)
			vg_nudge_space(cluster, space->name);
		space->in_round = false;
	}
	cluster->round_open = false;
}

/* The nodes with cards: those of the round first, then the others if it is about a namespace, too. */
struct round_nodes {
	const struct vg_node **list;
	size_t freed_count;
	size_t count;
};

static bool is_about_spaces(const struct vg_cluster *cluster)
{
	const struct cluster_space *space;
	size_t cursor = 0;

	while ((space = vg_map_next(&cluster->spaces, &cursor)))
		if (space->in_round)
			return true;
	return false;
}

static void add_nodes(const struct vg_cluster *cluster, bool in_round, struct round_nodes *nodes)
{
	const struct cluster_node *node;
	size_t cursor = 0;

	while ((node = vg_map_next(&cluster->nodes, &cursor)))
		if (node->in_round == in_round && node->view.card_count)
			nodes->list[nodes->count++] = &node->view;
}

static struct round_nodes list_nodes(const struct vg_cluster *cluster, struct vg_arena *arena)
{
	struct round_nodes nodes = { 0 };

	nodes.list = vg_arena_new_array(arena, cluster->nodes.used, sizeof(*nodes.list));
	add_nodes(cluster, true, &nodes);
	nodes.freed_count = nodes.count;
	if (is_about_spaces(cluster))
		add_nodes(cluster, false, &nodes);
	return nodes;
}

static bool fits_now(struct vg_cluster *cluster, const struct cluster_pod *pod,
		     const struct round_nodes *nodes)
{
	const struct cluster_space *space = vg_map_get(&cluster->spaces, pod->namespace);
	const struct vg_models models = { cluster->models, cluster->model_count };
	struct vg_decision decision;
	struct vg_quota room;

	vg_arena_clear(&cluster->scratch);
	vg_decide(
		&(struct vg_decide_args){
			.models = &models,
			.request = pod->request,
			.quota = vg_quota_for(cluster, pod->namespace, pod, &room),
			.candidates = nodes->list,
			.candidate_count =
				space && space->in_round ? nodes->count : nodes->freed_count,
		},
		&cluster->scratch, &decision);
	return decision.found;
}

static int by_refusal(const void *left, const void *right)
{
	const struct cluster_pod *a = *(const struct cluster_pod *const *)left;
	const struct cluster_pod *b = *(const struct cluster_pod *const *)right;

	if (a->refused_ns != b->refused_ns)
		return a->refused_ns < b->refused_ns ? -1 : 1;
	return strcmp(a->uid, b->uid);
}

/* The pods that were refused and that the round has not looked at yet, the longest waiting first; not
 * those that were woken a moment ago. */
static size_t list_refused(struct vg_cluster *cluster, int64_t now_ns,
			   struct cluster_pod **ret_pods, bool *ret_some_later)
{
	struct cluster_pod *pod;
	size_t cursor = 0;
	size_t count = 0;

	*ret_some_later = false;
	while ((pod = vg_map_next(&cluster->pods, &cursor))) {
		if (pod->state != VG_STATE_PENDING || !pod->refused_ns || !pod->request ||
		    pod->terminating)
			continue;
		if (pod->nudge_after_ns > now_ns + CHASE_NS)
			continue;
		if (pod->nudge_after_ns > now_ns)
			*ret_some_later = true;
		else if (pod->round != cluster->round)
			ret_pods[count++] = pod;
	}
	if (count)
		qsort(ret_pods, count, sizeof(*ret_pods), by_refusal);
	return count;
}

static void note_wake(struct cluster_pod *pod, int64_t now_ns)
{
	int64_t wait_ns = VG_WAKE_AGAIN_NS << (pod->nudge_count < 16 ? pod->nudge_count : 16);

	pod->nudge_count++;
	pod->nudge_after_ns =
		now_ns + (wait_ns < VG_WAKE_AGAIN_MAX_NS ? wait_ns : VG_WAKE_AGAIN_MAX_NS);
}

size_t vg_cluster_wake(struct vg_cluster *cluster, int64_t now_ns, struct vg_arena *arena,
		       struct vg_wake **ret_list)
{
	struct vg_wake *list = vg_arena_new_array(arena, VG_WAKE_MAX, sizeof(*list));
	struct round_nodes nodes;
	struct cluster_pod **pods;
	size_t pod_count;
	size_t turns; /* pods that this call decides about */
	size_t woken = 0;
	size_t i;
	bool some_later;

	*ret_list = list;
	vg_cluster_lock(cluster);
	if (!cluster->round_open && !cluster->freed) {
		vg_cluster_unlock(cluster);
		return 0;
	}
	if (!cluster->round_open)
		begin_round(cluster);
	pods = vg_arena_new_array(arena, cluster->pods.used, sizeof(*pods));
	pod_count = list_refused(cluster, now_ns, pods, &some_later);
	nodes = list_nodes(cluster, arena);
	/* Filters wait for the lock meanwhile. */
	turns = nodes.count ? VG_WAKE_LOOKS / nodes.count + 1 : 0;
	if (turns > VG_WAKE_DECISIONS)
		turns = VG_WAKE_DECISIONS;
	for (i = 0; i < pod_count && i < turns && woken < VG_WAKE_MAX; i++) {
		pods[i]->round = cluster->round;
		if (!fits_now(cluster, pods[i], &nodes))
			continue;
		note_wake(pods[i], now_ns);
		list[woken++] = (struct vg_wake){
			.namespace = vg_arena_strdup(arena, pods[i]->namespace),
			.name = vg_arena_strdup(arena, pods[i]->name),
			.uid = vg_arena_strdup(arena, pods[i]->uid),
		};
	}
	cluster->stats.woken += woken;
	cluster->round_woke = cluster->round_woke || woken;
	/* Who was woken, now or too short a time ago, gets his chance at the same nodes once more. */
	if (i == pod_count || !nodes.count)
		end_round(cluster, some_later || cluster->round_woke);
	vg_cluster_unlock(cluster);
	return woken;
}
