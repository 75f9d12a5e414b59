/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libnvidia-ml.so.1 as programs see it. Numbers without a reason beside them were read off a host
 * with four H200 and NVSwitch, driver 580. */
#include "unit/fake/child.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>

#include "fake/cuda_more_abi.h"
#include "fake/nvml_more_abi.h"

#define VG_NVML(symbol, class, params) extern nvmlReturn_t symbol params;
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
#define VG_CUDA(symbol, base, version, flavour, class, params) extern CUresult symbol params;
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA

extern nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device);
extern nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device);
extern nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length);
extern nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci);
extern nvmlReturn_t nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor);
extern nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned int *now,
					 unsigned int *next);
extern nvmlReturn_t nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is);
extern nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned int *id);
extern nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *ret);
extern nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t device, unsigned int link,
					     unsigned int *active);
extern nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t device, unsigned int link,
							nvmlPciInfo_t *pci);
extern nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(nvmlDevice_t device, unsigned int link,
							unsigned int *type);
extern nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t a, nvmlDevice_t b,
							unsigned int *level);
extern nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t a, nvmlDevice_t b, int how,
					   unsigned int *status);
extern nvmlReturn_t nvmlDeviceGetMemoryAffinity(nvmlDevice_t device, unsigned int words,
						unsigned long *set, unsigned int scope);
extern nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *ret);
extern nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t device,
						     unsigned long long *types);
extern nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned int *milliwatts);
extern nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned int sensor,
					     unsigned int *celsius);
extern nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set);
extern nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set);
extern nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int ms);
extern nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
					     nvmlEventSet_t set);
extern nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned int length);
extern const char *nvmlErrorString(nvmlReturn_t code);
extern nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, void *sample);

#define MIB (1ull << 20)

static nvmlDevice_t device_at(unsigned int index)
{
	nvmlDevice_t device = NULL;

	CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(index, &device), 0);
	return device;
}

static void recorded_body(void)
{
	nvmlDevice_t device, other;
	nvmlMemory_t memory;
	nvmlMemory_v2_t second = { .version = NVML_MEMORY_V2_VERSION };
	nvmlPciInfo_t pci;
	unsigned int count, a, b;
	unsigned long long types;
	char text[96];

	CHECK_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
	CHECK_EQ(nvmlShutdown(), NVML_ERROR_UNINITIALIZED);
	CHECK_EQ(nvmlInit_v2(), 0);
	CHECK_EQ(nvmlInit_v2(), 0);
	CHECK_EQ(nvmlShutdown(), 0);
	CHECK_EQ(nvmlDeviceGetCount_v2(&count), 0); /* counted */
	CHECK_EQ(count, 4);
	CHECK_EQ(nvmlDeviceGetHandleByIndex_v2(4, &device), NVML_ERROR_INVALID_ARGUMENT);
	device = device_at(2);
	other = device_at(3);
	CHECK_EQ(nvmlDeviceGetName(device, text, sizeof(text)), 0);
	CHECK(strcmp(text, "NVIDIA H200") == 0);
	CHECK_EQ(nvmlDeviceGetName(device, text, 11), NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQ(nvmlDeviceGetPciInfo_v3(device, &pci), 0);
	CHECK(strcmp(pci.busId, "00000000:00:08.0") == 0);
	CHECK(strcmp(pci.busIdLegacy, "0000:00:08.0") == 0);
	CHECK_EQ(nvmlDeviceGetMinorNumber(device, &a), 0);
	CHECK_EQ(a, 2);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(device, &memory), 0);
	CHECK_EQ(memory.total, 150754820096);
	CHECK_EQ(memory.free, 150109880320);
	CHECK_EQ(memory.used, 644939776);
	CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(device, &second), 0);
	CHECK_EQ(second.total, 150754820096);
	CHECK_EQ(second.reserved, 644939776);
	CHECK_EQ(second.free, 150109880320);
	CHECK_EQ(second.used, 0);
	second.version++;
	CHECK_EQ(nvmlDeviceGetMemoryInfo_v2(device, &second), NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	CHECK_EQ(nvmlDeviceGetMigMode(device, &a, &b), 0);
	CHECK_EQ(a, 0);
	CHECK_EQ(b, 0);
	CHECK_EQ(nvmlDeviceGetSupportedEventTypes(device, &types), 0);
	CHECK_EQ(types, 65439);
	for (unsigned int link = 0; link < 36; link++) {
		if (link >= 18) {
			CHECK_EQ(nvmlDeviceGetNvLinkState(device, link, &a), 2);
			continue;
		}
		CHECK_EQ(nvmlDeviceGetNvLinkState(device, link, &a), 0);
		CHECK_EQ(a, 1);
		CHECK_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(device, link, &pci), 0);
		CHECK(strcmp(pci.busId, "FFFFFFFF:FF:FF.0") == 0);
		CHECK_EQ(nvmlDeviceGetNvLinkRemoteDeviceType(device, link, &a), 0);
		CHECK_EQ(a, 2);
	}
	CHECK_EQ(nvmlDeviceGetTopologyCommonAncestor(device, other, &a), 0);
	CHECK_EQ(a, 30);
	CHECK_EQ(nvmlDeviceGetHandleByUUID("GPU-no", &device), NVML_ERROR_NOT_FOUND);
	CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2("00000000:00:09.0", &device), 0);
	CHECK(device == other);
	CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2("0000:00:09.0", &device), 0);
	CHECK_EQ(nvmlDeviceGetHandleByPciBusId_v2("0:0:9", &device), NVML_ERROR_NOT_FOUND);
	CHECK_EQ(nvmlDeviceGetUUID(other, text, sizeof(text)), 0);
	CHECK_EQ(nvmlDeviceGetHandleByUUID(text, &device), 0);
	CHECK(device == other);
	CHECK_EQ(nvmlDeviceGetUUID((nvmlDevice_t)text, text, sizeof(text)),
		 NVML_ERROR_INVALID_ARGUMENT);
	CHECK_EQ(nvmlSystemGetDriverVersion(text, sizeof(text)), 0);
	CHECK(strcmp(text, "580.159.04") == 0);
	CHECK(strcmp(nvmlErrorString(3), "Not Supported") == 0);
	CHECK(strcmp(nvmlErrorString(12345), "Unknown Error") == 0);
	CHECK_EQ(nvmlGpmSampleGet(device, text), NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQ(nvmlShutdown(), 0);
	CHECK_EQ(nvmlDeviceGetCount_v2(&count), NVML_ERROR_UNINITIALIZED);
}

