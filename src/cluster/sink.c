/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the source reports becomes the ledger. An object is never taken back in time: one that is older
 * than what is known is counted and ignored.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/cluster_internal.h"

static void heard(struct vg_cluster *cluster, enum vg_kind kind)
{
	cluster->listing[kind].heard_ns = vg_clock_mono_ns();
	cluster->listing[kind].forbidden = false;
}

static bool is_older(uint64_t resource_version, uint64_t known)
{
	return resource_version && known && resource_version < known;
}

/* ---- nodes ------------------------------------------------------------------------------------ */

/* Scores that are missing cost a good choice, not an allocation: said once per change. */
static void say_links(struct vg_cluster *cluster, const struct cluster_node *known,
		      const struct vg_node_info *info)
{
	bool was_broken = known && known->links_broken;

	if (info->links_error && !was_broken) {
		cluster->stats.malformed[VG_KIND_NODE]++;
		vg_warn("cluster",
			"the link scores of a node cannot be read; its cards count as all alike",
			VG_S("node", info->name), VG_S("why", info->links_error));
	} else if (info->links_odd && !(known && known->links_odd == info->links_odd)) {
		vg_warn("cluster",
			"the link scores of a node are incomplete or not the same from both sides; missing "
			"ones count 0, of two different ones the lower",
			VG_S("node", info->name), VG_I("pairs", info->links_odd));
	}
}

static void put_node(struct vg_cluster *cluster, const struct vg_node_info *info)
{
	struct cluster_node *node = vg_map_get(&cluster->nodes, info->name);

	if (node && node->known && is_older(info->resource_version, node->resource_version)) {
		cluster->stats.stale_events++;
		node->generation = cluster->listing[VG_KIND_NODE].generation;
		return;
	}
	if (info->register_error && !(node && node->register_error &&
				      vg_streq(node->register_error, info->register_error))) {
		cluster->stats.malformed[VG_KIND_NODE]++;
		vg_warn("cluster",
			"the cards of a node cannot be read; it takes no pods until its agent "
			"registers them anew",
			VG_S("node", info->name), VG_S("why", info->register_error));
	}
	say_links(cluster, node, info);
	vg_ledger_node_put(cluster, info);
	node = vg_ledger_node(cluster, info->name);
	node->generation = cluster->listing[VG_KIND_NODE].generation;
}

/* ---- pods ------------------------------------------------------------------------------------- */

/* Whether the pod mentions any resource of a class, so that kube-scheduler will ask about it. */
static bool is_interesting(const struct vg_pod *pod)
{
	for (size_t i = 0; i < pod->container_count; i++)
		if (pod->containers[i].resource_count)
			return true;
	return false;
}

/* One class that cannot be read does not hide the others. */
static void read_allocation(struct vg_cluster *cluster, const struct vg_pod *pod,
			    struct vg_arena *arena, struct vg_allocation *ret_allocation,
			    struct vg_err *ret_problem)
{
	const struct vg_classes *classes = cluster->options.classes;
	struct vg_allocation allocation = { 0 };

	for (uint8_t i = 0; i < classes->count; i++) {
		const char *text = pod->annotations.value[classes->item[i].allocated];
		struct vg_err err = { 0 };

		if (!text)
			continue;
		if (vg_allocation_decode(text, i, arena, &allocation, &err) < 0) {
			vg_err_wrap(&err, err.code, "%s",
				    vg_annotation_key[classes->item[i].allocated]);
			*ret_problem = err;
		}
	}
	*ret_allocation = allocation;
}

static void say_malformed(struct vg_cluster *cluster, struct cluster_pod *entry, const char *why)
{
	if (entry->malformed)
		return;
	entry->malformed = true;
	cluster->stats.malformed[VG_KIND_POD]++;
	vg_warn("cluster", "an annotation of a pod cannot be read, and is not counted",
		VG_S("pod", entry->key), VG_S("why", why));
}

/* Keeps what a bind without a reservation needs. The request points into the pod's texts, so a private
 * copy of what it points to is made by parsing from a copy. */
