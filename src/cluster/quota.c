/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Namespaces: what their ResourceQuotas allow, and what their pods hold. The second is a function of the
 * pods, kept by delta as the cards are; so it cannot drift from what is on the cards.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cluster/cluster_internal.h"

struct cluster_space *vg_space(struct vg_cluster *cluster, const char *name)
{
	struct cluster_space *space = vg_map_get(&cluster->spaces, name);

	if (space)
		return space;
	space = vg_new(sizeof(*space));
	space->name = vg_strdup(name);
	vg_quota_unlimited(space->quota.hard);
	vg_map_put(&cluster->spaces, space->name, space);
	return space;
}

void vg_space_settle(struct vg_cluster *cluster, struct cluster_space *space)
{
	if (space->holders || space->quotas)
		return;
	vg_map_del(&cluster->spaces, space->name);
	free(space->name);
	free(space);
}

/* ---- what pods hold --------------------------------------------------------------------------- */

static void add_totals(struct cluster_pod *pod, int sign)
{
	struct vg_total *used = pod->space->quota.used;

	for (size_t i = 0; i < VG_CLASSES_MAX; i++) {
		used[i].mem_mib += sign * pod->totals[i].mem_mib;
		used[i].cores += sign * pod->totals[i].cores;
	}
}

void vg_space_hold(struct vg_cluster *cluster, struct cluster_pod *pod, const uint8_t *kinds,
		   size_t kind_count, bool init_done)
{
	pod->totals = vg_arena_new_array(&pod->held, VG_CLASSES_MAX, sizeof(*pod->totals));
	vg_allocation_totals(&pod->allocation, kinds, kind_count, init_done, pod->totals);
	pod->space = vg_space(cluster, pod->namespace);
	pod->space->holders++;
	add_totals(pod, 1);
}

void vg_space_drop(struct vg_cluster *cluster, struct cluster_pod *pod)
{
	add_totals(pod, -1);
	pod->space->holders--;
	vg_space_settle(cluster, pod->space);
	pod->space = NULL;
	pod->totals = NULL;
}

bool vg_totals_shrank(const struct vg_total *before, const struct vg_total *now)
{
	for (size_t i = 0; i < VG_CLASSES_MAX; i++)
		if (now[i].mem_mib < before[i].mem_mib || now[i].cores < before[i].cores)
			return true;
	return false;
}

/* ---- what is allowed -------------------------------------------------------------------------- */

/* The tightest limit of each kind counts, as it does for Kubernetes' own quotas. */
static void tighten(int64_t *limit, const char **name, int64_t other, const char *other_name)
{
	/* Of two equal ones the first name, so that the order of events does not show. */
	if (other > *limit || other == VG_QUOTA_NO_LIMIT)
		return;
	if (other == *limit && *name && strcmp(*name, other_name) <= 0)
		return;
	*limit = other;
	*name = other_name;
}

static void sum_up(struct vg_cluster *cluster, struct cluster_space *space)
{
	struct vg_total before[VG_CLASSES_MAX];

	memcpy(before, space->quota.hard, sizeof(before));
	vg_quota_unlimited(space->quota.hard);
	memset(space->mem_by, 0, sizeof(space->mem_by));
	memset(space->cores_by, 0, sizeof(space->cores_by));
	for (const struct cluster_quota *quota = space->quotas; quota; quota = quota->next) {
		for (size_t i = 0; i < VG_CLASSES_MAX; i++) {
			struct vg_total *hard = &space->quota.hard[i];

			tighten(&hard->mem_mib, &space->mem_by[i], quota->hard[i].mem_mib,
				quota->name);
			tighten(&hard->cores, &space->cores_by[i], quota->hard[i].cores,
				quota->name);
		}
	}
	/* Also where the last limit went: `limited` is still that of before. */
	if (vg_totals_shrank(space->quota.hard, before))
		vg_nudge_space(cluster, space->name);
	space->limited = vg_quota_limits(space->quota.hard);
}

struct cluster_quota *vg_quota_find(struct vg_cluster *cluster, const char *namespace,
				    const char *name)
{
	struct cluster_space *space = vg_map_get(&cluster->spaces, namespace);
	struct cluster_quota *quota = space ? space->quotas : NULL;

	while (quota && !vg_streq(quota->name, name))
		quota = quota->next;
	return quota;
}

struct cluster_quota *vg_quota_put(struct vg_cluster *cluster, const struct vg_quota_info *info)
{
	struct cluster_quota *quota = vg_quota_find(cluster, info->namespace, info->name);

	if (!quota) {
		quota = vg_new(sizeof(*quota));
		quota->name = vg_strdup(info->name);
		quota->space = vg_space(cluster, info->namespace);
		quota->next = quota->space->quotas;
		quota->space->quotas = quota;
	}
	quota->resource_version = info->resource_version;
	memcpy(quota->hard, info->hard, sizeof(quota->hard));
	free(quota->problem);
	quota->problem = info->problem ? vg_strdup(info->problem) : NULL;
	sum_up(cluster, quota->space);
	return quota;
}

void vg_quota_gone(struct vg_cluster *cluster, struct cluster_quota *quota)
{
	struct cluster_space *space = quota->space;
	struct cluster_quota **link = &space->quotas;

	while (*link != quota)
		link = &(*link)->next;
	*link = quota->next;
	free(quota->name);
	free(quota->problem);
	free(quota);
	sum_up(cluster, space);
	vg_space_settle(cluster, space);
}

/* ---- what decisions see ----------------------------------------------------------------------- */

const struct vg_quota *vg_quota_for(const struct vg_cluster *cluster, const char *namespace,
				    const struct cluster_pod *without, struct vg_quota *room)
{
	const struct cluster_space *space = vg_map_get(&cluster->spaces, namespace);

	if (!space || !space->limited)
		return NULL;
	if (!without || without->space != space)
		return &space->quota;
	*room = space->quota;
	for (size_t i = 0; i < VG_CLASSES_MAX; i++) {
		room->used[i].mem_mib -= without->totals[i].mem_mib;
		room->used[i].cores -= without->totals[i].cores;
	}
	return room;
}

void vg_space_copy(const struct cluster_space *space, struct vg_arena *arena,
		   struct vg_space_copy *ret_copy)
{
	struct vg_space_copy copy = {
		.namespace = vg_arena_strdup(arena, space->name),
		.limited = space->limited,
		.quota = space->quota,
	};

	for (size_t i = 0; i < VG_CLASSES_MAX; i++) {
		if (space->mem_by[i])
			copy.mem_by[i] = vg_arena_strdup(arena, space->mem_by[i]);
		if (space->cores_by[i])
			copy.cores_by[i] = vg_arena_strdup(arena, space->cores_by[i]);
	}
	*ret_copy = copy;
}

bool vg_cluster_space(struct vg_cluster *cluster, const char *namespace, struct vg_arena *arena,
		      struct vg_space_copy *ret_copy)
{
	const struct cluster_space *space;
	bool limited;

	vg_cluster_lock(cluster);
	space = vg_map_get(&cluster->spaces, namespace);
	limited = space && space->limited;
	if (limited)
		vg_space_copy(space, arena, ret_copy);
	vg_cluster_unlock(cluster);
	return limited;
}
