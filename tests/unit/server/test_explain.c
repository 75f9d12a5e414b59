/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/server/harness.h"

#define POD(limits)                                                                                \
	"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\"},\"spec\":{"            \
	"\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{" limits "}}}]}}"
#define SLICE(mem)                                                                                 \
	"\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"" mem "\",\"nvidia.com/gpucores\":\"30\""

static struct world *small_cluster(void)
{
	struct world *world = world_new();

	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10;GPU-b,NVIDIA A100,8000,10");
	world_node(world, "n2", "GPU-c,NVIDIA A100,16000,10");
	world_node(world, "n3", "");
	return world;
}

static json_t *ask(struct world *world, const char *path, const char *body)
{
	json_t *answer;

	world_ask(world, path, body);
	if (world->reply.status != 200)
		fail_msg("%u %s", world->reply.status, world->reply.body);
	assert_string_equal(world->reply.type, "application/json");
	answer = json_loads(world->reply.body, JSON_REJECT_DUPLICATES, NULL);
	if (!answer)
		fail_msg("no JSON: %s", world->reply.body);
	return answer;
}

/* By a path such as "nodes.0.cards.1.chosen". */
static json_t *at(json_t *value, const char *path)
{
	struct vg_span rest = VG_SPAN(path);
	struct vg_span piece;

	while (value && vg_cut(&rest, '.', &piece)) {
		char key[64];

		snprintf(key, sizeof(key), "%.*s", (int)piece.size, piece.data);
		value = json_is_array(value) ? json_array_get(value, (size_t)strtol(key, NULL, 10))
					     : json_object_get(value, key);
	}
	return value;
}

static void expect_text(json_t *answer, const char *path, const char *text)
{
	const char *found = json_string_value(at(answer, path));

	if (!found || strcmp(found, text) != 0)
		fail_msg("%s is %s, want %s", path, found ? found : "(none)", text);
}

static void expect_number(json_t *answer, const char *path, double value)
{
	json_t *found = at(answer, path);

	if (!json_is_number(found) || json_number_value(found) != value)
		fail_msg("%s is %g, want %g", path, json_number_value(found), value);
}

static void expect_bool(json_t *answer, const char *path, bool value)
{
	json_t *found = at(answer, path);

	if (!json_is_boolean(found) || json_is_true(found) != value)
		fail_msg("%s is not %d", path, value);
}

static json_t *find_check(json_t *card, const char *name)
{
	json_t *check;
	size_t i;

	json_array_foreach(json_object_get(card, "checks"), i,
			   check) if (strcmp(json_string_value(json_object_get(check, "check")),
					     name) == 0) return check;
	fail_msg("no check %s", name);
	return NULL;
}

static void check_is(json_t *card, const char *name, bool passed, double have, double need,
		     double total)
{
	json_t *check = find_check(card, name);

	expect_bool(check, "passed", passed);
	expect_number(check, "have", have);
	expect_number(check, "need", need);
	expect_number(check, "total", total);
	assert_true(passed == !json_object_get(check, "reason"));
}

/* ---- a decision in detail --------------------------------------------------------------------- */

