/* SPDX-License-Identifier: Apache-2.0 */
/* What processes share: memory that dies with its owner, and one clock per card. */
#include "unit/fake/child.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

#include "fake/machine.h"
#include "fake/state.h"

#define MIB (1ull << 20)
#define MS  1000000ull

static struct fake_state *attach(const char *devices)
{
	static struct fake_machine machine;
	struct fake_state *shared;

	CHECK_EQ(fake_machine_parse(&machine, devices, NULL), 0);
	CHECK_EQ(fake_state_attach(&machine, &shared, NULL), 0);
	return shared;
}

static struct fake_state *join(const char *devices)
{
	struct fake_state *shared = attach(devices);

	CHECK_EQ(fake_state_join(shared, NULL), 0);
	return shared;
}

static void memory_body(void)
{
	struct fake_state *shared = join("gpu");

	CHECK(fake_memory_take(shared, 0, 100, 60));
	CHECK(!fake_memory_take(shared, 0, 100, 41));
	CHECK(fake_memory_take(shared, 0, 100, 40));
	CHECK(!fake_memory_take(shared, 0, 100, UINT64_MAX));
	CHECK_EQ(fake_memory_used(shared, 0), 100);
	CHECK_EQ(fake_memory_used(shared, 1), 0);
	fake_memory_give(shared, 0, 60);
	CHECK_EQ(fake_memory_used(shared, 0), 40);
	fake_state_leave(shared);
	CHECK_EQ(fake_memory_used(shared, 0), 0);
	CHECK(!fake_memory_take(shared, 0, 100, 1)); /* without a slot nothing can be owned */
}

static void test_memory(void **state)
{
	(void)state;
	run_on(NULL, memory_body);
}

/* ---- death ---- */

static void take_and_wait(void)
{
	struct fake_state *shared = join("gpu");

	CHECK(fake_memory_take(shared, 0, 100, 70));
	fake_contexts_add(shared, 0, 1);
	raise(SIGSTOP);
	pause();
}

static void test_killed(void **state)
{
	char path[64];
	pid_t pid;
	int status;

	(void)state;
	state_path(path, sizeof(path));
	pid = child_start(NULL, path, take_and_wait);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	assert_true(WIFSTOPPED(status));
	setenv("VGPU_FAKE_STATE", path, 1);
	{
		struct fake_state *shared = join("gpu");
		struct fake_process list[4];

		assert_int_equal(fake_memory_used(shared, 0), 70);
		assert_false(fake_memory_take(shared, 0, 100, 31));
		assert_int_equal(fake_processes(shared, 0, 0, list, 4), 1);
		assert_int_equal(list[0].pid, pid);
		assert_int_equal(list[0].used_bytes, 70);
		kill(pid, SIGKILL);
		assert_int_equal(child_end(pid), 128 + SIGKILL);
		/* Gone as soon as the parent knows. */
		assert_true(fake_memory_take(shared, 0, 100, 100));
		assert_int_equal(fake_processes(shared, 0, 0, list, 4), 0);
		fake_state_leave(shared);
		fake_state_after_fork(shared); /* forget this test's file */
	}
	state_remove(path);
}

/* A child that lives on does not keep its dead parent's memory. */
static void fork_and_die(void)
{
	struct fake_state *shared = join("gpu");

	CHECK(fake_memory_take(shared, 0, 100, 70));
	if (fork() == 0) {
		fake_state_after_fork(shared);
		sleep_ms(300);
		_exit(0);
	}
	kill(getpid(), SIGKILL);
}

static void test_orphan(void **state)
{
	char path[64];

	(void)state;
	state_path(path, sizeof(path));
	assert_int_equal(child_end(child_start(NULL, path, fork_and_die)), 128 + SIGKILL);
	setenv("VGPU_FAKE_STATE", path, 1);
	{
		struct fake_state *shared = join("gpu");

		/* The child's copy is closed within moments of its birth. */
		for (int i = 0; i < 100 && fake_memory_used(shared, 0); i++)
			sleep_ms(2);
		assert_int_equal(fake_memory_used(shared, 0), 0);
		fake_state_leave(shared);
		fake_state_after_fork(shared);
	}
	state_remove(path);
}

