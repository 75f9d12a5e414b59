/* SPDX-License-Identifier: Apache-2.0 */
/*
 * take PATH [chunk_mib=64] [max_mib=4096] [seconds=0]
 *
 * Takes device memory in one way, chunk by chunk, until it is refused or has max_mib; then frees all and
 * takes as much again, as a framework does that empties its cache after an error. Prints
 *
 *	PATH took N MiB, then CODE; again N MiB; left N MiB
 *
 * where the last figure is what is missing from the free memory after everything was freed. With
 * seconds= it holds what it took for so long. Exit status 1 if the second round got less than the first.
 */
#include "program.h"

#define MIB        (1ull << 20)
#define CHUNKS_MAX 4096

static size_t chunk;
static CUmemoryPool pool;

struct piece {
	CUdeviceptr pointer;
	CUmemGenericAllocationHandle handle;
	CUarray array;
	CUmipmappedArray mipmap;
	CUgraph graph;
	CUgraphExec exec;
};

static struct piece pieces[CHUNKS_MAX];

static CUresult take_alloc(struct piece *piece)
{
	return cu.cuMemAlloc_v2(&piece->pointer, chunk);
}

static CUresult take_pitch(struct piece *piece)
{
	size_t pitch;

	return cu.cuMemAllocPitch_v2(&piece->pointer, &pitch, 8192, chunk / 8192, 4);
}

static CUresult take_managed(struct piece *piece)
{
	return cu.cuMemAllocManaged(&piece->pointer, chunk, CU_MEM_ATTACH_GLOBAL);
}

static CUresult free_pointer(struct piece *piece)
{
	return cu.cuMemFree_v2(piece->pointer);
}

static CUresult take_async(struct piece *piece)
{
	return cu.cuMemAllocAsync(&piece->pointer, chunk, NULL);
}

static CUresult take_thread(struct piece *piece)
{
	return cu.cuMemAllocAsync_ptsz(&piece->pointer, chunk, NULL);
}

static CUresult take_pool(struct piece *piece)
{
	CUmemPoolProps props = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
				 .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };

	if (!pool)
		MUST(cu.cuMemPoolCreate(&pool, &props));
	return cu.cuMemAllocFromPoolAsync(&piece->pointer, chunk, pool, NULL);
}

static CUresult free_async(struct piece *piece)
{
	return cu.cuMemFreeAsync(piece->pointer, NULL);
}

static CUresult take_vmm(struct piece *piece)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED,
				     .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } };
	CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	CUresult rc = cu.cuMemCreate(&piece->handle, chunk, &prop, 0);

	if (rc != CUDA_SUCCESS)
		return rc;
	MUST(cu.cuMemAddressReserve(&piece->pointer, chunk, 0, 0, 0));
	MUST(cu.cuMemMap(piece->pointer, chunk, 0, piece->handle, 0));
	MUST(cu.cuMemSetAccess(piece->pointer, chunk, &access, 1));
	return CUDA_SUCCESS;
}

/* The handle goes first: memory lives as long as its last mapping. */
static CUresult free_vmm(struct piece *piece)
{
	MUST(cu.cuMemRelease(piece->handle));
	MUST(cu.cuMemUnmap(piece->pointer, chunk));
	return cu.cuMemAddressFree(piece->pointer, chunk);
}

static CUresult take_array(struct piece *piece)
{
	CUDA_ARRAY_DESCRIPTOR shape = { 2048, chunk / (2048 * 16), 0x20, 4 };

	return cu.cuArrayCreate_v2(&piece->array, &shape);
}

static CUresult take_array3d(struct piece *piece)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { 256, 256, chunk / (256 * 256 * 16), 0x20, 4, 0 };

	return cu.cuArray3DCreate_v2(&piece->array, &shape);
}

static CUresult free_array(struct piece *piece)
{
	return cu.cuArrayDestroy(piece->array);
}

/* The levels below the first add a third. */
static CUresult take_mipmap(struct piece *piece)
{
	CUDA_ARRAY3D_DESCRIPTOR shape = { 2048, chunk / 4 * 3 / (2048 * 16), 0, 0x20, 4, 0 };

	return cu.cuMipmappedArrayCreate(&piece->mipmap, &shape, 10);
}

static CUresult free_mipmap(struct piece *piece)
{
	return cu.cuMipmappedArrayDestroy(piece->mipmap);
}

