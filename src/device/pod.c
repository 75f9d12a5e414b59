/* SPDX-License-Identifier: Apache-2.0 */
#include "device/pod.h"

#include "base/str.h"

const char *vg_container_resource(const struct vg_container *container, const char *resource)
{
	if (!resource[0])
		return NULL;
	for (size_t i = 0; i < container->resource_count; i++) {
		const struct vg_resource *entry = &container->resources[i];

		if (vg_streq(entry->name, resource))
			return entry->limit ? entry->limit : entry->request;
	}
	return NULL;
}
