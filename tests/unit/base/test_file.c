/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include <errno.h>
#include <unistd.h>

#include "base/file.h"

static char path[] = "/tmp/vgpu-test-file-XXXXXX";

static void write_file(const char *data, size_t size)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	assert_int_equal(fwrite(data, 1, size, file), size);
	assert_int_equal(fclose(file), 0);
}

static void test_sizes(void **state)
{
	/* Around the chunk that is read at a time. */
	static const size_t sizes[] = { 0, 1, 65535, 65536, 65537, 200000 };
	static char data[200000];

	(void)state;
	for (size_t i = 0; i < sizeof(data); i++)
		data[i] = (char)(i % 251);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t size = 12345;
		char *text = NULL;

		write_file(data, sizes[i]);
		assert_int_equal(vg_read_file(path, sizes[i], &text, &size, NULL), 0);
		assert_int_equal(size, sizes[i]);
		assert_memory_equal(text, data, size);
		assert_int_equal(text[size], '\0');
		free(text);
	}
}

static void test_failures(void **state)
{
	struct vg_err err = { 0 };
	char *text = NULL;
	size_t size = 7;

	(void)state;
	write_file("12345", 5);
	assert_int_equal(vg_read_file(path, 4, &text, &size, &err), -EFBIG);
	assert_non_null(strstr(err.msg, path));
	assert_int_equal(vg_read_file("/nonexistent/file", 4, &text, &size, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/nonexistent/file"));
	assert_int_equal(vg_read_file("/tmp", 4, &text, &size, &err), -EISDIR);
	assert_null(text);
	assert_int_equal(size, 7);
}

static int make_file(void **state)
{
	int fd = mkstemp(path);

	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_failures),
	};

	return cmocka_run_group_tests(tests, make_file, remove_file);
}
