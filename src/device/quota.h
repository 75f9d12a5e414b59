/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a v1.ResourceQuota that is about cards: "limits.<resource>" in spec.hard for the memory and
 * cores resources of the device classes. Kubernetes itself counts no such limit of an extended resource
 * ("requests.<resource>" is what it counts, and is no business of ours).
 */
#ifndef VGPU_DEVICE_QUOTA_H
#define VGPU_DEVICE_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/allocation.h"
#include "device/class.h"

struct json_t;

#define VG_QUOTA_NO_LIMIT INT64_MAX

/* One object. A namespace may have several. Texts live in the arena that the decoder was given. */
struct vg_quota_info {
	const char *namespace;
	const char *name;
	const char *uid;
	uint64_t resource_version;
	/* By class: MiB and percent, VG_QUOTA_NO_LIMIT where the object says nothing. 0 is a limit. */
	struct vg_total hard[VG_CLASSES_MAX];
	/* NULL, or what of it does not work as its writer may think; the rest counts. */
	const char *problem;
};

/*
 * Decodes a v1.ResourceQuota. A limit that is no whole number, or too large for one, is left out and named
 * in ret_quota->problem; so is, without being left out, what looks like bytes where a count of MiB is
 * meant. `object` may be given back afterwards. -EINVAL: not a quota; -E2BIG: over a limit of
 * base/limits.h.
 */
int vg_quota_decode(const struct json_t *object, const struct vg_classes *classes,
		    struct vg_arena *arena, struct vg_quota_info *ret_quota, struct vg_err *err);

/* Nothing is limited. */
void vg_quota_unlimited(struct vg_total hard[VG_CLASSES_MAX]);
bool vg_quota_limits(const struct vg_total hard[VG_CLASSES_MAX]);

#endif