static void test_recorded(void **state)
{
	(void)state;
	run_on("count=4", recorded_body);
}

static void topology_body(void)
{
	static const struct {
		unsigned int a, b, ancestor, nvlink, read;
	} rows[] = {
		{ 0, 1, 30, 0, 0 },
		{ 0, 2, 50, 0, 0 }, /* joined by NVLink across the sockets */
		{ 1, 2, 50, 5, 5 },
	};
	nvmlPciInfo_t pci;
	unsigned int value;
	unsigned long set[2];

	CHECK_EQ(nvmlInit_v2(), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		nvmlDevice_t a = device_at(rows[i].a), b = device_at(rows[i].b);

		CHECK_EQ(nvmlDeviceGetTopologyCommonAncestor(a, b, &value), 0);
		CHECK_EQ(value, rows[i].ancestor);
		CHECK_EQ(nvmlDeviceGetP2PStatus(a, b, 2, &value), 0);
		CHECK_EQ(value, rows[i].nvlink);
		CHECK_EQ(nvmlDeviceGetP2PStatus(a, b, 0, &value), 0);
		CHECK_EQ(value, rows[i].read);
	}
	CHECK_EQ(nvmlDeviceGetNvLinkRemotePciInfo_v2(device_at(0), 3, &pci), 0);
	CHECK(strcmp(pci.busId, "00000000:00:08.0") == 0);
	CHECK_EQ(nvmlDeviceGetNvLinkRemoteDeviceType(device_at(0), 3, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(nvmlDeviceGetNvLinkState(device_at(0), 4, &value), 0);
	CHECK_EQ(value, 0);
	CHECK_EQ(nvmlDeviceGetNvLinkState(device_at(1), 17, &value), 0);
	CHECK_EQ(nvmlDeviceGetMemoryAffinity(device_at(2), 2, set, 0), 0);
	CHECK_EQ(set[0], 2);
	CHECK_EQ(set[1], 0);
}

static void test_topology(void **state)
{
	(void)state;
	run_on("numa=0 nvlink=1:2,2:2\nnuma=0 nvlink=0:2\nnuma=1 nvlink=0:2\n", topology_body);
}

static void mig_body(void)
{
	nvmlDevice_t card, part, again;
	nvmlDeviceAttributes_t attributes;
	nvmlMemory_t memory;
	nvmlUtilization_t busy;
	unsigned int value, next;
	CUcontext context;
	CUdeviceptr pointer;
	nvmlProcessInfo_t list[4];

	CHECK_EQ(nvmlInit_v2(), 0);
	card = device_at(0);
	CHECK_EQ(nvmlDeviceGetMigMode(card, &value, &next), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(nvmlDeviceGetMaxMigDeviceCount(card, &value), 0);
	CHECK_EQ(value, 7);
	CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(card, 2, &part), NVML_ERROR_NOT_FOUND);
	CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(card, 1, &part), 0);
	CHECK_EQ(nvmlDeviceIsMigDeviceHandle(part, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(nvmlDeviceGetDeviceHandleFromMigDeviceHandle(part, &again), 0);
	CHECK(again == card);
	CHECK_EQ(nvmlDeviceGetGpuInstanceId(part, &value), 0);
	CHECK_EQ(value, 2);
	CHECK_EQ(nvmlDeviceGetGpuInstanceId(card, &value), NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQ(nvmlDeviceGetAttributes_v2(part, &attributes), 0);
	CHECK_EQ(attributes.gpuInstanceSliceCount, 3);
	CHECK_EQ(attributes.memorySizeMB, 71 * 1024);
	CHECK_EQ(nvmlDeviceGetUtilizationRates(card, &busy), NVML_ERROR_NOT_SUPPORTED);
	/* CUDA runs in the first instance; NVML finds the memory and the process in both places. */
	CHECK_EQ(cuInit(0), 0);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQ(cuCtxSetCurrent(context), 0);
	CHECK_EQ(cuMemAlloc_v2(&pointer, 100 * MIB), 0);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(part, &memory), 0);
	CHECK_EQ(memory.used, 0);
	CHECK_EQ(nvmlDeviceGetMigDeviceHandleByIndex(card, 0, &part), 0);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(part, &memory), 0);
	CHECK_EQ(memory.used, 618 * MIB);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(card, &memory), 0);
	CHECK_EQ(memory.used - 644939776, 618 * MIB);
	value = 4;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(card, &value, list), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(list[0].gpuInstanceId, 1);
}

static void test_mig(void **state)
{
	(void)state;
	run_on("mig=1g.18gb,3g.71gb", mig_body);
}

/* ---- processes ---- */

static struct {
	_Atomic int ready;
	_Atomic int stop;
} * board;

static void worker_body(void)
{
	CUcontext context;
	CUdeviceptr pointer;
	CUmodule module;
	CUfunction function;
	unsigned long long ns = 5000000;
	void *params[] = { &ns };

	CHECK_EQ(cuInit(0), 0);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQ(cuCtxSetCurrent(context), 0);
	CHECK_EQ(cuMemAlloc_v2(&pointer, 100 * MIB), 0);
	CHECK_EQ(cuModuleLoadData(&module, ".version 6.0\n.entry vgpu_busy(.param .u64 a)\n"), 0);
	CHECK_EQ(cuModuleGetFunction(&function, module, "vgpu_busy"), 0);
	board->ready++;
	while (!board->stop) {
		CHECK_EQ(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, NULL, params, NULL), 0);
		CHECK_EQ(cuCtxSynchronize(), 0);
		sleep_ms(5);
	}
}

