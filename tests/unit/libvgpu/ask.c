/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ask MIB [ORDINAL]: what a program sees that tries to take MIB of memory:
 * "total T free F alloc RC index I" (MiB; index: where the region counts it).
 */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "gpu/gpu.h"
#include "vgpu/region.h"

int main(int argc, char **argv)
{
	int ordinal = argc > 2 ? (int)strtol(argv[2], NULL, 10) : 0, index = -1, fd;
	const char *path = getenv("CUDA_DEVICE_MEMORY_SHARED_CACHE");
	size_t free_bytes = 0, total = 0;
	struct stat st;
	struct gpu_api cu;
	CUcontext context;
	CUdeviceptr p;
	CUresult rc;

	gpu_load(&cu);
	GPU_OK(cu.cuInit(0));
	GPU_OK(cu.cuDevicePrimaryCtxRetain(&context, ordinal));
	GPU_OK(cu.cuCtxSetCurrent(context));
	GPU_OK(cu.cuMemGetInfo_v2(&free_bytes, &total));
	rc = cu.cuMemAlloc_v2(&p, (size_t)strtoul(argv[1], NULL, 10) << 20);
	fd = path ? open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK) : -1;
	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    st.st_size >= (off_t)VGPU_REGION_FILE_BYTES) {
		char *memory = mmap(NULL, VGPU_REGION_FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
		struct vgpu_region_ext *ext =
			(struct vgpu_region_ext *)(void *)(memory + VGPU_REGION_EXT_OFFSET);

		for (int d = 0; memory != MAP_FAILED && d < VGPU_REGION_DEVICES; d++)
			if (ext->device[d].used)
				index = d;
	}
	printf("total %zu free %zu alloc %d index %d\n", total >> 20, free_bytes >> 20, rc, index);
	return 0;
}
