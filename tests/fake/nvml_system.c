/* SPDX-License-Identifier: Apache-2.0 */
/* Start, end, versions, error texts, and how cards are found. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "base/str.h"
#include "nvml_driver.h"

struct fake_nvml nvml = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
};

/* ---- entry ---- */

void fake_nvml_reload(void)
{
	static struct timespec seen;
	static off_t seen_size;
	const char *path = getenv("VGPU_FAKE_DEVICES");
	vg_autofree struct fake_machine *next = NULL;
	struct stat info;

	if (!path || !strchr(path, '/') || stat(path, &info) < 0)
		return;
	if (info.st_mtim.tv_sec == seen.tv_sec && info.st_mtim.tv_nsec == seen.tv_nsec &&
	    info.st_size == seen_size)
		return;
	seen = info.st_mtim;
	seen_size = info.st_size;
	/* A file that is being written reads badly; the next call sees it whole. */
	next = vg_new(sizeof(*next));
	if (fake_machine_load(next, NULL) == 0)
		nvml.machine = *next;
}

nvmlReturn_t fake_nvml_enter(const char *symbol, int need)
{
	int code;

	fake_trace_setup();
	pthread_mutex_lock(&nvml.lock);
	if (fake_trace_fails(symbol, &code))
		return code;
	if (need == FAKE_INIT) {
		if (!nvml.inits)
			return NVML_ERROR_UNINITIALIZED;
		fake_nvml_reload();
	}
	return NVML_SUCCESS;
}

void fake_nvml_leave(void)
{
	pthread_mutex_unlock(&nvml.lock);
}

static void before_fork(void)
{
	pthread_mutex_lock(&nvml.lock);
}

static void after_fork_parent(void)
{
	pthread_mutex_unlock(&nvml.lock);
}

/* NVML goes on in the child. */
static void after_fork_child(void)
{
	fake_trace_after_fork();
	if (nvml.state) {
		fake_state_after_fork(nvml.state);
		nvml.state = NULL;
		if (fake_state_attach(&nvml.machine, &nvml.state, NULL) < 0)
			nvml.inits = 0;
	}
	pthread_mutex_unlock(&nvml.lock);
}

static void __attribute__((constructor)) loaded(void)
{
	pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}