static nvmlDevice_t watched;
static const char *watch_devices;

/* Runs in the test's own process: NVML reads its settings at its first init. */
static void watch(const char *devices, void (*look)(pid_t first, pid_t second))
{
	char path[64];
	pid_t watcher, first, second;

	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(board != MAP_FAILED);
	state_path(path, sizeof(path));
	first = child_start(devices, path, worker_body);
	second = child_start(devices, path, worker_body);
	while (board->ready < 2)
		sleep_ms(1);
	fflush(NULL);
	watcher = fork();
	if (watcher == 0) {
		setenv("VGPU_FAKE_STATE", path, 1);
		setenv("VGPU_FAKE_DEVICES", devices, 1);
		CHECK_EQ(nvmlInit_v2(), 0);
		watched = device_at(0);
		watch_devices = devices;
		look(first, second);
		_exit(0);
	}
	assert_int_equal(child_end(watcher), 0);
	board->stop = 1;
	child_end(first);
	child_end(second);
	state_remove(path);
	munmap(board, 4096);
}

static void look_at_processes(pid_t first, pid_t second)
{
	nvmlProcessInfo_t list[4];
	nvmlProcessInfo_v1_t old[4];
	nvmlProcessDetail_v1_t details[4];
	nvmlProcessDetailList_v1_t detail = { NVML_PROCESS_DETAIL_LIST_V1, 0, 4, details };
	nvmlProcessUtilizationSample_t samples[128];
	nvmlUtilization_t busy;
	nvmlMemory_t memory;
	unsigned int count = 0;

	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(watched, &count, NULL),
		 NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQ(count, 2);
	count = 1;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v2(watched, &count, list),
		 NVML_ERROR_INSUFFICIENT_SIZE);
	count = 4;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(watched, &count, list), 0);
	CHECK_EQ(count, 2);
	CHECK((list[0].pid == (unsigned int)first && list[1].pid == (unsigned int)second) ||
	      (list[1].pid == (unsigned int)first && list[0].pid == (unsigned int)second));
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(list[i].usedGpuMemory, 618 * MIB);
		CHECK_EQ(list[i].gpuInstanceId, 0xffffffff);
	}
	count = 4;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses(watched, &count, old), 0);
	CHECK_EQ(old[1].usedGpuMemory, 618 * MIB); /* entries of 16 bytes */
	count = 4;
	CHECK_EQ(nvmlDeviceGetGraphicsRunningProcesses_v3(watched, &count, list), 0);
	CHECK_EQ(count, 0);
	CHECK_EQ(nvmlDeviceGetRunningProcessDetailList(watched, &detail), 0);
	CHECK_EQ(detail.numProcArrayEntries, 2);
	CHECK_EQ(details[0].usedGpuMemory, 618 * MIB);
	detail.version = 1;
	CHECK_EQ(nvmlDeviceGetRunningProcessDetailList(watched, &detail),
		 NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(watched, &memory), 0);
	CHECK_EQ(memory.used - 644939776, 2 * 618 * MIB);
	/* Each works at most half of the time, together they are one card's whole at most. */
	sleep_ms(1400);
	count = 10;
	CHECK_EQ(nvmlDeviceGetProcessUtilization(watched, samples, &count, 0),
		 NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQ(count, 72);
	count = 128;
	CHECK_EQ(nvmlDeviceGetProcessUtilization(watched, samples, &count, 0), 0);
	CHECK_EQ(count, 2);
	CHECK(samples[0].smUtil >= 10 && samples[0].smUtil <= 60);
	CHECK(samples[0].smUtil + samples[1].smUtil <= 101);
	CHECK(samples[0].timeStamp / 1000000 > 1600000000); /* the wall clock */
	CHECK_EQ(nvmlDeviceGetUtilizationRates(watched, &busy), 0);
	CHECK(busy.gpu >= 20 && busy.gpu <= 100);
	/* Nothing newer than the newest. */
	count = 128;
	CHECK_EQ(nvmlDeviceGetProcessUtilization(watched, samples, &count, samples[0].timeStamp),
		 NVML_ERROR_NOT_FOUND);
	kill(first, SIGKILL);
	while (kill(first, 0) == 0 && nvmlDeviceGetMemoryInfo(watched, &memory) == 0 &&
	       memory.used - 644939776 != 618 * MIB)
		sleep_ms(1);
	count = 4;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(watched, &count, list), 0);
	CHECK_EQ(count, 1);
	CHECK_EQ(list[0].pid, second);
}

