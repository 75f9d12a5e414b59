/* SPDX-License-Identifier: Apache-2.0 */
/*
 * busy [form=kernel] [us=100] [seconds=3] [nodes=20] [ahead=32] [blocks=64]
 *
 * Keeps the card as busy as it is allowed to be, with kernels of a fixed duration (vgpu_busy), and tells
 * each second what share of it the card worked for us:
 *
 *	second N launches N percent N
 *
 * form: kernel, ex (cuLaunchKernelEx), cooperative, thread (the calling thread's default stream), graph
 * (nodes= kernels, built by hand), capture (the same, captured). ahead= launches may be outstanding.
 */
#include "program.h"

#define AHEAD_MAX 256u

static CUfunction function;
static CUstream stream;
static CUgraphExec exec;
static unsigned long long ns;
static unsigned int blocks;

static void *params[] = { &ns };

static CUresult launch_kernel(void)
{
	return cu.cuLaunchKernel(function, blocks, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static CUresult launch_ex(void)
{
	CUlaunchConfig config = {
		.gridDimX = blocks,
		.gridDimY = 1,
		.gridDimZ = 1,
		.blockDimX = 32,
		.blockDimY = 1,
		.blockDimZ = 1,
		.hStream = stream,
	};

	return cu.cuLaunchKernelEx(&config, function, params, NULL);
}

static CUresult launch_cooperative(void)
{
	return cu.cuLaunchCooperativeKernel(function, blocks, 1, 1, 32, 1, 1, 0, stream, params);
}

static CUresult launch_thread(void)
{
	return cu.cuLaunchKernel_ptsz(function, blocks, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
}

static CUresult launch_graph(void)
{
	return cu.cuGraphLaunch(exec, stream);
}

static void build_graph(unsigned int nodes)
{
	CUDA_KERNEL_NODE_PARAMS_v1 kernel = { function, blocks, 1, 1, 32, 1, 1, 0, params, NULL };
	CUgraphNode node, last = NULL;
	CUgraph graph;

	MUST(cu.cuGraphCreate(&graph, 0));
	for (unsigned int i = 0; i < nodes; i++) {
		MUST(cu.cuGraphAddKernelNode(&node, graph, last ? &last : NULL, last != NULL,
					     &kernel));
		last = node;
	}
	MUST(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cu.cuGraphDestroy(graph));
}

static void capture_graph(unsigned int nodes)
{
	CUgraph graph;

	MUST(cu.cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_GLOBAL));
	for (unsigned int i = 0; i < nodes; i++)
		MUST(launch_kernel());
	MUST(cu.cuStreamEndCapture(stream, &graph));
	MUST(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	MUST(cu.cuGraphDestroy(graph));
}

int main(int argc, char **argv)
{
	const char *form = program_option(argv, "form", "kernel");
	unsigned int seconds = (unsigned int)program_number(argv, "seconds", 3);
	unsigned int nodes = (unsigned int)program_number(argv, "nodes", 20);
	unsigned int ahead = (unsigned int)program_number(argv, "ahead", 32);
	CUresult (*launch)(void) = launch_kernel;
	unsigned long long each_ns, launches = 0;
	unsigned int per_launch = 1;
	CUevent ring[AHEAD_MAX];
	uint64_t start;
	CUcontext context;
	CUmodule module;

	(void)argc;
	ns = program_number(argv, "us", 100) * 1000ull;
	blocks = (unsigned int)program_number(argv, "blocks", 64);
	if (!ahead || ahead > AHEAD_MAX || !nodes)
		return 2;
	program_load();
	MUST(cu.cuInit(0));
	MUST(cu.cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cu.cuCtxSetCurrent(context));
	MUST(cu.cuModuleLoadData(&module, program_ptx));
	MUST(cu.cuModuleGetFunction(&function, module, "vgpu_busy"));
	MUST(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	if (strcmp(form, "ex") == 0) {
		launch = launch_ex;
	} else if (strcmp(form, "cooperative") == 0) {
		launch = launch_cooperative;
	} else if (strcmp(form, "thread") == 0) {
		launch = launch_thread;
	} else if (strcmp(form, "graph") == 0 || strcmp(form, "capture") == 0) {
		if (*form == 'g')
			build_graph(nodes);
		else
			capture_graph(nodes);
		launch = launch_graph;
		per_launch = nodes;
	} else if (strcmp(form, "kernel") != 0) {
		fprintf(stderr, "no such form: %s\n", form);
		return 2;
	}
	each_ns = ns * per_launch;
	for (unsigned int i = 0; i < ahead; i++)
		MUST(cu.cuEventCreate(&ring[i], CU_EVENT_DISABLE_TIMING));
	/* The first launch loads the code. */
	MUST(launch());
	MUST(cu.cuCtxSynchronize());

	start = program_clock_ns();
	for (unsigned int second = 0; second < seconds; second++) {
		unsigned long long before = launches;
		uint64_t end = start + (second + 1) * 1000000000ull, now;

		/* What is counted is complete. */
		while ((now = program_clock_ns()) < end) {
			static unsigned long long submitted;
			CUevent event = ring[submitted % ahead];

			if (submitted >= ahead) {
				MUST(cu.cuEventSynchronize(event));
				launches++;
			}
			MUST(launch());
			MUST(launch == launch_thread ? cu.cuEventRecord(event, CU_STREAM_PER_THREAD)
						     : cu.cuEventRecord(event, stream));
			submitted++;
		}
		printf("second %u launches %llu percent %.1f\n", second, launches - before,
		       (double)((launches - before) * each_ns) / 1e7);
		fflush(stdout);
	}
	MUST(cu.cuCtxSynchronize());
	return 0;
}
