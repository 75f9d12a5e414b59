/* SPDX-License-Identifier: Apache-2.0 */
/* The fake libcuda.so.1 as programs see it; what a real card answers to mistakes is in test_facts.c. */
#include "unit/fake/child.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "fake/cuda_more_abi.h"

#define VG_CUDA(symbol, base, version, flavour, class, params) extern CUresult symbol params;
#include "libvgpu/cuda_symbols.def"
#define CALL(symbol, base, version, params) extern CUresult symbol params;
#include "gpu/programs/calls.def"
#undef CALL
#undef VG_CUDA

extern CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes,
				     CUstream stream);
extern CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned int value, size_t count);
extern CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D *what);
extern CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t *offset,
				   size_t *bytes);
extern CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule module,
				     const char *name);
extern CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name);
extern CUresult cuKernelGetFunction(CUfunction *function, CUkernel kernel);
extern CUresult cuMemExportToShareableHandle(void *shareable, CUmemGenericAllocationHandle handle,
					     int type, unsigned long long flags);
extern CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle,
					       void *shareable, int type);
extern CUresult cuDeviceCanAccessPeer(int *can, CUdevice from, CUdevice to);
extern CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, uint32_t value,
				    unsigned int flags);
extern CUresult cuGraphAddHostNode(CUgraphNode *node, CUgraph graph, const CUgraphNode *needs,
				   size_t count, const CUDA_HOST_NODE_PARAMS *params);
extern CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode *from,
				       const CUgraphNode *to, size_t count);
extern CUresult cuIpcGetEventHandle(CUipcEventHandle *handle, CUevent event);
extern CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);
extern CUresult cuGLInit(void);

#define MIB (1ull << 20)

static const char ptx[] =
	".version 7.0 // .entry not_here()\n.target sm_70\n.address_size 64\n"
	".global .align 8 .b8 table[3145728];\n.visible .global .u32 counter = 5;\n"
	".visible .entry vgpu_busy(.param .u64 p_ns)\n{ ret; }\n"
	"/* .entry nor_here() */\n"
	".visible .entry many(.param .u32 a, .param .u64 b, .param .align 4 .b8 c[12], .param .f32 d)\n"
	"{ ld.global.u32 %r1, [counter]; ret; }\n"
	".entry none()\n{ ret; }\n.entry timed_250us(.param .u32 x)\n{ ret; }\n";

static CUcontext context;
static CUfunction busy;

static void start(void)
{
	CUmodule module;

	CHECK_EQ(cuInit(0), 0);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQ(cuCtxSetCurrent(context), 0);
	CHECK_EQ(cuModuleLoadData(&module, ptx), 0);
	CHECK_EQ(cuModuleGetFunction(&busy, module, "vgpu_busy"), 0);
}

static void work(CUstream stream, uint64_t ns)
{
	void *params[] = { &ns };

	CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
}

static size_t free_mib(void)
{
	size_t now, total;

	CHECK_EQ(cuMemGetInfo_v2(&now, &total), 0);
	return now / MIB;
}

/* ---- which devices ---- */

static const char *visible, *order, *expected;

static void visible_body(void)
{
	char seen[256] = "";
	int count = 0;

	if (visible)
		setenv("CUDA_VISIBLE_DEVICES", visible, 1);
	if (order)
		setenv("CUDA_DEVICE_ORDER", order, 1);
	if (cuInit(0) == CUDA_ERROR_NO_DEVICE) {
		CHECK(strcmp(expected, "") == 0);
		return;
	}
	CHECK_EQ(cuDeviceGetCount(&count), 0);
	for (int i = 0; i < count; i++) {
		char id[32];

		CHECK_EQ(cuDeviceGetPCIBusId(id, sizeof(id), i), 0);
		seen[i] = id[9];
	}
	if (strcmp(seen, expected) != 0) {
		fprintf(stderr, "visible %s: saw %s, not %s\n", visible ? visible : "(unset)", seen,
			expected);
		_exit(1);
	}
}

