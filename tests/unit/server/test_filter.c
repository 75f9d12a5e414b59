/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/server/harness.h"

#define EMPTY "\"FailedNodes\":null,\"FailedAndUnresolvableNodes\":null"

/* One pod; the limits of its one container. */
#define POD(uid, limits)                                                                           \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"" uid                        \
	"\"},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{" limits      \
	"}}}]}}"
#define SLICE(mem) "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"" mem "\""

static struct world *small_cluster(void)
{
	struct world *world = world_new();

	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10;GPU-b,NVIDIA A100,8000,10");
	world_node(world, "n2", "GPU-c,NVIDIA A100,16000,10");
	world_node(world, "n3", "");
	return world;
}

struct row {
	const char *what;
	const char *body;
	const char *reply;
};

static void test_replies(void **state)
{
	static const struct row rows[] = {
		{ "a slice that fits one node",
		  "{\"Pod\":" POD("u1",
				  SLICE("9000")) ",\"Nodes\":null,\"NodeNames\":[\"n1\",\"n2\"]}",
		  "{\"Nodes\":null,\"NodeNames\":[\"n2\"]," EMPTY ",\"Error\":\"\"}" },
		{ "any case of keys, unknown members, the last of two counts",
		  "{\"x\":{\"y\":[1,2]},\"nodenames\":[\"n1\"],\"pod\":" POD(
			  "u2", SLICE("9000")) ",\"NODENAMES\":[\"n2\"]}",
		  "{\"Nodes\":null,\"NodeNames\":[\"n2\"]," EMPTY ",\"Error\":\"\"}" },
		{ "bytes behind the first value",
		  "{\"Pod\":" POD("u3", SLICE("1000")) ",\"NodeNames\":[\"n2\"]}, what else",
		  "{\"Nodes\":null,\"NodeNames\":[\"n2\"]," EMPTY ",\"Error\":\"\"}" },
		{ "no room: preemption may help on n1 and n2 has not enough cards",
		  "{\"Pod\":" POD(
			  "u4",
			  "\"nvidia.com/gpu\":\"2\",\"nvidia.com/gpumem\":\"8001\"") ",\"NodeNames\":[\"n1\",\"n2\",\"n3\",\"n4\"]}",
		  "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{"
		  "\"n1\":\"2/2 CardInsufficientMemory\",\"n2\":\"NodeInsufficientDevice\","
		  "\"n3\":\"node unregistered\",\"n4\":\"node unregistered\"},"
		  "\"FailedAndUnresolvableNodes\":{\"n1\":\"2/2 CardInsufficientMemory\","
		  "\"n2\":\"NodeInsufficientDevice\",\"n3\":\"node unregistered\","
		  "\"n4\":\"node unregistered\"},\"Error\":\"\"}" },
		{ "no cards asked for: echo",
		  "{\"Pod\":" POD("u5", "\"cpu\":\"1\"") ",\"NodeNames\":[ \"n1\", \"n9\" ]}",
		  "{\"Nodes\":null,\"NodeNames\":[ \"n1\", \"n9\" ]," EMPTY ",\"Error\":\"\"}" },
		{ "no cards asked for: echo of nodes",
		  "{\"Pod\":" POD("u5",
				  "") ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n1\"}}]}}",
		  "{\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n1\"}}]},\"NodeNames\":null," EMPTY
		  ",\"Error\":\"\"}" },
		{ "no cards asked for and nothing sent", "{\"Pod\":" POD("u5", "") "}",
		  "{\"Nodes\":null,\"NodeNames\":null," EMPTY ",\"Error\":\"\"}" },
		{ "memory in bytes",
		  "{\"Pod\":" POD("u6", SLICE("16Gi")) ",\"NodeNames\":[\"n1\",\"n2\"]}",
		  "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{"
		  "\"n1\":\"container \\\"main\\\": nvidia.com/gpumem \\\"16Gi\\\" is not a count of "
		  "MiB; write 16384\","
		  "\"n2\":\"container \\\"main\\\": nvidia.com/gpumem \\\"16Gi\\\" is not a count of "
		  "MiB; write 16384\"},\"FailedAndUnresolvableNodes\":{"
		  "\"n1\":\"container \\\"main\\\": nvidia.com/gpumem \\\"16Gi\\\" is not a count of "
		  "MiB; write 16384\","
		  "\"n2\":\"container \\\"main\\\": nvidia.com/gpumem \\\"16Gi\\\" is not a count of "
		  "MiB; write 16384\"},\"Error\":\"\"}" },
		{ "memory in bytes, nowhere to say so", "{\"Pod\":" POD("u6", SLICE("16Gi")) "}",
		  "{\"Nodes\":null,\"NodeNames\":null," EMPTY
		  ",\"Error\":\"container \\\"main\\\": nvidia.com/gpumem \\\"16Gi\\\" is not a count of "
		  "MiB; write 16384\"}" },
		{ "which nodes?", "{\"Pod\":" POD("u7", SLICE("1")) ",\"Nodes\":null}",
		  "{\"Nodes\":null,\"NodeNames\":null," EMPTY
		  ",\"Error\":\"ExtenderArgs have neither NodeNames nor Nodes: which nodes is the pod "
		  "to be tried on?\"}" },
		{ "no node at all", "{\"Pod\":" POD("u7", SLICE("1")) ",\"NodeNames\":[]}",
		  "{\"Nodes\":null,\"NodeNames\":null," EMPTY ",\"Error\":\"\"}" },
		{ "no UID", "{\"Pod\":" POD("", SLICE("1")) ",\"NodeNames\":[\"n1\"]}",
		  "{\"Nodes\":null,\"NodeNames\":null," EMPTY
		  ",\"Error\":\"the pod has no metadata.uid: cards are reserved under it\"}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = small_cluster();

		world_ask(world, "/filter", rows[i].body);
		assert_string_equal(world->reply.type, "application/json");
		expect_reply(world, rows[i].what, 200, rows[i].reply);
		world_free(world);
	}
}

/* Each is HTTP 200 with an Error that says where, and nothing else happens. */
/* With a default count, the webhook writes it: a pod without it went past the webhook. */
static void test_uncounted(void **state)
{
	struct world *world = small_cluster();

	(void)state;
	world->classes.item[0].default_count = 1;
	world_ask(world, "/filter", "{\"Pod\":" POD("u6", "\"nvidia.com/gpumem\":\"100\"") "}");
	expect_reply(
		world, "kubelet would hand out nothing", 200,
		"{\"Nodes\":null,\"NodeNames\":null," EMPTY
		",\"Error\":\"container \\\"main\\\" asks for a part of a card, but names no "
		"number of cards: the admission webhook would have added it, and did not see this "
		"pod; is the webhook running? Or write the number into the pod\"}");
	world_free(world);
}

static void test_bad_bodies(void **state)
{
	static const struct row rows[] = {
		{ "empty", "", "the body is empty" },
		{ "blank", " \n\t", "the body is empty" },
		{ "null", "null", "byte 1: 'n' where an object is expected" },
		{ "array", "[]", "byte 1: '[' where an object is expected" },
		{ "text", "hello", "byte 1: 'h' where an object is expected" },
		{ "no pod", "{\"NodeNames\":[\"n1\"]}", "extender args missing pod" },
		{ "null pod", "{\"Pod\":null,\"NodeNames\":[\"n1\"]}",
		  "extender args missing pod" },
		{ "pod is no object", "{\"Pod\":[1]}", "Pod" },
		{ "pod without metadata", "{\"Pod\":{}}", "metadata" },
		{ "truncated in a key", "{\"Po", "byte 5: the text ends inside a string" },
		{ "truncated in the pod", "{\"Pod\":{\"metadata\":{\"name\":\"p",
		  "byte 30: the text ends inside a string" },
		{ "truncated behind the pod", "{\"Pod\":{}",
		  "byte 10: the text ends where ',' or '}'" },
		{ "truncated in the names", "{\"Pod\":{},\"NodeNames\":[\"n1\",",
		  "NodeNames: byte 29: the text ends where a string" },
		{ "names of another type", "{\"Pod\":" POD("u", "") ",\"NodeNames\":\"n1\"}",
		  "'\"' where an array is expected" },
		{ "a name of another type", "{\"Pod\":" POD("u", "") ",\"NodeNames\":[\"n1\",2]}",
		  "'2' where a string is expected" },
		{ "nodes of another type", "{\"Pod\":" POD("u", SLICE("1")) ",\"Nodes\":[]}",
		  "Nodes: byte 1: '[' where an object is expected" },
		{ "a node of another type",
		  "{\"Pod\":" POD("u", SLICE("1")) ",\"Nodes\":{\"items\":[7]}}",
		  "Nodes.items[0]" },
		{ "a number that is none", "{\"Pod\":01}",
		  "byte 9: '1' where ',' or '}' is expected" },
		{ "a comma too much", "{\"Pod\":{\"a\":1,}}",
		  "byte 15: '}' where a string is expected" },
		{ "control character", "{\"Pod\":{\"a\":\"\x01\"}}", "control character 0x01" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = small_cluster();
		struct vg_cluster_stats stats;
		json_t *reply;
		const char *error;

		world_ask(world, "/filter", rows[i].body);
		assert_int_equal(world->reply.status, 200);
		reply = json_loads(world->reply.body, 0, NULL);
		assert_non_null(reply);
		assert_int_equal(json_object_size(reply), 5);
		assert_true(json_is_null(json_object_get(reply, "NodeNames")));
		error = json_string_value(json_object_get(reply, "Error"));
		if (!error || !strstr(error, rows[i].reply))
			fail_msg("%s: \"%s\", want \"%s\"", rows[i].what, error, rows[i].reply);
		json_decref(reply);
		vg_cluster_stats(world->cluster, 0, &stats);
		assert_int_equal(stats.reservations_made, 0);
		world_free(world);
	}
}

static void test_deep_nesting(void **state)
{
	struct world *world = small_cluster();
	char *body = vg_new(200000);
	size_t used = (size_t)snprintf(body, 200000, "{\"Pod\":{\"a\":");

	(void)state;
	memset(body + used, '[', 100000);
	world_ask(world, "/filter", body);
	assert_int_equal(world->reply.status, 200);
	assert_non_null(strstr(world->reply.body, "nested deeper than 128"));
	memset(body, '[', 100000);
	world_ask(world, "/filter", body);
	assert_non_null(strstr(world->reply.body, "where an object is expected"));
	free(body);
	world_free(world);
}

static void test_too_many_names(void **state)
{
	struct world *world = small_cluster();
	char *body = vg_new(1 << 20);
	size_t used = (size_t)snprintf(body, 1 << 20,
				       "{\"Pod\":" POD("u", SLICE("1")) ",\"NodeNames\":[\"n\"");

	(void)state;
	for (unsigned i = 0; i < VG_LIMIT_NODES; i++)
		used += (size_t)snprintf(body + used, (1 << 20) - used, ",\"n\"");
	snprintf(body + used, (1 << 20) - used, "]}");
	world_ask(world, "/filter", body);
	assert_non_null(strstr(world->reply.body, "more than 20000 entries"));
	memset(body, 0, 1 << 20);
	used = (size_t)snprintf(body, 1 << 20,
				"{\"Pod\":" POD("u", SLICE("1")) ",\"NodeNames\":[\"");
	memset(body + used, 'n', 300);
	snprintf(body + used + 300, 100, "\"]}");
	world_ask(world, "/filter", body);
	assert_non_null(strstr(world->reply.body, "an entry of more than 253"));
	free(body);
	world_free(world);
}

/* ---- readiness -------------------------------------------------------------------------------- */

static void test_not_ready(void **state)
{
	struct world *world = world_new();

	(void)state;
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10");
	world_ask(world, "/filter", "{\"Pod\":" POD("u", SLICE("1")) ",\"NodeNames\":[\"n1\"]}");
	expect_reply(
		world, "not ready", 200,
		"{\"Nodes\":null,\"NodeNames\":null," EMPTY
		",\"Error\":\"vgpu-scheduler is not ready: the list of nodes has not been read "
		"yet\"}");
	/* Pods without cards are none of our business. */
	world_ask(world, "/filter", "{\"Pod\":" POD("u", "") ",\"NodeNames\":[\"n1\"]}");
	expect_reply(world, "no cards", 200,
		     "{\"Nodes\":null,\"NodeNames\":[\"n1\"]," EMPTY ",\"Error\":\"\"}");
	world_free(world);
}

/* ---- reservations ----------------------------------------------------------------------------- */

static void test_reserves(void **state)
{
	struct world *world = small_cluster();
	struct vg_cluster_stats stats;

	(void)state;
	world_ask(world, "/filter",
		  "{\"Pod\":" POD("u1", SLICE("9000")) ",\"NodeNames\":[\"n2\"]}");
	assert_non_null(strstr(world->reply.body, "\"NodeNames\":[\"n2\"]"));
	/* Another pod does not get the same memory, the same pod does. */
	world_ask(world, "/filter",
		  "{\"Pod\":" POD("u2", SLICE("9000")) ",\"NodeNames\":[\"n2\"]}");
	expect_reply(
		world, "taken", 200,
		"{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{\"n2\":\"1/1 "
		"CardInsufficientMemory\"},\"FailedAndUnresolvableNodes\":null,\"Error\":\"\"}");
	world_ask(world, "/filter",
		  "{\"Pod\":" POD("u1", SLICE("9000")) ",\"NodeNames\":[\"n2\"]}");
	assert_non_null(strstr(world->reply.body, "\"NodeNames\":[\"n2\"]"));
	vg_cluster_stats(world->cluster, 0, &stats);
	assert_int_equal(stats.pods[VG_STATE_RESERVED], 1);
	world_free(world);
}

static unsigned learned;

static void on_learn(void *ctx, const struct vg_pod *pod)
{
	assert_string_equal(pod->name, "p");
	assert_string_equal(ctx, "ctx");
	learned++;
}

static void test_learns(void **state)
{
	struct world *world = small_cluster();
	char ctx[] = "ctx";

	(void)state;
	world->options.learn = on_learn;
	world->options.learn_ctx = ctx;
	world_restart(world);
	learned = 0;
	world_ask(world, "/filter", "{\"Pod\":" POD("u", "") ",\"NodeNames\":[\"n1\"]}");
	world_ask(world, "/filter", "{\"Pod\":" POD("u", SLICE("16Gi")) ",\"NodeNames\":[\"n1\"]}");
	assert_int_equal(learned, 0);
	world_ask(world, "/filter", "{\"Pod\":" POD("u", SLICE("1")) ",\"NodeNames\":[\"n1\"]}");
	assert_int_equal(learned, 1);
	world_free(world);
}

/* ---- whole nodes: no effect ------------------------------------------------------------------- */

#define REGISTER(uuid, mem)                                                                        \
	"{\"hami.io/node-nvidia-register\":\"[{\\\"id\\\":\\\"" uuid                               \
	"\\\",\\\"count\\\":10,\\\"devmem\\\":" mem                                                \
	",\\\"devcore\\\":100,\\\"type\\\":\\\"NVIDIA A100\\\",\\\"health\\\":true}]\"}"
#define NODE(name, uuid, mem)                                                                      \
	"{ \"metadata\":{\"name\":\"" name "\",\"annotations\":" REGISTER(uuid, mem) "} }"

static void test_simulation(void **state)
{
	struct world *world = small_cluster();
	struct vg_cluster_stats stats;

	(void)state;
	world_ask(world, "/filter",
		  "{\"Pod\":" POD("u1", SLICE("9000")) ",\"Nodes\":{\"Items\":[" NODE(
			  "x", "GPU-x", "4000") "," NODE("y", "GPU-y",
							 "20000") "]},\"NodeNames\":null}");
	expect_reply(
		world, "y fits", 200,
		"{\"Nodes\":{\"metadata\":{},\"items\":[" NODE(
			"y", "GPU-y",
			"20000") "]},\"NodeNames\":null,\"FailedNodes\":{\"x\":\"1/1 CardInsufficientMemory\"},"
				 "\"FailedAndUnresolvableNodes\":{\"x\":\"1/1 CardInsufficientMemory\"},"
				 "\"Error\":\"\"}");
	world_ask(world, "/filter",
		  "{\"Pod\":" POD("u1", SLICE("30000")) ",\"Nodes\":{\"items\":[" NODE(
			  "x", "GPU-x", "4000") ",{\"metadata\":{\"name\":\"bare\"}}]}}");
	expect_reply(world, "nobody", 200,
		     "{\"Nodes\":null,\"NodeNames\":null,\"FailedNodes\":{\"x\":\"1/1 "
		     "CardInsufficientMemory\",\"bare\":\"node unregistered\"},"
		     "\"FailedAndUnresolvableNodes\":{\"x\":\"1/1 CardInsufficientMemory\","
		     "\"bare\":\"node unregistered\"},\"Error\":\"\"}");
	/* What is given out of a known card counts in a simulation as well. */
	world_ask(world, "/filter",
		  "{\"Pod\":" POD("u1", SLICE("9000")) ",\"NodeNames\":[\"n2\"]}");
	world_ask(world, "/filter",
		  "{\"Pod\":" POD("u2", SLICE("9000")) ",\"Nodes\":{\"items\":[" NODE(
			  "n2", "GPU-c", "16000") "]}}");
	assert_non_null(strstr(world->reply.body, "\"FailedAndUnresolvableNodes\":null"));
	assert_non_null(strstr(world->reply.body, "{\"n2\":\"1/1 CardInsufficientMemory\"}"));
	vg_cluster_stats(world->cluster, 0, &stats);
	assert_int_equal(stats.reservations_made, 1);
	world_free(world);
}

/* ---- what kube-scheduler really sends --------------------------------------------------------- */

static void test_captured(void **state)
{
	static const struct {
		const char *file;
		const char *reply;
	} rows[] = {
		{ "captured-1.20.2/filter-1.json",
		  "{\"Nodes\":null,\"NodeNames\":[\"gpu-1\"]," EMPTY ",\"Error\":\"\"}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = world_new();
		size_t size;
		char *body = read_data(rows[i].file, &size);

		world_ready(world);
		world_node(world, "gpu-1", "GPU-a,NVIDIA A100,81920,10");
		world_ask_as(world, "/filter", "application/json", body, size);
		expect_reply(world, rows[i].file, 200, rows[i].reply);
		/* The same, cut off anywhere: always an Error, never a reservation. */
		for (size_t cut = 0; cut < size - 1; cut += 7) {
			world_ask_as(world, "/filter", "application/json", body, cut);
			assert_int_equal(world->reply.status, 200);
			assert_null(strstr(world->reply.body, "\"Error\":\"\""));
		}
		free(body);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_replies),        cmocka_unit_test(test_uncounted),
		cmocka_unit_test(test_bad_bodies),     cmocka_unit_test(test_deep_nesting),
		cmocka_unit_test(test_too_many_names), cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_reserves),       cmocka_unit_test(test_learns),
		cmocka_unit_test(test_simulation),     cmocka_unit_test(test_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
