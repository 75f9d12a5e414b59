/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Contexts and what lives in them without a pointer of the program: the context itself (half a
 * gigabyte on large cards), modules, heaps set by cuCtxSetLimit. None of them tells its size, so it is
 * measured: from NVML's figure for this process, or from what left the card meanwhile.
 */
#include <errno.h>
#include <sched.h>

#include "libvgpu/guest.h"
#include "libvgpu/hooks.h"

enum { CONTEXTS = 256 };

struct context {
	CUcontext handle; /* NULL: free */
	int index;
	CUdevice device;
	bool primary;
	uint32_t references; /* of the primary context */
	uint64_t charged;
};

static struct context contexts[CONTEXTS];
static uint32_t contexts_lock;

/* Larger is not a context: another tenant allocated while we measured. */
static const uint64_t CONTEXT_MOST = 4ull << 30;
/* Modules up to this are believed without a second opinion. */
static const uint64_t MODULE_TRUSTED = 64u << 20;

static void lock(void)
{
	for (unsigned int i = 0; __atomic_exchange_n(&contexts_lock, 1u, __ATOMIC_ACQUIRE); i++)
		if (i % 64 == 63)
			sched_yield();
}

static void unlock(void)
{
	__atomic_store_n(&contexts_lock, 0u, __ATOMIC_RELEASE);
}

void vg_contexts_reset(void)
{
	for (int i = 0; i < CONTEXTS; i++)
		contexts[i] = (struct context){ 0 };
	contexts_lock = 0;
	vg_forget_contexts();
}

/* ---- measuring ------------------------------------------------------------------------------------ */

struct measure {
	uint64_t own, device;
	bool has_own, has_device;
	bool known;
};

/* The size of a context on this device, if somebody in the container has measured one. */
static uint64_t known_size(int index)
{
	return __atomic_load_n(&vg.region.ext->device[index].context_bytes, __ATOMIC_RELAXED);
}

static void measure_begin(struct measure *m, int index)
{
	*m = (struct measure){ .known = known_size(index) != 0 };
	if (m->known)
		return;
	m->has_own = vg_nvml_own_bytes(index, &m->own);
	m->has_device = vg_nvml_device_used(index, &m->device);
}

