/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts about a driver that the library's design rests on: do looked-up addresses coincide, what do
 * the calls on our hot paths cost, in which steps does memory really leave the card. Prints; asserts
 * nothing. Run it without the library preloaded.
 */
#include <fcntl.h>
#include <sys/utsname.h>

#include "gpu.h"

static struct gpu_api cu;
static struct gpu_nvml nv;
static nvmlDevice_t nvdev;

static double used_mib(void)
{
	nvmlMemory_t m = { 0 };

	if (nvdev)
		nv.nvmlDeviceGetMemoryInfo(nvdev, &m);
	return (double)m.used / 1048576.0;
}

static double own_mib(void)
{
	nvmlProcessInfo_t list[64];
	unsigned int n = 64;

	if (!nvdev || nv.nvmlDeviceGetComputeRunningProcesses_v3(nvdev, &n, list))
		return -1;
	for (unsigned int i = 0; i < n; i++)
		if (list[i].pid == (unsigned int)getpid())
			return (double)list[i].usedGpuMemory / 1048576.0;
	return n ? -2 : -3;
}

#define COST(name, n, call)                                                                        \
	do {                                                                                       \
		for (int i = 0; i < 100; i++)                                                      \
			(void)(call);                                                              \
		uint64_t t0_ = gpu_now_ns();                                                       \
		for (int i = 0; i < (n); i++)                                                      \
			(void)(call);                                                              \
		printf("cost %-34s %8.1f ns\n", name, (double)(gpu_now_ns() - t0_) / (n));         \
	} while (0)

static void addresses(void)
{
	int same = 0, differ = 0, missing = 0;

#define LEGACY 1
#define PTSZ   2
#define NONE   0
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	do {                                                                                       \
		void *p = NULL;                                                                    \
		int status = -1;                                                                   \
		int rc = cu.cuGetProcAddress_v2(#base, &p, version, flavour, &status);             \
		if (rc || !p || !cu.symbol) {                                                      \
			missing++;                                                                 \
			printf("addr %s@%d: rc %d status %d dlsym %p\n", #symbol, version, rc,     \
			       status, (void *)cu.symbol);                                         \
		} else if (p == (void *)cu.symbol) {                                               \
			same++;                                                                    \
		} else {                                                                           \
			differ++;                                                                  \
			printf("addr %s@%d differs\n", #symbol, version);                          \
		}                                                                                  \
	} while (0);
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
	printf("addresses: same %d differ %d missing %d\n", same, differ, missing);
}

static void steps(void)
{
	static const size_t sizes[] = { 1,       1000,    65536,   600000,  1048576, 1048577,
					1500000, 2097152, 2097153, 3145728, 5000000, 67108864 };
	CUdeviceptr p[256];

	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		int n = sizes[s] > 10000000 ? 8 : 64;
		double before = used_mib();

		for (int i = 0; i < n; i++)
			GPU_OK(cu.cuMemAlloc_v2(&p[i], sizes[s]));
		printf("step cuMemAlloc %9zu x%3d: %10.3f KiB each (own %.0f MiB)\n", sizes[s], n,
		       (used_mib() - before) * 1024.0 / n, own_mib());
		for (int i = 0; i < n; i++)
			GPU_OK(cu.cuMemFree_v2(p[i]));
		printf("     after free %.3f MiB\n", used_mib() - before);
	}
	for (int w = 100; w <= 4096; w = w * 3 + 1) {
		CUDA_ARRAY_DESCRIPTOR d = { (size_t)w, (size_t)w, 0x20, 4 };
		CUarray a[8];
		double before = used_mib();

		for (int i = 0; i < 8; i++)
			GPU_OK(cu.cuArrayCreate_v2(&a[i], &d));
		printf("step array %dx%d float4 = %.3f MiB: %.3f MiB each\n", w, w,
		       w * w * 16 / 1048576.0, (used_mib() - before) / 8);
		for (int i = 0; i < 8; i++)
			cu.cuArrayDestroy(a[i]);
	}
	{
		CUDA_ARRAY3D_DESCRIPTOR d = { 1024, 1024, 0, 0x20, 4, 0 };
		CUmipmappedArray a[8];
		double before = used_mib();

		for (int i = 0; i < 8; i++)
			GPU_OK(cu.cuMipmappedArrayCreate(&a[i], &d, 11));
		printf("step mipmap 1024x1024 float4 11 levels: %.3f MiB each\n",
		       (used_mib() - before) / 8);
		for (int i = 0; i < 8; i++)
			cu.cuMipmappedArrayDestroy(a[i]);
	}
	{
		double before = used_mib();
		CUdeviceptr m;
		size_t pitch;

		GPU_OK(cu.cuMemAllocManaged(&m, 256 << 20, 1));
		printf("step managed 256 MiB untouched: %.1f MiB\n", used_mib() - before);
		cu.cuMemFree_v2(m);
		GPU_OK(cu.cuMemAllocPitch_v2(&m, &pitch, 1000, 100000, 4));
		printf("step pitch 1000x100000: pitch %zu, %.1f MiB\n", pitch, used_mib() - before);
		cu.cuMemFree_v2(m);
	}
}

static uint64_t pool_reserved(CUmemoryPool pool)
{
	uint64_t v = 0;

	GPU_OK(cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &v));
	return v;
}

