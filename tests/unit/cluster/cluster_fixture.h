/* SPDX-License-Identifier: Apache-2.0 */
/* Objects for the cluster's tests, built in C: decoding them from JSON is tested elsewhere. */
#ifndef VGPU_TESTS_CLUSTER_FIXTURE_H
#define VGPU_TESTS_CLUSTER_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "cluster/cluster.h"

struct fixture {
	struct vg_classes classes;
	struct vg_cluster *cluster;
	struct vg_sink sink;
	struct vg_arena arena;
};

static inline void fixture_init(struct fixture *f, bool bind_queue)
{
	struct vg_cluster_options options = { .classes = &f->classes, .bind_queue = bind_queue };

	vg_classes_init(&f->classes);
	vg_policy_parse("binpack", "spread", &options.policy);
	f->cluster = vg_cluster_new(&options);
	f->sink = vg_cluster_sink(f->cluster);
	vg_arena_init(&f->arena);
}

static inline void fixture_release(struct fixture *f)
{
	vg_cluster_free(f->cluster);
	vg_classes_release(&f->classes);
	vg_arena_release(&f->arena);
}

/* A node of `count` cards of 10,000 MiB, 100 cores and 10 slots: GPU-<node>-<i>. */
static inline struct vg_node_info *fixture_node(struct fixture *f, const char *name, size_t count)
{
	struct vg_node_info *node = vg_arena_new(&f->arena, sizeof(*node));

	node->name = vg_arena_strdup(&f->arena, name);
	node->uid = name;
	node->allocatable = -1;
	node->cards = vg_arena_new_array(&f->arena, count, sizeof(*node->cards));
	node->card_count = count;
	for (size_t i = 0; i < count; i++)
		node->cards[i] = (struct vg_card_info){
			.uuid = vg_arena_printf(&f->arena, "GPU-%s-%zu", name, i),
			.model = "NVIDIA A100",
			.index = (int32_t)i,
			.slots = 10,
			.mem_mib = 10000,
			.cores = 100,
			.mode = VG_MODE_HAMI_CORE,
			.healthy = true,
		};
	return node;
}

static inline void put_node(struct fixture *f, const char *name, size_t count)
{
	f->sink.ops->put_node(f->sink.ctx, fixture_node(f, name, count));
}

/* A pod of one container that asks for `count` cards with `mem` MiB and `cores` percent each. */
static inline struct vg_pod *fixture_pod(struct fixture *f, const char *name, const char *uid,
					 int count, int mem, int cores)
{
	struct vg_pod *pod = vg_arena_new(&f->arena, sizeof(*pod));
	struct vg_container *container = vg_arena_new(&f->arena, sizeof(*container));
	struct vg_resource *resources = vg_arena_new_array(&f->arena, 3, sizeof(*resources));
	static const char *no_env[1];

	resources[0] = (struct vg_resource){ .name = "nvidia.com/gpu",
					     .limit = vg_arena_printf(&f->arena, "%d", count) };
	resources[1] = (struct vg_resource){ .name = "nvidia.com/gpumem",
					     .limit = vg_arena_printf(&f->arena, "%d", mem) };
	resources[2] = (struct vg_resource){ .name = "nvidia.com/gpucores",
					     .limit = vg_arena_printf(&f->arena, "%d", cores) };
	*container = (struct vg_container){
		.name = "main",
		.kind = VG_CONTAINER_APP,
		.resources = resources,
		.resource_count = 3,
		.env_names = no_env,
	};
	*pod = (struct vg_pod){
		.namespace = "default",
		.name = vg_arena_strdup(&f->arena, name),
		.uid = vg_arena_strdup(&f->arena, uid),
		.node_name = "",
		.scheduler_name = "vgpu-scheduler",
		.runtime_class = "",
		.containers = container,
		.container_count = 1,
	};
	return pod;
}

/* The same pod as the API server shows it after the bind. */
static inline struct vg_pod *fixture_bound(struct fixture *f, const char *name, const char *uid,
					   const char *node, const char *devices, const char *phase)
{
	struct vg_pod *pod = fixture_pod(f, name, uid, 1, 1, 1);

	pod->node_name = vg_arena_strdup(&f->arena, node);
	pod->annotations.value[VG_ANNO_POD_NODE] = pod->node_name;
	pod->annotations.value[VG_ANNO_POD_ALLOCATED] = vg_arena_strdup(&f->arena, devices);
	pod->annotations.value[VG_ANNO_POD_BIND_PHASE] = phase;
	return pod;
}