/* Cards by their PCI device number; c has most SMs, b and d are split. */
static void test_visible(void **state)
{
	static const char devices[] =
		"uuid=GPU-aaaaaaaa-0000-0000-0000-000000000000 pci=0:0:a sms=100\n"
		"uuid=GPU-bbbbbbbb-0000-0000-0000-000000000000 pci=0:0:b sms=100 mig=1g.18gb,2g.35gb\n"
		"uuid=GPU-cccccccc-0000-0000-0000-000000000000 pci=0:0:c sms=132\n"
		"uuid=GPU-aabbbbbb-0000-0000-0000-000000000000 pci=0:0:d sms=50\n";
	static const struct {
		const char *visible, *order, *expected;
	} rows[] = {
		{ NULL, NULL, "CAD" },
		{ NULL, "PCI_BUS_ID", "ACD" },
		{ "", NULL, "" },
		{ "-1", NULL, "" },
		{ "0", NULL, "C" },
		{ "0", "PCI_BUS_ID", "A" },
		{ "2,0", "PCI_BUS_ID", "CA" },
		{ " 2 , 0 ", "PCI_BUS_ID", "CA" },
		{ "0,9,2", "PCI_BUS_ID", "A" },
		{ "0,x,2", "PCI_BUS_ID", "A" },
		{ "0,0", "PCI_BUS_ID", "" },
		{ "1", "PCI_BUS_ID", "" }, /* split: has no number */
		{ "GPU-cccccccc-0000-0000-0000-000000000000,GPU-aaa", NULL, "CA" },
		{ "gpu-CCC", NULL, "C" },
		{ "GPU-aa", NULL, "A" }, /* the first that fits */
		{ "GPU-aab,0", "PCI_BUS_ID", "DA" },
		{ "GPU-", NULL, "" },
		{ "GPU-dd", NULL, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		visible = rows[i].visible;
		order = rows[i].order;
		expected = rows[i].expected;
		run_on(devices, visible_body);
	}
}

static void mig_body(void)
{
	CUuuid plain, mig;
	size_t total;
	char name[64];
	int sms, count;

	CHECK_EQ(cuInit(0), 0);
	CHECK_EQ(cuDeviceGetCount(&count), 0);
	CHECK_EQ(count, 1);
	CHECK_EQ(cuDeviceGetName(name, sizeof(name), 0), 0);
	CHECK(strcmp(name, "NVIDIA H200 MIG 2g.35gb") == 0);
	CHECK_EQ(cuDeviceTotalMem_v2(&total, 0), 0);
	CHECK_EQ(total, 35ull << 30);
	CHECK_EQ(cuDeviceGetAttribute(&sms, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0), 0);
	CHECK_EQ(sms, 32);
	/* The old call names the card, the new one the instance. */
	CHECK_EQ(cuDeviceGetUuid(&plain, 0), 0);
	CHECK_EQ(cuDeviceGetUuid_v2(&mig, 0), 0);
	CHECK(memcmp(&plain, &mig, sizeof(mig)) != 0);
	CHECK_EQ(plain.bytes[0], 0xab);
}

static void test_mig(void **state)
{
	(void)state;
	run_on("mig=2g.35gb,1g.18gb uuid=GPU-ab000000-0000-0000-0000-000000000000", mig_body);
}

/* ---- kernels ---- */

static void modules_body(void)
{
	static const struct {
		size_t offset, bytes;
	} params[] = { { 0, 4 }, { 8, 8 }, { 16, 12 }, { 28, 4 } };
	CUmodule module;
	CUfunction function, second;
	CUlibrary library;
	CUkernel kernel;
	CUdeviceptr pointer;
	size_t offset, bytes, before;

	CHECK_EQ(cuInit(0), 0);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQ(cuCtxSetCurrent(context), 0);
	before = free_mib();
	CHECK_EQ(cuModuleLoadData(&module, ptx), 0);
	/* 3 MiB of its own, and a page for what is small. */
	CHECK_EQ(before - free_mib(), 6);
	CHECK_EQ(cuModuleGetFunction(&function, module, "many"), 0);
	for (size_t i = 0; i < 4; i++) {
		CHECK_EQ(cuFuncGetParamInfo(function, i, &offset, &bytes), 0);
		CHECK_EQ(offset, params[i].offset);
		CHECK_EQ(bytes, params[i].bytes);
	}
	CHECK_EQ(cuFuncGetParamInfo(function, 4, &offset, &bytes), 1);
	CHECK_EQ(cuModuleGetFunction(&second, module, "none"), 0);
	CHECK_EQ(cuFuncGetParamInfo(second, 0, &offset, &bytes), 1);
	CHECK_EQ(cuModuleGetFunction(&second, module, "not_here"), 500);
	CHECK_EQ(cuModuleGetFunction(&second, module, "nor_here"), 500);
	CHECK_EQ(cuModuleGetFunction(&second, module, "man"), 500);
	CHECK_EQ(cuModuleGetGlobal_v2(&pointer, &bytes, module, "counter"), 0);
	CHECK_EQ(bytes, 4);
	CHECK_EQ(cuModuleGetGlobal_v2(&pointer, &bytes, module, "table"), 0);
	CHECK_EQ(bytes, 3145728);
	CHECK_EQ(cuModuleUnload(module), 0);
	CHECK_EQ(before, free_mib());
	CHECK_EQ(cuModuleUnload(module), CUDA_ERROR_INVALID_HANDLE);

	CHECK_EQ(cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), 0);
	CHECK_EQ(before, free_mib());
	CHECK_EQ(cuLibraryGetKernel(&kernel, library, "timed_250us"), 0);
	CHECK_EQ(cuLibraryGetKernel(&kernel, library, "absent"), 500);
	CHECK_EQ(cuKernelGetFunction(&function, kernel), 0);
	CHECK_EQ(before - free_mib(), 6); /* loaded into the context by that */
	CHECK_EQ(cuLibraryUnload(library), 0);
	CHECK_EQ(before, free_mib());
}

static void test_modules(void **state)
{
	(void)state;
	run_on(NULL, modules_body);
}

static CUfunction get(const char *name)
{
	CUfunction function;
	CUmodule module;

	CHECK_EQ(cuModuleLoadData(&module, ptx), 0);
	CHECK_EQ(cuModuleGetFunction(&function, module, name), 0);
	return function;
}