nvmlReturn_t fake_nvml_check(nvmlDevice_t device)
{
	const struct nvmlDevice_st *first = &nvml.device[0][0];
	const struct nvmlDevice_st *end = first + FAKE_CARDS_MAX * (FAKE_MIG_MAX + 1);

	if (device < first || device >= end || device->card >= nvml.machine.cards ||
	    device->mig > nvml.machine.card[device->card].migs)
		return NVML_ERROR_INVALID_ARGUMENT;
	return nvml.machine.card[device->card].lost ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

/* ---- start and end ---- */

static nvmlReturn_t init(void)
{
	struct vg_err err = { 0 };

	if (nvml.inits++)
		return NVML_SUCCESS;
	nvml.inits = 0;
	if (fake_machine_load(&nvml.machine, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return NVML_ERROR_UNKNOWN;
	}
	if (vg_streq(nvml.machine.driver_version, "none"))
		return NVML_ERROR_DRIVER_NOT_LOADED;
	if (fake_state_attach(&nvml.machine, &nvml.state, &err) < 0) {
		fprintf(stderr, "%s\n", err.msg);
		return NVML_ERROR_UNKNOWN;
	}
	for (uint32_t card = 0; card < FAKE_CARDS_MAX; card++) {
		for (uint32_t mig = 0; mig <= FAKE_MIG_MAX; mig++) {
			nvml.device[card][mig] = (struct nvmlDevice_st){ card, mig };
			nvml.gpu_instance[card][mig] = (struct nvmlGpuInstance_st){ card, mig };
			nvml.compute_instance[card][mig] =
				(struct nvmlComputeInstance_st){ card, mig };
		}
	}
	nvml.inits = 1;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlInit_v2, FAKE_ANY, (void), ())
{
	return init();
}

FAKE_NVML(nvmlInit, FAKE_ANY, (void), ())
{
	return init();
}

FAKE_NVML(nvmlInitWithFlags, FAKE_ANY, (unsigned int flags), (flags))
{
	return init();
}

FAKE_NVML(nvmlShutdown, FAKE_INIT, (void), ())
{
	nvml.inits--;
	return NVML_SUCCESS;
}

FAKE_API const char *nvmlErrorString(nvmlReturn_t code);
FAKE_API const char *nvmlErrorString(nvmlReturn_t code)
{
	static const struct {
		nvmlReturn_t code;
		const char *text;
	} texts[] = {
		{ NVML_SUCCESS, "Success" },
		{ NVML_ERROR_UNINITIALIZED, "Uninitialized" },
		{ NVML_ERROR_INVALID_ARGUMENT, "Invalid Argument" },
		{ NVML_ERROR_NOT_SUPPORTED, "Not Supported" },
		{ NVML_ERROR_NO_PERMISSION, "Insufficient Permissions" },
		{ NVML_ERROR_ALREADY_INITIALIZED, "Already Initialized" },
		{ NVML_ERROR_NOT_FOUND, "Not Found" },
		{ NVML_ERROR_INSUFFICIENT_SIZE, "Insufficient Size" },
		{ NVML_ERROR_DRIVER_NOT_LOADED, "Driver Not Loaded" },
		{ NVML_ERROR_TIMEOUT, "Timeout" },
		{ NVML_ERROR_LIBRARY_NOT_FOUND, "NVML Shared Library Not Found" },
		{ NVML_ERROR_FUNCTION_NOT_FOUND, "Function Not Found" },
		{ NVML_ERROR_GPU_IS_LOST, "GPU is lost" },
		{ NVML_ERROR_IN_USE, "In use by another client" },
		{ NVML_ERROR_MEMORY, "Insufficient Memory" },
		{ NVML_ERROR_NO_DATA, "No data" },
		{ NVML_ERROR_ARGUMENT_VERSION_MISMATCH, "Argument version mismatch" },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i].code == code)
			return texts[i].text;
	}
	return "Unknown Error";
}

/* ---- versions ---- */

static nvmlReturn_t give_text(char *target, unsigned int length, const char *text)
{
	if (!target)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (strlen(text) >= length)
		return NVML_ERROR_INSUFFICIENT_SIZE;
	memcpy(target, text, strlen(text) + 1);
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlSystemGetDriverVersion, FAKE_INIT, (char *version, unsigned int length),
	  (version, length))
{
	return give_text(version, length, nvml.machine.driver_version);
}

FAKE_NVML(nvmlSystemGetNVMLVersion, FAKE_INIT, (char *version, unsigned int length),
	  (version, length))
{
	return give_text(version, length, nvml.machine.nvml_version);
}

static nvmlReturn_t cuda_version(int *version)
{
	if (!version)
		return NVML_ERROR_INVALID_ARGUMENT;
	*version = nvml.machine.cuda_version;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlSystemGetCudaDriverVersion, FAKE_ANY, (int *version), (version))
{
	return cuda_version(version);
}

FAKE_NVML(nvmlSystemGetCudaDriverVersion_v2, FAKE_ANY, (int *version), (version))
{
	return cuda_version(version);
}

FAKE_NVML(nvmlSystemGetProcessName, FAKE_INIT, (unsigned int pid, char *name, unsigned int length),
	  (pid, name, length))
{
	char path[64], text[256] = "";
	vg_autofclose FILE *file = NULL;

	if (!name || !length)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (nvml.machine.pids == FAKE_PIDS_OFFSET)
		pid -= nvml.machine.pid_offset;
	snprintf(path, sizeof(path), "/proc/%u/cmdline", pid);
	file = fopen(path, "re");
	if (!file || !fgets(text, sizeof(text), file))
		return NVML_ERROR_NOT_FOUND;
	vg_copy(name, length, text);
	return NVML_SUCCESS;
}

/* ---- finding a card ---- */

static nvmlReturn_t count(unsigned int *ret)
{
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	*ret = nvml.machine.cards;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetCount_v2, FAKE_INIT, (unsigned int *number), (number))
{
	return count(number);
}

FAKE_NVML(nvmlDeviceGetCount, FAKE_INIT, (unsigned int *number), (number))
{
	return count(number);
}

