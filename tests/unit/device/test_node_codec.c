/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include <errno.h>

#include "base/limits.h"
#include "device/node.h"

static int decode(struct world *world, const char *text, struct vg_node_info *ret_node,
		  struct vg_err *err)
{
	json_t *object = json_from(text);
	int r = vg_node_decode(object, &world->classes, &world->arena, ret_node, err);

	json_decref(object);
	return r;
}

static void test_decoded(void **state)
{
	static const struct {
		const char *text;
		uint64_t version;
		size_t cards;
		int64_t allocatable;
		const char *error; /* NULL: none */
	} rows[] = {
		{ "{'metadata':{'name':'n'}}", 0, 0, -1, NULL },
		{ "{'kind':'Node','metadata':{'name':'n','resourceVersion':'7'},'status':null}", 7,
		  0, -1, NULL },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'8',"
		  "'nvidia.com/gpu':'10'}}}",
		  0, 0, 10, NULL },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/gpu':8}}}", 0, 0,
		  8, NULL },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/gpu':'0'}}}", 0, 0,
		  0, NULL },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/gpu':'-3'}}}", 0,
		  0, 0, NULL },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/gpu':null}}}", 0,
		  0, -1, NULL },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'cpu':'8'},"
		  "'capacity':{'nvidia.com/gpu':'9'}}}",
		  0, 0, -1, NULL },
		{ "{'metadata':{'name':'n','annotations':{'hami.io/node-nvidia-register':'GPU-0,"
		  "5,8192,100,A100,1,true:'}}}",
		  0, 1, -1, NULL },
		/* A register annotation that nobody can read costs the cards and not the node. */
		{ "{'metadata':{'name':'n',"
		  "'annotations':{'hami.io/node-nvidia-register':'garbage'}},"
		  "'status':{'allocatable':{'nvidia.com/gpu':'10'}}}",
		  0, 0, 10, "neither a JSON array nor" },
		{ "{'metadata':{'name':'n',"
		  "'annotations':{'hami.io/node-nvidia-register':'[null]'}}}",
		  0, 0, -1, "card 0 is null" },
		{ "{'metadata':{'name':'n','annotations':{'hami.io/node-nvidia-register':''}}}", 0,
		  0, -1, "empty" },
		{ "{'metadata':{'name':'n','annotations':{'hami.io/node-nvidia-register':'[]'}}}",
		  0, 0, -1, NULL },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_node_info node;
		struct vg_err err = { 0 };

		if (decode(&world, rows[i].text, &node, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
		assert_string_equal(node.name, "n");
		assert_int_equal(node.resource_version, rows[i].version);
		assert_int_equal(node.card_count, rows[i].cards);
		assert_int_equal(node.allocatable, rows[i].allocatable);
		assert_int_equal(node.register_error != NULL, rows[i].error != NULL);
		if (rows[i].error)
			assert_non_null(strstr(node.register_error, rows[i].error));
	}
	world_release(&world);
}

/* The class says what its devices are called. */
static void test_other_resource_name(void **state)
{
	static const char text[] = "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/"
				   "gpu':'8','x/vgpu':'2','':'3'}}}";
	static const struct {
		const char *name;
		int64_t allocatable;
	} rows[] = { { "x/vgpu", 2 }, { "x/other", -1 }, { "", -1 } };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_node_info node;
		struct world world;

		world_init(&world);
		free(world.classes.item[0].resource_count);
		world.classes.item[0].resource_count = vg_strdup(rows[i].name);
		assert_int_equal(decode(&world, text, &node, NULL), 0);
		assert_int_equal(node.allocatable, rows[i].allocatable);
		world_release(&world);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *why;
	} rows[] = {
		{ "[]", -EINVAL, "not a Node: an array instead of an object" },
		{ "{'metadata':{}}", -EINVAL, "metadata.name is missing" },
		{ "{'metadata':{'name':''}}", -EINVAL, "metadata.name is missing" },
		{ "{'kind':'Pod','metadata':{'name':'n'}}", -EINVAL,
		  "not a Node: kind is \"Pod\"" },
		{ "{'metadata':{'name':'n','annotations':7}}", -EINVAL,
		  "Node n: metadata.annotations is a number" },
		{ "{'metadata':{'name':'n'},'status':[]}", -EINVAL,
		  "Node n: status is an array, not an object" },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':7}}", -EINVAL,
		  "Node n: status.allocatable is a number" },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/gpu':'many'}}}",
		  -EINVAL,
		  "Node n: status.allocatable[\"nvidia.com/gpu\"]: \"many\" is not a quantity" },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/gpu':'1e99'}}}",
		  -EINVAL, "1e99 is too large" },
		{ "{'metadata':{'name':'n'},'status':{'allocatable':{'nvidia.com/gpu':[]}}}",
		  -EINVAL, "nvidia.com/gpu is an array, not a quantity" },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_node_info node = { .name = "untouched" };
		struct vg_err err = { 0 };
		int r = decode(&world, rows[i].text, &node, &err);

		if (r != rows[i].code || err.code != r || !strstr(err.msg, rows[i].why))
			fail_msg("%s: %d \"%s\", not \"%s\"", rows[i].text, r, err.msg,
				 rows[i].why);
		assert_string_equal(node.name, "untouched");
	}
	world_release(&world);
}

/* Nodes as an API server 1.20.2 listed them. */
static void test_captured(void **state)
{
	json_t *page = json_from_file(CAPTURED "nodes-page1.json");
	struct world world;
	json_t *item;
	size_t i;

	(void)state;
	world_init(&world);
	json_array_foreach(json_object_get(page, "items"), i, item)
	{
		struct vg_node_info node;
		char name[32];

		snprintf(name, sizeof(name), "gpu-%zu", i + 1);
		assert_int_equal(vg_node_decode(item, &world.classes, &world.arena, &node, NULL),
				 0);
		assert_string_equal(node.name, name);
		assert_int_equal(node.card_count, 1);
		assert_string_equal(node.cards[0].model, "NVIDIA A100-SXM4-80GB");
		assert_int_equal(node.cards[0].mem_mib, 81920);
		assert_int_equal(node.cards[0].slots, 10);
		assert_int_equal(node.cards[0].cores, 100);
		assert_int_equal(node.cards[0].mode, VG_MODE_HAMI_CORE);
		assert_true(node.cards[0].healthy);
		assert_int_equal(node.allocatable, 10);
		assert_null(node.register_error);
	}
	assert_int_equal(i, 2);
	json_decref(page);
	world_release(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decoded),
		cmocka_unit_test(test_other_resource_name),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
