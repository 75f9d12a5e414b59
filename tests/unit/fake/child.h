/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tests of the fake driver run in children: the driver reads its settings once per process, and what a
 * process leaves behind when it ends is part of what is tested. Each test has cards of its own.
 */
#ifndef FAKE_TEST_CHILD_H
#define FAKE_TEST_CHILD_H

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

/* In a child: says what is wrong and ends it. */
#define CHECK(condition)                                                                           \
	do {                                                                                       \
		if (!(condition)) {                                                                \
			fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define CHECK_EQ(left, right)                                                                      \
	do {                                                                                       \
		long long left_ = (long long)(left), right_ = (long long)(right);                  \
		if (left_ != right_) {                                                             \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__, __LINE__,       \
				#left, left_, right_);                                             \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

static inline pid_t child_start(const char *devices, const char *state, void (*body)(void))
{
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		/* A test that fails must not leave workers behind. */
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setenv("VGPU_FAKE_STATE", state, 1);
		if (devices)
			setenv("VGPU_FAKE_DEVICES", devices, 1);
		else
			unsetenv("VGPU_FAKE_DEVICES");
		body();
		/* exit(), not _exit(): the driver's end is part of the test. */
		exit(0);
	}
	assert_true(pid > 0);
	return pid;
}

/* 0, the exit status, or 128 and the signal. */
static inline int child_end(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static inline void state_path(char *path, size_t room)
{
	snprintf(path, room, "/tmp/vgpu-fake-test-XXXXXX");
	assert_true(mkdtemp(path) != NULL);
	snprintf(path + strlen(path), room - strlen(path), "/state");
}

static inline void state_remove(char *path)
{
	unlink(path);
	*strrchr(path, '/') = 0;
	rmdir(path);
}

static inline void run_on(const char *devices, void (*body)(void))
{
	char state[64];
	int rc;

	state_path(state, sizeof(state));
	rc = child_end(child_start(devices, state, body));
	state_remove(state);
	assert_int_equal(rc, 0);
}

static inline uint64_t clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline void sleep_ms(unsigned int ms)
{
	struct timespec nap = { ms / 1000, (long)(ms % 1000) * 1000000 };

	while (nanosleep(&nap, &nap) < 0)
		;
}

#endif
