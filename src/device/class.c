/* SPDX-License-Identifier: Apache-2.0 */
#include "device/class.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

void vg_classes_init(struct vg_classes *classes)
{
	*classes = (struct vg_classes){ .count = 1 };
	classes->item[0] = (struct vg_class){
		.word = vg_strdup("NVIDIA"),
		.resource_count = vg_strdup("nvidia.com/gpu"),
		.resource_mem = vg_strdup("nvidia.com/gpumem"),
		.resource_mem_percent = vg_strdup("nvidia.com/gpumem-percentage"),
		.resource_cores = vg_strdup("nvidia.com/gpucores"),
		.resource_priority = vg_strdup("nvidia.com/priority"),
		.mem_factor = 1,
		.core_policy = vg_strdup(""),
		.runtime_class = vg_strdup(""),
		.to_allocate = VG_ANNO_POD_TO_ALLOCATE,
		.allocated = VG_ANNO_POD_ALLOCATED,
	};
}

void vg_classes_release(struct vg_classes *classes)
{
	if (!classes)
		return;
	for (size_t i = 0; i < classes->count; i++) {
		struct vg_class *class = &classes->item[i];

		free(class->word);
		free(class->resource_count);
		free(class->resource_mem);
		free(class->resource_mem_percent);
		free(class->resource_cores);
		free(class->resource_priority);
		free(class->core_policy);
		free(class->runtime_class);
	}
	*classes = (struct vg_classes){ 0 };
}

bool vg_classes_have_resource(const struct vg_classes *classes, const char *resource)
{
	if (!resource[0])
		return false;
	for (size_t i = 0; i < classes->count; i++) {
		const struct vg_class *class = &classes->item[i];

		if (vg_streq(resource, class->resource_count) ||
		    vg_streq(resource, class->resource_mem) ||
		    vg_streq(resource, class->resource_mem_percent) ||
		    vg_streq(resource, class->resource_cores) ||
		    vg_streq(resource, class->resource_priority))
			return true;
	}
	return false;
}
