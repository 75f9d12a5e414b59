/* SPDX-License-Identifier: Apache-2.0 */
/*
 * share WORKLOAD SECONDS [UNITS]: keeps the device as busy as it is allowed to and prints how much work
 * was completed in every second.
 *
 *	short  kernels of about 0.09 ms	   long  kernels of about 25 ms
 *	graph  a graph of 20 short kernels  small 64 blocks of about 0.34 ms
 *
 * UNITS is the size of the kernel in rounds; without it, it is calibrated and printed, which must be
 * done without a limit. Output: "units N", then "rate R1 R2 ..." in kernels per second, then "mean M".
 */
#include <math.h>

#include "gpu.h"

enum { RING = 4, SECONDS_MOST = 120 };

struct workload {
	const char *name;
	double kernel_ms;
	unsigned int blocks;
	unsigned int per_step;  /* kernels between two completion events */
	unsigned int per_graph; /* 0: no graph */
};

static const struct workload workloads[] = {
	{ "short", 0.09, 1056, 40, 0 },
	{ "long", 25.0, 1056, 1, 0 },
	{ "graph", 0.09, 1056, 40, 20 },
	{ "small", 0.34, 64, 10, 0 },
};

static struct gpu_api cu;
static CUfunction function;
static CUdeviceptr out;
static CUstream stream;

static void launch(const struct workload *w, unsigned int units)
{
	void *args[] = { &units, &out };

	GPU_OK(cu.cuLaunchKernel(function, w->blocks, 1, 1, 128, 1, 1, 0, stream, args, NULL));
}

static unsigned int calibrate(const struct workload *w)
{
	unsigned int units = 100;
	CUevent a, b;
	float ms = 0;

	GPU_OK(cu.cuEventCreate(&a, 0));
	GPU_OK(cu.cuEventCreate(&b, 0));
	/* Clocks come up first. */
	for (uint64_t end = gpu_now_ns() + 300000000u; gpu_now_ns() < end;) {
		launch(w, 2000);
		GPU_OK(cu.cuStreamSynchronize(stream));
	}
	for (int round = 0; round < 10; round++) {
		int n = w->kernel_ms > 5 ? 4 : 50;

		GPU_OK(cu.cuEventRecord(a, stream));
		for (int i = 0; i < n; i++)
			launch(w, units);
		GPU_OK(cu.cuEventRecord(b, stream));
		GPU_OK(cu.cuEventSynchronize(b));
		GPU_OK(cu.cuEventElapsedTime(&ms, a, b));
		ms /= (float)n;
		units = (unsigned int)((double)units * w->kernel_ms / (double)ms) + 1;
	}
	return units;
}

static CUgraphExec capture(const struct workload *w, unsigned int units)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*begin)(CUstream, int) =
		(CUresult(*)(CUstream, int))dlsym(library, "cuStreamBeginCapture_v2");
	CUresult (*end)(CUstream, CUgraph *) =
		(CUresult(*)(CUstream, CUgraph *))dlsym(library, "cuStreamEndCapture");
	CUgraphExec exec;
	CUgraph graph;

	GPU_OK(begin(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (unsigned int i = 0; i < w->per_graph; i++)
		launch(w, units);
	GPU_OK(end(stream, &graph));
	GPU_OK(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	return exec;
}

int main(int argc, char **argv)
{
	const struct workload *w = NULL;
	double rate[SECONDS_MOST + 2] = { 0 }, sum = 0, squares = 0;
	unsigned int units, seconds, step = 0, counted = 0;
	CUgraphExec exec = NULL;
	CUevent ring[RING];
	CUcontext context;
	CUmodule module;
	uint64_t start;

	for (size_t i = 0; argc > 2 && i < sizeof(workloads) / sizeof(workloads[0]); i++)
		if (strcmp(argv[1], workloads[i].name) == 0)
			w = &workloads[i];
	if (!w) {
		fprintf(stderr, "usage: share short|long|graph|small SECONDS [UNITS]\n");
		return 2;
	}
	seconds = (unsigned int)strtoul(argv[2], NULL, 10);
	if (seconds < 2 || seconds > SECONDS_MOST)
		seconds = 10;
	gpu_load(&cu);
	GPU_OK(cu.cuInit(0));
	GPU_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
	GPU_OK(cu.cuCtxSetCurrent(context));
	GPU_OK(cu.cuModuleLoadData(&module, GPU_PTX));
	GPU_OK(cu.cuModuleGetFunction(&function, module, "work"));
	GPU_OK(cu.cuMemAlloc_v2(&out, 4));
	GPU_OK(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	for (int i = 0; i < RING; i++)
		GPU_OK(cu.cuEventCreate(&ring[i], CU_EVENT_DISABLE_TIMING));
	units = argc > 3 ? (unsigned int)strtoul(argv[3], NULL, 10) : calibrate(w);
	printf("units %u\n", units);
	if (w->per_graph)
		exec = capture(w, units);

	start = gpu_now_ns();
	for (;; step++) {
		uint64_t second;

		if (exec)
			for (unsigned int i = 0; i < w->per_step; i += w->per_graph)
				GPU_OK(cu.cuGraphLaunch(exec, stream));
		else
			for (unsigned int i = 0; i < w->per_step; i++)
				launch(w, units);
		GPU_OK(cu.cuEventRecord(ring[step % RING], stream));
		/* The device always has something to do, and completion is seen as it happens. */
		if (step >= RING / 2)
			GPU_OK(cu.cuEventSynchronize(ring[(step - RING / 2) % RING]));
		else
			continue;
		second = (gpu_now_ns() - start) / 1000000000u;
		if (second >= seconds)
			break;
		rate[second] += w->per_step;
	}
	printf("rate");
	/* The first second holds the start: it is shown, not counted. */
	for (unsigned int i = 0; i < seconds; i++) {
		printf(" %.0f", rate[i]);
		if (i == 0)
			continue;
		sum += rate[i];
		squares += rate[i] * rate[i];
		counted++;
	}
	printf("\nmean %.3f deviation %.3f\n", sum / counted,
	       sqrt(fmax(0, squares / counted - (sum / counted) * (sum / counted))));
	fflush(stdout);
	cu.cuCtxSynchronize();
	return 0;
}
