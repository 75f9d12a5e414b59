/* SPDX-License-Identifier: Apache-2.0 */
/* Memory, work, processes and sensors of a card. */
#include <string.h>
#include <time.h>

#include "nvml_driver.h"

#define PROCESSES_MAX FAKE_SLOTS_MAX
/* Measured on an H200. */
#define SAMPLE_ROOM   72u

/* For answers that are a constant of the simulation. */
#define CONSTANT(symbol, type, value)                                                              \
	FAKE_NVML(symbol, FAKE_INIT, (nvmlDevice_t device, type * ret), (device, ret))             \
	{                                                                                          \
		nvmlReturn_t rc = fake_nvml_check(device);                                         \
                                                                                                   \
		if (rc != NVML_SUCCESS)                                                            \
			return rc;                                                                 \
		if (!ret)                                                                          \
			return NVML_ERROR_INVALID_ARGUMENT;                                        \
		*ret = (value);                                                                    \
		return NVML_SUCCESS;                                                               \
	}

/* ---- memory ---- */

static nvmlReturn_t memory(nvmlDevice_t device, nvmlMemory_v2_t *ret)
{
	nvmlReturn_t rc = fake_nvml_check(device);
	const struct fake_card *card;
	uint64_t used;

	if (rc != NVML_SUCCESS)
		return rc;
	card = fake_nvml_card(device);
	if (card->no_memory_info)
		return NVML_ERROR_NOT_SUPPORTED;
	used = fake_memory_used(nvml.state, fake_nvml_unit(device));
	if (device->mig) {
		ret->total = fake_nvml_mig(device)->mem_bytes;
		ret->reserved = 0;
	} else {
		for (uint32_t mig = 1; mig <= card->migs; mig++)
			used += fake_memory_used(nvml.state, fake_unit_of(device->card, mig));
		ret->total = card->mem_bytes;
		ret->reserved = card->reserved_bytes;
	}
	ret->used = used;
	ret->free = ret->total - ret->reserved > used ? ret->total - ret->reserved - used : 0;
	return NVML_SUCCESS;
}

/* The first form counts what is reserved as used. */
FAKE_NVML(nvmlDeviceGetMemoryInfo, FAKE_INIT, (nvmlDevice_t device, nvmlMemory_t *ret),
	  (device, ret))
{
	nvmlMemory_v2_t now;
	nvmlReturn_t rc;

	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = memory(device, &now);
	if (rc == NVML_SUCCESS)
		*ret = (nvmlMemory_t){ now.total, now.free, now.used + now.reserved };
	return rc;
}

FAKE_NVML(nvmlDeviceGetMemoryInfo_v2, FAKE_INIT, (nvmlDevice_t device, nvmlMemory_v2_t *ret),
	  (device, ret))
{
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (ret->version != NVML_MEMORY_V2_VERSION)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	return memory(device, ret);
}

FAKE_NVML(nvmlDeviceGetBAR1MemoryInfo, FAKE_INIT, (nvmlDevice_t device, nvmlBAR1Memory_t *ret),
	  (device, ret))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = (nvmlBAR1Memory_t){ 256ull << 30, (256ull << 30) - (1 << 20), 1 << 20 };
	return NVML_SUCCESS;
}

/* ---- work ---- */

static uint32_t memory_percent(nvmlDevice_t device)
{
	uint64_t capacity = fake_unit_capacity(&nvml.machine, fake_nvml_unit(device));
	uint64_t used = fake_memory_used(nvml.state, fake_nvml_unit(device));

	return capacity ? (uint32_t)(used * 100 / capacity) : 0;
}

FAKE_NVML(nvmlDeviceGetUtilizationRates, FAKE_INIT, (nvmlDevice_t device, nvmlUtilization_t *ret),
	  (device, ret))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (device->mig || fake_nvml_card(device)->mig_enabled)
		return NVML_ERROR_NOT_SUPPORTED;
	ret->gpu = fake_unit_busy(nvml.state, fake_nvml_unit(device));
	ret->memory = memory_percent(device);
	return NVML_SUCCESS;
}

static unsigned int pid_shown(pid_t pid)
{
	unsigned int offset = nvml.machine.pids == FAKE_PIDS_OFFSET ? nvml.machine.pid_offset : 0;

	return (unsigned int)pid + offset;
}