static void durations_body(void)
{
	static const struct {
		const char *name;
		unsigned int grid, block;
		double ms;
	} rows[] = {
		{ "vgpu_busy", 1, 32, 3 },
		{ "vgpu_busy", 132 * 16, 128, 3 },     /* just fits */
		{ "vgpu_busy", 132 * 16 + 1, 128, 6 }, /* a second wave */
		{ "vgpu_busy", 132 * 32, 32, 3 },      /* 32 blocks on an SM at most */
		{ "vgpu_busy", 132 * 32 + 1, 32, 6 },
		{ "vgpu_busy", 264, 1024, 3 },
		{ "vgpu_busy", 265, 1024, 6 },
		{ "timed_250us", 1, 32, 0.25 },
		{ "none", 1, 32, 0.007 },
	};
	uint64_t ns = 3000000;
	unsigned int zero = 0;
	CUevent from, to;

	start();
	CHECK_EQ(cuEventCreate(&from, 0), 0);
	CHECK_EQ(cuEventCreate(&to, 0), 0);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CUfunction function = get(rows[i].name);
		void *params[] = { *rows[i].name == 'v' ? (void *)&ns : (void *)&zero };
		uint64_t first = 1000000;
		void *first_params[] = { &first };
		float ms;

		/* Something before it, so that nothing waits for the program in between. */
		CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, NULL, first_params, NULL), 0);
		CHECK_EQ(cuEventRecord(from, NULL), 0);
		CHECK_EQ(cuLaunchKernel(function, rows[i].grid, 1, 1, rows[i].block, 1, 1, 0, NULL,
					params, NULL),
			 0);
		CHECK_EQ(cuEventRecord(to, NULL), 0);
		CHECK_EQ(cuEventSynchronize(to), 0);
		CHECK_EQ(cuEventElapsedTime(&ms, from, to), 0);
		/* The record itself takes 1 us. */
		if ((double)ms < rows[i].ms + 0.0009 || (double)ms > rows[i].ms + 0.0011) {
			fprintf(stderr, "row %zu: %f ms\n", i, (double)ms);
			_exit(1);
		}
	}
}

static void test_durations(void **state)
{
	(void)state;
	run_on("kernel_ns=7000", durations_body);
}

/* ---- streams ---- */

static _Atomic int sequence;
static int order_of[8];

static void note(void *place)
{
	*(int *)place = ++sequence;
}

static void note_slow(void *place)
{
	sleep_ms(20);
	note(place);
}

static void host_functions_body(void)
{
	CUstream first, second;
	CUevent event, late;
	float ms;

	start();
	CHECK_EQ(cuStreamCreate(&first, CU_STREAM_NON_BLOCKING), 0);
	CHECK_EQ(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), 0);
	CHECK_EQ(cuEventCreate(&event, 0), 0);
	CHECK_EQ(cuEventCreate(&late, 0), 0);
	/* A function runs after the work before it and holds up what is behind it, and whoever waits
	 * for that, in another stream too. */
	CHECK_EQ(cuEventRecord(event, first), 0);
	work(first, 10000000);
	CHECK_EQ(cuLaunchHostFunc(first, note_slow, &order_of[0]), 0);
	CHECK_EQ(cuEventRecord(late, first), 0);
	CHECK_EQ(cuStreamWaitEvent(second, late, 0), 0);
	CHECK_EQ(cuLaunchHostFunc(second, note, &order_of[1]), 0);
	CHECK_EQ(cuStreamQuery(second), CUDA_ERROR_NOT_READY);
	CHECK_EQ(sequence, 0);
	CHECK_EQ(cuStreamSynchronize(second), 0);
	CHECK_EQ(order_of[0], 1);
	CHECK_EQ(order_of[1], 2);
	CHECK_EQ(cuEventElapsedTime(&ms, event, late), 0);
	CHECK(ms >= 30.0f && ms < 500.0f);
	CHECK_EQ(cuStreamSynchronize(first), 0);
	CHECK_EQ(cuStreamQuery(first), 0);

	/* A value in memory that somebody writes. */
	{
		CUdeviceptr flag;

		CHECK_EQ(cuMemAlloc_v2(&flag, 4), 0);
		CHECK_EQ(cuMemsetD32_v2(flag, 0, 1), 0);
		CHECK_EQ(cuCtxSynchronize(), 0);
		CHECK_EQ(cuStreamWaitValue32(first, flag, 3, CU_STREAM_WAIT_VALUE_GEQ), 0);
		CHECK_EQ(cuLaunchHostFunc(first, note, &order_of[2]), 0);
		sleep_ms(10);
		CHECK_EQ(order_of[2], 0);
		__atomic_store_n((uint32_t *)(uintptr_t)flag, 2, __ATOMIC_RELEASE);
		sleep_ms(10);
		CHECK_EQ(order_of[2], 0);
		__atomic_store_n((uint32_t *)(uintptr_t)flag, 4, __ATOMIC_RELEASE);
		CHECK_EQ(cuStreamSynchronize(first), 0);
		CHECK_EQ(order_of[2], 3);
	}
	/* Destroying a stream lets it finish. */
	CHECK_EQ(cuLaunchHostFunc(second, note_slow, &order_of[3]), 0);
	CHECK_EQ(cuStreamDestroy_v2(second), 0);
	CHECK_EQ(order_of[3], 4);
}

static void test_host_functions(void **state)
{
	(void)state;
	run_on(NULL, host_functions_body);
}

