/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"

static void test_zeroed(void **state)
{
	vg_autofree unsigned char *object = vg_new(500);
	vg_autofree uint32_t *array = vg_new_array(100, sizeof(*array));
	vg_autofree void *nothing = vg_new(0);
	vg_autofree void *none = vg_new_array(0, 8);

	(void)state;
	for (size_t i = 0; i < 500; i++)
		assert_int_equal(object[i], 0);
	for (size_t i = 0; i < 100; i++)
		assert_int_equal(array[i], 0);
	assert_non_null(nothing);
	assert_non_null(none);
}

static void test_grow_and_texts(void **state)
{
	vg_autofree int *numbers = vg_grow(NULL, 2, sizeof(*numbers));
	vg_autofree char *copy = vg_strdup("node");
	vg_autofree char *part = vg_strndup("node", 2);
	vg_autofree char *whole = vg_strndup("node", 20);
	vg_autofree char *text = vg_printf("%s-%d", "card", 3);
	vg_autofree char *empty = vg_printf("%s", "");

	(void)state;
	numbers[0] = 1;
	numbers[1] = 2;
	numbers = vg_grow(numbers, 1000, sizeof(*numbers));
	assert_int_equal(numbers[0], 1);
	assert_int_equal(numbers[1], 2);
	assert_string_equal(copy, "node");
	assert_string_equal(part, "no");
	assert_string_equal(whole, "node");
	assert_string_equal(text, "card-3");
	assert_string_equal(empty, "");
}

static void test_steal(void **state)
{
	vg_autofree char *owner = vg_strdup("x");
	char *copy = owner;
	char *taken = vg_steal(owner);

	(void)state;
	assert_null(owner);
	assert_ptr_equal(taken, copy);
	free(taken);
}

static void overflow_array(void)
{
	free(vg_new_array(SIZE_MAX / 2, 4));
}

static void overflow_grow(void)
{
	free(vg_grow(NULL, SIZE_MAX / 2, 4));
}

/* A size whose product wraps around must end the process, and never give a small piece of memory. */
static void test_overflow_aborts(void **state)
{
	static void (*const ways[])(void) = { overflow_array, overflow_grow };

	(void)state;
	for (size_t i = 0; i < COUNT(ways); i++) {
		pid_t child = fork();
		int status = 0;

		assert_true(child >= 0);
		if (child == 0) {
			struct rlimit none = { 0, 0 };

			setrlimit(RLIMIT_CORE, &none);
			signal(SIGABRT, SIG_DFL);
			if (freopen("/dev/null", "w", stderr))
				ways[i]();
			_exit(0);
		}
		assert_int_equal(waitpid(child, &status, 0), child);
		/* Sanitizers report the size themselves and exit with an error. */
		assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_zeroed),
		cmocka_unit_test(test_grow_and_texts),
		cmocka_unit_test(test_steal),
		cmocka_unit_test(test_overflow_aborts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