static nvmlReturn_t give_device(uint32_t card, uint32_t mig, nvmlDevice_t *ret_device)
{
	nvmlReturn_t rc = fake_nvml_check(&nvml.device[card][mig]);

	if (rc == NVML_SUCCESS)
		*ret_device = &nvml.device[card][mig];
	return rc;
}

static nvmlReturn_t by_index(unsigned int index, nvmlDevice_t *device)
{
	if (!device || index >= nvml.machine.cards)
		return NVML_ERROR_INVALID_ARGUMENT;
	return give_device(index, 0, device);
}

FAKE_NVML(nvmlDeviceGetHandleByIndex_v2, FAKE_INIT, (unsigned int index, nvmlDevice_t *device),
	  (index, device))
{
	return by_index(index, device);
}

FAKE_NVML(nvmlDeviceGetHandleByIndex, FAKE_INIT, (unsigned int index, nvmlDevice_t *device),
	  (index, device))
{
	return by_index(index, device);
}

FAKE_NVML(nvmlDeviceGetHandleByUUID, FAKE_INIT, (const char *uuid, nvmlDevice_t *device),
	  (uuid, device))
{
	if (!uuid || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t card = 0; card < nvml.machine.cards; card++) {
		if (vg_streq(uuid, nvml.machine.card[card].uuid))
			return give_device(card, 0, device);
		for (uint32_t mig = 0; mig < nvml.machine.card[card].migs; mig++) {
			if (vg_streq(uuid, nvml.machine.card[card].mig[mig].uuid))
				return give_device(card, mig + 1, device);
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

FAKE_NVML(nvmlDeviceGetHandleBySerial, FAKE_INIT, (const char *serial, nvmlDevice_t *device),
	  (serial, device))
{
	if (!serial || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t card = 0; card < nvml.machine.cards; card++) {
		if (vg_streq(serial, nvml.machine.card[card].serial))
			return give_device(card, 0, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

void fake_nvml_bus_id(const struct fake_card *card, char *id, size_t room)
{
	snprintf(id, room, "%08X:%02X:%02X.0", card->pci_domain, card->pci_bus, card->pci_device);
}

/* The domain may be left out or have four digits. */
static bool bus_id_matches(const struct fake_card *card, const char *id)
{
	char full[32], part[32];

	fake_nvml_bus_id(card, full, sizeof(full));
	if (vg_strcaseeq(full, id) || vg_strcaseeq(full + 9, id))
		return true;
	snprintf(part, sizeof(part), "%04X:%02X:%02X.0", card->pci_domain, card->pci_bus,
		 card->pci_device);
	return vg_strcaseeq(part, id);
}

static nvmlReturn_t by_bus_id(const char *id, nvmlDevice_t *device)
{
	if (!id || !device)
		return NVML_ERROR_INVALID_ARGUMENT;
	for (uint32_t card = 0; card < nvml.machine.cards; card++) {
		if (bus_id_matches(&nvml.machine.card[card], id))
			return give_device(card, 0, device);
	}
	return NVML_ERROR_NOT_FOUND;
}

FAKE_NVML(nvmlDeviceGetHandleByPciBusId_v2, FAKE_INIT, (const char *id, nvmlDevice_t *device),
	  (id, device))
{
	return by_bus_id(id, device);
}

FAKE_NVML(nvmlDeviceGetHandleByPciBusId, FAKE_INIT, (const char *id, nvmlDevice_t *device),
	  (id, device))
{
	return by_bus_id(id, device);
}

/* ---- identity ---- */

FAKE_NVML(nvmlDeviceGetName, FAKE_INIT, (nvmlDevice_t device, char *name, unsigned int length),
	  (device, name, length))
{
	nvmlReturn_t rc = fake_nvml_check(device);
	char text[128];

	if (rc != NVML_SUCCESS)
		return rc;
	snprintf(text, sizeof(text), "%s%s%s", fake_nvml_card(device)->name,
		 device->mig ? " MIG " : "", device->mig ? fake_nvml_mig(device)->profile : "");
	return give_text(name, length, text);
}

FAKE_NVML(nvmlDeviceGetUUID, FAKE_INIT, (nvmlDevice_t device, char *uuid, unsigned int length),
	  (device, uuid, length))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	return give_text(uuid, length,
			 device->mig ? fake_nvml_mig(device)->uuid : fake_nvml_card(device)->uuid);
}

FAKE_NVML(nvmlDeviceGetSerial, FAKE_INIT, (nvmlDevice_t device, char *serial, unsigned int length),
	  (device, serial, length))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	return rc == NVML_SUCCESS ? give_text(serial, length, fake_nvml_card(device)->serial) : rc;
}

/* An instance's index is its place among the card's instances. */
FAKE_NVML(nvmlDeviceGetIndex, FAKE_INIT, (nvmlDevice_t device, unsigned int *index),
	  (device, index))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!index)
		return NVML_ERROR_INVALID_ARGUMENT;
	*index = device->mig ? device->mig - 1 : device->card;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetMinorNumber, FAKE_INIT, (nvmlDevice_t device, unsigned int *minor),
	  (device, minor))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!minor)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (device->mig)
		return NVML_ERROR_NOT_SUPPORTED;
	*minor = device->card;
	return NVML_SUCCESS;
}

