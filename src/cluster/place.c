/* SPDX-License-Identifier: Apache-2.0 */
/* Filter: decide on the live view, and reserve at once. */
#include "base/clock.h"
#include "cluster/cluster_internal.h"

/* The views of the named nodes; NULL where a name is not known. */
static void find_nodes(const struct vg_cluster *cluster, const char *const *names, size_t count,
		       struct vg_arena *arena, const struct vg_node **ret_nodes)
{
	void **found = vg_arena_new_array(arena, count, sizeof(*found));

	vg_map_get_many(&cluster->nodes, names, count, found);
	for (size_t i = 0; i < count; i++) {
		const struct cluster_node *node = found[i];

		ret_nodes[i] = node ? &node->view : NULL;
	}
}

static void fill_placement(const struct vg_decision *decision, struct vg_arena *arena,
			   struct vg_placement *ret_placement)
{
	*ret_placement = (struct vg_placement){
		.found = decision->found,
		.candidate = decision->candidate,
		.score = decision->score,
		.verdicts = decision->verdicts,
	};
	if (decision->found)
		ret_placement->allocation = vg_allocation_copy(&decision->allocation, arena);
}

static void reserve(struct vg_cluster *cluster, const struct vg_request *request,
		    struct cluster_node *node, const struct vg_allocation *allocation,
		    int64_t now_ns)
{
	struct cluster_pod *pod =
		vg_ledger_pod(cluster, request->namespace, request->name, request->uid);

	vg_ledger_hold(cluster, pod, node, allocation, request->kinds, request->container_count,
		       false);
	pod->state = VG_STATE_RESERVED;
	pod->since_ns = now_ns;
	pod->deadline_ns = now_ns + cluster->options.reservation_ns;
	pod->decided_unix_s = vg_clock_unix_s();
	vg_nudge_placed(pod);
	cluster->stats.reservations_made++;
}

void vg_cluster_place(struct vg_cluster *cluster, const struct vg_request *request,
		      const char *const *node_names, size_t node_count, int64_t now_ns,
		      struct vg_arena *arena, struct vg_placement *ret_placement)
{
	const struct vg_node **candidates =
		vg_arena_new_array(arena, node_count, sizeof(*candidates));
	struct cluster_node *before = NULL;
	struct vg_decision decision;
	struct vg_decide_args args;
	struct vg_models models;
	struct cluster_pod *pod;
	struct vg_quota room;
	bool settled; /* bound or being bound: no longer ours to move */
	int64_t started_ns;

	vg_cluster_lock(cluster);
	started_ns = vg_clock_mono_ns();
	pod = vg_map_get(&cluster->pods, request->uid);
	settled = pod && (pod->state == VG_STATE_BOUND || pod->state == VG_STATE_BINDING);
	if (settled) {
		vg_ledger_uncharge(cluster, pod);
	} else if (pod) {
		before = pod->node;
		vg_ledger_drop(cluster, pod);
		pod->state = VG_STATE_PENDING;
		pod->since_ns = 0;
		pod->deadline_ns = 0;
	}
	find_nodes(cluster, node_names, node_count, arena, candidates);
	models = (struct vg_models){ cluster->models, cluster->model_count };
	args = (struct vg_decide_args){
		.models = &models,
		.request = request,
		.quota = vg_quota_for(cluster, request->namespace, pod, &room),
		.candidates = candidates,
		.candidate_count = node_count,
	};
	vg_decide(&args, arena, &decision);
	if (settled) {
		vg_ledger_charge(cluster, pod);
	} else if (decision.found) {
		struct cluster_node *node =
			vg_map_get(&cluster->nodes, node_names[decision.candidate]);

		reserve(cluster, request, node, &decision.allocation, now_ns);
	} else {
		pod = vg_ledger_pod(cluster, request->namespace, request->name, request->uid);
		vg_nudge_refused(pod, now_ns);
		/* Nobody but this request has shown it so far: remembered for as long as a
		 * reservation would be. */
		pod->deadline_ns = now_ns + cluster->options.reservation_ns;
	}
	if (before) {
		vg_nudge_freed(cluster, before);
		vg_nudge_space(cluster, request->namespace);
		vg_ledger_node_settle(cluster, before);
	}
	fill_placement(&decision, arena, ret_placement);
	ret_placement->decision_ns = vg_clock_mono_ns() - started_ns;
	vg_cluster_unlock(cluster);
}

