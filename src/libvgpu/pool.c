/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream-ordered memory. What leaves the card is what a pool has reserved, in steps of 32 MiB, and it
 * stays reserved after the program has freed it. So pools are charged, not pointers: the charge of a
 * pool follows RESERVED_MEM_CURRENT, and frees cost us nothing.
 *
 * An allocation that may make its pool grow reserves the growth first. One that is no larger than an
 * earlier one that needed no growth skips that: the pool then most likely has room again, and if it has
 * not, the growth is checked right after the call and undone if it went over the limit.
 */
#include <errno.h>
#include <sched.h>

#include "libvgpu/guest.h"
#include "libvgpu/hooks.h"

enum { POOLS = 256 };

static const uint64_t STEP = 32u << 20;

struct pool {
	CUmemoryPool handle; /* NULL: free */
	int index;
	uint32_t lock; /* held for some instructions, never across a call */
	uint64_t charged;
	uint64_t quiet; /* allocations up to this size needed no growth lately */
	bool graph;     /* the device's graph memory: handle is a tag, device its ordinal */
	CUdevice device;
};

static struct pool pools[POOLS];
static uint32_t pools_end; /* slots in use are below it */
static uint32_t pools_lock;

static void lock(uint32_t *word)
{
	for (unsigned int i = 0; __atomic_exchange_n(word, 1u, __ATOMIC_ACQUIRE); i++)
		if (i % 64 == 63)
			sched_yield();
}

static void unlock(uint32_t *word)
{
	__atomic_store_n(word, 0u, __ATOMIC_RELEASE);
}

void vg_pools_reset(void)
{
	for (int i = 0; i < POOLS; i++)
		pools[i] = (struct pool){ 0 };
	pools_end = 0;
	pools_lock = 0;
}

static struct pool *find(CUmemoryPool handle)
{
	uint32_t end = __atomic_load_n(&pools_end, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < end; i++)
		if (__atomic_load_n(&pools[i].handle, __ATOMIC_ACQUIRE) == handle)
			return &pools[i];
	return NULL;
}

static struct pool *find_or_add(CUmemoryPool handle, int index, bool graph, CUdevice device)
{
	struct pool *pool = find(handle);

	if (LIKELY(pool != NULL))
		return pool;
	lock(&pools_lock);
	pool = find(handle);
	for (uint32_t i = 0; !pool && i < POOLS; i++) {
		if (pools[i].handle)
			continue;
		pool = &pools[i];
		pool->index = index;
		pool->charged = 0;
		pool->quiet = 0;
		pool->graph = graph;
		pool->device = device;
		__atomic_store_n(&pool->handle, handle, __ATOMIC_RELEASE);
		if (i >= pools_end)
			__atomic_store_n(&pools_end, i + 1, __ATOMIC_RELEASE);
	}
	unlock(&pools_lock);
	return pool;
}

static bool reserved(const struct pool *pool, uint64_t *ret_bytes)
{
	cuuint64_t value = 0;
	CUresult rc;

	if (pool->graph)
		rc = REAL(cuDeviceGetGraphMemAttribute, pool->device,
			  CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &value);
	else
		rc = REAL(cuMemPoolGetAttribute, pool->handle, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT,
			  &value);
	if (rc != CUDA_SUCCESS)
		return false;
	*ret_bytes = value;
	return true;
}

/*
 * Brings the charge of a pool to what it has reserved. paid: bytes that the caller has already
 * reserved for growth, handed over here. Returns -ENOMEM if the growth does not fit; it is then charged
 * all the same, because it exists.
 */
static int settle(struct pool *pool, uint64_t paid)
{
	uint64_t now = 0, give = 0, charge = 0;
	int r = 0;

	if (!reserved(pool, &now)) {
		if (paid)
			region_discharge(&vg.region, pool->index, REGION_DATA, paid);
		return 0;
	}
	lock(&pool->lock);
	if (now >= pool->charged + paid)
		charge = now - pool->charged - paid;
	else
		give = pool->charged + paid - now;
	pool->charged = now;
	unlock(&pool->lock);
	if (give)
		region_discharge(&vg.region, pool->index, REGION_DATA, give);
	if (charge) {
		r = region_reserve(&vg.region, pool->index, REGION_DATA, charge);
		if (r < 0)
			region_charge(&vg.region, pool->index, REGION_DATA, charge);
	}
	return r;
}

bool vg_pools_refresh(void)
{
	uint32_t end = __atomic_load_n(&pools_end, __ATOMIC_ACQUIRE);
	bool gave = false;

	for (uint32_t i = 0; i < end; i++) {
		uint64_t before = __atomic_load_n(&pools[i].charged, __ATOMIC_RELAXED);

		if (!__atomic_load_n(&pools[i].handle, __ATOMIC_ACQUIRE) || pools[i].index < 0)
			continue;
		(void)settle(&pools[i], 0);
		gave |= __atomic_load_n(&pools[i].charged, __ATOMIC_RELAXED) < before;
	}
	return gave;
}