static void keep_request(struct vg_cluster *cluster, struct cluster_pod *entry,
			 const struct vg_pod *pod)
{
	struct vg_err err = { 0 };
	struct vg_request *request;
	struct vg_pod *copy;

	vg_arena_release(&entry->asked);
	copy = vg_pod_copy(pod, &entry->asked);
	request = vg_arena_new(&entry->asked, sizeof(*request));
	entry->request = NULL;
	entry->request_error = NULL;
	if (vg_request_parse(copy, cluster->options.classes, &cluster->options.policy,
			     &entry->asked, request, &err) < 0)
		entry->request_error = vg_arena_strdup(&entry->asked, err.msg);
	else
		entry->request = request;
}

static void bound(struct vg_cluster *cluster, struct cluster_pod *entry, const struct vg_pod *pod,
		  const struct vg_allocation *allocation)
{
	struct cluster_node *before = entry->node;
	struct cluster_node *node = vg_ledger_node(cluster, pod->node_name);
	int64_t now_ns = cluster->listing[VG_KIND_POD].heard_ns;
	bool allocating = vg_streq(pod->annotations.value[VG_ANNO_POD_BIND_PHASE], "allocating");
	bool was_allocating = entry->state == VG_STATE_BOUND && entry->allocating;
	uint8_t *kinds = vg_arena_new_array(&cluster->scratch, pod->container_count, 1);
	struct vg_sums sums = node->view.sums;
	struct vg_total totals[VG_CLASSES_MAX] = { 0 };

	if (entry->totals)
		memcpy(totals, entry->totals, sizeof(totals));
	for (size_t i = 0; i < pod->container_count; i++)
		kinds[i] = (uint8_t)pod->containers[i].kind;
	vg_ledger_hold(cluster, entry, node, allocation, kinds, pod->container_count,
		       pod->init_done);
	entry->state = VG_STATE_BOUND;
	entry->allocating = allocating;
	entry->unknown = false;
	if (allocating && !was_allocating)
		entry->deadline_ns = now_ns + VG_BIND_TURN_NS;
	vg_arena_release(&entry->asked);
	entry->request = NULL;
	entry->request_error = NULL;
	if (entry->ticket)
		vg_turn_cancel(
			cluster, entry->ticket, -EEXIST,
			vg_printf("pod %s was bound to node %s meanwhile", entry->key, node->name));
	/* Init containers that ended give back what only they needed. */
	if (node->view.sums.mem_used_mib < sums.mem_used_mib ||
	    node->view.sums.cores_used < sums.cores_used ||
	    node->view.sums.slots_used < sums.slots_used)
		vg_nudge_freed(cluster, node);
	if (vg_totals_shrank(totals, entry->totals))
		vg_nudge_space(cluster, entry->namespace);
	vg_nudge_placed(entry);
	if (before && before != node) {
		vg_nudge_freed(cluster, before);
		vg_turn_next(cluster, before, now_ns);
		vg_ledger_node_settle(cluster, before);
	}
	vg_turn_next(cluster, node, now_ns);
}

static void put_pod(struct vg_cluster *cluster, const struct vg_pod *pod)
{
	struct cluster_pod *entry = vg_map_get(&cluster->pods, pod->uid);
	bool ended = pod->phase == VG_POD_SUCCEEDED || pod->phase == VG_POD_FAILED;
	bool is_bound = pod->node_name[0] != '\0';
	struct vg_allocation allocation = { 0 };
	struct vg_err problem = { 0 };

	if (entry && is_older(pod->resource_version, entry->resource_version)) {
		cluster->stats.stale_events++;
		entry->generation = cluster->listing[VG_KIND_POD].generation;
		return;
	}
	vg_arena_clear(&cluster->scratch);
	if (is_bound && !ended)
		read_allocation(cluster, pod, &cluster->scratch, &allocation, &problem);
	if (ended || (is_bound && !allocation.grant_count && !problem.code) ||
	    (!is_bound && !is_interesting(pod))) {
		/* It holds nothing and will not be asked about. */
		if (entry)
			vg_ledger_pod_gone(cluster, entry);
		return;
	}
	entry = vg_ledger_pod(cluster, pod->namespace, pod->name, pod->uid);
	vg_ledger_claim_name(cluster, entry);
	entry->from_source = true;
	entry->resource_version = pod->resource_version;
	entry->generation = cluster->listing[VG_KIND_POD].generation;
	entry->terminating = pod->terminating;
	if (problem.code)
		say_malformed(cluster, entry, problem.msg);
	if (is_bound) {
		bound(cluster, entry, pod, &allocation);
		return;
	}
	/* Not bound as far as this event knows: a reservation or a bind of ours is newer. */
	keep_request(cluster, entry, pod);
}

