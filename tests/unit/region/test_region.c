/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The region with real processes: files that are not ours to use, limits that stand, and accounts that
 * stay exact when processes are killed at random moments.
 */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "region/read.h"
#include "region/region.h"

static char folder[64], path[128];

static int setup(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/vgpu-region-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/r.cache", folder);
	return 0;
}

static int teardown(void **state)
{
	char other[160];

	(void)state;
	unlink(path);
	snprintf(other, sizeof(other), "%s.vgpu", path);
	unlink(other);
	snprintf(other, sizeof(other), "%s/target", folder);
	unlink(other);
	rmdir(folder);
	return 0;
}

static struct region_setup limit_of(uint64_t bytes)
{
	struct region_setup s = { .priority = 1 };

	for (int d = 0; d < VGPU_REGION_DEVICES; d++) {
		s.memory_set[d] = true;
		s.limit[d] = bytes;
		s.sm_limit[d] = 100;
	}
	return s;
}

static uint64_t total_of(const struct region *r)
{
	uint64_t sum = 0;

	for (int i = 0; i < r->base->slot_count; i++)
		sum += r->base->slot[i].used[0].total;
	return sum;
}

static void test_ledger(void **state)
{
	struct region_setup s = limit_of(1000);
	struct region r;

	(void)state;
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	region_slot_claim(&r);
	assert_int_equal(r.slot, 0);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 600), 0);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 401), -ENOMEM);
	assert_int_equal(region_reserve(&r, 0, REGION_CONTEXT, 400), 0);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1), -ENOMEM);
	assert_int_equal(region_reserve(&r, 1, REGION_DATA, 1000), 0);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, UINT64_MAX), -ENOMEM);
	assert_int_equal(region_reserve(&r, -1, REGION_DATA, 1), -ENOMEM);
	assert_int_equal(region_reserve(&r, 16, REGION_DATA, 1), -ENOMEM);
	assert_int_equal(r.base->slot[0].used[0].data, 600);
	assert_int_equal(r.base->slot[0].used[0].context, 400);
	assert_int_equal(r.base->slot[0].used[0].total, 1000);
	/* More than there is: never below zero. */
	region_discharge(&r, 0, REGION_DATA, 5000);
	assert_int_equal(r.base->slot[0].used[0].data, 0);
	assert_int_equal(region_used(&r, 0), 400);
	assert_int_equal(r.ext->device[0].refused, 2);
	region_close(&r);
}

static void write_file(const char *name, const void *bytes, size_t n, off_t size)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, n), n);
	assert_int_equal(ftruncate(fd, size), 0);
	close(fd);
}

/* Each file stays as it was, and limits hold elsewhere. */
static void test_files_that_are_not_ours(void **state)
{
	static const struct {
		const char *what;
		const char *bytes;
		size_t n;
		off_t size;
	} table[] = {
		{ "text", "precious", 8, 8 },
		{ "large text", "precious", 8, 3000000 },
		{ "layout 1.1", "\x4e\xf7\x2f\x01\1\0\0\0\1\0\0\0", 12, 2008953 },
		{ "layout 2.0", "\x4e\xf7\x2f\x01\2\0\0\0\0\0\0\0", 12, 2008953 },
		{ "zeroes", "\0\0\0\0\0\0\0\0\0\0\0\0", 12, 5000 },
	};
	struct region_setup s = limit_of(1000);

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct region_fault fault = { "" };
		struct region r;
		struct stat st;
		char was[16] = "";
		int fd;

		write_file(path, table[i].bytes, table[i].n, table[i].size);
		if (region_open(&r, path, &s, &fault) != 1)
			fail_msg("%s was taken for a region", table[i].what);
		assert_true(fault.text[0] != '\0');
		region_slot_claim(&r);
		assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1001), -ENOMEM);
		assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1000), 0);
		assert_true(r.ext->message[0] != '\0');
		region_close(&r);
		fd = open(path, O_RDONLY);
		assert_int_equal(fstat(fd, &st), 0);
		assert_int_equal(st.st_size, table[i].size);
		assert_int_equal(read(fd, was, table[i].n), table[i].n);
		assert_memory_equal(was, table[i].bytes, table[i].n);
		close(fd);
	}
}

