/* SPDX-License-Identifier: Apache-2.0 */
/*
 * race PROCESSES LIMIT_MIB: that many processes take 64 MiB chunks at once until all are refused.
 * Together they must have had everything that fits, to the chunk, and nothing more.
 */
#include <sys/mman.h>
#include <sys/wait.h>

#include "gpu.h"

enum { CHUNK_MIB = 64, PROCESSES_MOST = 64 };

struct shared {
	unsigned int ready, done, go;
	unsigned long chunks;
	size_t free_at_end[PROCESSES_MOST], free_at_start;
};

static void child(struct shared *s, int me, int processes)
{
	size_t free_bytes, total;
	struct gpu_api cu;
	CUcontext context;
	CUdeviceptr p;

	gpu_load(&cu);
	GPU_OK(cu.cuInit(0));
	GPU_OK(cu.cuDevicePrimaryCtxRetain(&context, 0));
	GPU_OK(cu.cuCtxSetCurrent(context));
	__atomic_add_fetch(&s->ready, 1, __ATOMIC_SEQ_CST);
	while ((int)__atomic_load_n(&s->ready, __ATOMIC_SEQ_CST) < processes)
		gpu_sleep_ns(100000);
	if (me == 0) {
		GPU_OK(cu.cuMemGetInfo_v2(&s->free_at_start, &total));
		__atomic_store_n(&s->go, 1, __ATOMIC_SEQ_CST);
	}
	while (!__atomic_load_n(&s->go, __ATOMIC_SEQ_CST))
		gpu_sleep_ns(20000);
	while (cu.cuMemAlloc_v2(&p, (size_t)CHUNK_MIB << 20) == CUDA_SUCCESS)
		__atomic_add_fetch(&s->chunks, 1, __ATOMIC_SEQ_CST);
	__atomic_add_fetch(&s->done, 1, __ATOMIC_SEQ_CST);
	while ((int)__atomic_load_n(&s->done, __ATOMIC_SEQ_CST) < processes)
		gpu_sleep_ns(100000);
	GPU_OK(cu.cuMemGetInfo_v2(&free_bytes, &total));
	s->free_at_end[me] = free_bytes;
	exit(0);
}

int main(int argc, char **argv)
{
	int processes = argc > 1 ? (int)strtoul(argv[1], NULL, 10) : 8, bad = 0;
	struct shared *s =
		mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t fit;

	if (processes < 1 || processes > PROCESSES_MOST || s == MAP_FAILED)
		return 2;
	for (int i = 0; i < processes; i++)
		if (fork() == 0)
			child(s, i, processes);
	for (int i = 0; i < processes; i++) {
		int status;

		wait(&status);
		bad |= status;
	}
	fit = s->free_at_start / ((size_t)CHUNK_MIB << 20);
	printf("race: %d processes had %lu chunks of %d MiB, %zu fitted; free at the end %zu MiB\n",
	       processes, s->chunks, CHUNK_MIB, fit, s->free_at_end[0] >> 20);
	return bad || s->chunks != fit;
}
