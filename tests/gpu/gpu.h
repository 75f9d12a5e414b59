/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPU programs share: the driver loaded with dlopen (no toolkit, no link dependency), a
 * kernel as PTX text, and a clock. The same binaries run on the real driver and on the fake one.
 */
#ifndef VGPU_TESTS_GPU_H
#define VGPU_TESTS_GPU_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "libvgpu/cuda_abi.h"
#include "libvgpu/nvml_abi.h"

struct gpu_api {
#define VG_CUDA(symbol, base, version, flavour, class, params) CUresult(*symbol) params;
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
};

struct gpu_nvml {
#define VG_NVML(symbol, class, params) nvmlReturn_t(*symbol) params;
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
};

/* Aborts the program with the place and the code: test programs have nothing better to do. */
#define GPU_OK(call)                                                                               \
	do {                                                                                       \
		int gpu_rc_ = (call);                                                              \
		if (gpu_rc_ != 0) {                                                                \
			fprintf(stderr, "%s:%d: %s = %d\n", __FILE__, __LINE__, #call, gpu_rc_);   \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

static inline uint64_t gpu_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void gpu_sleep_ns(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &t, &t) == EINTR)
		;
}

static inline void gpu_load(struct gpu_api *cu)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);

	if (!library) {
		fprintf(stderr, "no CUDA driver: %s\n", dlerror());
		exit(77);
	}
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	cu->symbol = (CUresult(*) params)dlsym(library, #symbol);
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
}

static inline bool gpu_load_nvml(struct gpu_nvml *nv)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	memset(nv, 0, sizeof(*nv));
	if (!library)
		return false;
#define VG_NVML(symbol, class, params) nv->symbol = (nvmlReturn_t(*) params)dlsym(library, #symbol);
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
	return nv->nvmlInit_v2 && nv->nvmlInit_v2() == NVML_SUCCESS;
}

/* work(n, out): n rounds of dependent multiply-adds per thread: an amount of work, not of time. */
#define GPU_PTX                                                                                    \
	".version 6.0\n.target sm_50\n.address_size 64\n"                                          \
	".visible .entry work(.param .u32 p_n, .param .u64 p_out)\n{\n"                            \
	".reg .f32 %a, %x;\n.reg .u32 %i, %n;\n.reg .pred %p;\n.reg .u64 %o;\n"                    \
	"ld.param.u32 %n, [p_n];\nld.param.u64 %o, [p_out];\n"                                     \
	"mov.f32 %x, 0f3F800000;\nmov.f32 %a, 0f3F7FFFF0;\nmov.u32 %i, 0;\n"                       \
	"LOOP:\n"                                                                                  \
	"fma.rn.f32 %x, %x, %a, %a;\nfma.rn.f32 %x, %x, %a, %a;\n"                                 \
	"fma.rn.f32 %x, %x, %a, %a;\nfma.rn.f32 %x, %x, %a, %a;\n"                                 \
	"fma.rn.f32 %x, %x, %a, %a;\nfma.rn.f32 %x, %x, %a, %a;\n"                                 \
	"fma.rn.f32 %x, %x, %a, %a;\nfma.rn.f32 %x, %x, %a, %a;\n"                                 \
	"add.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, %n;\n@%p bra LOOP;\n"                             \
	"setp.eq.f32 %p, %x, 0f00000000;\n@!%p bra END;\nst.global.f32 [%o], %x;\n"                \
	"END:\nret;\n}\n"

#endif
