/* SPDX-License-Identifier: Apache-2.0 */
/* The real driver and NVML: loading, the table of names made from the lists, cuGetProcAddress. */
#include <dlfcn.h>
#include <sched.h>
#include <string.h>

#include "libvgpu/guest.h"
#include "libvgpu/hooks.h"

struct vg_cuda_api vg_cuda;
struct vg_nvml_api vg_nvml;

#define VG_WRAPPER_ENFORCE(symbol)    ((void *)symbol)
#define VG_WRAPPER_ACCOUNT(symbol)    ((void *)symbol)
#define VG_WRAPPER_VIRTUALISE(symbol) ((void *)symbol)
#define VG_WRAPPER_GATE(symbol)       ((void *)symbol)
#define VG_WRAPPER_CALL(symbol)       NULL
#define VG_FLAGS_NONE                 0
#define VG_FLAGS_LEGACY               CU_GET_PROC_ADDRESS_LEGACY_STREAM
#define VG_FLAGS_PTSZ                 CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static struct vg_name names[] = {
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	{ #symbol,                                                                                 \
	  #base,                                                                                   \
	  version,                                                                                 \
	  VG_FLAGS_##flavour,                                                                      \
	  VG_LIBRARY_CUDA,                                                                         \
	  VG_WRAPPER_##class(symbol),                                                              \
	  (void **)&vg_cuda.symbol,                                                                \
	  NULL },
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
#define VG_NVML(symbol, class, params)                                                             \
	{ #symbol,                                                                                 \
	  #symbol,                                                                                 \
	  0,                                                                                       \
	  0,                                                                                       \
	  VG_LIBRARY_NVML,                                                                         \
	  VG_WRAPPER_##class(symbol),                                                              \
	  (void **)&vg_nvml.symbol,                                                                \
	  NULL },
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
};

enum { NAMES = sizeof(names) / sizeof(names[0]), BUCKETS = 512 };

_Static_assert(NAMES * 2 < BUCKETS, "grow BUCKETS");

/* Index + 1 of the first row; rows of one base stand together in the list. */
static uint16_t by_symbol[BUCKETS];
static uint16_t by_base[BUCKETS];
static uint32_t indexed; /* 0 no, 1 being built, 2 built */

static uint32_t hash_of(const char *text)
{
	uint32_t h = 2166136261u;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 16777619u;
	return h;
}

static void put(uint16_t *buckets, const char *text, size_t row)
{
	uint32_t at = hash_of(text) % BUCKETS;

	while (buckets[at])
		at = (at + 1) % BUCKETS;
	buckets[at] = (uint16_t)(row + 1);
}

static void build_index(void)
{
	uint32_t none = 0;

	if (__atomic_load_n(&indexed, __ATOMIC_ACQUIRE) == 2)
		return;
	if (!__atomic_compare_exchange_n(&indexed, &none, 1u, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_ACQUIRE)) {
		while (__atomic_load_n(&indexed, __ATOMIC_ACQUIRE) != 2)
			sched_yield();
		return;
	}
	for (size_t i = 0; i < NAMES; i++) {
		put(by_symbol, names[i].symbol, i);
		if (i == 0 || strcmp(names[i].base, names[i - 1].base) != 0)
			put(by_base, names[i].base, i);
	}
	__atomic_store_n(&indexed, 2u, __ATOMIC_RELEASE);
}

struct vg_name *vg_name_find(const char *symbol)
{
	build_index();
	for (uint32_t at = hash_of(symbol) % BUCKETS; by_symbol[at]; at = (at + 1) % BUCKETS) {
		struct vg_name *name = &names[by_symbol[at] - 1];

		if (strcmp(name->symbol, symbol) == 0)
			return name->wrapper ? name : NULL;
	}
	return NULL;
}

/* First row of a base, or NULL. */
static struct vg_name *find_base(const char *base)
{
	build_index();
	for (uint32_t at = hash_of(base) % BUCKETS; by_base[at]; at = (at + 1) % BUCKETS) {
		struct vg_name *name = &names[by_base[at] - 1];

		if (strcmp(name->base, base) == 0)
			return name;
	}
	return NULL;
}

/*
 * A driver may answer cuGetProcAddress with another address than the ELF symbol has. Asked for exactly
 * the version in which an ABI appeared, it shows the address of that ABI.
 */
