/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include "base/arena.h"

static bool all_zero(const char *memory, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (memory[i])
			return false;
	return true;
}

/* Pieces of every size are aligned, zeroed, and none overlaps another. */
static void test_pieces_are_separate(void **state)
{
	enum { PIECES = 2000 };
	static struct {
		char *memory;
		size_t size;
	} piece[PIECES];
	struct vg_arena arena;
	uint64_t seed = 1;

	(void)state;
	vg_arena_init(&arena);
	for (size_t round = 0; round < 3; round++) {
		for (size_t i = 0; i < PIECES; i++) {
			piece[i].size = next_random(&seed) % 200;
			piece[i].memory = vg_arena_new(&arena, piece[i].size);
			assert_int_equal((uintptr_t)piece[i].memory % _Alignof(max_align_t), 0);
			assert_true(all_zero(piece[i].memory, piece[i].size));
			memset(piece[i].memory, (int)(i % 255 + 1), piece[i].size);
		}
		for (size_t i = 0; i < PIECES; i++)
			for (size_t k = 0; k < piece[i].size; k++)
				assert_int_equal((unsigned char)piece[i].memory[k], i % 255 + 1);
		vg_arena_clear(&arena);
	}
	vg_arena_release(&arena);
}

static void test_a_piece_larger_than_any_block(void **state)
{
	struct vg_arena arena;
	char *small;
	char *large;

	(void)state;
	vg_arena_init(&arena);
	small = vg_arena_new(&arena, 10);
	memset(small, 'a', 10);
	large = vg_arena_new(&arena, 5u << 20);
	assert_true(all_zero(large, 5u << 20));
	memset(large, 'b', 5u << 20);
	assert_int_equal(small[9], 'a');
	vg_arena_release(&arena);
	assert_null(arena.blocks);
}

/* A loop that clears the arena ends with one block that is large enough, and takes no more. */
static void test_clear_settles(void **state)
{
	struct vg_arena arena;
	void *settled = NULL;

	(void)state;
	vg_arena_init(&arena);
	for (int round = 0; round < 20; round++) {
		for (int i = 0; i < 100; i++)
			vg_arena_new(&arena, 1000);
		if (round == 10)
			settled = arena.blocks;
		if (round > 10)
			assert_ptr_equal(arena.blocks, settled);
		vg_arena_clear(&arena);
		assert_non_null(arena.blocks);
	}
	vg_arena_release(&arena);
}

static void test_texts(void **state)
{
	struct vg_arena arena;
	char many[3000];

	(void)state;
	vg_arena_init(&arena);
	assert_string_equal(vg_arena_strdup(&arena, ""), "");
	assert_string_equal(vg_arena_strdup(&arena, "card"), "card");
	assert_string_equal(vg_arena_strndup(&arena, "card", 2), "ca");
	assert_string_equal(vg_arena_strndup(&arena, "card", 0), "");
	assert_string_equal(vg_arena_printf(&arena, "%s-%d", "GPU", 7), "GPU-7");
	assert_string_equal(vg_arena_printf(&arena, "%s", ""), "");
	memset(many, 'x', sizeof(many) - 1);
	many[sizeof(many) - 1] = '\0';
	assert_string_equal(vg_arena_printf(&arena, "%s", many), many);
	vg_arena_release(&arena);
}

/* Texts of every length around the alignment end where they should, whatever stands behind them. */
static void test_texts_end(void **state)
{
	static const char fill[] =
		"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	for (int length = 0; length < (int)sizeof(fill); length++) {
		const char *copy = vg_arena_strndup(&arena, fill, (size_t)length);
		const char *print;

		memset(vg_arena_new(&arena, 16), 'y', 16);
		print = vg_arena_printf(&arena, "%.*s", length, fill);
		memset(vg_arena_new(&arena, 16), 'y', 16);
		assert_int_equal(strlen(copy), length);
		assert_int_equal(strlen(print), length);
	}
	vg_arena_release(&arena);
}

static void test_empty_and_null(void **state)
{
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	vg_arena_clear(&arena);
	assert_null(arena.blocks);
	assert_non_null(vg_arena_new_array(&arena, 0, 8));
	vg_arena_release(&arena);
	vg_arena_release(&arena);
	vg_arena_release(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pieces_are_separate),
		cmocka_unit_test(test_a_piece_larger_than_any_block),
		cmocka_unit_test(test_clear_settles),
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_texts_end),
		cmocka_unit_test(test_empty_and_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