/* A stream of one card waits for an event of another. */
static void two_cards_body(void)
{
	CUcontext other;
	CUstream here, there;
	CUevent event;
	uint64_t begun;
	int can;

	start();
	CHECK_EQ(cuStreamCreate(&here, CU_STREAM_NON_BLOCKING), 0);
	CHECK_EQ(cuEventCreate(&event, 0), 0);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&other, 1), 0);
	CHECK_EQ(cuCtxPushCurrent_v2(other), 0);
	CHECK_EQ(cuStreamCreate(&there, CU_STREAM_NON_BLOCKING), 0);
	CHECK_EQ(cuEventRecord(event, there), CUDA_ERROR_INVALID_HANDLE); /* of the other context */
	begun = clock_ns();
	work(here, 30000000);
	CHECK_EQ(cuEventRecord(event, here), 0);
	CHECK_EQ(cuStreamWaitEvent(there, event, 0), 0);
	CHECK_EQ(cuLaunchHostFunc(there, note, &order_of[0]), 0);
	CHECK_EQ(cuStreamSynchronize(there), 0);
	CHECK(clock_ns() - begun >= 30000000);
	CHECK_EQ(order_of[0], 1);
	/* The function is of the first card's context. */
	{
		uint64_t ns = 1;
		void *params[] = { &ns };

		CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 1, 1, 1, 0, there, params, NULL),
			 CUDA_ERROR_INVALID_HANDLE);
	}
	CHECK_EQ(cuDeviceCanAccessPeer(&can, 0, 1), 0);
	CHECK_EQ(can, 1);
	CHECK_EQ(cuDeviceCanAccessPeer(&can, 0, 0), 0);
	CHECK_EQ(can, 0);
}

static void test_two_cards(void **state)
{
	(void)state;
	run_on("count=2", two_cards_body);
}

/* More launches than the card takes ahead: the launch waits, and nothing is lost. */
static void ahead_body(void)
{
	CUevent from, to;
	float ms;

	start();
	CHECK_EQ(cuEventCreate(&from, 0), 0);
	CHECK_EQ(cuEventCreate(&to, 0), 0);
	CHECK_EQ(cuEventRecord(from, NULL), 0);
	for (int i = 0; i < 5000; i++)
		work(NULL, 10000);
	CHECK_EQ(cuEventRecord(to, NULL), 0);
	CHECK_EQ(cuEventSynchronize(to), 0);
	CHECK_EQ(cuEventElapsedTime(&ms, from, to), 0);
	CHECK(ms >= 50.0f);
}

static void test_ahead(void **state)
{
	(void)state;
	run_on(NULL, ahead_body);
}

/* ---- data ---- */

static void copies_body(void)
{
	enum { BYTES = 300000 };
	static unsigned char from[BYTES], to[BYTES];
	CUdeviceptr first, second;
	CUDA_ARRAY_DESCRIPTOR shape = { 100, 50, 0x01, 4 };
	CUDA_MEMCPY2D box = { 0 };
	CUarray array;

	start();
	for (int i = 0; i < BYTES; i++)
		from[i] = (unsigned char)(i * 7);
	CHECK_EQ(cuMemAlloc_v2(&first, BYTES), 0);
	CHECK_EQ(cuMemAlloc_v2(&second, 4 * MIB), 0);
	CHECK_EQ(cuMemcpyHtoD_v2(first, from, BYTES), 0);
	CHECK_EQ(cuMemcpyDtoDAsync_v2(second + 1000, first, BYTES, NULL), 0);
	CHECK_EQ(cuMemcpyDtoH_v2(to, second + 1000, BYTES), 0);
	CHECK(memcmp(from, to, BYTES) == 0);
	/* Half zeros over data: nothing is skipped that must change. */
	CHECK_EQ(cuMemsetD8_v2(second, 0, 4 * MIB), 0);
	CHECK_EQ(cuMemcpyDtoH_v2(to, second + 1000, BYTES), 0);
	for (int i = 0; i < BYTES; i++)
		CHECK_EQ(to[i], 0);
	CHECK_EQ(cuMemsetD32_v2(second, 0x01020304, 10), 0);
	CHECK_EQ(cuMemcpyDtoH_v2(to, second, 44), 0);
	CHECK_EQ(to[39], 1);
	CHECK_EQ(to[40], 0);
	CHECK_EQ(cuMemsetD32_v2(second + 2, 0, 1), 1); /* not on a boundary */
	CHECK_EQ(cuMemcpyHtoD_v2(first, from, BYTES + 1000), 1);
	/* A box into an array and back, with other strides. */
	CHECK_EQ(cuArrayCreate_v2(&array, &shape), 0);
	box.srcMemoryType = CU_MEMORYTYPE_HOST;
	box.srcHost = from;
	box.srcPitch = 700;
	box.dstMemoryType = CU_MEMORYTYPE_ARRAY;
	box.dstArray = array;
	box.dstXInBytes = 40;
	box.dstY = 10;
	box.WidthInBytes = 360;
	box.Height = 40;
	CHECK_EQ(cuMemcpy2D_v2(&box), 0);
	box.WidthInBytes = 361;
	CHECK_EQ(cuMemcpy2D_v2(&box), 1);
	memset(to, 0, sizeof(to));
	box = (CUDA_MEMCPY2D){ .srcMemoryType = CU_MEMORYTYPE_ARRAY,
			       .srcArray = array,
			       .srcXInBytes = 40,
			       .srcY = 10,
			       .dstMemoryType = CU_MEMORYTYPE_HOST,
			       .dstHost = to,
			       .dstPitch = 400,
			       .WidthInBytes = 360,
			       .Height = 40 };
	CHECK_EQ(cuMemcpy2D_v2(&box), 0);
	for (int y = 0; y < 40; y++)
		CHECK(memcmp(from + y * 700, to + y * 400, 360) == 0);
	CHECK_EQ(cuArrayDestroy(array), 0);
}

