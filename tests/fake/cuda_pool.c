/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory. A free takes effect at once rather
 * than when the stream gets there, so memory is reused earlier than the real driver dares to; what
 * goes back to the card goes at a synchronisation, as there.
 */
#include <string.h>

#include "cuda_driver.h"

static struct CUmemPoolHandle_st *pools;

static bool host_charge(void *device, uint64_t bytes)
{
	(void)device;
	(void)bytes;
	return true;
}

static void host_uncharge(void *device, uint64_t bytes)
{
	(void)device;
	(void)bytes;
}

static struct CUmemPoolHandle_st *pool_new(uint32_t ordinal, const CUmemPoolProps *props)
{
	struct CUmemPoolHandle_st *pool = fake_object_new(sizeof(*pool), FAKE_POOL, NULL);
	bool on_device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;

	pool->device = ordinal;
	pool->props = *props;
	pool->heap = (struct fake_heap){
		.take = on_device ? fake_arena_charge : host_charge,
		.give = on_device ? fake_arena_uncharge : host_uncharge,
		.context = &fake.device[ordinal],
		.chunk_bytes = FAKE_POOL_CHUNK,
		/* Twice the card, so that holes do not make it run out of addresses first. */
		.room_bytes = fake_unit_capacity(&fake.machine, fake.device[ordinal].unit) * 2 /
				      FAKE_POOL_CHUNK * FAKE_POOL_CHUNK +
			      FAKE_POOL_CHUNK,
		.limit_bytes = props->maxSize,
	};
	for (int i = 0; i < 3; i++)
		pool->reuse[i] = 1;
	pool->access[ordinal] = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	pool->next_pool = pools;
	pools = pool;
	return pool;
}

void fake_pools_setup(void)
{
	for (uint32_t i = 0; i < fake.devices; i++) {
		CUmemPoolProps props = {
			.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			.location = { CU_MEM_LOCATION_TYPE_DEVICE, (int)i },
		};

		fake.device[i].default_pool = pool_new(i, &props);
		fake.device[i].default_pool->is_default = true;
		fake.device[i].current_pool = fake.device[i].default_pool;
	}
}

void fake_pools_synchronised(uint32_t ordinal)
{
	for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next_pool) {
		if (pool->device == ordinal)
			fake_heap_trim(&pool->heap, pool->release_threshold);
	}
}

void fake_pools_empty(uint32_t ordinal)
{
	for (struct CUmemPoolHandle_st *pool = pools; pool; pool = pool->next_pool) {
		if (pool->device == ordinal)
			fake_heap_trim(&pool->heap, 0);
	}
}

static void pool_free(struct CUmemPoolHandle_st *pool)
{
	struct CUmemPoolHandle_st **at = &pools;

	while (*at != pool)
		at = &(*at)->next_pool;
	*at = pool->next_pool;
	fake_heap_release(&pool->heap);
	fake_object_free(pool);
}

void fake_pool_block_free(struct CUmemPoolHandle_st *pool, struct fake_heap_block *block)
{
	fake_heap_give(&pool->heap, block);
	if (pool->doomed && !pool->heap.used_bytes)
		pool_free(pool);
}

static bool pool_valid(CUmemoryPool pool)
{
	return fake_is(pool, FAKE_POOL) && !pool->doomed;
}

/* ---- pools ---- */