static void test_symbolic_link(void **state)
{
	struct region_setup s = limit_of(1000);
	struct region_fault fault = { "" };
	struct region r;
	struct stat st;
	char target[160];

	(void)state;
	snprintf(target, sizeof(target), "%s/target", folder);
	write_file(target, "", 0, 0);
	assert_int_equal(symlink(target, path), 0);
	assert_int_equal(region_open(&r, path, &s, &fault), 1);
	assert_non_null(strstr(fault.text, "symbolic link"));
	region_close(&r);
	assert_int_equal(stat(target, &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void test_unfinished_files_are_finished(void **state)
{
	struct region_setup s = limit_of(1000);
	struct region r;

	(void)state;
	/* Cut off in the middle of layout 1.2, and created but never written. */
	write_file(path, "\x4e\xf7\x2f\x01\1\0\0\0\2\0\0\0", 12, 4096);
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	assert_int_equal(region_limit(&r, 0), 1000);
	region_close(&r);
	write_file(path, "", 0, 0);
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	assert_int_equal(region_limit(&r, 15), 1000);
	region_close(&r);
}

/* A file of a library that knows only layout 1.2 gets the extension and keeps its contents. */
static void test_extends_layout_1_2(void **state)
{
	struct region_setup s = limit_of(1000);
	struct vgpu_region *old = calloc(1, sizeof(*old) + 1);
	struct region r;

	(void)state;
	old->magic = VGPU_REGION_MAGIC;
	old->major = 1;
	old->minor = 2;
	old->limit[0] = 777;
	old->slot_count = 1;
	old->slot[0].pid = (int32_t)getpid(); /* alive, and without a lock */
	old->slot[0].status = 1;
	old->slot[0].used[0].total = 300;
	old->slot[0].used[0].data = 300;
	write_file(path, old, sizeof(*old) + 1, sizeof(*old) + 1);
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	assert_int_equal(region_limit(&r, 0), 777);
	assert_int_equal(region_used(&r, 0), 300);
	region_slot_claim(&r);
	assert_int_equal(r.slot, 1);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 478), -ENOMEM);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 477), 0);
	region_close(&r);
	free(old);
}

static void test_whose_limit_stands(void **state)
{
	struct region_setup first = limit_of(1000), second = limit_of(5000), silent = { 0 };
	struct region a, b;

	(void)state;
	assert_int_equal(region_open(&a, path, &first, NULL), 0);
	region_slot_claim(&a);
	/* Somebody lives here: a larger limit in another environment changes nothing. */
	assert_int_equal(region_open(&b, path, &second, NULL), 0);
	assert_int_equal(region_limit(&b, 0), 1000);
	region_close(&b);
	region_close(&a);
	/* Left over: a new environment is newer, but saying nothing is not "unlimited". */
	assert_int_equal(region_open(&b, path, &silent, NULL), 0);
	assert_int_equal(region_limit(&b, 0), 1000);
	region_close(&b);
	second.seal = true;
	assert_int_equal(region_open(&b, path, &second, NULL), 0);
	assert_int_equal(region_limit(&b, 0), 5000);
	region_close(&b);
	assert_int_equal(region_open(&b, path, &first, NULL), 0);
	assert_int_equal(region_limit(&b, 0), 5000);
	region_close(&b);
}

static void wait_for(pid_t pid)
{
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
}

static void test_slots_of_the_dead_come_back(void **state)
{
	struct region_setup s = limit_of(1000);
	struct region r;
	pid_t pid;
	int ready[2];
	char c;

	(void)state;
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	region_slot_claim(&r);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct region own;

		if (region_open(&own, path, &s, NULL) != 0)
			_exit(1);
		region_slot_claim(&own);
		if (region_reserve(&own, 0, REGION_DATA, 900) != 0 || write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 200), -ENOMEM);
	kill(pid, SIGKILL);
	wait_for(pid);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1000), 0);
	assert_int_equal(r.ext->reclaimed, 1);
	region_close(&r);
}

