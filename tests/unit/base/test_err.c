/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include <errno.h>

#include "base/err.h"

static void test_fail(void **state)
{
	struct vg_err err = { 0 };

	(void)state;
	assert_int_equal(vg_fail(&err, EINVAL, "card %d of %s", 3, "n1"), -EINVAL);
	assert_int_equal(err.code, -EINVAL);
	assert_string_equal(err.msg, "card 3 of n1");
	assert_int_equal(vg_fail(NULL, ENOENT, "%s", "nobody reads this"), -ENOENT);
}

static void test_wrap(void **state)
{
	struct vg_err err = { 0 };
	int r;

	(void)state;
	r = vg_fail(&err, E2BIG, "too many");
	r = vg_err_wrap(&err, r, "card %d", 3);
	r = vg_err_wrap(&err, r, "node %s", "n1");
	assert_int_equal(r, -E2BIG);
	assert_int_equal(err.code, -E2BIG);
	assert_string_equal(err.msg, "node n1: card 3: too many");
	assert_int_equal(vg_err_wrap(NULL, -EIO, "node %s", "n1"), -EIO);
}

/* However long the texts are, the message ends inside its room. */
static void test_long_texts(void **state)
{
	struct {
		struct vg_err err;
		char guard[16];
	} box = { 0 };
	char text[VG_ERR_MSG_MAX * 2];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	memset(box.guard, 'g', sizeof(box.guard));
	vg_fail(&box.err, EINVAL, "%s", text);
	assert_int_equal(strlen(box.err.msg), VG_ERR_MSG_MAX - 1);
	vg_err_wrap(&box.err, -EINVAL, "front");
	assert_int_equal(strlen(box.err.msg), VG_ERR_MSG_MAX - 1);
	assert_memory_equal(box.err.msg, "front: xxx", 10);
	vg_err_wrap(&box.err, -EINVAL, "%s", text);
	assert_int_equal(strlen(box.err.msg), VG_ERR_MSG_MAX - 1);
	for (size_t i = 0; i < sizeof(box.guard); i++)
		assert_int_equal(box.guard[i], 'g');
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fail),
		cmocka_unit_test(test_wrap),
		cmocka_unit_test(test_long_texts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
