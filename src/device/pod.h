/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a v1.Pod that matters for sharing GPUs, decoded once at the edge. Texts live in the arena
 * that the decoder was given; a keeper copies what it keeps.
 */
#ifndef VGPU_DEVICE_POD_H
#define VGPU_DEVICE_POD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/annotation.h"
#include "device/class.h"

struct json_t;

enum vg_pod_phase {
	VG_POD_PENDING, /* also: absent or unknown words */
	VG_POD_RUNNING,
	VG_POD_SUCCEEDED,
	VG_POD_FAILED,
};

/* One entry of limits or requests whose name belongs to a device class. */
struct vg_resource {
	const char *name;
	const char *limit; /* quantity text; NULL when absent */
	const char *request;
};

enum vg_container_kind {
	VG_CONTAINER_INIT,
	VG_CONTAINER_SIDECAR, /* an init container with restartPolicy Always */
	VG_CONTAINER_APP,
};

struct vg_container {
	const char *name;
	enum vg_container_kind kind;
	bool privileged;
	struct vg_resource *resources;
	size_t resource_count;
	/* Names of the environment variables that are set, for the webhook. NULL-terminated. */
	const char **env_names;
	/* Whether the objects exist, since a JSON patch must create missing parents. */
	bool has_resources;
	bool has_limits;
	bool has_requests;
	bool has_env;
};

struct vg_pod {
	const char *namespace;
	const char *name;
	const char *uid;
	/* 0 = absent or no number. Opaque by contract; etcd3 makes it a rising number. */
	uint64_t resource_version;
	const char *node_name; /* spec.nodeName; "" = not bound */
	const char *scheduler_name;
	const char *runtime_class; /* "" = absent */
	enum vg_pod_phase phase;
	bool terminating; /* metadata.deletionTimestamp is set */
	/* All init containers that are not sidecars ended with success; also when there are none. */
	bool init_done;
	int32_t priority;
	struct vg_annotations annotations;
	/* In the order of allocation annotations: init containers (sidecars among them) first. */
	struct vg_container *containers;
	size_t container_count;
	size_t init_count;
};

/*
 * Decodes a v1.Pod. Unknown members are ignored, absent ones and null are "", 0 or false as Go has it;
 * only metadata must be there. A member of the wrong type is an error that names its path. Resources
 * are kept only if a class has them. `object` may be given back afterwards.
 * -EINVAL: not a pod; -E2BIG: over a limit of base/limits.h.
 */
int vg_pod_decode(const struct json_t *object, const struct vg_classes *classes,
		  struct vg_arena *arena, struct vg_pod *ret_pod, struct vg_err *err);

/* A copy that shares nothing with the original. In the arena. */
struct vg_pod *vg_pod_copy(const struct vg_pod *pod, struct vg_arena *arena);

/* The limit of the resource, else its request, else NULL. An empty name gives NULL. */
const char *vg_container_resource(const struct vg_container *container, const char *resource);

#endif
