/* SPDX-License-Identifier: Apache-2.0 */
/*
 * many [processes=8] [chunk_mib=64] [max_mib=65536] [hold_ms=0]
 *
 * That many processes take chunks of device memory, all starting at the same moment, until each is
 * refused. All hold what they have until the last was refused, so the sum is what they had at once:
 *
 *	processes N took N MiB together, each N … N; refusals N; others N
 *
 * "others" counts calls that failed with anything but CUDA_ERROR_OUT_OF_MEMORY (exit status 1).
 */
#include <sys/mman.h>

#include "program.h"

#define MIB           (1ull << 20)
#define PROCESSES_MAX 512

/* Common to all. */
struct board {
	_Atomic unsigned int ready, done, failed;
	unsigned int chunks[PROCESSES_MAX];
	CUresult rc[PROCESSES_MAX];
};

static void wait_for(_Atomic unsigned int *counter, struct board *board, unsigned int value)
{
	while (*counter < value && !board->failed)
		program_sleep_ms(1);
}

static void child(struct board *board, unsigned int index, unsigned int processes, size_t chunk,
		  size_t most, unsigned int hold_ms)
{
	CUcontext context;
	CUdeviceptr pointer;

	program_load();
	if (cu.cuInit(0) != CUDA_SUCCESS ||
	    cu.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
	    cu.cuCtxSetCurrent(context) != CUDA_SUCCESS) {
		board->failed++;
		_exit(1);
	}
	board->ready++;
	wait_for(&board->ready, board, processes);
	while (board->chunks[index] < most) {
		board->rc[index] = cu.cuMemAlloc_v2(&pointer, chunk);
		if (board->rc[index] != CUDA_SUCCESS)
			break;
		board->chunks[index]++;
	}
	board->done++;
	wait_for(&board->done, board, processes);
	program_sleep_ms(hold_ms);
	_exit(0);
}

int main(int argc, char **argv)
{
	unsigned int processes = (unsigned int)program_number(argv, "processes", 8);
	size_t chunk = program_number(argv, "chunk_mib", 64) * MIB;
	size_t most = program_number(argv, "max_mib", 65536) * MIB / chunk;
	unsigned int hold_ms = (unsigned int)program_number(argv, "hold_ms", 0);
	unsigned int least = UINT32_MAX, greatest = 0, sum = 0, refusals = 0, others = 0;
	struct board *board;

	(void)argc;
	if (!processes || processes > PROCESSES_MAX)
		return 2;
	board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	if (board == MAP_FAILED)
		return 2;
	for (unsigned int i = 0; i < processes; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 2;
		if (pid == 0)
			child(board, i, processes, chunk, most, hold_ms);
	}
	while (wait(NULL) > 0)
		;
	for (unsigned int i = 0; i < processes; i++) {
		sum += board->chunks[i];
		if (board->chunks[i] < least)
			least = board->chunks[i];
		if (board->chunks[i] > greatest)
			greatest = board->chunks[i];
		refusals += board->rc[i] == CUDA_ERROR_OUT_OF_MEMORY;
		others += board->rc[i] != CUDA_ERROR_OUT_OF_MEMORY && board->rc[i] != CUDA_SUCCESS;
	}
	others += board->failed;
	printf("processes %u took %zu MiB together, each %zu … %zu; refusals %u; others %u\n",
	       processes, (size_t)(sum * chunk / MIB), (size_t)(least * chunk / MIB),
	       (size_t)(greatest * chunk / MIB), refusals, others);
	return others != 0;
}