static nvmlReturn_t pci_info(nvmlDevice_t device, nvmlPciInfo_t *pci)
{
	nvmlReturn_t rc = fake_nvml_check(device);
	const struct fake_card *card;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	card = fake_nvml_card(device);
	*pci = (nvmlPciInfo_t){
		.domain = card->pci_domain,
		.bus = card->pci_bus,
		.device = card->pci_device,
		.pciDeviceId = card->pci_id,
		.pciSubSystemId = card->pci_id,
	};
	fake_nvml_bus_id(card, pci->busId, sizeof(pci->busId));
	snprintf(pci->busIdLegacy, sizeof(pci->busIdLegacy), "%04X:%02X:%02X.0",
		 card->pci_domain & 0xffff, card->pci_bus & 0xff, card->pci_device & 0xff);
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetPciInfo_v3, FAKE_INIT, (nvmlDevice_t device, nvmlPciInfo_t *pci),
	  (device, pci))
{
	return pci_info(device, pci);
}

static nvmlReturn_t pci_info_old(nvmlDevice_t device, nvmlPciInfo_v2_t *pci)
{
	nvmlPciInfo_t now;
	nvmlReturn_t rc = pci_info(device, &now);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!pci)
		return NVML_ERROR_INVALID_ARGUMENT;
	*pci = (nvmlPciInfo_v2_t){
		.domain = now.domain,
		.bus = now.bus,
		.device = now.device,
		.pciDeviceId = now.pciDeviceId,
		.pciSubSystemId = now.pciSubSystemId,
	};
	memcpy(pci->busId, now.busIdLegacy, sizeof(pci->busId));
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetPciInfo_v2, FAKE_INIT, (nvmlDevice_t device, nvmlPciInfo_v2_t *pci),
	  (device, pci))
{
	return pci_info_old(device, pci);
}

FAKE_NVML(nvmlDeviceGetPciInfo, FAKE_INIT, (nvmlDevice_t device, nvmlPciInfo_v2_t *pci),
	  (device, pci))
{
	return pci_info_old(device, pci);
}

/* ---- MIG ---- */

FAKE_NVML(nvmlDeviceGetMigMode, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int *current, unsigned int *pending),
	  (device, current, pending))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!current || !pending || device->mig)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!fake_nvml_card(device)->mig_capable)
		return NVML_ERROR_NOT_SUPPORTED;
	*current = *pending = fake_nvml_card(device)->mig_enabled;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetMaxMigDeviceCount, FAKE_INIT, (nvmlDevice_t device, unsigned int *number),
	  (device, number))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!number)
		return NVML_ERROR_INVALID_ARGUMENT;
	*number = fake_nvml_card(device)->mig_capable ? FAKE_MIG_MAX : 0;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetMigDeviceHandleByIndex, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int index, nvmlDevice_t *mig), (device, index, mig))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!mig || device->mig || index >= FAKE_MIG_MAX)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!fake_nvml_card(device)->mig_capable)
		return NVML_ERROR_NOT_SUPPORTED;
	if (index >= fake_nvml_card(device)->migs)
		return NVML_ERROR_NOT_FOUND;
	return give_device(device->card, index + 1, mig);
}