/* ---- quotas ------------------------------------------------------------------------------------ */

static void put_quota(struct vg_cluster *cluster, const struct vg_quota_info *info)
{
	struct cluster_quota *quota = vg_quota_find(cluster, info->namespace, info->name);
	uint64_t generation = cluster->listing[VG_KIND_QUOTA].generation;

	if (quota && is_older(info->resource_version, quota->resource_version)) {
		cluster->stats.stale_events++;
		quota->generation = generation;
		return;
	}
	/* A quota changes with every pod of its namespace: said once per text. */
	if (info->problem && !(quota && vg_streq(quota->problem, info->problem))) {
		cluster->stats.malformed[VG_KIND_QUOTA]++;
		vg_warn("cluster", "a resource quota does not say what it may seem to",
			VG_S("namespace", info->namespace), VG_S("quota", info->name),
			VG_S("why", info->problem));
	}
	quota = vg_quota_put(cluster, info);
	quota->generation = generation;
}

/* ---- lists ------------------------------------------------------------------------------------ */

static void list_begin(struct vg_cluster *cluster, enum vg_kind kind)
{
	struct listing *listing = &cluster->listing[kind];

	listing->generation++;
	listing->started_ns = vg_clock_mono_ns();
}

static struct cluster_pod *next_unlisted_pod(struct vg_cluster *cluster, size_t *cursor)
{
	const struct listing *listing = &cluster->listing[VG_KIND_POD];
	struct cluster_pod *pod;

	while ((pod = vg_map_next(&cluster->pods, cursor))) {
		if (pod->generation == listing->generation)
			continue;
		/* A pod that only a request has shown so far may be younger than the list. */
		if (pod->from_source ||
		    (pod->state == VG_STATE_BOUND && pod->since_ns < listing->started_ns))
			return pod;
	}
	return NULL;
}

static struct cluster_node *next_unlisted_node(struct vg_cluster *cluster, size_t *cursor)
{
	const struct listing *listing = &cluster->listing[VG_KIND_NODE];
	struct cluster_node *node;

	while ((node = vg_map_next(&cluster->nodes, cursor)))
		if (node->known && node->generation != listing->generation)
			return node;
	return NULL;
}

static struct cluster_quota *next_unlisted_quota(struct vg_cluster *cluster, size_t *cursor)
{
	const struct listing *listing = &cluster->listing[VG_KIND_QUOTA];
	const struct cluster_space *space;

	while ((space = vg_map_next(&cluster->spaces, cursor)))
		for (struct cluster_quota *quota = space->quotas; quota; quota = quota->next)
			if (quota->generation != listing->generation)
				return quota;
	return NULL;
}

static void list_end(struct vg_cluster *cluster, enum vg_kind kind)
{
	struct cluster_quota *quota;
	struct cluster_node *node;
	struct cluster_pod *pod;
	size_t cursor = 0;

	/* A removal may move a later entry into the slot that became free: look at it again. */
	if (kind == VG_KIND_POD) {
		while ((pod = next_unlisted_pod(cluster, &cursor))) {
			vg_ledger_pod_gone(cluster, pod);
			cursor--;
		}
	} else if (kind == VG_KIND_QUOTA) {
		while ((quota = next_unlisted_quota(cluster, &cursor))) {
			vg_quota_gone(cluster, quota);
			cursor--; /* there may be more of the same namespace, too */
		}
	} else {
		while ((node = next_unlisted_node(cluster, &cursor))) {
			vg_ledger_node_gone(cluster, node);
			cursor--;
		}
	}
	cluster->listing[kind].complete = true;
}

/* ---- the contract of device/sink.h ------------------------------------------------------------ */

static void on_list_begin(void *ctx, enum vg_kind kind)
{
	struct vg_cluster *cluster = ctx;

	vg_cluster_lock(cluster);
	list_begin(cluster, kind);
	vg_cluster_unlock(cluster);
}

