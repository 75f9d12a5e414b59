/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NVML: the container's view of memory and processes for tools, and what we ask it ourselves. Our own
 * use begins when something must be known that CUDA does not tell, and once per container where the
 * region can keep the answer.
 */
#include <stdio.h>
#include <string.h>

#include "libvgpu/guest.h"
#include "libvgpu/hooks.h"

enum { HANDLES = 64, PROCESSES = 512 };

/* ---- our own use ----------------------------------------------------------------------------------- */

static uint32_t initialised; /* 0 no, 1 yes, 2 failed */

static bool own_init(void)
{
	uint32_t now = __atomic_load_n(&initialised, __ATOMIC_ACQUIRE);

	if (now)
		return now == 1;
	if (!vg_nvml_available(true) || REAL_NVML(nvmlInit_v2) != NVML_SUCCESS) {
		__atomic_store_n(&initialised, 2u, __ATOMIC_RELEASE);
		return false;
	}
	/* Counted by NVML: a second thread's init does no harm. It is never shut down. */
	__atomic_store_n(&initialised, 1u, __ATOMIC_RELEASE);
	return true;
}

static bool handle_of(int index, nvmlDevice_t *ret)
{
	return own_init() &&
	       REAL_NVML(nvmlDeviceGetHandleByIndex_v2, (unsigned int)index, ret) == NVML_SUCCESS;
}

void vg_nvml_identify(void)
{
	char uuid[VGPU_REGION_DEVICES][VGPU_REGION_UUID];
	unsigned int count = 0;

	if (!own_init() || REAL_NVML(nvmlDeviceGetCount_v2, &count) != NVML_SUCCESS)
		return;
	if (count > VGPU_REGION_DEVICES)
		count = VGPU_REGION_DEVICES;
	memset(uuid, 0, sizeof(uuid));
	for (unsigned int i = 0; i < count; i++) {
		nvmlDevice_t device;

		if (!handle_of((int)i, &device) ||
		    REAL_NVML(nvmlDeviceGetUUID, device, uuid[i], VGPU_REGION_UUID) != NVML_SUCCESS)
			uuid[i][0] = '\0';
	}
	if (region_lock(&vg.region) < 0)
		return;
	memcpy(vg.region.base->uuid, uuid, sizeof(uuid));
	__atomic_store_n(&vg.region.base->device_count, count, __ATOMIC_RELEASE);
	region_unlock(&vg.region);
}

static int32_t own_pid(void)
{
	return vg.region.slot != REGION_NO_SLOT && vg.region.base->slot[vg.region.slot].host_pid
		       ? vg.region.base->slot[vg.region.slot].host_pid
		       : vg.region.pid;
}

bool vg_nvml_own_bytes(int index, uint64_t *ret_bytes)
{
	nvmlProcessInfo_t list[PROCESSES];
	unsigned int count = PROCESSES;
	nvmlDevice_t device;

	if (!handle_of(index, &device))
		return false;
	if (REAL_NVML(nvmlDeviceGetComputeRunningProcesses_v3, device, &count, list) !=
		    NVML_SUCCESS &&
	    REAL_NVML(nvmlDeviceGetComputeRunningProcesses_v2, device, &count, list) !=
		    NVML_SUCCESS)
		return false;
	for (unsigned int i = 0; i < count && i < PROCESSES; i++) {
		if (list[i].pid != (unsigned int)own_pid() ||
		    list[i].usedGpuMemory > (1ull << 50)) /* "not available" is all ones */
			continue;
		*ret_bytes = list[i].usedGpuMemory;
		/* It lists us under the pid that we know: for the monitor. */
		if (vg.region.slot != REGION_NO_SLOT)
			vg.region.base->slot[vg.region.slot].host_pid = own_pid();
		return true;
	}
	return false;
}

bool vg_nvml_device_used(int index, uint64_t *ret_bytes)
{
	nvmlMemory_t memory;
	nvmlDevice_t device;

	if (!handle_of(index, &device) ||
	    REAL_NVML(nvmlDeviceGetMemoryInfo, device, &memory) != NVML_SUCCESS)
		return false;
	*ret_bytes = memory.used;
	return true;
}

/* ---- what tools see ------------------------------------------------------------------------------------ */

