/* SPDX-License-Identifier: Apache-2.0 */
/* A v1.Pod in JSON: decoded, copied, and asked what it wants. */
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/limits.h"
#include "base/mem.h"
#include "device/pod.h"
#include "device/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* Two classes, so that wants of one container stand beside each other. */
static void add_class(struct vg_classes *classes)
{
	classes->item[0].default_count = 1;
	classes->item[classes->count++] = (struct vg_class){
		.word = vg_strdup("MLU"),
		.resource_count = vg_strdup("cpu"),
		.resource_mem = vg_strdup("memory"),
		.resource_mem_percent = vg_strdup(""),
		.resource_cores = vg_strdup(""),
		.resource_priority = vg_strdup(""),
		.mem_factor = 256,
		.core_policy = vg_strdup(""),
		.runtime_class = vg_strdup(""),
	};
}

static void check_request(const struct vg_pod *pod, const struct vg_request *request)
{
	for (size_t i = 0; i < request->want_count; i++) {
		const struct vg_want *want = &request->wants[i];

		check(want->container < pod->container_count);
		check(want->count >= 1 && want->count <= (int32_t)VG_LIMIT_CARDS_PER_REQUEST);
		check(want->mem_mib >= 0 && want->cores >= 0 && want->cores <= 100);
		check(want->mem_percent >= 1 && want->mem_percent <= VG_MEM_PERCENT_UNSET);
		check((want->mem_mib > 0) == (want->mem_percent == VG_MEM_PERCENT_UNSET));
		check(!i || want[-1].container < want->container ||
		      (want[-1].container == want->container &&
		       want[-1].class_index < want->class_index));
	}
}

static void fuzz_pod(const json_t *object, const struct vg_classes *classes, struct vg_arena *arena)
{
	struct vg_policy policy;
	struct vg_request request;
	struct vg_err err = { 0 };
	struct vg_pod *copy;
	struct vg_pod pod;
	int r = vg_pod_decode(object, classes, arena, &pod, &err);

	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	if (r < 0)
		return;
	check(pod.container_count <= VG_LIMIT_CONTAINERS_PER_POD);
	check(pod.init_count <= pod.container_count);
	for (size_t i = 0; i < pod.container_count; i++) {
		check((i < pod.init_count) == (pod.containers[i].kind != VG_CONTAINER_APP));
		check(pod.containers[i].env_names && pod.containers[i].name);
	}
	copy = vg_pod_copy(&pod, arena);
	vg_policy_parse("binpack", "spread", &policy);
	r = vg_request_parse(copy, classes, &policy, arena, &request, &err);
	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	if (r == 0)
		check_request(copy, &request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_classes classes;
	struct vg_arena arena;
	json_t *object = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);

	if (!object)
		return 0;
	vg_arena_init(&arena);
	vg_classes_init(&classes);
	add_class(&classes);
	fuzz_pod(object, &classes, &arena);
	json_decref(object);
	vg_classes_release(&classes);
	vg_arena_release(&arena);
	return 0;
}
