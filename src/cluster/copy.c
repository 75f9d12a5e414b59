/* SPDX-License-Identifier: Apache-2.0 */
/* Private copies of the view, for whoever explains or prints outside the lock. */
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_internal.h"

static void copy_node(const struct cluster_node *from, struct vg_arena *arena,
		      struct vg_node_copy *ret_copy)
{
	struct vg_node_copy copy = { .node = from->view, .allocatable = from->allocatable };
	struct vg_node *node = &copy.node;

	node->name = vg_arena_strdup(arena, from->name);
	node->cards = vg_arena_new_array(arena, node->card_count, sizeof(*node->cards));
	for (uint32_t i = 0; i < node->card_count; i++) {
		node->cards[i] = from->view.cards[i];
		node->cards[i].uuid = vg_arena_strdup(arena, from->view.cards[i].uuid);
	}
	if (node->links) {
		size_t size = (size_t)node->card_count * node->card_count * sizeof(*node->links);
		int32_t *links = vg_arena_new(arena, size);

		memcpy(links, node->links, size);
		node->links = links;
	}
	if (from->register_error)
		copy.register_error = vg_arena_strdup(arena, from->register_error);
	*ret_copy = copy;
}

static void copy_pod(const struct cluster_pod *from, int64_t now_ns, struct vg_arena *arena,
		     struct vg_pod_copy *ret_copy)
{
	*ret_copy = (struct vg_pod_copy){
		.namespace = vg_arena_strdup(arena, from->namespace),
		.name = vg_arena_strdup(arena, from->name),
		.uid = vg_arena_strdup(arena, from->uid),
		.node = from->node ? vg_arena_strdup(arena, from->node->name) : "",
		.state = from->state,
		.allocating = from->allocating,
		.terminating = from->terminating,
		.age_ns = from->since_ns ? now_ns - from->since_ns : 0,
		.lapses_in_ns = from->state == VG_STATE_RESERVED ? from->deadline_ns - now_ns : 0,
		.allocation = vg_allocation_copy(&from->allocation, arena),
	};
}

static int by_node_name(const void *left, const void *right)
{
	const struct vg_node_copy *a = left;
	const struct vg_node_copy *b = right;

	return strcmp(a->node.name, b->node.name);
}

static int by_pod_name(const void *left, const void *right)
{
	const struct vg_pod_copy *a = left;
	const struct vg_pod_copy *b = right;
	int order = strcmp(a->namespace, b->namespace);

	if (order == 0)
		order = strcmp(a->name, b->name);
	return order ? order : strcmp(a->uid, b->uid);
}

static int by_namespace(const void *left, const void *right)
{
	const struct vg_space_copy *a = left;
	const struct vg_space_copy *b = right;

	return strcmp(a->namespace, b->namespace);
}

static void copy_all_nodes(const struct vg_cluster *cluster, struct vg_arena *arena,
			   struct vg_cluster_copy *copy)
{
	const struct cluster_node *node;
	size_t cursor = 0;

	copy->nodes = vg_arena_new_array(arena, cluster->nodes.used, sizeof(*copy->nodes));
	while ((node = vg_map_next(&cluster->nodes, &cursor)))
		copy_node(node, arena, &copy->nodes[copy->node_count++]);
}

static void copy_named_nodes(const struct vg_cluster *cluster, const struct vg_copy_args *args,
			     struct vg_arena *arena, struct vg_cluster_copy *copy)
{
	copy->nodes = vg_arena_new_array(arena, args->name_count, sizeof(*copy->nodes));
	copy->node_count = args->name_count;
	for (size_t i = 0; i < args->name_count; i++) {
		const struct cluster_node *node = vg_map_get(&cluster->nodes, args->names[i]);

		if (node) {
			copy_node(node, arena, &copy->nodes[i]);
		} else {
			copy->nodes[i].node.name = vg_arena_strdup(arena, args->names[i]);
			copy->nodes[i].allocatable = -1;
		}
	}
}

static void copy_pods(const struct vg_cluster *cluster, int64_t now_ns, struct vg_arena *arena,
		      struct vg_cluster_copy *copy)
{
	const struct cluster_pod *pod;
	size_t cursor = 0;

	copy->pods = vg_arena_new_array(arena, cluster->pods.used, sizeof(*copy->pods));
	while ((pod = vg_map_next(&cluster->pods, &cursor)))
		copy_pod(pod, now_ns, arena, &copy->pods[copy->pod_count++]);
}

static void copy_spaces(const struct vg_cluster *cluster, struct vg_arena *arena,
			struct vg_cluster_copy *copy)
{
	const struct cluster_space *space;
	size_t cursor = 0;

	copy->spaces = vg_arena_new_array(arena, cluster->spaces.used, sizeof(*copy->spaces));
	while ((space = vg_map_next(&cluster->spaces, &cursor)))
		vg_space_copy(space, arena, &copy->spaces[copy->space_count++]);
}

static const struct vg_space_copy *copy_quota(const struct vg_cluster *cluster,
					      const char *namespace,
					      const struct cluster_pod *without,
					      struct vg_arena *arena)
{
	struct vg_quota room;
	const struct vg_quota *quota = vg_quota_for(cluster, namespace, without, &room);
	struct vg_space_copy *copy;

	if (!quota)
		return NULL;
	copy = vg_arena_new(arena, sizeof(*copy));
	vg_space_copy(vg_map_get(&cluster->spaces, namespace), arena, copy);
	copy->quota = *quota;
	return copy;
}

void vg_cluster_copy(struct vg_cluster *cluster, const struct vg_copy_args *args, int64_t now_ns,
		     struct vg_arena *arena, struct vg_cluster_copy *ret_copy)
{
	struct vg_cluster_copy copy = { 0 };
	struct cluster_pod *without = NULL;
	const char **models;

	vg_cluster_lock(cluster);
	if (args->without_uid)
		without = vg_map_get(&cluster->pods, args->without_uid);
	if (without)
		vg_ledger_uncharge(cluster, without);
	models = vg_arena_new_array(arena, cluster->model_count, sizeof(*models));
	for (size_t i = 0; i < cluster->model_count; i++)
		models[i] = vg_arena_strdup(arena, cluster->models[i]);
	copy.models = (struct vg_models){ models, cluster->model_count };
	if (args->names)
		copy_named_nodes(cluster, args, arena, &copy);
	else
		copy_all_nodes(cluster, arena, &copy);
	if (args->with_pods) {
		copy_pods(cluster, now_ns, arena, &copy);
		copy_spaces(cluster, arena, &copy);
	}
	if (args->namespace)
		copy.quota = copy_quota(cluster, args->namespace, without, arena);
	copy.quotas_forbidden = cluster->listing[VG_KIND_QUOTA].forbidden;
	if (without)
		vg_ledger_charge(cluster, without);
	vg_cluster_unlock(cluster);
	/* Sorting takes longer than copying: nobody has to wait for that. */
	if (!args->names && copy.node_count)
		qsort(copy.nodes, copy.node_count, sizeof(*copy.nodes), by_node_name);
	if (copy.pod_count)
		qsort(copy.pods, copy.pod_count, sizeof(*copy.pods), by_pod_name);
	if (copy.space_count)
		qsort(copy.spaces, copy.space_count, sizeof(*copy.spaces), by_namespace);
	*ret_copy = copy;
}
