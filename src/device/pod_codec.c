/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pod.h"

#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "device/json_internal.h"

/* ---- containers ------------------------------------------------------------------------------ */

static struct vg_resource *find_resource(const struct vg_container *container, const char *name)
{
	for (size_t i = 0; i < container->resource_count; i++)
		if (vg_streq(container->resources[i].name, name))
			return &container->resources[i];
	return NULL;
}

static size_t count_resources(json_t *list, const struct vg_classes *classes)
{
	size_t count = 0;
	const char *name;
	json_t *value;

	json_object_foreach(list, name, value) count += vg_classes_have_resource(classes, name);
	return count;
}

/* Adds the entries of limits or requests; the array has room for all of both. */
static int add_resources(json_t *list, const char *path, const struct vg_classes *classes,
			 struct vg_arena *arena, struct vg_container *container, struct vg_err *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(list, name, value)
	{
		bool is_limit = vg_streq(path, "resources.limits");
		struct vg_resource *entry;
		const char *text = NULL;
		int r;

		if (json_is_null(value) || !vg_classes_have_resource(classes, name))
			continue;
		r = vg_json_quantity(value, name, arena, &text, err);
		if (r < 0)
			return vg_err_wrap(err, r, "%s", path);
		entry = find_resource(container, name);
		if (!entry) {
			entry = &container->resources[container->resource_count++];
			entry->name = vg_arena_strdup(arena, name);
		}
		*(is_limit ? &entry->limit : &entry->request) = text;
	}
	return 0;
}

static int decode_resources(const json_t *object, const struct vg_classes *classes,
			    struct vg_arena *arena, struct vg_container *container,
			    struct vg_err *err)
{
	json_t *resources = NULL;
	json_t *limits = NULL;
	json_t *requests = NULL;
	size_t room;
	int r;

	r = vg_json_object(object, "resources", &resources, err);
	if (r == 0)
		r = vg_json_object(resources, "resources.limits", &limits, err);
	if (r == 0)
		r = vg_json_object(resources, "resources.requests", &requests, err);
	if (r < 0)
		return r;
	container->has_resources = resources;
	container->has_limits = limits;
	container->has_requests = requests;
	room = count_resources(limits, classes) + count_resources(requests, classes);
	if (!room)
		return 0;
	container->resources = vg_arena_new_array(arena, room, sizeof(*container->resources));
	r = add_resources(limits, "resources.limits", classes, arena, container, err);
	if (r < 0)
		return r;
	return add_resources(requests, "resources.requests", classes, arena, container, err);
}

static int decode_env(const json_t *object, struct vg_arena *arena, struct vg_container *container,
		      struct vg_err *err)
{
	json_t *env = NULL;
	json_t *entry;
	size_t i;
	int r;

	r = vg_json_array(object, "env", &env, err);
	if (r < 0)
		return r;
	container->has_env = env;
	container->env_names =
		vg_arena_new_array(arena, json_array_size(env) + 1, sizeof(*container->env_names));
	json_array_foreach(env, i, entry)
	{
		if (!json_is_object(entry))
			return vg_fail(err, EINVAL, "env[%zu] is %s, not an object", i,
				       vg_json_kind(entry));
		r = vg_json_text(entry, "name", VG_LIMIT_ANNOTATION_BYTES, arena,
				 &container->env_names[i], err);
		if (r < 0)
			return vg_err_wrap(err, r, "env[%zu]", i);
	}
	return 0;
}

static int decode_container(const json_t *object, bool init, const struct vg_classes *classes,
			    struct vg_arena *arena, struct vg_container *container,
			    struct vg_err *err)
{
	const char *restart = "";
	json_t *security = NULL;
	int r;

	if (!json_is_object(object))
		return vg_fail(err, EINVAL, "%s instead of an object", vg_json_kind(object));
	r = vg_json_text(object, "name", VG_LIMIT_NAME_BYTES, arena, &container->name, err);
	if (r == 0 && init)
		r = vg_json_word(object, "restartPolicy", &restart, err);
	if (r == 0)
		r = vg_json_object(object, "securityContext", &security, err);
	if (r == 0)
		r = vg_json_bool(security, "securityContext.privileged", &container->privileged,
				 err);
	if (r == 0)
		r = decode_resources(object, classes, arena, container, err);
	if (r == 0)
		r = decode_env(object, arena, container, err);
	if (r < 0)
		return r;
	if (!init)
		container->kind = VG_CONTAINER_APP;
	else if (vg_streq(restart, "Always"))
		container->kind = VG_CONTAINER_SIDECAR;
	else
		container->kind = VG_CONTAINER_INIT;
	return 0;
}

static int decode_containers(json_t *list, bool init, const struct vg_classes *classes,
			     struct vg_arena *arena, struct vg_pod *pod, struct vg_err *err)
{
	json_t *object;
	size_t i;

	json_array_foreach(list, i, object)
	{
		int r = decode_container(object, init, classes, arena,
					 &pod->containers[pod->container_count], err);

		if (r < 0)
			return vg_err_wrap(err, r, "spec.%s[%zu]",
					   init ? "initContainers" : "containers", i);
		pod->container_count++;
	}
	return 0;
}

/* ---- spec and status ------------------------------------------------------------------------- */

static int decode_all_containers(const json_t *spec, const struct vg_classes *classes,
				 struct vg_arena *arena, struct vg_pod *pod, struct vg_err *err)
{
	json_t *inits = NULL;
	json_t *apps = NULL;
	size_t count;
	int r;

