/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds what, kept by delta: a pod that comes, changes or goes touches the cards of its node and the
 * node's sums, nothing else. Only a node whose cards are reported anew is summed up again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "cluster/cluster_internal.h"

/* ---- nodes ------------------------------------------------------------------------------------ */

struct cluster_node *vg_ledger_node(struct vg_cluster *cluster, const char *name)
{
	struct cluster_node *node = vg_map_get(&cluster->nodes, name);

	if (node)
		return node;
	node = vg_new(sizeof(*node));
	node->name = vg_strdup(name);
	node->view.name = node->name;
	node->allocatable = -1;
	node->waiting_end = &node->waiting;
	vg_arena_init(&node->texts);
	vg_map_put(&cluster->nodes, node->name, node);
	return node;
}

void vg_ledger_node_settle(struct vg_cluster *cluster, struct cluster_node *node)
{
	if (node->known || node->pods || node->waiting || node->granted)
		return;
	vg_map_del(&cluster->nodes, node->name);
	vg_arena_release(&node->texts);
	free(node->view.cards);
	free(node->name);
	free(node);
}

uint16_t vg_ledger_model(struct vg_cluster *cluster, const char *model)
{
	uintptr_t known = (uintptr_t)vg_map_get(&cluster->model_map, model);
	char *copy;

	if (known)
		return (uint16_t)(known - 1);
	/* Far more models than exist: somebody writes a new name each time. The last entry then stands
	 * for all that came too late; they match by that entry's name, which nobody asks for. */
	if (cluster->model_count == VG_LIMIT_MODELS)
		return (uint16_t)(VG_LIMIT_MODELS - 1);
	if (cluster->model_count == VG_LIMIT_MODELS - 1)
		model = "(too many models)";
	copy = vg_strdup(model);
	cluster->models =
		vg_grow(cluster->models, cluster->model_count + 1, sizeof(*cluster->models));
	cluster->models[cluster->model_count++] = copy;
	vg_map_put(&cluster->model_map, copy, (void *)(uintptr_t)cluster->model_count);
	return (uint16_t)(cluster->model_count - 1);
}

void vg_ledger_card(struct vg_cluster *cluster, const struct vg_node_info *info, size_t index,
		    struct vg_card *ret_card)
{
	const struct vg_card_info *from = &info->cards[index];
	const char *cordon = info->annotations.value[VG_ANNO_NODE_CORDON];

	*ret_card = (struct vg_card){
		.uuid = from->uuid,
		.mem_mib = from->mem_mib,
		.cores = from->cores,
		.slots = from->slots,
		.index = from->index,
		.numa = (int16_t)from->numa,
		.model = vg_ledger_model(cluster, from->model),
		.class_index = from->class_index,
		.mode = (uint8_t)from->mode,
		/* kubelet counts what the device plugin still offers: with none left, whatever the
		 * annotation promises would be refused at admission. */
		.healthy = from->healthy && !(from->class_index == 0 && info->allocatable == 0),
		.cordoned = cordon && vg_uuid_listed(cordon, from->uuid),
	};
}

struct vg_card *vg_ledger_card_find(const struct vg_node *node, const char *uuid)
{
	for (uint32_t i = 0; i < node->card_count; i++)
		if (strcmp(node->cards[i].uuid, uuid) == 0)
			return &node->cards[i];
	return NULL;
}

static void add_charges(struct vg_node *node, const struct cluster_pod *pod, int sign,
			size_t *ret_unknown)
{
	size_t unknown = 0;

	for (size_t i = 0; i < pod->charge_count; i++) {
		const struct vg_charge *charge = &pod->charges[i];
		struct vg_card *card = vg_ledger_card_find(node, charge->uuid);

		if (!card) {
			unknown++;
			continue;
		}
		card->mem_used_mib += sign * (int64_t)charge->mem_mib;
		card->cores_used += sign * (int64_t)charge->cores;
		card->slots_used += sign * charge->slots;
		node->sums.mem_used_mib += sign * (int64_t)charge->mem_mib;
		node->sums.cores_used += sign * (int64_t)charge->cores;
		node->sums.slots_used += sign * charge->slots;
	}
	*ret_unknown = unknown;
}

void vg_ledger_charge(struct vg_cluster *cluster, struct cluster_pod *pod)
{
	(void)cluster;
	if (pod->node)
		add_charges(&pod->node->view, pod, 1, &pod->charges_unknown);
}

