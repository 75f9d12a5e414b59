/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain memory: device, pitched, managed, page-locked host. Every allocation of any kind is in one
 * tree by address, so that a pointer into it can be asked about.
 *
 * Device memory is ordinary memory of the process that costs nothing until somebody touches it.
 */
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"
#include "cuda_driver.h"

/* Up to here an allocation shares a page of physical memory with others, if they fit. */
#define SMALL_BYTES FAKE_PAGE

static void *tree;
static struct fake_alloc *all;

/* ---- the tree ---- */

static int compare(const void *a, const void *b)
{
	const struct fake_alloc *left = a, *right = b;

	if (left->base + left->bytes <= right->base)
		return -1;
	return right->base + right->bytes <= left->base;
}

struct fake_alloc *fake_alloc_add(const struct fake_alloc *like)
{
	struct fake_alloc *alloc = vg_new(sizeof(*alloc));

	*alloc = *like;
	alloc->id = ++fake.next_id;
	alloc->previous = NULL;
	alloc->next = all;
	if (all)
		all->previous = alloc;
	all = alloc;
	tsearch(alloc, &tree, compare);
	return alloc;
}

void fake_alloc_remove(struct fake_alloc *alloc)
{
	tdelete(alloc, &tree, compare);
	if (alloc->previous)
		alloc->previous->next = alloc->next;
	else
		all = alloc->next;
	if (alloc->next)
		alloc->next->previous = alloc->previous;
	free(alloc);
}

struct fake_alloc *fake_alloc_find(uint64_t address)
{
	struct fake_alloc key = { .base = address, .bytes = 1 };
	struct fake_alloc **found = tfind(&key, &tree, compare);

	return found ? *found : NULL;
}

struct fake_alloc *fake_allocs(void)
{
	return all;
}

/* ---- physical memory ---- */

uint64_t fake_page_round(uint64_t bytes)
{
	return (bytes + FAKE_PAGE - 1) / FAKE_PAGE * FAKE_PAGE;
}

bool fake_charge(struct fake_device *device, uint64_t bytes)
{
	return fake_memory_take(fake.state, device->unit,
				fake_unit_capacity(&fake.machine, device->unit), bytes);
}

void fake_uncharge(struct fake_device *device, uint64_t bytes)
{
	fake_memory_give(fake.state, device->unit, bytes);
}

bool fake_arena_charge(void *device, uint64_t bytes)
{
	return fake_charge(device, bytes);
}

void fake_arena_uncharge(void *device, uint64_t bytes)
{
	fake_uncharge(device, bytes);
}

void fake_alloc_release(struct fake_alloc *alloc)
{
	struct fake_device *device = &fake.device[alloc->device];

	switch (alloc->kind) {
	case FAKE_MEM_POOL:
		alloc->pool->used_shown -= alloc->bytes;
		fake_pool_block_free(alloc->pool, alloc->pool_block);
		break;
	case FAKE_MEM_DEVICE:
	case FAKE_MEM_GLOBAL:
		if (alloc->block) {
			fake_arena_give(&alloc->context->small, alloc->block);
			fake_arena_trim(&alloc->context->small, 0);
		}
		break;
	default:
		break;
	}
	if (alloc->mapping)
		fake_unmap(alloc->mapping, alloc->mapping_bytes);
	if (alloc->charged_bytes)
		fake_uncharge(device, alloc->charged_bytes);
	if (alloc->share)
		close(alloc->share - 1);
	fake_alloc_remove(alloc);
}

/* ---- device memory ---- */

CUresult fake_device_alloc(struct CUctx_st *context, uint64_t bytes, enum fake_alloc_kind kind,
			   struct fake_alloc **ret_alloc)
{
	struct fake_device *device = &fake.device[context->device];
	struct fake_alloc alloc = {
		.kind = kind,
		.bytes = bytes,
		.context = context,
		.device = context->device,
	};