static void test_processes(void **state)
{
	(void)state;
	watch("model=h200", look_at_processes);
}

/* What containers see: other numbers, or none; and cards that do not say who works. */
static void look_offset(pid_t first, pid_t second)
{
	nvmlProcessInfo_t list[4];
	nvmlProcessUtilizationSample_t samples[128];
	unsigned int count = 4;

	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(watched, &count, list), 0);
	CHECK_EQ(count, 2);
	CHECK_EQ(list[0].pid + list[1].pid, first + second + 2 * 1000000);
	count = 128;
	CHECK_EQ(nvmlDeviceGetProcessUtilization(watched, samples, &count, 0),
		 NVML_ERROR_NOT_SUPPORTED);
}

static void look_none(pid_t first, pid_t second)
{
	nvmlProcessInfo_t list[4];
	unsigned int count = 4;

	(void)first;
	(void)second;
	CHECK_EQ(nvmlDeviceGetComputeRunningProcesses_v3(watched, &count, list), 0);
	CHECK_EQ(count, 0);
}

static void test_containers(void **state)
{
	(void)state;
	watch("host pids=offset:1000000; gpu process_samples=off", look_offset);
	watch("host pids=none; gpu", look_none);
}

/* ---- what changes while programs run ---- */

static void write_file(const char *path, const char *text)
{
	char other[128];
	FILE *file;

	snprintf(other, sizeof(other), "%s.new", path);
	file = fopen(other, "w");
	CHECK(file != NULL);
	fputs(text, file);
	fclose(file);
	CHECK_EQ(rename(other, path), 0);
}

