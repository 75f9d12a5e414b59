/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Declarations of the functions that libvgpu.so exports, made from the lists of symbols. A row without
 * a body does not link; a body that differs from its row does not compile.
 */
#ifndef VGPU_LIBVGPU_HOOKS_H
#define VGPU_LIBVGPU_HOOKS_H

#include "libvgpu/cuda_abi.h"
#include "libvgpu/nvml_abi.h"

#define VG_ROW_ENFORCE(declaration)    __attribute__((visibility("default"))) declaration;
#define VG_ROW_ACCOUNT(declaration)    __attribute__((visibility("default"))) declaration;
#define VG_ROW_VIRTUALISE(declaration) __attribute__((visibility("default"))) declaration;
#define VG_ROW_GATE(declaration)       __attribute__((visibility("default"))) declaration;
#define VG_ROW_CALL(declaration)
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	VG_ROW_##class(CUresult symbol params)
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
#define VG_NVML(symbol, class, params) VG_ROW_##class(nvmlReturn_t symbol params)
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML

#endif
