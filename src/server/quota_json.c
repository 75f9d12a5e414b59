/* SPDX-License-Identifier: Apache-2.0 */
#include "server/quota_json_internal.h"

static void put_limit(struct vg_out *out, const char *key, int64_t used, int64_t hard,
		      const char *by)
{
	vg_out_key(out, key);
	vg_out_open(out, '{');
	vg_out_member_i64(out, "used", used);
	if (hard != VG_QUOTA_NO_LIMIT) {
		vg_out_member_i64(out, "limit", hard);
		vg_out_member_text(out, "quota", by);
	}
	vg_out_close(out, '}');
}

void vg_quota_json(const struct vg_space_copy *space, const struct vg_classes *classes,
		   struct vg_out *out)
{
	for (size_t i = 0; i < classes->count; i++) {
		const struct vg_total *hard = &space->quota.hard[i];
		const struct vg_total *used = &space->quota.used[i];

		if (hard->mem_mib == VG_QUOTA_NO_LIMIT && hard->cores == VG_QUOTA_NO_LIMIT &&
		    !used->mem_mib && !used->cores)
			continue;
		vg_out_open(out, '{');
		vg_out_member_text(out, "namespace", space->namespace);
		vg_out_member_text(out, "class", classes->item[i].word);
		put_limit(out, "memMiB", used->mem_mib, hard->mem_mib, space->mem_by[i]);
		put_limit(out, "cores", used->cores, hard->cores, space->cores_by[i]);
		vg_out_close(out, '}');
	}
}