/* An allocation node whose memory the graph leaves behind. */
static CUresult take_graph(struct piece *piece)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = {
		.poolProps = { .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
			       .location = { CU_MEM_LOCATION_TYPE_DEVICE, 0 } },
		.bytesize = chunk,
	};
	CUgraphNode node;
	CUresult rc;

	MUST(cu.cuGraphCreate(&piece->graph, 0));
	rc = cu.cuGraphAddMemAllocNode(&node, piece->graph, NULL, 0, &params);
	piece->pointer = params.dptr;
	if (rc == CUDA_SUCCESS)
		rc = cu.cuGraphInstantiateWithFlags(&piece->exec, piece->graph, 0);
	if (rc == CUDA_SUCCESS) {
		rc = cu.cuGraphLaunch(piece->exec, NULL);
		if (rc != CUDA_SUCCESS)
			cu.cuGraphExecDestroy(piece->exec);
	}
	if (rc != CUDA_SUCCESS)
		cu.cuGraphDestroy(piece->graph);
	return rc;
}

static CUresult free_graph(struct piece *piece)
{
	MUST(cu.cuMemFree_v2(piece->pointer));
	MUST(cu.cuGraphExecDestroy(piece->exec));
	return cu.cuGraphDestroy(piece->graph);
}

static const struct path {
	const char *name;
	CUresult (*take)(struct piece *);
	CUresult (*give)(struct piece *);
} paths[] = {
	{ "alloc", take_alloc, free_pointer },
	{ "pitch", take_pitch, free_pointer },
	{ "managed", take_managed, free_pointer },
	{ "async", take_async, free_async },
	{ "thread", take_thread, free_async },
	{ "pool", take_pool, free_async },
	{ "vmm", take_vmm, free_vmm },
	{ "array", take_array, free_array },
	{ "array3d", take_array3d, free_array },
	{ "mipmap", take_mipmap, free_mipmap },
	{ "graph", take_graph, free_graph },
};

static size_t take_all(const struct path *path, size_t most, CUresult *ret_rc)
{
	size_t count = 0;

	*ret_rc = CUDA_SUCCESS;
	while (count < most && *ret_rc == CUDA_SUCCESS) {
		*ret_rc = path->take(&pieces[count]);
		if (*ret_rc == CUDA_SUCCESS)
			count++;
	}
	return count;
}

static void give_all(const struct path *path, size_t count)
{
	for (size_t i = 0; i < count; i++)
		MUST(path->give(&pieces[i]));
	MUST(cu.cuCtxSynchronize());
	if (pool)
		MUST(cu.cuMemPoolTrimTo(pool, 0));
	MUST(cu.cuDeviceGraphMemTrim(0));
}

int main(int argc, char **argv)
{
	const struct path *path = NULL;
	size_t before, after, total, first, second, most;
	CUresult rc, again;
	CUcontext context;

	for (size_t i = 0; argc > 1 && i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (strcmp(argv[1], paths[i].name) == 0)
			path = &paths[i];
	}
	if (!path) {
		fprintf(stderr, "usage: take PATH [chunk_mib=N] [max_mib=N] [seconds=N]\nPATH:");
		for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
			fprintf(stderr, " %s", paths[i].name);
		fprintf(stderr, "\n");
		return 2;
	}
	chunk = program_number(argv, "chunk_mib", 64) * MIB;
	most = program_number(argv, "max_mib", 4096) * MIB / chunk;
	if (most > CHUNKS_MAX)
		most = CHUNKS_MAX;
	program_load();
	MUST(cu.cuInit(0));
	MUST(cu.cuDevicePrimaryCtxRetain(&context, 0));
	MUST(cu.cuCtxSetCurrent(context));
	MUST(cu.cuMemGetInfo_v2(&before, &total));
	first = take_all(path, most, &rc);
	printf("%s took %zu MiB, then %d", path->name, (size_t)(first * chunk / MIB), rc);
	fflush(stdout);
	program_sleep_ms((unsigned int)program_number(argv, "seconds", 0) * 1000);
	give_all(path, first);
	second = take_all(path, most, &again);
	give_all(path, second);
	MUST(cu.cuMemGetInfo_v2(&after, &total));
	printf("; again %zu MiB; left %lld MiB\n", (size_t)(second * chunk / MIB),
	       ((long long)before - (long long)after) / (long long)MIB);
	MUST(cu.cuDevicePrimaryCtxRelease_v2(0));
	return second < first;
}
