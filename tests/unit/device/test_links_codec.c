/* SPDX-License-Identifier: Apache-2.0 */
/* hami.io/node-nvidia-score: what is said, what is missing, and what is nonsense. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "device/node.h"

static const struct vg_card_info cards[3] = { { .uuid = "A" }, { .uuid = "B" }, { .uuid = "C" } };

static void test_values(void **state)
{
	static const struct {
		const char *text;
		int32_t ab, ac, bc;
		size_t odd;
	} table[] = {
		{ "[]", 0, 0, 0, 3 },
		{ "[{\"uuid\":\"A\",\"score\":{\"B\":50,\"C\":20}},"
		  "{\"uuid\":\"B\",\"score\":{\"A\":50,\"C\":10}},"
		  "{\"uuid\":\"C\",\"score\":{\"A\":20,\"B\":10}}]",
		  50, 20, 10, 0 },
		/* Said from one side only; differently from both; never. */
		{ "[{\"uuid\":\"A\",\"score\":{\"B\":50,\"C\":20}},"
		  "{\"uuid\":\"C\",\"score\":{\"A\":15}}]",
		  50, 15, 0, 3 },
		/* Strangers, and a card's score with itself. */
		{ "[{\"uuid\":\"X\",\"score\":{\"A\":9}},"
		  "{\"uuid\":\"A\",\"score\":{\"A\":7,\"Y\":8,\"B\":-3}},"
		  "{\"uuid\":\"B\",\"score\":{\"A\":-3}}]",
		  -3, 0, 0, 2 },
		{ "[{\"uuid\":\"A\"},{}]", 0, 0, 0, 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct vg_arena arena;
		struct vg_err err = { 0 };
		int32_t *links = NULL;
		size_t odd = 99;

		vg_arena_init(&arena);
		assert_int_equal(
			vg_links_decode(table[i].text, cards, 3, &arena, &links, &odd, &err), 0);
		assert_int_equal(links[0], 0);
		assert_int_equal(links[1], table[i].ab);
		assert_int_equal(links[3], table[i].ab);
		assert_int_equal(links[2], table[i].ac);
		assert_int_equal(links[6], table[i].ac);
		assert_int_equal(links[5], table[i].bc);
		assert_int_equal(links[7], table[i].bc);
		assert_int_equal(odd, table[i].odd);
		vg_arena_release(&arena);
	}
}

static void test_errors(void **state)
{
	static const char *const table[][2] = {
		{ "", "not JSON" },
		{ "{}", "not an array" },
		{ "[1]", "entry 0" },
		{ "[{\"uuid\":1}]", "entry 0" },
		{ "[{\"uuid\":\"A\",\"score\":[]}]", "entry 0" },
		{ "[{},{\"uuid\":\"A\",\"score\":{\"B\":\"x\"}}]", "entry 1" },
		{ "[{\"uuid\":\"A\",\"score\":{\"B\":100001}}]", "100000" },
		{ "[{\"uuid\":\"A\",\"score\":{\"B\":1,\"B\":2}}]", "not JSON" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		struct vg_arena arena;
		struct vg_err err = { 0 };
		int32_t *links = NULL;
		size_t odd = 99;

		vg_arena_init(&arena);
		assert_int_equal(vg_links_decode(table[i][0], cards, 3, &arena, &links, &odd, &err),
				 -EINVAL);
		assert_non_null(strstr(err.msg, table[i][1]));
		assert_null(links);
		assert_int_equal(odd, 99);
		vg_arena_release(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
