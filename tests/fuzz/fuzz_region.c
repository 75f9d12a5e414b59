/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The reader of shared regions gets whatever a tenant writes. The input is laid over a region at a
 * few places that matter (a whole one would be two megabytes of mostly zeroes).
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "region/read.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char file[REGION_READ_BUFFER];
	static struct region_view view;
	static const size_t places[] = {
		0,
		offsetof(struct vgpu_region, uuid),
		offsetof(struct vgpu_region, limit),
		offsetof(struct vgpu_region, slot),
		offsetof(struct vgpu_region, slot_count),
		VGPU_REGION_EXT_OFFSET,
		VGPU_REGION_EXT_OFFSET + offsetof(struct vgpu_region_ext, device),
	};
	struct vgpu_region *region = (struct vgpu_region *)(void *)file;
	size_t whole = sizeof(file), at = 0;

	if (size < 2)
		return 0;
	memset(file, 0, sizeof(file));
	region->magic = VGPU_REGION_MAGIC;
	region->major = VGPU_REGION_MAJOR;
	region->minor = VGPU_REGION_MINOR;
	region->device_count = 2;
	region->slot_count = 3;
	/* The first byte says how much of the file there is, the rest is spread over the places. */
	whole = data[0] < 250 ? sizeof(file) * data[0] / 200 : sizeof(file);
	if (whole > sizeof(file))
		whole = sizeof(file);
	data++;
	size--;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && at < size; i++) {
		size_t n = size / (sizeof(places) / sizeof(places[0])) + 1;

		if (n > size - at)
			n = size - at;
		if (n > sizeof(file) - places[i])
			n = sizeof(file) - places[i];
		memcpy(file + places[i], data + at, n);
		at += n;
	}
	if (region_decode(file, whole, &view) == 0) {
		if (view.device_count < 0 || view.device_count > VGPU_REGION_DEVICES ||
		    view.process_count < 0 || view.process_count > VGPU_REGION_SLOTS)
			abort();
		for (int d = 0; d < view.device_count; d++) {
			if (view.device[d].sm > 100 || view.device[d].sm_limit > 100 ||
			    strlen(view.device[d].uuid) >= VGPU_REGION_UUID)
				abort();
		}
	}
	return 0;
}