/* NVML's time stamps are the wall clock's microseconds; the simulation's clock is the monotonic one. */
static uint64_t wall_minus_monotonic_us(void)
{
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (uint64_t)wall.tv_sec * 1000000 + (uint64_t)wall.tv_nsec / 1000 -
	       fake_clock_ns() / 1000;
}

struct samples {
	struct fake_process process[PROCESSES_MAX];
	uint32_t count;
	uint64_t stamp_us;
};

/* The processes that worked since `last_us`, compacted to the front. */
static nvmlReturn_t samples_get(nvmlDevice_t device, uint64_t last_us, struct samples *ret)
{
	nvmlReturn_t rc = fake_nvml_check(device);
	uint64_t offset_us = wall_minus_monotonic_us();
	/* Who does not say since when gets the last second. */
	uint64_t since_ns =
		last_us > offset_us ? (last_us - offset_us) * 1000 : fake_clock_ns() - 1000000000;
	uint32_t count, kept = 0;

	if (rc != NVML_SUCCESS)
		return rc;
	if (device->mig || fake_nvml_card(device)->mig_enabled ||
	    fake_nvml_card(device)->no_process_samples)
		return NVML_ERROR_NOT_SUPPORTED;
	count = fake_processes(nvml.state, fake_nvml_unit(device), since_ns, ret->process,
			       PROCESSES_MAX);
	for (uint32_t i = 0; i < count; i++) {
		if (ret->process[i].busy_percent)
			ret->process[kept++] = ret->process[i];
	}
	ret->count = nvml.machine.pids == FAKE_PIDS_NONE ? 0 : kept;
	ret->stamp_us = fake_clock_ns() / FAKE_SAMPLE_NS * FAKE_SAMPLE_NS / 1000 + offset_us;
	return ret->count ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

FAKE_NVML(nvmlDeviceGetProcessUtilization, FAKE_INIT,
	  (nvmlDevice_t device, nvmlProcessUtilizationSample_t *list, unsigned int *count,
	   unsigned long long last),
	  (device, list, count, last))
{
	static struct samples samples; /* under the lock */
	nvmlReturn_t rc;

	if (!count)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = samples_get(device, last, &samples);
	if (rc != NVML_SUCCESS && rc != NVML_ERROR_NOT_FOUND)
		return rc;
	/* The real call wants room for all samples that it keeps, however few processes there are. */
	if (!list || *count < SAMPLE_ROOM || *count < samples.count) {
		*count = samples.count > SAMPLE_ROOM ? samples.count : SAMPLE_ROOM;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	if (rc != NVML_SUCCESS)
		return rc;
	for (uint32_t i = 0; i < samples.count; i++) {
		list[i] = (nvmlProcessUtilizationSample_t){
			.pid = pid_shown(samples.process[i].pid),
			.timeStamp = samples.stamp_us,
			.smUtil = samples.process[i].busy_percent,
		};
	}
	*count = samples.count;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetProcessesUtilizationInfo, FAKE_INIT,
	  (nvmlDevice_t device, nvmlProcessesUtilizationInfo_v1_t *info), (device, info))
{
	static struct samples samples;
	nvmlReturn_t rc;

	if (!info)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (info->version != NVML_PROCESSES_UTILIZATION_V1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	rc = samples_get(device, info->lastSeenTimeStamp, &samples);
	if (rc != NVML_SUCCESS)
		return rc;
	if (!info->procUtilArray || info->processSamplesCount < samples.count) {
		info->processSamplesCount = samples.count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	for (uint32_t i = 0; i < samples.count; i++) {
		info->procUtilArray[i] = (nvmlProcessUtilizationInfo_v1_t){
			.timeStamp = samples.stamp_us,
			.pid = pid_shown(samples.process[i].pid),
			.smUtil = samples.process[i].busy_percent,
		};
	}
	info->processSamplesCount = samples.count;
	return NVML_SUCCESS;
}

/* ---- processes ---- */

struct listed {
	nvmlProcessInfo_t info[PROCESSES_MAX];
	uint32_t count;
};

#define NO_INSTANCE 0xffffffffu

static void list_unit(struct listed *list, uint32_t unit, uint32_t gpu_instance,
		      uint32_t compute_instance)
{
	static struct fake_process processes[PROCESSES_MAX];
	uint32_t count = fake_processes(nvml.state, unit, 0, processes, PROCESSES_MAX);

	for (uint32_t i = 0; i < count && list->count < PROCESSES_MAX; i++) {
		list->info[list->count++] = (nvmlProcessInfo_t){
			.pid = pid_shown(processes[i].pid),
			.usedGpuMemory = processes[i].used_bytes,
			.gpuInstanceId = gpu_instance,
			.computeInstanceId = compute_instance,
		};
	}
}

static nvmlReturn_t list_processes(nvmlDevice_t device, struct listed *list)
{
	nvmlReturn_t rc = fake_nvml_check(device);
	const struct fake_card *card;

	if (rc != NVML_SUCCESS)
		return rc;
	card = fake_nvml_card(device);
	list->count = 0;
	if (nvml.machine.pids == FAKE_PIDS_NONE)
		return NVML_SUCCESS;
	if (device->mig) {
		list_unit(list, fake_nvml_unit(device), fake_nvml_mig(device)->gpu_instance, 0);
		return NVML_SUCCESS;
	}
	list_unit(list, fake_nvml_unit(device), NO_INSTANCE, NO_INSTANCE);
	for (uint32_t mig = 1; mig <= card->migs; mig++)
		list_unit(list, fake_unit_of(device->card, mig), card->mig[mig - 1].gpu_instance,
			  0);
	return NVML_SUCCESS;
}

static nvmlReturn_t give_list(nvmlDevice_t device, unsigned int *count, void *room, bool old,
			      bool empty)
{
	static struct listed list; /* under the lock */
	nvmlReturn_t rc;

	if (!count || (*count && !room))
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = list_processes(device, &list);
	if (rc != NVML_SUCCESS)
		return rc;
	if (empty)
		list.count = 0;
	if (*count < list.count) {
		*count = list.count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	*count = list.count;
	for (uint32_t i = 0; i < list.count; i++) {
		if (old)
			((nvmlProcessInfo_v1_t *)room)[i] =
				(nvmlProcessInfo_v1_t){ list.info[i].pid,
							list.info[i].usedGpuMemory };
		else
			((nvmlProcessInfo_t *)room)[i] = list.info[i];
	}
	return NVML_SUCCESS;
}

/* There is no graphics and no MPS on the fake: those lists are empty. */
#define PROCESS_LISTS(kind, empty)                                                                 \
	FAKE_NVML(nvmlDeviceGet##kind##RunningProcesses, FAKE_INIT,                                \
		  (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_v1_t *list),          \
		  (device, count, list))                                                           \
	{                                                                                          \
		return give_list(device, count, list, true, empty);                                \
	}                                                                                          \
	FAKE_NVML(nvmlDeviceGet##kind##RunningProcesses_v2, FAKE_INIT,                             \
		  (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list),             \
		  (device, count, list))                                                           \
	{                                                                                          \
		return give_list(device, count, list, false, empty);                               \
	}                                                                                          \
	FAKE_NVML(nvmlDeviceGet##kind##RunningProcesses_v3, FAKE_INIT,                             \
		  (nvmlDevice_t device, unsigned int *count, nvmlProcessInfo_t *list),             \
		  (device, count, list))                                                           \
	{                                                                                          \
		return give_list(device, count, list, false, empty);                               \
	}

PROCESS_LISTS(Compute, false)
PROCESS_LISTS(Graphics, true)
PROCESS_LISTS(MPSCompute, true)

FAKE_NVML(nvmlDeviceGetRunningProcessDetailList, FAKE_INIT,
	  (nvmlDevice_t device, nvmlProcessDetailList_v1_t *ret), (device, ret))
{
	static struct listed list;
	nvmlReturn_t rc;

	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (ret->version != NVML_PROCESS_DETAIL_LIST_V1)
		return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
	if (ret->mode > 2)
		return NVML_ERROR_INVALID_ARGUMENT;
	rc = list_processes(device, &list);
	if (rc != NVML_SUCCESS)
		return rc;
	if (ret->mode)
		list.count = 0;
	if (ret->numProcArrayEntries < list.count || (list.count && !ret->procArray)) {
		ret->numProcArrayEntries = list.count;
		return NVML_ERROR_INSUFFICIENT_SIZE;
	}
	ret->numProcArrayEntries = list.count;
	for (uint32_t i = 0; i < list.count; i++) {
		ret->procArray[i] = (nvmlProcessDetail_v1_t){
			.pid = list.info[i].pid,
			.usedGpuMemory = list.info[i].usedGpuMemory,
			.gpuInstanceId = list.info[i].gpuInstanceId,
			.computeInstanceId = list.info[i].computeInstanceId,
		};
	}
	return NVML_SUCCESS;
}

/* ---- how cards are joined ---- */

static nvmlReturn_t link_check(nvmlDevice_t device, unsigned int link)
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	/* The real library knows of twice as many links as any card has, and calls those that the
	 * card lacks invalid arguments. */
	if (device->mig || link >= FAKE_LINKS_MAX ||
	    fake_nvml_card(device)->links[0] == FAKE_LINK_NONE)
		return fake_nvml_card(device)->links[0] == FAKE_LINK_NONE && link < FAKE_LINKS_MAX
			       ? NVML_ERROR_NOT_SUPPORTED
			       : NVML_ERROR_INVALID_ARGUMENT;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetNvLinkState, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int link, unsigned int *active), (device, link, active))
{
	nvmlReturn_t rc = link_check(device, link);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!active)
		return NVML_ERROR_INVALID_ARGUMENT;
	*active = fake_nvml_card(device)->links[link] != FAKE_LINK_NONE;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetNvLinkRemoteDeviceType, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int link, unsigned int *type), (device, link, type))
{
	nvmlReturn_t rc = link_check(device, link);
	int end;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!type)
		return NVML_ERROR_INVALID_ARGUMENT;
	end = fake_nvml_card(device)->links[link];
	if (end == FAKE_LINK_NONE)
		return NVML_ERROR_NOT_SUPPORTED;
	*type = end == FAKE_LINK_SWITCH ? NVML_LINK_TYPE_SWITCH : NVML_LINK_TYPE_GPU;
	return NVML_SUCCESS;
}

