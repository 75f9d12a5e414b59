/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"
#include "device/pod.h"

static const char *copy_text(struct vg_arena *arena, const char *text)
{
	return text ? vg_arena_strdup(arena, text) : NULL;
}

static void copy_container(struct vg_arena *arena, const struct vg_container *from,
			   struct vg_container *to)
{
	size_t names = 0;

	*to = *from;
	to->name = copy_text(arena, from->name);
	to->resources = vg_arena_new_array(arena, from->resource_count, sizeof(*to->resources));
	for (size_t i = 0; i < from->resource_count; i++) {
		to->resources[i].name = copy_text(arena, from->resources[i].name);
		to->resources[i].limit = copy_text(arena, from->resources[i].limit);
		to->resources[i].request = copy_text(arena, from->resources[i].request);
	}
	while (from->env_names && from->env_names[names])
		names++;
	to->env_names = vg_arena_new_array(arena, names + 1, sizeof(*to->env_names));
	for (size_t i = 0; i < names; i++)
		to->env_names[i] = copy_text(arena, from->env_names[i]);
}

struct vg_pod *vg_pod_copy(const struct vg_pod *pod, struct vg_arena *arena)
{
	struct vg_pod *copy = vg_arena_new(arena, sizeof(*copy));

	*copy = *pod;
	copy->namespace = copy_text(arena, pod->namespace);
	copy->name = copy_text(arena, pod->name);
	copy->uid = copy_text(arena, pod->uid);
	copy->node_name = copy_text(arena, pod->node_name);
	copy->scheduler_name = copy_text(arena, pod->scheduler_name);
	copy->runtime_class = copy_text(arena, pod->runtime_class);
	for (size_t i = 0; i < VG_ANNO_COUNT; i++)
		copy->annotations.value[i] = copy_text(arena, pod->annotations.value[i]);
	copy->containers =
		vg_arena_new_array(arena, pod->container_count, sizeof(*copy->containers));
	for (size_t i = 0; i < pod->container_count; i++)
		copy_container(arena, &pod->containers[i], &copy->containers[i]);
	return copy;
}
