/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/fake/child.h"

#include "fake/arena.h"
#include "fake/heap.h"

#define MIB (1ull << 20)

static uint64_t taken, allowed;

static bool take(void *context, uint64_t bytes)
{
	(void)context;
	if (taken + bytes > allowed)
		return false;
	taken += bytes;
	return true;
}

static void give(void *context, uint64_t bytes)
{
	(void)context;
	taken -= bytes;
}

static struct fake_heap heap_of(uint64_t room, uint64_t limit)
{
	taken = 0;
	allowed = UINT64_MAX;
	return (struct fake_heap){
		.take = take,
		.give = give,
		.chunk_bytes = 32 * MIB,
		.room_bytes = room,
		.limit_bytes = limit,
	};
}

/* What an H200's default pool reserved for four allocations of a size, beside one of 1 MiB. */
static void test_heap_reserves(void **state)
{
	static const struct {
		uint64_t bytes, reserved_mib;
	} rows[] = {
		{ 1000, 32 },      { 65536, 32 },     { 1048576, 32 },   { 1048577, 32 },
		{ 33554432, 160 }, { 33554433, 160 }, { 67108864, 288 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_heap heap = heap_of(1024 * MIB, 0);
		struct fake_heap_block *blocks[4];

		assert_non_null(fake_heap_take(&heap, MIB));
		for (int j = 0; j < 4; j++) {
			blocks[j] = fake_heap_take(&heap, rows[i].bytes);
			assert_non_null(blocks[j]);
			/* It is memory. */
			memset(fake_heap_address(&heap, blocks[j]), j, 100);
		}
		assert_int_equal(heap.reserved_bytes, rows[i].reserved_mib * MIB);
		assert_int_equal(taken, heap.reserved_bytes);
		for (int j = 0; j < 4; j++) {
			assert_int_equal(*(char *)fake_heap_address(&heap, blocks[j]), j);
			fake_heap_give(&heap, blocks[j]);
		}
		assert_int_equal(heap.reserved_bytes, rows[i].reserved_mib * MIB);
		fake_heap_trim(&heap, 0);
		assert_int_equal(heap.reserved_bytes, 32 * MIB);
		fake_heap_release(&heap);
		assert_int_equal(taken, 0);
	}
}

static void test_heap_limits(void **state)
{
	struct fake_heap heap = heap_of(256 * MIB, 64 * MIB);
	struct fake_heap_block *first, *second;

	(void)state;
	first = fake_heap_take(&heap, 40 * MIB);
	assert_non_null(first);
	assert_null(fake_heap_take(&heap, 40 * MIB)); /* the pool's own limit */
	second = fake_heap_take(&heap, 24 * MIB);
	assert_non_null(second);
	fake_heap_give(&heap, first);
	fake_heap_give(&heap, second);
	fake_heap_trim(&heap, 40 * MIB);
	assert_int_equal(heap.reserved_bytes, 32 * MIB); /* whole chunks */
	allowed = 32 * MIB;
	assert_null(fake_heap_take(&heap, 33 * MIB)); /* the card's */
	assert_int_equal(taken, 32 * MIB);
	assert_null(fake_heap_take(&heap, 257 * MIB)); /* the addresses' */
	fake_heap_release(&heap);
	assert_int_equal(taken, 0);
}

/* Random use against a plain count: nothing overlaps, nothing is lost. */
static void test_heap_random(void **state)
{
	enum { BLOCKS = 64 };
	struct fake_heap heap = heap_of(2048 * MIB, 0);
	struct fake_heap_block *blocks[BLOCKS] = { NULL };
	unsigned int seed = 7;
	uint64_t used = 0;

	(void)state;
	for (int round = 0; round < 20000; round++) {
		int i = rand_r(&seed) % BLOCKS;
		unsigned int size = (unsigned int)rand_r(&seed);

		if (blocks[i]) {
			unsigned char *data = fake_heap_address(&heap, blocks[i]);

			assert_int_equal(data[0], i);
			assert_int_equal(data[blocks[i]->bytes - 1], i);
			used -= blocks[i]->bytes;
			fake_heap_give(&heap, blocks[i]);
			blocks[i] = NULL;
		} else {
			unsigned char *data;

			blocks[i] = fake_heap_take(&heap, 1 + size % (8u << 20));
			assert_non_null(blocks[i]);
			used += blocks[i]->bytes;
			data = fake_heap_address(&heap, blocks[i]);
			data[0] = data[blocks[i]->bytes - 1] = (unsigned char)i;
		}
		assert_int_equal(heap.used_bytes, used);
		assert_true(heap.reserved_bytes >= used);
		if (round % 100 == 0)
			fake_heap_trim(&heap, 0);
	}
	for (int i = 0; i < BLOCKS; i++) {
		if (blocks[i])
			fake_heap_give(&heap, blocks[i]);
	}
	fake_heap_trim(&heap, 0);
	assert_int_equal(taken, 0);
	assert_null(heap.blocks->next); /* one free block again */
	fake_heap_release(&heap);
}

/* What 64 small allocations of a size took on an H200, in KiB each. */
static void test_arena_pages(void **state)
{
	static const struct {
		uint64_t bytes, pages;
	} rows[] = {
		{ 1, 1 },        { 1000, 1 },     { 65536, 2 },    { 600000, 22 },
		{ 1048576, 32 }, { 1048577, 64 }, { 2097152, 64 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_arena arena = { .take = take, .give = give, .segment_bytes = 2 * MIB };
		struct fake_block *blocks[64];

		taken = 0;
		allowed = UINT64_MAX;
		for (int j = 0; j < 64; j++) {
			blocks[j] = fake_arena_take(&arena, rows[i].bytes);
			assert_int_equal((uintptr_t)fake_block_address(blocks[j]) % 512, 0);
			memset(fake_block_address(blocks[j]), j, rows[i].bytes);
		}
		assert_int_equal(taken, rows[i].pages * 2 * MIB);
		for (int j = 63; j >= 0; j--) {
			assert_int_equal(*(char *)fake_block_address(blocks[j]), j);
			fake_arena_give(&arena, blocks[j]);
		}
		/* The pieces are whole pages again, whatever the order they came back in. */
		for (int odd = 1; odd >= 0; odd--) {
			for (int j = 0; j < 64; j++)
				blocks[j] = fake_arena_take(&arena, rows[i].bytes);
			for (int j = odd; j < 64; j += 2)
				fake_arena_give(&arena, blocks[j]);
			for (int j = !odd; j < 64; j += 2)
				fake_arena_give(&arena, blocks[j]);
		}
		blocks[0] = fake_arena_take(&arena, 2 * MIB);
		assert_non_null(blocks[0]);
		assert_int_equal(taken, rows[i].pages * 2 * MIB);
		fake_arena_give(&arena, blocks[0]);
		fake_arena_trim(&arena, 0);
		assert_int_equal(taken, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_heap_reserves),
		cmocka_unit_test(test_heap_limits),
		cmocka_unit_test(test_heap_random),
		cmocka_unit_test(test_arena_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