static void test_copies(void **state)
{
	(void)state;
	run_on(NULL, copies_body);
}

/* One handle at two addresses is one memory; a card's worth of it costs nothing that is not touched. */
static void virtual_body(void)
{
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUmemAccessDesc access = { { 1, 0 }, 3 };
	CUmemGenericAllocationHandle handle;
	CUdeviceptr range;
	size_t before;

	start();
	before = free_mib();
	CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &prop, 0), 0);
	CHECK_EQ(cuMemAddressReserve(&range, 8 * MIB, 0, 0, 0), 0);
	CHECK_EQ(range % (2 * MIB), 0);
	CHECK_EQ(cuMemMap(range, 2 * MIB, 0, handle, 0), 0);
	CHECK_EQ(cuMemMap(range + 4 * MIB, 2 * MIB, 0, handle, 0), 0);
	CHECK_EQ(cuMemSetAccess(range, 2 * MIB, &access, 1), 0);
	CHECK_EQ(cuMemSetAccess(range + 4 * MIB, 2 * MIB, &access, 1), 0);
	*(int *)(uintptr_t)(range + 100) = 42;
	CHECK_EQ(*(int *)(uintptr_t)(range + 4 * MIB + 100), 42);
	CHECK_EQ(before - free_mib(), 2);
	CHECK_EQ(cuMemRelease(handle), 0);
	CHECK_EQ(cuMemUnmap(range, 2 * MIB), 0);
	CHECK_EQ(before - free_mib(), 2);
	CHECK_EQ(cuMemUnmap(range + 4 * MIB, 2 * MIB), 0);
	CHECK_EQ(before, free_mib());
	CHECK_EQ(cuMemAddressFree(range, 8 * MIB), 0);
	/* All of the card in one piece, and no byte more. */
	CHECK_EQ(cuMemAlloc_v2(&range, before * MIB / (2 * MIB) * (2 * MIB)), 0);
	CHECK(free_mib() <= 1);
	CHECK_EQ(cuMemCreate(&handle, 2 * MIB, &prop, 0), CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQ(cuMemFree_v2(range), 0);
}

static void test_virtual(void **state)
{
	(void)state;
	run_on(NULL, virtual_body);
}

/* ---- graphs ---- */

static void graphs_body(void)
{
	CUDA_HOST_NODE_PARAMS hosts[4];
	CUgraphNode nodes[4], from[3], to[3];
	CUstream stream, second;
	CUevent fork_event, join_event, begun, ended;
	CUgraph graph;
	CUgraphExec exec;
	uint64_t ns = 5000000;
	void *params[] = { &ns };
	float ms;

	start();
	CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	CHECK_EQ(cuStreamCreate(&second, CU_STREAM_NON_BLOCKING), 0);
	/* Added in one order, dependent in the other. */
	CHECK_EQ(cuGraphCreate(&graph, 0), 0);
	for (int i = 0; i < 4; i++) {
		hosts[i] = (CUDA_HOST_NODE_PARAMS){ note, &order_of[i] };
		CHECK_EQ(cuGraphAddHostNode(&nodes[i], graph, NULL, 0, &hosts[i]), 0);
	}
	for (int i = 0; i < 3; i++) {
		from[i] = nodes[i + 1];
		to[i] = nodes[i];
	}
	CHECK_EQ(cuGraphAddDependencies(graph, from, to, 3), 0);
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	CHECK_EQ(cuGraphLaunch(exec, stream), 0);
	CHECK_EQ(cuStreamSynchronize(stream), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(order_of[i], 4 - i);
	CHECK_EQ(cuGraphExecDestroy(exec), 0);
	/* A circle. */
	CHECK_EQ(cuGraphAddDependencies(graph, &nodes[0], &nodes[3], 1), 0);
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), 1);
	CHECK_EQ(cuGraphDestroy(graph), 0);

	/* Captured over two streams; the parameter's value is the one at capture. */
	CHECK_EQ(cuEventCreate(&fork_event, 0), 0);
	CHECK_EQ(cuEventCreate(&join_event, 0), 0);
	CHECK_EQ(cuEventCreate(&begun, 0), 0);
	CHECK_EQ(cuEventCreate(&ended, 0), 0);
	CHECK_EQ(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), 0);
	CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
	CHECK_EQ(cuEventRecord(fork_event, stream), 0);
	CHECK_EQ(cuStreamWaitEvent(second, fork_event, 0), 0);
	CHECK_EQ(cuLaunchKernel(busy, 1, 1, 1, 32, 1, 1, 0, second, params, NULL), 0);
	CHECK_EQ(cuLaunchHostFunc(second, note, &order_of[4]), 0);
	CHECK_EQ(cuEventRecord(join_event, second), 0);
	CHECK_EQ(cuStreamWaitEvent(stream, join_event, 0), 0);
	CHECK_EQ(cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQ(order_of[4], 0);
	ns = 1;
	CHECK_EQ(cuGraphInstantiateWithFlags(&exec, graph, 0), 0);
	CHECK_EQ(cuGraphDestroy(graph), 0);
	for (int round = 1; round <= 2; round++) {
		CHECK_EQ(cuEventRecord(begun, stream), 0);
		CHECK_EQ(cuGraphLaunch(exec, stream), 0);
		CHECK_EQ(cuEventRecord(ended, stream), 0);
		CHECK_EQ(cuEventSynchronize(ended), 0);
		CHECK_EQ(order_of[4], 4 + round);
		CHECK_EQ(cuEventElapsedTime(&ms, begun, ended), 0);
		CHECK(ms >= 10.0f);
	}
	CHECK_EQ(cuGraphExecDestroy(exec), 0);
}

