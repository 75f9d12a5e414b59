/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of libvgpu share. The library is a guest in somebody else's process:
 *   - it does nothing until the first CUDA or NVML call, and then only after the driver's own success;
 *   - it never ends the process, installs no signal handler, changes no umask, and is silent unless
 *     LIBCUDA_LOG_LEVEL asks;
 *   - it holds no lock while it calls the driver;
 *   - what it does not know goes to the driver unchanged.
 *
 * Every hook begins with vg_enter() and ends with vg_leave(): between them calls that come back to us
 * (from the driver, or from our own calls of it) pass straight through.
 */
#ifndef VGPU_LIBVGPU_GUEST_H
#define VGPU_LIBVGPU_GUEST_H

#include <stdbool.h>
#include <stdint.h>

#include "libvgpu/cuda_abi.h"
#include "libvgpu/nvml_abi.h"
#include "region/region.h"

#define VG_EXPORT   __attribute__((visibility("default")))
#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

/* ---- the real functions -------------------------------------------------------------------- */

struct vg_cuda_api {
#define VG_CUDA(symbol, base, version, flavour, class, params) CUresult(*symbol) params;
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
};

struct vg_nvml_api {
#define VG_NVML(symbol, class, params) nvmlReturn_t(*symbol) params;
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
};

extern struct vg_cuda_api vg_cuda;
extern struct vg_nvml_api vg_nvml;

/* Fills vg_cuda / vg_nvml. load: open the library if nobody has. True if it is there. */
bool vg_cuda_available(bool load);
bool vg_nvml_available(bool load);

/* Calls the driver's function, or answers that there is none. */
#define REAL(symbol, ...)                                                                          \
	(vg_cuda.symbol ? vg_cuda.symbol(__VA_ARGS__) : CUDA_ERROR_NOT_INITIALIZED)
#define REAL_NVML(symbol, ...)                                                                     \
	(vg_nvml.symbol ? vg_nvml.symbol(__VA_ARGS__) : NVML_ERROR_FUNCTION_NOT_FOUND)

/* ---- names ---------------------------------------------------------------------------------- */

enum vg_library { VG_LIBRARY_NONE, VG_LIBRARY_CUDA, VG_LIBRARY_NVML };

struct vg_name {
	const char *symbol;
	const char *base;
	int version;
	int flags; /* of cuGetProcAddress; 0: any */
	enum vg_library library;
	void *wrapper;     /* ours, NULL for CALL rows */
	void **real;       /* slot in vg_cuda or vg_nvml */
	void *alternative; /* what cuGetProcAddress returns, where it is not the ELF symbol */
};

/* The row of an ELF symbol that we export, or NULL. */
struct vg_name *vg_name_find(const char *symbol);
/* What to give instead of the driver's answer to cuGetProcAddress(base, ..., flags): ours or pfn. */
void *vg_name_translate(const char *base, uint64_t flags, void *pfn);

/* libc's own, found by walking the loaded objects. */
void *vg_real_dlsym(void *handle, const char *symbol);

/* ---- process state ------------------------------------------------------------------------- */

enum { VG_ORDINALS = 64 };

enum vg_policy { VG_POLICY_DEFAULT, VG_POLICY_FORCE, VG_POLICY_DISABLE };

struct vg_state {
	struct region region;
	int ordinals;              /* CUDA devices of this process */
	int8_t index[VG_ORDINALS]; /* CUDA ordinal -> index in the region */
	uint64_t physical[VGPU_REGION_DEVICES];
	enum vg_policy policy;
	bool oversubscribe;
	bool charge_host;
	bool single_device; /* one context device only: the current context tells the device */
};

extern struct vg_state vg;

/*
 * Opens a hook. False: pass straight through (no driver, not started, or called from inside).
 * True: vg is usable, call vg_leave() on every way out.
 */
bool vg_enter(void);
void vg_leave(void);
/* vg_enter() for NVML: the region without a slot is enough. */
bool vg_enter_nvml(void);
/* The driver's cuInit has succeeded. */
void vg_driver_started(void);

/* Region index of a CUDA ordinal, or -1. */
static inline int vg_index_of(CUdevice device)
{
	return LIKELY(device >= 0 && device < vg.ordinals) ? vg.index[device] : -1;
}

/* The current context and its device's region index. False without a context. */
struct vg_where {
	CUcontext context;
	CUdevice device;
	int index;
};
bool vg_current(struct vg_where *where);
/* Contexts died: what threads remember about them is void. */
void vg_forget_contexts(void);

