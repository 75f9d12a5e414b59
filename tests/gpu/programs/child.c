/* SPDX-License-Identifier: Apache-2.0 */
/*
 * child [mode=before] [processes=4] [mib=64]
 *
 * What programs do with fork(), and what must come out of it:
 *
 *	before  children of a process that never used CUDA use it
 *	after   a parent that uses CUDA forks: the child cannot (CUDA says so) and must be able to end; the
 *	        parent goes on, and its memory is its own
 *	exec    the child becomes another program that uses CUDA
 *	storm   before, with the children all at once and many times
 *
 * Prints "MODE ok" or what went wrong (exit status 1).
 */
#include "program.h"

static size_t bytes;

static CUresult start(void)
{
	CUcontext context;
	CUresult rc = cu.cuInit(0);

	if (rc == CUDA_SUCCESS)
		rc = cu.cuDevicePrimaryCtxRetain(&context, 0);
	return rc == CUDA_SUCCESS ? cu.cuCtxSetCurrent(context) : rc;
}

/* A small life with CUDA. 0, or the step that failed. */
static int use(void)
{
	unsigned long long ns = 1000000;
	void *params[] = { &ns };
	CUdeviceptr pointer;
	CUfunction function;
	CUmodule module;

	if (start() != CUDA_SUCCESS)
		return 10;
	if (cu.cuMemAlloc_v2(&pointer, bytes) != CUDA_SUCCESS)
		return 11;
	if (cu.cuModuleLoadData(&module, program_ptx) != CUDA_SUCCESS ||
	    cu.cuModuleGetFunction(&function, module, "vgpu_busy") != CUDA_SUCCESS)
		return 12;
	if (cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL) != CUDA_SUCCESS ||
	    cu.cuCtxSynchronize() != CUDA_SUCCESS)
		return 13;
	return cu.cuMemFree_v2(pointer) == CUDA_SUCCESS ? 0 : 14;
}

static int ended(pid_t pid)
{
	int status;

	if (waitpid(pid, &status, 0) < 0)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int before(unsigned int processes)
{
	pid_t pids[512];
	int worst = 0;

	if (processes > 512)
		return 20;
	for (unsigned int i = 0; i < processes; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			_exit(use());
	}
	for (unsigned int i = 0; i < processes; i++) {
		int rc = pids[i] < 0 ? 21 : ended(pids[i]);

		if (rc)
			worst = rc;
	}
	return worst;
}

static int after(void)
{
	CUdeviceptr mine, other;
	size_t free_before, free_after, total;
	pid_t pid;
	int rc;

	if (start() != CUDA_SUCCESS || cu.cuMemAlloc_v2(&mine, bytes) != CUDA_SUCCESS)
		return 30;
	MUST(cu.cuMemGetInfo_v2(&free_before, &total));
	pid = fork();
	if (pid == 0) {
		/* Neither of them may harm the parent. */
		CUresult alloc = cu.cuMemAlloc_v2(&other, bytes), release = cu.cuMemFree_v2(mine);

		_exit(alloc == CUDA_SUCCESS ? 31 : release == CUDA_SUCCESS ? 32 : 0);
	}
	rc = ended(pid);
	if (rc)
		return rc;
	MUST(cu.cuMemGetInfo_v2(&free_after, &total));
	if (free_before != free_after)
		return 33;
	return cu.cuMemFree_v2(mine) == CUDA_SUCCESS ? use() : 34;
}

static int exec(char **argv)
{
	pid_t pid;

	if (start() != CUDA_SUCCESS)
		return 40;
	pid = fork();
	if (pid == 0) {
		execl("/proc/self/exe", argv[0], "mode=before", "processes=1", (char *)NULL);
		_exit(41);
	}
	return ended(pid);
}

int main(int argc, char **argv)
{
	const char *mode = program_option(argv, "mode", "before");
	unsigned int processes = (unsigned int)program_number(argv, "processes", 4);
	int rc = 0;

	(void)argc;
	bytes = program_number(argv, "mib", 64) << 20;
	program_load();
	if (strcmp(mode, "before") == 0) {
		rc = before(processes);
	} else if (strcmp(mode, "after") == 0) {
		rc = after();
	} else if (strcmp(mode, "exec") == 0) {
		rc = exec(argv);
	} else if (strcmp(mode, "storm") == 0) {
		for (int round = 0; rc == 0 && round < 10; round++)
			rc = before(processes);
	} else {
		fprintf(stderr, "no such mode: %s\n", mode);
		return 2;
	}
	if (rc)
		printf("%s failed in step %d\n", mode, rc);
	else
		printf("%s ok\n", mode);
	return rc != 0;
}