static void events_body(void)
{
	char path[] = "/tmp/vgpu-fake-devices-XXXXXX";
	int fd = mkstemp(path);
	nvmlEventSet_t set;
	nvmlEventData_t data;
	nvmlDevice_t first, second;
	nvmlMemory_t memory;
	unsigned int value;
	uint64_t begun;
	pid_t pid;
	int status;

	CHECK(fd >= 0);
	write_file(path, "gpu xid=31\ngpu\n");
	setenv("VGPU_FAKE_DEVICES", path, 1);
	CHECK_EQ(nvmlInit_v2(), 0);
	first = device_at(0);
	second = device_at(1);
	CHECK_EQ(nvmlEventSetCreate(&set), 0);
	CHECK_EQ(nvmlDeviceRegisterEvents(first, 8 | 4096 | 1 << 20, set),
		 NVML_ERROR_NOT_SUPPORTED);
	CHECK_EQ(nvmlDeviceRegisterEvents(first, 8, set), 0);
	CHECK_EQ(nvmlDeviceRegisterEvents(second, 8, set), 0);
	begun = clock_ns();
	CHECK_EQ(nvmlEventSetWait_v2(set, &data, 60), NVML_ERROR_TIMEOUT);
	CHECK(clock_ns() - begun >= 60000000);
	pid = fork();
	if (pid == 0) {
		sleep_ms(50);
		write_file(path, "gpu xid=31\ngpu xid=79,13 temperature_c=90 power_mw=5\n");
		_exit(0);
	}
	CHECK_EQ(nvmlEventSetWait_v2(set, &data, 10000), 0);
	CHECK(data.device == second);
	CHECK_EQ(data.eventType, 8);
	CHECK_EQ(data.eventData, 79);
	CHECK_EQ(nvmlEventSetWait_v2(set, &data, 0), 0);
	CHECK_EQ(data.eventData, 13);
	CHECK_EQ(nvmlEventSetWait_v2(set, &data, 0), NVML_ERROR_TIMEOUT);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(nvmlDeviceGetTemperature(second, 0, &value), 0);
	CHECK_EQ(value, 90);
	CHECK_EQ(nvmlDeviceGetPowerUsage(second, &value), 0);
	CHECK_EQ(value, 5);
	CHECK_EQ(nvmlEventSetFree(set), 0);
	CHECK_EQ(nvmlEventSetFree(set), NVML_ERROR_INVALID_ARGUMENT);
	/* A card that falls off the bus, and one whose memory NVML does not know. */
	write_file(path, "gpu lost=on\ngpu memory_info=off\n");
	CHECK_EQ(nvmlDeviceGetMemoryInfo(first, &memory), NVML_ERROR_GPU_IS_LOST);
	CHECK_EQ(nvmlDeviceGetMemoryInfo(second, &memory), NVML_ERROR_NOT_SUPPORTED);
	/* A broken file changes nothing. */
	write_file(path, "gpu lost=on\ngpu memory_info=of\n");
	CHECK_EQ(nvmlDeviceGetMemoryInfo(second, &memory), NVML_ERROR_NOT_SUPPORTED);
	unlink(path);
	close(fd);
}

static void test_events(void **state)
{
	(void)state;
	run_on(NULL, events_body);
}

static void no_driver_body(void)
{
	CHECK_EQ(nvmlInit_v2(), NVML_ERROR_DRIVER_NOT_LOADED);
	CHECK_EQ(cuInit(0), CUDA_ERROR_NO_DEVICE);
}

static void test_no_driver(void **state)
{
	(void)state;
	run_on("host driver=none", no_driver_body);
}

/* Whatever libvgpu knows is there. */
static void test_list(void **state)
{
	static const char *const known[] = {
#define VG_NVML(symbol, class, params) #symbol,
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML
	};
	void *library = dlopen(FAKE_DIR "/libnvidia-ml.so.1", RTLD_NOW);

	(void)state;
	assert_non_null(library);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (!dlsym(library, known[i]))
			fail_msg("the fake lacks %s", known[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recorded),   cmocka_unit_test(test_topology),
		cmocka_unit_test(test_mig),        cmocka_unit_test(test_processes),
		cmocka_unit_test(test_containers), cmocka_unit_test(test_events),
		cmocka_unit_test(test_no_driver),  cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
