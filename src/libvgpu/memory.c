/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plain memory: every hook reserves first, calls the driver, and commits or rolls back. Frees take the
 * entry out, call the driver, and put it back if the driver refuses: in between nobody can be given
 * the same pointer. What we don't know, the driver frees.
 */
#include <errno.h>

#include "libvgpu/guest.h"
#include "libvgpu/hooks.h"

static uint64_t add_saturated(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t multiply_saturated(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Remembers an allocation that has been paid for. */
static void remember(uint64_t key, enum vg_kind kind, const struct vg_where *where, uint64_t bytes)
{
	struct vg_entry entry = {
		.key = key,
		.bytes = bytes,
		.owner = (uint64_t)(uintptr_t)where->context,
		.kind = (uint16_t)kind,
		.index = (int16_t)where->index,
	};

	(void)vg_table_put(&entry);
}

static void roll_back(int index, uint64_t bytes)
{
	region_discharge(&vg.region, index, REGION_DATA, bytes);
}

/* Frees behind a driver's call: the middle part of every free. */
#define FREE_THROUGH(key, kind, call)                                                              \
	do {                                                                                       \
		struct vg_entry entry_;                                                            \
		bool known_;                                                                       \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		known_ = (key) && vg_table_take((uint64_t)(key), (kind), &entry_);                 \
		rc_ = (call);                                                                      \
		if (known_) {                                                                      \
			if (rc_ == CUDA_SUCCESS)                                                   \
				roll_back(entry_.index, entry_.bytes);                             \
			else                                                                       \
				(void)vg_table_put(&entry_);                                       \
		}                                                                                  \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

/*
 * CUDA_OVERSUBSCRIBE: the node has promised more memory than the card holds. What fits the limit but
 * not the card comes from managed memory, which the driver moves in and out by pages.
 */
static CUresult alloc_or_spill(CUdeviceptr *pointer, size_t bytes)
{
	CUresult rc = REAL(cuMemAlloc_v2, pointer, bytes);

	if (rc == CUDA_ERROR_OUT_OF_MEMORY && vg.oversubscribe) {
		rc = REAL(cuMemAllocManaged, pointer, bytes, CU_MEM_ATTACH_GLOBAL);
		if (rc == CUDA_SUCCESS)
			vg_log(VG_DEBUG, "%zu bytes come from managed memory: the card is full",
			       bytes);
	}
	return rc;
}

VG_EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *pointer, size_t bytes)
{
	struct vg_where where;
	uint64_t charge;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemAlloc_v2, pointer, bytes);
	if (UNLIKELY(!pointer || !bytes || !vg_current(&where))) {
		rc = REAL(cuMemAlloc_v2, pointer, bytes);
		vg_leave();
		return rc;
	}
	vg_gate();
	charge = vg_rounded(bytes);
	if (vg_reserve(where.index, REGION_DATA, charge, "allocation") < 0) {
		vg_leave();
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rc = alloc_or_spill(pointer, bytes);
	if (LIKELY(rc == CUDA_SUCCESS))
		remember(*pointer, VG_KIND_DEVICE, &where, charge);
	else
		roll_back(where.index, charge);
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemAlloc(CUdeviceptr_v1 *pointer, unsigned int bytes)
{
	struct vg_where where;
	uint64_t charge = vg_rounded(bytes);
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemAlloc, pointer, bytes);
	if (!pointer || !bytes || !vg_current(&where)) {
		rc = REAL(cuMemAlloc, pointer, bytes);
	} else {
		vg_gate();
		if (vg_reserve(where.index, REGION_DATA, charge, "allocation") < 0) {
			rc = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			rc = REAL(cuMemAlloc, pointer, bytes);
			if (rc == CUDA_SUCCESS)
				remember(*pointer, VG_KIND_DEVICE, &where, charge);
			else
				roll_back(where.index, charge);
		}
	}
	vg_leave();
	return rc;
}

/* Rows are padded by at most this; the driver tells how much only afterwards. */
enum { PITCH_STEP = 512 };

static uint64_t pitch_guess(uint64_t width, uint64_t height)
{
	uint64_t row = add_saturated(width, PITCH_STEP - 1) & ~(uint64_t)(PITCH_STEP - 1);

	return vg_rounded(multiply_saturated(row, height));
}

/* Corrects a charge once the real size is known; upward without a check: it exists already. */
static uint64_t correct(int index, uint64_t charged, uint64_t real)
{
	if (real < charged)
		region_discharge(&vg.region, index, REGION_DATA, charged - real);
	else if (real > charged)
		region_charge(&vg.region, index, REGION_DATA, real - charged);
	return real;
}

VG_EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *pointer, size_t *pitch, size_t width,
				      size_t height, unsigned int element)
{
	struct vg_where where;
	uint64_t charge;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
	if (!pointer || !pitch || !width || !height || !vg_current(&where)) {
		rc = REAL(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
		vg_leave();
		return rc;
	}
	vg_gate();
	charge = pitch_guess(width, height);
	if (vg_reserve(where.index, REGION_DATA, charge, "pitched allocation") < 0) {
		vg_leave();
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rc = REAL(cuMemAllocPitch_v2, pointer, pitch, width, height, element);
	if (rc == CUDA_SUCCESS)
		remember(*pointer, VG_KIND_DEVICE, &where,
			 correct(where.index, charge,
				 vg_rounded(multiply_saturated(*pitch, height))));
	else
		roll_back(where.index, charge);
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemAllocPitch(CUdeviceptr_v1 *pointer, unsigned int *pitch, unsigned int width,
				   unsigned int height, unsigned int element)
{
	struct vg_where where;
	uint64_t charge = pitch_guess(width, height);
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemAllocPitch, pointer, pitch, width, height, element);
	if (!pointer || !pitch || !width || !height || !vg_current(&where)) {
		rc = REAL(cuMemAllocPitch, pointer, pitch, width, height, element);
	} else {
		vg_gate();
		if (vg_reserve(where.index, REGION_DATA, charge, "pitched allocation") < 0) {
			rc = CUDA_ERROR_OUT_OF_MEMORY;
		} else {
			rc = REAL(cuMemAllocPitch, pointer, pitch, width, height, element);
			if (rc == CUDA_SUCCESS)
				remember(*pointer, VG_KIND_DEVICE, &where, charge);
			else
				roll_back(where.index, charge);
		}
	}
	vg_leave();
	return rc;
}

/* Managed memory may all be on the device at once, so all of it counts. */
VG_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *pointer, size_t bytes, unsigned int flags)
{
	struct vg_where where;
	uint64_t charge;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemAllocManaged, pointer, bytes, flags);
	if (!pointer || !bytes || !vg_current(&where)) {
		rc = REAL(cuMemAllocManaged, pointer, bytes, flags);
		vg_leave();
		return rc;
	}
	vg_gate();
	charge = vg_rounded(bytes);
	if (vg_reserve(where.index, REGION_DATA, charge, "managed allocation") < 0) {
		vg_leave();
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rc = REAL(cuMemAllocManaged, pointer, bytes, flags);
	if (rc == CUDA_SUCCESS)
		remember(*pointer, VG_KIND_DEVICE, &where, charge);
	else
		roll_back(where.index, charge);
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemFree_v2(CUdeviceptr pointer)
{
	FREE_THROUGH(pointer, VG_KIND_DEVICE, REAL(cuMemFree_v2, pointer));
}

VG_EXPORT CUresult cuMemFree(CUdeviceptr_v1 pointer)
{
	FREE_THROUGH(pointer, VG_KIND_DEVICE, REAL(cuMemFree, pointer));
}

/* A pointer of cuMemAlloc may be freed this way too; pointers of pools are not in the table. */
VG_EXPORT CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream)
{
	FREE_THROUGH(pointer, VG_KIND_DEVICE, REAL(cuMemFreeAsync, pointer, stream));
}

VG_EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream)
{
	FREE_THROUGH(pointer, VG_KIND_DEVICE, REAL(cuMemFreeAsync_ptsz, pointer, stream));
}

/* ---- pinned host memory: counts only if VGPU_CHARGE_HOST_MEMORY says so ---------------------------- */

#define HOST_ALLOC(pointer, bytes, call)                                                           \
	do {                                                                                       \
		struct vg_where where_;                                                            \
		uint64_t charge_ = vg_rounded(bytes);                                              \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		if (!vg.charge_host || !(pointer) || !(bytes) || !vg_current(&where_)) {           \
			rc_ = (call);                                                              \
		} else if (vg_reserve(where_.index, REGION_DATA, charge_, "host memory") < 0) {    \
			rc_ = CUDA_ERROR_OUT_OF_MEMORY;                                            \
		} else {                                                                           \
			rc_ = (call);                                                              \
			if (rc_ == CUDA_SUCCESS)                                                   \
				remember((uint64_t)(uintptr_t) * (pointer), VG_KIND_HOST, &where_, \
					 charge_);                                                 \
			else                                                                       \
				roll_back(where_.index, charge_);                                  \
		}                                                                                  \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

VG_EXPORT CUresult cuMemAllocHost(void **pointer, unsigned int bytes)
{
	HOST_ALLOC(pointer, bytes, REAL(cuMemAllocHost, pointer, bytes));
}

VG_EXPORT CUresult cuMemAllocHost_v2(void **pointer, size_t bytes)
{
	HOST_ALLOC(pointer, bytes, REAL(cuMemAllocHost_v2, pointer, bytes));
}

VG_EXPORT CUresult cuMemHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
	HOST_ALLOC(pointer, bytes, REAL(cuMemHostAlloc, pointer, bytes, flags));
}

VG_EXPORT CUresult cuMemFreeHost(void *pointer)
{
	FREE_THROUGH((uintptr_t)pointer, VG_KIND_HOST, REAL(cuMemFreeHost, pointer));
}

/* ---- arrays --------------------------------------------------------------------------------------- */

#define ARRAY_CREATE(array, bytes, call)                                                           \
	do {                                                                                       \
		struct vg_where where_;                                                            \
		uint64_t charge_ = (bytes);                                                        \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		if (!(array) || !charge_ || !vg_current(&where_)) {                                \
			rc_ = (call);                                                              \
		} else {                                                                           \
			vg_gate();                                                                 \
			if (vg_reserve(where_.index, REGION_DATA, charge_, "array") < 0) {         \
				rc_ = CUDA_ERROR_OUT_OF_MEMORY;                                    \
			} else {                                                                   \
				rc_ = (call);                                                      \
				if (rc_ == CUDA_SUCCESS)                                           \
					remember((uint64_t)(uintptr_t) * (array), VG_KIND_ARRAY,   \
						 &where_, charge_);                                \
				else                                                               \
					roll_back(where_.index, charge_);                          \
			}                                                                          \
		}                                                                                  \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

static uint64_t shape_bytes(uint64_t width, uint64_t height, uint64_t depth, CUarray_format format,
			    unsigned int channels, unsigned int flags, unsigned int levels)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { width, height, depth, format, channels, flags };

	return vg_array_bytes(&shape, levels);
}

VG_EXPORT CUresult cuArrayCreate(CUarray *array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape)
{
	ARRAY_CREATE(array,
		     shape ? shape_bytes(shape->Width, shape->Height, 0, shape->Format,
					 shape->NumChannels, 0, 1)
			   : 0,
		     REAL(cuArrayCreate, array, shape));
}

VG_EXPORT CUresult cuArrayCreate_v2(CUarray *array, const CUDA_ARRAY_DESCRIPTOR *shape)
{
	ARRAY_CREATE(array,
		     shape ? shape_bytes(shape->Width, shape->Height, 0, shape->Format,
					 shape->NumChannels, 0, 1)
			   : 0,
		     REAL(cuArrayCreate_v2, array, shape));
}

VG_EXPORT CUresult cuArray3DCreate(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape)
{
	ARRAY_CREATE(array,
		     shape ? shape_bytes(shape->Width, shape->Height, shape->Depth, shape->Format,
					 shape->NumChannels, shape->Flags, 1)
			   : 0,
		     REAL(cuArray3DCreate, array, shape));
}

VG_EXPORT CUresult cuArray3DCreate_v2(CUarray *array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	ARRAY_CREATE(array, shape ? vg_array_bytes(shape, 1) : 0,
		     REAL(cuArray3DCreate_v2, array, shape));
}

VG_EXPORT CUresult cuMipmappedArrayCreate(CUmipmappedArray *array,
					  const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
	ARRAY_CREATE(array, shape ? vg_array_bytes(shape, levels) : 0,
		     REAL(cuMipmappedArrayCreate, array, shape, levels));
}

VG_EXPORT CUresult cuArrayDestroy(CUarray array)
{
	FREE_THROUGH((uintptr_t)array, VG_KIND_ARRAY, REAL(cuArrayDestroy, array));
}

VG_EXPORT CUresult cuMipmappedArrayDestroy(CUmipmappedArray array)
{
	FREE_THROUGH((uintptr_t)array, VG_KIND_ARRAY, REAL(cuMipmappedArrayDestroy, array));
}

/* ---- virtual memory management ----------------------------------------------------------------------- */

/*
 * A handle's memory lives until its last release and its last unmapping; entry.references counts both.
 * The owner of a handle is nobody: contexts may die, the handle stays.
 */
static void put_down(uint64_t handle)
{
	struct vg_entry entry;

	if (vg_table_refer(handle, VG_KIND_HANDLE, -1) == 0 &&
	    vg_table_take(handle, VG_KIND_HANDLE, &entry))
		roll_back(entry.index, entry.bytes);
}

VG_EXPORT CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t bytes,
			       const CUmemAllocationProp *prop, unsigned long long flags)
{
	CUresult rc;
	int index;

	if (!vg_enter())
		return REAL(cuMemCreate, handle, bytes, prop, flags);
	index = prop && prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE
			? vg_index_of(prop->location.id)
			: -1;
	if (!handle || index < 0) {
		rc = REAL(cuMemCreate, handle, bytes, prop, flags);
		vg_leave();
		return rc;
	}
	vg_gate();
	if (vg_reserve(index, REGION_DATA, bytes, "physical allocation") < 0) {
		vg_leave();
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	rc = REAL(cuMemCreate, handle, bytes, prop, flags);
	if (rc == CUDA_SUCCESS) {
		struct vg_entry entry = {
			.key = *handle,
			.bytes = bytes,
			.references = 1,
			.kind = VG_KIND_HANDLE,
			.index = (int16_t)index,
		};

		(void)vg_table_put(&entry);
	} else {
		roll_back(index, bytes);
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemRelease, handle);
	/*
	 * The driver may hand out the same value again as soon as it has let go, so a last reference is
	 * taken out before the call.
	 */
	{
		struct vg_entry entry;
		bool known = vg_table_take(handle, VG_KIND_HANDLE, &entry);

		rc = REAL(cuMemRelease, handle);
		if (known) {
			if (rc == CUDA_SUCCESS && entry.references > 0)
				entry.references--;
			if (entry.references == 0)
				roll_back(entry.index, entry.bytes);
			else
				(void)vg_table_put(&entry);
		}
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *address)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemRetainAllocationHandle, handle, address);
	rc = REAL(cuMemRetainAllocationHandle, handle, address);
	if (rc == CUDA_SUCCESS)
		(void)vg_table_refer(*handle, VG_KIND_HANDLE, 1);
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemMap(CUdeviceptr pointer, size_t bytes, size_t offset,
			    CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemMap, pointer, bytes, offset, handle, flags);
	rc = REAL(cuMemMap, pointer, bytes, offset, handle, flags);
	if (rc == CUDA_SUCCESS && vg_table_refer(handle, VG_KIND_HANDLE, 1) > 0) {
		struct vg_entry mapping = {
			.key = pointer,
			.bytes = bytes,
			.owner = handle,
			.kind = VG_KIND_MAPPING,
		};

		(void)vg_table_put(&mapping);
	}
	vg_leave();
	return rc;
}

