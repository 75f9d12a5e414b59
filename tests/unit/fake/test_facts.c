/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fake against a real card: what tests/gpu/programs/facts printed over an H200 (facts-h200-580.txt)
 * must come out over the fake, but for the lines below. The other programs there must run over it, in
 * each of their ways of finding the driver.
 */
#include "unit/fake/child.h"

#define RECORDED "tests/gpu/programs/facts-h200-580.txt"
#define PROGRAMS FAKE_DIR "/programs/"

/* Where the simulation is simpler, on purpose. */
static const char *const different[] = {
	/* The first managed memory of a process that reaches the card costs 64 MiB that stay. */
	"memory managed prefetched MiB: ",
	"memory managed freed MiB: ",
};

static bool may_differ(const char *line)
{
	for (size_t i = 0; i < sizeof(different) / sizeof(different[0]); i++) {
		if (strncmp(line, different[i], strlen(different[i])) == 0)
			return true;
	}
	return false;
}

static FILE *run(const char *settings, const char *command)
{
	char line[1024];
	FILE *output;

	snprintf(line, sizeof(line), "LD_LIBRARY_PATH=" FAKE_DIR ":$LD_LIBRARY_PATH %s %s 2>&1",
		 settings, command);
	output = popen(line, "r");
	assert_non_null(output);
	return output;
}

static void test_facts(void **state)
{
	char path[64], settings[512], real[512], fake[512];
	unsigned int line = 0, wrong = 0;
	FILE *recorded = fopen(RECORDED, "r"), *now;

	(void)state;
	assert_non_null(recorded);
	state_path(path, sizeof(path));
	/* The card also takes 5 MiB for a context that NVML lists nowhere. */
	snprintf(settings, sizeof(settings),
		 "VGPU_FAKE_STATE=%s VGPU_FAKE_DEVICES='model=h200 unlisted_mib=5'", path);
	now = run(settings, PROGRAMS "facts");
	while (fgets(real, sizeof(real), recorded)) {
		line++;
		if (!fgets(fake, sizeof(fake), now)) {
			print_error("the fake's output ends in line %u, before: %s", line, real);
			wrong++;
			break;
		}
		if (strcmp(real, fake) != 0 && !may_differ(real)) {
			print_error("line %u, real: %sline %u, fake: %s", line, real, line, fake);
			wrong++;
		}
	}
	assert_null(fgets(fake, sizeof(fake), now));
	assert_int_equal(pclose(now), 0);
	fclose(recorded);
	state_remove(path);
	assert_true(line > 400);
	assert_int_equal(wrong, 0);
}

static void expect(const char *settings, const char *command, const char *wanted, int status)
{
	char output[4096];
	FILE *now = run(settings, command);
	size_t got = fread(output, 1, sizeof(output) - 1, now);
	int ended = pclose(now);

	output[got] = 0;
	if (!strstr(output, wanted))
		fail_msg("%s: no \"%s\" in: %s", command, wanted, output);
	assert_true(WIFEXITED(ended));
	if (WEXITSTATUS(ended) != status)
		fail_msg("%s: status %d: %s", command, WEXITSTATUS(ended), output);
}

static const char *const ways[] = { "PROGRAM_WAY=dlsym %s %s" PROGRAMS "%s %s",
				    "PROGRAM_WAY=procaddress %s %s" PROGRAMS "%s %s",
				    "%s %s" PROGRAMS "%s-linked %s" };

static void each_way(const char *devices, const char *program, const char *arguments,
		     const char *wanted, int status)
{
	for (size_t i = 0; i < sizeof(ways) / sizeof(ways[0]); i++) {
		char path[64], setting[128], command[512];

		state_path(path, sizeof(path));
		snprintf(setting, sizeof(setting), "VGPU_FAKE_STATE=%s", path);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		snprintf(command, sizeof(command), ways[i], setting, devices, program, arguments);
#pragma GCC diagnostic pop
		expect("", command, wanted, status);
		state_remove(path);
	}
}

/* A card of 1,600 MiB, 518 of which are the context's: sixteen chunks of 64 MiB. */
static void test_take(void **state)
{
	static const struct {
		const char *path, *wanted;
	} rows[] = {
		{ "alloc", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "pitch", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "async", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "thread", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "pool", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "vmm", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "array", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "array3d", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "mipmap", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		{ "graph", "took 1024 MiB, then 2; again 1024 MiB; left 0" },
		/* Lives in host memory. */
		{ "managed", "took 2048 MiB, then 0; again 2048 MiB; left 0" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char arguments[64];

		snprintf(arguments, sizeof(arguments), "%s max_mib=2048", rows[i].path);
		each_way("VGPU_FAKE_DEVICES='mem_mib=1600 reserved_mib=0' ", "take", arguments,
			 rows[i].wanted, 0);
	}
}

/* Eight processes fill a card to the last chunk that fits: 8 × 518 and 92 chunks in 10,032 MiB. */
static void test_many(void **state)
{
	(void)state;
	each_way("VGPU_FAKE_DEVICES='mem_mib=10050 reserved_mib=0' ", "many", "",
		 "took 5888 MiB together", 0);
}

static void test_child(void **state)
{
	(void)state;
	each_way("", "child", "mode=before", "before ok", 0);
	each_way("", "child", "mode=after", "after ok", 0);
	each_way("", "child", "mode=exec", "exec ok", 0);
	each_way("", "child", "mode=storm processes=8", "storm ok", 0);
}

static void test_busy(void **state)
{
	static const char *const forms[] = { "kernel", "ex",    "cooperative",
					     "thread", "graph", "capture" };

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		char path[64], command[256], output[512];
		double percent = 0;
		FILE *now;

		state_path(path, sizeof(path));
		snprintf(command, sizeof(command),
			 "VGPU_FAKE_STATE=%s " PROGRAMS "busy form=%s seconds=1", path, forms[i]);
		now = run("", command);
		assert_non_null(fgets(output, sizeof(output), now));
		assert_int_equal(pclose(now), 0);
		state_remove(path);
		assert_int_equal(sscanf(output, "second 0 launches %*u percent %lf", &percent), 1);
		/* A machine with other things to do may not keep up, but nobody gets more than all. */
		assert_true(percent > 30 && percent <= 101);
	}
}

static void test_watch(void **state)
{
	(void)state;
	each_way("", "watch", "cuda=1", "cuda total 143155 free 142637 MiB", 0);
	each_way("", "watch", "cuda=1",
		 "memory v2 total 143771 reserved 615 used 518 free 142637 MiB", 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_facts), cmocka_unit_test(test_take),
		cmocka_unit_test(test_many),  cmocka_unit_test(test_child),
		cmocka_unit_test(test_busy),  cmocka_unit_test(test_watch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