/* Region index of a tool's device handle, -1 if the region does not know it. */
static int index_of_handle(nvmlDevice_t device)
{
	static struct {
		nvmlDevice_t handle;
		int index;
	} cache[HANDLES];
	char uuid[VGPU_REGION_UUID] = "";
	int slot = (int)(((uintptr_t)device >> 4) % HANDLES);

	if (__atomic_load_n(&cache[slot].handle, __ATOMIC_ACQUIRE) == device && device)
		return cache[slot].index;
	if (REAL_NVML(nvmlDeviceGetUUID, device, uuid, sizeof(uuid)) != NVML_SUCCESS || !uuid[0])
		return -1;
	for (int round = 0; round < 2; round++) {
		for (int d = 0; d < VGPU_REGION_DEVICES; d++) {
			if (strncmp(vg.region.base->uuid[d], uuid, VGPU_REGION_UUID) != 0)
				continue;
			if (!__atomic_load_n(&cache[slot].handle, __ATOMIC_RELAXED)) {
				cache[slot].index = d;
				__atomic_store_n(&cache[slot].handle, device, __ATOMIC_RELEASE);
			}
			return d;
		}
		if (round == 0)
			vg_nvml_identify();
	}
	return -1;
}

static void container_memory(int index, unsigned long long *total, unsigned long long *free_bytes,
			     unsigned long long *used)
{
	uint64_t t = *total, f = *free_bytes, u = *used;

	vg_container_view(index, &t, &f, &u);
	*total = t;
	*free_bytes = f;
	*used = u;
}

VG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
	nvmlReturn_t rc;
	int index;

	if (!vg_enter_nvml())
		return REAL_NVML(nvmlDeviceGetMemoryInfo, device, memory);
	rc = REAL_NVML(nvmlDeviceGetMemoryInfo, device, memory);
	index = rc == NVML_SUCCESS && memory ? index_of_handle(device) : -1;
	if (index >= 0)
		container_memory(index, &memory->total, &memory->free, &memory->used);
	vg_leave();
	return rc;
}

VG_EXPORT nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
	nvmlReturn_t rc;
	int index;

	if (!vg_enter_nvml())
		return REAL_NVML(nvmlDeviceGetMemoryInfo_v2, device, memory);
	rc = REAL_NVML(nvmlDeviceGetMemoryInfo_v2, device, memory);
	index = rc == NVML_SUCCESS && memory ? index_of_handle(device) : -1;
	if (index >= 0 && region_limit(&vg.region, index)) {
		container_memory(index, &memory->total, &memory->free, &memory->used);
		memory->reserved = 0; /* the card's, not the container's: total is used plus free */
	}
	vg_leave();
	return rc;
}

/* ---- process lists ----------------------------------------------------------------------------------------- */

struct process {
	unsigned int pid;
	unsigned long long bytes;
};

/* The container's own processes on a device, under the pids that the container knows. */
static unsigned int own_processes(int index, struct process *list, unsigned int size)
{
	int count;
	unsigned int n = 0;

	(void)region_reclaim(&vg.region);
	count = __atomic_load_n(&vg.region.base->slot_count, __ATOMIC_RELAXED);
	for (int i = 0; i < count && i < VGPU_REGION_SLOTS && n < size; i++) {
		const struct vgpu_region_slot *slot = &vg.region.base->slot[i];
		uint64_t bytes = __atomic_load_n(&slot->used[index].total, __ATOMIC_RELAXED);

		if (__atomic_load_n(&slot->status, __ATOMIC_RELAXED) == VGPU_SLOT_FREE || !bytes)
			continue;
		list[n].pid = (unsigned int)slot->pid;
		list[n].bytes = bytes;
		n++;
	}
	return n;
}

/* How NVML answers a caller with room for *count entries; true if the list is to be written. */
static bool answer(unsigned int have, unsigned int *count, bool has_list, nvmlReturn_t *ret)
{
	unsigned int room = *count;

	*count = have;
	if (room < have || (have && !has_list)) {
		*ret = NVML_ERROR_INSUFFICIENT_SIZE;
		return false;
	}
	*ret = NVML_SUCCESS;
	return true;
}

static bool asks_for_list(nvmlReturn_t rc)
{
	return rc == NVML_SUCCESS || rc == NVML_ERROR_INSUFFICIENT_SIZE;
}

