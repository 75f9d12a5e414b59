/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

static void test_defaults(void **state)
{
	struct vg_classes classes;
	const struct vg_class *nvidia = &classes.item[0];

	(void)state;
	vg_classes_init(&classes);
	assert_int_equal(classes.count, 1);
	assert_string_equal(nvidia->word, "NVIDIA");
	assert_string_equal(nvidia->resource_count, "nvidia.com/gpu");
	assert_string_equal(nvidia->resource_mem, "nvidia.com/gpumem");
	assert_string_equal(nvidia->resource_mem_percent, "nvidia.com/gpumem-percentage");
	assert_string_equal(nvidia->resource_cores, "nvidia.com/gpucores");
	assert_string_equal(nvidia->resource_priority, "nvidia.com/priority");
	assert_int_equal(nvidia->mem_factor, 1);
	assert_int_equal(nvidia->to_allocate, VG_ANNO_POD_TO_ALLOCATE);
	assert_int_equal(nvidia->allocated, VG_ANNO_POD_ALLOCATED);
	vg_classes_release(&classes);
	assert_int_equal(classes.count, 0);
	vg_classes_release(&classes);
	vg_classes_release(NULL);
}

static void test_have_resource(void **state)
{
	static const struct {
		const char *name;
		bool have;
	} rows[] = {
		{ "nvidia.com/gpu", true },
		{ "nvidia.com/gpumem", true },
		{ "nvidia.com/gpumem-percentage", true },
		{ "nvidia.com/gpucores", true },
		{ "nvidia.com/priority", true },
		{ "mlu.com/count", true },
		{ "mlu.com/cores", true },
		{ "nvidia.com/gp", false },
		{ "nvidia.com/gpux", false },
		{ "cpu", false },
		/* The percentage of the second class has no name: no resource is that. */
		{ "", false },
	};
	struct world world;

	(void)state;
	world_init(&world);
	world_add_class(&world, "mlu", 256);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (vg_classes_have_resource(&world.classes, rows[i].name) != rows[i].have)
			fail_msg("\"%s\"", rows[i].name);
	world_release(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_have_resource),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
