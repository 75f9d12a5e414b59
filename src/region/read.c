/* SPDX-License-Identifier: Apache-2.0 */
#include "region/read.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* No container holds more than this; larger numbers are damage. Keeps all sums below 2^64. */
static const uint64_t BYTES_MAX = 1ull << 52;

static uint64_t bounded(uint64_t value, uint64_t max)
{
	return value > max ? max : value;
}

/* Copies text up to its end or the first byte that is not printable ASCII. */
static void copy_text(char *to, size_t size, const char *from, size_t from_size)
{
	size_t n = 0;

	while (n < from_size && n < size - 1 && from[n] >= 0x20 && from[n] < 0x7f) {
		to[n] = from[n];
		n++;
	}
	to[n] = '\0';
}

static struct vgpu_region_memory checked(const struct vgpu_region_memory *m)
{
	return (struct vgpu_region_memory){
		.context = bounded(m->context, BYTES_MAX),
		.module = bounded(m->module, BYTES_MAX),
		.data = bounded(m->data, BYTES_MAX),
		.offset = bounded(m->offset, BYTES_MAX),
		.total = bounded(m->total, BYTES_MAX),
	};
}

static void add(struct vgpu_region_memory *sum, const struct vgpu_region_memory *m)
{
	sum->context += m->context;
	sum->module += m->module;
	sum->data += m->data;
	sum->offset += m->offset;
	sum->total += m->total;
}

static int decode_slot(const char *bytes, const struct vgpu_region_slot_ext *ext, int index,
		       struct region_view *view)
{
	struct region_view_process *process;
	struct vgpu_region_slot slot;

	memcpy(&slot, bytes + offsetof(struct vgpu_region, slot) + (size_t)index * sizeof(slot),
	       sizeof(slot));
	if (slot.status == VGPU_SLOT_FREE || slot.pid <= 0)
		return 0;
	process = &view->process[view->process_count++];
	*process = (struct region_view_process){
		.pid = slot.pid,
		.host_pid = slot.host_pid > 0 ? slot.host_pid : 0,
		.status = slot.status == VGPU_SLOT_SUSPENDED ? VGPU_SLOT_SUSPENDED
							     : VGPU_SLOT_RUNNING,
		.suspend = ext && ext->suspend != 0,
	};
	for (int d = 0; d < view->device_count; d++) {
		process->used[d] = checked(&slot.used[d]);
		process->sm[d] = bounded(slot.util[d].sm, 100);
		add(&view->device[d].used, &process->used[d]);
		view->device[d].sm = bounded(view->device[d].sm + process->sm[d], 100);
	}
	return 1;
}

static void decode_ext(const char *bytes, struct region_view *view)
{
	const char *at = bytes + VGPU_REGION_EXT_OFFSET;

	memcpy(&view->flags, at + offsetof(struct vgpu_region_ext, flags), sizeof(view->flags));
	copy_text(view->message, sizeof(view->message),
		  at + offsetof(struct vgpu_region_ext, message), VGPU_REGION_MESSAGE);
	for (int d = 0; d < view->device_count; d++) {
		struct vgpu_region_device device;

		memcpy(&device,
		       at + offsetof(struct vgpu_region_ext, device) + (size_t)d * sizeof(device),
		       sizeof(device));
		view->device[d].aggregate = bounded(device.used, BYTES_MAX);
		view->device[d].peak = bounded(device.peak, BYTES_MAX);
		view->device[d].refused = device.refused;
		view->device[d].physical = bounded(device.physical, BYTES_MAX);
		view->device[d].charged_ns = device.charged_ns;
		view->device[d].waited_ns = device.waited_ns;
		view->device[d].state = device.state;
	}
}

int region_decode(const void *bytes, size_t size, struct region_view *ret)
{
	/* Large, but every caller has one anyway: built in place, and only on success. */
	const char *at = bytes;
	struct {
		int32_t magic;
		uint32_t major, minor;
	} head;
	struct {
		uint64_t magic;
		uint32_t version, bytes;
	} ext = { 0 };
	uint64_t count;
	int32_t slots;

	if (size < sizeof(head))
		return -ENODATA;
	memcpy(&head, at, sizeof(head));
	if (head.magic != VGPU_REGION_MAGIC)
		return -EINVAL;
	if (head.major != VGPU_REGION_MAJOR || head.minor != VGPU_REGION_MINOR)
		return -EPROTONOSUPPORT;
	if (size < VGPU_REGION_BASE_BYTES)
		return -ENODATA;
	memset(ret, 0, sizeof(*ret));
	ret->minor = head.minor;
	if (size >= VGPU_REGION_FILE_BYTES) {
		memcpy(&ext, at + VGPU_REGION_EXT_OFFSET, sizeof(ext));
		ret->extended = ext.magic == VGPU_REGION_EXT_MAGIC &&
				ext.version == VGPU_REGION_EXT_VERSION &&
				ext.bytes == sizeof(struct vgpu_region_ext);
	}
#define FIELD(to, name) memcpy((to), at + offsetof(struct vgpu_region, name), sizeof(*(to)))
	FIELD(&count, device_count);
	ret->device_count = (int)bounded(count, VGPU_REGION_DEVICES);
	FIELD(&ret->priority, priority);
	FIELD(&ret->utilization_switch, utilization_switch);
	FIELD(&ret->recent_kernel, recent_kernel);
	FIELD(&ret->last_kernel_time, last_kernel_time);
	FIELD(&slots, slot_count);
#undef FIELD
	for (int d = 0; d < ret->device_count; d++) {
		uint64_t value;

		copy_text(ret->device[d].uuid, sizeof(ret->device[d].uuid),
			  at + offsetof(struct vgpu_region, uuid) + (size_t)d * VGPU_REGION_UUID,
			  VGPU_REGION_UUID);
		memcpy(&value, at + offsetof(struct vgpu_region, limit) + (size_t)d * 8, 8);
		ret->device[d].limit = bounded(value, BYTES_MAX);
		memcpy(&value, at + offsetof(struct vgpu_region, sm_limit) + (size_t)d * 8, 8);
		ret->device[d].sm_limit = bounded(value, 100);
	}
	if (ret->extended)
		decode_ext(at, ret);
	for (int i = 0; i < slots && i < VGPU_REGION_SLOTS; i++) {
		struct vgpu_region_slot_ext slot;

		if (ret->extended)
			memcpy(&slot,
			       at + VGPU_REGION_EXT_OFFSET +
				       offsetof(struct vgpu_region_ext, slot) +
				       (size_t)i * sizeof(slot),
			       sizeof(slot));
		decode_slot(at, ret->extended ? &slot : NULL, i, ret);
	}
	return 0;
}

int region_read(int dirfd, const char *path, void *buffer, size_t buffer_size,
		struct region_view *ret)
{
	size_t have = 0;
	struct stat st;
	int fd, e = 0;

	/* O_NONBLOCK: a tenant may have put a pipe there. */
	fd = openat(dirfd, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) < 0)
		e = -errno;
	else if (!S_ISREG(st.st_mode))
		e = -EINVAL;
	while (e == 0 && have < buffer_size) {
		ssize_t n = pread(fd, (char *)buffer + have, buffer_size - have, (off_t)have);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			e = -errno;
		if (n <= 0)
			break;
		have += (size_t)n;
	}
	close(fd);
	return e < 0 ? e : region_decode(buffer, have, ret);
}
