/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A device class: one kind of accelerator, as data. Resource names, defaults and rules come from the
 * device configuration file (src/config); the vendor word is what stands in allocation annotations.
 * NVIDIA is class 0; a further vendor is a further row.
 */
#ifndef VGPU_DEVICE_CLASS_H
#define VGPU_DEVICE_CLASS_H

#include <stdbool.h>
#include <stdint.h>

#include "device/annotation.h"

#define VG_CLASSES_MAX 16

/* All texts are owned by the class; an empty text never matches anything. */
struct vg_class {
	char *word; /* "NVIDIA" */

	/* Resource names as they stand in a container's limits and requests. */
	char *resource_count;
	char *resource_mem; /* MiB × mem_factor */
	char *resource_mem_percent;
	char *resource_cores; /* percent of one card */
	char *resource_priority;

	int32_t default_count;   /* cards, when only memory or cores are asked for; 0 = off */
	int32_t default_mem_mib; /* when neither memory nor percentage is given; 0 = the whole card */
	int32_t default_cores;   /* percent */
	int32_t mem_factor;      /* MiB per unit of resource_mem; at least 1 */

	bool overwrite_env;  /* webhook: NVIDIA_VISIBLE_DEVICES=none where no card is asked for */
	char *core_policy;   /* "default", "force", "disable" or "" */
	char *runtime_class; /* "" = leave alone */

	enum vg_annotation to_allocate;
	enum vg_annotation allocated;
};

struct vg_classes {
	struct vg_class item[VG_CLASSES_MAX];
	size_t count;
};

/* One NVIDIA class with the defaults of HAMi's code (not of its chart): resource names nvidia.com/gpu,
 * gpumem, gpumem-percentage, gpucores, priority. */
void vg_classes_init(struct vg_classes *classes);
void vg_classes_release(struct vg_classes *classes);

/* Whether a resource of that name belongs to any class. */
bool vg_classes_have_resource(const struct vg_classes *classes, const char *resource);

#endif
