/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Virtual memory management: address ranges, physical memory behind handles, mappings. Physical memory
 * is a stretch of a memory file, so that one handle can be mapped in several places; a handle that may
 * be exported has a file of its own, whose descriptor is what other processes get.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "cuda_driver.h"

#define GRANULARITY FAKE_PAGE
#define LABEL_MAGIC 0x66616b654d454d31ull
#define LABEL_BYTES 4096u

/* Behind the data of a file that other processes get. */
struct label {
	uint64_t magic;
	uint64_t bytes;
	uint64_t generation;
	uint32_t object;
	uint32_t unit;
	CUmemAllocationProp prop;
};

struct CUphysical_st {
	struct fake_object object;
	uint64_t bytes;
	uint32_t device;
	bool on_device;
	CUmemAllocationProp prop;
	uint32_t handles; /* cuMemCreate, cuMemImport…, cuMemRetain… */
	uint32_t mappings;
	int fd;
	bool own_fd;
	off_t offset;
	bool shared; /* exported or imported: the bytes belong to an object of the state */
	uint32_t share;
	uint64_t generation;
};

struct reservation {
	uint64_t base, bytes;
	struct reservation *next;
};

static struct reservation *reservations;
static int memory_fd = -1;
static off_t memory_end;
/* How often this process holds each object: the state counts processes. */
static uint32_t held[FAKE_OBJECTS_MAX];

/* ---- address ranges ---- */

static const struct reservation *reservation_of(uint64_t base, uint64_t bytes)
{
	for (const struct reservation *at = reservations; at; at = at->next) {
		if (base >= at->base && bytes <= at->bytes && base - at->base <= at->bytes - bytes)
			return at;
	}
	return NULL;
}