static nvmlReturn_t link_remote(nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci)
{
	nvmlReturn_t rc = link_check(device, link);
	int end;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	end = fake_nvml_card(device)->links[link];
	if (end == FAKE_LINK_NONE)
		return NVML_ERROR_NOT_SUPPORTED;
	memset(pci, 0, sizeof(*pci));
	if (end == FAKE_LINK_SWITCH) {
		/* What an H200 says of its switches in a virtual machine. */
		pci->domain = 0xffffffff;
		pci->bus = pci->device = 0xff;
		memcpy(pci->busId, "FFFFFFFF:FF:FF.0", sizeof("FFFFFFFF:FF:FF.0"));
		return NVML_SUCCESS;
	}
	if ((uint32_t)end >= nvml.machine.cards)
		return NVML_ERROR_UNKNOWN;
	pci->domain = nvml.machine.card[end].pci_domain;
	pci->bus = nvml.machine.card[end].pci_bus;
	pci->device = nvml.machine.card[end].pci_device;
	pci->pciDeviceId = nvml.machine.card[end].pci_id;
	fake_nvml_bus_id(&nvml.machine.card[end], pci->busId, sizeof(pci->busId));
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetNvLinkRemotePciInfo_v2, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci), (device, link, pci))
{
	return link_remote(device, link, pci);
}

