/* SPDX-License-Identifier: Apache-2.0 */
/* What a namespace has and may have, in our own JSON. */
#ifndef VGPU_SERVER_QUOTA_JSON_INTERNAL_H
#define VGPU_SERVER_QUOTA_JSON_INTERNAL_H

#include "cluster/cluster.h"
#include "device/class.h"
#include "server/json_out_internal.h"

/*
 * Elements of an array that the caller opened, one per class that has a limit or is in use:
 * {"namespace","class","memMiB":{"used","limit","quota"},"cores":{…}}, limit and quota (the name of the
 * ResourceQuota that gives it) only where there is a limit.
 */
void vg_quota_json(const struct vg_space_copy *space, const struct vg_classes *classes,
		   struct vg_out *out);

#endif
