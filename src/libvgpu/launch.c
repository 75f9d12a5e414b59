/* SPDX-License-Identifier: Apache-2.0 */
/* Every way to start work on a device. What a launch costs in time is limiter.c's business. */
#include <errno.h>

#include "libvgpu/guest.h"
#include "libvgpu/hooks.h"

static uint64_t key_of(const void *function, uint64_t blocks, uint64_t threads)
{
	return (uint64_t)(uintptr_t)function * 0x9e3779b97f4a7c15ull +
	       blocks * 0xc2b2ae3d27d4eb4full + threads;
}

static uint64_t volume(unsigned int x, unsigned int y, unsigned int z)
{
	return (uint64_t)x * y * z;
}

/* What a NULL stream means to the *_ptsz functions, in the words of the others. */
static CUstream per_thread(CUstream stream)
{
	return stream ? stream : CU_STREAM_PER_THREAD;
}

#define LAUNCH_THROUGH(stream, key, call)                                                          \
	do {                                                                                       \
		struct vg_launch launch_;                                                          \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		vg_launch_begin(&launch_, (stream), (key));                                        \
		rc_ = (call);                                                                      \
		vg_launch_end(&launch_, rc_);                                                      \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

VG_EXPORT CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy,
				  unsigned int gz, unsigned int bx, unsigned int by,
				  unsigned int bz, unsigned int shared, CUstream stream,
				  void **params, void **extra)
{
	LAUNCH_THROUGH(stream, key_of(function, volume(gx, gy, gz), volume(bx, by, bz)),
		       REAL(cuLaunchKernel, function, gx, gy, gz, bx, by, bz, shared, stream,
			    params, extra));
}

VG_EXPORT CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy,
				       unsigned int gz, unsigned int bx, unsigned int by,
				       unsigned int bz, unsigned int shared, CUstream stream,
				       void **params, void **extra)
{
	LAUNCH_THROUGH(per_thread(stream), key_of(function, volume(gx, gy, gz), volume(bx, by, bz)),
		       REAL(cuLaunchKernel_ptsz, function, gx, gy, gz, bx, by, bz, shared, stream,
			    params, extra));
}

static uint64_t key_of_config(const CUlaunchConfig *c, const void *function)
{
	return c ? key_of(function, volume(c->gridDimX, c->gridDimY, c->gridDimZ),
			  volume(c->blockDimX, c->blockDimY, c->blockDimZ))
		 : 0;
}

VG_EXPORT CUresult cuLaunchKernelEx(const CUlaunchConfig *config, CUfunction function,
				    void **params, void **extra)
{
	LAUNCH_THROUGH(config ? config->hStream : NULL, key_of_config(config, function),
		       REAL(cuLaunchKernelEx, config, function, params, extra));
}

VG_EXPORT CUresult cuLaunchKernelEx_ptsz(const CUlaunchConfig *config, CUfunction function,
					 void **params, void **extra)
{
	LAUNCH_THROUGH(per_thread(config ? config->hStream : NULL), key_of_config(config, function),
		       REAL(cuLaunchKernelEx_ptsz, config, function, params, extra));
}

VG_EXPORT CUresult cuLaunchCooperativeKernel(CUfunction function, unsigned int gx, unsigned int gy,
					     unsigned int gz, unsigned int bx, unsigned int by,
					     unsigned int bz, unsigned int shared, CUstream stream,
					     void **params)
{
	LAUNCH_THROUGH(stream, key_of(function, volume(gx, gy, gz), volume(bx, by, bz)),
		       REAL(cuLaunchCooperativeKernel, function, gx, gy, gz, bx, by, bz, shared,
			    stream, params));
}

VG_EXPORT CUresult cuLaunchCooperativeKernel_ptsz(CUfunction function, unsigned int gx,
						  unsigned int gy, unsigned int gz, unsigned int bx,
						  unsigned int by, unsigned int bz,
						  unsigned int shared, CUstream stream,
						  void **params)
{
	LAUNCH_THROUGH(per_thread(stream), key_of(function, volume(gx, gy, gz), volume(bx, by, bz)),
		       REAL(cuLaunchCooperativeKernel_ptsz, function, gx, gy, gz, bx, by, bz,
			    shared, stream, params));
}

