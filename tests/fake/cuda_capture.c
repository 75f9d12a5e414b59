/* SPDX-License-Identifier: Apache-2.0 */
/* Stream capture: no stream can be captured yet, so none of this is reached. */
#include "cuda_module.h"

CUresult fake_capture_forbids(void)
{
	return CUDA_SUCCESS;
}

CUresult fake_capture_refuses(struct CUstream_st *stream)
{
	return CUDA_SUCCESS;
}

CUresult fake_capture_kernel(struct CUstream_st *stream, CUfunction function,
			     const struct fake_grid *grid, void **params, void **extra)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fake_capture_alloc(struct CUstream_st *stream, const CUmemPoolProps *props, size_t bytes,
			    CUdeviceptr *pointer)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fake_capture_free(struct CUstream_st *stream, CUdeviceptr pointer)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fake_capture_host(struct CUstream_st *stream, CUhostFn fn, void *data)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fake_capture_record(struct CUstream_st *stream, struct CUevent_st *event, bool external)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fake_capture_wait(struct CUstream_st *stream, struct CUevent_st *event, bool external)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

CUresult fake_capture_event(struct CUevent_st *event)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}

void fake_capture_abandon(struct CUstream_st *stream)
{
}

CUresult fake_graph_memory_free(struct fake_alloc *alloc)
{
	return CUDA_ERROR_NOT_SUPPORTED;
}
