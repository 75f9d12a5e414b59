/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include "base/map.h"

/*
 * Random operations, compared after each with a model that cannot be wrong: an array with a slot per
 * key. Few keys, so that runs of the table grow, meet, wrap around its end and get holes.
 */
static void run_model(uint64_t seed, size_t key_count, size_t steps)
{
	static char key[512][16];
	static char lookup[512][16];
	void *model[512] = { NULL };
	static char values[1024];
	struct vg_map map;
	size_t used = 0;

	assert_true(key_count <= 512);
	vg_map_init(&map);
	for (size_t i = 0; i < key_count; i++) {
		snprintf(key[i], sizeof(key[i]), "pod-%zu", i * 7919);
		memcpy(lookup[i], key[i], sizeof(key[i]));
	}
	for (size_t step = 0; step < steps; step++) {
		size_t i = next_random(&seed) % key_count;
		void *value = &values[next_random(&seed) % sizeof(values)];

		switch (next_random(&seed) % 4) {
		case 0:
		case 1:
			assert_ptr_equal(vg_map_put(&map, key[i], value), model[i]);
			used += !model[i];
			model[i] = value;
			break;
		case 2:
			assert_ptr_equal(vg_map_del(&map, lookup[i]), model[i]);
			used -= model[i] != NULL;
			model[i] = NULL;
			break;
		default:
			assert_ptr_equal(vg_map_get(&map, lookup[i]), model[i]);
		}
		assert_int_equal(map.used, used);
		if (step % 61 == 0)
			for (size_t k = 0; k < key_count; k++)
				assert_ptr_equal(vg_map_get(&map, lookup[k]), model[k]);
	}
	vg_map_release(&map);
}

static void test_against_a_model(void **state)
{
	static const size_t key_counts[] = { 1, 2, 11, 12, 13, 40, 100, 500 };

	(void)state;
	for (size_t i = 0; i < COUNT(key_counts); i++)
		for (uint64_t seed = 1; seed <= 5; seed++)
			run_model(seed, key_counts[i], 4000);
}

static void test_walk_finds_each_once(void **state)
{
	enum { KEYS = 300 };
	static char key[KEYS][16];
	int seen[KEYS] = { 0 };
	struct vg_map map;
	size_t cursor = 0;
	size_t count = 0;
	void *value;

	(void)state;
	vg_map_init(&map);
	assert_null(vg_map_next(&map, &cursor));
	for (size_t i = 0; i < KEYS; i++) {
		snprintf(key[i], sizeof(key[i]), "%zu", i);
		vg_map_put(&map, key[i], &seen[i]);
	}
	for (size_t i = 0; i < KEYS; i += 3)
		vg_map_del(&map, key[i]);
	cursor = 0;
	while ((value = vg_map_next(&map, &cursor))) {
		(*(int *)value)++;
		count++;
	}
	assert_int_equal(count, KEYS - KEYS / 3);
	for (size_t i = 0; i < KEYS; i++)
		assert_int_equal(seen[i], i % 3 != 0);
	vg_map_release(&map);
}

/* A key is compared whole: neither a prefix nor a longer text is the same key. */
static void test_spans_as_keys(void **state)
{
	int value = 0;
	int empty = 0;
	struct vg_map map;

	(void)state;
	vg_map_init(&map);
	assert_null(vg_map_get(&map, "a"));
	assert_null(vg_map_del(&map, "a"));
	vg_map_put(&map, "node", &value);
	vg_map_put(&map, "", &empty);
	assert_ptr_equal(vg_map_getn(&map, "node-1", 4), &value);
	assert_null(vg_map_getn(&map, "node-1", 3));
	assert_null(vg_map_getn(&map, "node-1", 6));
	assert_null(vg_map_get(&map, "nod"));
	assert_ptr_equal(vg_map_get(&map, ""), &empty);
	vg_map_release(&map);
	vg_map_release(NULL);
}

/* Many at once: the same as one by one, for known and unknown keys, and for an empty table. */
static void test_many(void **state)
{
	static char names[300][16];
	const char *keys[300];
	void *values[300];
	struct vg_map map;

	(void)state;
	vg_map_init(&map);
	for (size_t i = 0; i < 300; i++) {
		snprintf(names[i], sizeof(names[i]), "key-%zu", i);
		keys[i] = names[i];
		values[i] = names;
	}
	vg_map_get_many(&map, keys, 300, values);
	for (size_t i = 0; i < 300; i++)
		assert_null(values[i]);
	for (size_t i = 0; i < 300; i += 3)
		vg_map_put(&map, names[i], names[i]);
	for (size_t count = 0; count <= 300; count += count < 40 ? 1 : 65) {
		vg_map_get_many(&map, keys, count, values);
		for (size_t i = 0; i < count; i++)
			assert_ptr_equal(values[i], vg_map_get(&map, keys[i]));
	}
	assert_ptr_equal(values[0], names[0]);
	assert_null(values[1]);
	vg_map_release(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_against_a_model),
		cmocka_unit_test(test_walk_finds_each_once),
		cmocka_unit_test(test_spans_as_keys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