	/* More than any address space holds; also keeps the rounding from wrapping. */
	if (bytes > 1ull << 46)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (bytes <= SMALL_BYTES) {
		alloc.block = fake_arena_take(&context->small, bytes);
		if (!alloc.block)
			return CUDA_ERROR_OUT_OF_MEMORY;
		alloc.base = (uint64_t)(uintptr_t)fake_block_address(alloc.block);
	} else {
		alloc.charged_bytes = fake_page_round(bytes);
		if (!fake_charge(device, alloc.charged_bytes))
			return CUDA_ERROR_OUT_OF_MEMORY;
		alloc.mapping = fake_map(alloc.charged_bytes);
		alloc.mapping_bytes = alloc.charged_bytes;
		if (!alloc.mapping) {
			fake_uncharge(device, alloc.charged_bytes);
			return CUDA_ERROR_OUT_OF_MEMORY;
		}
		alloc.base = (uint64_t)(uintptr_t)alloc.mapping;
	}
	*ret_alloc = fake_alloc_add(&alloc);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemAlloc_v2, FAKE_CURRENT | FAKE_UNSAFE, (CUdeviceptr * pointer, size_t bytes),
	  (pointer, bytes))
{
	struct fake_alloc *alloc;
	CUresult rc;

	if (!pointer || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_device_alloc(fake_current(), bytes, FAKE_MEM_DEVICE, &alloc);
	if (rc == CUDA_SUCCESS)
		*pointer = alloc->base;
	return rc;
}

FAKE_CUDA(cuMemAllocPitch_v2, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUdeviceptr * pointer, size_t *pitch, size_t width, size_t height, unsigned int element),
	  (pointer, pitch, width, height, element))
{
	struct fake_alloc *alloc;
	size_t row, total;
	CUresult rc;

	if (!pointer || !pitch || !width || !height)
		return CUDA_ERROR_INVALID_VALUE;
	if (element != 4 && element != 8 && element != 16)
		return CUDA_ERROR_INVALID_VALUE;
	if (width > SIZE_MAX - FAKE_BLOCK_BYTES)
		return CUDA_ERROR_OUT_OF_MEMORY;
	row = (width + FAKE_BLOCK_BYTES - 1) / FAKE_BLOCK_BYTES * FAKE_BLOCK_BYTES;
	if (__builtin_mul_overflow(row, height, &total))
		return CUDA_ERROR_OUT_OF_MEMORY;
	rc = fake_device_alloc(fake_current(), total, FAKE_MEM_DEVICE, &alloc);
	if (rc == CUDA_SUCCESS) {
		*pointer = alloc->base;
		*pitch = row;
	}
	return rc;
}