static void test_graphs(void **state)
{
	(void)state;
	run_on(NULL, graphs_body);
}

/* ---- several processes ---- */

static struct {
	CUipcMemHandle handle;
	CUipcEventHandle event;
	_Atomic int step;
} * board;

static void wait_step(int step)
{
	while (board->step < step)
		sleep_ms(1);
}

static void exporter_body(void)
{
	CUdeviceptr large, small;

	start();
	CHECK_EQ(cuMemAlloc_v2(&large, 8 * MIB), 0);
	CHECK_EQ(cuMemAlloc_v2(&small, 100), 0);
	CHECK_EQ(cuMemsetD8_v2(large, 7, 100), 0);
	CHECK_EQ(cuMemsetD8_v2(small, 9, 100), 0);
	CHECK_EQ(cuIpcGetMemHandle(&board->handle, large), 0);
	board->step = 1;
	wait_step(2);
	CHECK_EQ(*(unsigned char *)(uintptr_t)(large + 5), 77);
	CHECK_EQ(cuIpcGetMemHandle(&board->handle, small), 0);
	board->step = 3;
	wait_step(4);
	CHECK_EQ(cuMemFree_v2(large), 0);
	CHECK_EQ(cuMemFree_v2(small), 0);
}

static void importer_body(void)
{
	CUdeviceptr pointer, again;

	start();
	wait_step(1);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&pointer, board->handle, 1), 0);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&again, board->handle, 1), 0);
	CHECK_EQ(pointer, again);
	CHECK_EQ(*(unsigned char *)(uintptr_t)(pointer + 99), 7);
	CHECK_EQ(*(unsigned char *)(uintptr_t)(pointer + 100), 0);
	*(unsigned char *)(uintptr_t)(pointer + 5) = 77;
	CHECK_EQ(cuMemFree_v2(pointer), 1);
	board->step = 2;
	wait_step(3);
	CHECK_EQ(cuIpcOpenMemHandle_v2(&again, board->handle, 1), 0);
	CHECK_EQ(*(unsigned char *)(uintptr_t)(again + 99), 9);
	CHECK_EQ(cuIpcCloseMemHandle(again), 0);
	CHECK_EQ(cuIpcCloseMemHandle(pointer), 0);
	CHECK_EQ(cuIpcCloseMemHandle(pointer), 0); /* opened twice */
	CHECK_EQ(cuIpcCloseMemHandle(pointer), 1);
	board->step = 4;
}

static void test_ipc(void **state)
{
	char path[64];
	pid_t exporter, importer;

	(void)state;
	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(board != MAP_FAILED);
	state_path(path, sizeof(path));
	exporter = child_start(NULL, path, exporter_body);
	importer = child_start(NULL, path, importer_body);
	assert_int_equal(child_end(importer), 0);
	assert_int_equal(child_end(exporter), 0);
	state_remove(path);
	munmap(board, 4096);
}

