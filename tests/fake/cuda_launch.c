/* SPDX-License-Identifier: Apache-2.0 */
/* Launches: how long a kernel takes, and everything that starts one. */
#include <string.h>

#include "base/num.h"
#include "base/str.h"
#include "cuda_module.h"

#define BLOCKS_PER_SM_MAX 32u
#define BUSY_NAME         "vgpu_busy"
/* tests/gpu/gpu.h: a number of rounds of eight multiply-adds. An H200 takes 42 ns for one. */
#define WORK_NAME         "work"
#define WORK_ROUND_NS     42u
#define WORK_START_NS     2000u

/* ---- how long ---- */

static uint32_t blocks_per_sm(const struct fake_card *card, uint64_t threads)
{
	uint64_t blocks = threads ? card->threads_per_sm / threads : 0;

	return blocks > BLOCKS_PER_SM_MAX ? BLOCKS_PER_SM_MAX : (uint32_t)(blocks ? blocks : 1);
}

/* "name_250us": 250,000. Units ns, us, ms. */
static bool ns_in_name(const char *name, uint64_t *ret_ns)
{
	const char *tail = strrchr(name, '_');
	struct vg_span digits;
	uint64_t unit, value;

	if (!tail || strlen(tail) < 4)
		return false;
	if (vg_ends_with(tail, "ns"))
		unit = 1;
	else if (vg_ends_with(tail, "us"))
		unit = 1000;
	else if (vg_ends_with(tail, "ms"))
		unit = 1000000;
	else
		return false;
	digits = (struct vg_span){ tail + 1, strlen(tail) - 3 };
	if (vg_parse_u64(digits, 0, 3600ull * 1000000000 / unit, &value, NULL) < 0)
		return false;
	*ret_ns = value * unit;
	return true;
}

/* The kernel's first parameter, a number. */
static bool first_param(void **params, void **extra, size_t bytes, uint64_t *ret)
{
	*ret = 0;
	if (params && params[0]) {
		memcpy(ret, params[0], bytes);
		return true;
	}
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER && extra[1]) {
			memcpy(ret, extra[1], bytes);
			return true;
		}
	}
	return false;
}

CUresult fake_kernel_launch(const struct CUfunc_st *function, uint32_t device,
			    const struct fake_grid *grid, void **params, void **extra,
			    struct fake_launch *ret_launch)
{
	const struct fake_card *card = &fake.machine.card[fake.device[device].card];
	uint64_t sms = fake_unit_sms(&fake.machine, fake.device[device].unit);
	uint64_t blocks, threads, per_sm, ns = card->kernel_ns, waves;

	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	for (int i = 0; i < 3; i++) {
		if (!grid->grid[i] || !grid->block[i])
			return CUDA_ERROR_INVALID_VALUE;
	}
	threads = (uint64_t)grid->block[0] * grid->block[1];
	if (threads > 1024 || threads * grid->block[2] > 1024 || grid->block[2] > 64 ||
	    grid->grid[0] > INT32_MAX || grid->grid[1] > 65535 || grid->grid[2] > 65535)
		return CUDA_ERROR_INVALID_VALUE;
	threads *= grid->block[2];
	if (params && extra)
		return CUDA_ERROR_INVALID_VALUE;
	/* With parameters to read, one of the two must say where they are. */
	if (!params && !extra && function->params)
		return CUDA_ERROR_INVALID_VALUE;
	blocks = (uint64_t)grid->grid[0] * grid->grid[1] * grid->grid[2];
	per_sm = blocks_per_sm(card, threads);
	if (grid->cooperative && blocks > per_sm * sms)
		return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;

	if (vg_starts_with(function->name, BUSY_NAME)) {
		if (!first_param(params, extra, sizeof(uint64_t), &ns))
			return CUDA_ERROR_INVALID_VALUE;
	} else if (strcmp(function->name, WORK_NAME) == 0) {
		if (!first_param(params, extra, sizeof(uint32_t), &ns))
			return CUDA_ERROR_INVALID_VALUE;
		ns = WORK_START_NS + ns * WORK_ROUND_NS;
	} else {
		ns_in_name(function->name, &ns);
	}
	waves = (blocks + per_sm * sms - 1) / (per_sm * sms);
	ret_launch->ns = ns * waves;
	ret_launch->sms = (uint32_t)(blocks >= per_sm * sms ? sms : (blocks + per_sm - 1) / per_sm);
	return CUDA_SUCCESS;
}

/* ---- launches ---- */