FAKE_NVML(nvmlDeviceGetDeviceHandleFromMigDeviceHandle, FAKE_INIT,
	  (nvmlDevice_t mig, nvmlDevice_t *device), (mig, device))
{
	nvmlReturn_t rc = fake_nvml_check(mig);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!device || !mig->mig)
		return NVML_ERROR_INVALID_ARGUMENT;
	return give_device(mig->card, 0, device);
}

FAKE_NVML(nvmlDeviceIsMigDeviceHandle, FAKE_INIT, (nvmlDevice_t device, unsigned int *is),
	  (device, is))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!is)
		return NVML_ERROR_INVALID_ARGUMENT;
	*is = device->mig != 0;
	return NVML_SUCCESS;
}

static nvmlReturn_t instance_id(nvmlDevice_t device, unsigned int *id, bool compute)
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!id)
		return NVML_ERROR_INVALID_ARGUMENT;
	if (!device->mig)
		return NVML_ERROR_NOT_SUPPORTED;
	*id = compute ? 0 : fake_nvml_mig(device)->gpu_instance;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetGpuInstanceId, FAKE_INIT, (nvmlDevice_t device, unsigned int *id),
	  (device, id))
{
	return instance_id(device, id, false);
}

FAKE_NVML(nvmlDeviceGetComputeInstanceId, FAKE_INIT, (nvmlDevice_t device, unsigned int *id),
	  (device, id))
{
	return instance_id(device, id, true);
}

static nvmlReturn_t attributes(nvmlDevice_t device, nvmlDeviceAttributes_t *ret)
{
	nvmlReturn_t rc = fake_nvml_check(device);
	const struct fake_mig *mig;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!ret)
		return NVML_ERROR_INVALID_ARGUMENT;
	mig = fake_nvml_mig(device);
	if (!mig)
		return NVML_ERROR_NOT_SUPPORTED;
	*ret = (nvmlDeviceAttributes_t){
		.multiprocessorCount = mig->sms,
		.sharedCopyEngineCount = 1,
		.gpuInstanceSliceCount = mig->slices,
		.computeInstanceSliceCount = mig->slices,
		.memorySizeMB = mig->mem_bytes >> 20,
	};
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetAttributes_v2, FAKE_INIT, (nvmlDevice_t device, nvmlDeviceAttributes_t *ret),
	  (device, ret))
{
	return attributes(device, ret);
}

FAKE_NVML(nvmlDeviceGetAttributes, FAKE_INIT, (nvmlDevice_t device, nvmlDeviceAttributes_t *ret),
	  (device, ret))
{
	return attributes(device, ret);
}

/* Profile ids: 1g 2g 3g 4g 7g are 0 … 4; 8g and 6g are 5 and 6. */
static uint32_t profile_slices(unsigned int profile)
{
	static const uint32_t slices[] = { 1, 2, 3, 4, 7 };

	return profile < sizeof(slices) / sizeof(slices[0]) ? slices[profile] : 0;
}

static unsigned int profile_of(uint32_t slices)
{
	for (unsigned int profile = 0; profile < 5; profile++) {
		if (profile_slices(profile) == slices)
			return profile;
	}
	return 0;
}