/*
 * The driver is asked first, without room: its complaints about the device or itself are the answer.
 * Compute processes are ours; what other tenants draw or run under MPS is none of the container's.
 */
#define LIST_THROUGH(symbol, type, compute)                                                        \
	VG_EXPORT nvmlReturn_t symbol(nvmlDevice_t device, unsigned int *count, type *list)        \
	{                                                                                          \
		struct process own[VGPU_REGION_SLOTS / 4];                                         \
		unsigned int none = 0, n = 0;                                                      \
		nvmlReturn_t rc;                                                                   \
		int index;                                                                         \
                                                                                                   \
		if (!count || !vg_enter_nvml())                                                    \
			return REAL_NVML(symbol, device, count, list);                             \
		rc = REAL_NVML(symbol, device, &none, NULL);                                       \
		index = asks_for_list(rc) ? index_of_handle(device) : -1;                          \
		if (index < 0) {                                                                   \
			rc = REAL_NVML(symbol, device, count, list);                               \
			vg_leave();                                                                \
			return rc;                                                                 \
		}                                                                                  \
		if (compute)                                                                       \
			n = own_processes(index, own, VGPU_REGION_SLOTS / 4);                      \
		if (answer(n, count, list != NULL, &rc)) {                                         \
			for (unsigned int i = 0; i < n; i++) {                                     \
				memset(&list[i], 0, sizeof(list[i]));                              \
				list[i].pid = own[i].pid;                                          \
				list[i].usedGpuMemory = own[i].bytes;                              \
				no_instance(&list[i], sizeof(list[i]));                            \
			}                                                                          \
		}                                                                                  \
		vg_leave();                                                                        \
		return rc;                                                                         \
	}

/* Outside MIG, NVML says all ones for both instances. */
static void no_instance(void *entry, size_t size)
{
	nvmlProcessInfo_t *info = entry;

	if (size == sizeof(nvmlProcessInfo_t)) {
		info->gpuInstanceId = UINT32_MAX;
		info->computeInstanceId = UINT32_MAX;
	}
}

LIST_THROUGH(nvmlDeviceGetComputeRunningProcesses, nvmlProcessInfo_v1_t, true)
LIST_THROUGH(nvmlDeviceGetComputeRunningProcesses_v2, nvmlProcessInfo_t, true)
LIST_THROUGH(nvmlDeviceGetComputeRunningProcesses_v3, nvmlProcessInfo_t, true)
LIST_THROUGH(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t, false)
LIST_THROUGH(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t, false)
LIST_THROUGH(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t, false)
LIST_THROUGH(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t, false)
LIST_THROUGH(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t, false)
LIST_THROUGH(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t, false)

VG_EXPORT nvmlReturn_t nvmlDeviceGetRunningProcessDetailList(nvmlDevice_t device,
							     nvmlProcessDetailList_v1_t *list)
{
	struct process own[VGPU_REGION_SLOTS / 4];
	nvmlProcessDetailList_v1_t none;
	unsigned int n;
	nvmlReturn_t rc;
	int index;

	if (!list || list->version != NVML_PROCESS_DETAIL_LIST_V1 || !vg_enter_nvml())
		return REAL_NVML(nvmlDeviceGetRunningProcessDetailList, device, list);
	none = (nvmlProcessDetailList_v1_t){ .version = list->version, .mode = list->mode };
	rc = REAL_NVML(nvmlDeviceGetRunningProcessDetailList, device, &none);
	index = asks_for_list(rc) ? index_of_handle(device) : -1;
	if (index < 0) {
		rc = REAL_NVML(nvmlDeviceGetRunningProcessDetailList, device, list);
		vg_leave();
		return rc;
	}
	n = list->mode == 0 ? own_processes(index, own, VGPU_REGION_SLOTS / 4) : 0;
	if (answer(n, &list->numProcArrayEntries, list->procArray != NULL, &rc))
		for (unsigned int i = 0; i < n; i++)
			list->procArray[i] = (nvmlProcessDetail_v1_t){
				.pid = own[i].pid,
				.usedGpuMemory = own[i].bytes,
				.gpuInstanceId = UINT32_MAX,
				.computeInstanceId = UINT32_MAX,
			};
	vg_leave();
	return rc;
}
