/* SPDX-License-Identifier: Apache-2.0 */
/*
 * facts: what a driver answers in several hundred situations, most of them mistakes of a program. One
 * line each, "situation: answer", always in the same order; so the fake driver's answers can be
 * compared with those of a real card (facts-*.txt, which name card and driver).
 *
 * Numbers are result codes, or MiB of the card in use more than before.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>

#include "program.h"

#define MIB (1ull << 20)

static void say(const char *situation, long long answer)
{
	printf("%s: %lld\n", situation, answer);
	fflush(stdout);
}

/* A real driver may answer a mistake with a crash: then that is the answer. */
static sigjmp_buf crash_place;

static void crashed(int signal)
{
	siglongjmp(crash_place, signal);
}

#define ASK(situation, call)                                                                       \
	do {                                                                                       \
		if (sigsetjmp(crash_place, 1) == 0)                                                \
			say(situation, call);                                                      \
		else                                                                               \
			printf("%s: crash\n", situation);                                          \
	} while (0)

static CUcontext context;
static CUfunction busy, one;
static unsigned long long base_used;

static unsigned long long used(void)
{
	nvmlMemory_t memory = { 0 };

	nv.nvmlDeviceGetMemoryInfo(nv_device, &memory);
	return memory.used;
}

static void mark(void)
{
	base_used = used();
}

static void say_used(const char *situation)
{
	say(situation, (long long)((used() - base_used) / MIB));
}