/* Thousands of takes and gives, killed anywhere, also inside the lock. */
static void churn(void)
{
	struct fake_state *shared = join("gpu");
	unsigned int seed = (unsigned int)getpid();
	uint32_t queue;

	fake_contexts_add(shared, 0, 1);
	CHECK_EQ(fake_queue_open(shared, 0, &queue), 0);
	for (;;) {
		uint64_t bytes = 1 + (unsigned int)rand_r(&seed) % 100u, seq;
		struct fake_work work = { .ns = bytes * 100, .sms = 132 };

		if (fake_memory_take(shared, 0, 1000, bytes))
			fake_memory_give(shared, 0, bytes);
		fake_queue_push(shared, queue, &work, &seq);
		CHECK(fake_memory_used(shared, 0) <= 1000);
	}
}

static void test_killed_anywhere(void **state)
{
	enum { PROCESSES = 4, KILLS = 300 };
	unsigned int seed = 1;
	pid_t pids[PROCESSES];
	char path[64];

	(void)state;
	state_path(path, sizeof(path));
	for (int i = 0; i < PROCESSES; i++)
		pids[i] = child_start(NULL, path, churn);
	for (int i = 0; i < KILLS; i++) {
		struct timespec nap = { 0, rand_r(&seed) % 2000 * 1000L };
		int victim = rand_r(&seed) % PROCESSES;

		nanosleep(&nap, NULL);
		kill(pids[victim], SIGKILL);
		assert_int_equal(child_end(pids[victim]), 128 + SIGKILL);
		pids[victim] = child_start(NULL, path, churn);
	}
	for (int i = 0; i < PROCESSES; i++) {
		kill(pids[i], SIGKILL);
		assert_int_equal(child_end(pids[i]), 128 + SIGKILL);
	}
	setenv("VGPU_FAKE_STATE", path, 1);
	{
		struct fake_state *shared = join("gpu");

		assert_int_equal(fake_memory_used(shared, 0), 0);
		assert_true(fake_memory_take(shared, 0, 1000, 1000));
		fake_state_leave(shared);
		fake_state_after_fork(shared);
	}
	state_remove(path);
}

/* ---- objects ---- */

static void objects_body(void)
{
	struct fake_state *shared = join("gpu");
	uint32_t object;
	uint64_t generation;
	pid_t pid;
	int status, pipes[2];

	CHECK_EQ(pipe(pipes), 0);
	CHECK(fake_memory_take(shared, 0, 100, 50));
	CHECK_EQ(fake_object_create(shared, 0, 50, &object, &generation), 0);
	CHECK_EQ(fake_memory_used(shared, 0), 50);
	pid = fork();
	if (pid == 0) {
		char byte;

		fake_state_after_fork(shared);
		shared = join("gpu");
		CHECK(!fake_object_hold(shared, object, generation + 1));
		CHECK(fake_object_hold(shared, object, generation));
		CHECK(write(pipes[1], "x", 1) == 1);
		pause();
		CHECK(read(pipes[0], &byte, 1) == 1);
		_exit(0);
	} else {
		char byte;

		CHECK(read(pipes[0], &byte, 1) == 1);
	}
	/* The other holder keeps it alive; its death ends it. */
	fake_object_release(shared, object);
	CHECK_EQ(fake_memory_used(shared, 0), 50);
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(fake_memory_used(shared, 0), 0);
	CHECK(!fake_object_hold(shared, object, generation));
}

static void test_objects(void **state)
{
	(void)state;
	run_on(NULL, objects_body);
}

/* ---- time ---- */

static uint64_t push(struct fake_state *shared, uint32_t queue, uint64_t ns, uint32_t stream,
		     uint16_t sms, uint16_t flags)
{
	struct fake_work work = { .ns = ns, .stream = stream, .sms = sms, .flags = flags };
	uint64_t seq;

	CHECK_EQ(fake_queue_push(shared, queue, &work, &seq), 0);
	return seq;
}

static void wait_for(struct fake_state *shared, uint32_t queue, uint64_t seq, uint64_t *ret_start,
		     uint64_t *ret_end)
{
	while (!fake_queue_done(shared, queue, seq, ret_start, ret_end))
		sleep_ms(1);
}

