/* SPDX-License-Identifier: Apache-2.0 */
/* A v1.ResourceQuota in JSON, with classes of different units. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/limits.h"
#include "base/mem.h"
#include "device/quota.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void add_class(struct vg_classes *classes)
{
	struct vg_class *class = &classes->item[classes->count++];

	*class = (struct vg_class){
		.word = vg_strdup("MLU"),
		.resource_count = vg_strdup("cambricon.com/vmlu"),
		.resource_mem = vg_strdup("cambricon.com/mlu.smlu.vmemory"),
		.resource_mem_percent = vg_strdup(""),
		.resource_cores = vg_strdup(""),
		.resource_priority = vg_strdup(""),
		.mem_factor = 256,
		.core_policy = vg_strdup(""),
		.runtime_class = vg_strdup(""),
	};
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_quota_info quota;
	struct vg_classes classes;
	struct vg_arena arena;
	struct vg_err err = { 0 };
	json_t *object = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
	int r;

	if (!object)
		return 0;
	vg_arena_init(&arena);
	vg_classes_init(&classes);
	add_class(&classes);
	r = vg_quota_decode(object, &classes, &arena, &quota, &err);
	/* The quota shares nothing with the object. */
	json_decref(object);
	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	if (r == 0) {
		check(quota.namespace[0] && quota.name[0]);
		check(strlen(quota.name) <= VG_LIMIT_NAME_BYTES);
		for (size_t i = 0; i < VG_CLASSES_MAX; i++)
			check(quota.hard[i].mem_mib >= 0 && quota.hard[i].cores >= 0);
		check(quota.hard[1].mem_mib == VG_QUOTA_NO_LIMIT ||
		      quota.hard[1].mem_mib % 256 == 0);
		check(quota.hard[1].cores == VG_QUOTA_NO_LIMIT);
		check(quota.hard[2].mem_mib == VG_QUOTA_NO_LIMIT);
		check(!quota.problem ||
		      (quota.problem[0] && strlen(quota.problem) <= VG_LIMIT_QUOTA_TEXT_BYTES));
	}
	vg_classes_release(&classes);
	vg_arena_release(&arena);
	return 0;
}
