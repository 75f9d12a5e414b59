/* SPDX-License-Identifier: Apache-2.0 */
#include "cluster/cluster.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "cluster/cluster_internal.h"

const char *const vg_pod_state_word[] = {
	[VG_STATE_PENDING] = "pending",
	[VG_STATE_RESERVED] = "reserved",
	[VG_STATE_BINDING] = "binding",
	[VG_STATE_BOUND] = "bound",
};

static const char *const kind_word[VG_KIND_COUNT] = {
	[VG_KIND_NODE] = "nodes",
	[VG_KIND_POD] = "pods",
	[VG_KIND_QUOTA] = "resourcequotas",
};

struct vg_cluster *vg_cluster_new(const struct vg_cluster_options *options)
{
	struct vg_cluster *cluster = vg_new(sizeof(*cluster));

	cluster->options = *options;
	if (cluster->options.reservation_ns == 0)
		cluster->options.reservation_ns = VG_RESERVATION_NS;
	pthread_mutex_init(&cluster->lock, NULL);
	vg_map_init(&cluster->nodes);
	vg_map_init(&cluster->pods);
	vg_map_init(&cluster->pods_by_key);
	vg_map_init(&cluster->spaces);
	vg_map_init(&cluster->model_map);
	vg_arena_init(&cluster->scratch);
	return cluster;
}

void vg_cluster_lock(struct vg_cluster *cluster)
{
	pthread_mutex_lock(&cluster->lock);
}

void vg_cluster_unlock(struct vg_cluster *cluster)
{
	struct ticket *due = cluster->due;

	cluster->due = NULL;
	pthread_mutex_unlock(&cluster->lock);
	while (due) {
		struct ticket *next = due->next;

		due->turn(due->turn_ctx, due->code, due->message ? due->message : "");
		free(due->message);
		free(due);
		due = next;
	}
}

void vg_cluster_free(struct vg_cluster *cluster)
{
	struct cluster_space *space;
	struct cluster_node *node;
	struct cluster_pod *pod;
	size_t cursor = 0;

	if (!cluster)
		return;
	vg_cluster_lock(cluster);
	/* All of them first: a pod that goes leaves its turn to whoever still waits. */
	while ((pod = vg_map_next(&cluster->pods, &cursor)))
		if (pod->ticket)
			vg_turn_cancel(cluster, pod->ticket, -ECANCELED,
				       vg_strdup("the scheduler extender is shutting down"));
	cursor = 0;
	/* A removal may move a later entry into the slot that became free: look at it again. */
	while ((pod = vg_map_next(&cluster->pods, &cursor))) {
		vg_ledger_pod_gone(cluster, pod);
		cursor--;
	}
	cursor = 0;
	while ((node = vg_map_next(&cluster->nodes, &cursor))) {
		node->granted = NULL;
		vg_ledger_node_gone(cluster, node);
		cursor--;
	}
	cursor = 0;
	/* No pod is left: each goes with its last quota. */
	while ((space = vg_map_next(&cluster->spaces, &cursor))) {
		while (space->quotas->next)
			vg_quota_gone(cluster, space->quotas);
		vg_quota_gone(cluster, space->quotas);
		cursor--;
	}
	vg_cluster_unlock(cluster);
	for (size_t i = 0; i < cluster->model_count; i++)
		free((char *)(uintptr_t)cluster->models[i]);
	free(cluster->models);
	vg_map_release(&cluster->nodes);
	vg_map_release(&cluster->pods);
	vg_map_release(&cluster->pods_by_key);
	vg_map_release(&cluster->spaces);
	vg_map_release(&cluster->model_map);
	vg_arena_release(&cluster->scratch);
	pthread_mutex_destroy(&cluster->lock);
	free(cluster);
}

bool vg_cluster_ready(struct vg_cluster *cluster, int64_t now_ns, char *ret_reason)
{
	bool ready = true;

	vg_cluster_lock(cluster);
	for (int kind = 0; kind < VG_KIND_COUNT && ready; kind++) {
		const struct listing *listing = &cluster->listing[kind];
		int64_t silent_ns = now_ns - listing->heard_ns;

		if (listing->forbidden)
			continue;
		if (!listing->complete) {
			ready = false;
			if (ret_reason)
				snprintf(ret_reason, VG_READY_REASON_BYTES,
					 "the list of %s has not been read yet", kind_word[kind]);
		} else if (cluster->options.stale_ns && silent_ns > cluster->options.stale_ns) {
			ready = false;
			if (ret_reason)
				snprintf(ret_reason, VG_READY_REASON_BYTES,
					 "nothing was heard about %s for %lld s: is the API server "
					 "reachable?",
					 kind_word[kind], (long long)(silent_ns / 1000000000LL));
		}
	}
	vg_cluster_unlock(cluster);
	return ready;
}

/* A decision that waits at its node for its turn to be bound is not one that nobody came for. */
static struct cluster_pod *next_lapsed(struct vg_cluster *cluster, int64_t now_ns, size_t *cursor)
{
	struct cluster_pod *pod;

	while ((pod = vg_map_next(&cluster->pods, cursor)))
		if (pod->deadline_ns <= now_ns && !pod->ticket && !pod->granted_at &&
		    (pod->state == VG_STATE_RESERVED ||
		     (pod->state == VG_STATE_BINDING && pod->unknown) ||
		     (pod->state == VG_STATE_PENDING && !pod->from_source)))
			return pod;
	return NULL;
}

void vg_cluster_tick(struct vg_cluster *cluster, int64_t now_ns)
{
	struct cluster_node *node;
	struct cluster_pod *pod;
	size_t cursor = 0;

	vg_cluster_lock(cluster);
	while ((pod = next_lapsed(cluster, now_ns, &cursor))) {
		cluster->stats.reservations_lapsed += pod->state != VG_STATE_PENDING;
		vg_ledger_unreserve(cluster, pod);
		cursor--; /* a later entry may have moved into its slot */
	}
	cursor = 0;
	while ((node = vg_map_next(&cluster->nodes, &cursor)))
		vg_turn_expire(cluster, node, now_ns);
	vg_cluster_unlock(cluster);
}

void vg_cluster_stats(struct vg_cluster *cluster, int64_t now_ns,
		      struct vg_cluster_stats *ret_stats)
{
	const struct cluster_space *space;
	const struct cluster_node *node;
	const struct cluster_pod *pod;
	struct vg_cluster_stats stats;
	size_t cursor = 0;

	vg_cluster_lock(cluster);
	stats = cluster->stats;
	while ((node = vg_map_next(&cluster->nodes, &cursor))) {
		stats.nodes += node->known;
		stats.nodes_registered += node->view.card_count > 0;
		stats.cards += node->view.card_count;
	}
	cursor = 0;
	while ((pod = vg_map_next(&cluster->pods, &cursor))) {
		stats.pods[pod->state]++;
		stats.bind_waiting += pod->ticket != NULL;
		stats.unknown_cards += pod->charges_unknown;
	}
	cursor = 0;
	while ((space = vg_map_next(&cluster->spaces, &cursor)))
		for (const struct cluster_quota *quota = space->quotas; quota; quota = quota->next)
			stats.quotas++;
	for (int kind = 0; kind < VG_KIND_COUNT; kind++) {
		int64_t heard_ns = cluster->listing[kind].heard_ns;

		stats.forbidden[kind] = cluster->listing[kind].forbidden;
		stats.since_heard_ns[kind] = heard_ns ? now_ns - heard_ns : -1;
	}
	vg_cluster_unlock(cluster);
	*ret_stats = stats;
}
