/* SPDX-License-Identifier: Apache-2.0 */
#ifndef FAKE_CUDA_ARRAY_H
#define FAKE_CUDA_ARRAY_H

#include "cuda_driver.h"

#define FAKE_LEVELS_MAX 32u

/* Device memory behind an array. */
struct fake_storage {
	struct CUctx_st *context;
	unsigned char *data;
	struct fake_block *block; /* in the context's arena; otherwise its own mapping */
	uint64_t map_bytes;
	uint64_t charged_bytes;
};

struct CUarray_st {
	struct fake_object object;
	CUDA_ARRAY3D_DESCRIPTOR shape;
	struct fake_storage storage; /* empty in a level of a mipmap */
	struct CUmipmappedArray_st *mipmap;
	unsigned char *data;
	uint64_t row_bytes, bytes;
};

struct CUmipmappedArray_st {
	struct fake_object object;
	CUDA_ARRAY3D_DESCRIPTOR shape;
	struct fake_storage storage;
	unsigned int levels;
	uint64_t bytes;
	struct CUarray_st *level[FAKE_LEVELS_MAX];
};

#endif
