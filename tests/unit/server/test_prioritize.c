/* SPDX-License-Identifier: Apache-2.0 */
/* Ranked mode: filter names all that fit, prioritize scores them, and bind chooses the cards. */
#include "unit/server/harness.h"

#define EMPTY "\"FailedNodes\":null,\"FailedAndUnresolvableNodes\":null"
#define POD(annotations, limits)                                                                         \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{" annotations \
	"}},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{" limits             \
	"}}}]}}"
#define SLICE  "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"4000\""
#define SPREAD "\"hami.io/node-scheduler-policy\":\"spread\""
#define NAMES  ",\"NodeNames\":[\"full\",\"half\",\"empty\",\"none\"]}"

#define BOUND(name, node, devices)                                                                 \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"uid-" name            \
	"\",\"annotations\":{\"hami.io/vgpu-devices-allocated\":\"" devices                        \
	"\"}},\"spec\":{\"nodeName\":\"" node "\",\"containers\":[{\"name\":\"main\"}]}}"

/* Half: one of two slots, half the memory, half the compute. */
static struct world *ranked_cluster(void)
{
	struct world *world = world_new();

	world->options.ranked = true;
	world_restart(world);
	world_ready(world);
	world_node(world, "full", "GPU-f,NVIDIA A100,8000,10");
	world_node(world, "half", "GPU-h,NVIDIA A100,8000,2");
	world_node(world, "empty", "GPU-e,NVIDIA A100,8000,10");
	world_pod(world, BOUND("a", "full", "GPU-f,NVIDIA,7000,90:;"));
	world_pod(world, BOUND("b", "half", "GPU-h,NVIDIA,4000,50:;"));
	return world;
}

static void test_filter_names_all_that_fit(void **state)
{
	struct world *world = ranked_cluster();

	(void)state;
	world_ask(world, "/filter", "{\"Pod\":" POD("", SLICE) NAMES);
	expect_reply(
		world, "two fit", 200,
		"{\"Nodes\":null,\"NodeNames\":[\"half\",\"empty\"],"
		"\"FailedNodes\":{\"full\":\"1/1 CardInsufficientMemory\","
		"\"none\":\"node unregistered\"},\"FailedAndUnresolvableNodes\":{\"none\":\"node unregistered\"},"
		"\"Error\":\"\"}");
	/* Nothing was reserved: the same again. */
	world_ask(world, "/filter", "{\"Pod\":" POD("", SLICE) ",\"NodeNames\":[\"half\"]}");
	expect_reply(world, "no effect", 200,
		     "{\"Nodes\":null,\"NodeNames\":[\"half\"]," EMPTY ",\"Error\":\"\"}");
	world_free(world);
}

static void test_scores(void **state)
{
	static const struct {
		const char *what;
		const char *body;
		const char *reply;
	} rows[] = {
		{ "binpack: the fuller the better; what does not fit has none",
		  "{\"Pod\":" POD("", SLICE) NAMES,
		  "[{\"Host\":\"full\",\"Score\":0},{\"Host\":\"half\",\"Score\":5},"
		  "{\"Host\":\"empty\",\"Score\":0},{\"Host\":\"none\",\"Score\":0}]" },
		{ "spread: the emptier the better", "{\"Pod\":" POD(SPREAD, SLICE) NAMES,
		  "[{\"Host\":\"full\",\"Score\":0},{\"Host\":\"half\",\"Score\":5},"
		  "{\"Host\":\"empty\",\"Score\":10},{\"Host\":\"none\",\"Score\":0}]" },
		{ "no cards asked for: no preference", "{\"Pod\":" POD("", "") NAMES,
		  "[{\"Host\":\"full\",\"Score\":0},{\"Host\":\"half\",\"Score\":0},"
		  "{\"Host\":\"empty\",\"Score\":0},{\"Host\":\"none\",\"Score\":0}]" },
		{ "no nodes", "{\"Pod\":" POD("", SLICE) ",\"NodeNames\":[]}", "[]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = ranked_cluster();

		world_ask(world, "/prioritize", rows[i].body);
		expect_reply(world, rows[i].what, 200, rows[i].reply);
		world_free(world);
	}
}

static void test_errors(void **state)
{
	struct world *world = ranked_cluster();

	(void)state;
	world_ask(world, "/prioritize", "{\"Pod\":");
	assert_int_equal(world->reply.status, 400);
	world_ask(world, "/prioritize", "{\"Pod\":" POD("", SLICE) "}");
	assert_int_equal(world->reply.status, 400);
	assert_non_null(strstr(world->reply.body, "nodeCacheCapable"));
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filter_names_all_that_fit),
		cmocka_unit_test(test_scores),
		cmocka_unit_test(test_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