void vg_ledger_uncharge(struct vg_cluster *cluster, struct cluster_pod *pod)
{
	size_t unknown;

	(void)cluster;
	if (!pod->node)
		return;
	add_charges(&pod->node->view, pod, -1, &unknown);
	pod->charges_unknown = 0;
}

/* Heartbeats change a node all the time, and mean nothing to those who wait for a card. */
static bool offers_something_new(const struct vg_node *view, const struct vg_node_info *info)
{
	const char *cordon = info->annotations.value[VG_ANNO_NODE_CORDON];

	if (info->card_count != view->card_count)
		return true;
	for (uint32_t i = 0; i < view->card_count; i++) {
		const struct vg_card *card = &view->cards[i];
		const struct vg_card_info *now = &info->cards[i];
		bool cordoned = cordon && vg_uuid_listed(cordon, now->uuid);

		if (strcmp(card->uuid, now->uuid) != 0 || card->mem_mib != now->mem_mib ||
		    card->cores != now->cores || card->slots != now->slots ||
		    card->mode != now->mode || card->healthy < now->healthy ||
		    card->cordoned > cordoned)
			return true;
	}
	return false;
}

void vg_ledger_node_put(struct vg_cluster *cluster, const struct vg_node_info *info)
{
	struct cluster_node *node = vg_ledger_node(cluster, info->name);
	struct vg_node *view = &node->view;

	node->known = true;
	node->resource_version = info->resource_version;
	node->allocatable = info->allocatable;
	if (offers_something_new(view, info))
		vg_nudge_freed(cluster, node);
	free(view->cards);
	view->cards =
		info->card_count ? vg_new_array(info->card_count, sizeof(*view->cards)) : NULL;
	view->card_count = (uint32_t)info->card_count;
	view->sums = (struct vg_sums){ 0 };
	vg_arena_clear(&node->texts);
	node->register_error =
		info->register_error ? vg_arena_strdup(&node->texts, info->register_error) : NULL;
	for (size_t i = 0; i < info->card_count; i++) {
		struct vg_card *card = &view->cards[i];

		vg_ledger_card(cluster, info, i, card);
		card->uuid = vg_arena_strdup(&node->texts, card->uuid);
		view->sums.mem_mib += card->mem_mib;
		view->sums.cores += card->cores;
		view->sums.slots += card->slots;
	}
	node->links_broken = info->links_error != NULL;
	node->links_odd = info->links_odd;
	view->links = NULL;
	if (info->links) {
		size_t size = info->card_count * info->card_count * sizeof(*info->links);
		int32_t *links = vg_arena_new(&node->texts, size);

		memcpy(links, info->links, size);
		view->links = links;
	}
	for (struct cluster_pod *pod = node->pods; pod; pod = pod->next)
		vg_ledger_charge(cluster, pod);
}

void vg_ledger_node_gone(struct vg_cluster *cluster, struct cluster_node *node)
{
	node->known = false;
	node->register_error = NULL;
	node->allocatable = -1;
	free(node->view.cards);
	node->view.cards = NULL;
	node->view.card_count = 0;
	node->view.links = NULL;
	node->view.sums = (struct vg_sums){ 0 };
	for (struct cluster_pod *pod = node->pods; pod; pod = pod->next)
		vg_ledger_charge(cluster, pod);
	vg_ledger_node_settle(cluster, node);
}

/* ---- pods ------------------------------------------------------------------------------------- */

struct cluster_pod *vg_ledger_pod(struct vg_cluster *cluster, const char *namespace,
				  const char *name, const char *uid)
{
	struct cluster_pod *pod = vg_map_get(&cluster->pods, uid);

	if (pod)
		return pod;
	pod = vg_new(sizeof(*pod));
	pod->namespace = vg_strdup(namespace);
	pod->name = vg_strdup(name);
	pod->uid = vg_strdup(uid);
	pod->key = vg_printf("%s/%s", namespace, name);
	vg_arena_init(&pod->asked);
	vg_arena_init(&pod->held);
	vg_map_put(&cluster->pods, pod->uid, pod);
	/* Only the source can say that an earlier pod of this name is gone: a request that comes late, or
	 * lies, must not end what another pod holds. */
	if (!vg_map_get(&cluster->pods_by_key, pod->key))
		vg_map_put(&cluster->pods_by_key, pod->key, pod);
	return pod;
}