/* Exactly as long as asked for, one behind the other, however late somebody looks. */
static void serial_body(void)
{
	struct fake_state *shared = join("gpu");
	uint64_t start[3], end[3], seq[3];
	uint32_t queue;

	CHECK_EQ(fake_queue_open(shared, 0, &queue), 0);
	for (unsigned int i = 0; i < 3; i++)
		seq[i] = push(shared, queue, (i + 1) * MS, 1, 132, 0);
	sleep_ms(15);
	for (unsigned int i = 0; i < 3; i++)
		CHECK(fake_queue_done(shared, queue, seq[i], &start[i], &end[i]));
	for (unsigned int i = 0; i < 3; i++)
		CHECK_EQ(end[i] - start[i], (i + 1) * MS);
	CHECK_EQ(start[1], end[0]);
	CHECK_EQ(start[2], end[1]);
}

static void test_serial(void **state)
{
	(void)state;
	run_on(NULL, serial_body);
}

/* Work of different streams side by side while it fits; barriers and dependencies in order. */
static void streams_body(void)
{
	static const struct {
		uint32_t stream[3];
		uint16_t sms[3];
		uint16_t flags[3];
		uint64_t start_ms[3]; /* after the first; each takes 10 ms */
	} rows[] = {
		{ { 1, 1, 1 }, { 10, 10, 10 }, { 0 }, { 0, 10, 20 } },
		{ { 1, 2, 3 }, { 10, 10, 10 }, { 0 }, { 0, 0, 0 } },
		{ { 1, 2, 3 }, { 132, 132, 132 }, { 0 }, { 0, 10, 20 } },
		{ { 1, 2, 3 }, { 100, 100, 30 }, { 0 }, { 0, 10, 0 } },
		{ { 1, 2, 3 }, { 10, 10, 10 }, { 0, FAKE_OP_BARRIER, 0 }, { 0, 10, 20 } },
		{ { 1, 2, 3 }, { 10, 10, 10 }, { 0, FAKE_OP_BARRIER, FAKE_OP_FREE }, { 0, 10, 0 } },
		{ { 1, 2, 3 }, { 10, 10, 10 }, { 0, FAKE_OP_AFTER, 0 }, { 0, 10, 0 } },
	};
	struct fake_state *shared = join("gpu");
	uint32_t queue;

	CHECK_EQ(fake_queue_open(shared, 0, &queue), 0);
	for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
		uint64_t start[3], end[3], seq[3];

		/* A start of its own, so that what is pushed one after the other begins together. */
		push(shared, queue, 2 * MS, 9, 132, 0);
		for (int i = 0; i < 3; i++) {
			struct fake_work work = { .ns = 10 * MS,
						  .after = i ? seq[0] : 0,
						  .stream = rows[r].stream[i],
						  .sms = rows[r].sms[i],
						  .flags = rows[r].flags[i] };

			CHECK_EQ(fake_queue_push(shared, queue, &work, &seq[i]), 0);
		}
		for (int i = 0; i < 3; i++)
			wait_for(shared, queue, seq[i], &start[i], &end[i]);
		for (int i = 0; i < 3; i++) {
			if (start[i] - start[0] != rows[r].start_ms[i] * MS)
				fprintf(stderr, "row %zu, work %d\n", r, i);
			CHECK_EQ(start[i] - start[0], rows[r].start_ms[i] * MS);
		}
	}
}

static void test_streams(void **state)
{
	(void)state;
	run_on(NULL, streams_body);
}

/* Two processes with work take turns: each sees its own 40 ms take about 80. */
static uint64_t *results;

static void turns_body(void)
{
	struct fake_state *shared = join("slice_us=2000");
	uint64_t start, end, seq;
	uint32_t queue;

	CHECK_EQ(fake_queue_open(shared, 0, &queue), 0);
	results[2]++;
	while (*(volatile uint64_t *)&results[2] < 2)
		sleep_ms(1);
	seq = push(shared, queue, 40 * MS, 1, 132, 0);
	wait_for(shared, queue, seq, &start, &end);
	results[results[3]++ ? 1 : 0] = end - start;
}

