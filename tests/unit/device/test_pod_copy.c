/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include "device/pod.h"

/* The copy is equal, and stays so when the memory of the original is gone and written over. */
static void test_copy_is_deep(void **state)
{
	static const char text[] =
		"{'metadata':{'name':'p','namespace':'n','uid':'u','resourceVersion':'5',"
		"'annotations':{'hami.io/vgpu-node':'n1'}},'spec':{'nodeName':'n1',"
		"'schedulerName':'s','runtimeClassName':'nvidia','initContainers':[{'name':'i'}],"
		"'containers':[{'name':'a','env':[{'name':'X'},{'name':'Y'}],"
		"'resources':{'limits':{'nvidia.com/gpu':'1'},"
		"'requests':{'nvidia.com/gpumem':'7'}}}]}}";
	json_t *object = json_from(text);
	struct vg_arena original;
	struct world world;
	struct vg_pod pod;
	struct vg_pod *copy;

	(void)state;
	world_init(&world);
	vg_arena_init(&original);
	assert_int_equal(vg_pod_decode(object, &world.classes, &original, &pod, NULL), 0);
	copy = vg_pod_copy(&pod, &world.arena);
	/* Clearing keeps the block: what is taken next overwrites the original's texts. */
	vg_arena_clear(&original);
	memset(vg_arena_new(&original, 4096), 'z', 4096);
	vg_arena_release(&original);

	assert_string_equal(copy->name, "p");
	assert_string_equal(copy->namespace, "n");
	assert_string_equal(copy->uid, "u");
	assert_int_equal(copy->resource_version, 5);
	assert_string_equal(copy->node_name, "n1");
	assert_string_equal(copy->scheduler_name, "s");
	assert_string_equal(copy->runtime_class, "nvidia");
	assert_string_equal(copy->annotations.value[VG_ANNO_POD_NODE], "n1");
	assert_null(copy->annotations.value[VG_ANNO_POD_TIME]);
	assert_int_equal(copy->container_count, 2);
	assert_string_equal(copy->containers[0].name, "i");
	assert_null(copy->containers[0].env_names[0]);
	assert_string_equal(copy->containers[1].name, "a");
	assert_string_equal(copy->containers[1].env_names[0], "X");
	assert_string_equal(copy->containers[1].env_names[1], "Y");
	assert_null(copy->containers[1].env_names[2]);
	assert_int_equal(copy->containers[1].resource_count, 2);
	assert_string_equal(vg_container_resource(&copy->containers[1], "nvidia.com/gpu"), "1");
	assert_string_equal(vg_container_resource(&copy->containers[1], "nvidia.com/gpumem"), "7");
	assert_null(copy->containers[1].resources[0].request);
	json_decref(object);
	world_release(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_copy_is_deep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