	r = vg_json_array(spec, "spec.initContainers", &inits, err);
	if (r == 0)
		r = vg_json_array(spec, "spec.containers", &apps, err);
	if (r < 0)
		return r;
	count = json_array_size(inits) + json_array_size(apps);
	if (count > VG_LIMIT_CONTAINERS_PER_POD)
		return vg_fail(err, E2BIG, "%zu containers; at most %u are accepted", count,
			       VG_LIMIT_CONTAINERS_PER_POD);
	pod->containers = vg_arena_new_array(arena, count, sizeof(*pod->containers));
	pod->init_count = json_array_size(inits);
	r = decode_containers(inits, true, classes, arena, pod, err);
	if (r < 0)
		return r;
	return decode_containers(apps, false, classes, arena, pod, err);
}

static int decode_spec(const json_t *object, const struct vg_classes *classes,
		       struct vg_arena *arena, struct vg_pod *pod, struct vg_err *err)
{
	json_t *spec = NULL;
	int64_t priority = 0;
	int r;

	r = vg_json_object(object, "spec", &spec, err);
	if (r == 0)
		r = vg_json_text(spec, "spec.nodeName", VG_LIMIT_NAME_BYTES, arena, &pod->node_name,
				 err);
	if (r == 0)
		r = vg_json_text(spec, "spec.schedulerName", VG_LIMIT_NAME_BYTES, arena,
				 &pod->scheduler_name, err);
	if (r == 0)
		r = vg_json_text(spec, "spec.runtimeClassName", VG_LIMIT_NAME_BYTES, arena,
				 &pod->runtime_class, err);
	if (r == 0)
		r = vg_json_i64(spec, "spec.priority", INT32_MIN, INT32_MAX, &priority, err);
	if (r < 0)
		return r;
	pod->priority = (int32_t)priority;
	return decode_all_containers(spec, classes, arena, pod, err);
}

/*
 * Whether one entry of initContainerStatuses says that the container ended with success.
 * Statuses are matched by name, since their order is not promised.
 */
static int decode_ended(const json_t *status, const char **ret_name, bool *ret_ended,
			struct vg_err *err)
{
	json_t *state = NULL;
	json_t *terminated = NULL;
	int64_t code = 0;
	int r;

	if (!json_is_object(status))
		return vg_fail(err, EINVAL, "%s instead of an object", vg_json_kind(status));
	r = vg_json_word(status, "name", ret_name, err);
	if (r == 0)
		r = vg_json_object(status, "state", &state, err);
	if (r == 0)
		r = vg_json_object(state, "state.terminated", &terminated, err);
	if (r == 0)
		r = vg_json_i64(terminated, "state.terminated.exitCode", INT64_MIN, INT64_MAX,
				&code, err);
	if (r < 0)
		return r;
	*ret_ended = terminated && code == 0;
	return 0;
}

static int decode_init_done(const json_t *status, struct vg_pod *pod, struct vg_err *err)
{
	bool ended[VG_LIMIT_CONTAINERS_PER_POD] = { false };
	json_t *list = NULL;
	json_t *entry;
	size_t i;
	int r;

	r = vg_json_array(status, "status.initContainerStatuses", &list, err);
	if (r < 0)
		return r;
	json_array_foreach(list, i, entry)
	{
		const char *name = "";
		bool success = false;

		r = decode_ended(entry, &name, &success, err);
		if (r < 0)
			return vg_err_wrap(err, r, "status.initContainerStatuses[%zu]", i);
		for (size_t c = 0; success && c < pod->init_count; c++)
			if (vg_streq(pod->containers[c].name, name))
				ended[c] = true;
	}
	pod->init_done = true;
	for (size_t c = 0; c < pod->init_count; c++)
		if (pod->containers[c].kind == VG_CONTAINER_INIT && !ended[c])
			pod->init_done = false;
	return 0;
}

static enum vg_pod_phase phase_of(const char *word)
{
	if (vg_streq(word, "Running"))
		return VG_POD_RUNNING;
	if (vg_streq(word, "Succeeded"))
		return VG_POD_SUCCEEDED;
	if (vg_streq(word, "Failed"))
		return VG_POD_FAILED;
	return VG_POD_PENDING;
}

static int decode_status(const json_t *object, struct vg_pod *pod, struct vg_err *err)
{
	const char *phase = "";
	json_t *status = NULL;
	int r;

	r = vg_json_object(object, "status", &status, err);
	if (r == 0)
		r = vg_json_word(status, "status.phase", &phase, err);
	if (r < 0)
		return r;
	pod->phase = phase_of(phase);
	return decode_init_done(status, pod, err);
}

int vg_pod_decode(const struct json_t *object, const struct vg_classes *classes,
		  struct vg_arena *arena, struct vg_pod *ret_pod, struct vg_err *err)
{
	struct vg_json_meta meta;
	struct vg_pod pod;
	int r;

	r = vg_json_meta(object, "Pod", arena, &meta, err);
	if (r < 0)
		return r;
	pod = (struct vg_pod){
		.namespace = meta.namespace,
		.name = meta.name,
		.uid = meta.uid,
		.resource_version = meta.resource_version,
		.terminating = meta.terminating,
		.annotations = meta.annotations,
	};
	r = decode_spec(object, classes, arena, &pod, err);
	if (r == 0)
		r = decode_status(object, &pod, err);
	if (r < 0)
		return vg_err_wrap(err, r, "Pod %s/%s", pod.namespace, pod.name);
	*ret_pod = pod;
	return 0;
}