/* The two words of an entry differ when a process dies between them: then the sum is rebuilt. */
static void test_death_inside_an_entry(void **state)
{
	static const struct {
		const char *name;
		uint64_t reserved;  /* by whole entries */
		uint64_t sum_ahead; /* in the sum, not in the slot: half an entry */
		uint64_t rest;      /* of 1,000, after 100 of a living process */
	} cases[] = {
		{ "first entry", 0, 70, 900 },
		{ "later entry", 800, 70, 900 },
		{ "all of it", 0, 900, 900 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct region_setup s = limit_of(1000);
		struct region r;
		pid_t pid;

		assert_int_equal(region_open(&r, path, &s, NULL), 0);
		region_slot_claim(&r);
		assert_int_equal(region_reserve(&r, 0, REGION_DATA, 100), 0);
		pid = fork();
		if (pid == 0) {
			struct region own;

			if (region_open(&own, path, &s, NULL) != 0)
				_exit(1);
			region_slot_claim(&own);
			if (cases[i].reserved &&
			    region_reserve(&own, 0, REGION_DATA, cases[i].reserved) != 0)
				_exit(1);
			own.ext->slot[own.slot].inflight++;
			own.ext->device[0].used += cases[i].sum_ahead;
			kill(getpid(), SIGKILL);
		}
		wait_for(pid);
		assert_int_equal(region_used(&r, 0), 100 + cases[i].reserved + cases[i].sum_ahead);
		if (region_reserve(&r, 0, REGION_DATA, cases[i].rest) != 0)
			fail_msg("%s: %llu stay lost", cases[i].name,
				 (unsigned long long)(region_used(&r, 0) - 100));
		assert_int_equal(region_used(&r, 0), 1000);
		assert_int_equal(total_of(&r), 1000);
		assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1), -ENOMEM);
		assert_int_equal(r.ext->repaired, 1);
		assert_int_equal(r.ext->quiesce, 0);
		region_close(&r);
		unlink(path);
	}
}

/* A program that closes all descriptors loses the lock, not its place. */
static void test_closed_descriptor(void **state)
{
	struct region_setup s = limit_of(1000);
	struct region r;
	pid_t pid;
	int ready[2];
	char c;

	(void)state;
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	region_slot_claim(&r);
	assert_int_equal(pipe(ready), 0);
	pid = fork();
	if (pid == 0) {
		struct region own;

		if (region_open(&own, path, &s, NULL) != 0)
			_exit(1);
		region_slot_claim(&own);
		if (region_reserve(&own, 0, REGION_DATA, 900) != 0)
			_exit(1);
		close(own.fd);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(region_reclaim(&r), 0);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 200), -ENOMEM);
	kill(pid, SIGKILL);
	wait_for(pid);
	assert_int_equal(region_reclaim(&r), 1);
	assert_int_equal(region_used(&r, 0), 0);
	region_close(&r);
}

static uint32_t random_state = 12345;

static uint32_t next_random(void)
{
	random_state = random_state * 1664525u + 1013904223u;
	return random_state >> 8;
}