FAKE_CUDA(cuMemPoolCreate, FAKE_INIT | FAKE_UNSAFE,
	  (CUmemoryPool * ret_pool, const CUmemPoolProps *props), (ret_pool, props))
{
	uint32_t ordinal = 0;

	if (!ret_pool || !props || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	switch (props->location.type) {
	case CU_MEM_LOCATION_TYPE_DEVICE:
		if (!fake_device(props->location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		ordinal = (uint32_t)props->location.id;
		break;
	case CU_MEM_LOCATION_TYPE_HOST:
	case CU_MEM_LOCATION_TYPE_HOST_NUMA:
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	*ret_pool = pool_new(ordinal, props);
	return CUDA_SUCCESS;
}

/* The handle is dead at once; the memory goes when its last allocation does. */
FAKE_CUDA(cuMemPoolDestroy, FAKE_INIT, (CUmemoryPool pool), (pool))
{
	if (!pool_valid(pool) || pool->is_default)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < fake.devices; i++) {
		if (fake.device[i].current_pool == pool)
			fake.device[i].current_pool = fake.device[i].default_pool;
	}
	if (pool->heap.used_bytes)
		pool->doomed = true;
	else
		pool_free(pool);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemPoolTrimTo, FAKE_INIT | FAKE_UNSAFE, (CUmemoryPool pool, size_t keep), (pool, keep))
{
	if (!pool_valid(pool))
		return CUDA_ERROR_INVALID_VALUE;
	fake_heap_trim(&pool->heap, keep);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemPoolGetAttribute, FAKE_INIT,
	  (CUmemoryPool pool, CUmemPool_attribute attribute, void *value), (pool, attribute, value))
{
	if (!pool_valid(pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		*(int *)value = pool->reuse[attribute - 1];
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		*(uint64_t *)value = pool->release_threshold;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
		*(uint64_t *)value = pool->heap.reserved_bytes;
		break;
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		*(uint64_t *)value = pool->heap.reserved_high;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
		*(uint64_t *)value = pool->used_shown;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		*(uint64_t *)value = pool->used_shown_high;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemPoolSetAttribute, FAKE_INIT,
	  (CUmemoryPool pool, CUmemPool_attribute attribute, void *value), (pool, attribute, value))
{
	if (!pool_valid(pool) || !value)
		return CUDA_ERROR_INVALID_VALUE;
	switch (attribute) {
	case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
	case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
		pool->reuse[attribute - 1] = *(int *)value != 0;
		break;
	case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
		pool->release_threshold = *(uint64_t *)value;
		break;
	/* High-water marks can only be put back to the present. */
	case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
		if (*(uint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		pool->heap.reserved_high = pool->heap.reserved_bytes;
		break;
	case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
		if (*(uint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		pool->used_shown_high = pool->used_shown;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemPoolSetAccess, FAKE_INIT,
	  (CUmemoryPool pool, const CUmemAccessDesc *map, size_t count), (pool, map, count))
{
	if (!pool_valid(pool) || !map)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (map[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
		    !fake_device(map[i].location.id))
			return CUDA_ERROR_INVALID_DEVICE;
		if (map[i].location.id == (int)pool->device &&
		    map[i].flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
			return CUDA_ERROR_INVALID_DEVICE;
		pool->access[map[i].location.id] = map[i].flags;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemPoolGetAccess, FAKE_INIT, (int *flags, CUmemoryPool pool, CUmemLocation *location),
	  (flags, pool, location))
{
	if (!flags || !pool_valid(pool) || !location ||
	    location->type != CU_MEM_LOCATION_TYPE_DEVICE || !fake_device(location->id))
		return CUDA_ERROR_INVALID_VALUE;
	*flags = pool->access[location->id];
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetDefaultMemPool, FAKE_INIT, (CUmemoryPool * pool, CUdevice ordinal),
	  (pool, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = device->default_pool;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetMemPool, FAKE_INIT, (CUmemoryPool * pool, CUdevice ordinal), (pool, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*pool = device->current_pool;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceSetMemPool, FAKE_INIT, (CUdevice ordinal, CUmemoryPool pool), (ordinal, pool))
{
	struct fake_device *device = fake_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!pool_valid(pool) || pool->device != (uint32_t)ordinal)
		return CUDA_ERROR_INVALID_VALUE;
	device->current_pool = pool;
	return CUDA_SUCCESS;
}

/* CUDA 13: the same by place instead of by device. */
static CUresult place_of(const CUmemLocation *location, int type, struct fake_device **ret_device)
{
	if (!location || type != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (location->type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_NOT_SUPPORTED;
	*ret_device = fake_device(location->id);
	return *ret_device ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

FAKE_CUDA(cuMemGetDefaultMemPool, FAKE_INIT,
	  (CUmemoryPool * pool, CUmemLocation *location, int type), (pool, location, type))
{
	struct fake_device *device;
	CUresult rc = place_of(location, type, &device);

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*pool = device->default_pool;
	return rc;
}

FAKE_CUDA(cuMemGetMemPool, FAKE_INIT, (CUmemoryPool * pool, CUmemLocation *location, int type),
	  (pool, location, type))
{
	struct fake_device *device;
	CUresult rc = place_of(location, type, &device);

	if (!pool)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*pool = device->current_pool;
	return rc;
}

FAKE_CUDA(cuMemSetMemPool, FAKE_INIT, (CUmemLocation * location, int type, CUmemoryPool pool),
	  (location, type, pool))
{
	struct fake_device *device;
	CUresult rc = place_of(location, type, &device);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!pool_valid(pool) || &fake.device[pool->device] != device)
		return CUDA_ERROR_INVALID_VALUE;
	device->current_pool = pool;
	return CUDA_SUCCESS;
}

/* ---- allocations ---- */

static CUresult alloc_from(struct CUmemPoolHandle_st *pool, struct CUstream_st *stream,
			   CUdeviceptr *pointer, size_t bytes)
{
	struct fake_alloc alloc = {
		.kind = FAKE_MEM_POOL,
		.bytes = bytes,
		.context = stream->object.context,
		.device = pool->device,
		.pool = pool,
	};

	if (stream->capture)
		return fake_capture_alloc(stream, &pool->props, bytes, pointer);
	if (fake_capture_implicit(stream) != CUDA_SUCCESS)
		return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	if (fake.captures && fake_capture_forbids() != CUDA_SUCCESS)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (!bytes) {
		*pointer = 0;
		return CUDA_SUCCESS;
	}
	alloc.pool_block = fake_heap_take(&pool->heap, bytes);
	if (!alloc.pool_block) {
		/* What other pools keep may be there after a synchronisation. */
		fake_device_wait(pool->device);
		alloc.pool_block = fake_heap_take(&pool->heap, bytes);
	}
	if (!alloc.pool_block)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.base = (uint64_t)(uintptr_t)fake_heap_address(&pool->heap, alloc.pool_block);
	fake_alloc_add(&alloc);
	pool->used_shown += bytes;
	if (pool->used_shown > pool->used_shown_high)
		pool->used_shown_high = pool->used_shown;
	*pointer = alloc.base;
	return CUDA_SUCCESS;
}

FAKE_CUDA_STREAM(cuMemAllocAsync, FAKE_INIT, (CUdeviceptr * pointer, size_t bytes, CUstream handle),
		 (pointer, bytes, handle), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!pointer)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc != CUDA_SUCCESS)
		return rc;
	return alloc_from(fake.device[stream->object.context->device].current_pool, stream, pointer,
			  bytes);
}

FAKE_CUDA_STREAM(cuMemAllocFromPoolAsync, FAKE_INIT,
		 (CUdeviceptr * pointer, size_t bytes, CUmemoryPool pool, CUstream handle),
		 (pointer, bytes, pool, handle), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!pointer || !pool_valid(pool))
		return CUDA_ERROR_INVALID_VALUE;
	return rc == CUDA_SUCCESS ? alloc_from(pool, stream, pointer, bytes) : rc;
}

FAKE_CUDA_STREAM(cuMemFreeAsync, FAKE_INIT, (CUdeviceptr pointer, CUstream handle),
		 (pointer, handle), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);
	struct fake_alloc *alloc;

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!pointer)
		return CUDA_SUCCESS;
	alloc = fake_alloc_find(pointer);
	if (!alloc || alloc->base != pointer)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->capture)
		return fake_capture_free(stream, pointer);
	rc = fake_capture_implicit(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	switch (alloc->kind) {
	case FAKE_MEM_GRAPH:
		return fake_graph_memory_free(alloc);
	/* Plain memory, too, may be freed in stream order. */
	case FAKE_MEM_POOL:
	case FAKE_MEM_DEVICE:
		fake_alloc_release(alloc);
		return CUDA_SUCCESS;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
}
