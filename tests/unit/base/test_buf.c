/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include <errno.h>

#include "base/buf.h"

static void test_grows_to_the_byte(void **state)
{
	struct vg_buf buf;

	(void)state;
	vg_buf_init(&buf, 1000);
	assert_null(buf.data);
	for (size_t i = 0; i < 1000; i++) {
		assert_int_equal(vg_buf_add(&buf, "x", 1), 0);
		assert_int_equal(buf.used, i + 1);
		assert_int_equal(buf.data[buf.used], '\0');
	}
	assert_false(vg_buf_failed(&buf));
	assert_int_equal(vg_buf_add(&buf, "y", 1), -E2BIG);
	assert_int_equal(buf.used, 1000);
	assert_int_equal(buf.data[999], 'x');
	assert_true(vg_buf_failed(&buf));
	vg_buf_release(&buf);
}

/* What does not fit leaves nothing behind, and is remembered though later additions fit. */
static void test_over_the_maximum(void **state)
{
	struct vg_buf buf;

	(void)state;
	vg_buf_init(&buf, 8);
	assert_int_equal(vg_buf_adds(&buf, "12345"), 0);
	assert_int_equal(vg_buf_adds(&buf, "6789"), -E2BIG);
	assert_string_equal(buf.data, "12345");
	assert_int_equal(vg_buf_addf(&buf, "%d", 6789), -E2BIG);
	assert_string_equal(buf.data, "12345");
	assert_int_equal(vg_buf_addf(&buf, "%d", 678), 0);
	assert_string_equal(buf.data, "12345678");
	assert_true(vg_buf_failed(&buf));
	assert_int_equal(vg_buf_add(&buf, "", SIZE_MAX), -E2BIG);
	vg_buf_clear(&buf);
	assert_false(vg_buf_failed(&buf));
	assert_string_equal(buf.data, "");
	assert_int_equal(vg_buf_adds(&buf, "87654321"), 0);
	vg_buf_release(&buf);
	assert_int_equal(buf.max, 8);
}

static void test_bytes_and_format(void **state)
{
	struct vg_buf buf;

	(void)state;
	vg_buf_init(&buf, 1u << 20);
	assert_int_equal(vg_buf_add(&buf, "a\0b", 3), 0);
	assert_int_equal(buf.used, 3);
	assert_memory_equal(buf.data, "a\0b", 4);
	vg_buf_clear(&buf);
	/* Longer than the first room, in one piece. */
	assert_int_equal(vg_buf_addf(&buf, "%0*d|", 5000, 7), 0);
	assert_int_equal(buf.used, 5001);
	assert_string_equal(buf.data + 4999, "7|");
	vg_buf_release(&buf);
}

static void test_consume(void **state)
{
	static const struct {
		size_t size;
		const char *left;
	} rows[] = {
		{ 0, "abcdef" }, { 2, "cdef" }, { 5, "f" }, { 6, "" }, { 7, "" }, { SIZE_MAX, "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_buf buf;

		vg_buf_init(&buf, 10);
		vg_buf_adds(&buf, "abcdef");
		vg_buf_consume(&buf, rows[i].size);
		assert_string_equal(buf.data, rows[i].left);
		assert_int_equal(buf.used, strlen(rows[i].left));
		vg_buf_release(&buf);
	}
}

static void test_steal(void **state)
{
	struct vg_buf buf;
	size_t size = 99;
	char *text;

	(void)state;
	vg_buf_init(&buf, 10);
	text = vg_buf_steal(&buf, &size);
	assert_string_equal(text, "");
	assert_int_equal(size, 0);
	free(text);
	vg_buf_adds(&buf, "abc");
	text = vg_buf_steal(&buf, &size);
	assert_string_equal(text, "abc");
	assert_int_equal(size, 3);
	assert_null(buf.data);
	assert_int_equal(buf.used, 0);
	/* Usable again, with the same maximum. */
	assert_int_equal(vg_buf_adds(&buf, "0123456789"), 0);
	assert_int_equal(vg_buf_adds(&buf, "0"), -E2BIG);
	assert_string_equal(text, "abc");
	free(text);
	vg_buf_release(&buf);
	vg_buf_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_grows_to_the_byte),
		cmocka_unit_test(test_over_the_maximum),
		cmocka_unit_test(test_bytes_and_format),
		cmocka_unit_test(test_consume),
		cmocka_unit_test(test_steal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