/* Takes and gives back until it is killed; checks that it never sees more than the limit. */
static void worker(const struct region_setup *s, uint32_t seed, uint32_t *overshoots)
{
	uint64_t held[8] = { 0 };
	struct region own;

	/* Not longer than the test, however that ends. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	random_state = seed;
	if (region_open(&own, path, s, NULL) != 0)
		_exit(1);
	region_slot_claim(&own);
	for (;;) {
		uint32_t i = next_random() % 8;
		uint64_t bytes = 1 + next_random() % 200;

		if (held[i]) {
			region_discharge(&own, 0, REGION_DATA, held[i]);
			held[i] = 0;
		} else if (region_reserve(&own, 0, REGION_DATA, bytes) == 0) {
			held[i] = bytes;
		}
		if (region_used(&own, 0) > 1000)
			__atomic_add_fetch(overshoots, 1, __ATOMIC_SEQ_CST);
		if (next_random() % 500 == 0) {
			region_slot_release(&own);
			memset(held, 0, sizeof(held));
			region_slot_claim(&own);
		}
	}
}

static void test_random_kills(void **state)
{
	enum { WORKERS = 6 };
	const char *wanted = getenv("VGPU_KILLS");
	int kills = wanted ? (int)strtol(wanted, NULL, 10) : 1000;
	struct region_setup s = limit_of(1000);
	uint32_t *overshoots =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct region r;
	pid_t pids[WORKERS];

	(void)state;
	assert_true(overshoots != MAP_FAILED);
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	region_slot_claim(&r);
	for (int i = 0; i < WORKERS; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			worker(&s, (uint32_t)i + 1, overshoots);
	}
	for (int k = 0; k < kills; k++) {
		uint32_t victim = next_random() % WORKERS;

		usleep(next_random() % 3000);
		kill(pids[victim], SIGKILL);
		wait_for(pids[victim]);
		pids[victim] = fork();
		if (pids[victim] == 0)
			worker(&s, (uint32_t)k + 100, overshoots);
		if (k % 64 == 0)
			region_reclaim(&r);
	}
	for (int i = 0; i < WORKERS; i++) {
		kill(pids[i], SIGKILL);
		wait_for(pids[i]);
	}
	region_reclaim(&r);
	print_message("%d kills: %llu slots taken back, sums rebuilt %llu times\n", kills,
		      (unsigned long long)r.ext->reclaimed, (unsigned long long)r.ext->repaired);
	assert_int_equal(*overshoots, 0);
	assert_int_equal(total_of(&r), 0);
	assert_int_equal(region_used(&r, 0), 0);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1000), 0);
	region_close(&r);
	munmap(overshoots, 4096);
}

static void test_fork_storm(void **state)
{
	struct region_setup s = limit_of(1ull << 40);
	struct region r;
	int failed = 0;

	(void)state;
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	region_slot_claim(&r);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 100), 0);
	for (int i = 0; i < 200; i++) {
		if (fork() == 0) {
			struct region own;

			region_abandon(&r);
			if (region_open(&own, path, &s, NULL) != 0)
				_exit(1);
			region_slot_claim(&own);
			if (own.slot == REGION_NO_SLOT || own.slot == 0 ||
			    region_reserve(&own, 0, REGION_DATA, 10) != 0)
				_exit(1);
			if (i % 2)
				region_close(&own);
			_exit(0);
		}
	}
	for (int i = 0; i < 200; i++) {
		int status;

		wait(&status);
		failed += status != 0;
	}
	assert_int_equal(failed, 0);
	region_reclaim(&r);
	assert_int_equal(region_used(&r, 0), 100);
	region_close(&r);
}

/* A full disk is an error of opening, not a SIGBUS later. */
static void test_no_space(void **state)
{
	struct region_setup s = limit_of(1000);
	struct region_fault fault = { "" };
	struct region r;
	struct stat st;
	int status;

	(void)state;
	/* A limit on the size of files stands in for the full disk. */
	if (fork() == 0) {
		struct rlimit small = { 1u << 20, 1u << 20 };

		signal(SIGXFSZ, SIG_IGN);
		if (setrlimit(RLIMIT_FSIZE, &small) < 0 || region_open(&r, path, &s, &fault) != 1 ||
		    r.fd != -1)
			_exit(1);
		region_slot_claim(&r);
		_exit(region_reserve(&r, 0, REGION_DATA, 1001) != -ENOMEM ||
		      region_reserve(&r, 0, REGION_DATA, 1000) != 0);
	}
	wait(&status);
	assert_int_equal(status, 0);
	assert_int_equal(access(path, F_OK), -1); /* nothing half made is left behind */
	assert_int_equal(region_open(&r, "/proc/no-such-folder/r.cache", &s, &fault), 1);
	region_slot_claim(&r);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1001), -ENOMEM);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 1000), 0);
	region_close(&r);
	assert_int_equal(region_open(&r, path, &s, &fault), 0);
	assert_int_equal(stat(path, &st), 0);
	/* No holes: every block is there. */
	assert_true((uint64_t)st.st_blocks * 512 >= VGPU_REGION_FILE_BYTES);
	assert_int_equal(st.st_mode & 0777, 0666);
	region_close(&r);
}