static void pools(void)
{
	static const size_t sizes[] = {
		1000, 65536, 1048576, 1048577, 33554432, 33554433, 67108864
	};
	CUmemoryPool pool;

	GPU_OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
	for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
		CUdeviceptr p[4];

		for (int i = 0; i < 4; i++)
			GPU_OK(cu.cuMemAllocAsync(&p[i], sizes[s], NULL));
		printf("pool 4 x %9zu: reserved %.2f MiB", sizes[s],
		       (double)pool_reserved(pool) / 1048576.0);
		for (int i = 0; i < 4; i++)
			GPU_OK(cu.cuMemFreeAsync(p[i], NULL));
		printf(", freed %.2f", (double)pool_reserved(pool) / 1048576.0);
		GPU_OK(cu.cuStreamSynchronize(NULL));
		printf(", after sync %.2f MiB\n", (double)pool_reserved(pool) / 1048576.0);
	}
}

static void vmm(void)
{
	CUmemAllocationProp prop = { .type = 1, .location = { 1, 0 } };
	CUmemGenericAllocationHandle h, r = 0;
	CUdeviceptr va;
	double before = used_mib();

	GPU_OK(cu.cuMemCreate(&h, 64 << 20, &prop, 0));
	printf("vmm create 64 MiB: %.1f MiB", used_mib() - before);
	GPU_OK(cu.cuMemAddressReserve(&va, 64 << 20, 0, 0, 0));
	GPU_OK(cu.cuMemMap(va, 64 << 20, 0, h, 0));
	GPU_OK(cu.cuMemRetainAllocationHandle(&r, (void *)(uintptr_t)va));
	printf(", retain gives the same handle: %d (%llx %llx)", r == h, (unsigned long long)h,
	       (unsigned long long)r);
	GPU_OK(cu.cuMemRelease(h));
	GPU_OK(cu.cuMemRelease(r));
	printf(", after 2 releases, mapped: %.1f", used_mib() - before);
	GPU_OK(cu.cuMemUnmap(va, 64 << 20));
	printf(", unmapped: %.1f\n", used_mib() - before);
	cu.cuMemAddressFree(va, 64 << 20);
}