static void launch_busy(CUstream stream, unsigned long long ns)
{
	void *params[] = { &ns };

	MUST(cu.cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
}

/* ---- before cuInit() ---- */

static void cold(void)
{
	CUdeviceptr pointer;
	CUcontext current;
	size_t a, b;
	int number, mode = CU_STREAM_CAPTURE_MODE_RELAXED;
	CUuuid id = { { 1 } };
	const void *table;
	const char *name;

	ASK("cold cuDeviceGetCount", cu.cuDeviceGetCount(&number));
	ASK("cold cuDeviceGet", cu.cuDeviceGet(&number, 0));
	ASK("cold cuMemAlloc", cu.cuMemAlloc_v2(&pointer, 4096));
	ASK("cold cuMemGetInfo", cu.cuMemGetInfo_v2(&a, &b));
	ASK("cold cuCtxGetCurrent", cu.cuCtxGetCurrent(&current));
	ASK("cold cuDriverGetVersion", cu.cuDriverGetVersion(&number));
	ASK("cold cuDriverGetVersion NULL", cu.cuDriverGetVersion(NULL));
	ASK("cold cuGetErrorName 2", cu.cuGetErrorName(2, &name));
	ASK("cold cuGetErrorName -1", cu.cuGetErrorName(-1, &name));
	ASK("cold cuGetExportTable unknown", cu.cuGetExportTable(&table, &id));
	ASK("cold cuThreadExchangeStreamCaptureMode", cu.cuThreadExchangeStreamCaptureMode(&mode));
	cu.cuThreadExchangeStreamCaptureMode(&mode);
	ASK("cold cuMemFree 0", cu.cuMemFree_v2(0));
	ASK("cold cuEventCreate", cu.cuEventCreate((CUevent *)&current, 0));
	ASK("cuInit 1", cu.cuInit(1));
	ASK("cuInit 0", cu.cuInit(0));
	ASK("cuInit again", cu.cuInit(0));
}

/* ---- lookup ---- */

static void lookup_one(const char *situation, const char *name, int version, cuuint64_t flags)
{
	void *pfn = (void *)1;
	int status = -1;
	CUresult rc = cu.cuGetProcAddress_v2(name, &pfn, version, flags, &status);

	printf("lookup %s: %d status %d %s\n", situation, rc, status,
	       pfn == (void *)1 ? "untouched"
	       : pfn            ? "found"
				: "NULL");
}

static void lookup(void)
{
	void *pfn, *library = dlopen("libcuda.so.1", RTLD_NOW);
	unsigned int same = 0, differ = 0, missing = 0;
	int status;

	lookup_one("cuMemAlloc@3020", "cuMemAlloc", 3020, 0);
	lookup_one("cuMemAlloc@2000", "cuMemAlloc", 2000, 0);
	lookup_one("cuMemAlloc@1000", "cuMemAlloc", 1000, 0);
	lookup_one("cuMemAlloc@0", "cuMemAlloc", 0, 0);
	lookup_one("cuMemAlloc@99999", "cuMemAlloc", 99999, 0);
	lookup_one("cuMemAlloc_v2@3020", "cuMemAlloc_v2", 3020, 0);
	lookup_one("cuMemAlloc@3020 per thread", "cuMemAlloc", 3020, 2);
	lookup_one("cuLaunchKernel@4000 per thread", "cuLaunchKernel", 4000, 2);
	lookup_one("cuLaunchKernel@7000 legacy", "cuLaunchKernel", 7000, 1);
	lookup_one("cuLaunchKernel_ptsz@7000", "cuLaunchKernel_ptsz", 7000, 0);
	lookup_one("cuMemAllocAsync@11000", "cuMemAllocAsync", 11000, 0);
	lookup_one("flags 3", "cuMemAlloc", 3020, 3);
	lookup_one("flags 4", "cuMemAlloc", 3020, 4);
	lookup_one("empty name", "", 0, 0);
	lookup_one("unknown name", "cuNoSuchFunction", 13000, 0);
	lookup_one("cudaMalloc", "cudaMalloc", 13000, 0);
	lookup_one("cuGetProcAddress@11030", "cuGetProcAddress", 11030, 0);
	lookup_one("cuGetProcAddress@12000", "cuGetProcAddress", 12000, 0);
	ASK("lookup NULL status", cu.cuGetProcAddress_v2("cuInit", &pfn, 3020, 0, NULL));
	ASK("lookup old form", cu.cuGetProcAddress("cuInit", &pfn, 3020, 0));
	ASK("lookup old form unknown", cu.cuGetProcAddress("cuNoSuchFunction", &pfn, 3020, 0));
	ASK("lookup old form too old", cu.cuGetProcAddress("cuMemAllocAsync", &pfn, 3020, 0));

	/* Is what is looked up what is exported? */
#define NONE 0
#define PTDS 2
#define PTSZ 2
#define FAKE_ENTRY(symbol, base, version, flavour)                                                 \
	do {                                                                                       \
		void *exported = dlsym(library, #symbol);                                          \
		CUresult rc = cu.cuGetProcAddress_v2(#base, &pfn, version, flavour, &status);      \
                                                                                                   \
		/* Two that no header declares are found under other addresses. */                 \
		if (strcmp(#base, "cuEGLApiInit") == 0 || strcmp(#base, "cuMemGetAttribute") == 0) \
			break;                                                                     \
		if (!exported || rc != CUDA_SUCCESS) {                                             \
			missing++;                                                                 \
			printf("lookup %s@%d: %d status %d%s\n", #symbol, version, rc, status,     \
			       exported ? "" : " not exported");                                   \
		} else if (pfn != exported) {                                                      \
			differ++;                                                                  \
			printf("lookup %s@%d: another address\n", #symbol, version);               \
		} else {                                                                           \
			same++;                                                                    \
		}                                                                                  \
	} while (0);
#define FAKE_STUB FAKE_ENTRY
#include "../../fake/cuda_entries.def"
	printf("lookup of all: same %u differ %u missing %u\n", same, differ, missing);
}

/* ---- without a context ---- */

static void no_context(void)
{
	CUdeviceptr pointer;
	CUcontext current;
	CUstream stream;
	CUevent event;
	CUmodule module;
	CUarray array;
	CUDA_ARRAY_DESCRIPTOR shape = { 64, 64, 0x20, 4 };
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUmemGenericAllocationHandle handle;
	CUgraph graph;
	CUgraphExec exec;
	size_t a, b;
	unsigned int flags;
	int device, active;

	ASK("none cuMemAlloc", cu.cuMemAlloc_v2(&pointer, 4096));
	ASK("none cuMemFree 0", cu.cuMemFree_v2(0));
	ASK("none cuMemGetInfo", cu.cuMemGetInfo_v2(&a, &b));
	ASK("none cuCtxGetDevice", cu.cuCtxGetDevice(&device));
	ASK("none cuCtxSynchronize", cu.cuCtxSynchronize());
	ASK("none cuCtxGetCurrent", cu.cuCtxGetCurrent(&current));
	ASK("none cuCtxPopCurrent", cu.cuCtxPopCurrent_v2(&current));
	ASK("none cuCtxSetCurrent NULL", cu.cuCtxSetCurrent(NULL));
	ASK("none cuStreamCreate", cu.cuStreamCreate(&stream, 0));
	ASK("none cuEventCreate", cu.cuEventCreate(&event, 0));
	ASK("none cuModuleLoadData", cu.cuModuleLoadData(&module, program_ptx));
	ASK("none cuArrayCreate", cu.cuArrayCreate_v2(&array, &shape));
	ASK("none cuMemAllocAsync", cu.cuMemAllocAsync(&pointer, 4096, NULL));
	ASK("none cuStreamSynchronize NULL", cu.cuStreamSynchronize(NULL));
	ASK("none cuMemAllocHost", cu.cuMemAllocHost_v2((void **)&current, 4096));
	ASK("none cuGraphCreate", cu.cuGraphCreate(&graph, 0));
	ASK("none cuGraphInstantiate", cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	if (cu.cuMemCreate(&handle, 2 * MIB, &prop, 0) == CUDA_SUCCESS) {
		say("none cuMemCreate", 0);
		ASK("none cuMemRelease", cu.cuMemRelease(handle));
	} else {
		say("none cuMemCreate", 1);
	}
	ASK("device 99", cu.cuDeviceGet(&device, 99));
	ASK("device -1", cu.cuDeviceGet(&device, -1));
	ASK("device NULL", cu.cuDeviceGet(NULL, 0));
	ASK("device total of 99", cu.cuDeviceTotalMem_v2(&a, 99));
	ASK("device total NULL", cu.cuDeviceTotalMem_v2(NULL, 0));
	ASK("device attribute 0", cu.cuDeviceGetAttribute(&device, 0, 0));
	ASK("device attribute 9999", cu.cuDeviceGetAttribute(&device, 9999, 0));
	ASK("primary release before retain", cu.cuDevicePrimaryCtxRelease_v2(0));
	ASK("primary state", cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	say("primary active before retain", active);
	ASK("primary state NULL", cu.cuDevicePrimaryCtxGetState(0, NULL, NULL));
	ASK("primary retain of 99", cu.cuDevicePrimaryCtxRetain(&current, 99));
	ASK("primary retain NULL", cu.cuDevicePrimaryCtxRetain(NULL, 0));
}

/* ---- contexts ---- */

static void contexts(void)
{
	CUcontext second, third, popped;
	CUdeviceptr pointer;
	unsigned int version = 0, flags, total32 = 0, free32;
	CUdeviceptr_v1 old = 0;
	size_t value;
	int active;

	mark();
	MUST(cu.cuDevicePrimaryCtxRetain(&context, 0));
	say_used("context primary MiB");
	ASK("context second retain", cu.cuDevicePrimaryCtxRetain(&second, 0));
	say("context second retain is the same", second == context);
	say_used("context second retain MiB");
	ASK("context retained is not current", cu.cuMemAlloc_v2(&pointer, 4096));
	ASK("context one release", cu.cuDevicePrimaryCtxRelease_v2(0));
	MUST(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	say("context active after one release", active);
	MUST(cu.cuCtxSetCurrent(context));
	ASK("context destroy of primary", cu.cuCtxDestroy_v2(context));
	MUST(cu.cuDevicePrimaryCtxGetState(0, &flags, &active));
	say("context active after that", active);
	if (!active) {
		MUST(cu.cuDevicePrimaryCtxRetain(&context, 0));
	}
	MUST(cu.cuCtxSetCurrent(context));
	ASK("context api version", cu.cuCtxGetApiVersion(context, &version));
	say("context api version is", version);

	mark();
	ASK("context create", cu.cuCtxCreate_v2(&third, 0, 0));
	say("context create MiB is over 100", used() - base_used > 100 * MIB);
	MUST(cu.cuMemAlloc_v2(&pointer, 64 * MIB));
	ASK("context pop", cu.cuCtxPopCurrent_v2(&popped));
	say("context popped is the created", popped == third);
	/* Memory knows its context: another may free it. */
	MUST(cu.cuMemFree_v2(pointer));
	MUST(cu.cuCtxPushCurrent_v2(third));
	MUST(cu.cuMemAlloc_v2(&pointer, 64 * MIB));
	ASK("context destroy", cu.cuCtxDestroy_v2(third));
	say_used("context destroyed with memory, left MiB");
	MUST(cu.cuCtxGetCurrent(&popped));
	say("context current after destroy is the one below", popped == context);
	ASK("context create bad flags", cu.cuCtxCreate_v2(&third, 0x10000, 0));
	ASK("context create NULL", cu.cuCtxCreate_v2(NULL, 0, 0));

	/* The interface of 32-bit addresses. */
	say("context create v1 works", cu.cuCtxCreate(&third, 0, 0) == CUDA_SUCCESS);
	ASK("context new cuMemAlloc v1", cu.cuMemAlloc(&old, 4096));
	ASK("context new cuMemGetInfo v1", cu.cuMemGetInfo(&free32, &total32));
	ASK("context cuDeviceTotalMem v1", cu.cuDeviceTotalMem(&total32, 0));
	say("context cuDeviceTotalMem v1 is the most there is", total32 == UINT32_MAX);

	mark();
	MUST(cu.cuCtxGetLimit(&value, CU_LIMIT_MALLOC_HEAP_SIZE));
	say("context heap MiB", (long long)(value / MIB));
	ASK("context heap 1 GiB", cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, 1024 * MIB));
	say_used("context heap 1 GiB takes MiB");
	ASK("context heap back", cu.cuCtxSetLimit(CU_LIMIT_MALLOC_HEAP_SIZE, value));
	say_used("context heap back leaves MiB");
	ASK("context limit 99", cu.cuCtxSetLimit(99, 1));
}

/* ---- memory ---- */

static void memory(void)
{
	CUdeviceptr pointer = 0, other, base;
	CUDA_ARRAY_DESCRIPTOR shape = { 0, 64, 0x20, 4 };
	CUarray array;
	void *host;
	size_t a, b, pitch, bytes;
	unsigned int type = 0;
	static char page[8192];

	ASK("memory 0 bytes", cu.cuMemAlloc_v2(&pointer, 0));
	ASK("memory NULL", cu.cuMemAlloc_v2(NULL, 4096));
	ASK("memory 1 PiB", cu.cuMemAlloc_v2(&pointer, 1ull << 50));
	ASK("memory all bits", cu.cuMemAlloc_v2(&pointer, SIZE_MAX));
	MUST(cu.cuDeviceTotalMem_v2(&a, 0));
	ASK("memory as much as the card", cu.cuMemAlloc_v2(&pointer, a));
	ASK("memory free 0", cu.cuMemFree_v2(0));
	ASK("memory free unknown", cu.cuMemFree_v2(0x12345000));
	MUST(cu.cuMemAlloc_v2(&pointer, 8 * MIB));
	say("memory large is aligned to 2 MiB", pointer % (2 * MIB) == 0);
	ASK("memory free inside", cu.cuMemFree_v2(pointer + 4096));
	ASK("memory range of inside", cu.cuMemGetAddressRange_v2(&base, &bytes, pointer + 4096));
	say("memory range base is right", base == pointer);
	say("memory range bytes", (long long)bytes);
	ASK("memory range NULL", cu.cuMemGetAddressRange_v2(NULL, NULL, pointer));
	ASK("memory range unknown", cu.cuMemGetAddressRange_v2(&base, &bytes, 0x12345000));
	ASK("memory type of pointer", cu.cuPointerGetAttribute(&type, 2, pointer));
	say("memory type is", type);
	ASK("memory type of unknown", cu.cuPointerGetAttribute(&type, 2, 0x12345000));
	ASK("memory free", cu.cuMemFree_v2(pointer));
	ASK("memory free twice", cu.cuMemFree_v2(pointer));
	MUST(cu.cuMemAlloc_v2(&pointer, 4096));
	say("memory small is aligned to 512", pointer % 512 == 0);
	MUST(cu.cuMemAlloc_v2(&other, 1));
	say("memory next small is 4096 away", other - pointer == 4096);
	MUST(cu.cuMemGetAddressRange_v2(&base, &bytes, other));
	say("memory range of 1 byte", (long long)bytes);
	MUST(cu.cuMemFree_v2(pointer));
	MUST(cu.cuMemFree_v2(other));

	ASK("memory info NULL NULL", cu.cuMemGetInfo_v2(NULL, NULL));
	ASK("memory info NULL total", cu.cuMemGetInfo_v2(NULL, &b));
	ASK("memory info free NULL", cu.cuMemGetInfo_v2(&a, NULL));
	ASK("memory pitch element 3", cu.cuMemAllocPitch_v2(&pointer, &pitch, 100, 100, 3));
	ASK("memory pitch width 0", cu.cuMemAllocPitch_v2(&pointer, &pitch, 0, 100, 4));
	ASK("memory pitch height 0", cu.cuMemAllocPitch_v2(&pointer, &pitch, 100, 0, 4));
	MUST(cu.cuMemAllocPitch_v2(&pointer, &pitch, 100, 100, 4));
	say("memory pitch of 100", (long long)pitch);
	MUST(cu.cuMemFree_v2(pointer));
	ASK("memory managed flags 0", cu.cuMemAllocManaged(&pointer, 4096, 0));
	ASK("memory managed 0 bytes", cu.cuMemAllocManaged(&pointer, 0, 1));
	mark();
	MUST(cu.cuMemAllocManaged(&pointer, 64 * MIB, 1));
	say_used("memory managed MiB");
	ASK("memory prefetch", cu.cuMemPrefetchAsync(pointer, 64 * MIB, 0, NULL));
	MUST(cu.cuCtxSynchronize());
	say_used("memory managed prefetched MiB");
	ASK("memory prefetch to host", cu.cuMemPrefetchAsync(pointer, 64 * MIB, -1, NULL));
	MUST(cu.cuCtxSynchronize());
	ASK("memory free managed", cu.cuMemFree_v2(pointer));
	say_used("memory managed freed MiB");

	ASK("memory host 0 bytes", cu.cuMemAllocHost_v2(&host, 0));
	ASK("memory host flags 8", cu.cuMemHostAlloc(&host, 4096, 8));
	MUST(cu.cuMemAllocHost_v2(&host, 4096));
	ASK("memory free host as device", cu.cuMemFree_v2((CUdeviceptr)(uintptr_t)host));
	ASK("memory free host", cu.cuMemFreeHost(host));
	ASK("memory free host unknown", cu.cuMemFreeHost(page));
	ASK("memory register", cu.cuMemHostRegister_v2(page, sizeof(page), 0));
	ASK("memory register twice", cu.cuMemHostRegister_v2(page, sizeof(page), 0));
	ASK("memory unregister", cu.cuMemHostUnregister(page));
	ASK("memory unregister twice", cu.cuMemHostUnregister(page));

	ASK("array width 0", cu.cuArrayCreate_v2(&array, &shape));
	shape.Width = 64;
	shape.NumChannels = 3;
	ASK("array 3 channels", cu.cuArrayCreate_v2(&array, &shape));
	shape.NumChannels = 4;
	shape.Format = 0x7;
	ASK("array format 7", cu.cuArrayCreate_v2(&array, &shape));
	shape.Format = 0x20;
	shape.Width = 1 << 24;
	ASK("array too wide", cu.cuArrayCreate_v2(&array, &shape));
	ASK("array NULL shape", cu.cuArrayCreate_v2(&array, NULL));
	ASK("copy to unknown", cu.cuMemcpyHtoD_v2(0x12345000, page, 16));
	ASK("fill unknown", cu.cuMemsetD8_v2(0x12345000, 1, 16));
}

/* ---- pools ---- */

static uint64_t pool_value(CUmemoryPool pool, CUmemPool_attribute attribute)
{
	uint64_t value = 0;

	MUST(cu.cuMemPoolGetAttribute(pool, attribute, &value));
	return value;
}

static void pools(void)
{
	CUmemPoolProps props = { .allocType = 1, .location = { 1, 0 } };
	CUmemPoolProps small = { .allocType = 1, .location = { 1, 0 }, .maxSize = 64 * MIB };
	CUmemoryPool pool, standard;
	CUdeviceptr pointer, other;
	uint64_t value = 5;
	CUipcMemHandle handle;

	MUST(cu.cuDeviceGetDefaultMemPool(&standard, 0));
	ASK("pool alloc 0", cu.cuMemAllocAsync(&pointer, 0, NULL));
	ASK("pool alloc NULL", cu.cuMemAllocAsync(NULL, 4096, NULL));
	ASK("pool alloc 1 PiB", cu.cuMemAllocAsync(&pointer, 1ull << 50, NULL));
	ASK("pool free 0", cu.cuMemFreeAsync(0, NULL));
	ASK("pool free unknown", cu.cuMemFreeAsync(0x12345000, NULL));
	MUST(cu.cuMemAlloc_v2(&pointer, 4 * MIB));
	if (cu.cuMemFreeAsync(pointer, NULL) == CUDA_SUCCESS) {
		say("pool free of plain memory", 0);
	} else {
		say("pool free of plain memory", 1);
		MUST(cu.cuMemFree_v2(pointer));
	}
	MUST(cu.cuMemAllocAsync(&pointer, 4 * MIB, NULL));
	say("pool used MiB", (long long)(pool_value(standard, 7) / MIB));
	ASK("pool memory freed plainly", cu.cuMemFree_v2(pointer));
	say("pool used after plain free", (long long)pool_value(standard, 7));
	MUST(cu.cuCtxSynchronize());
	say("pool reserved after plain free and wait MiB",
	    (long long)(pool_value(standard, 5) / MIB));
	MUST(cu.cuMemAllocAsync(&pointer, 1000, NULL));
	say("pool used for 1000 bytes", (long long)pool_value(standard, 7));
	MUST(cu.cuMemFreeAsync(pointer, NULL));
	say("pool used right after free", (long long)pool_value(standard, 7));
	MUST(cu.cuCtxSynchronize());
	say("pool reserved after free and wait MiB", (long long)(pool_value(standard, 5) / MIB));
	ASK("pool set reserved high to 5", cu.cuMemPoolSetAttribute(standard, 6, &value));
	ASK("pool set used", cu.cuMemPoolSetAttribute(standard, 7, &value));
	ASK("pool attribute 99", cu.cuMemPoolGetAttribute(standard, 99, &value));
	ASK("pool destroy default", cu.cuMemPoolDestroy(standard));
	ASK("pool create", cu.cuMemPoolCreate(&pool, &props));
	ASK("pool create NULL", cu.cuMemPoolCreate(&pool, NULL));
	mark();
	MUST(cu.cuMemAllocFromPoolAsync(&pointer, 40 * MIB, pool, NULL));
	MUST(cu.cuCtxSynchronize());
	say_used("pool 40 MiB reserves MiB");
	value = UINT64_MAX;
	MUST(cu.cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value));
	MUST(cu.cuMemFreeAsync(pointer, NULL));
	MUST(cu.cuCtxSynchronize());
	say_used("pool with threshold keeps MiB");
	MUST(cu.cuMemPoolTrimTo(pool, 0));
	say_used("pool trimmed keeps MiB");
	MUST(cu.cuMemAllocFromPoolAsync(&pointer, 4 * MIB, pool, NULL));
	ASK("pool destroy with memory out", cu.cuMemPoolDestroy(pool));
	ASK("pool free after destroy", cu.cuMemFreeAsync(pointer, NULL));
	MUST(cu.cuCtxSynchronize());
	say_used("pool destroyed leaves MiB");
	MUST(cu.cuMemPoolCreate(&pool, &small));
	ASK("pool of 64 MiB gives 40", cu.cuMemAllocFromPoolAsync(&pointer, 40 * MIB, pool, NULL));
	ASK("pool of 64 MiB gives 40 more",
	    cu.cuMemAllocFromPoolAsync(&other, 40 * MIB, pool, NULL));
	MUST(cu.cuMemFreeAsync(pointer, NULL));
	MUST(cu.cuMemPoolDestroy(pool));
	MUST(cu.cuMemAllocAsync(&pointer, 4 * MIB, NULL));
	ASK("pool memory handle for other processes", cu.cuIpcGetMemHandle(&handle, pointer));
	MUST(cu.cuMemFreeAsync(pointer, NULL));
	MUST(cu.cuCtxSynchronize());
}

/* ---- virtual memory ---- */

static void virtual_memory(void)
{
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUmemAccessDesc access = { { 1, 0 }, 3 };
	CUmemGenericAllocationHandle handle, again;
	CUdeviceptr range, second;
	size_t granularity = 0;

	MUST(cu.cuMemGetAllocationGranularity(&granularity, &prop, 0));
	say("vmm granularity", (long long)granularity);
	ASK("vmm create 1 MiB", cu.cuMemCreate(&handle, MIB, &prop, 0));
	ASK("vmm create 0", cu.cuMemCreate(&handle, 0, &prop, 0));
	ASK("vmm create flags", cu.cuMemCreate(&handle, 2 * MIB, &prop, 1));
	prop.location.id = 99;
	ASK("vmm create on 99", cu.cuMemCreate(&handle, 2 * MIB, &prop, 0));
	prop.location.id = 0;
	prop.type = 0;
	ASK("vmm create type 0", cu.cuMemCreate(&handle, 2 * MIB, &prop, 0));
	prop.type = 1;
	ASK("vmm create 1 PiB", cu.cuMemCreate(&handle, 1ull << 50, &prop, 0));
	ASK("vmm reserve 1 MiB", cu.cuMemAddressReserve(&range, MIB, 0, 0, 0));
	MUST(cu.cuMemAddressReserve(&range, 16 * MIB, 0, 0, 0));
	MUST(cu.cuMemAddressReserve(&second, 16 * MIB, 0, 0, 0));
	mark();
	MUST(cu.cuMemCreate(&handle, 8 * MIB, &prop, 0));
	ASK("vmm map at offset", cu.cuMemMap(range, 2 * MIB, 2 * MIB, handle, 0));
	ASK("vmm map too much", cu.cuMemMap(range, 10 * MIB, 0, handle, 0));
	ASK("vmm map outside", cu.cuMemMap(0x12200000, 8 * MIB, 0, handle, 0));
	ASK("vmm map", cu.cuMemMap(range, 8 * MIB, 0, handle, 0));
	ASK("vmm map over it", cu.cuMemMap(range, 8 * MIB, 0, handle, 0));
	ASK("vmm map a second time elsewhere", cu.cuMemMap(second, 8 * MIB, 0, handle, 0));
	ASK("vmm access", cu.cuMemSetAccess(range, 8 * MIB, &access, 1));
	ASK("vmm access beyond", cu.cuMemSetAccess(range, 16 * MIB, &access, 1));
	ASK("vmm plain free of it", cu.cuMemFree_v2(range));
	ASK("vmm retain", cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range));
	say("vmm retain is the same", again == handle);
	ASK("vmm release", cu.cuMemRelease(handle));
	ASK("vmm release again", cu.cuMemRelease(handle));
	say_used("vmm released and mapped MiB");
	ASK("vmm free range in use", cu.cuMemAddressFree(range, 16 * MIB));
	ASK("vmm unmap a part", cu.cuMemUnmap(range, 2 * MIB));
	ASK("vmm unmap", cu.cuMemUnmap(range, 8 * MIB));
	say_used("vmm mapped once still MiB");
	ASK("vmm unmap second", cu.cuMemUnmap(second, 8 * MIB));
	say_used("vmm unmapped MiB");
	ASK("vmm unmap twice", cu.cuMemUnmap(range, 8 * MIB));
	ASK("vmm free part of a range", cu.cuMemAddressFree(range, 8 * MIB));
	ASK("vmm free range", cu.cuMemAddressFree(range, 16 * MIB));
	MUST(cu.cuMemAddressFree(second, 16 * MIB));
}

/* ---- streams, events, launches ---- */

static void work(void)
{
	CUstream stream, second;
	CUevent event, end, untimed;
	float ms = 0;
	unsigned long long ns = 20000000;
	void *params[] = { &ns };
	unsigned int x = 0;
	void *two[] = { &x, &ns };

	ASK("stream flags 2", cu.cuStreamCreate(&stream, 2));
	ASK("stream NULL", cu.cuStreamCreate(NULL, 0));
	MUST(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	ASK("stream destroy NULL", cu.cuStreamDestroy_v2(NULL));
	ASK("event flags 99", cu.cuEventCreate(&event, 99));
	ASK("event between processes with time", cu.cuEventCreate(&event, CU_EVENT_INTERPROCESS));
	MUST(cu.cuEventCreate(&event, 0));
	MUST(cu.cuEventCreate(&end, 0));
	MUST(cu.cuEventCreate(&untimed, CU_EVENT_DISABLE_TIMING));
	ASK("event query unrecorded", cu.cuEventQuery(event));
	ASK("event wait unrecorded", cu.cuEventSynchronize(event));
	ASK("event time unrecorded", cu.cuEventElapsedTime(&ms, event, end));
	MUST(cu.cuEventRecord(event, stream));
	launch_busy(stream, ns);
	MUST(cu.cuEventRecord(end, stream));
	MUST(cu.cuEventRecord(untimed, stream));
	ASK("event query running", cu.cuEventQuery(end));
	ASK("event time running", cu.cuEventElapsedTime(&ms, event, end));
	ASK("stream query running", cu.cuStreamQuery(stream));
	ASK("stream query other", cu.cuStreamQuery(second));
	ASK("event wait", cu.cuEventSynchronize(end));
	ASK("event query done", cu.cuEventQuery(end));
	ASK("event time", cu.cuEventElapsedTime(&ms, event, end));
	say("event time is 20 ms", ms > 19.9f && ms < 21.0f);
	ASK("event time backwards", cu.cuEventElapsedTime(&ms, end, event));
	say("event time backwards is negative", ms < 0);
	ASK("event time untimed", cu.cuEventElapsedTime(&ms, event, untimed));
	ASK("event time NULL", cu.cuEventElapsedTime(NULL, event, end));
	MUST(cu.cuStreamSynchronize(stream));

	ASK("launch grid 0", cu.cuLaunchKernel(busy, 0, 1, 1, 32, 1, 1, 0, stream, params, NULL));
	ASK("launch block 2048",
	    cu.cuLaunchKernel(busy, 1, 1, 1, 2048, 1, 1, 0, stream, params, NULL));
	ASK("launch block z 65",
	    cu.cuLaunchKernel(busy, 1, 1, 1, 1, 1, 65, 0, stream, params, NULL));
	ASK("launch grid y 65536",
	    cu.cuLaunchKernel(one, 1, 65536, 1, 1, 1, 1, 0, stream, two, NULL));
	ASK("launch NULL function",
	    cu.cuLaunchKernel(NULL, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL));
	ASK("launch cooperative",
	    cu.cuLaunchCooperativeKernel(one, 1, 1, 1, 32, 1, 1, 0, stream, two));
	ASK("launch cooperative too large",
	    cu.cuLaunchCooperativeKernel(one, 1000000, 1, 1, 1024, 1, 1, 0, stream, two));
	MUST(cu.cuCtxSynchronize());

	/* Two kernels of one block each run side by side, two streams or not. */
	ns = 20000000;
	MUST(cu.cuEventRecord(event, stream));
	launch_busy(stream, ns);
	launch_busy(second, ns);
	MUST(cu.cuEventRecord(end, second));
	MUST(cu.cuEventSynchronize(end));
	MUST(cu.cuStreamSynchronize(stream));
	MUST(cu.cuEventElapsedTime(&ms, event, end));
	say("work in two streams takes 20 ms", ms > 19.9f && ms < 22.0f);
	MUST(cu.cuEventRecord(event, stream));
	launch_busy(stream, ns);
	launch_busy(stream, ns);
	MUST(cu.cuEventRecord(end, stream));
	MUST(cu.cuEventSynchronize(end));
	MUST(cu.cuEventElapsedTime(&ms, event, end));
	say("work in one stream takes 40 ms", ms > 39.8f && ms < 42.0f);
	MUST(cu.cuStreamDestroy_v2(stream));
	MUST(cu.cuStreamDestroy_v2(second));
	MUST(cu.cuEventDestroy_v2(event));
	MUST(cu.cuEventDestroy_v2(end));
	MUST(cu.cuEventDestroy_v2(untimed));
}

/* ---- capture: what may be called meanwhile ---- */

static CUstream captured, beside, blocking;
static CUevent done_event, done_event2;
static CUdeviceptr some;
static CUgraphExec some_exec;
static CUgraph some_graph;

static void nothing(void *data)
{
	(void)data;
}

static void nothing_either(CUstream stream, CUresult rc, void *data)
{
	(void)stream;
	(void)rc;
	(void)data;
}

static CUresult try_alloc(void)
{
	CUdeviceptr pointer;
	CUresult rc = cu.cuMemAlloc_v2(&pointer, 4096);

	return rc;
}

static CUresult try_free(void)
{
	return cu.cuMemFree_v2(0);
}

static CUresult try_info(void)
{
	size_t a, b;

	return cu.cuMemGetInfo_v2(&a, &b);
}

static CUresult try_stream_create(void)
{
	CUstream stream;

	return cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
}

static CUresult try_event_create(void)
{
	CUevent event;

	return cu.cuEventCreate(&event, 0);
}

static CUresult try_event_query(void)
{
	return cu.cuEventQuery(done_event);
}

static CUresult try_event_wait(void)
{
	return cu.cuEventSynchronize(done_event);
}

static CUresult try_event_time(void)
{
	float ms;

	return cu.cuEventElapsedTime(&ms, done_event, done_event2);
}

static CUresult try_query_captured(void)
{
	return cu.cuStreamQuery(captured);
}

static CUresult try_query_beside(void)
{
	return cu.cuStreamQuery(beside);
}

static CUresult try_wait_captured(void)
{
	return cu.cuStreamSynchronize(captured);
}

static CUresult try_wait_beside(void)
{
	return cu.cuStreamSynchronize(beside);
}

static CUresult try_wait_context(void)
{
	return cu.cuCtxSynchronize();
}

static CUresult try_host_alloc(void)
{
	void *pointer;

	return cu.cuMemHostAlloc(&pointer, 4096, 0);
}

static CUresult try_managed(void)
{
	CUdeviceptr pointer;

	return cu.cuMemAllocManaged(&pointer, 4096, 1);
}

static CUresult try_module(void)
{
	CUmodule module;

	return cu.cuModuleLoadData(&module, program_ptx);
}

static CUresult try_vmm(void)
{
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUmemGenericAllocationHandle handle;
	CUresult rc = cu.cuMemCreate(&handle, 2 * MIB, &prop, 0);

	if (rc == CUDA_SUCCESS)
		cu.cuMemRelease(handle);
	return rc;
}

static CUresult try_array(void)
{
	CUDA_ARRAY_DESCRIPTOR shape = { 64, 64, 0x20, 4 };
	CUarray array;

	return cu.cuArrayCreate_v2(&array, &shape);
}

static CUresult try_copy(void)
{
	char byte = 1;

	return cu.cuMemcpyHtoD_v2(some, &byte, 1);
}

static CUresult try_fill(void)
{
	return cu.cuMemsetD8_v2(some, 1, 16);
}

static CUresult launch_on(CUstream stream)
{
	unsigned int x = 0;
	unsigned long long y = 0;
	void *params[] = { &x, &y };

	return cu.cuLaunchKernel(one, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL);
}

static CUresult try_launch_captured(void)
{
	return launch_on(captured);
}

static CUresult try_launch_beside(void)
{
	return launch_on(beside);
}

static CUresult try_launch_legacy(void)
{
	return launch_on(NULL);
}

static CUresult try_record_captured(void)
{
	CUevent event;

	cu.cuEventCreate(&event, 0);
	return cu.cuEventRecord(event, captured);
}

static CUresult try_record_beside(void)
{
	return cu.cuEventRecord(done_event2, beside);
}

static CUresult try_query_recorded(void)
{
	CUevent event;

	cu.cuEventCreate(&event, 0);
	cu.cuEventRecord(event, captured);
	return cu.cuEventQuery(event);
}

static CUresult try_wait_outside(void)
{
	return cu.cuStreamWaitEvent(captured, done_event, 0);
}

static CUresult try_alloc_async(void)
{
	CUdeviceptr pointer;
	CUresult rc = cu.cuMemAllocAsync(&pointer, 4096, captured);

	return rc == CUDA_SUCCESS ? cu.cuMemFreeAsync(pointer, captured) : rc;
}

static CUresult try_alloc_async_beside(void)
{
	CUdeviceptr pointer;
	CUresult rc = cu.cuMemAllocAsync(&pointer, 4096, beside);

	return rc == CUDA_SUCCESS ? cu.cuMemFreeAsync(pointer, beside) : rc;
}

static CUresult try_instantiate(void)
{
	CUgraphExec exec;

	return cu.cuGraphInstantiateWithFlags(&exec, some_graph, 0);
}

static CUresult try_graph_beside(void)
{
	return cu.cuGraphLaunch(some_exec, beside);
}

static CUresult try_graph_captured(void)
{
	return cu.cuGraphLaunch(some_exec, captured);
}

static CUresult try_upload(void)
{
	return cu.cuGraphUpload(some_exec, beside);
}

static CUresult try_host_function(void)
{
	return cu.cuLaunchHostFunc(captured, nothing, NULL);
}

static CUresult try_callback(void)
{
	return cu.cuStreamAddCallback(captured, nothing_either, NULL, 0);
}

static CUresult try_pool(void)
{
	CUmemPoolProps props = { .allocType = 1, .location = { 1, 0 } };
	CUmemoryPool pool;
	CUresult rc = cu.cuMemPoolCreate(&pool, &props);

	if (rc == CUDA_SUCCESS)
		cu.cuMemPoolDestroy(pool);
	return rc;
}

static CUresult try_trim(void)
{
	CUmemoryPool pool;

	cu.cuDeviceGetDefaultMemPool(&pool, 0);
	return cu.cuMemPoolTrimTo(pool, 0);
}

static CUresult try_graph_attribute(void)
{
	uint64_t value;

	return cu.cuDeviceGetGraphMemAttribute(0, 2, &value);
}

static CUresult try_retain(void)
{
	CUcontext again;
	CUresult rc = cu.cuDevicePrimaryCtxRetain(&again, 0);

	if (rc == CUDA_SUCCESS)
		cu.cuDevicePrimaryCtxRelease_v2(0);
	return rc;
}

static CUresult try_is_capturing_legacy(void)
{
	CUstreamCaptureStatus status;

	return cu.cuStreamIsCapturing(NULL, &status);
}

static CUresult try_is_capturing(void)
{
	CUstreamCaptureStatus status = -1;
	CUresult rc = cu.cuStreamIsCapturing(captured, &status);

	return rc ? rc : 1000 + status;
}

static CUresult try_begin_again(void)
{
	return cu.cuStreamBeginCapture_v2(captured, 0);
}

static CUresult try_end_other(void)
{
	CUgraph graph;

	return cu.cuStreamEndCapture(beside, &graph);
}

#define TRY(name)                                                                                  \
	{                                                                                          \
#name, try_##name                                                                  \
	}
static const struct attempt {
	const char *name;
	CUresult (*call)(void);
} attempts[] = {
	TRY(alloc),
	TRY(free),
	TRY(info),
	TRY(stream_create),
	TRY(event_create),
	TRY(event_query),
	TRY(event_wait),
	TRY(event_time),
	TRY(query_captured),
	TRY(query_beside),
	TRY(wait_captured),
	TRY(wait_beside),
	TRY(wait_context),
	TRY(host_alloc),
	TRY(managed),
	TRY(module),
	TRY(vmm),
	TRY(array),
	TRY(copy),
	TRY(fill),
	TRY(launch_captured),
	TRY(launch_beside),
	TRY(launch_legacy),
	TRY(record_captured),
	TRY(record_beside),
	TRY(query_recorded),
	TRY(wait_outside),
	TRY(alloc_async),
	TRY(alloc_async_beside),
	TRY(instantiate),
	TRY(graph_beside),
	TRY(graph_captured),
	TRY(upload),
	TRY(host_function),
	TRY(callback),
	TRY(pool),
	TRY(trim),
	TRY(graph_attribute),
	TRY(retain),
	TRY(is_capturing_legacy),
	TRY(is_capturing),
	TRY(begin_again),
	TRY(end_other),
};

static const char *const mode_names[] = { "global", "local", "relaxed" };

/* The call's answer, and whether the capture survived it. */
static void attempt(const struct attempt *what, CUstream stream, CUstreamCaptureMode mode,
		    CUstreamCaptureMode thread)
{
	CUstreamCaptureMode exchange = thread;
	CUgraph graph = NULL;
	CUresult rc, end;

	captured = stream;
	MUST(cu.cuStreamBeginCapture_v2(captured, mode));
	MUST(cu.cuThreadExchangeStreamCaptureMode(&exchange));
	rc = what->call();
	MUST(cu.cuThreadExchangeStreamCaptureMode(&exchange));
	end = cu.cuStreamEndCapture(captured, &graph);
	printf("capture %s %s thread %s: %s %d end %d\n", stream == blocking ? "blocking" : "free",
	       mode_names[mode], mode_names[thread], what->name, rc, end);
	fflush(stdout);
	if (graph)
		cu.cuGraphDestroy(graph);
	MUST(cu.cuCtxSynchronize());
}

struct elsewhere {
	CUstreamCaptureMode mode;
	CUresult (*call)(void);
	CUresult rc;
};

static void *other_thread(void *data)
{
	struct elsewhere *what = data;
	CUstreamCaptureMode mode = what->mode;

	MUST(cu.cuCtxSetCurrent(context));
	MUST(cu.cuThreadExchangeStreamCaptureMode(&mode));
	what->rc = what->call();
	return NULL;
}

static void from_other_thread(const char *name, CUresult (*call)(void), CUstreamCaptureMode mode,
			      CUstreamCaptureMode thread_mode)
{
	struct elsewhere what = { thread_mode, call, 0 };
	CUgraph graph = NULL;
	pthread_t thread;
	CUresult end;

	captured = beside;
	MUST(cu.cuStreamBeginCapture_v2(captured, mode));
	pthread_create(&thread, NULL, other_thread, &what);
	pthread_join(thread, NULL);
	end = cu.cuStreamEndCapture(captured, &graph);
	printf("capture %s, other thread %s: %s %d end %d\n", mode_names[mode],
	       mode_names[thread_mode], name, what.rc, end);
	if (graph)
		cu.cuGraphDestroy(graph);
}

static void joins(void)
{
	CUstream first, second;
	CUevent fork, join;
	CUgraph graph = NULL;
	size_t count = 0;

	MUST(cu.cuStreamCreate(&first, CU_STREAM_NON_BLOCKING));
	MUST(cu.cuStreamCreate(&second, CU_STREAM_NON_BLOCKING));
	MUST(cu.cuEventCreate(&fork, CU_EVENT_DISABLE_TIMING));
	MUST(cu.cuEventCreate(&join, CU_EVENT_DISABLE_TIMING));
	MUST(cu.cuStreamBeginCapture_v2(first, 2));
	MUST(launch_on(first));
	MUST(cu.cuEventRecord(fork, first));
	ASK("join the second stream", cu.cuStreamWaitEvent(second, fork, 0));
	MUST(launch_on(second));
	MUST(launch_on(first));
	ASK("join end of the second", cu.cuStreamEndCapture(second, &graph));
	ASK("join end after that", cu.cuStreamEndCapture(first, &graph));

	MUST(cu.cuStreamBeginCapture_v2(first, 2));
	MUST(cu.cuEventRecord(fork, first));
	MUST(cu.cuStreamWaitEvent(second, fork, 0));
	MUST(launch_on(second));
	ASK("join end with the second open", cu.cuStreamEndCapture(first, &graph));

	MUST(cu.cuStreamBeginCapture_v2(first, 2));
	MUST(launch_on(first));
	MUST(cu.cuEventRecord(fork, first));
	MUST(cu.cuStreamWaitEvent(second, fork, 0));
	MUST(launch_on(second));
	MUST(cu.cuEventRecord(join, second));
	MUST(cu.cuStreamWaitEvent(first, join, 0));
	MUST(launch_on(first));
	ASK("join end", cu.cuStreamEndCapture(first, &graph));
	MUST(cu.cuGraphGetNodes(graph, NULL, &count));
	say("join nodes", (long long)count);
	MUST(cu.cuGraphDestroy(graph));

	MUST(cu.cuStreamBeginCapture_v2(first, 2));
	MUST(cu.cuStreamBeginCapture_v2(second, 2));
	MUST(cu.cuEventRecord(fork, first));
	ASK("join two captures", cu.cuStreamWaitEvent(second, fork, 0));
	ASK("join two captures, end first", cu.cuStreamEndCapture(first, &graph));
	ASK("join two captures, end second", cu.cuStreamEndCapture(second, &graph));
	ASK("capture legacy stream", cu.cuStreamBeginCapture_v2(NULL, 0));
	ASK("capture end without begin", cu.cuStreamEndCapture(first, &graph));
	ASK("capture mode 3", cu.cuStreamBeginCapture_v2(first, 3));
	MUST(cu.cuStreamDestroy_v2(first));
	MUST(cu.cuStreamDestroy_v2(second));
}

static void captures(void)
{
	CUgraphNode node;
	unsigned int x = 0;
	unsigned long long y = 0;
	void *params[] = { &x, &y };
	CUDA_KERNEL_NODE_PARAMS_v1 kernel = { one, 1, 1, 1, 32, 1, 1, 0, params, NULL };

	MUST(cu.cuStreamCreate(&beside, CU_STREAM_NON_BLOCKING));
	MUST(cu.cuStreamCreate(&blocking, 0));
	MUST(cu.cuEventCreate(&done_event, 0));
	MUST(cu.cuEventCreate(&done_event2, 0));
	MUST(cu.cuEventRecord(done_event, beside));
	MUST(cu.cuEventRecord(done_event2, beside));
	MUST(cu.cuMemAlloc_v2(&some, 4096));
	MUST(cu.cuGraphCreate(&some_graph, 0));
	MUST(cu.cuGraphAddKernelNode(&node, some_graph, NULL, 0, &kernel));
	MUST(cu.cuGraphInstantiateWithFlags(&some_exec, some_graph, 0));
	MUST(cu.cuCtxSynchronize());
	{
		CUstream free_stream;

		MUST(cu.cuStreamCreate(&free_stream, CU_STREAM_NON_BLOCKING));
		for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
			attempt(&attempts[i], free_stream, 0, 0);
		for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
			attempt(&attempts[i], free_stream, 2, 0);
		for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
			attempt(&attempts[i], free_stream, 0, 2);
		MUST(cu.cuStreamDestroy_v2(free_stream));
	}
	for (size_t i = 0; i < sizeof(attempts) / sizeof(attempts[0]); i++)
		attempt(&attempts[i], blocking, 0, 0);
	for (int mode = 0; mode < 3; mode++) {
		for (int thread = 0; thread < 3; thread++) {
			from_other_thread("alloc", try_alloc, mode, thread);
			from_other_thread("event_query", try_event_query, mode, thread);
		}
	}
	joins();
	MUST(cu.cuMemFree_v2(some));
}

/* ---- graphs ---- */

static long long graph_mib(CUgraphMem_attribute attribute)
{
	uint64_t value = 0;

	MUST(cu.cuDeviceGetGraphMemAttribute(0, attribute, &value));
	return (long long)(value / MIB);
}

static CUDA_MEM_ALLOC_NODE_PARAMS alloc_params(size_t bytes)
{
	return (CUDA_MEM_ALLOC_NODE_PARAMS){
		.poolProps = { .allocType = 1, .location = { 1, 0 } },
		.bytesize = bytes,
	};
}

static void graphs(void)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = alloc_params(64 * MIB);
	CUDA_MEM_ALLOC_NODE_PARAMS second = alloc_params(32 * MIB);
	CUgraph graph, child, clone;
	CUgraphNode alloc, release, node;
	CUgraphExec exec, twice;
	CUstream stream;

	MUST(cu.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
	MUST(cu.cuDeviceGraphMemTrim(0));
	mark();
	MUST(cu.cuGraphCreate(&graph, 0));
	MUST(cu.cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	ASK("graph free of its memory before a launch", cu.cuMemFree_v2(params.dptr));
	ASK("graph clone with memory", cu.cuGraphClone(&clone, graph));
	MUST(cu.cuGraphCreate(&child, 0));
	ASK("graph child with memory", cu.cuGraphAddChildGraphNode(&node, child, NULL, 0, graph));
	ASK("graph destroy memory node", cu.cuGraphDestroyNode(alloc));
	ASK("graph instantiate", cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
	ASK("graph instantiate twice", cu.cuGraphInstantiateWithFlags(&twice, graph, 0));
	say_used("graph instantiated MiB");
	ASK("graph launch", cu.cuGraphLaunch(exec, stream));
	MUST(cu.cuStreamSynchronize(stream));
	say_used("graph launched MiB");
	say("graph used MiB", graph_mib(0));
	say("graph reserved MiB", graph_mib(2));
	ASK("graph launch with memory out", cu.cuGraphLaunch(exec, stream));
	MUST(cu.cuStreamSynchronize(stream));
	ASK("graph free plainly", cu.cuMemFree_v2(params.dptr));
	ASK("graph free twice", cu.cuMemFree_v2(params.dptr));
	say("graph used after free MiB", graph_mib(0));
	say("graph reserved after free MiB", graph_mib(2));
	ASK("graph launch again", cu.cuGraphLaunch(exec, stream));
	ASK("graph free in stream", cu.cuMemFreeAsync(params.dptr, stream));
	MUST(cu.cuStreamSynchronize(stream));
	ASK("graph destroy exec", cu.cuGraphExecDestroy(exec));
	ASK("graph destroy", cu.cuGraphDestroy(graph));
	say_used("graph destroyed MiB");
	MUST(cu.cuDeviceGraphMemTrim(0));
	say_used("graph trimmed MiB");

	/* Allocated and freed within: a launch leaves nothing used. */
	params = alloc_params(64 * MIB);
	MUST(cu.cuGraphCreate(&graph, 0));
	MUST(cu.cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params));
	MUST(cu.cuGraphAddMemFreeNode(&release, graph, &alloc, 1, params.dptr));
	MUST(cu.cuGraphAddMemAllocNode(&node, graph, &release, 1, &second));
	MUST(cu.cuGraphInstantiateWithFlags(&exec, graph, 1));
	MUST(cu.cuGraphLaunch(exec, stream));
	MUST(cu.cuStreamSynchronize(stream));
	say("graph reuse used MiB", graph_mib(0));
	say("graph reuse reserved MiB", graph_mib(2));
	ASK("graph launch that frees by itself", cu.cuGraphLaunch(exec, stream));
	MUST(cu.cuStreamSynchronize(stream));
	say("graph reuse used still MiB", graph_mib(0));
	MUST(cu.cuMemFree_v2(second.dptr));
	MUST(cu.cuGraphExecDestroy(exec));
	MUST(cu.cuGraphDestroy(graph));
	MUST(cu.cuDeviceGraphMemTrim(0));
	say_used("graph all gone MiB");
	ASK("graph node free of unknown",
	    cu.cuGraphAddMemFreeNode(&node, child, NULL, 0, 0x12345000));
	ASK("graph exec NULL", cu.cuGraphInstantiateWithFlags(NULL, child, 0));
	ASK("graph flags 256", cu.cuGraphInstantiateWithFlags(&exec, child, 256));
	MUST(cu.cuGraphInstantiateWithFlags(&exec, child, 0));
	ASK("graph empty launch", cu.cuGraphLaunch(exec, stream));
	MUST(cu.cuStreamSynchronize(stream));
	MUST(cu.cuStreamDestroy_v2(stream));
}

/* ---- other processes ---- */

static void processes(void)
{
	CUipcMemHandle handle;
	CUdeviceptr pointer, opened;
	int status;
	pid_t child;

	MUST(cu.cuMemAlloc_v2(&pointer, 4 * MIB));
	ASK("ipc handle", cu.cuIpcGetMemHandle(&handle, pointer));
	ASK("ipc open own", cu.cuIpcOpenMemHandle_v2(&opened, handle, 1));
	ASK("ipc open flags 0", cu.cuIpcOpenMemHandle_v2(&opened, handle, 0));
	ASK("ipc close unknown", cu.cuIpcCloseMemHandle(0x12345000));
	MUST(cu.cuMemFree_v2(pointer));
	fflush(stdout);
	child = fork();
	if (child == 0) {
		CUcontext current;
		CUdevice device;
		size_t a, b;

		ASK("child cuInit", cu.cuInit(0));
		ASK("child cuDeviceGet", cu.cuDeviceGet(&device, 0));
		ASK("child cuCtxGetCurrent", cu.cuCtxGetCurrent(&current));
		ASK("child cuMemAlloc", cu.cuMemAlloc_v2(&pointer, 4096));
		ASK("child cuMemGetInfo", cu.cuMemGetInfo_v2(&a, &b));
		ASK("child cuDriverGetVersion", cu.cuDriverGetVersion(&status));
		_exit(0);
	}
	waitpid(child, &status, 0);
	say("child ended by itself", WIFEXITED(status) && WEXITSTATUS(status) == 0);
	ASK("parent goes on", cu.cuMemAlloc_v2(&pointer, 4096));
	ASK("parent frees", cu.cuMemFree_v2(pointer));
}

int main(void)
{
	CUmodule module;

	program_load();
	if (!program_load_nvml()) {
		fprintf(stderr, "no NVML\n");
		return 77;
	}
	signal(SIGSEGV, crashed);
	cold();
	lookup();
	no_context();
	contexts();
	MUST(cu.cuModuleLoadData(&module, program_ptx));
	ASK("module garbage", cu.cuModuleLoadData((CUmodule[]){ NULL }, "this is no image at all"));
	ASK("module NULL", cu.cuModuleLoadData((CUmodule[]){ NULL }, NULL));
	ASK("module no such file", cu.cuModuleLoad((CUmodule[]){ NULL }, "/nonexistent"));
	MUST(cu.cuModuleGetFunction(&busy, module, "vgpu_busy"));
	MUST(cu.cuModuleGetFunction(&one, module, "vgpu_one"));
	ASK("module no such function", cu.cuModuleGetFunction((CUfunction[]){ NULL }, module, "x"));
	MUST(launch_on(NULL));
	MUST(cu.cuCtxSynchronize());
	memory();
	pools();
	virtual_memory();
	work();
	captures();
	graphs();
	processes();
	ASK("primary release at the end", cu.cuDevicePrimaryCtxRelease_v2(0));
	ASK("after it cuMemAlloc", cu.cuMemAlloc_v2((CUdeviceptr[]){ 0 }, 4096));
	return 0;
}