static void test_suspend(void **state)
{
	struct region_setup s = limit_of(1000);
	struct region r, tool;
	int alive, suspended;

	(void)state;
	assert_int_equal(region_attach(&tool, path, NULL), -ENOENT);
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	region_slot_claim(&r);
	assert_int_equal(region_attach(&tool, path, NULL), 0);
	region_suspend(&tool, true);
	assert_int_equal(r.ext->slot[0].suspend, 1);
	region_suspended(&tool, &alive, &suspended);
	assert_int_equal(alive, 1);
	assert_int_equal(suspended, 0); /* it has not come to a gate yet */
	r.base->slot[0].status = VGPU_SLOT_SUSPENDED;
	region_suspended(&tool, &alive, &suspended);
	assert_int_equal(suspended, 1);
	region_suspend(&tool, false);
	assert_int_equal(r.ext->slot[0].suspend, 0);
	region_close(&tool);
	assert_int_equal(r.base->slot[0].pid, getpid()); /* a tool takes and frees no slot */
	region_close(&r);
}

static void test_read_from_outside(void **state)
{
	static char buffer[REGION_READ_BUFFER];
	static struct region_view view;
	struct region_setup s = limit_of(1000);
	struct region r;

	(void)state;
	assert_int_equal(region_open(&r, path, &s, NULL), 0);
	region_slot_claim(&r);
	assert_int_equal(region_reserve(&r, 0, REGION_DATA, 250), 0);
	r.base->device_count = 1000;
	memset(r.base->uuid[0], 'x', VGPU_REGION_UUID);
	memcpy(r.base->uuid[1], "GPU-\x01\xff", 7);
	r.base->slot[0].util[0].sm = 100000;
	assert_int_equal(region_read(AT_FDCWD, path, buffer, sizeof(buffer), &view), 0);
	assert_true(view.extended);
	assert_int_equal(view.device_count, 16);
	assert_int_equal(view.device[0].limit, 1000);
	assert_int_equal(view.device[0].used.total, 250);
	assert_int_equal(view.device[0].aggregate, 250);
	assert_int_equal(view.device[0].sm, 100);
	assert_int_equal(strlen(view.device[0].uuid), VGPU_REGION_UUID - 1);
	assert_string_equal(view.device[1].uuid, "GPU-");
	assert_int_equal(view.process_count, 1);
	assert_int_equal(view.process[0].pid, getpid());
	region_close(&r);
	assert_int_equal(region_decode("short", 5, &view), -ENODATA);
	assert_int_equal(region_decode("something else entirely", 23, &view), -EINVAL);
	assert_int_equal(region_read(AT_FDCWD, "/dev/null", buffer, sizeof(buffer), &view),
			 -EINVAL);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(test_ledger),
		TEST(test_files_that_are_not_ours),
		TEST(test_symbolic_link),
		TEST(test_unfinished_files_are_finished),
		TEST(test_extends_layout_1_2),
		TEST(test_whose_limit_stands),
		TEST(test_slots_of_the_dead_come_back),
		TEST(test_death_inside_an_entry),
		TEST(test_closed_descriptor),
		TEST(test_random_kills),
		TEST(test_fork_storm),
		TEST(test_no_space),
		TEST(test_suspend),
		TEST(test_read_from_outside),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