static void graphs(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	CUresult (*create)(CUgraph *, unsigned) =
		(CUresult(*)(CUgraph *, unsigned))dlsym(lib, "cuGraphCreate");
	CUresult (*add)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			CUDA_MEM_ALLOC_NODE_PARAMS *) =
		(CUresult(*)(CUgraphNode *, CUgraph, const CUgraphNode *, size_t,
			     CUDA_MEM_ALLOC_NODE_PARAMS *))dlsym(lib, "cuGraphAddMemAllocNode");
	CUDA_MEM_ALLOC_NODE_PARAMS p = { .poolProps = { .allocType = 1, .location = { 1, 0 } },
					 .bytesize = 64 << 20 };
	CUgraph g;
	CUgraphNode n;
	CUgraphExec e;
	uint64_t r = 0;
	double before = used_mib();

	GPU_OK(create(&g, 0));
	GPU_OK(add(&n, g, NULL, 0, &p));
	printf("graph node added %.1f MiB", used_mib() - before);
	GPU_OK(cu.cuGraphInstantiateWithFlags(&e, g, 0));
	cu.cuDeviceGetGraphMemAttribute(0, 2, &r);
	printf(", instantiated %.1f (attr %.1f)", used_mib() - before, (double)r / 1048576);
	GPU_OK(cu.cuGraphUpload(e, NULL));
	GPU_OK(cu.cuCtxSynchronize());
	cu.cuDeviceGetGraphMemAttribute(0, 2, &r);
	printf(", uploaded %.1f (attr %.1f)", used_mib() - before, (double)r / 1048576);
	GPU_OK(cu.cuGraphLaunch(e, NULL));
	cu.cuDeviceGetGraphMemAttribute(0, 2, &r);
	printf(", launched %.1f (attr %.1f)", used_mib() - before, (double)r / 1048576);
	GPU_OK(cu.cuCtxSynchronize());
	GPU_OK(cu.cuMemFree_v2(p.dptr));
	cu.cuDeviceGetGraphMemAttribute(0, 2, &r);
	printf(", freed %.1f (attr %.1f)", used_mib() - before, (double)r / 1048576);
	GPU_OK(cu.cuDeviceGraphMemTrim(0));
	cu.cuDeviceGetGraphMemAttribute(0, 2, &r);
	printf(", trimmed %.1f (attr %.1f)\n", used_mib() - before, (double)r / 1048576);
}

static void launch(CUfunction f, unsigned int blocks, unsigned int n, CUdeviceptr out)
{
	void *args[] = { &n, &out };

	GPU_OK(cu.cuLaunchKernel(f, blocks, 1, 1, 128, 1, 1, 0, NULL, args, NULL));
}

static void events(CUfunction f, CUdeviceptr out)
{
	CUevent a, b;
	float ms = 0;
	unsigned int n = 100;

	GPU_OK(cu.cuEventCreate(&a, 0));
	GPU_OK(cu.cuEventCreate(&b, 0));
	for (int round = 0; round < 12; round++) {
		cu.cuEventRecord(a, NULL);
		launch(f, 1056, n, out);
		cu.cuEventRecord(b, NULL);
		cu.cuEventSynchronize(b);
		cu.cuEventElapsedTime(&ms, a, b);
		if (round > 2)
			n = (unsigned int)((float)n * 0.09f / ms);
	}
	printf("work: n=%u single kernel %.4f ms\n", n, (double)ms);
	for (unsigned int batch = 1; batch <= 64; batch *= 4) {
		CUevent ev[2048];
		int pairs = (int)(1024 / batch);
		double sum = 0;
		uint64_t t0;

		for (int i = 0; i < 2 * pairs; i++)
			GPU_OK(cu.cuEventCreate(&ev[i], 0));
		cu.cuCtxSynchronize();
		t0 = gpu_now_ns();
		for (int i = 0; i < pairs; i++) {
			cu.cuEventRecord(ev[2 * i], NULL);
			for (unsigned int k = 0; k < batch; k++)
				launch(f, 1056, n, out);
			cu.cuEventRecord(ev[2 * i + 1], NULL);
		}
		cu.cuCtxSynchronize();
		t0 = gpu_now_ns() - t0;
		for (int i = 0; i < pairs; i++) {
			cu.cuEventElapsedTime(&ms, ev[2 * i], ev[2 * i + 1]);
			sum += (double)ms;
		}
		printf("events: 1024 kernels, %2u per pair: wall %.3f ms, in pairs %.3f ms\n",
		       batch, (double)t0 / 1e6, sum);
		for (int i = 0; i < 2 * pairs; i++)
			cu.cuEventDestroy_v2(ev[i]);
	}
	{
		uint64_t t0 = gpu_now_ns();

		for (int i = 0; i < 1024; i++)
			launch(f, 1056, n, out);
		cu.cuCtxSynchronize();
		printf("events: 1024 kernels, none: wall %.3f ms\n",
		       (double)(gpu_now_ns() - t0) / 1e6);
	}
	for (int i = 0; i < 6; i++) {
		cu.cuEventRecord(a, NULL);
		launch(f, 1, 1, out);
		cu.cuEventRecord(b, NULL);
		cu.cuEventSynchronize(b);
		cu.cuEventElapsedTime(&ms, a, b);
		printf("empty kernel on an idle stream %.4f ms\n", (double)ms);
	}
	cu.cuEventRecord(a, NULL);
	cu.cuEventSynchronize(a);
	for (int i = 0; i < 5; i++) {
		uint64_t t0 = gpu_now_ns(), t1, t2;

		cu.cuEventRecord(b, NULL);
		t1 = gpu_now_ns();
		cu.cuEventSynchronize(b);
		t2 = gpu_now_ns();
		cu.cuEventElapsedTime(&ms, a, b);
		printf("anchor: record %llu ns, sync %llu ns, elapsed %.4f ms, host %.4f..%.4f\n",
		       (unsigned long long)(t1 - t0), (unsigned long long)(t2 - t1), (double)ms,
		       (double)t0 / 1e6, (double)t2 / 1e6);
	}
}