/* Lives in host memory until a device prefetches it; then what fits counts on the device. */
FAKE_CUDA(cuMemAllocManaged, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUdeviceptr * pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
	struct CUctx_st *context = fake_current();
	struct fake_alloc alloc = {
		.kind = FAKE_MEM_MANAGED,
		.bytes = bytes,
		.context = context,
		.device = context->device,
		.flags = flags,
	};

	/* Attached to all devices, to the host, or to one stream. */
	if (!pointer || !bytes || (flags != 1 && flags != 2 && flags != 4))
		return CUDA_ERROR_INVALID_VALUE;
	if (bytes > 1ull << 46)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.mapping_bytes = fake_page_round(bytes);
	alloc.mapping = fake_map(alloc.mapping_bytes);
	if (!alloc.mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.base = (uint64_t)(uintptr_t)alloc.mapping;
	*pointer = fake_alloc_add(&alloc)->base;
	return CUDA_SUCCESS;
}

CUresult fake_managed_move(struct fake_alloc *alloc, CUmemLocation to)
{
	struct fake_device *target = NULL;

	if (to.type == CU_MEM_LOCATION_TYPE_DEVICE) {
		target = fake_device(to.id);
		if (!target)
			return CUDA_ERROR_INVALID_DEVICE;
	}
	if (alloc->charged_bytes)
		fake_uncharge(&fake.device[alloc->device], alloc->charged_bytes);
	alloc->charged_bytes = 0;
	if (target) {
		uint64_t capacity = fake_unit_capacity(&fake.machine, target->unit);
		uint64_t used = fake_memory_used(fake.state, target->unit);
		uint64_t fits = capacity > used ? (capacity - used) / FAKE_PAGE * FAKE_PAGE : 0;

		if (fits > alloc->mapping_bytes)
			fits = alloc->mapping_bytes;
		if (fits && fake_charge(target, fits))
			alloc->charged_bytes = fits;
		alloc->device = (uint32_t)to.id;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemFree_v2, FAKE_INIT | FAKE_UNSAFE, (CUdeviceptr pointer), (pointer))
{
	struct fake_alloc *alloc;
	CUresult rc;

	if (!pointer)
		return CUDA_SUCCESS;
	rc = fake_current_check();
	if (rc != CUDA_SUCCESS)
		return rc;
	alloc = fake_alloc_find(pointer);
	if (!alloc || alloc->base != pointer)
		return CUDA_ERROR_INVALID_VALUE;
	switch (alloc->kind) {
	case FAKE_MEM_DEVICE:
	case FAKE_MEM_MANAGED:
	case FAKE_MEM_POOL:
		break;
	case FAKE_MEM_GRAPH:
		return fake_graph_memory_free(alloc);
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	/* Nothing that runs may still use it. */
	fake_device_wait(alloc->device);
	alloc = fake_alloc_find(pointer);
	if (!alloc)
		return CUDA_ERROR_INVALID_VALUE;
	/* Measured: the pool goes on counting as used what was freed behind its back. */
	if (alloc->kind == FAKE_MEM_POOL)
		alloc->pool->used_shown += alloc->bytes;
	fake_alloc_release(alloc);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemGetInfo_v2, FAKE_CURRENT, (size_t * free_bytes, size_t *total), (free_bytes, total))
{
	struct fake_device *device = &fake.device[fake_current()->device];
	uint64_t capacity = fake_unit_capacity(&fake.machine, device->unit);
	uint64_t used = fake_memory_used(fake.state, device->unit);

	if (free_bytes)
		*free_bytes = capacity > used ? capacity - used : 0;
	if (total)
		*total = capacity;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemGetAddressRange_v2, FAKE_CURRENT,
	  (CUdeviceptr * base, size_t *bytes, CUdeviceptr pointer), (base, bytes, pointer))
{
	const struct fake_alloc *alloc = fake_alloc_find(pointer);

	if (!alloc)
		return CUDA_ERROR_NOT_FOUND;
	if (base)
		*base = alloc->base;
	if (bytes)
		*bytes = alloc->bytes;
	return CUDA_SUCCESS;
}

/*
 * ---- the interface of 32-bit addresses, before CUDA 3.2 ----
 *
 * It worked in contexts that the old cuCtxCreate() made, which no driver of today makes.
 */

FAKE_CUDA(cuMemAlloc, FAKE_CURRENT, (CUdeviceptr_v1 * pointer, unsigned int bytes),
	  (pointer, bytes))
{
	return CUDA_ERROR_INVALID_CONTEXT;
}

FAKE_CUDA(cuMemAllocPitch, FAKE_CURRENT,
	  (CUdeviceptr_v1 * pointer, unsigned int *pitch, unsigned int width, unsigned int height,
	   unsigned int element),
	  (pointer, pitch, width, height, element))
{
	return CUDA_ERROR_INVALID_CONTEXT;
}

FAKE_CUDA(cuMemFree, FAKE_CURRENT, (CUdeviceptr_v1 pointer), (pointer))
{
	return CUDA_ERROR_INVALID_CONTEXT;
}

FAKE_CUDA(cuMemGetInfo, FAKE_CURRENT, (unsigned int *free_bytes, unsigned int *total),
	  (free_bytes, total))
{
	return CUDA_ERROR_INVALID_CONTEXT;
}

/* ---- page-locked host memory ---- */

static CUresult host_alloc(void **pointer, size_t bytes, unsigned int flags)
{
	struct fake_alloc alloc = {
		.kind = FAKE_MEM_HOST,
		.bytes = bytes,
		.context = fake_current(),
		.device = fake_current()->device,
		.flags = flags,
	};

	if (!pointer || flags > 7)
		return CUDA_ERROR_INVALID_VALUE;
	if (!bytes) {
		*pointer = NULL;
		return CUDA_SUCCESS;
	}
	if (bytes > 1ull << 46)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.mapping_bytes = fake_page_round(bytes);
	alloc.mapping = fake_map(alloc.mapping_bytes);
	if (!alloc.mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.base = (uint64_t)(uintptr_t)alloc.mapping;
	*pointer = alloc.mapping;
	fake_alloc_add(&alloc);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemAllocHost_v2, FAKE_CURRENT | FAKE_UNSAFE, (void **pointer, size_t bytes),
	  (pointer, bytes))
{
	return host_alloc(pointer, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
}

FAKE_CUDA(cuMemAllocHost, FAKE_CURRENT | FAKE_UNSAFE, (void **pointer, unsigned int bytes),
	  (pointer, bytes))
{
	return host_alloc(pointer, bytes, CU_MEMHOSTALLOC_DEVICEMAP);
}

FAKE_CUDA(cuMemHostAlloc, FAKE_CURRENT | FAKE_UNSAFE,
	  (void **pointer, size_t bytes, unsigned int flags), (pointer, bytes, flags))
{
	return host_alloc(pointer, bytes, flags);
}

FAKE_CUDA(cuMemFreeHost, FAKE_CURRENT | FAKE_UNSAFE, (void *pointer), (pointer))
{
	struct fake_alloc *alloc = fake_alloc_find((uint64_t)(uintptr_t)pointer);

	if (!alloc || alloc->kind != FAKE_MEM_HOST || alloc->mapping != pointer)
		return CUDA_ERROR_INVALID_VALUE;
	fake_alloc_release(alloc);
	return CUDA_SUCCESS;
}

static CUresult host_register(void *pointer, size_t bytes, unsigned int flags)
{
	struct fake_alloc alloc = {
		.base = (uint64_t)(uintptr_t)pointer,
		.bytes = bytes,
		.kind = FAKE_MEM_REGISTERED,
		.context = fake_current(),
		.device = fake_current()->device,
		.flags = flags,
	};

	if (!pointer || !bytes || (flags & ~(unsigned int)CU_MEMHOSTREGISTER_MASK) ||
	    bytes > 1ull << 46)
		return CUDA_ERROR_INVALID_VALUE;
	for (const struct fake_alloc *other = all; other; other = other->next) {
		if (other->base < alloc.base + bytes && alloc.base < other->base + other->bytes)
			return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	}
	fake_alloc_add(&alloc);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemHostRegister_v2, FAKE_CURRENT, (void *pointer, size_t bytes, unsigned int flags),
	  (pointer, bytes, flags))
{
	return host_register(pointer, bytes, flags);
}

FAKE_CUDA(cuMemHostRegister, FAKE_CURRENT, (void *pointer, size_t bytes, unsigned int flags),
	  (pointer, bytes, flags))
{
	return host_register(pointer, bytes, flags);
}

FAKE_CUDA(cuMemHostUnregister, FAKE_CURRENT, (void *pointer), (pointer))
{
	struct fake_alloc *alloc = fake_alloc_find((uint64_t)(uintptr_t)pointer);

	if (!alloc || alloc->kind != FAKE_MEM_REGISTERED ||
	    alloc->base != (uint64_t)(uintptr_t)pointer)
		return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
	fake_alloc_release(alloc);
	return CUDA_SUCCESS;
}

static const struct fake_alloc *host_find(const void *pointer)
{
	const struct fake_alloc *alloc = fake_alloc_find((uint64_t)(uintptr_t)pointer);

	return alloc && (alloc->kind == FAKE_MEM_HOST || alloc->kind == FAKE_MEM_REGISTERED) ? alloc
											     : NULL;
}

FAKE_CUDA(cuMemHostGetDevicePointer_v2, FAKE_CURRENT,
	  (CUdeviceptr * device_pointer, void *pointer, unsigned int flags),
	  (device_pointer, pointer, flags))
{
	if (!device_pointer || flags || !host_find(pointer))
		return CUDA_ERROR_INVALID_VALUE;
	*device_pointer = (uint64_t)(uintptr_t)pointer;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemHostGetFlags, FAKE_CURRENT, (unsigned int *flags, void *pointer), (flags, pointer))
{
	const struct fake_alloc *alloc = host_find(pointer);

	if (!flags || !alloc)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = alloc->flags;
	return CUDA_SUCCESS;
}

/* ---- what a pointer is ---- */

static CUresult pointer_attribute(void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	const struct fake_alloc *alloc = fake_alloc_find(pointer);
	bool host;

	if (!alloc)
		return CUDA_ERROR_INVALID_VALUE;
	host = alloc->kind == FAKE_MEM_HOST || alloc->kind == FAKE_MEM_REGISTERED;
	switch (attribute) {
	case CU_POINTER_ATTRIBUTE_CONTEXT:
		if (!alloc->context)
			return CUDA_ERROR_INVALID_VALUE;
		*(CUcontext *)value = alloc->context;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		*(unsigned int *)value = host ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		*(CUdeviceptr *)value = pointer;
		break;
	case CU_POINTER_ATTRIBUTE_HOST_POINTER:
		if (!host && alloc->kind != FAKE_MEM_MANAGED)
			return CUDA_ERROR_INVALID_VALUE;
		*(void **)value = (void *)(uintptr_t)pointer;
		break;
	case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		*(unsigned int *)value = 0;
		break;
	case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		*(unsigned long long *)value = alloc->id;
		break;
	case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		*(unsigned int *)value = alloc->kind == FAKE_MEM_MANAGED;
		break;
	case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
		*(int *)value = (int)alloc->device;
		break;
	case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		*(unsigned int *)value = alloc->kind == FAKE_MEM_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		*(CUdeviceptr *)value = alloc->base;
		break;
	case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		*(size_t *)value = alloc->bytes;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPED:
		*(unsigned int *)value = 1;
		break;
	case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		*(uint64_t *)value = 0;
		break;
	case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		*(unsigned int *)value = alloc->kind == FAKE_MEM_DEVICE;
		break;
	case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
		*(int *)value = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
		break;
	case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
		*(CUmemoryPool *)value = alloc->kind == FAKE_MEM_POOL ? alloc->pool : NULL;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
		*(size_t *)value = alloc->bytes;
		break;
	case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
		*(CUdeviceptr *)value = alloc->base;
		break;
	case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
		*(unsigned long long *)value = alloc->id;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuPointerGetAttribute, FAKE_INIT,
	  (void *value, CUpointer_attribute attribute, CUdeviceptr pointer),
	  (value, attribute, pointer))
{
	return value ? pointer_attribute(value, attribute, pointer) : CUDA_ERROR_INVALID_VALUE;
}

/* Unlike the singular form it takes any address, and answers zeros for one that CUDA does not know. */
FAKE_CUDA(cuPointerGetAttributes, FAKE_INIT,
	  (unsigned int count, CUpointer_attribute *attributes, void **values, CUdeviceptr pointer),
	  (count, attributes, values, pointer))
{
	if (!count || !attributes || !values)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		CUresult rc = pointer_attribute(values[i], attributes[i], pointer);

		if (rc == CUDA_SUCCESS)
			continue;
		switch (attributes[i]) {
		case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
			*(int *)values[i] = -2;
			break;
		case CU_POINTER_ATTRIBUTE_HOST_POINTER:
			*(void **)values[i] =
				fake_alloc_find(pointer) ? NULL : (void *)(uintptr_t)pointer;
			break;
		case CU_POINTER_ATTRIBUTE_CONTEXT:
		case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
		case CU_POINTER_ATTRIBUTE_BUFFER_ID:
		case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
		case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
		case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
		case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
			*(uint64_t *)values[i] = 0;
			break;
		case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
		case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
		case CU_POINTER_ATTRIBUTE_IS_MANAGED:
		case CU_POINTER_ATTRIBUTE_MAPPED:
		case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
		case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
		case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
			*(unsigned int *)values[i] = 0;
			break;
		default:
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuPointerSetAttribute, FAKE_INIT,
	  (const void *value, CUpointer_attribute attribute, CUdeviceptr pointer),
	  (value, attribute, pointer))
{
	if (!value || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS || !fake_alloc_find(pointer))
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}