static void test_placed(void **state)
{
	struct world *world = small_cluster();
	struct vg_cluster_stats stats;
	json_t *answer;

	(void)state;
	answer = ask(world, "/explain", POD(SLICE("9000")));
	expect_text(
		answer, "summary",
		"Pod ns/p asks for 1 NVIDIA card with 9000 MiB and 30 % of the compute for container "
		"main. It would be placed on node n2: card 0 (GPU-c) with 9000 MiB and 30 % for "
		"container main. 1 of 3 nodes would do; policy binpack takes the fullest one. 1 "
		"node: 2/2 CardInsufficientMemory (too little memory of the card is free). 1 node: "
		"node unregistered (no cards are registered under this node's name: is the node "
		"agent running there?).");
	expect_text(answer, "pod.name", "p");
	expect_bool(answer, "ready", true);
	expect_number(answer, "request.containers.0.memMiB", 9000);
	expect_number(answer, "request.containers.0.cores", 30);
	expect_text(answer, "request.containers.0.name", "main");
	expect_text(answer, "request.nodePolicy", "binpack");
	expect_bool(answer, "decision.placed", true);
	expect_text(answer, "decision.node", "n2");
	expect_text(answer, "decision.devices.0.uuid", "GPU-c");
	assert_string_equal(json_string_value(json_object_get(at(answer, "decision.annotations"),
							      "hami.io/vgpu-devices-allocated")),
			    "GPU-c,NVIDIA,9000,30:;");
	expect_number(answer, "candidates", 3);
	expect_number(answer, "fitting", 1);
	expect_number(answer, "nodesOmitted", 0);

	/* The chosen one first, then those that others could make room on, then the hopeless ones. */
	expect_text(answer, "nodes.0.name", "n2");
	expect_bool(answer, "nodes.0.chosen", true);
	expect_bool(answer, "nodes.0.fits", true);
	expect_number(answer, "nodes.0.score.node", 0);
	expect_bool(answer, "nodes.0.cards.0.chosen", true);
	check_is(at(answer, "nodes.0.cards.0"), "memory", true, 16000, 9000, 16000);
	check_is(at(answer, "nodes.0.cards.0"), "cores", true, 100, 30, 100);
	check_is(at(answer, "nodes.0.cards.0"), "health", true, 1, 1, 1);
	expect_text(answer, "nodes.1.name", "n1");
	expect_bool(answer, "nodes.1.fits", false);
	expect_text(answer, "nodes.1.reason", "2/2 CardInsufficientMemory");
	expect_text(answer, "nodes.1.container", "main");
	expect_bool(answer, "nodes.1.curable", false);
	assert_int_equal(json_array_size(at(answer, "nodes.1.cards")), 2);
	expect_text(answer, "nodes.1.cards.0.reason", "CardInsufficientMemory");
	check_is(at(answer, "nodes.1.cards.0"), "memory", false, 8000, 9000, 8000);
	expect_text(answer, "nodes.2.name", "n3");
	expect_text(answer, "nodes.2.reason", "node unregistered");
	assert_int_equal(json_array_size(at(answer, "nodes.2.cards")), 0);

	expect_text(answer, "reasons.0.reason", "2/2 CardInsufficientMemory");
	expect_number(answer, "reasons.0.nodes", 1);
	expect_text(answer, "reasons.1.reason", "node unregistered");
	json_decref(answer);

	/* Nothing happened. */
	vg_cluster_stats(world->cluster, 0, &stats);
	assert_int_equal(stats.reservations_made, 0);
	world_free(world);
}

static void test_nobody(void **state)
{
	struct world *world = small_cluster();
	json_t *answer;

	(void)state;
	answer = ask(world, "/explain?node=n2",
		     POD("\"nvidia.com/gpu\":\"2\",\"nvidia.com/gpumem-percentage\":\"50\""));
	expect_text(
		answer, "summary",
		"Pod ns/p asks for 2 NVIDIA cards with 50 % of the memory each for container main. "
		"None of 1 node fits. 1 node: NodeInsufficientDevice (the node has fewer cards than "
		"the container asks for).");
	expect_bool(answer, "decision.placed", false);
	assert_null(at(answer, "decision.node"));
	expect_number(answer, "candidates", 1);
	expect_number(answer, "request.containers.0.memPercent", 50);
	json_decref(answer);
	world_free(world);
}

/* The same decision as filter makes, also with what others hold, and as if the pod itself held nothing. */
/* Every card shows what the namespace has left and what the container needs of it. */
static void test_quota(void **state)
{
	struct world *world = small_cluster();
	struct vg_sink sink = world_sink(world);
	struct vg_quota_info quota = { .namespace = "ns", .name = "q", .uid = "" };
	json_t *answer;

	(void)state;
	/* Somebody of the same namespace, and the pod itself, which is not counted against itself. */
	world_pod(world,
		  "{\"metadata\":{\"name\":\"other\",\"namespace\":\"ns\",\"uid\":\"u2\","
		  "\"annotations\":{\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,3000,"
		  "10:;\"}},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"a\"}]}}");
	world_pod(world,
		  "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\","
		  "\"annotations\":{\"hami.io/vgpu-devices-allocated\":\"GPU-c,NVIDIA,3000,"
		  "10:;\"}},\"spec\":{\"nodeName\":\"n2\",\"containers\":[{\"name\":\"a\"}]}}");
	vg_quota_unlimited(quota.hard);
	quota.hard[0].mem_mib = 5000;
	sink.ops->put_quota(sink.ctx, &quota);
	answer = ask(world, "/explain", POD(SLICE("2000")));
	expect_bool(answer, "decision.placed", true);
	check_is(at(answer, "nodes.0.cards.0"), "quota_mem", true, 2000, 2000, 5000);
	json_decref(answer);

	answer = ask(world, "/explain", POD(SLICE("2001")));
	expect_bool(answer, "decision.placed", false);
	expect_number(answer, "fitting", 0);
	expect_text(answer, "reasons.0.reason", "1/1 ResourceQuotaNotFit");
	expect_bool(answer, "reasons.0.curable", true);
	expect_text(answer, "nodes.0.cards.0.reason", "ResourceQuotaNotFit");
	check_is(at(answer, "nodes.0.cards.0"), "quota_mem", false, 2000, 2001, 5000);
	expect_text(answer, "quotas.0.namespace", "ns");
	expect_text(answer, "quotas.0.class", "NVIDIA");
	expect_number(answer, "quotas.0.memMiB.used", 3000);
	expect_number(answer, "quotas.0.memMiB.limit", 5000);
	expect_text(answer, "quotas.0.memMiB.quota", "q");
	assert_null(at(answer, "quotas.0.cores.limit"));
	/* What has no limit is no check. */
	assert_null(strstr(world->reply.body, "quota_cores"));
	json_decref(answer);

	sink.ops->delete_quota(sink.ctx, "ns", "q");
	answer = ask(world, "/explain", POD(SLICE("2001")));
	expect_bool(answer, "decision.placed", true);
	assert_null(at(answer, "quotas"));
	assert_null(strstr(world->reply.body, "quota_mem"));
	json_decref(answer);
	world_free(world);
}