FAKE_NVML(nvmlDeviceGetNvLinkRemotePciInfo, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int link, nvmlPciInfo_t *pci), (device, link, pci))
{
	return link_remote(device, link, pci);
}

FAKE_NVML(nvmlDeviceGetNvLinkVersion, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int link, unsigned int *version), (device, link, version))
{
	nvmlReturn_t rc = link_check(device, link);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = 4;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetNvLinkCapability, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int link, int capability, unsigned int *has),
	  (device, link, capability, has))
{
	nvmlReturn_t rc = link_check(device, link);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!has || capability < 0 || capability > 5)
		return NVML_ERROR_INVALID_ARGUMENT;
	*has = capability == 0; /* P2P */
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetTopologyCommonAncestor, FAKE_INIT,
	  (nvmlDevice_t a, nvmlDevice_t b, unsigned int *level), (a, b, level))
{
	nvmlReturn_t rc = fake_nvml_check(a);

	if (rc == NVML_SUCCESS)
		rc = fake_nvml_check(b);
	if (rc != NVML_SUCCESS)
		return rc;
	if (!level || a == b)
		return NVML_ERROR_INVALID_ARGUMENT;
	*level = fake_nvml_card(a)->ancestor[b->card];
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetTopologyNearestGpus, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int level, unsigned int *count, nvmlDevice_t *list),
	  (device, level, count, list))
{
	nvmlReturn_t rc = fake_nvml_check(device);
	uint32_t found = 0;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!count || (*count && !list))
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t card = 0; card < nvml.machine.cards; card++) {
		if (card == device->card || fake_nvml_card(device)->ancestor[card] != level)
			continue;
		if (found < *count)
			list[found] = &nvml.device[card][0];
		found++;
	}
	*count = found;
	return NVML_SUCCESS;
}