/* An event recorded in one process and waited for in another, whose streams it holds up. */
static void recorder_body(void)
{
	CUevent event, plain;

	start();
	CHECK_EQ(cuEventCreate(&plain, 0), 0);
	CHECK_EQ(cuEventCreate(&event, CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQ(cuIpcGetEventHandle(&board->event, plain), CUDA_ERROR_INVALID_HANDLE);
	CHECK_EQ(cuIpcGetEventHandle(&board->event, event), 0);
	CHECK_EQ(cuIpcOpenEventHandle(&plain, board->event), CUDA_ERROR_INVALID_CONTEXT);
	board->step = 1;
	wait_step(2);
	work(NULL, 200000000);
	CHECK_EQ(cuEventRecord(event, NULL), 0);
	board->step = 3;
	/* It calls the driver no more until the other is through. */
	wait_step(4);
	CHECK_EQ(cuEventQuery(event), 0);
	CHECK_EQ(cuEventDestroy_v2(event), 0);
}

static void waiter_body(void)
{
	CUevent event;
	CUstream stream;

	start();
	CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	wait_step(1);
	CHECK_EQ(cuIpcOpenEventHandle(&event, board->event), 0);
	CHECK_EQ(cuEventQuery(event), 0);
	CHECK_EQ(cuEventSynchronize(event), 0);
	board->step = 2;
	wait_step(3);
	CHECK_EQ(cuEventQuery(event), CUDA_ERROR_NOT_READY);
	CHECK_EQ(cuStreamWaitEvent(stream, event, 0), 0);
	CHECK_EQ(cuLaunchHostFunc(stream, note, &order_of[0]), 0);
	CHECK_EQ(cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
	CHECK_EQ(order_of[0], 0);
	CHECK_EQ(cuEventSynchronize(event), 0);
	CHECK_EQ(cuEventQuery(event), 0);
	CHECK_EQ(cuStreamSynchronize(stream), 0);
	CHECK_EQ(order_of[0], 1);
	CHECK_EQ(cuEventDestroy_v2(event), 0);
	board->step = 4;
}

static void test_ipc_events(void **state)
{
	char path[64];
	pid_t recorder, waiter;

	(void)state;
	board = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(board != MAP_FAILED);
	state_path(path, sizeof(path));
	recorder = child_start(NULL, path, recorder_body);
	waiter = child_start(NULL, path, waiter_body);
	assert_int_equal(child_end(waiter), 0);
	assert_int_equal(child_end(recorder), 0);
	state_remove(path);
	munmap(board, 4096);
}

/* A handle passed on as a descriptor: the memory lives until the last process lets go. */
static void shareable_body(void)
{
	CUmemAllocationProp prop = { .type = 1, .requestedHandleTypes = 1, .location = { 1, 0 } };
	CUmemAllocationProp plain = { .type = 1, .location = { 1, 0 } };
	CUmemAccessDesc access = { { 1, 0 }, 3 };
	CUmemGenericAllocationHandle handle, other;
	int fd, status, pipes[2];
	size_t before;
	pid_t pid;

	CHECK_EQ(pipe(pipes), 0);
	pid = fork();
	if (pid == 0) {
		CUdeviceptr range;
		char path[64];

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* The descriptor through /proc, as through a socket. */
		CHECK(read(pipes[0], path, sizeof(path)) > 0);
		start();
		fd = open(path, O_RDWR);
		CHECK(fd >= 0);
		CHECK_EQ(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, 1), 0);
		close(fd);
		CHECK_EQ(cuMemAddressReserve(&range, 4 * MIB, 0, 0, 0), 0);
		CHECK_EQ(cuMemMap(range, 4 * MIB, 0, handle, 0), 0);
		CHECK_EQ(cuMemSetAccess(range, 4 * MIB, &access, 1), 0);
		*(int *)(uintptr_t)range = 99;
		raise(SIGSTOP);
		_exit(0);
	}
	start();
	before = free_mib();
	CHECK_EQ(cuMemCreate(&other, 2 * MIB, &plain, 0), 0);
	CHECK_EQ(cuMemExportToShareableHandle(&fd, other, 1, 0), 1); /* was not made for it */
	CHECK_EQ(cuMemRelease(other), 0);
	CHECK_EQ(cuMemCreate(&handle, 4 * MIB, &prop, 0), 0);
	CHECK_EQ(cuMemExportToShareableHandle(&fd, handle, 1, 0), 0);
	CHECK_EQ(before - free_mib(), 4);
	{
		char path[64];

		snprintf(path, sizeof(path), "/proc/%d/fd/%d", getpid(), fd);
		CHECK(write(pipes[1], path, sizeof(path)) > 0);
	}
	CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
	CHECK(WIFSTOPPED(status));
	CHECK_EQ(cuMemRelease(handle), 0);
	/* Its context costs 518, its module 6. */
	CHECK_EQ(before - free_mib(), 518 + 6 + 4);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(before, free_mib());
}

static void test_shareable(void **state)
{
	(void)state;
	run_on(NULL, shareable_body);
}

/* ---- threads ---- */

static void *thread_body(void *number)
{
	unsigned int seed = (unsigned int)(uintptr_t)number;
	CUstream stream;
	CUevent event;

	CHECK_EQ(cuCtxSetCurrent(context), 0);
	CHECK_EQ(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), 0);
	CHECK_EQ(cuEventCreate(&event, 0), 0);
	for (int i = 0; i < 200; i++) {
		CUdeviceptr pointer;
		int place = 0;

		switch (rand_r(&seed) % 5) {
		case 0:
			CHECK_EQ(cuMemAlloc_v2(&pointer, 1 + (size_t)rand_r(&seed) % 5000000), 0);
			CHECK_EQ(cuMemFree_v2(pointer), 0);
			break;
		case 1:
			CHECK_EQ(cuMemAllocAsync(&pointer, 100000, stream), 0);
			CHECK_EQ(cuMemsetD8Async(pointer, 1, 1000, stream), 0);
			CHECK_EQ(cuMemFreeAsync(pointer, stream), 0);
			break;
		case 2:
			work(stream, 1000);
			CHECK_EQ(cuEventRecord(event, stream), 0);
			CHECK_EQ(cuEventSynchronize(event), 0);
			break;
		case 3:
			CHECK_EQ(cuLaunchHostFunc(stream, note, &place), 0);
			CHECK_EQ(cuStreamSynchronize(stream), 0);
			CHECK(place > 0);
			break;
		default:
			work(CU_STREAM_PER_THREAD, 1000);
			CHECK_EQ(cuStreamSynchronize(CU_STREAM_PER_THREAD), 0);
			break;
		}
	}
	CHECK_EQ(cuStreamDestroy_v2(stream), 0);
	CHECK_EQ(cuEventDestroy_v2(event), 0);
	return NULL;
}

static void threads_body(void)
{
	pthread_t threads[4];
	size_t before;

	start();
	before = free_mib();
	for (uintptr_t i = 0; i < 4; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, thread_body, (void *)(i + 1)), 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(cuCtxSynchronize(), 0);
	CHECK_EQ(before, free_mib());
}

static void test_threads(void **state)
{
	(void)state;
	run_on(NULL, threads_body);
}

/* fork() while other threads are inside the driver: the child can still end, and say that it cannot. */
static void *endless(void *unused)
{
	CUdeviceptr pointer;

	(void)unused;
	CHECK_EQ(cuCtxSetCurrent(context), 0);
	for (;;) {
		if (cuMemAlloc_v2(&pointer, 3 * MIB) == 0)
			cuMemFree_v2(pointer);
	}
	return NULL;
}

static void forks_body(void)
{
	pthread_t threads[2];

	start();
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_create(&threads[i], NULL, endless, NULL), 0);
	for (int i = 0; i < 50; i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			CUdeviceptr pointer;

			alarm(20);
			CHECK_EQ(cuMemAlloc_v2(&pointer, 1), CUDA_ERROR_NOT_INITIALIZED);
			CHECK_EQ(cuInit(0), CUDA_ERROR_NOT_INITIALIZED);
			_exit(0);
		}
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK_EQ(status, 0);
	}
	_exit(0);
}