static void on_list_end(void *ctx, enum vg_kind kind)
{
	struct vg_cluster *cluster = ctx;

	vg_cluster_lock(cluster);
	heard(cluster, kind);
	list_end(cluster, kind);
	vg_cluster_unlock(cluster);
}

static void on_list_abort(void *ctx, enum vg_kind kind)
{
	(void)ctx;
	(void)kind; /* the next list has another generation, nothing was swept */
}

static void on_put_node(void *ctx, const struct vg_node_info *node)
{
	struct vg_cluster *cluster = ctx;

	vg_cluster_lock(cluster);
	heard(cluster, VG_KIND_NODE);
	put_node(cluster, node);
	vg_cluster_unlock(cluster);
}

static void on_put_pod(void *ctx, const struct vg_pod *pod)
{
	struct vg_cluster *cluster = ctx;

	vg_cluster_lock(cluster);
	heard(cluster, VG_KIND_POD);
	put_pod(cluster, pod);
	vg_cluster_unlock(cluster);
}

static void on_put_quota(void *ctx, const struct vg_quota_info *quota)
{
	struct vg_cluster *cluster = ctx;

	vg_cluster_lock(cluster);
	heard(cluster, VG_KIND_QUOTA);
	put_quota(cluster, quota);
	vg_cluster_unlock(cluster);
}

static void on_delete_node(void *ctx, const char *name)
{
	struct vg_cluster *cluster = ctx;
	struct cluster_node *node;

	vg_cluster_lock(cluster);
	heard(cluster, VG_KIND_NODE);
	node = vg_map_get(&cluster->nodes, name);
	if (node)
		vg_ledger_node_gone(cluster, node);
	vg_cluster_unlock(cluster);
}

static void on_delete_pod(void *ctx, const char *namespace, const char *name, const char *uid)
{
	struct vg_cluster *cluster = ctx;
	struct cluster_pod *pod;
	vg_autofree char *key = vg_printf("%s/%s", namespace, name);

	vg_cluster_lock(cluster);
	heard(cluster, VG_KIND_POD);
	pod = vg_map_get(&cluster->pods_by_key, key);
	/* The name may belong to a younger pod already. */
	if (pod && (uid[0] == '\0' || vg_streq(pod->uid, uid)))
		vg_ledger_pod_gone(cluster, pod);
	vg_cluster_unlock(cluster);
}

static void on_delete_quota(void *ctx, const char *namespace, const char *name)
{
	struct vg_cluster *cluster = ctx;
	struct cluster_quota *quota;

	vg_cluster_lock(cluster);
	heard(cluster, VG_KIND_QUOTA);
	quota = vg_quota_find(cluster, namespace, name);
	if (quota)
		vg_quota_gone(cluster, quota);
	vg_cluster_unlock(cluster);
}

static void on_forbidden(void *ctx, enum vg_kind kind)
{
	struct vg_cluster *cluster = ctx;

	vg_cluster_lock(cluster);
	cluster->listing[kind].forbidden = true;
	vg_cluster_unlock(cluster);
}

static void on_malformed(void *ctx, enum vg_kind kind, const char *what, const char *why)
{
	struct vg_cluster *cluster = ctx;

	vg_warn("cluster", "an object cannot be read; what was known of it stays",
		VG_S("object", what), VG_S("why", why));
	vg_cluster_lock(cluster);
	heard(cluster, kind);
	cluster->stats.malformed[kind]++;
	vg_cluster_unlock(cluster);
}

static void on_heard(void *ctx, enum vg_kind kind)
{
	struct vg_cluster *cluster = ctx;

	vg_cluster_lock(cluster);
	heard(cluster, kind);
	vg_cluster_unlock(cluster);
}

static const struct vg_sink_ops sink_ops = {
	.list_begin = on_list_begin,
	.list_end = on_list_end,
	.list_abort = on_list_abort,
	.put_node = on_put_node,
	.put_pod = on_put_pod,
	.put_quota = on_put_quota,
	.delete_node = on_delete_node,
	.delete_pod = on_delete_pod,
	.delete_quota = on_delete_quota,
	.forbidden = on_forbidden,
	.malformed = on_malformed,
	.heard = on_heard,
};

struct vg_sink vg_cluster_sink(struct vg_cluster *cluster)
{
	return (struct vg_sink){ .ops = &sink_ops, .ctx = cluster };
}