void vg_ledger_claim_name(struct vg_cluster *cluster, struct cluster_pod *pod)
{
	struct cluster_pod *namesake = vg_map_get(&cluster->pods_by_key, pod->key);

	if (namesake == pod)
		return;
	if (namesake)
		vg_ledger_pod_gone(cluster, namesake);
	vg_map_put(&cluster->pods_by_key, pod->key, pod);
}

struct vg_allocation vg_allocation_copy(const struct vg_allocation *from, struct vg_arena *arena)
{
	struct vg_allocation copy = *from;

	copy.grants = vg_arena_new_array(arena, from->grant_count, sizeof(*copy.grants));
	for (size_t i = 0; i < from->grant_count; i++) {
		copy.grants[i] = from->grants[i];
		copy.grants[i].uuid = vg_arena_strdup(arena, from->grants[i].uuid);
	}
	return copy;
}

void vg_ledger_hold(struct vg_cluster *cluster, struct cluster_pod *pod, struct cluster_node *node,
		    const struct vg_allocation *allocation, const uint8_t *kinds, size_t kind_count,
		    bool init_done)
{
	vg_ledger_drop(cluster, pod);
	pod->allocation = vg_allocation_copy(allocation, &pod->held);
	pod->charge_count = vg_allocation_charges(&pod->allocation, kinds, kind_count, init_done,
						  &pod->held, &pod->charges);
	vg_space_hold(cluster, pod, kinds, kind_count, init_done);
	pod->node = node;
	pod->next = node->pods;
	if (pod->next)
		pod->next->prev = pod;
	node->pods = pod;
	vg_ledger_charge(cluster, pod);
}

void vg_ledger_drop(struct vg_cluster *cluster, struct cluster_pod *pod)
{
	struct cluster_node *node = pod->node;

	if (!node)
		return;
	vg_ledger_uncharge(cluster, pod);
	vg_space_drop(cluster, pod);
	if (pod->prev)
		pod->prev->next = pod->next;
	else
		node->pods = pod->next;
	if (pod->next)
		pod->next->prev = pod->prev;
	pod->prev = pod->next = NULL;
	pod->node = NULL;
	pod->allocation = (struct vg_allocation){ 0 };
	pod->charges = NULL;
	pod->charge_count = 0;
	vg_arena_release(&pod->held);
}

void vg_ledger_pod_gone(struct vg_cluster *cluster, struct cluster_pod *pod)
{
	struct cluster_node *node = pod->node;

	if (pod->ticket) {
		struct cluster_node *other = pod->ticket->node;

		vg_turn_cancel(
			cluster, pod->ticket, -ENOENT,
			vg_printf("pod %s was deleted while it waited for its turn at node %s",
				  pod->key, other->name));
		if (other != node)
			vg_ledger_node_settle(cluster, other);
	}
	if (pod->granted_at) {
		struct cluster_node *other = pod->granted_at;

		other->granted = NULL;
		pod->granted_at = NULL;
		vg_turn_next(cluster, other, 0);
		if (other != node)
			vg_ledger_node_settle(cluster, other);
	}
	if (node) {
		vg_nudge_freed(cluster, node);
		vg_nudge_space(cluster, pod->namespace);
	}
	vg_ledger_drop(cluster, pod);
	vg_map_del(&cluster->pods, pod->uid);
	if (vg_map_get(&cluster->pods_by_key, pod->key) == pod)
		vg_map_del(&cluster->pods_by_key, pod->key);
	vg_arena_release(&pod->asked);
	vg_arena_release(&pod->held);
	free(pod->namespace);
	free(pod->name);
	free(pod->uid);
	free(pod->key);
	free(pod);
	if (node) {
		vg_turn_next(cluster, node, 0);
		vg_ledger_node_settle(cluster, node);
	}
}

void vg_ledger_unreserve(struct vg_cluster *cluster, struct cluster_pod *pod)
{
	struct cluster_node *node = pod->node;

	if (!pod->from_source) {
		vg_ledger_pod_gone(cluster, pod);
		return;
	}
	if (node) {
		vg_nudge_freed(cluster, node);
		vg_nudge_space(cluster, pod->namespace);
	}
	vg_ledger_drop(cluster, pod);
	pod->state = VG_STATE_PENDING;
	pod->since_ns = 0;
	pod->deadline_ns = 0;
	pod->allocating = false;
	pod->unknown = false;
	if (node) {
		vg_turn_next(cluster, node, 0);
		vg_ledger_node_settle(cluster, node);
	}
}