static bool p2p(nvmlDevice_t a, nvmlDevice_t b, int how)
{
	const struct fake_card *from = fake_nvml_card(a), *to = fake_nvml_card(b);
	bool linked = false;

	for (uint32_t i = 0; i < FAKE_LINKS_MAX; i++) {
		linked |= from->links[i] == (int)b->card;
		linked |= from->links[i] == FAKE_LINK_SWITCH && to->links[0] == FAKE_LINK_SWITCH;
	}
	switch (how) {
	case 2: /* NVLink */
	case 3: /* atomics */
		return linked;
	case 4: /* PCIe */
		return from->ancestor[b->card] < 50;
	default: /* read, write */
		return linked || from->ancestor[b->card] < 50;
	}
}

FAKE_NVML(nvmlDeviceGetP2PStatus, FAKE_INIT,
	  (nvmlDevice_t a, nvmlDevice_t b, int how, unsigned int *status), (a, b, how, status))
{
	nvmlReturn_t rc = fake_nvml_check(a);

	if (rc == NVML_SUCCESS)
		rc = fake_nvml_check(b);
	if (rc != NVML_SUCCESS)
		return rc;
	if (!status || a == b || how < 0 || how > 4)
		return NVML_ERROR_INVALID_ARGUMENT;
	*status = p2p(a, b, how) ? NVML_P2P_OK : NVML_P2P_NOT_SUPPORTED;
	return NVML_SUCCESS;
}

/* Scope 0 is the NUMA node, 1 the socket; a bit for each node. */
FAKE_NVML(nvmlDeviceGetMemoryAffinity, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int words, unsigned long *set, unsigned int scope),
	  (device, words, set, scope))
{
	nvmlReturn_t rc = fake_nvml_check(device);
	uint32_t node;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!words || !set || scope > 1)
		return NVML_ERROR_INVALID_ARGUMENT;
	node = fake_nvml_card(device)->numa < 0 ? 0 : (uint32_t)fake_nvml_card(device)->numa;
	if (node / 64 >= words)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memset(set, 0, words * sizeof(*set));
	set[node / 64] = 1ul << (node % 64);
	return NVML_SUCCESS;
}

/* Memory of the card as a node of the host: none of these cards has that. */
FAKE_NVML(nvmlDeviceGetNumaNodeId, FAKE_INIT, (nvmlDevice_t device, unsigned int *node),
	  (device, node))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	return node ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t cpu_affinity(nvmlDevice_t device, unsigned int words, unsigned long *set)
{
	nvmlReturn_t rc = fake_nvml_check(device);
	int node;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!words || !set)
		return NVML_ERROR_INVALID_ARGUMENT;
	/* 64 processors in each node, one word each. */
	memset(set, 0, words * sizeof(*set));
	node = fake_nvml_card(device)->numa;
	set[node > 0 && (unsigned int)node < words ? node : 0] = ~0ul;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetCpuAffinity, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int words, unsigned long *set), (device, words, set))
{
	return cpu_affinity(device, words, set);
}

FAKE_NVML(nvmlDeviceGetCpuAffinityWithinScope, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int words, unsigned long *set, unsigned int scope),
	  (device, words, set, scope))
{
	return scope > 1 ? NVML_ERROR_INVALID_ARGUMENT : cpu_affinity(device, words, set);
}

/* ---- sensors and settings ---- */

CONSTANT(nvmlDeviceGetPowerUsage, unsigned int, fake_nvml_card(device)->power_mw)
CONSTANT(nvmlDeviceGetPowerManagementLimit, unsigned int, fake_nvml_card(device)->power_limit_mw)
CONSTANT(nvmlDeviceGetPowerManagementDefaultLimit, unsigned int,
	 fake_nvml_card(device)->power_limit_mw)