FAKE_CUDA(cuMemAddressReserve, FAKE_INIT,
	  (CUdeviceptr * pointer, size_t bytes, size_t alignment, CUdeviceptr address,
	   unsigned long long flags),
	  (pointer, bytes, alignment, address, flags))
{
	struct reservation *range;
	unsigned char *data, *aligned;
	uint64_t room;

	if (!pointer || !bytes || bytes % GRANULARITY || flags ||
	    (alignment & (alignment - 1)) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (alignment < GRANULARITY)
		alignment = GRANULARITY;
	if (bytes > 1ull << 46 || alignment > 1ull << 40)
		return CUDA_ERROR_OUT_OF_MEMORY;
	room = bytes + alignment;
	data = mmap((void *)(uintptr_t)address, room, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (data == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	aligned = data + (alignment - (uintptr_t)data % alignment) % alignment;
	if (aligned != data)
		munmap(data, (size_t)(aligned - data));
	munmap(aligned + bytes, (size_t)(data + room - (aligned + bytes)));
	range = vg_new(sizeof(*range));
	*range = (struct reservation){ (uint64_t)(uintptr_t)aligned, bytes, reservations };
	reservations = range;
	*pointer = range->base;
	return CUDA_SUCCESS;
}

static bool mapped_within(uint64_t base, uint64_t bytes)
{
	for (const struct fake_alloc *alloc = fake_allocs(); alloc; alloc = alloc->next) {
		if (alloc->kind == FAKE_MEM_MAPPED && alloc->base < base + bytes &&
		    base < alloc->base + alloc->bytes)
			return true;
	}
	return false;
}

FAKE_CUDA(cuMemAddressFree, FAKE_INIT, (CUdeviceptr pointer, size_t bytes), (pointer, bytes))
{
	for (struct reservation **at = &reservations; *at; at = &(*at)->next) {
		struct reservation *range = *at;

		if (range->base != pointer || range->bytes != bytes)
			continue;
		if (mapped_within(pointer, bytes))
			return CUDA_ERROR_INVALID_VALUE;
		munmap((void *)(uintptr_t)pointer, bytes);
		*at = range->next;
		free(range);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- physical memory ---- */

static CUresult prop_check(const CUmemAllocationProp *prop, uint32_t *ret_device,
			   bool *ret_on_device)
{
	if (!prop || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_device = 0;
	switch (prop->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (!fake_device(prop->location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		*ret_device = (uint32_t)prop->location.id;
		*ret_on_device = true;
		return CUDA_SUCCESS;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
		*ret_on_device = false;
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}

FAKE_CUDA(cuMemGetAllocationGranularity, FAKE_INIT,
	  (size_t * granularity, const CUmemAllocationProp *prop,
	   CUmemAllocationGranularity_flags option),
	  (granularity, prop, option))
{
	uint32_t device;
	bool on_device;
	CUresult rc = prop_check(prop, &device, &on_device);

	if (!granularity || option < 0 || option > CU_MEM_ALLOC_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*granularity = GRANULARITY;
	return rc;
}

/* A stretch of the process's memory file, or a file of its own. */
static bool back(struct CUphysical_st *physical)
{
	if (physical->prop.requestedHandleTypes) {
		physical->fd = memfd_create("fake device memory", MFD_CLOEXEC);
		physical->own_fd = true;
		return physical->fd >= 0 &&
		       ftruncate(physical->fd, (off_t)(physical->bytes + LABEL_BYTES)) == 0;
	}
	if (memory_fd < 0)
		memory_fd = memfd_create("fake device memory", MFD_CLOEXEC);
	if (memory_fd < 0 || ftruncate(memory_fd, memory_end + (off_t)physical->bytes) < 0)
		return false;
	physical->fd = memory_fd;
	physical->offset = memory_end;
	memory_end += (off_t)physical->bytes;
	return true;
}

static void physical_put(struct CUphysical_st *physical)
{
	struct fake_device *device = &fake.device[physical->device];

	if (physical->handles || physical->mappings)
		return;
	if (physical->own_fd && physical->fd >= 0)
		close(physical->fd);
	else if (!physical->own_fd)
		/* Places in the file are not used again: addresses in it are plenty. */
		fallocate(physical->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			  physical->offset, (off_t)physical->bytes);
	if (physical->shared) {
		if (--held[physical->share] == 0)
			fake_object_release(fake.state, physical->share);
	} else if (physical->on_device) {
		fake_uncharge(device, physical->bytes);
	}
	fake_object_free(physical);
}

static struct CUphysical_st *physical_of(CUmemGenericAllocationHandle handle)
{
	struct CUphysical_st *physical = (struct CUphysical_st *)(uintptr_t)handle;

	return fake_is(physical, FAKE_PHYSICAL) ? physical : NULL;
}

FAKE_CUDA(cuMemCreate, FAKE_INIT,
	  (CUmemGenericAllocationHandle * handle, size_t bytes, const CUmemAllocationProp *prop,
	   unsigned long long flags),
	  (handle, bytes, prop, flags))
{
	struct CUphysical_st *physical;
	uint32_t device;
	bool on_device;
	CUresult rc = prop_check(prop, &device, &on_device);

	if (!handle || !bytes || bytes % GRANULARITY || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc != CUDA_SUCCESS)
		return rc;
	if (prop->requestedHandleTypes & ~CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (bytes > 1ull << 46 || (on_device && !fake_charge(&fake.device[device], bytes)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	physical = fake_object_new(sizeof(*physical), FAKE_PHYSICAL, NULL);
	physical->bytes = bytes;
	physical->device = device;
	physical->on_device = on_device;
	physical->prop = *prop;
	if (!back(physical)) {
		physical_put(physical);
		return CUDA_ERROR_OPERATING_SYSTEM;
	}
	physical->handles = 1;
	*handle = (uint64_t)(uintptr_t)physical;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemRelease, FAKE_INIT, (CUmemGenericAllocationHandle handle), (handle))
{
	struct CUphysical_st *physical = physical_of(handle);

	if (!physical || !physical->handles)
		return CUDA_ERROR_INVALID_VALUE;
	physical->handles--;
	physical_put(physical);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemRetainAllocationHandle, FAKE_INIT,
	  (CUmemGenericAllocationHandle * handle, void *address), (handle, address))
{
	struct fake_alloc *alloc = fake_alloc_find((uint64_t)(uintptr_t)address);

	if (!handle || !alloc || alloc->kind != FAKE_MEM_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	alloc->physical->handles++;
	*handle = (uint64_t)(uintptr_t)alloc->physical;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemGetAllocationPropertiesFromHandle, FAKE_INIT,
	  (CUmemAllocationProp * prop, CUmemGenericAllocationHandle handle), (prop, handle))
{
	struct CUphysical_st *physical = physical_of(handle);

	if (!prop || !physical)
		return CUDA_ERROR_INVALID_VALUE;
	*prop = physical->prop;
	return CUDA_SUCCESS;
}

/* ---- mappings ---- */

FAKE_CUDA(cuMemMap, FAKE_INIT,
	  (CUdeviceptr pointer, size_t bytes, size_t offset, CUmemGenericAllocationHandle handle,
	   unsigned long long flags),
	  (pointer, bytes, offset, handle, flags))
{
	struct CUphysical_st *physical = physical_of(handle);
	struct fake_alloc alloc = { .kind = FAKE_MEM_MAPPED, .base = pointer, .bytes = bytes };

	if (!bytes || bytes % GRANULARITY || pointer % GRANULARITY || flags || !physical ||
	    !reservation_of(pointer, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* All of it, or nothing. */
	if (offset || bytes != physical->bytes)
		return CUDA_ERROR_NOT_SUPPORTED;
	if (mapped_within(pointer, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* Out of reach until access is granted. */
	if (mmap((void *)(uintptr_t)pointer, bytes, PROT_NONE,
		 MAP_SHARED | MAP_FIXED | MAP_NORESERVE, physical->fd,
		 physical->offset) == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	physical->mappings++;
	alloc.physical = physical;
	alloc.device = physical->device;
	fake_alloc_add(&alloc);
	return CUDA_SUCCESS;
}

/* The range must cover mappings as they were made. */
static bool covers_whole(uint64_t base, uint64_t bytes)
{
	for (uint64_t at = base; at < base + bytes;) {
		const struct fake_alloc *alloc = fake_alloc_find(at);

		if (!alloc || alloc->kind != FAKE_MEM_MAPPED || alloc->base != at ||
		    alloc->bytes > base + bytes - at)
			return false;
		at += alloc->bytes;
	}
	return true;
}

FAKE_CUDA(cuMemUnmap, FAKE_INIT | FAKE_UNSAFE, (CUdeviceptr pointer, size_t bytes),
	  (pointer, bytes))
{
	if (bytes && reservation_of(pointer, bytes) && !mapped_within(pointer, bytes))
		return CUDA_SUCCESS;
	if (!bytes || !covers_whole(pointer, bytes))
		return CUDA_ERROR_INVALID_VALUE;
	/* What still runs may use it. */
	for (uint32_t i = 0; i < fake.devices; i++)
		fake_device_wait(i);
	for (uint64_t at = pointer; at < pointer + bytes;) {
		struct fake_alloc *alloc = fake_alloc_find(at);
		struct CUphysical_st *physical;

		if (!alloc || alloc->kind != FAKE_MEM_MAPPED)
			return CUDA_ERROR_INVALID_VALUE;
		physical = alloc->physical;
		mmap((void *)(uintptr_t)at, alloc->bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		at += alloc->bytes;
		fake_alloc_remove(alloc);
		physical->mappings--;
		physical_put(physical);
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemSetAccess, FAKE_INIT,
	  (CUdeviceptr pointer, size_t bytes, const CUmemAccessDesc *access, size_t count),
	  (pointer, bytes, access, count))
{
	bool readable = false, writable = false;

	if (!bytes || !access || !count || pointer % GRANULARITY || bytes % GRANULARITY)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (access[i].location.type == CU_MEM_LOCATION_TYPE_DEVICE &&
		    !fake_device(access[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		readable |= access[i].flags != CU_MEM_ACCESS_FLAGS_PROT_NONE;
		writable |= access[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	}
	for (uint64_t at = pointer; at < pointer + bytes;) {
		const struct fake_alloc *alloc = fake_alloc_find(at);

		if (!alloc || alloc->kind != FAKE_MEM_MAPPED)
			return CUDA_ERROR_INVALID_VALUE;
		at = alloc->base + alloc->bytes;
	}
	for (uint64_t at = pointer; at < pointer + bytes;) {
		struct fake_alloc *alloc = fake_alloc_find(at);

		alloc->flags = writable   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
			       : readable ? CU_MEM_ACCESS_FLAGS_PROT_READ
					  : CU_MEM_ACCESS_FLAGS_PROT_NONE;
		mprotect((void *)(uintptr_t)alloc->base, alloc->bytes,
			 (readable ? PROT_READ : 0) | (writable ? PROT_WRITE : 0));
		at = alloc->base + alloc->bytes;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemGetAccess, FAKE_INIT,
	  (unsigned long long *flags, const CUmemLocation *place, CUdeviceptr pointer),
	  (flags, place, pointer))
{
	const struct fake_alloc *alloc = fake_alloc_find(pointer);

	if (!flags || !place || !alloc || alloc->kind != FAKE_MEM_MAPPED)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = alloc->flags;
	return CUDA_SUCCESS;
}

/* ---- between processes ---- */

static bool label_io(struct CUphysical_st *physical, struct label *label, bool write_it)
{
	ssize_t done = write_it
			       ? pwrite(physical->fd, label, sizeof(*label), (off_t)physical->bytes)
			       : pread(physical->fd, label, sizeof(*label), (off_t)physical->bytes);

	return done == (ssize_t)sizeof(*label);
}

FAKE_CUDA(cuMemExportToShareableHandle, FAKE_INIT,
	  (void *shareable, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
	   unsigned long long flags),
	  (shareable, handle, type, flags))
{
	struct CUphysical_st *physical = physical_of(handle);
	int fd;

	if (!shareable || !physical || flags || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
	    !(physical->prop.requestedHandleTypes & type))
		return CUDA_ERROR_INVALID_VALUE;
	if (!physical->shared && physical->on_device) {
		struct label label = {
			.magic = LABEL_MAGIC,
			.bytes = physical->bytes,
			.unit = fake.device[physical->device].unit,
			.prop = physical->prop,
		};

		if (fake_object_create(fake.state, label.unit, physical->bytes, &physical->share,
				       &physical->generation) < 0)
			return CUDA_ERROR_OPERATING_SYSTEM;
		physical->shared = true;
		held[physical->share] = 1;
		label.object = physical->share;
		label.generation = physical->generation;
		label_io(physical, &label, true);
	}
	fd = dup(physical->fd);
	if (fd < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	*(int *)shareable = fd;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemImportFromShareableHandle, FAKE_INIT,
	  (CUmemGenericAllocationHandle * handle, void *shareable, CUmemAllocationHandleType type),
	  (handle, shareable, type))
{
	struct CUphysical_st *physical;
	struct label label;
	off_t end;
	int fd;

	if (!handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return CUDA_ERROR_INVALID_VALUE;
	fd = dup((int)(intptr_t)shareable);
	end = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
	if (end < (off_t)LABEL_BYTES) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_INVALID_VALUE;
	}
	physical = fake_object_new(sizeof(*physical), FAKE_PHYSICAL, NULL);
	physical->fd = fd;
	physical->own_fd = true;
	physical->bytes = (uint64_t)end - LABEL_BYTES;
	if (!label_io(physical, &label, false) || label.magic != LABEL_MAGIC ||
	    label.bytes != physical->bytes || label.object >= FAKE_OBJECTS_MAX ||
	    !fake_object_hold(fake.state, label.object, label.generation)) {
		physical_put(physical);
		return CUDA_ERROR_INVALID_VALUE;
	}
	physical->shared = true;
	physical->share = label.object;
	physical->generation = label.generation;
	held[label.object]++;
	physical->prop = label.prop;
	/* The same card may have another number here. */
	for (uint32_t i = 0; i < fake.devices; i++) {
		if (fake.device[i].unit == label.unit)
			physical->device = i;
	}
	physical->prop.location.id = (int)physical->device;
	physical->handles = 1;
	*handle = (uint64_t)(uintptr_t)physical;
	return CUDA_SUCCESS;
}
