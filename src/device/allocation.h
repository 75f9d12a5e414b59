/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod was given, and its text in the annotations.
 *
 *	list      = *( container ";" )   one per container: init containers first, then app containers
 *	container = *( device ":" )      empty = no device of this class
 *	device    = uuid "," word "," mem "," cores       mem in MiB, cores in percent
 *
 * The index of a container in the list is its index in the pod, always.
 */
#ifndef VGPU_DEVICE_ALLOCATION_H
#define VGPU_DEVICE_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/class.h"

struct vg_grant {
	const char *uuid;
	int32_t mem_mib;
	int32_t cores;      /* percent */
	uint16_t container; /* index in the pod, init containers first */
	uint8_t class_index;
};

/* Grants sorted by container; within a container in the order in which devices appear to it. */
struct vg_allocation {
	struct vg_grant *grants;
	size_t grant_count;
	size_t container_count;
};

/*
 * Encodes the grants of one class: exactly container_count segments. In the arena.
 */
char *vg_allocation_encode(const struct vg_allocation *allocation, const struct vg_class *class,
			   uint8_t class_index, struct vg_arena *arena);

/*
 * Decodes one annotation text and appends its grants to `allocation` (zeroed before the first call).
 * A trailing ";" does not count as one more container. Pieces without a comma are skipped, fields
 * beyond the fourth ignored, as other readers of this format do; anything else that is malformed
 * (negative numbers and more than base/limits.h allows included) is -EINVAL with the place in the text,
 * and `allocation` is left as it was. Empty segments beyond the limit of containers are dropped.
 * A "[template-slot]" suffix of the UUID, which schedulers up to 2.9 wrote for MIG, is taken off.
 */
int vg_allocation_decode(const char *text, uint8_t class_index, struct vg_arena *arena,
			 struct vg_allocation *allocation, struct vg_err *err);

/* What one card carries for a pod. */
struct vg_charge {
	const char *uuid;
	int32_t mem_mib;
	int32_t cores;
	int32_t slots;
};

/*
 * What the pod's cards must hold for it: app containers and sidecars add up, init containers run one
 * after the other and beside the sidecars that started before them, so per card and per quantity the
 * larger of (sum of apps and sidecars) and (peak over init containers) counts. With init_done only
 * apps and sidecars count. kinds[] has kind_count entries (enum vg_container_kind); containers beyond
 * are apps, and so are all when the pod's spec is not known (NULL). A grant is a slot. Sums stop at
 * INT32_MAX. Sorted by UUID; UUIDs point into the allocation, the array is in the arena.
 */
size_t vg_allocation_charges(const struct vg_allocation *allocation, const uint8_t *kinds,
			     size_t kind_count, bool init_done, struct vg_arena *arena,
			     struct vg_charge **ret_charges);

/* What a pod, or all pods of a namespace, have of one class. */
struct vg_total {
	int64_t mem_mib;
	int64_t cores; /* percent */
};

/*
 * What the pod holds of each class, all its cards together, by the rule of vg_allocation_charges(): the
 * larger of (sum of apps and sidecars) and (peak over init containers). That may be less than the sum of
 * the charges, since an init container may be on another card than the apps; it is how Kubernetes counts
 * a pod against a quota. ret_totals has VG_CLASSES_MAX entries.
 */
void vg_allocation_totals(const struct vg_allocation *allocation, const uint8_t *kinds,
			  size_t kind_count, bool init_done, struct vg_total *ret_totals);

#endif
