/* SPDX-License-Identifier: Apache-2.0 */
/* What reaches standard error, read back through a pipe. */
#include "unit/base/base_test.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/log.h"

static char captured[64 * 1024];

/* Runs `emit` with standard error in a pipe; what it wrote is in `captured`, and its length returned. */
static size_t capture(void (*emit)(void))
{
	int saved = dup(STDERR_FILENO);
	int ends[2];
	size_t used = 0;
	ssize_t got;

	assert_true(saved >= 0);
	assert_int_equal(pipe(ends), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, (int)sizeof(captured)) >= 0);
	assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
	close(ends[1]);
	emit();
	assert_true(dup2(saved, STDERR_FILENO) >= 0);
	close(saved);
	while ((got = read(ends[0], captured + used, sizeof(captured) - 1 - used)) > 0)
		used += (size_t)got;
	close(ends[0]);
	captured[used] = '\0';
	return used;
}

/* The line without its time, which has 24 characters in both formats. */
static const char *behind_time(const char *mark)
{
	const char *found = strstr(captured, mark);

	return found ? found : captured;
}

static void emit_hostile(void)
{
	vg_error("kube", "pod refused",
		 VG_S("pod", "a\"b\\c\nd\te\x01\x7f"
			     "é"),
		 VG_S("why", NULL), VG_I("code", -22));
}

static void test_text(void **state)
{
	(void)state;
	vg_log_setup(VG_LOG_INFO, false);
	capture(emit_hostile);
	assert_int_equal(captured[10], 'T');
	assert_int_equal(captured[23], 'Z');
	assert_string_equal(captured + 24,
			    " error kube pod refused pod=\"a\\\"b\\\\c\\nd\\u0009e\\u0001\\u007f"
			    "é\" why=\"\" code=-22\n");
}

static void test_json(void **state)
{
	(void)state;
	vg_log_setup(VG_LOG_INFO, true);
	capture(emit_hostile);
	assert_memory_equal(captured, "{\"time\":\"20", 11);
	assert_string_equal(
		behind_time("\"level\""),
		"\"level\":\"error\",\"component\":\"kube\",\"message\":\"pod refused\","
		"\"pod\":\"a\\\"b\\\\c\\nd\\u0009e\\u0001\\u007fé\",\"why\":\"\","
		"\"code\":-22}\n");
}

static void emit_every_level(void)
{
	vg_error("x", "m0");
	vg_warn("x", "m1");
	vg_info("x", "m2");
	vg_debug("x", "m3");
}

static void test_levels(void **state)
{
	(void)state;
	for (int level = 0; level < VG_LOG_LEVEL_COUNT; level++) {
		vg_log_setup((enum vg_log_level)level, false);
		capture(emit_every_level);
		for (int i = 0; i < VG_LOG_LEVEL_COUNT; i++) {
			char message[4] = { 'm', (char)('0' + i), '\n', '\0' };

			assert_int_equal(strstr(captured, message) != NULL, i <= level);
			assert_int_equal(vg_log_enabled((enum vg_log_level)i), i <= level);
		}
	}
	assert_int_equal(vg_log_level_parse("error"), VG_LOG_ERROR);
	assert_int_equal(vg_log_level_parse("debug"), VG_LOG_DEBUG);
	assert_int_equal(vg_log_level_parse("trace"), -1);
	assert_int_equal(vg_log_level_parse(""), -1);
}

static char huge[20000];

static void emit_huge(void)
{
	vg_error("kube", "large", VG_S("a", huge), VG_S("b", huge), VG_I("c", 1));
}

/* A line that is cut is still one line, and still a complete JSON object. */
static void test_cut_lines(void **state)
{
	static const char *const fills[] = { "x", "\"", "\x01", "é", "𝄞", "\x80" };

	(void)state;
	for (size_t i = 0; i < COUNT(fills); i++) {
		for (int json = 0; json < 2; json++) {
			size_t size;
			size_t quotes = 0;

			for (size_t k = 0; k < sizeof(huge) - 1; k++)
				huge[k] = fills[i][k % strlen(fills[i])];
			vg_log_setup(VG_LOG_INFO, json);
			size = capture(emit_huge);
			assert_true(size > 3900 && size <= 4096);
			assert_ptr_equal(strchr(captured, '\n'), captured + size - 1);
			for (char *c = captured; *c; c++) {
				if (*c == '\\')
					c++;
				else
					quotes += *c == '"';
			}
			assert_int_equal(quotes % 2, 0);
			/* No character is left half. */
			if (strlen(fills[i]) > 1)
				assert_memory_equal(strrchr(captured, '"') - strlen(fills[i]),
						    fills[i], strlen(fills[i]));
			if (json)
				assert_int_equal(captured[size - 2], '}');
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_text),
		cmocka_unit_test(test_json),
		cmocka_unit_test(test_levels),
		cmocka_unit_test(test_cut_lines),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