static void forget(CUmemoryPool handle)
{
	struct pool *pool = find(handle);
	uint64_t charged;

	if (!pool)
		return;
	lock(&pool->lock);
	charged = pool->charged;
	pool->charged = 0;
	pool->quiet = 0;
	__atomic_store_n(&pool->handle, NULL, __ATOMIC_RELEASE);
	unlock(&pool->lock);
	region_discharge(&vg.region, pool->index, REGION_DATA, charged);
}

/* ---- allocation ---------------------------------------------------------------------------------- */

struct request {
	CUdeviceptr *pointer;
	size_t bytes;
	CUmemoryPool pool; /* NULL: the device's current one */
	CUstream stream;
	bool per_thread;
};

static CUresult call_driver(const struct request *q)
{
	if (q->pool)
		return q->per_thread ? REAL(cuMemAllocFromPoolAsync_ptsz, q->pointer, q->bytes,
					    q->pool, q->stream)
				     : REAL(cuMemAllocFromPoolAsync, q->pointer, q->bytes, q->pool,
					    q->stream);
	return q->per_thread ? REAL(cuMemAllocAsync_ptsz, q->pointer, q->bytes, q->stream)
			     : REAL(cuMemAllocAsync, q->pointer, q->bytes, q->stream);
}

static CUstream plain_stream(const struct request *q)
{
	return !q->stream && q->per_thread ? CU_STREAM_PER_THREAD : q->stream;
}

static bool capturing(const struct request *q)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	return REAL(cuStreamIsCapturing, plain_stream(q), &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* Gives an allocation back that made its pool grow over the limit. */
static void undo(const struct request *q, struct pool *pool)
{
	CUstream stream = plain_stream(q);
	cuuint64_t used = 0;

	(void)REAL(cuMemFreeAsync, *q->pointer, stream);
	(void)REAL(cuStreamSynchronize, stream);
	(void)REAL(cuMemPoolGetAttribute, pool->handle, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
	(void)REAL(cuMemPoolTrimTo, pool->handle, (size_t)used);
	(void)settle(pool, 0);
	*q->pointer = 0;
}

/* Growth that this allocation can cause, as far as the pool's own numbers tell. */
static uint64_t growth(const struct pool *pool, uint64_t bytes)
{
	cuuint64_t have = 0, used = 0;

	if (!reserved(pool, &have) || REAL(cuMemPoolGetAttribute, pool->handle,
					   CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used) != CUDA_SUCCESS)
		have = used = 0;
	if (bytes > UINT64_MAX / 2)
		return bytes;
	if (used + bytes <= have)
		return 0;
	return (used + bytes - have + STEP - 1) & ~(STEP - 1);
}

static CUresult alloc_growing(const struct request *q, struct pool *pool)
{
	uint64_t before = pool->charged, more = growth(pool, q->bytes);
	CUresult rc;

	vg_gate();
	if (more && vg_reserve(pool->index, REGION_DATA, more, "pool growth") < 0) {
		/* Memory that is free in the pool but waits for its stream may do. */
		(void)REAL(cuStreamSynchronize, plain_stream(q));
		(void)vg_pools_refresh();
		more = growth(pool, q->bytes);
		if (more && region_reserve(&vg.region, pool->index, REGION_DATA, more) < 0)
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rc = call_driver(q);
	if (settle(pool, more) < 0 && rc == CUDA_SUCCESS) {
		undo(q, pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc == CUDA_SUCCESS)
		pool->quiet = pool->charged > before ? 0 : q->bytes;
	return rc;
}

static CUresult alloc_async(const struct request *q)
{
	CUmemoryPool handle = q->pool;
	struct vg_where where;
	struct pool *pool;
	uint64_t now;
	CUresult rc;

	if (!q->pointer || !q->bytes)
		return call_driver(q);
	if (LIKELY(vg.single_device))
		where = (struct vg_where){ NULL, 0, vg.index[0] };
	else if (!vg_current(&where))
		return call_driver(q);
	if (!vg.single_device && plain_stream(q) != NULL && !q->pool) {
		/* The pool is that of the stream's device, wherever we stand. */
		CUcontext context = NULL;
		CUdevice device;

		if (REAL(cuStreamGetCtx, plain_stream(q), &context) == CUDA_SUCCESS &&
		    context != where.context && context &&
		    REAL(cuCtxPushCurrent_v2, context) == CUDA_SUCCESS) {
			if (REAL(cuCtxGetDevice, &device) == CUDA_SUCCESS &&
			    vg_index_of(device) >= 0) {
				where.device = device;
				where.index = vg_index_of(device);
			}
			(void)REAL(cuCtxPopCurrent_v2, &context);
		}
	}
	if (!handle && REAL(cuDeviceGetMemPool, &handle, where.device) != CUDA_SUCCESS)
		return call_driver(q);
	pool = find_or_add(handle, where.index, false, where.device);
	if (UNLIKELY(!pool))
		return CUDA_ERROR_OUT_OF_MEMORY; /* more pools than we can watch */
	if (UNLIKELY(pool->index < 0))
		return call_driver(q);
	if (UNLIKELY(q->bytes > pool->quiet)) {
		if (capturing(q)) /* a node of a graph: charged when the graph runs */
			return call_driver(q);
		return alloc_growing(q, pool);
	}
	rc = call_driver(q);
	if (LIKELY(rc == CUDA_SUCCESS && reserved(pool, &now) && now == pool->charged))
		return rc;
	if (rc == CUDA_SUCCESS && now > pool->charged)
		pool->quiet = 0;
	if (settle(pool, 0) < 0 && rc == CUDA_SUCCESS) {
		undo(q, pool);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (rc == CUDA_ERROR_OUT_OF_MEMORY)
		pool->quiet = 0;
	return rc;
}

static CUresult enter_async(struct request q)
{
	CUresult rc;

	if (!vg_enter())
		return call_driver(&q);
	rc = alloc_async(&q);
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	return enter_async((struct request){ pointer, bytes, NULL, stream, false });
}

VG_EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *pointer, size_t bytes, CUstream stream)
{
	return enter_async((struct request){ pointer, bytes, NULL, stream, true });
}

/* The device of an explicit pool is known from its creation, see cuMemPoolCreate(). */
VG_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *pointer, size_t bytes, CUmemoryPool pool,
					   CUstream stream)
{
	return enter_async((struct request){ pointer, bytes, pool, stream, false });
}

VG_EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *pointer, size_t bytes,
						CUmemoryPool pool, CUstream stream)
{
	return enter_async((struct request){ pointer, bytes, pool, stream, true });
}

VG_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemPoolCreate, pool, props);
	rc = REAL(cuMemPoolCreate, pool, props);
	if (rc == CUDA_SUCCESS) {
		bool device = props->location.type == CU_MEM_LOCATION_TYPE_DEVICE;

		/* A pool of host memory is known too, with no device: nothing is charged. */
		(void)find_or_add(*pool, device ? vg_index_of(props->location.id) : -1, false,
				  device ? props->location.id : -1);
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool pool)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemPoolDestroy, pool);
	/* Out before the call: the driver may give the handle to another thread at once. */
	forget(pool);
	rc = REAL(cuMemPoolDestroy, pool);
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t keep)
{
	struct pool *known;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemPoolTrimTo, pool, keep);
	rc = REAL(cuMemPoolTrimTo, pool, keep);
	known = find(pool);
	if (known && known->index >= 0)
		(void)settle(known, 0);
	vg_leave();
	return rc;
}