static void test_usage(void **state)
{
	struct world *world = small_cluster();
	json_t *answer;

	(void)state;
	world_ask(world, "/filter", "{\"Pod\":" POD(SLICE("12000")) ",\"NodeNames\":[\"n2\"]}");
	assert_non_null(strstr(world->reply.body, "[\"n2\"]"));
	answer = ask(world, "/explain", POD(SLICE("12000")));
	expect_text(answer, "decision.node", "n2");
	check_is(at(answer, "nodes.0.cards.0"), "memory", true, 16000, 12000, 16000);
	json_decref(answer);
	answer = ask(
		world, "/explain",
		"{\"metadata\":{\"name\":\"q\",\"uid\":\"u2\"},\"spec\":{\"containers\":[{\"name\":"
		"\"c\",\"resources\":{\"limits\":{" SLICE("12000") "}}}]}}");
	expect_bool(answer, "decision.placed", false);
	expect_text(answer, "nodes.0.name", "n2");
	expect_bool(answer, "nodes.0.curable", true);
	check_is(at(answer, "nodes.0.cards.0"), "memory", false, 4000, 12000, 16000);
	check_is(at(answer, "nodes.0.cards.0"), "slots", true, 9, 1, 10);
	json_decref(answer);
	world_free(world);
}

/* ---- forms of the question -------------------------------------------------------------------- */