static void learn_alternative(struct vg_name *name)
{
	void *pfn = NULL;
	int status, rc;

	if (__atomic_load_n(&name->alternative, __ATOMIC_ACQUIRE))
		return;
	if (vg_cuda.cuGetProcAddress_v2)
		rc = vg_cuda.cuGetProcAddress_v2(name->base, &pfn, name->version,
						 (cuuint64_t)name->flags, &status);
	else
		rc = REAL(cuGetProcAddress, name->base, &pfn, name->version,
			  (cuuint64_t)name->flags);
	if (rc != CUDA_SUCCESS || !pfn)
		pfn = *name->real;
	__atomic_store_n(&name->alternative, pfn, __ATOMIC_RELEASE);
}

static bool flavour_fits(const struct vg_name *name, uint64_t flags)
{
	if (name->flags == 0)
		return true;
	return (flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) ==
	       (name->flags == CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
}

void *vg_name_translate(const char *base, uint64_t flags, void *pfn)
{
	struct vg_name *first = find_base(base);

	if (!first || !pfn)
		return pfn;
	for (struct vg_name *n = first; n < names + NAMES && strcmp(n->base, base) == 0; n++)
		if (n->wrapper && *n->real == pfn && flavour_fits(n, flags))
			return n->wrapper;
	for (struct vg_name *n = first; n < names + NAMES && strcmp(n->base, base) == 0; n++) {
		if (!n->wrapper || !*n->real || !flavour_fits(n, flags))
			continue;
		learn_alternative(n);
		if (n->alternative == pfn)
			return n->wrapper;
	}
	return pfn; /* an ABI that we don't know: the driver's own */
}

/* ---- loading ----------------------------------------------------------------------------------- */

struct library {
	const char *file;
	enum vg_library kind;
	uint32_t state; /* 0 not tried, 1 being loaded, 2 there */
};

static struct library cuda_library = { "libcuda.so.1", VG_LIBRARY_CUDA, 0 };
static struct library nvml_library = { "libnvidia-ml.so.1", VG_LIBRARY_NVML, 0 };

static void fill(const struct library *library, void *handle)
{
	for (size_t i = 0; i < NAMES; i++)
		if (names[i].library == library->kind)
			*names[i].real = vg_real_dlsym(handle, names[i].symbol);
}

/* Threads may race for the first use: all of them fill in the same values; nobody waits. */
static bool available(struct library *library, bool load)
{
	void *handle;

	if (LIKELY(__atomic_load_n(&library->state, __ATOMIC_ACQUIRE) == 2))
		return true;
	handle = dlopen(library->file, RTLD_NOW | RTLD_NOLOAD);
	if (!handle && load)
		handle = dlopen(library->file, RTLD_NOW);
	if (!handle) {
		(void)dlerror(); /* ours, not the program's */
		return false;
	}
	/* The handle is kept: the pointers must stay good. */
	fill(library, handle);
	__atomic_store_n(&library->state, 2u, __ATOMIC_RELEASE);
	return true;
}

bool vg_cuda_available(bool load)
{
	return available(&cuda_library, load);
}

bool vg_nvml_available(bool load)
{
	return available(&nvml_library, load);
}

/* ---- the driver's own lookup --------------------------------------------------------------------- */

VG_EXPORT CUresult cuGetProcAddress(const char *symbol, void **pfn, int version, cuuint64_t flags)
{
	CUresult rc;

	if (!vg_cuda_available(true))
		return CUDA_ERROR_NOT_INITIALIZED;
	rc = REAL(cuGetProcAddress, symbol, pfn, version, flags);
	if (rc == CUDA_SUCCESS && symbol && pfn)
		*pfn = vg_name_translate(symbol, flags, *pfn);
	return rc;
}

VG_EXPORT CUresult cuGetProcAddress_v2(const char *symbol, void **pfn, int version,
				       cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	CUresult rc;

	if (!vg_cuda_available(true))
		return CUDA_ERROR_NOT_INITIALIZED;
	rc = REAL(cuGetProcAddress_v2, symbol, pfn, version, flags, status);
	if (rc == CUDA_SUCCESS && symbol && pfn)
		*pfn = vg_name_translate(symbol, flags, *pfn);
	return rc;
}

VG_EXPORT CUresult cuInit(unsigned int flags)
{
	CUresult rc;

	if (!vg_cuda_available(true))
		return CUDA_ERROR_NO_DEVICE;
	rc = REAL(cuInit, flags);
	if (rc == CUDA_SUCCESS)
		vg_driver_started();
	return rc;
}