/* ---- graph memory ------------------------------------------------------------------------------------ */

/* A device's graph memory has no handle: a tag that no pool's address can be. */
static struct pool *graph_pool(CUdevice device)
{
	return find_or_add((CUmemoryPool)(uintptr_t)(1 + device), vg_index_of(device), true,
			   device);
}

/*
 * Room for allocation nodes of `bytes` in all, before a graph is launched. Returns what was reserved
 * beyond the pool's present charge in *ret_paid.
 */
int vg_graph_reserve(CUdevice device, uint64_t bytes, uint64_t *ret_paid)
{
	struct pool *pool = graph_pool(device);
	cuuint64_t used = 0, have = 0;
	uint64_t more;

	*ret_paid = 0;
	if (!pool)
		return -ENOMEM;
	(void)settle(pool, 0);
	(void)REAL(cuDeviceGetGraphMemAttribute, device, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &used);
	(void)reserved(pool, &have);
	if (used + bytes <= have)
		return 0;
	more = used + bytes - have;
	if (vg_reserve(pool->index, REGION_DATA, more, "graph memory") < 0)
		return -ENOMEM;
	*ret_paid = more;
	return 0;
}

void vg_graph_settle(CUdevice device, uint64_t paid)
{
	struct pool *pool = graph_pool(device);

	if (pool)
		(void)settle(pool, paid);
	else
		region_discharge(&vg.region, vg_index_of(device), REGION_DATA, paid);
}

VG_EXPORT CUresult cuDeviceGraphMemTrim(CUdevice device)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuDeviceGraphMemTrim, device);
	rc = REAL(cuDeviceGraphMemTrim, device);
	if (vg_index_of(device) >= 0 && find((CUmemoryPool)(uintptr_t)(1 + device)))
		vg_graph_settle(device, 0);
	vg_leave();
	return rc;
}