CONSTANT(nvmlDeviceGetEnforcedPowerLimit, unsigned int, fake_nvml_card(device)->power_limit_mw)
CONSTANT(nvmlDeviceGetPowerManagementMode, unsigned int, 1)
CONSTANT(nvmlDeviceGetPersistenceMode, unsigned int, 1)
CONSTANT(nvmlDeviceGetComputeMode, unsigned int, 0)
CONSTANT(nvmlDeviceGetPerformanceState, unsigned int, 0)
CONSTANT(nvmlDeviceGetDisplayActive, unsigned int, 0)
CONSTANT(nvmlDeviceGetDisplayMode, unsigned int, 0)
CONSTANT(nvmlDeviceGetVirtualizationMode, unsigned int, 0)
CONSTANT(nvmlDeviceGetMultiGpuBoard, unsigned int, 0)
CONSTANT(nvmlDeviceGetBrand, unsigned int, 14)
CONSTANT(nvmlDeviceGetBoardId, unsigned int, fake_nvml_card(device)->pci_bus << 8)
CONSTANT(nvmlDeviceGetMemoryBusWidth, unsigned int, 6144)
CONSTANT(nvmlDeviceGetNumGpuCores, unsigned int, fake_nvml_card(device)->sms * 128)
CONSTANT(nvmlDeviceGetCurrPcieLinkGeneration, unsigned int, 5)
CONSTANT(nvmlDeviceGetMaxPcieLinkGeneration, unsigned int, 5)
CONSTANT(nvmlDeviceGetCurrPcieLinkWidth, unsigned int, 16)
CONSTANT(nvmlDeviceGetMaxPcieLinkWidth, unsigned int, 16)
CONSTANT(nvmlDeviceGetSupportedEventTypes, unsigned long long, fake_nvml_card(device)->event_types)
CONSTANT(nvmlDeviceGetArchitecture, unsigned int,
	 fake_nvml_card(device)->cc_major == 8 && fake_nvml_card(device)->cc_minor == 9 ? 8
	 : fake_nvml_card(device)->cc_major == 8                                        ? 7
	 : fake_nvml_card(device)->cc_major == 7                                        ? 6
	 : fake_nvml_card(device)->cc_major == 9                                        ? 9
											: 10)

FAKE_NVML(nvmlDeviceGetPowerManagementLimitConstraints, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int *least, unsigned int *most), (device, least, most))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!least || !most)
		return NVML_ERROR_INVALID_ARGUMENT;
	*least = fake_nvml_card(device)->power_limit_mw / 3;
	*most = fake_nvml_card(device)->power_limit_mw;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetTemperature, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int sensor, unsigned int *celsius),
	  (device, sensor, celsius))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!celsius || sensor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*celsius = fake_nvml_card(device)->temperature_c;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetFanSpeed, FAKE_INIT, (nvmlDevice_t device, unsigned int *percent),
	  (device, percent))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	return percent ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

static nvmlReturn_t clock_mhz(nvmlDevice_t device, unsigned int kind, unsigned int *mhz)
{
	static const unsigned int clocks[] = { 1980, 1980, 3201, 1590 };
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!mhz || kind >= sizeof(clocks) / sizeof(clocks[0]))
		return NVML_ERROR_INVALID_ARGUMENT;
	*mhz = clocks[kind];
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetClockInfo, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int kind, unsigned int *mhz), (device, kind, mhz))
{
	return clock_mhz(device, kind, mhz);
}

FAKE_NVML(nvmlDeviceGetMaxClockInfo, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int kind, unsigned int *mhz), (device, kind, mhz))
{
	return clock_mhz(device, kind, mhz);
}

FAKE_NVML(nvmlDeviceGetEccMode, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int *current, unsigned int *pending),
	  (device, current, pending))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!current || !pending)
		return NVML_ERROR_INVALID_ARGUMENT;
	*current = *pending = 1;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetCudaComputeCapability, FAKE_INIT,
	  (nvmlDevice_t device, int *major, int *minor), (device, major, minor))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!major || !minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	*major = (int)fake_nvml_card(device)->cc_major;
	*minor = (int)fake_nvml_card(device)->cc_minor;
	return NVML_SUCCESS;
}

static nvmlReturn_t engine(nvmlDevice_t device, unsigned int *percent, unsigned int *period_us)
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!percent || !period_us)
		return NVML_ERROR_INVALID_ARGUMENT;
	*percent = 0;
	*period_us = FAKE_SAMPLE_NS / 1000;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetEncoderUtilization, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us),
	  (device, percent, period_us))
{
	return engine(device, percent, period_us);
}

FAKE_NVML(nvmlDeviceGetDecoderUtilization, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int *percent, unsigned int *period_us),
	  (device, percent, period_us))
{
	return engine(device, percent, period_us);
}