static void test_forms(void **state)
{
	static const struct {
		const char *path;
		const char *body;
		double candidates;
		size_t shown;
	} rows[] = {
		{ "/explain", POD(SLICE("1")), 3, 3 },
		{ "/explain?limit=1", POD(SLICE("1")), 3, 1 },
		{ "/explain?limit=0", POD(SLICE("1")), 3, 0 },
		{ "/explain?node=n1,n9", POD(SLICE("1")), 2, 2 },
		{ "/explain", "{\"Pod\":" POD(SLICE("1")) ",\"NodeNames\":[\"n1\",\"n2\"]}", 2, 2 },
		{ "/explain", "{\"pod\":" POD(SLICE("1")) "}", 3, 3 },
		{ "/explain?node=n3", "{\"Pod\":" POD(SLICE("1")) ",\"NodeNames\":[\"n1\",\"n2\"]}",
		  1, 1 },
		{ "/explain",
		  "{\"Pod\":" POD(
			  SLICE("1")) ",\"Nodes\":{\"items\":[{\"metadata\":{\"name\":\"n2\"}}]}}",
		  1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = small_cluster();
		json_t *answer = ask(world, rows[i].path, rows[i].body);

		expect_number(answer, "candidates", rows[i].candidates);
		assert_int_equal(json_array_size(at(answer, "nodes")), rows[i].shown);
		expect_number(answer, "nodesOmitted", rows[i].candidates - (double)rows[i].shown);
		json_decref(answer);
		world_free(world);
	}
}

static void test_without_decision(void **state)
{
	struct world *world = world_new();
	json_t *answer;

	(void)state;
	answer = ask(world, "/explain", POD("\"cpu\":\"1\""));
	expect_text(
		answer, "summary",
		"The view of the cluster is incomplete: the list of nodes has not been read yet. Pod "
		"p asks for no card: every node will do.");
	expect_bool(answer, "ready", false);
	expect_text(answer, "notReady", "the list of nodes has not been read yet");
	assert_null(at(answer, "nodes"));
	json_decref(answer);
	world_ready(world);
	answer = ask(world, "/explain", POD(SLICE("16Gi")));
	expect_text(answer, "summary",
		    "The pod can be placed nowhere as it is: container \"main\": nvidia.com/gpumem "
		    "\"16Gi\" is not a count of MiB; write 16384.");
	expect_text(
		answer, "invalid",
		"container \"main\": nvidia.com/gpumem \"16Gi\" is not a count of MiB; write 16384");
	expect_bool(answer, "decision.placed", false);
	json_decref(answer);
	world_free(world);
}

static void test_bad_questions(void **state)
{
	static const struct {
		const char *path;
		const char *body;
		const char *error;
	} rows[] = {
		{ "/explain", "", "the body is empty: send a Pod as JSON" },
		{ "/explain", "apiVersion: v1", "Pod: byte " },
		{ "/explain", "[]", "" },
		{ "/explain", "{\"Pod\":null}", "extender args missing pod" },
		{ "/explain", "{\"Pod\":{}}", "metadata" },
		{ "/explain", "{\"kind\":\"Deployment\",\"metadata\":{\"name\":\"d\"}}",
		  "Deployment" },
		{ "/explain?limit=x", POD(SLICE("1")), "?limit=" },
		{ "/explain?limit=1001", POD(SLICE("1")), "?limit=" },
		{ "/explain?limit=-1", POD(SLICE("1")), "?limit=" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = small_cluster();
		json_t *answer;
		const char *error;

		world_ask(world, rows[i].path, rows[i].body);
		assert_int_equal(world->reply.status, 400);
		answer = json_loads(world->reply.body, 0, NULL);
		error = json_string_value(json_object_get(answer, "error"));
		if (!error || !error[0] || !strstr(error, rows[i].error))
			fail_msg("%s %s: %s", rows[i].path, rows[i].body, error);
		json_decref(answer);
		world_free(world);
	}
}

/* ---- many nodes ------------------------------------------------------------------------------- */

static void test_order_and_limit(void **state)
{
	struct world *world = world_new();
	json_t *answer;

	(void)state;
	world_ready(world);
	for (int i = 0; i < 120; i++) {
		char name[16];
		char cards[64];

		snprintf(name, sizeof(name), "n%03d", i);
		snprintf(cards, sizeof(cards), "GPU-%d,NVIDIA A100,%d,10", i,
			 i < 40   ? 1000
			 : i < 80 ? 8000
				  : 500);
		world_node(world, name, cards);
	}
	answer = ask(world, "/explain", POD(SLICE("4000")));
	expect_number(answer, "candidates", 120);
	expect_number(answer, "fitting", 40);
	assert_int_equal(json_array_size(at(answer, "nodes")), 50);
	expect_number(answer, "nodesOmitted", 70);
	/* Equal scores: by name. */
	expect_text(answer, "nodes.0.name", "n040");
	expect_bool(answer, "nodes.0.chosen", true);
	expect_bool(answer, "nodes.1.chosen", false);
	expect_text(answer, "nodes.39.name", "n079");
	expect_bool(answer, "nodes.39.fits", true);
	expect_text(answer, "nodes.40.name", "n000");
	expect_bool(answer, "nodes.40.fits", false);
	assert_int_equal(json_array_size(at(answer, "reasons")), 1);
	expect_text(answer, "reasons.0.reason", "1/1 CardInsufficientMemory");
	expect_number(answer, "reasons.0.nodes", 80);
	json_decref(answer);
	world_free(world);
}

/* Behind the chosen one, those that fit stand in the order of the policy. */
static void test_order_by_policy(void **state)
{
	static const char *const orders[2][4] = { { "full", "half", "some", "none" },
						  { "none", "some", "half", "full" } };
	static const char *const uids[] = { "full", "half", "some" };

	(void)state;
	for (int spread = 0; spread < 2; spread++) {
		struct world *world = world_new();
		json_t *answer;
		char body[1024];

		world_ready(world);
		for (int i = 0; i < 4; i++)
			world_node(world, orders[0][i], "GPU-x,NVIDIA A100,10000,10");
		for (int i = 0; i < 3; i++) {
			snprintf(
				body, sizeof(body),
				"{\"Pod\":{\"metadata\":{\"name\":\"%s\",\"uid\":\"%s\"},\"spec\":{"
				"\"containers\":[{\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\","
				"\"nvidia.com/gpumem\":\"%d\"}}}]}},\"NodeNames\":[\"%s\"]}",
				uids[i], uids[i], 8000 - 2000 * i, uids[i]);
			world_ask(world, "/filter", body);
		}
		snprintf(
			body, sizeof(body),
			"{\"metadata\":{\"name\":\"q\",\"annotations\":{"
			"\"hami.io/node-scheduler-policy\":\"%s\"}},\"spec\":{\"containers\":[{"
			"\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":"
			"\"1000\"}}}]}}",
			spread ? "spread" : "binpack");
		answer = ask(world, "/explain", body);
		for (int i = 0; i < 4; i++) {
			char path[32];

			snprintf(path, sizeof(path), "nodes.%d.name", i);
			expect_text(answer, path, orders[spread][i]);
		}
		json_decref(answer);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_placed),          cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_quota),           cmocka_unit_test(test_usage),
		cmocka_unit_test(test_forms),           cmocka_unit_test(test_without_decision),
		cmocka_unit_test(test_bad_questions),   cmocka_unit_test(test_order_and_limit),
		cmocka_unit_test(test_order_by_policy),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