static void utilisation(CUfunction f, CUdeviceptr out)
{
	nvmlProcessUtilizationSample_t s[64];
	unsigned long long last = 0;

	if (!nvdev)
		return;
	for (int second = 0; second < 40; second++) {
		uint64_t end = gpu_now_ns() + 100000000u, t0;
		unsigned int n = 64;

		while (gpu_now_ns() < end) {
			launch(f, 1056, 11000, out); /* about 10 ms */
			cu.cuCtxSynchronize();
			gpu_sleep_ns(20000000);
		}
		t0 = gpu_now_ns();
		int rc = nv.nvmlDeviceGetProcessUtilization(nvdev, s, &n, last);
		t0 = gpu_now_ns() - t0;
		if (!rc)
			for (unsigned int i = 0; i < n && i < 64; i++) {
				printf("util: pid %u (me %d) sm %u at %llu us", s[i].pid, getpid(),
				       s[i].smUtil, s[i].timeStamp);
				if (s[i].timeStamp > last)
					last = s[i].timeStamp;
				printf(" call %llu ns n %u\n", (unsigned long long)t0, n);
			}
		else if (second < 12 || second % 10 == 0)
			printf("util: rc %d call %llu ns n %u\n", rc, (unsigned long long)t0, n);
	}
}

int main(void)
{
	CUcontext ctx;
	CUmodule module;
	CUfunction f;
	CUdeviceptr out;
	CUstream stream;
	CUevent ev;
	CUmemoryPool pool;
	struct utsname u;
	int capture, dev, mode = 2;
	uint64_t v, t0;
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd = open("/tmp/probe.lock", O_RDWR | O_CREAT, 0600);

	uname(&u);
	printf("kernel %s, OFD lock %s\n", u.release, fcntl(fd, F_OFD_SETLK, &lock) ? "NO" : "yes");
	gpu_load(&cu);
	t0 = gpu_now_ns();
	if (gpu_load_nvml(&nv))
		nv.nvmlDeviceGetHandleByIndex_v2(0, &nvdev);
	printf("nvmlInit %.1f ms\n", (double)(gpu_now_ns() - t0) / 1e6);
	addresses();
	t0 = gpu_now_ns();
	GPU_OK(cu.cuInit(0));
	printf("cuInit %.1f ms, used %.1f MiB\n", (double)(gpu_now_ns() - t0) / 1e6, used_mib());
	t0 = gpu_now_ns();
	GPU_OK(cu.cuDevicePrimaryCtxRetain(&ctx, 0));
	printf("retain %.1f ms, used %.1f MiB own %.1f\n", (double)(gpu_now_ns() - t0) / 1e6,
	       used_mib(), own_mib());
	GPU_OK(cu.cuCtxSetCurrent(ctx));
	printf("current: used %.1f own %.1f\n", used_mib(), own_mib());
	GPU_OK(cu.cuModuleLoadData(&module, GPU_PTX));
	printf("module: used %.1f own %.1f\n", used_mib(), own_mib());
	GPU_OK(cu.cuModuleGetFunction(&f, module, "work"));
	GPU_OK(cu.cuMemAlloc_v2(&out, 4));
	launch(f, 1056, 1, out);
	GPU_OK(cu.cuCtxSynchronize());
	printf("first launch: used %.1f own %.1f\n", used_mib(), own_mib());
	GPU_OK(cu.cuStreamCreate(&stream, 1));
	GPU_OK(cu.cuEventCreate(&ev, 0));
	GPU_OK(cu.cuDeviceGetDefaultMemPool(&pool, 0));
	cu.cuEventRecord(ev, stream);
	{
		size_t a, b;
		CUcontext c;
		float ms;
		nvmlMemory_t m;
		nvmlProcessInfo_t list[64];
		unsigned int n = 64;

		COST("cuCtxGetCurrent", 100000, cu.cuCtxGetCurrent(&c));
		COST("cuCtxGetDevice", 100000, cu.cuCtxGetDevice(&dev));
		COST("cuMemPoolGetAttribute", 100000,
		     cu.cuMemPoolGetAttribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &v));
		COST("cuDeviceGetMemPool", 100000, cu.cuDeviceGetMemPool(&pool, 0));
		COST("cuStreamIsCapturing(stream)", 100000,
		     cu.cuStreamIsCapturing(stream, &capture));
		COST("cuStreamIsCapturing(NULL)", 100000, cu.cuStreamIsCapturing(NULL, &capture));
		COST("cuStreamGetCtx(stream)", 100000, cu.cuStreamGetCtx(stream, &c));
		COST("cuThreadExchangeStreamCaptureMode", 100000,
		     cu.cuThreadExchangeStreamCaptureMode(&mode));
		COST("cuEventQuery(done)", 100000, cu.cuEventQuery(ev));
		COST("cuEventElapsedTime(done)", 100000, cu.cuEventElapsedTime(&ms, ev, ev));
		COST("cuEventRecord", 1000, cu.cuEventRecord(ev, stream));
		COST("cuMemGetInfo", 10000, cu.cuMemGetInfo_v2(&a, &b));
		COST("cuDeviceGetGraphMemAttribute", 10000,
		     cu.cuDeviceGetGraphMemAttribute(0, 2, &v));
		COST("nvmlDeviceGetMemoryInfo", 1000, nv.nvmlDeviceGetMemoryInfo(nvdev, &m));
		COST("nvml process list", 300,
		     (n = 64, nv.nvmlDeviceGetComputeRunningProcesses_v3(nvdev, &n, list)));
		GPU_OK(cu.cuMemAllocAsync(&out, 1 << 20, NULL));
		COST("cuMemAllocAsync+FreeAsync 1 MiB", 20000,
		     (cu.cuMemAllocAsync(&out, 1 << 20, NULL), cu.cuMemFreeAsync(out, NULL)));
		COST("cuMemAlloc+Free 4 KiB", 10000,
		     (cu.cuMemAlloc_v2(&out, 4096), cu.cuMemFree_v2(out)));
		GPU_OK(cu.cuMemAlloc_v2(&out, 4));
	}
	steps();
	pools();
	vmm();
	graphs();
	events(f, out);
	utilisation(f, out);
	return 0;
}
