/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading a region from outside its container. The file belongs to the tenant: it is opened without
 * following links, copied with pread() (a mapping could be truncated under us), and every number is
 * checked before it is used. Knows layout 1.2, with or without our extension.
 */
#ifndef VGPU_REGION_READ_H
#define VGPU_REGION_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "vgpu/region.h"

struct region_view_process {
	int32_t pid;
	int32_t host_pid;
	int32_t status; /* enum vgpu_slot_status */
	bool suspend;   /* asked to stop */
	struct vgpu_region_memory used[VGPU_REGION_DEVICES];
	uint64_t sm[VGPU_REGION_DEVICES]; /* percent, at most 100 */
};

struct region_view_device {
	char uuid[VGPU_REGION_UUID]; /* printable, terminated */
	uint64_t limit;
	uint64_t sm_limit;              /* 0..100 */
	struct vgpu_region_memory used; /* sums over the processes */
	uint64_t sm;
	/* From the extension; 0 without one. */
	uint64_t aggregate;
	uint64_t peak;
	uint64_t refused;
	uint64_t physical;
	uint64_t charged_ns;
	uint64_t waited_ns;
	uint32_t state;
};

struct region_view {
	uint32_t minor;
	bool extended;
	int device_count; /* 0..VGPU_REGION_DEVICES */
	int process_count;
	int32_t priority;
	int32_t utilization_switch;
	int32_t recent_kernel;
	uint64_t last_kernel_time;
	uint32_t flags;
	char message[VGPU_REGION_MESSAGE];
	struct region_view_device device[VGPU_REGION_DEVICES];
	struct region_view_process process[VGPU_REGION_SLOTS];
};

/*
 * Decodes a copy of a region. 0, or -EINVAL (not a region), -EPROTONOSUPPORT (another layout), -ENODATA
 * (too short). bytes may be anything. *ret is only written on success.
 */
int region_decode(const void *bytes, size_t size, struct region_view *ret);

/*
 * Opens path below the directory dirfd (or AT_FDCWD) and decodes it, using buffer (at least
 * REGION_READ_BUFFER bytes) as working space. -errno of the file, or of region_decode().
 */
#define REGION_READ_BUFFER VGPU_REGION_FILE_BYTES
int region_read(int dirfd, const char *path, void *buffer, size_t buffer_size,
		struct region_view *ret);

#endif