void vg_cluster_rank(struct vg_cluster *cluster, const struct vg_request *request,
		     const char *const *node_names, size_t node_count, struct vg_arena *arena,
		     struct vg_placement *ret_placement, float **ret_scores)
{
	const struct vg_node **candidates =
		vg_arena_new_array(arena, node_count, sizeof(*candidates));
	float *scores = vg_arena_new_array(arena, node_count, sizeof(*scores));
	struct vg_decision decision;
	struct vg_models models;
	struct cluster_pod *pod;
	struct vg_quota room;
	int64_t started_ns;

	vg_cluster_lock(cluster);
	started_ns = vg_clock_mono_ns();
	pod = vg_map_get(&cluster->pods, request->uid);
	if (pod)
		vg_ledger_uncharge(cluster, pod);
	find_nodes(cluster, node_names, node_count, arena, candidates);
	for (size_t i = 0; i < node_count; i++)
		scores[i] = candidates[i] ? vg_node_score(&candidates[i]->sums, NULL) : 0.0f;
	models = (struct vg_models){ cluster->models, cluster->model_count };
	vg_decide(&(struct vg_decide_args){ .models = &models,
					    .request = request,
					    .quota = vg_quota_for(cluster, request->namespace, pod,
								  &room),
					    .candidates = candidates,
					    .candidate_count = node_count,
					    .evaluate_all = true },
		  arena, &decision);
	if (pod)
		vg_ledger_charge(cluster, pod);
	fill_placement(&decision, arena, ret_placement);
	ret_placement->decision_ns = vg_clock_mono_ns() - started_ns;
	vg_cluster_unlock(cluster);
	*ret_scores = scores;
}

/* The usage of cards that we know under that node's name. */
static void carry_usage(const struct cluster_node *known, struct vg_node *node)
{
	for (uint32_t i = 0; known && i < node->card_count; i++) {
		struct vg_card *card = &node->cards[i];
		const struct vg_card *from = vg_ledger_card_find(&known->view, card->uuid);

		if (!from)
			continue;
		card->mem_used_mib = from->mem_used_mib;
		card->cores_used = from->cores_used;
		card->slots_used = from->slots_used;
	}
	node->sums = (struct vg_sums){ 0 };
	for (uint32_t i = 0; i < node->card_count; i++) {
		const struct vg_card *card = &node->cards[i];

		node->sums.mem_mib += card->mem_mib;
		node->sums.mem_used_mib += card->mem_used_mib;
		node->sums.cores += card->cores;
		node->sums.cores_used += card->cores_used;
		node->sums.slots += card->slots;
		node->sums.slots_used += card->slots_used;
	}
}

void vg_cluster_simulate(struct vg_cluster *cluster, const struct vg_request *request,
			 const struct vg_node_info *nodes, size_t node_count,
			 struct vg_arena *arena, struct vg_placement *ret_placement)
{
	const struct vg_node **candidates =
		vg_arena_new_array(arena, node_count, sizeof(*candidates));
	struct vg_decision decision;
	struct vg_decide_args args;
	struct vg_models models;
	struct cluster_pod *pod;
	struct vg_quota room;
	int64_t started_ns;

	vg_cluster_lock(cluster);
	started_ns = vg_clock_mono_ns();
	pod = vg_map_get(&cluster->pods, request->uid);
	if (pod)
		vg_ledger_uncharge(cluster, pod);
	for (size_t i = 0; i < node_count; i++) {
		struct vg_node *node = vg_arena_new(arena, sizeof(*node));

		node->name = nodes[i].name;
		node->links = nodes[i].links;
		node->card_count = (uint32_t)nodes[i].card_count;
		node->cards = vg_arena_new_array(arena, nodes[i].card_count, sizeof(*node->cards));
		for (size_t k = 0; k < nodes[i].card_count; k++)
			vg_ledger_card(cluster, &nodes[i], k, &node->cards[k]);
		carry_usage(vg_map_get(&cluster->nodes, nodes[i].name), node);
		candidates[i] = node;
	}
	if (pod)
		vg_ledger_charge(cluster, pod);
	models = (struct vg_models){ cluster->models, cluster->model_count };
	args = (struct vg_decide_args){
		.models = &models,
		.request = request,
		.quota = vg_quota_for(cluster, request->namespace, pod, &room),
		.candidates = candidates,
		.candidate_count = node_count,
	};
	vg_decide(&args, arena, &decision);
	fill_placement(&decision, arena, ret_placement);
	ret_placement->decision_ns = vg_clock_mono_ns() - started_ns;
	vg_cluster_unlock(cluster);
}
