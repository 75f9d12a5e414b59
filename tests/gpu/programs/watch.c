/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch [times=1] [every_ms=1000] [cuda=0]
 *
 * What NVML says of the first card, as a monitoring program reads it; with cuda=1 beside what CUDA says:
 *
 *	memory total N used N free N MiB
 *	memory v2 total N reserved N used N free N MiB
 *	processes N
 *	process PID N MiB
 *	busy PID N percent
 *	cuda total N free N MiB
 */
#include "program.h"

#define MIB (1ull << 20)

static void look(unsigned long long *last_us)
{
	nvmlMemory_t memory;
	nvmlMemory_v2_t second = { .version = NVML_MEMORY_V2_VERSION };
	nvmlProcessInfo_t list[256];
	nvmlProcessUtilizationSample_t samples[256];
	unsigned int count = 256;
	nvmlReturn_t rc;

	rc = nv.nvmlDeviceGetMemoryInfo(nv_device, &memory);
	if (rc == NVML_SUCCESS)
		printf("memory total %llu used %llu free %llu MiB\n", memory.total / MIB,
		       memory.used / MIB, memory.free / MIB);
	else
		printf("memory error %d\n", rc);
	rc = nv.nvmlDeviceGetMemoryInfo_v2(nv_device, &second);
	if (rc == NVML_SUCCESS)
		printf("memory v2 total %llu reserved %llu used %llu free %llu MiB\n",
		       second.total / MIB, second.reserved / MIB, second.used / MIB,
		       second.free / MIB);
	else
		printf("memory v2 error %d\n", rc);
	rc = nv.nvmlDeviceGetComputeRunningProcesses_v3(nv_device, &count, list);
	if (rc == NVML_SUCCESS) {
		printf("processes %u\n", count);
		for (unsigned int i = 0; i < count; i++)
			printf("process %u %llu MiB\n", list[i].pid, list[i].usedGpuMemory / MIB);
	} else {
		printf("processes error %d\n", rc);
	}
	count = 256;
	rc = nv.nvmlDeviceGetProcessUtilization(nv_device, samples, &count, *last_us);
	for (unsigned int i = 0; rc == NVML_SUCCESS && i < count; i++) {
		/* The real call gives places of its ring that are empty, too. */
		if (!samples[i].timeStamp)
			continue;
		printf("busy %u %u percent\n", samples[i].pid, samples[i].smUtil);
		if (samples[i].timeStamp > *last_us)
			*last_us = samples[i].timeStamp;
	}
	if (rc != NVML_SUCCESS)
		printf("busy error %d\n", rc);
}

int main(int argc, char **argv)
{
	unsigned int times = (unsigned int)program_number(argv, "times", 1);
	unsigned int every_ms = (unsigned int)program_number(argv, "every_ms", 1000);
	bool cuda = program_number(argv, "cuda", 0) != 0;
	unsigned long long last_us = 0;
	size_t free_bytes, total;
	CUcontext context;

	(void)argc;
	if (!program_load_nvml()) {
		fprintf(stderr, "no NVML\n");
		return 77;
	}
	if (cuda) {
		program_load();
		MUST(cu.cuInit(0));
		MUST(cu.cuDevicePrimaryCtxRetain(&context, 0));
		MUST(cu.cuCtxSetCurrent(context));
	}
	for (unsigned int i = 0; i < times; i++) {
		if (i)
			program_sleep_ms(every_ms);
		look(&last_us);
		if (cuda) {
			MUST(cu.cuMemGetInfo_v2(&free_bytes, &total));
			printf("cuda total %llu free %llu MiB\n", (unsigned long long)total / MIB,
			       (unsigned long long)free_bytes / MIB);
		}
		fflush(stdout);
	}
	nv.nvmlShutdown();
	return 0;
}
