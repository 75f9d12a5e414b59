/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_CUDA_MODULE_H
#define FAKE_CUDA_MODULE_H

#include "cuda_driver.h"

#define FAKE_PARAMS_MAX      64u
#define FAKE_PARAM_BYTES_MAX 4096u

/* A kernel, as a function of a module or (without one) of a library: the driver takes the handle of
 * either where it wants something to launch. */
struct CUfunc_st {
	struct fake_object object;
	char *name;
	struct CUmod_st *module;
	struct CUlib_st *library;
	struct CUfunc_st *next; /* of the module or library */
	/* From the PTX text; unknown (params_known false) for compiled images. */
	bool params_known;
	uint32_t params;
	uint32_t param_offset[FAKE_PARAMS_MAX];
	uint32_t param_bytes[FAKE_PARAMS_MAX];
	uint32_t params_bytes; /* of all */
	int attribute[CU_FUNC_ATTRIBUTE_COUNT];
	/* For launches in the manner of CUDA 1. */
	uint32_t block[3];
	uint32_t shared_bytes;
	unsigned char old_params[FAKE_PARAM_BYTES_MAX];
};

struct fake_global {
	char *name;
	uint64_t bytes;
	struct fake_alloc *alloc; /* NULL in a library */
	struct fake_global *next;
};

struct CUmod_st {
	struct fake_object object;
	struct CUlib_st *library; /* whose module in this context it is */
	char *ptx; /* NULL: a compiled image, which has every name that is asked for */
	struct CUfunc_st *functions;
	struct fake_global *globals;
};

struct CUlib_st {
	struct fake_object object;
	char *ptx;
	struct CUfunc_st *kernels;
	struct CUmod_st *module[FAKE_CARDS_MAX]; /* by device */
};

/* A grid of a kernel as the simulation sees it. */
struct fake_launch {
	uint64_t ns;
	uint32_t sms;
};

struct fake_grid {
	uint32_t grid[3], block[3];
	uint32_t shared_bytes;
	bool cooperative;
};

/* Where the values are: an array of pointers, or one buffer in `extra`. */
CUresult fake_kernel_launch(const struct CUfunc_st *function, uint32_t device,
			    const struct fake_grid *grid, void **params, void **extra,
			    struct fake_launch *ret_launch);

#endif