static inline void put_pod(struct fixture *f, const struct vg_pod *pod)
{
	f->sink.ops->put_pod(f->sink.ctx, pod);
}

/* Limits on NVIDIA cards; VG_QUOTA_NO_LIMIT = none. */
static inline void put_quota(struct fixture *f, const char *namespace, const char *name,
			     int64_t mem_mib, int64_t cores)
{
	struct vg_quota_info quota = { .namespace = namespace, .name = name, .uid = name };

	vg_quota_unlimited(quota.hard);
	quota.hard[0] = (struct vg_total){ mem_mib, cores };
	f->sink.ops->put_quota(f->sink.ctx, &quota);
}

/* Filter among the names; returns the chosen one, or NULL. */
static inline const char *place(struct fixture *f, const struct vg_pod *pod,
				const char *const *names, size_t count, int64_t now_ns,
				struct vg_placement *ret_placement)
{
	struct vg_placement placement;
	struct vg_request request;
	struct vg_policy policy;

	vg_policy_parse("binpack", "spread", &policy);
	assert_int_equal(vg_request_parse(pod, &f->classes, &policy, &f->arena, &request, NULL), 0);
	vg_cluster_place(f->cluster, &request, names, count, now_ns, &f->arena, &placement);
	if (ret_placement)
		*ret_placement = placement;
	return placement.found ? names[placement.candidate] : NULL;
}

static inline struct vg_cluster_copy look(struct fixture *f, int64_t now_ns)
{
	struct vg_copy_args args = { .with_pods = true };
	struct vg_cluster_copy copy;

	vg_cluster_copy(f->cluster, &args, now_ns, &f->arena, &copy);
	return copy;
}

/* "namespace=used/limit(quota) used/limit(quota) …": memory and cores of all namespaces, "-" = no limit. */
static inline const char *quotas(struct fixture *f)
{
	struct vg_cluster_copy copy = look(f, 0);
	char *text = vg_arena_strdup(&f->arena, "");

	for (size_t i = 0; i < copy.space_count; i++) {
		const struct vg_space_copy *space = &copy.spaces[i];
		const struct vg_total *hard = &space->quota.hard[0];
		const struct vg_total *used = &space->quota.used[0];

		text = vg_arena_printf(&f->arena, "%s%s%s=", text, i ? " " : "", space->namespace);
		if (hard->mem_mib == VG_QUOTA_NO_LIMIT)
			text = vg_arena_printf(&f->arena, "%s%lld/-,", text,
					       (long long)used->mem_mib);
		else
			text = vg_arena_printf(&f->arena, "%s%lld/%lld(%s),", text,
					       (long long)used->mem_mib, (long long)hard->mem_mib,
					       space->mem_by[0]);
		if (hard->cores == VG_QUOTA_NO_LIMIT)
			text = vg_arena_printf(&f->arena, "%s%lld/-", text, (long long)used->cores);
		else
			text = vg_arena_printf(&f->arena, "%s%lld/%lld(%s)", text,
					       (long long)used->cores, (long long)hard->cores,
					       space->cores_by[0]);
	}
	return text;
}

/* "node:uuid=mem/cores/slots …" of all cards in use, and the sums checked against the cards. */
static inline const char *usage(struct fixture *f)
{
	struct vg_cluster_copy copy = look(f, 0);
	char *text = vg_arena_strdup(&f->arena, "");

	for (size_t i = 0; i < copy.node_count; i++) {
		const struct vg_node *node = &copy.nodes[i].node;
		struct vg_sums sums = { 0 };

		for (uint32_t k = 0; k < node->card_count; k++) {
			const struct vg_card *card = &node->cards[k];

			sums.mem_mib += card->mem_mib;
			sums.mem_used_mib += card->mem_used_mib;
			sums.cores += card->cores;
			sums.cores_used += card->cores_used;
			sums.slots += card->slots;
			sums.slots_used += card->slots_used;
			if (card->slots_used || card->mem_used_mib || card->cores_used)
				text = vg_arena_printf(
					&f->arena, "%s%s%s=%lld/%lld/%d", text, *text ? " " : "",
					card->uuid, (long long)card->mem_used_mib,
					(long long)card->cores_used, card->slots_used);
		}
		assert_memory_equal(&sums, &node->sums, sizeof(sums));
	}
	return text;
}

#endif
