/* SPDX-License-Identifier: Apache-2.0 */
/* Contexts: primary and others, each thread's stack of them, and their settings. */
#include <string.h>

#include "cuda_driver.h"

#define STACK_MAX 64

/* Handles come back: a context that died is told from a later one at the same address by its id. */
struct entry {
	struct CUctx_st *context;
	uint64_t id;
};

static __thread struct entry stack[STACK_MAX];
static __thread int depth;

static bool entry_lives(const struct entry *entry)
{
	return fake_is(entry->context, FAKE_CONTEXT) && entry->context->id == entry->id &&
	       entry->context->alive;
}

CUresult fake_current_check(void)
{
	if (!depth || !stack[depth - 1].context)
		return CUDA_ERROR_INVALID_CONTEXT;
	return entry_lives(&stack[depth - 1]) ? CUDA_SUCCESS : CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

struct CUctx_st *fake_current(void)
{
	return fake_current_check() == CUDA_SUCCESS ? stack[depth - 1].context : NULL;
}

static CUresult push(struct CUctx_st *context)
{
	if (depth == STACK_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	stack[depth++] = (struct entry){ context, context->id };
	return CUDA_SUCCESS;
}

/* ---- life ---- */

static const size_t limit_defaults[CU_LIMIT_COUNT] = {
	[CU_LIMIT_STACK_SIZE] = 1024,
	[CU_LIMIT_PRINTF_FIFO_SIZE] = 1 << 20,
	[CU_LIMIT_MALLOC_HEAP_SIZE] = 8 << 20,
	[CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH] = 2,
	[CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT] = 2048,
	[CU_LIMIT_MAX_L2_FETCH_GRANULARITY] = 64,
};

static struct CUctx_st *context_new(uint32_t device)
{
	struct CUctx_st *context = fake_object_new(sizeof(*context), FAKE_CONTEXT, NULL);

	context->device = device;
	return context;
}

static uint64_t context_cost(const struct fake_device *device)
{
	const struct fake_card *card = fake_unit_card(&fake.machine, device->unit);

	return card->context_bytes + card->unlisted_bytes;
}

/* Gives life to a context, which costs memory on its card. */
static CUresult context_start(struct CUctx_st *context, unsigned int flags, unsigned int api)
{
	struct fake_device *device = &fake.device[context->device];

	if (!fake_charge(device, context_cost(device)))
		return CUDA_ERROR_OUT_OF_MEMORY;
	context->id = ++fake.next_id;
	context->flags = flags;
	context->api_version = api;
	context->alive = true;
	context->attached = 1;
	context->peers = 0;
	context->cache_config = context->shared_config = 0;
	memcpy(context->limit, limit_defaults, sizeof(context->limit));
	context->small = (struct fake_arena){
		.take = fake_arena_charge,
		.give = fake_arena_uncharge,
		.context = device,
		.segment_bytes = FAKE_PAGE,
	};
	context->arrays = context->small;
	context->legacy = fake_object_new(sizeof(*context->legacy), FAKE_STREAM, context);
	context->legacy->legacy = true;
	context->legacy->id = (uint32_t)++fake.next_id;
	fake_contexts_add(fake.state, device->unit, 1);
	return CUDA_SUCCESS;
}

/* What it still has to do is done first, as with the real driver. */
static void context_stop(struct CUctx_st *context)
{
	struct fake_device *device = &fake.device[context->device];

	context->alive = false;
	fake_device_wait(context->device);
	fake_context_empty(context);
	fake_pools_empty(context->device);
	fake_contexts_add(fake.state, device->unit, -1);
	fake_uncharge(device, context_cost(device));
}

void fake_context_empty(struct CUctx_st *context)
{
	for (struct fake_alloc *alloc = fake_allocs(), *next; alloc; alloc = next) {
		next = alloc->next;
		if (alloc->context == context)
			fake_alloc_release(alloc);
	}
	fake_streams_close(context);
	while (context->objects)
		fake_object_destroy(context->objects);
	fake_arena_release(&context->small);
	fake_arena_release(&context->arrays);
	context->legacy = NULL;
}

void fake_contexts_setup(void)
{
	for (uint32_t i = 0; i < fake.devices; i++) {
		fake.device[i].primary = context_new(i);
		fake.device[i].primary->primary = true;
	}
}

/* ---- primary contexts ---- */

static bool flags_known(unsigned int flags)
{
	return (flags & ~(unsigned int)CU_CTX_FLAGS_MASK) == 0;
}

FAKE_CUDA(cuDevicePrimaryCtxRetain, FAKE_INIT, (CUcontext * context, CUdevice ordinal),
	  (context, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!device->primary->alive) {
		CUresult rc = context_start(device->primary, device->primary_flags, 3020);

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	device->primary_refs++;
	*context = device->primary;
	return CUDA_SUCCESS;
}

static CUresult primary_release(CUdevice ordinal)
{
	struct fake_device *device = fake_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!device->primary_refs)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--device->primary_refs == 0 && device->primary->alive)
		context_stop(device->primary);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDevicePrimaryCtxRelease_v2, FAKE_INIT, (CUdevice ordinal), (ordinal))
{
	return primary_release(ordinal);
}

FAKE_CUDA(cuDevicePrimaryCtxRelease, FAKE_INIT, (CUdevice ordinal), (ordinal))
{
	return primary_release(ordinal);
}

static CUresult primary_reset(CUdevice ordinal)
{
	struct fake_device *device = fake_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	device->primary_refs = 0;
	if (device->primary->alive)
		context_stop(device->primary);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDevicePrimaryCtxReset_v2, FAKE_INIT, (CUdevice ordinal), (ordinal))
{
	return primary_reset(ordinal);
}

FAKE_CUDA(cuDevicePrimaryCtxReset, FAKE_INIT, (CUdevice ordinal), (ordinal))
{
	return primary_reset(ordinal);
}

static CUresult primary_set_flags(CUdevice ordinal, unsigned int flags)
{
	struct fake_device *device = fake_device(ordinal);

	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (!flags_known(flags))
		return CUDA_ERROR_INVALID_VALUE;
	device->primary_flags = flags;
	if (device->primary->alive)
		device->primary->flags = flags;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDevicePrimaryCtxSetFlags_v2, FAKE_INIT, (CUdevice ordinal, unsigned int flags),
	  (ordinal, flags))
{
	return primary_set_flags(ordinal, flags);
}

FAKE_CUDA(cuDevicePrimaryCtxSetFlags, FAKE_INIT, (CUdevice ordinal, unsigned int flags),
	  (ordinal, flags))
{
	return primary_set_flags(ordinal, flags);
}

FAKE_CUDA(cuDevicePrimaryCtxGetState, FAKE_INIT,
	  (CUdevice ordinal, unsigned int *flags, int *active), (ordinal, flags, active))
{
	struct fake_device *device = fake_device(ordinal);

	if (!flags || !active)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*flags = device->primary_flags;
	*active = device->primary->alive;
	return CUDA_SUCCESS;
}

/* ---- other contexts ---- */

static CUresult context_create(CUcontext *ret_context, unsigned int flags, CUdevice ordinal,
			       unsigned int api)
{
	struct fake_device *device = fake_device(ordinal);
	struct CUctx_st *context;
	CUresult rc;

	if (!ret_context || !flags_known(flags))
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	context = context_new((uint32_t)ordinal);
	rc = context_start(context, flags, api);
	if (rc == CUDA_SUCCESS)
		rc = push(context);
	if (rc != CUDA_SUCCESS) {
		if (context->alive)
			context_stop(context);
		fake_object_free(context);
		return rc;
	}
	*ret_context = context;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxCreate, FAKE_INIT, (CUcontext * context, unsigned int flags, CUdevice ordinal),
	  (context, flags, ordinal))
{
	/* Contexts of the 32-bit interface are not made any more. */
	return CUDA_ERROR_NOT_SUPPORTED;
}

FAKE_CUDA(cuCtxCreate_v2, FAKE_INIT, (CUcontext * context, unsigned int flags, CUdevice ordinal),
	  (context, flags, ordinal))
{
	return context_create(context, flags, ordinal, 3020);
}

FAKE_CUDA(cuCtxCreate_v3, FAKE_INIT,
	  (CUcontext * context, void *affinity, int affinities, unsigned int flags,
	   CUdevice ordinal),
	  (context, affinity, affinities, flags, ordinal))
{
	if (affinity || affinities)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return context_create(context, flags, ordinal, 3020);
}

FAKE_CUDA(cuCtxCreate_v4, FAKE_INIT,
	  (CUcontext * context, CUctxCreateParams *params, unsigned int flags, CUdevice ordinal),
	  (context, params, flags, ordinal))
{
	if (params && params->numExecAffinityParams)
		return CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY;
	return context_create(context, flags, ordinal, 3020);
}

static CUresult context_destroy(CUcontext context)
{
	if (!fake_is(context, FAKE_CONTEXT) || !context->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth && stack[depth - 1].context == context)
		depth--;
	context_stop(context);
	fake_object_free(context);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxDestroy_v2, FAKE_INIT, (CUcontext context), (context))
{
	return context_destroy(context);
}

FAKE_CUDA(cuCtxDestroy, FAKE_INIT, (CUcontext context), (context))
{
	return context_destroy(context);
}

FAKE_CUDA(cuCtxAttach, FAKE_CURRENT, (CUcontext * context, unsigned int flags), (context, flags))
{
	if (!context || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*context = fake_current();
	(*context)->attached++;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxDetach, FAKE_INIT, (CUcontext context), (context))
{
	if (!fake_is(context, FAKE_CONTEXT) || !context->alive || context->primary)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (--context->attached)
		return CUDA_SUCCESS;
	return context_destroy(context);
}

/* ---- the thread's stack ---- */

static CUresult context_push(CUcontext context)
{
	if (!fake_is(context, FAKE_CONTEXT) || !context->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	return push(context);
}

FAKE_CUDA(cuCtxPushCurrent_v2, FAKE_INIT, (CUcontext context), (context))
{
	return context_push(context);
}

FAKE_CUDA(cuCtxPushCurrent, FAKE_INIT, (CUcontext context), (context))
{
	return context_push(context);
}

static CUresult context_pop(CUcontext *context)
{
	if (!depth)
		return CUDA_ERROR_INVALID_CONTEXT;
	depth--;
	if (context)
		*context = stack[depth].context;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxPopCurrent_v2, FAKE_INIT, (CUcontext * context), (context))
{
	return context_pop(context);
}

FAKE_CUDA(cuCtxPopCurrent, FAKE_INIT, (CUcontext * context), (context))
{
	return context_pop(context);
}

FAKE_CUDA(cuCtxSetCurrent, FAKE_INIT, (CUcontext context), (context))
{
	if (!context) {
		if (depth)
			depth--;
		return CUDA_SUCCESS;
	}
	if (!fake_is(context, FAKE_CONTEXT) || !context->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (depth)
		depth--;
	return push(context);
}

FAKE_CUDA(cuCtxGetCurrent, FAKE_INIT, (CUcontext * context), (context))
{
	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	*context = depth ? stack[depth - 1].context : NULL;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxGetDevice, FAKE_CURRENT, (CUdevice * device), (device))
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	*device = (CUdevice)fake_current()->device;
	return CUDA_SUCCESS;
}

/* NULL stands for the calling thread's context in what takes one. */
static CUresult context_or_current(CUcontext handle, struct CUctx_st **ret_context)
{
	if (!handle) {
		CUresult rc = fake_current_check();

		if (rc == CUDA_SUCCESS)
			*ret_context = fake_current();
		return rc;
	}
	if (!fake_is(handle, FAKE_CONTEXT) || !handle->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	*ret_context = handle;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxGetDevice_v2, FAKE_INIT, (CUdevice * device, CUcontext handle), (device, handle))
{
	struct CUctx_st *context;
	CUresult rc = context_or_current(handle, &context);

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*device = (CUdevice)context->device;
	return rc;
}

FAKE_CUDA(cuCtxGetId, FAKE_INIT, (CUcontext handle, unsigned long long *id), (handle, id))
{
	struct CUctx_st *context;
	CUresult rc = context_or_current(handle, &context);

	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*id = context->id;
	return rc;
}

FAKE_CUDA(cuCtxGetApiVersion, FAKE_INIT, (CUcontext handle, unsigned int *version),
	  (handle, version))
{
	struct CUctx_st *context;
	CUresult rc = context_or_current(handle, &context);

	if (!version)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*version = context->api_version;
	return rc;
}

/* ---- waiting and settings ---- */

static CUresult synchronize(struct CUctx_st *context)
{
	CUresult rc = fake_capture_in(context);

	return rc == CUDA_SUCCESS ? fake_device_wait(context->device) : rc;
}

FAKE_CUDA(cuCtxSynchronize, FAKE_CURRENT | FAKE_UNSAFE, (void), ())
{
	return synchronize(fake_current());
}

FAKE_CUDA(cuCtxSynchronize_v2, FAKE_INIT | FAKE_UNSAFE, (CUcontext handle), (handle))
{
	struct CUctx_st *context;
	CUresult rc = context_or_current(handle, &context);

	return rc == CUDA_SUCCESS ? synchronize(context) : rc;
}

FAKE_CUDA(cuCtxGetFlags, FAKE_CURRENT, (unsigned int *flags), (flags))
{
	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = fake_current()->flags;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxSetFlags, FAKE_CURRENT, (unsigned int flags), (flags))
{
	if (!flags_known(flags))
		return CUDA_ERROR_INVALID_VALUE;
	fake_current()->flags = flags;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxSetLimit, FAKE_CURRENT, (CUlimit limit, size_t value), (limit, value))
{
	if (limit < 0 || limit >= CU_LIMIT_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	/* Measured: a larger heap takes nothing yet; a kernel that needs it would. */
	fake_current()->limit[limit] = value;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxGetLimit, FAKE_CURRENT, (size_t * value, CUlimit limit), (value, limit))
{
	if (!value || limit < 0 || limit >= CU_LIMIT_COUNT)
		return CUDA_ERROR_INVALID_VALUE;
	*value = fake_current()->limit[limit];
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxGetCacheConfig, FAKE_CURRENT, (CUfunc_cache * config), (config))
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = fake_current()->cache_config;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxSetCacheConfig, FAKE_CURRENT, (CUfunc_cache config), (config))
{
	if (config < 0 || config > 3)
		return CUDA_ERROR_INVALID_VALUE;
	fake_current()->cache_config = config;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxGetSharedMemConfig, FAKE_CURRENT, (CUsharedconfig * config), (config))
{
	if (!config)
		return CUDA_ERROR_INVALID_VALUE;
	*config = fake_current()->shared_config;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxSetSharedMemConfig, FAKE_CURRENT, (CUsharedconfig config), (config))
{
	if (config < 0 || config > 2)
		return CUDA_ERROR_INVALID_VALUE;
	fake_current()->shared_config = config;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxGetStreamPriorityRange, FAKE_CURRENT, (int *least, int *greatest), (least, greatest))
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxResetPersistingL2Cache, FAKE_CURRENT, (void), ())
{
	return CUDA_SUCCESS;
}
