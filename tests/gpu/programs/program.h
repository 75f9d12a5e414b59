/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs here share. They run unchanged on a real card and on the fake driver, and find the
 * driver's functions in each of the ways that real programs do:
 *
 *	PROGRAM_WAY=dlsym        dlopen() and dlsym()        (old runtimes, plugins)
 *	PROGRAM_WAY=procaddress  cuGetProcAddress()          (today's runtimes)
 *	NAME-linked              the linker: -DPROGRAM_LINKED (programs built with -lcuda)
 */
#ifndef VGPU_TESTS_GPU_PROGRAM_H
#define VGPU_TESTS_GPU_PROGRAM_H

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../../fake/cuda_more_abi.h"
#include "libvgpu/nvml_abi.h"

#define CALL(symbol, base, version, params) VG_CUDA(symbol, base, version, NONE, PROGRAM, params)

struct driver {
#define VG_CUDA(symbol, base, version, flavour, class, params) CUresult(*symbol) params;
#include "libvgpu/cuda_symbols.def"

#include "calls.def"
#undef VG_CUDA
};

struct nvml {
#define VG_NVML(symbol, class, params) nvmlReturn_t(*symbol) params;
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
};

static struct driver cu;
static struct nvml nv;
static nvmlDevice_t nv_device;

/* Test programs have nothing better to do than to end where a call fails that must not. */
#define MUST(call)                                                                                 \
	do {                                                                                       \
		int must_rc_ = (call);                                                             \
		if (must_rc_ != 0) {                                                               \
			fprintf(stderr, "%s:%d: %s = %d\n", __FILE__, __LINE__, #call, must_rc_);  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

#ifdef PROGRAM_LINKED
#define VG_CUDA(symbol, base, version, flavour, class, params) extern CUresult symbol params;
#include "libvgpu/cuda_symbols.def"

#include "calls.def"
#undef VG_CUDA

static inline void program_load(void)
{
#define VG_CUDA(symbol, base, version, flavour, class, params) cu.symbol = symbol;
#include "libvgpu/cuda_symbols.def"

#include "calls.def"
#undef VG_CUDA
}
#else
#define PROGRAM_NONE   0
#define PROGRAM_LEGACY 0
#define PROGRAM_PTSZ   2

static inline void program_load(void)
{
	const char *way = getenv("PROGRAM_WAY");
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*lookup)(const char *, void **, int, cuuint64_t, int *);
	int status;

	if (!library) {
		fprintf(stderr, "no CUDA driver: %s\n", dlerror());
		exit(77);
	}
	if (!way || strcmp(way, "dlsym") == 0) {
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	cu.symbol = (CUresult(*) params)dlsym(library, #symbol);
#include "libvgpu/cuda_symbols.def"

#include "calls.def"
#undef VG_CUDA
		return;
	}
	lookup = (CUresult(*)(const char *, void **, int, cuuint64_t, int *))dlsym(
		library, "cuGetProcAddress_v2");
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	MUST(lookup(#base, (void **)&cu.symbol, version, PROGRAM_##flavour, &status));
#include "libvgpu/cuda_symbols.def"

#include "calls.def"
#undef VG_CUDA
}
#endif

/* NVML, and its handle of the card that is CUDA's first; false where there is none. */
static inline bool program_load_nvml(void)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW);

	if (!library)
		return false;
#define VG_NVML(symbol, class, params) nv.symbol = (nvmlReturn_t(*) params)dlsym(library, #symbol);
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
	return nv.nvmlInit_v2 && nv.nvmlInit_v2() == NVML_SUCCESS &&
	       nv.nvmlDeviceGetHandleByIndex_v2(0, &nv_device) == NVML_SUCCESS;
}

static inline uint64_t program_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void program_sleep_ms(unsigned int ms)
{
	struct timespec nap = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, &nap) == EINTR)
		;
}

/* "name=value" among the arguments, or `other`. */
static inline const char *program_option(char **argv, const char *name, const char *other)
{
	for (char **at = argv + 1; *at; at++) {
		if (strncmp(*at, name, strlen(name)) == 0 && (*at)[strlen(name)] == '=')
			return *at + strlen(name) + 1;
	}
	return other;
}

static inline unsigned long program_number(char **argv, const char *name, unsigned long other)
{
	const char *text = program_option(argv, name, NULL);

	return text ? strtoul(text, NULL, 10) : other;
}

/*
 * vgpu_busy(nanoseconds): every thread waits for that much of the card's clock to pass, so the kernel
 * takes that long whatever the card; the fake driver takes it by its word. vgpu_one() ends at once.
 */
static const char program_ptx[] =
	".version 6.0\n.target sm_50\n.address_size 64\n"
	".visible .entry vgpu_busy(.param .u64 p_ns)\n{\n"
	".reg .u64 %start, %now, %ns;\n.reg .pred %p;\n"
	"ld.param.u64 %ns, [p_ns];\n"
	"mov.u64 %start, %globaltimer;\n"
	"WAIT:\n"
	"mov.u64 %now, %globaltimer;\n"
	"sub.u64 %now, %now, %start;\n"
	"setp.lt.u64 %p, %now, %ns;\n"
	"@%p bra WAIT;\n"
	"ret;\n}\n"
	".visible .entry vgpu_one(.param .u32 p_x, .param .u64 p_y)\n{\nret;\n}\n";

#endif