static void test_forks(void **state)
{
	(void)state;
	run_on(NULL, forks_body);
}

/* ---- what tests ask of the fake ---- */

static void failures_body(void)
{
	static const int codes[] = { 0, 0, 2, 0, 999, 999, 999 };
	CUdeviceptr pointer;

	setenv("VGPU_FAKE_FAIL", "cuMemAlloc_v2:3:2,cuMemAlloc_v2:5+:999,bad,cuInit:2:100", 1);
	CHECK(freopen("/dev/null", "w", stderr) != NULL); /* "bad" is complained about */
	CHECK_EQ(cuInit(0), 0);
	CHECK_EQ(cuInit(0), 100);
	CHECK_EQ(cuInit(0), 0);
	CHECK_EQ(cuDevicePrimaryCtxRetain(&context, 0), 0);
	CHECK_EQ(cuCtxSetCurrent(context), 0);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		CHECK_EQ(cuMemAlloc_v2(&pointer, 100), codes[i]);
}

static void test_failures(void **state)
{
	(void)state;
	run_on(NULL, failures_body);
}

static void calls_body(void)
{
	char path[] = "/tmp/vgpu-fake-calls-XXXXXX", line[2048], wanted[128];
	int fd = mkstemp(path);
	CUdeviceptr pointer;
	FILE *file;
	bool found[4] = { false };

	CHECK(fd >= 0);
	setenv("VGPU_FAKE_CALLS", path, 1);
	CHECK_EQ(cuMemAlloc_v2(&pointer, 5), 3);
	start();
	CHECK_EQ(cuMemAlloc_v2(&pointer, 12345), 0);
	CHECK_EQ(cuMemAllocAsync_ptsz(&pointer, 100, NULL), 0);
	CHECK_EQ(cuGLInit(), CUDA_ERROR_NOT_SUPPORTED);
	file = fdopen(fd, "r");
	CHECK(file != NULL);
	snprintf(wanted, sizeof(wanted), "%d %d ", getpid(), getpid());
	while (fgets(line, sizeof(line), file)) {
		CHECK(strncmp(line, wanted, strlen(wanted)) == 0);
		CHECK(line[strlen(line) - 1] == '\n');
		found[0] |= strstr(line, " cuMemAlloc_v2(pointer=0x") &&
			    strstr(line, ", bytes=5) = 3\n");
		found[1] |= strstr(line, " cuMemAlloc_v2(") && strstr(line, ", bytes=12345) = 0\n");
		found[2] |= strstr(line, " cuMemAllocAsync_ptsz(") &&
			    strstr(line, ", handle=0x2) = 0\n");
		found[3] |= strstr(line, " cuGLInit() = 801\n") != NULL;
	}
	unlink(path);
	for (int i = 0; i < 4; i++)
		CHECK(found[i]);
}

static void test_calls(void **state)
{
	(void)state;
	run_on(NULL, calls_body);
}

/* ---- the list of names ---- */

/* Whatever libvgpu knows is simulated, under the same base, version and flavour. */
static void test_list(void **state)
{
	static const struct {
		const char *symbol, *base, *flavour;
		int version;
	} entries[] = {
#define FAKE_ENTRY(symbol, base, version, flavour) { #symbol, #base, #flavour, version },
#define FAKE_STUB(symbol, base, version, flavour)
#include "fake/cuda_entries.def"
#undef FAKE_ENTRY
#undef FAKE_STUB
	}, known[] = {
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	{ #symbol, #base, #flavour, version },
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
	};
	void *library = dlopen(FAKE_DIR "/libcuda.so.1", RTLD_NOW);

	(void)state;
	assert_non_null(library);
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		bool found = false;

		for (size_t j = 0; j < sizeof(entries) / sizeof(entries[0]) && !found; j++) {
			found = strcmp(entries[j].symbol, known[i].symbol) == 0;
			if (!found)
				continue;
			assert_string_equal(entries[j].base, known[i].base);
			assert_int_equal(entries[j].version, known[i].version);
			assert_int_equal(strcmp(entries[j].flavour, "PTSZ") == 0,
					 strcmp(known[i].flavour, "PTSZ") == 0);
		}
		if (!found)
			fail_msg("the fake does not simulate %s", known[i].symbol);
		assert_non_null(dlsym(library, known[i].symbol));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_visible),
		cmocka_unit_test(test_mig),
		cmocka_unit_test(test_modules),
		cmocka_unit_test(test_durations),
		cmocka_unit_test(test_host_functions),
		cmocka_unit_test(test_two_cards),
		cmocka_unit_test(test_ahead),
		cmocka_unit_test(test_copies),
		cmocka_unit_test(test_virtual),
		cmocka_unit_test(test_graphs),
		cmocka_unit_test(test_ipc),
		cmocka_unit_test(test_ipc_events),
		cmocka_unit_test(test_shareable),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_forks),
		cmocka_unit_test(test_failures),
		cmocka_unit_test(test_calls),
		cmocka_unit_test(test_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