static uint64_t measure_end(const struct measure *m, int index)
{
	struct vgpu_region_device *device = &vg.region.ext->device[index];
	uint64_t now, size = 0, best;

	if (m->known)
		return known_size(index);
	/* NVML lists a process once it has a context: before that its figure is none. */
	if (vg_nvml_own_bytes(index, &now) && now >= (m->has_own ? m->own : 0))
		size = now - (m->has_own ? m->own : 0);
	else if (m->has_device && vg_nvml_device_used(index, &now) && now > m->device)
		size = now - m->device;
	if (size == 0 || size > CONTEXT_MOST)
		return 0;
	/* Neighbours can only make it look larger: the smallest measured is the best. */
	best = __atomic_load_n(&device->context_bytes, __ATOMIC_RELAXED);
	while ((best == 0 || size < best) &&
	       !__atomic_compare_exchange_n(&device->context_bytes, &best, size, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return size;
}

/* ---- the list ---------------------------------------------------------------------------------------- */

static void add_context(CUcontext handle, CUdevice device, int index, bool primary, uint64_t bytes)
{
	bool kept = false;

	lock();
	for (int i = 0; i < CONTEXTS && !kept; i++) {
		if (contexts[i].handle)
			continue;
		contexts[i] = (struct context){ .handle = handle,
						.index = index,
						.device = device,
						.primary = primary,
						.references = 1,
						.charged = bytes };
		kept = true;
	}
	unlock();
	if (kept && bytes)
		region_charge(&vg.region, index, REGION_CONTEXT, bytes);
}

static void discharge_entry(const struct vg_entry *entry)
{
	enum region_kind kind = entry->kind == VG_KIND_MODULE || entry->kind == VG_KIND_LIMIT
					? REGION_MODULE
					: REGION_DATA;

	region_discharge(&vg.region, entry->index, kind, entry->bytes);
}

/* A context is gone, and with it everything that was in it. */
void vg_context_gone(CUcontext handle)
{
	struct context gone = { 0 };

	lock();
	for (int i = 0; i < CONTEXTS; i++) {
		if (contexts[i].handle != handle)
			continue;
		gone = contexts[i];
		contexts[i].handle = NULL;
		break;
	}
	unlock();
	vg_forget_contexts();
	vg_limiter_context_gone(handle);
	vg_table_sweep((uint64_t)(uintptr_t)handle, discharge_entry);
	if (gone.handle && gone.charged)
		region_discharge(&vg.region, gone.index, REGION_CONTEXT, gone.charged);
	(void)vg_pools_refresh();
}

/* The primary context of a device that we know; changes its references by change. */
static CUcontext primary_context(CUdevice device, int change, uint32_t *ret_references)
{
	CUcontext handle = NULL;

	lock();
	for (int i = 0; i < CONTEXTS; i++) {
		struct context *c = &contexts[i];

		if (!c->handle || !c->primary || c->device != device)
			continue;
		if (change > 0)
			c->references++;
		else if (change < 0 && c->references)
			c->references--;
		handle = c->handle;
		*ret_references = c->references;
		break;
	}
	unlock();
	return handle;
}

/* ---- hooks -------------------------------------------------------------------------------------------- */

VG_EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device)
{
	struct measure m;
	uint32_t references;
	CUresult rc;
	int index;

	if (!vg_enter())
		return REAL(cuDevicePrimaryCtxRetain, context, device);
	index = vg_index_of(device);
	if (index < 0 || primary_context(device, 1, &references)) {
		rc = REAL(cuDevicePrimaryCtxRetain, context, device);
		if (rc != CUDA_SUCCESS && index >= 0)
			(void)primary_context(device, -1, &references);
		vg_leave();
		return rc;
	}
	measure_begin(&m, index);
	rc = REAL(cuDevicePrimaryCtxRetain, context, device);
	if (rc == CUDA_SUCCESS)
		add_context(*context, device, index, true, measure_end(&m, index));
	vg_leave();
	return rc;
}

static CUresult primary_release(CUdevice device, bool v2)
{
	CUcontext context;
	uint32_t references = 0;
	CUresult rc;

	if (!vg_enter())
		return v2 ? REAL(cuDevicePrimaryCtxRelease_v2, device)
			  : REAL(cuDevicePrimaryCtxRelease, device);
	rc = v2 ? REAL(cuDevicePrimaryCtxRelease_v2, device)
		: REAL(cuDevicePrimaryCtxRelease, device);
	if (rc == CUDA_SUCCESS) {
		context = primary_context(device, -1, &references);
		if (context && references == 0)
			vg_context_gone(context);
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
	return primary_release(device, false);
}

VG_EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device)
{
	return primary_release(device, true);
}

/*
 * A reset destroys what is in the context, whoever holds references; those stay valid and bring the
 * context back at its next use. So the contents go and the context's own charge stays.
 */
static CUresult primary_reset(CUdevice device, bool v2)
{
	CUcontext context;
	uint32_t references;
	CUresult rc;

	if (!vg_enter())
		return v2 ? REAL(cuDevicePrimaryCtxReset_v2, device)
			  : REAL(cuDevicePrimaryCtxReset, device);
	rc = v2 ? REAL(cuDevicePrimaryCtxReset_v2, device) : REAL(cuDevicePrimaryCtxReset, device);
	context = primary_context(device, 0, &references);
	if (rc == CUDA_SUCCESS && context) {
		vg_forget_contexts();
		vg_limiter_context_gone(context);
		vg_table_sweep((uint64_t)(uintptr_t)context, discharge_entry);
		(void)vg_pools_refresh();
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuDevicePrimaryCtxReset(CUdevice device)
{
	return primary_reset(device, false);
}

VG_EXPORT CUresult cuDevicePrimaryCtxReset_v2(CUdevice device)
{
	return primary_reset(device, true);
}

#define CREATE_THROUGH(context, device, call)                                                      \
	do {                                                                                       \
		struct measure m_;                                                                 \
		CUresult rc_;                                                                      \
		int index_;                                                                        \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		index_ = vg_index_of(device);                                                      \
		if (index_ < 0 || !(context)) {                                                    \
			rc_ = (call);                                                              \
		} else {                                                                           \
			measure_begin(&m_, index_);                                                \
			rc_ = (call);                                                              \
			if (rc_ == CUDA_SUCCESS)                                                   \
				add_context(*(context), (device), index_, false,                   \
					    measure_end(&m_, index_));                             \
		}                                                                                  \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

VG_EXPORT CUresult cuCtxCreate(CUcontext *context, unsigned int flags, CUdevice device)
{
	CREATE_THROUGH(context, device, REAL(cuCtxCreate, context, flags, device));
}

VG_EXPORT CUresult cuCtxCreate_v2(CUcontext *context, unsigned int flags, CUdevice device)
{
	CREATE_THROUGH(context, device, REAL(cuCtxCreate_v2, context, flags, device));
}

VG_EXPORT CUresult cuCtxCreate_v3(CUcontext *context, void *affinity, int affinities,
				  unsigned int flags, CUdevice device)
{
	CREATE_THROUGH(context, device,
		       REAL(cuCtxCreate_v3, context, affinity, affinities, flags, device));
}

VG_EXPORT CUresult cuCtxCreate_v4(CUcontext *context, CUctxCreateParams *params, unsigned int flags,
				  CUdevice device)
{
	CREATE_THROUGH(context, device, REAL(cuCtxCreate_v4, context, params, flags, device));
}

#define DESTROY_THROUGH(context, call)                                                             \
	do {                                                                                       \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		rc_ = (call);                                                                      \
		if (rc_ == CUDA_SUCCESS)                                                           \
			vg_context_gone(context);                                                  \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

VG_EXPORT CUresult cuCtxDestroy(CUcontext context)
{
	DESTROY_THROUGH(context, REAL(cuCtxDestroy, context));
}

VG_EXPORT CUresult cuCtxDestroy_v2(CUcontext context)
{
	DESTROY_THROUGH(context, REAL(cuCtxDestroy_v2, context));
}

/* cuCtxAttach was the only way to more than one reference, and no driver of today has it. */
VG_EXPORT CUresult cuCtxDetach(CUcontext context)
{
	DESTROY_THROUGH(context, REAL(cuCtxDetach, context));
}

/* ---- modules ------------------------------------------------------------------------------------------- */

/*
 * What left the card during a call. Only asked for where a limit exists: two queries cost some
 * microseconds. A neighbour's allocation in the same moment looks like ours, so a large result is
 * compared with NVML's figure for this process.
 */
struct taken {
	struct vg_where where;
	size_t free_before;
	bool counts;
};

static void taken_begin(struct taken *t)
{
	size_t total;

	t->counts = vg_current(&t->where) && region_limit(&vg.region, t->where.index) &&
		    REAL(cuMemGetInfo_v2, &t->free_before, &total) == CUDA_SUCCESS;
}

static uint64_t taken_end(const struct taken *t)
{
	size_t free_now, total;
	uint64_t bytes, own, booked;

	if (!t->counts || REAL(cuMemGetInfo_v2, &free_now, &total) != CUDA_SUCCESS ||
	    free_now >= t->free_before)
		return 0;
	bytes = t->free_before - free_now;
	if (bytes > MODULE_TRUSTED && vg.region.slot != REGION_NO_SLOT &&
	    vg_nvml_own_bytes(t->where.index, &own)) {
		booked = __atomic_load_n(
			&vg.region.base->slot[vg.region.slot].used[t->where.index].total,
			__ATOMIC_RELAXED);
		if (own < booked + bytes)
			bytes = own > booked ? own - booked : 0;
	}
	return bytes;
}

/* Charges it to a key. -ENOMEM: it does not fit, and the caller has to undo the call. */
static int taken_commit(const struct taken *t, uint64_t bytes, uint64_t key, enum vg_kind kind)
{
	struct vg_entry entry = {
		.key = key,
		.bytes = bytes,
		.owner = (uint64_t)(uintptr_t)t->where.context,
		.kind = (uint16_t)kind,
		.index = (int16_t)t->where.index,
	};

	if (!bytes)
		return 0;
	if (vg_reserve(t->where.index, REGION_MODULE, bytes, "module") < 0)
		return -ENOMEM;
	(void)vg_table_put(&entry);
	return 0;
}

#define LOAD_THROUGH(handle, call, undo)                                                           \
	do {                                                                                       \
		struct taken t_;                                                                   \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		taken_begin(&t_);                                                                  \
		rc_ = (call);                                                                      \
		if (rc_ == CUDA_SUCCESS && t_.counts &&                                            \
		    taken_commit(&t_, taken_end(&t_), (uint64_t)(uintptr_t) * (handle),            \
				 VG_KIND_MODULE) < 0) {                                            \
			(void)(undo);                                                              \
			rc_ = CUDA_ERROR_OUT_OF_MEMORY;                                            \
		}                                                                                  \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

VG_EXPORT CUresult cuModuleLoad(CUmodule *module, const char *path)
{
	LOAD_THROUGH(module, REAL(cuModuleLoad, module, path), REAL(cuModuleUnload, *module));
}

VG_EXPORT CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
	LOAD_THROUGH(module, REAL(cuModuleLoadData, module, image), REAL(cuModuleUnload, *module));
}

VG_EXPORT CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
				      CUjit_option *options, void **values)
{
	LOAD_THROUGH(module, REAL(cuModuleLoadDataEx, module, image, count, options, values),
		     REAL(cuModuleUnload, *module));
}

VG_EXPORT CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
	LOAD_THROUGH(module, REAL(cuModuleLoadFatBinary, module, image),
		     REAL(cuModuleUnload, *module));
}

VG_EXPORT CUresult cuLibraryLoadData(CUlibrary *library, const void *image, CUjit_option *options,
				     void **values, unsigned int count,
				     CUlibraryOption *library_options, void **library_values,
				     unsigned int library_count)
{
	LOAD_THROUGH(library,
		     REAL(cuLibraryLoadData, library, image, options, values, count,
			  library_options, library_values, library_count),
		     REAL(cuLibraryUnload, *library));
}

VG_EXPORT CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path,
					 CUjit_option *options, void **values, unsigned int count,
					 CUlibraryOption *library_options, void **library_values,
					 unsigned int library_count)
{
	LOAD_THROUGH(library,
		     REAL(cuLibraryLoadFromFile, library, path, options, values, count,
			  library_options, library_values, library_count),
		     REAL(cuLibraryUnload, *library));
}

#define UNLOAD_THROUGH(handle, call)                                                               \
	do {                                                                                       \
		struct vg_entry entry_;                                                            \
		bool known_;                                                                       \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		known_ = vg_table_take((uint64_t)(uintptr_t)(handle), VG_KIND_MODULE, &entry_);    \
		rc_ = (call);                                                                      \
		if (known_ && rc_ == CUDA_SUCCESS)                                                 \
			discharge_entry(&entry_);                                                  \
		else if (known_)                                                                   \
			(void)vg_table_put(&entry_);                                               \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

VG_EXPORT CUresult cuModuleUnload(CUmodule module)
{
	UNLOAD_THROUGH(module, REAL(cuModuleUnload, module));
}

VG_EXPORT CUresult cuLibraryUnload(CUlibrary library)
{
	UNLOAD_THROUGH(library, REAL(cuLibraryUnload, library));
}

/*
 * Device heap and printf buffer come out of the card when the next module needs them: their growth is
 * charged when it is asked for.
 */
VG_EXPORT CUresult cuCtxSetLimit(CUlimit limit, size_t value)
{
	struct vg_where where;
	struct vg_entry entry = { 0 };
	uint64_t more = 0;
	size_t old = 0;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuCtxSetLimit, limit, value);
	if ((limit == CU_LIMIT_MALLOC_HEAP_SIZE || limit == CU_LIMIT_PRINTF_FIFO_SIZE) &&
	    vg_current(&where) && REAL(cuCtxGetLimit, &old, limit) == CUDA_SUCCESS) {
		uint64_t key = ((uint64_t)(uintptr_t)where.context << 4) | (uint64_t)limit;

		if (!vg_table_take(key, VG_KIND_LIMIT, &entry))
			entry = (struct vg_entry){ .key = key,
						   .owner = (uint64_t)(uintptr_t)where.context,
						   .kind = VG_KIND_LIMIT,
						   .index = (int16_t)where.index };
		if (value > old) {
			more = value - old;
			if (vg_reserve(where.index, REGION_MODULE, more, "device heap") < 0) {
				if (entry.bytes)
					(void)vg_table_put(&entry);
				vg_leave();
				return CUDA_ERROR_OUT_OF_MEMORY;
			}
		}
		rc = REAL(cuCtxSetLimit, limit, value);
		if (rc == CUDA_SUCCESS) {
			uint64_t less = value < old ? old - value : 0;

			if (less > entry.bytes)
				less = entry.bytes;
			region_discharge(&vg.region, where.index, REGION_MODULE, less);
			entry.bytes += more;
			entry.bytes -= less;
		} else {
			region_discharge(&vg.region, where.index, REGION_MODULE, more);
		}
		if (entry.bytes)
			(void)vg_table_put(&entry);
		vg_leave();
		return rc;
	}
	rc = REAL(cuCtxSetLimit, limit, value);
	vg_leave();
	return rc;
}