/* One call may end several mappings that stand side by side. */
VG_EXPORT CUresult cuMemUnmap(CUdeviceptr pointer, size_t bytes)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemUnmap, pointer, bytes);
	rc = REAL(cuMemUnmap, pointer, bytes);
	if (rc == CUDA_SUCCESS) {
		struct vg_entry mapping;
		uint64_t at = pointer;

		while (at - pointer < bytes && vg_table_take(at, VG_KIND_MAPPING, &mapping)) {
			put_down(mapping.owner);
			if (!mapping.bytes)
				break;
			at += mapping.bytes;
		}
	}
	vg_leave();
	return rc;
}

/* ---- what programs see ------------------------------------------------------------------------------------ */

static void container_view(int index, uint64_t *free_bytes, uint64_t *total)
{
	if (!region_limit(&vg.region, index))
		return;
	(void)vg_pools_refresh();
	vg_container_view(index, total, free_bytes, NULL);
}

VG_EXPORT CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct vg_where where;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemGetInfo_v2, free_bytes, total);
	rc = REAL(cuMemGetInfo_v2, free_bytes, total);
	if (rc == CUDA_SUCCESS && vg_current(&where)) {
		uint64_t f = free_bytes ? *free_bytes : UINT64_MAX;
		uint64_t t = total ? *total : vg.physical[where.index];

		container_view(where.index, &f, &t);
		if (free_bytes)
			*free_bytes = f;
		if (total)
			*total = t;
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuMemGetInfo(unsigned int *free_bytes, unsigned int *total)
{
	struct vg_where where;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuMemGetInfo, free_bytes, total);
	rc = REAL(cuMemGetInfo, free_bytes, total);
	if (rc == CUDA_SUCCESS && free_bytes && total && vg_current(&where)) {
		uint64_t f = *free_bytes, t = *total;

		container_view(where.index, &f, &t);
		*free_bytes = (unsigned int)f;
		*total = (unsigned int)t;
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuDeviceTotalMem_v2, bytes, device);
	rc = REAL(cuDeviceTotalMem_v2, bytes, device);
	if (rc == CUDA_SUCCESS && bytes && vg_index_of(device) >= 0) {
		uint64_t total = *bytes, none = 0;

		vg_container_view(vg_index_of(device), &total, &none, NULL);
		*bytes = total;
	}
	vg_leave();
	return rc;
}

VG_EXPORT CUresult cuDeviceTotalMem(unsigned int *bytes, CUdevice device)
{
	CUresult rc;

	if (!vg_enter())
		return REAL(cuDeviceTotalMem, bytes, device);
	rc = REAL(cuDeviceTotalMem, bytes, device);
	if (rc == CUDA_SUCCESS && bytes && vg_index_of(device) >= 0) {
		uint64_t total = *bytes, none = 0;

		vg_container_view(vg_index_of(device), &total, &none, NULL);
		if (total < *bytes)
			*bytes = (unsigned int)total;
	}
	vg_leave();
	return rc;
}
