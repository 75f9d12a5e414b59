/* SPDX-License-Identifier: Apache-2.0 */
/*
 * paths PATH LIMIT_MIB: takes chunks of 64 MiB in one way until it is refused, and tells how much it
 * got. Compiled twice: with dlopen/dlsym, and with -DLINKED against the driver's symbols.
 */
#include "gpu.h"

enum { CHUNK_MIB = 64, CHUNKS = 512 };

static const size_t chunk = (size_t)CHUNK_MIB << 20;

static struct gpu_api cu;

#ifdef LINKED
#define VG_CUDA(symbol, base, version, flavour, class, params) extern CUresult symbol params;
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
extern CUresult cuGraphCreate(CUgraph *, unsigned int);
extern CUresult cuGraphAddMemAllocNode(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
				       CUDA_MEM_ALLOC_NODE_PARAMS *);
#else
static CUresult (*cuGraphCreate)(CUgraph *, unsigned int);
static CUresult (*cuGraphAddMemAllocNode)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
					  CUDA_MEM_ALLOC_NODE_PARAMS *);
#endif

static CUmemoryPool pool;

static CUresult take_alloc(void)
{
	CUdeviceptr p;

	return cu.cuMemAlloc_v2(&p, chunk);
}

static CUresult take_pitch(void)
{
	CUdeviceptr p;
	size_t pitch;

	return cu.cuMemAllocPitch_v2(&p, &pitch, 8192, chunk / 8192, 4);
}

static CUresult take_managed(void)
{
	CUdeviceptr p;

	return cu.cuMemAllocManaged(&p, chunk, CU_MEM_ATTACH_GLOBAL);
}

static CUresult take_async(void)
{
	CUdeviceptr p;

	return cu.cuMemAllocAsync(&p, chunk, NULL);
}

static CUresult take_async_thread(void)
{
	CUdeviceptr p;

	return cu.cuMemAllocAsync_ptsz(&p, chunk, NULL);
}

static CUresult take_pool(void)
{
	CUmemPoolProps props = { .allocType = 1, .location = { 1, 0 } };
	CUdeviceptr p;

	if (!pool)
		GPU_OK(cu.cuMemPoolCreate(&pool, &props));
	return cu.cuMemAllocFromPoolAsync(&p, chunk, pool, NULL);
}

static CUresult take_vmm(void)
{
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUmemGenericAllocationHandle handle;

	return cu.cuMemCreate(&handle, chunk, &prop, 0);
}

static CUresult take_array(void)
{
	CUDA_ARRAY_DESCRIPTOR shape = { 2048, 2048, 0x20, 4 };
	CUarray array;

	return cu.cuArrayCreate_v2(&array, &shape);
}

static CUresult take_array3d(void)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { 256, 256, 64, 0x20, 4, 0 };
	CUarray array;

	return cu.cuArray3DCreate_v2(&array, &shape);
}

static CUresult take_mipmap(void)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { 2048, 2048, 0, 0x20, 4, 0 };
	CUmipmappedArray array;

	return cu.cuMipmappedArrayCreate(&array, &shape, 1);
}

static CUresult take_graph(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = 1, .location = { 1, 0 } },
					      .bytesize = chunk };
	CUgraphExec exec;
	CUgraphNode node;
	CUgraph graph;
	CUresult rc;

	GPU_OK(cuGraphCreate(&graph, 0));
	GPU_OK(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
	rc = cu.cuGraphInstantiateWithFlags(&exec, graph, 0);
	if (rc == CUDA_SUCCESS)
		rc = cu.cuGraphLaunch(exec, NULL);
	if (rc == CUDA_SUCCESS)
		rc = cu.cuCtxSynchronize();
	return rc;
}

static CUresult take_heap(void)
{
	static size_t heap = 8u << 20;
	CUresult rc = cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, heap + chunk);

	if (rc == CUDA_SUCCESS)
		heap += chunk;
	return rc;
}

static const struct {
	const char *name;
	CUresult (*take)(void);
} paths[] = {
	{ "alloc", take_alloc },
	{ "pitch", take_pitch },
	{ "managed", take_managed },
	{ "async", take_async },
	{ "async_ptsz", take_async_thread },
	{ "pool", take_pool },
	{ "vmm", take_vmm },
	{ "array", take_array },
	{ "array3d", take_array3d },
	{ "mipmap", take_mipmap },
	{ "graph", take_graph },
	{ "heap", take_heap },
};

static double card_used_mib(void)
{
	struct gpu_nvml nv;
	nvmlProcessInfo_t list[64];
	unsigned int n = 64;
	nvmlDevice_t device;

	if (!gpu_load_nvml(&nv) || nv.nvmlDeviceGetHandleByIndex_v2(0, &device) ||
	    nv.nvmlDeviceGetComputeRunningProcesses_v3(device, &n, list))
		return -1;
	for (unsigned int i = 0; i < n; i++)
		if (list[i].pid == (unsigned int)getpid())
			return (double)list[i].usedGpuMemory / 1048576.0;
	return -1;
}

int main(int argc, char **argv)
{
	size_t free_bytes, total, got = 0;
	CUresult rc = CUDA_SUCCESS;
	CUcontext context;

	if (argc < 3)
		return 2;
#ifdef LINKED
#define VG_CUDA(symbol, base, version, flavour, class, params) cu.symbol = symbol;
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
#else
	gpu_load(&cu);
	cuGraphCreate = (CUresult(*)(CUgraph *, unsigned int))dlsym(
		dlopen("libcuda.so.1", RTLD_NOW), "cuGraphCreate");
	cuGraphAddMemAllocNode =
		(CUresult(*)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			     CUDA_MEM_ALLOC_NODE_PARAMS *))dlsym(dlopen("libcuda.so.1", RTLD_NOW),
								 "cuGraphAddMemAllocNode");
#endif
	GPU_OK(cu.cuInit(0));
	GPU_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
	GPU_OK(cu.cuCtxSetCurrent(context));
	GPU_OK(cu.cuMemGetInfo_v2(&free_bytes, &total));
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		size_t limit = (size_t)strtoul(argv[2], NULL, 10) << 20, before = free_bytes;
		bool ok;

		if (strcmp(argv[1], paths[i].name) != 0)
			continue;
		while (got < CHUNKS && (rc = paths[i].take()) == CUDA_SUCCESS)
			got++;
		GPU_OK(cu.cuMemGetInfo_v2(&free_bytes, &total));
		/* All that was free could be had, to the chunk, and not one chunk more. */
		ok = rc == CUDA_ERROR_OUT_OF_MEMORY && got * chunk <= before &&
		     (got + 1) * chunk > before - (strcmp(argv[1], "async") ? 0 : 0) &&
		     total == limit;
		printf("%-10s got %5zu MiB of %5zu free, then %d; now free %zu MiB, NVML %.0f MiB: %s\n",
		       paths[i].name, got * CHUNK_MIB, before >> 20, rc, free_bytes >> 20,
		       card_used_mib(), ok ? "ok" : "FAILED");
		return !ok;
	}
	return 2;
}
