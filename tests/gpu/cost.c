/* SPDX-License-Identifier: Apache-2.0 */
/* cost: what single calls cost, median of many rounds, in ns. Run it bare and preloaded. */
#include "gpu.h"

enum { ROUNDS = 101, LIVE = 4000 };

static struct gpu_api cu;

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

#define MEDIAN(name, n, before, call)                                                              \
	do {                                                                                       \
		double rounds_[ROUNDS];                                                            \
		for (int r_ = 0; r_ < ROUNDS; r_++) {                                              \
			uint64_t t_;                                                               \
			before;                                                                    \
			t_ = gpu_now_ns();                                                         \
			for (int i_ = 0; i_ < (n); i_++) {                                         \
				call;                                                              \
			}                                                                          \
			rounds_[r_] = (double)(gpu_now_ns() - t_) / (n);                           \
		}                                                                                  \
		qsort(rounds_, ROUNDS, sizeof(rounds_[0]), compare);                               \
		printf("%-12s %9.1f\n", name, rounds_[ROUNDS / 2]);                                \
	} while (0)

int main(void)
{
	static CUdeviceptr live[LIVE];
	unsigned int units = 1;
	size_t free_bytes, total;
	CUdeviceptr p = 0, out;
	CUfunction function;
	CUcontext context;
	CUstream stream;
	CUmodule module;
	void *args[] = { &units, &out };

	gpu_load(&cu);
	GPU_OK(cu.cuInit(0));
	GPU_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
	GPU_OK(cu.cuCtxSetCurrent(context));
	GPU_OK(cu.cuModuleLoadData(&module, GPU_PTX));
	GPU_OK(cu.cuModuleGetFunction(&function, module, "work"));
	GPU_OK(cu.cuMemAlloc_v2(&out, 4));
	GPU_OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < LIVE; i++)
		GPU_OK(cu.cuMemAlloc_v2(&live[i], 4096));
	MEDIAN("alloc_free", 200, (void)0, (cu.cuMemAlloc_v2(&p, 4096), cu.cuMemFree_v2(p)));
	for (int i = 0; i < LIVE; i++)
		GPU_OK(cu.cuMemFree_v2(live[i]));
	GPU_OK(cu.cuMemAllocAsync(&p, 1 << 20, stream));
	MEDIAN("async", 1000, GPU_OK(cu.cuStreamSynchronize(stream)),
	       (cu.cuMemAllocAsync(&p, 1 << 20, stream), cu.cuMemFreeAsync(p, stream)));
	MEDIAN("launch", 500, GPU_OK(cu.cuStreamSynchronize(stream)),
	       cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, stream, args, NULL));
	MEDIAN("meminfo", 200, (void)0, cu.cuMemGetInfo_v2(&free_bytes, &total));
	return 0;
}
