/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library preloaded into this program, over the fake driver: one H200, limit 2000 MiB. Accounts are
 * read from the region itself.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "gpu/gpu.h"
#include "vgpu/region.h"

static struct gpu_api cu;
static struct gpu_nvml nv;
static CUcontext context;
static struct vgpu_region *base;
static struct vgpu_region_ext *ext;
static CUresult (*begin_capture)(CUstream, int);
static CUresult (*end_capture)(CUstream, CUgraph *);

static const uint64_t MIB = 1u << 20;

static uint64_t used(void)
{
	return __atomic_load_n(&ext->device[0].used, __ATOMIC_SEQ_CST);
}

static int setup(void **state)
{
	char *memory;
	void *driver;
	int fd;

	(void)state;
	gpu_load(&cu);
	assert_true(gpu_load_nvml(&nv));
	assert_int_equal(cu.cuInit(0), 0);
	assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
	assert_int_equal(cu.cuCtxSetCurrent(context), 0);
	driver = dlopen("libcuda.so.1", RTLD_NOW);
	begin_capture = (CUresult(*)(CUstream, int))dlsym(driver, "cuStreamBeginCapture_v2");
	end_capture = (CUresult(*)(CUstream, CUgraph *))dlsym(driver, "cuStreamEndCapture");
	fd = open(getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE"), O_RDWR);
	assert_true(fd >= 0);
	memory = mmap(NULL, VGPU_REGION_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(memory != MAP_FAILED);
	close(fd);
	base = (struct vgpu_region *)(void *)memory;
	ext = (struct vgpu_region_ext *)(void *)(memory + VGPU_REGION_EXT_OFFSET);
	return 0;
}

static void test_start(void **state)
{
	(void)state;
	assert_int_equal(base->magic, VGPU_REGION_MAGIC);
	assert_int_equal(base->device_count, 1);
	assert_memory_equal(base->uuid[0], "GPU-", 4);
	assert_int_equal(base->limit[0], 2000 * MIB);
	assert_int_equal(base->slot[0].pid, getpid());
	assert_int_equal(base->slot[0].used[0].context, 518 * MIB);
	assert_int_equal(used(), 518 * MIB);
	assert_int_equal(ext->device[0].physical >> 30, 139);
}

/* All answers about memory agree, with the limit and with each other. */
static void test_one_view(void **state)
{
	nvmlMemory_v2_t second = { .version = NVML_MEMORY_V2_VERSION };
	size_t free_bytes, total, device;
	nvmlMemory_t first;
	nvmlDevice_t handle;
	CUdeviceptr p;

	(void)state;
	assert_int_equal(cu.cuMemAlloc_v2(&p, 100 * MIB), 0);
	assert_int_equal(cu.cuMemGetInfo_v2(&free_bytes, &total), 0);
	assert_int_equal(cu.cuDeviceTotalMem_v2(&device, 0), 0);
	assert_int_equal(nv.nvmlDeviceGetHandleByIndex_v2(0, &handle), 0);
	assert_int_equal(nv.nvmlDeviceGetMemoryInfo(handle, &first), 0);
	assert_int_equal(nv.nvmlDeviceGetMemoryInfo_v2(handle, &second), 0);
	assert_int_equal(total, 2000 * MIB);
	assert_int_equal(device, total);
	assert_int_equal(first.total, total);
	assert_int_equal(second.total, total);
	assert_int_equal(free_bytes, (2000 - 618) * MIB);
	assert_int_equal(first.free, free_bytes);
	assert_int_equal(first.used, 618 * MIB);
	assert_int_equal(second.free + second.used + second.reserved, total);
	/* Programs do call it so. */
	assert_int_equal(cu.cuMemGetInfo_v2(NULL, &total), cu.cuMemGetInfo_v2(NULL, &total));
	assert_int_equal(cu.cuMemFree_v2(p), 0);
	assert_int_equal(used(), 518 * MIB);
}

static void test_process_lists(void **state)
{
	nvmlProcessInfo_t list[8];
	nvmlProcessInfo_v1_t old[8];
	nvmlProcessDetail_v1_t detail[8];
	nvmlProcessDetailList_v1_t details = { .version = NVML_PROCESS_DETAIL_LIST_V1,
					       .numProcArrayEntries = 8,
					       .procArray = detail };
	nvmlDevice_t handle;
	unsigned int n = 0;

	(void)state;
	assert_int_equal(nv.nvmlDeviceGetHandleByIndex_v2(0, &handle), 0);
	assert_int_equal(nv.nvmlDeviceGetComputeRunningProcesses_v3(handle, &n, NULL),
			 NVML_ERROR_INSUFFICIENT_SIZE);
	assert_int_equal(n, 1);
	n = 8;
	assert_int_equal(nv.nvmlDeviceGetComputeRunningProcesses_v3(handle, &n, list), 0);
	assert_int_equal(n, 1);
	assert_int_equal(list[0].pid, getpid());
	assert_int_equal(list[0].usedGpuMemory, used());
	assert_int_equal(list[0].gpuInstanceId, UINT32_MAX);
	n = 8;
	assert_int_equal(nv.nvmlDeviceGetComputeRunningProcesses(handle, &n, old), 0);
	assert_int_equal(n, 1);
	assert_int_equal(old[0].usedGpuMemory, used());
	n = 8;
	assert_int_equal(nv.nvmlDeviceGetGraphicsRunningProcesses_v3(handle, &n, list), 0);
	assert_int_equal(n, 0);
	assert_int_equal(nv.nvmlDeviceGetRunningProcessDetailList(handle, &details), 0);
	assert_int_equal(details.numProcArrayEntries, 1);
	assert_int_equal(detail[0].usedGpuMemory, used());
}

/* What goes through every allocator comes back through its free, to the byte. */
static void test_everything_comes_back(void **state)
{
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUmemAllocationProp host = { .type = 1, .location = { CU_MEM_LOCATION_TYPE_HOST, 0 } };
	CUDA_ARRAY_DESCRIPTOR flat = { 1000, 1000, 0x20, 4 };
	CUDA_ARRAY3D_DESCRIPTOR deep = { 100, 100, 10, 0x20, 2, 0 };
	CUDA_ARRAY3D_DESCRIPTOR deferred = {
		4096, 4096, 0, 0x20, 4, CUDA_ARRAY3D_DEFERRED_MAPPING
	};
	uint64_t before = used();
	CUmemGenericAllocationHandle handle, again;
	CUmipmappedArray mipmap;
	CUmemoryPool pool;
	CUmemPoolProps props = { .allocType = 1, .location = { 1, 0 } };
	CUdeviceptr p, va;
	CUarray array;
	size_t pitch;
	void *pinned;

	(void)state;
#define TAKES(bytes) assert_int_equal(used() - before, (bytes))
	assert_int_equal(cu.cuMemAlloc_v2(&p, 3 * MIB + 1), 0);
	TAKES(4 * MIB);
	assert_int_equal(cu.cuMemFree_v2(p), 0);
	TAKES(0);
	assert_int_equal(cu.cuMemAlloc_v2(&p, 1000), 0);
	TAKES(1024);
	/* Drivers differ in whether this is allowed; the account follows the answer. */
	if (cu.cuMemFreeAsync(p, NULL) != 0) {
		TAKES(1024);
		assert_int_equal(cu.cuMemFree_v2(p), 0);
	}
	TAKES(0);
	assert_int_equal(cu.cuMemAllocPitch_v2(&p, &pitch, 1000, 10000, 4), 0);
	assert_true(used() - before >= pitch * 10000);
	assert_int_equal(cu.cuMemFree_v2(p), 0);
	TAKES(0);
	assert_int_equal(cu.cuMemAllocManaged(&p, 10 * MIB, CU_MEM_ATTACH_GLOBAL), 0);
	TAKES(10 * MIB);
	assert_int_equal(cu.cuMemFree_v2(p), 0);
	assert_int_equal(cu.cuMemHostAlloc(&pinned, 10 * MIB, 0), 0);
	TAKES(0); /* host memory is not the card's */
	assert_int_equal(cu.cuMemFreeHost(pinned), 0);

	assert_int_equal(cu.cuMemAllocAsync(&p, 5 * MIB, NULL), 0);
	TAKES(32 * MIB);
	assert_int_equal(cu.cuMemFreeAsync(p, NULL), 0);
	assert_int_equal(cu.cuStreamSynchronize(NULL), 0);
	assert_int_equal(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
	assert_int_equal(cu.cuMemPoolTrimTo(pool, 0), 0);
	TAKES(0);
	assert_int_equal(cu.cuMemPoolCreate(&pool, &props), 0);
	assert_int_equal(cu.cuMemAllocFromPoolAsync(&p, 40 * MIB, pool, NULL), 0);
	assert_true(used() - before >= 40 * MIB);
	assert_int_equal(cu.cuMemFreeAsync(p, NULL), 0);
	assert_int_equal(cu.cuStreamSynchronize(NULL), 0);
	assert_int_equal(cu.cuMemPoolDestroy(pool), 0);
	TAKES(0);

	assert_int_equal(cu.cuMemCreate(&handle, 64 * MIB, &prop, 0), 0);
	TAKES(64 * MIB);
	assert_int_equal(cu.cuMemAddressReserve(&va, 64 * MIB, 0, 0, 0), 0);
	assert_int_equal(cu.cuMemMap(va, 64 * MIB, 0, handle, 0), 0);
	assert_int_equal(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)va), 0);
	assert_int_equal(cu.cuMemRelease(handle), 0);
	TAKES(64 * MIB);
	assert_int_equal(cu.cuMemRelease(again), 0);
	TAKES(64 * MIB); /* still mapped */
	assert_int_equal(cu.cuMemUnmap(va, 64 * MIB), 0);
	TAKES(0);
	assert_int_equal(cu.cuMemAddressFree(va, 64 * MIB), 0);
	if (cu.cuMemCreate(&handle, 64 * MIB, &host, 0) == 0) {
		TAKES(0);
		assert_int_equal(cu.cuMemRelease(handle), 0);
	}

	assert_int_equal(cu.cuArrayCreate_v2(&array, &flat), 0);
	assert_true(used() - before >= 16000000);
	assert_int_equal(cu.cuArrayDestroy(array), 0);
	TAKES(0);
	assert_int_equal(cu.cuArray3DCreate_v2(&array, &deep), 0);
	assert_true(used() - before >= 800000);
	assert_int_equal(cu.cuArrayDestroy(array), 0);
	TAKES(0);
	if (cu.cuArray3DCreate_v2(&array, &deferred) == 0) {
		TAKES(0);
		assert_int_equal(cu.cuArrayDestroy(array), 0);
	}
	assert_int_equal(cu.cuMipmappedArrayCreate(
				 &mipmap, &(CUDA_ARRAY3D_DESCRIPTOR){ 512, 512, 0, 0x20, 4, 0 }, 5),
			 0);
	assert_true(used() - before >= 512 * 512 * 16);
	assert_int_equal(cu.cuMipmappedArrayDestroy(mipmap), 0);
	TAKES(0);
}

/* Refusals are one code, change nothing, and leave room for what fits. */
static void test_refusals(void **state)
{
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUDA_ARRAY3D_DESCRIPTOR huge = { SIZE_MAX / 4, SIZE_MAX / 4, SIZE_MAX / 4, 0x20, 4, 0 };
	CUmemGenericAllocationHandle handle;
	uint64_t before = used(), refused = ext->device[0].refused;
	CUdeviceptr p = 7;
	CUarray array;
	size_t pitch;

	(void)state;
	assert_int_equal(cu.cuMemAlloc_v2(&p, 1483 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuMemAlloc_v2(&p, SIZE_MAX), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuMemAllocAsync(&p, 1483 * MIB, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuMemAllocAsync(&p, SIZE_MAX, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuMemCreate(&handle, 1484 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuMemAllocPitch_v2(&p, &pitch, SIZE_MAX, SIZE_MAX, 4),
			 CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuArray3DCreate_v2(&array, &huge), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(used(), before);
	assert_true(ext->device[0].refused >= refused + 5);
	/* The driver's own complaints stay the driver's. */
	assert_int_equal(cu.cuMemAlloc_v2(NULL, 10), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cu.cuMemAlloc_v2(&p, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(cu.cuMemCreate(&handle, 64 * MIB, NULL, 0), CUDA_ERROR_INVALID_VALUE);
	assert_int_equal(used(), before);
	assert_int_equal(cu.cuMemAlloc_v2(&p, 1482 * MIB), 0);
	assert_int_equal(cu.cuMemFree_v2(p), 0);
}

static void test_unknown_pointers(void **state)
{
	uint64_t before = used();

	(void)state;
	assert_int_equal(cu.cuMemFree_v2(0), 0);
	assert_int_not_equal(cu.cuMemFree_v2(0x123456789000), 0);
	assert_int_not_equal(cu.cuMemRelease(0x1234), 0);
	assert_int_not_equal(cu.cuMemFreeAsync(0x123456789000, NULL), 0);
	assert_int_equal(used(), before);
	/* Memory of a pool through the plain free: the driver's business, and not lost. */
	{
		CUmemoryPool pool;
		CUdeviceptr p;

		assert_int_equal(cu.cuMemAllocAsync(&p, 64 * MIB, NULL), 0);
		assert_int_equal(cu.cuMemFree_v2(p), 0);
		assert_int_equal(cu.cuDeviceGetDefaultMemPool(&pool, 0), 0);
		assert_int_equal(cu.cuMemPoolTrimTo(pool, 0), 0);
		assert_int_equal(used(), before);
	}
}

static void test_context_takes_its_memory_along(void **state)
{
	uint64_t before = used();
	CUcontext own, popped;
	CUdeviceptr p;

	(void)state;
	assert_int_equal(cu.cuCtxCreate_v2(&own, 0, 0), 0);
	assert_int_equal(used(), before + 518 * MIB);
	assert_int_equal(cu.cuMemAlloc_v2(&p, 100 * MIB), 0);
	assert_int_equal(used(), before + 618 * MIB);
	assert_int_equal(cu.cuCtxPopCurrent_v2(&popped), 0);
	assert_int_equal(cu.cuCtxDestroy_v2(own), 0);
	assert_int_equal(used(), before);
	assert_int_equal(cu.cuCtxSetCurrent(context), 0);
}

/* References of the primary context: the last one counts. */
static void test_primary_references(void **state)
{
	uint64_t before = used();
	CUcontext same;

	(void)state;
	assert_int_equal(cu.cuDevicePrimaryCtxRetain(&same, 0), 0);
	assert_ptr_equal(same, context);
	assert_int_equal(used(), before);
	assert_int_equal(cu.cuDevicePrimaryCtxRelease_v2(0), 0);
	assert_int_equal(used(), before);
}

static void test_graph_memory(void **state)
{
	CUgraphNode node;
	CUgraphExec exec;
	CUgraph graph;
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = { .allocType = 1, .location = { 1, 0 } },
					      .bytesize = 256 * MIB };
	void *driver = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*create)(CUgraph *, unsigned int) =
		(CUresult(*)(CUgraph *, unsigned int))dlsym(driver, "cuGraphCreate");
	CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			CUDA_MEM_ALLOC_NODE_PARAMS *) =
		(CUresult(*)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			     CUDA_MEM_ALLOC_NODE_PARAMS *))dlsym(driver, "cuGraphAddMemAllocNode");
	uint64_t before = used();
	CUdeviceptr most;

	(void)state;
	assert_int_equal(create(&graph, 0), 0);
	assert_int_equal(add(&node, graph, NULL, 0, &params), 0);
	assert_int_equal(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	assert_int_equal(used(), before);
	/* No room left: the launch is refused, and can be repeated once there is. */
	assert_int_equal(cu.cuMemAlloc_v2(&most, 1300 * MIB), 0);
	assert_int_equal(cu.cuGraphLaunch(exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuGraphUpload(exec, NULL), CUDA_ERROR_OUT_OF_MEMORY);
	assert_int_equal(cu.cuMemFree_v2(most), 0);
	assert_int_equal(cu.cuGraphLaunch(exec, NULL), 0);
	assert_int_equal(cu.cuCtxSynchronize(), 0);
	assert_int_equal(used(), before + 256 * MIB);
	assert_int_equal(cu.cuMemFree_v2(params.dptr), 0);
	assert_int_equal(cu.cuGraphExecDestroy(exec), 0);
	assert_int_equal(cu.cuDeviceGraphMemTrim(0), 0);
	assert_int_equal(used(), before);
	/* More than the limit can never run. */
	params.bytesize = 3000 * MIB;
	assert_int_equal(create(&graph, 0), 0);
	assert_int_equal(add(&node, graph, NULL, 0, &params), 0);
	assert_int_equal(cu.cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_ERROR_OUT_OF_MEMORY);
}

/* Under capture nothing is taken, so nothing is charged, refused or waited for. */
static void test_capture(void **state)
{
	uint64_t before = used();
	CUstream stream;
	CUgraph graph;
	CUdeviceptr p;

	(void)state;
	assert_int_equal(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	assert_int_equal(begin_capture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	assert_int_equal(cu.cuMemAllocAsync(&p, 1900 * MIB, stream), 0);
	assert_int_equal(end_capture(stream, &graph), 0);
	assert_non_null(graph);
	assert_int_equal(used(), before);
	assert_int_equal(cu.cuStreamDestroy_v2(stream), 0);
}

static void *allocate_a_lot(void *argument)
{
	CUdeviceptr p[64];

	(void)argument;
	if (cu.cuCtxSetCurrent(context))
		return (void *)1;
	for (int round = 0; round < 50; round++) {
		for (int i = 0; i < 64; i++)
			if (cu.cuMemAlloc_v2(&p[i], 4096))
				return (void *)1;
		for (int i = 0; i < 64; i++)
			if (cu.cuMemFree_v2(p[i]))
				return (void *)1;
	}
	return NULL;
}

static void test_threads(void **state)
{
	uint64_t before = used();
	pthread_t threads[8];
	void *result;

	(void)state;
	for (int i = 0; i < 8; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, allocate_a_lot, NULL), 0);
	for (int i = 0; i < 8; i++) {
		pthread_join(threads[i], &result);
		assert_null(result);
	}
	assert_int_equal(used(), before);
}

/* A child of fork() without CUDA changes nothing; one that uses CUDA is a process of its own. */
static void test_fork(void **state)
{
	uint64_t before = used();
	CUdeviceptr p;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(cu.cuMemAlloc_v2(&p, 64 * MIB), 0);
	pid = fork();
	if (pid == 0) {
		(void)cu.cuMemFree_v2(p); /* the driver refuses: not initialised here */
		_exit(used() == before + 64 * MIB ? 0 : 1);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	assert_int_equal(used(), before + 64 * MIB);
	assert_int_equal(base->slot[0].pid, getpid());
	assert_int_equal(base->slot[0].used[0].total, before + 64 * MIB);
	assert_int_equal(cu.cuMemFree_v2(p), 0);
}

static void *suspended_allocation(void *result)
{
	CUdeviceptr p = 0;

	if (cu.cuCtxSetCurrent(context) == 0 && cu.cuMemAlloc_v2(&p, MIB) == 0)
		(void)cu.cuMemFree_v2(p);
	__atomic_store_n((int *)result, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void test_suspend(void **state)
{
	pthread_t thread;
	int done = 0;

	(void)state;
	__atomic_store_n(&ext->slot[0].suspend, 1, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, suspended_allocation, &done), 0);
	for (int i = 0; i < 200 && base->slot[0].status != VGPU_SLOT_SUSPENDED; i++)
		usleep(5000);
	assert_int_equal(base->slot[0].status, VGPU_SLOT_SUSPENDED);
	assert_int_equal(__atomic_load_n(&done, __ATOMIC_SEQ_CST), 0);
	__atomic_store_n(&ext->slot[0].suspend, 0, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	assert_int_equal(done, 1);
	assert_int_equal(base->slot[0].status, VGPU_SLOT_RUNNING);
}

static CUfunction kernel;

static void *blocked_launch(void *result)
{
	CUdeviceptr out = 0;
	unsigned int units = 1;
	void *args[] = { &units, &out };
	CUresult rc = cu.cuCtxSetCurrent(context);

	if (rc == 0)
		rc = cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, NULL, args, NULL);
	__atomic_store_n((int *)result, rc == 0 ? 1 : -1, __ATOMIC_SEQ_CST);
	return NULL;
}

/* The node's monitor blocks a container of low priority with -1, and counts its activity down. */
static void test_priority(void **state)
{
	pthread_t thread;
	CUmodule module;
	int done = 0;

	(void)state;
	assert_int_equal(cu.cuModuleLoadData(&module, GPU_PTX), 0);
	assert_int_equal(cu.cuModuleGetFunction(&kernel, module, "work"), 0);
	/* Activity is reported, whatever the monitor has counted down to. */
	for (int32_t count = 0; count <= 1; count++) {
		__atomic_store_n(&base->recent_kernel, count, __ATOMIC_SEQ_CST);
		__atomic_store_n(&base->last_kernel_time, 0, __ATOMIC_SEQ_CST);
		(void)blocked_launch(&done);
		assert_int_equal(done, 1);
		assert_int_equal(__atomic_load_n(&base->recent_kernel, __ATOMIC_SEQ_CST), 2);
		assert_true(base->last_kernel_time != 0);
	}
	done = 0;
	__atomic_store_n(&base->recent_kernel, -1, __ATOMIC_SEQ_CST);
	assert_int_equal(pthread_create(&thread, NULL, blocked_launch, &done), 0);
	usleep(200000);
	assert_int_equal(__atomic_load_n(&done, __ATOMIC_SEQ_CST), 0);
	assert_int_equal(__atomic_load_n(&base->recent_kernel, __ATOMIC_SEQ_CST), -1);
	/* Memory is no matter of priority. */
	(void)suspended_allocation(&done);
	assert_int_equal(done, 1);
	done = 0;
	__atomic_store_n(&base->recent_kernel, 0, __ATOMIC_SEQ_CST);
	pthread_join(thread, NULL);
	assert_int_equal(done, 1);
	assert_int_equal(cu.cuCtxSynchronize(), 0);
	assert_int_equal(cu.cuModuleUnload(module), 0);
}

/* A guest: no handlers, no umask. */
static void test_manners(void **state)
{
	struct sigaction action;
	mode_t mask = umask(0);

	(void)state;
	umask(mask);
	assert_int_equal(mask, 027); /* as the runner has set it */
	for (int s = 1; s < 32; s++) {
		if (sigaction(s, NULL, &action) == 0 && s != SIGSEGV && s != SIGBUS &&
		    s != SIGFPE && s != SIGILL && s != SIGABRT &&
		    s != SIGSYS) /* cmocka and sanitizers */
			assert_true(action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_start),
		cmocka_unit_test(test_one_view),
		cmocka_unit_test(test_process_lists),
		cmocka_unit_test(test_everything_comes_back),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_unknown_pointers),
		cmocka_unit_test(test_context_takes_its_memory_along),
		cmocka_unit_test(test_primary_references),
		cmocka_unit_test(test_graph_memory),
		cmocka_unit_test(test_capture),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_suspend),
		cmocka_unit_test(test_priority),
		cmocka_unit_test(test_manners),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