static void test_turns(void **state)
{
	char path[64];
	pid_t first, second;

	(void)state;
	results = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(results != MAP_FAILED);
	state_path(path, sizeof(path));
	first = child_start(NULL, path, turns_body);
	second = child_start(NULL, path, turns_body);
	assert_int_equal(child_end(first), 0);
	assert_int_equal(child_end(second), 0);
	state_remove(path);
	/* How long one was alone depends on when the other began: on a busy machine, some turns. */
	assert_in_range(results[0], 55 * MS, 80 * MS);
	assert_in_range(results[1], 55 * MS, 80 * MS);
	munmap(results, 4096);
}

static uint64_t drained_count, drained_last;

static void count_drained(void *context, uint64_t seq, uint64_t start_ns, uint64_t end_ns)
{
	CHECK_EQ(seq, drained_count);
	CHECK(end_ns >= start_ns && end_ns >= drained_last);
	drained_last = end_ns;
	drained_count++;
	(void)context;
}

/* A queue has room for so much; what is drained makes room. */
static void full_body(void)
{
	struct fake_state *shared = join("gpu");
	struct fake_work work = { .ns = 1000, .stream = 1, .sms = 132 };
	uint64_t seq;
	uint32_t queue;

	CHECK_EQ(fake_queue_open(shared, 0, &queue), 0);
	for (uint64_t i = 0; i < FAKE_QUEUE_OPS; i++)
		CHECK_EQ(fake_queue_push(shared, queue, &work, &seq), 0);
	CHECK_EQ(fake_queue_push(shared, queue, &work, &seq), -EAGAIN);
	sleep_ms(5);
	CHECK_EQ(fake_queue_push(shared, queue, &work, &seq), -EAGAIN); /* done, not drained */
	fake_queue_drain(shared, queue, count_drained, NULL);
	CHECK_EQ(drained_count, FAKE_QUEUE_OPS);
	CHECK_EQ(fake_queue_push(shared, queue, &work, &seq), 0);
	CHECK_EQ(seq, FAKE_QUEUE_OPS);
}

static void test_full(void **state)
{
	(void)state;
	run_on(NULL, full_body);
}

static void busy_body(void)
{
	struct fake_state *shared = join("gpu");
	struct fake_process list[2];
	uint32_t queue;

	fake_contexts_add(shared, 0, 1);
	CHECK_EQ(fake_queue_open(shared, 0, &queue), 0);
	CHECK_EQ(fake_unit_busy(shared, 0), 0);
	/* 300 of every 1000 us, for more than a second. */
	for (int i = 0; i < 14; i++) {
		push(shared, queue, 30 * MS, 1, 132, 0);
		fake_queue_drain(shared, queue, count_drained, NULL);
		sleep_ms(100);
	}
	CHECK(fake_unit_busy(shared, 0) >= 20 && fake_unit_busy(shared, 0) <= 36);
	CHECK_EQ(fake_processes(shared, 0, clock_ns() - 1000 * MS, list, 2), 1);
	CHECK(list[0].busy_percent >= 20 && list[0].busy_percent <= 36);
}

static void test_busy(void **state)
{
	(void)state;
	run_on(NULL, busy_body);
}

/* Files that are no state, or another build's. */
static void test_foreign_file(void **state)
{
	char path[64];
	FILE *file;
	struct fake_machine machine;
	struct fake_state *shared;
	struct vg_err err = { 0 };

	(void)state;
	state_path(path, sizeof(path));
	setenv("VGPU_FAKE_STATE", path, 1);
	assert_int_equal(fake_machine_parse(&machine, "gpu", NULL), 0);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("not a state", file);
	fclose(file);
	assert_int_equal(fake_state_attach(&machine, &shared, &err), -EINVAL);
	assert_non_null(strstr(err.msg, "remove it"));
	unlink(path);
	setenv("VGPU_FAKE_STATE", "/nonexistent/state", 1);
	assert_int_equal(fake_state_attach(&machine, &shared, &err), -ENOENT);
	state_remove(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_memory),       cmocka_unit_test(test_killed),
		cmocka_unit_test(test_orphan),       cmocka_unit_test(test_killed_anywhere),
		cmocka_unit_test(test_objects),      cmocka_unit_test(test_serial),
		cmocka_unit_test(test_streams),      cmocka_unit_test(test_turns),
		cmocka_unit_test(test_full),         cmocka_unit_test(test_busy),
		cmocka_unit_test(test_foreign_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