static CUresult launch(CUfunction function, const struct fake_grid *grid, CUstream handle,
		       void **params, void **extra)
{
	struct fake_launch what;
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	/* A function belongs to a context; a library's kernel to none. */
	if (fake_is(function, FAKE_FUNCTION) && function->module &&
	    function->module->object.context != stream->object.context)
		return CUDA_ERROR_INVALID_HANDLE;
	rc = fake_kernel_launch(function, stream->object.context->device, grid, params, extra,
				&what);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return fake_capture_kernel(stream, function, grid, params, extra);
	rc = fake_capture_implicit(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	return fake_stream_work(stream, what.ns, what.sms);
}

FAKE_CUDA_STREAM(cuLaunchKernel, FAKE_CURRENT,
		 (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
		  unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		  CUstream handle, void **params, void **extra),
		 (function, gx, gy, gz, bx, by, bz, shared, handle, params, extra), handle)
{
	struct fake_grid grid = { { gx, gy, gz }, { bx, by, bz }, shared, false };

	return launch(function, &grid, handle, params, extra);
}

FAKE_CUDA_STREAM(cuLaunchCooperativeKernel, FAKE_CURRENT,
		 (CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
		  unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
		  CUstream handle, void **params),
		 (function, gx, gy, gz, bx, by, bz, shared, handle, params), handle)
{
	struct fake_grid grid = { { gx, gy, gz }, { bx, by, bz }, shared, true };

	return launch(function, &grid, handle, params, NULL);
}

static CUresult launch_ex(const CUlaunchConfig *config, CUfunction function, void **params,
			  void **extra, bool per_thread)
{
	struct fake_grid grid;
	CUstream handle;

	if (!config || (config->numAttrs && !config->attrs))
		return CUDA_ERROR_INVALID_VALUE;
	grid = (struct fake_grid){
		.grid = { config->gridDimX, config->gridDimY, config->gridDimZ },
		.block = { config->blockDimX, config->blockDimY, config->blockDimZ },
		.shared_bytes = config->sharedMemBytes,
	};
	for (unsigned int i = 0; i < config->numAttrs; i++) {
		const CUlaunchAttribute *attribute = &((const CUlaunchAttribute *)config->attrs)[i];
		int value;

		memcpy(&value, attribute->value.pad, sizeof(value));
		if (attribute->id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && value)
			grid.cooperative = true;
	}
	handle = config->hStream;
	if (!handle && per_thread)
		handle = CU_STREAM_PER_THREAD;
	return launch(function, &grid, handle, params, extra);
}

FAKE_CUDA(cuLaunchKernelEx, FAKE_CURRENT,
	  (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
	  (config, function, params, extra))
{
	return launch_ex(config, function, params, extra, false);
}

FAKE_CUDA(cuLaunchKernelEx_ptsz, FAKE_CURRENT,
	  (const CUlaunchConfig *config, CUfunction function, void **params, void **extra),
	  (config, function, params, extra))
{
	return launch_ex(config, function, params, extra, true);
}

FAKE_CUDA(cuLaunchCooperativeKernelMultiDevice, FAKE_INIT,
	  (CUDA_LAUNCH_PARAMS * launches, unsigned int count, unsigned int flags),
	  (launches, count, flags))
{
	if (!launches || !count || count > fake.devices || flags > 3)
		return CUDA_ERROR_INVALID_VALUE;
	/* Each device once, each with a stream of its own. */
	for (unsigned int i = 0; i < count; i++) {
		if (!fake_is(launches[i].hStream, FAKE_STREAM) || launches[i].hStream->legacy)
			return CUDA_ERROR_INVALID_VALUE;
		for (unsigned int j = 0; j < i; j++) {
			if (launches[j].hStream->object.context->device ==
			    launches[i].hStream->object.context->device)
				return CUDA_ERROR_INVALID_VALUE;
		}
	}
	for (unsigned int i = 0; i < count; i++) {
		const CUDA_LAUNCH_PARAMS *one = &launches[i];
		struct fake_grid grid = {
			.grid = { one->gridDimX, one->gridDimY, one->gridDimZ },
			.block = { one->blockDimX, one->blockDimY, one->blockDimZ },
			.shared_bytes = one->sharedMemBytes,
			.cooperative = true,
		};
		CUresult rc = launch(one->function, &grid, one->hStream, one->kernelParams, NULL);

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	return CUDA_SUCCESS;
}

/* ---- in the manner of CUDA 1: shape and parameters first, then the launch ---- */

FAKE_CUDA(cuFuncSetBlockShape, FAKE_CURRENT, (CUfunction function, int x, int y, int z),
	  (function, x, y, z))
{
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (x <= 0 || y <= 0 || z <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	function->block[0] = (uint32_t)x;
	function->block[1] = (uint32_t)y;
	function->block[2] = (uint32_t)z;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuFuncSetSharedSize, FAKE_CURRENT, (CUfunction function, unsigned int bytes),
	  (function, bytes))
{
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	function->shared_bytes = bytes;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuParamSetSize, FAKE_CURRENT, (CUfunction function, unsigned int bytes),
	  (function, bytes))
{
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	return bytes <= FAKE_PARAM_BYTES_MAX ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult old_param(CUfunction function, int offset, const void *value, size_t bytes)
{
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!value || offset < 0 || (size_t)offset + bytes > FAKE_PARAM_BYTES_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(function->old_params + offset, value, bytes);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuParamSetv, FAKE_CURRENT,
	  (CUfunction function, int offset, void *value, unsigned int bytes),
	  (function, offset, value, bytes))
{
	return old_param(function, offset, value, bytes);
}

FAKE_CUDA(cuParamSeti, FAKE_CURRENT, (CUfunction function, int offset, unsigned int value),
	  (function, offset, value))
{
	return old_param(function, offset, &value, sizeof(value));
}

FAKE_CUDA(cuParamSetf, FAKE_CURRENT, (CUfunction function, int offset, float value),
	  (function, offset, value))
{
	return old_param(function, offset, &value, sizeof(value));
}

static CUresult old_launch(CUfunction function, int width, int height, CUstream handle)
{
	struct fake_grid grid;
	void *extra[] = { CU_LAUNCH_PARAM_BUFFER_POINTER, NULL, CU_LAUNCH_PARAM_END };

	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	if (width <= 0 || height <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	grid = (struct fake_grid){
		.grid = { (uint32_t)width, (uint32_t)height, 1 },
		.block = { function->block[0], function->block[1], function->block[2] },
		.shared_bytes = function->shared_bytes,
	};
	extra[1] = function->old_params;
	return launch(function, &grid, handle, NULL, extra);
}

FAKE_CUDA(cuLaunch, FAKE_CURRENT, (CUfunction function), (function))
{
	return old_launch(function, 1, 1, NULL);
}

FAKE_CUDA(cuLaunchGrid, FAKE_CURRENT, (CUfunction function, int width, int height),
	  (function, width, height))
{
	return old_launch(function, width, height, NULL);
}

FAKE_CUDA(cuLaunchGridAsync, FAKE_CURRENT,
	  (CUfunction function, int width, int height, CUstream handle),
	  (function, width, height, handle))
{
	return old_launch(function, width, height, handle);
}

/* ---- occupancy ---- */

static CUresult occupancy(int *blocks, CUfunction function, int threads)
{
	if (!blocks || threads <= 0 || threads > 1024)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*blocks = (int)blocks_per_sm(&fake.machine.card[fake.device[fake_current()->device].card],
				     (uint64_t)threads);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor, FAKE_CURRENT,
	  (int *blocks, CUfunction function, int threads, size_t shared),
	  (blocks, function, threads, shared))
{
	return occupancy(blocks, function, threads);
}

FAKE_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, FAKE_CURRENT,
	  (int *blocks, CUfunction function, int threads, size_t shared, unsigned int flags),
	  (blocks, function, threads, shared, flags))
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : occupancy(blocks, function, threads);
}

static CUresult best_block(int *grid, int *block, CUfunction function, int limit)
{
	struct fake_device *device = &fake.device[fake_current()->device];

	if (!grid || !block)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*block = limit > 0 && limit < 1024 ? limit : 1024;
	*grid = (int)(fake_unit_sms(&fake.machine, device->unit) *
		      blocks_per_sm(&fake.machine.card[device->card], (uint64_t)*block));
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuOccupancyMaxPotentialBlockSize, FAKE_CURRENT,
	  (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared,
	   int limit),
	  (grid, block, function, shared_of, shared, limit))
{
	return best_block(grid, block, function, limit);
}

FAKE_CUDA(cuOccupancyMaxPotentialBlockSizeWithFlags, FAKE_CURRENT,
	  (int *grid, int *block, CUfunction function, CUoccupancyB2DSize shared_of, size_t shared,
	   int limit, unsigned int flags),
	  (grid, block, function, shared_of, shared, limit, flags))
{
	return flags > 1 ? CUDA_ERROR_INVALID_VALUE : best_block(grid, block, function, limit);
}

FAKE_CUDA(cuOccupancyAvailableDynamicSMemPerBlock, FAKE_CURRENT,
	  (size_t * bytes, CUfunction function, int blocks, int threads),
	  (bytes, function, blocks, threads))
{
	if (!bytes || blocks <= 0 || threads <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(function, FAKE_FUNCTION))
		return CUDA_ERROR_INVALID_HANDLE;
	*bytes = 233472 / (size_t)blocks;
	return CUDA_SUCCESS;
}