/* Whether the process is told to stand still. */
static inline bool vg_suspended(void)
{
	return vg.region.slot != REGION_NO_SLOT &&
	       __atomic_load_n(&vg.region.ext->slot[vg.region.slot].suspend, __ATOMIC_RELAXED);
}

/* Waits while the process is told to stand still. Never call it while a stream captures. */
void vg_gate(void);

/* ---- log ------------------------------------------------------------------------------------- */

enum vg_level { VG_ERROR = 1, VG_WARNING = 2, VG_INFO = 3, VG_DEBUG = 4 };

void vg_log(enum vg_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- allocations ----------------------------------------------------------------------------- */

enum vg_kind {
	VG_KIND_DEVICE = 1,
	VG_KIND_ARRAY,
	VG_KIND_MODULE,
	VG_KIND_HOST,
	VG_KIND_HANDLE,  /* VMM allocation */
	VG_KIND_MAPPING, /* VMM mapping: owner is the handle */
	VG_KIND_GRAPH,
	VG_KIND_LIMIT, /* cuCtxSetLimit: the key is context ^ limit */
};

struct vg_entry {
	uint64_t key; /* pointer or handle, not 0 */
	uint64_t bytes;
	uint64_t owner;      /* context, or handle of a mapping */
	uint32_t references; /* handles: releases still due + mappings */
	uint16_t kind;
	int16_t index; /* device in the region */
};

/* False when there is no memory for it; the allocation then stays charged to the process. */
bool vg_table_put(const struct vg_entry *entry);
bool vg_table_take(uint64_t key, enum vg_kind kind, struct vg_entry *ret);
bool vg_table_get(uint64_t key, enum vg_kind kind, struct vg_entry *ret);
/* Adds to references; returns the new count, or -1 if there is no such entry. */
int64_t vg_table_refer(uint64_t key, enum vg_kind kind, int32_t change);
/* Takes out every entry of an owner, calling back for each; not for mappings. */
void vg_table_sweep(uint64_t owner, void (*taken)(const struct vg_entry *entry));
/* The mapping that holds address. */
bool vg_table_find_mapping(uint64_t address, struct vg_entry *ret);
/* In a forked child. */
void vg_table_reset(void);

/* ---- parts ----------------------------------------------------------------------------------- */

/* pool.c: corrects the charges of all pools; true if something was given back. */
bool vg_pools_refresh(void);
void vg_pools_reset(void);
/* Room for a graph's allocation nodes before its launch; what was paid goes to vg_graph_settle(). */
int vg_graph_reserve(CUdevice device, uint64_t bytes, uint64_t *ret_paid);
void vg_graph_settle(CUdevice device, uint64_t paid);

/* context.c */
void vg_contexts_reset(void);
void vg_context_gone(CUcontext context);

/* Reserves with everything that can be given back tried first. 0 or -ENOMEM. */
int vg_reserve(int index, enum region_kind kind, uint64_t bytes, const char *what);

/* What the driver takes for a plain allocation. */
static inline uint64_t vg_rounded(uint64_t bytes)
{
	const uint64_t big = 2u << 20;

	if (bytes > 1u << 20)
		return bytes > UINT64_MAX - big ? UINT64_MAX : (bytes + big - 1) & ~(big - 1);
	return (bytes + 511) & ~(uint64_t)511;
}

/*
 * What the container is told of a device, from what the driver said: never more than its limit, and
 * never more free than the card really has. On an oversubscribed node the limit is the truth even
 * where the card is smaller: the rest comes from managed memory. used may be NULL. Without a limit
 * nothing is changed.
 */
void vg_container_view(int index, uint64_t *total, uint64_t *free_bytes, uint64_t *used);

/* array_size.c */
uint64_t vg_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels);

/* nvml.c: makes the device list of the region complete; for start.c. */
void vg_nvml_identify(void);
/* Bytes that NVML reports for this process on a device; false if it does not say. */
bool vg_nvml_own_bytes(int index, uint64_t *ret_bytes);
/* Bytes in use on the whole device. */
bool vg_nvml_device_used(int index, uint64_t *ret_bytes);
/* limiter.c: around every launch. stream is as legacy functions know it. */
struct vg_launch {
	struct meter *meter;
	struct vg_estimate *estimate; /* NULL: nothing to settle */
	uint64_t charged;
	uint64_t before_ns;
	CUstream stream;
	int index;
};

/* May wait; never while the stream captures. key: what tells launches of different length apart. */
void vg_launch_begin(struct vg_launch *launch, CUstream stream, uint64_t key);
void vg_launch_end(struct vg_launch *launch, CUresult rc);
void vg_limiter_reset(void);
void vg_limiter_context_gone(CUcontext context);
void vg_limiter_stream_gone(CUstream stream);

#endif