/* One launch per device at once: the current one's share is waited for, all of them are charged. */
VG_EXPORT CUresult cuLaunchCooperativeKernelMultiDevice(CUDA_LAUNCH_PARAMS *launches,
							unsigned int count, unsigned int flags)
{
	LAUNCH_THROUGH(launches && count ? launches[0].hStream : NULL,
		       launches && count
			       ? key_of(launches[0].function,
					volume(launches[0].gridDimX, launches[0].gridDimY,
					       launches[0].gridDimZ),
					volume(launches[0].blockDimX, launches[0].blockDimY,
					       launches[0].blockDimZ))
			       : 0,
		       REAL(cuLaunchCooperativeKernelMultiDevice, launches, count, flags));
}

VG_EXPORT CUresult cuLaunch(CUfunction function)
{
	LAUNCH_THROUGH(NULL, key_of(function, 1, 0), REAL(cuLaunch, function));
}

VG_EXPORT CUresult cuLaunchGrid(CUfunction function, int width, int height)
{
	LAUNCH_THROUGH(NULL,
		       key_of(function, (uint64_t)(unsigned int)width * (unsigned int)height, 0),
		       REAL(cuLaunchGrid, function, width, height));
}

VG_EXPORT CUresult cuLaunchGridAsync(CUfunction function, int width, int height, CUstream stream)
{
	LAUNCH_THROUGH(stream,
		       key_of(function, (uint64_t)(unsigned int)width * (unsigned int)height, 0),
		       REAL(cuLaunchGridAsync, function, width, height, stream));
}

/* ---- graphs --------------------------------------------------------------------------------------- */

static CUresult run_graph(CUgraphExec exec, CUstream stream, bool ptsz, bool upload)
{
	if (upload)
		return ptsz ? REAL(cuGraphUpload_ptsz, exec, stream)
			    : REAL(cuGraphUpload, exec, stream);
	return ptsz ? REAL(cuGraphLaunch_ptsz, exec, stream) : REAL(cuGraphLaunch, exec, stream);
}

static CUresult start_graph(CUgraphExec exec, CUstream stream, bool ptsz, bool upload)
{
	CUstream plain = ptsz ? per_thread(stream) : stream;
	struct vg_launch launch;
	struct vg_entry entry;
	uint64_t paid = 0;
	bool allocates;
	CUresult rc;

	if (!vg_enter())
		return run_graph(exec, stream, ptsz, upload);
	allocates = vg_table_get((uint64_t)(uintptr_t)exec, VG_KIND_GRAPH, &entry);
	if (!upload)
		vg_launch_begin(&launch, plain, key_of(exec, 0, 1));
	if (allocates && vg_graph_reserve((CUdevice)entry.owner, entry.bytes, &paid) < 0) {
		rc = CUDA_ERROR_OUT_OF_MEMORY;
		allocates = false;
	} else {
		rc = run_graph(exec, stream, ptsz, upload);
	}
	if (allocates)
		vg_graph_settle((CUdevice)entry.owner, paid);
	if (!upload)
		vg_launch_end(&launch, rc);
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return start_graph(exec, stream, false, false);
}

VG_EXPORT CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream)
{
	return start_graph(exec, stream, true, false);
}

VG_EXPORT CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	return start_graph(exec, stream, false, true);
}

VG_EXPORT CUresult cuGraphUpload_ptsz(CUgraphExec exec, CUstream stream)
{
	return start_graph(exec, stream, true, true);
}

VG_EXPORT CUresult cuStreamDestroy_v2(CUstream stream)
{
	if (!vg_enter())
		return REAL(cuStreamDestroy_v2, stream);
	vg_limiter_stream_gone(stream);
	{
		CUresult rc = REAL(cuStreamDestroy_v2, stream);

		vg_leave();
		return rc;
	}
}