FAKE_NVML(nvmlDeviceGetGpuInstanceProfileInfo, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int profile, nvmlGpuInstanceProfileInfo_t *info),
	  (device, profile, info))
{
	nvmlReturn_t rc = fake_nvml_check(device);
	const struct fake_card *card;
	uint32_t slices = profile_slices(profile);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!info || device->mig)
		return NVML_ERROR_INVALID_ARGUMENT;
	card = fake_nvml_card(device);
	if (!card->mig_capable || !slices)
		return NVML_ERROR_NOT_SUPPORTED;
	/* Eight memory slices for seven compute slices: 3g and 4g take four, 7g all. */
	*info = (nvmlGpuInstanceProfileInfo_t){
		.id = profile,
		.sliceCount = slices,
		.instanceCount = 7 / slices,
		.multiprocessorCount = slices == 7   ? card->sms
				       : slices == 3 ? card->sms * 60 / 132
						     : card->sms * 16 / 132 * slices,
		.copyEngineCount = slices,
		.memorySizeMB = (card->mem_bytes >> 20) / 8 *
				(slices == 7   ? 8
				 : slices >= 3 ? 4
					       : slices),
	};
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetGpuInstances, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int profile, nvmlGpuInstance_t *instances,
	   unsigned int *number),
	  (device, profile, instances, number))
{
	nvmlReturn_t rc = fake_nvml_check(device);
	const struct fake_card *card;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!instances || !number || device->mig || !profile_slices(profile))
		return NVML_ERROR_INVALID_ARGUMENT;
	card = fake_nvml_card(device);
	if (!card->mig_enabled)
		return NVML_ERROR_NOT_SUPPORTED;
	*number = 0;
	for (uint32_t i = 0; i < card->migs; i++) {
		if (card->mig[i].slices == profile_slices(profile))
			instances[(*number)++] = &nvml.gpu_instance[device->card][i + 1];
	}
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceGetGpuInstanceById, FAKE_INIT,
	  (nvmlDevice_t device, unsigned int id, nvmlGpuInstance_t *instance),
	  (device, id, instance))
{
	nvmlReturn_t rc = fake_nvml_check(device);
	const struct fake_card *card;

	if (rc != NVML_SUCCESS)
		return rc;
	if (!instance || device->mig)
		return NVML_ERROR_INVALID_ARGUMENT;
	card = fake_nvml_card(device);
	for (uint32_t i = 0; i < card->migs; i++) {
		if (card->mig[i].gpu_instance == id) {
			*instance = &nvml.gpu_instance[device->card][i + 1];
			return NVML_SUCCESS;
		}
	}
	return NVML_ERROR_NOT_FOUND;
}

static const struct fake_mig *mig_at(uint32_t card, uint32_t mig)
{
	if (card >= nvml.machine.cards || !mig || mig > nvml.machine.card[card].migs)
		return NULL;
	return &nvml.machine.card[card].mig[mig - 1];
}

FAKE_NVML(nvmlGpuInstanceGetInfo, FAKE_INIT,
	  (nvmlGpuInstance_t instance, nvmlGpuInstanceInfo_t *info), (instance, info))
{
	const struct fake_mig *mig;

	if (!instance || !info || !(mig = mig_at(instance->card, instance->mig)))
		return NVML_ERROR_INVALID_ARGUMENT;
	*info = (nvmlGpuInstanceInfo_t){
		.device = &nvml.device[instance->card][0],
		.id = mig->gpu_instance,
		.profileId = profile_of(mig->slices),
		.placement = { mig->placement, mig->slices },
	};
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlGpuInstanceGetComputeInstanceById, FAKE_INIT,
	  (nvmlGpuInstance_t instance, unsigned int id, nvmlComputeInstance_t *compute),
	  (instance, id, compute))
{
	if (!instance || !compute || !mig_at(instance->card, instance->mig))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (id)
		return NVML_ERROR_NOT_FOUND;
	*compute = &nvml.compute_instance[instance->card][instance->mig];
	return NVML_SUCCESS;
}

static nvmlReturn_t compute_info(nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info)
{
	const struct fake_mig *mig;

	if (!compute || !info || !(mig = mig_at(compute->card, compute->mig)))
		return NVML_ERROR_INVALID_ARGUMENT;
	*info = (nvmlComputeInstanceInfo_t){
		.device = &nvml.device[compute->card][0],
		.gpuInstance = &nvml.gpu_instance[compute->card][compute->mig],
		.profileId = profile_of(mig->slices),
		.placement = { 0, mig->slices },
	};
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlComputeInstanceGetInfo_v2, FAKE_INIT,
	  (nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info), (compute, info))
{
	return compute_info(compute, info);
}

FAKE_NVML(nvmlComputeInstanceGetInfo, FAKE_INIT,
	  (nvmlComputeInstance_t compute, nvmlComputeInstanceInfo_t *info), (compute, info))
{
	return compute_info(compute, info);
}
