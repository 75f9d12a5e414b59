/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/server/harness.h"

#include <errno.h>
#include <pthread.h>

#define POD(name, uid)                                                                             \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" uid                 \
	"\"},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"             \
	"\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1000\",\"nvidia.com/gpucores\":\"10\"}}" \
	"}]}}"
#define FILTER(name, uid) "{\"Pod\":" POD(name, uid) ",\"NodeNames\":[\"n1\"]}"
#define BIND(name, uid, node)                                                                      \
	"{\"PodName\":\"" name "\",\"PodNamespace\":\"ns\",\"PodUID\":\"" uid                      \
	"\",\"Node\":\"" node "\"}"

#define SUCCESS "{\"Error\":\"\"}"

static struct world *new_world(bool bind_queue)
{
	struct world *world = world_new_with(bind_queue);

	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10");
	world_node(world, "n2", "GPU-b,NVIDIA A100,8000,10");
	return world;
}

static void expect_error(struct world *world, const char *text)
{
	assert_int_equal(world->reply.status, 200);
	assert_non_null(world->reply.body);
	if (!strstr(world->reply.body, text) || strcmp(world->reply.body, SUCCESS) == 0)
		fail_msg("\"%s\", want \"%s\"", world->reply.body, text);
}

static void expect_result(struct world *world, enum vg_result result, uint64_t count)
{
	assert_int_equal(atomic_load(&world->server->results[result]), count);
}

/* ---- one bind --------------------------------------------------------------------------------- */

static void test_success(void **state)
{
	struct world *world = new_world(false);

	(void)state;
	world_ask(world, "/filter", FILTER("p", "u1"));
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	expect_reply(world, "bound", 200, SUCCESS);
	assert_string_equal(world->reply.type, "application/json");
	assert_string_equal(world->bind_text,
			    "ns/p u1 -> n1 hami.io/vgpu-node=n1 hami.io/vgpu-time=TIME "
			    "hami.io/bind-phase=allocating hami.io/bind-time=TIME "
			    "hami.io/vgpu-devices-to-allocate=GPU-a,NVIDIA,1000,10:; "
			    "hami.io/vgpu-devices-allocated=GPU-a,NVIDIA,1000,10:;");
	expect_result(world, VG_RESULT_bind_bound, 1);

	/* kube-scheduler did not hear the answer and asks again. */
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	expect_reply(world, "repeated", 200, SUCCESS);
	assert_int_equal(world->binds, 1);
	expect_result(world, VG_RESULT_bind_repeated, 1);
	world_ask(world, "/bind", BIND("p", "u1", "n2"));
	expect_error(world, "bound to node n1 already");
	assert_int_equal(world->binds, 1);
	expect_result(world, VG_RESULT_bind_refused, 1);
	world_free(world);
}

static void test_lost_reservation(void **state)
{
	struct world *world = new_world(false);

	(void)state;
	/* After a restart: the pod is known, its reservation is not. */
	world_pod(world, POD("p", "u1"));
	world_ask(world, "/bind", BIND("p", "u1", "n2"));
	expect_reply(world, "decided again", 200, SUCCESS);
	assert_non_null(strstr(world->bind_text, "-> n2"));
	assert_non_null(strstr(world->bind_text, "GPU-b,NVIDIA,1000,10:;"));
	world_free(world);
}

static void test_refused(void **state)
{
	static const struct {
		const char *body;
		const char *text;
	} rows[] = {
		{ BIND("p", "u9", "n1"), "pod ns/p with UID u9 is not known here" },
		{ BIND("q", "u1", "n1"), "UID u1 belongs to pod ns/p, not to ns/q" },
		{ BIND("p", "u1", "n9"), "node n9 is not known here" },
		{ "", "the body is empty" },
		{ "[]", "ExtenderBindingArgs: byte 1: '[' where an object is expected" },
		{ "{\"PodName\":\"p\"", "byte 15: the text ends where" },
		{ "{\"PodName\":7}", "PodName: byte 12: '7' where a string is expected" },
		{ "{\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":\"n\"}",
		  "PodName is missing" },
		{ "{\"PodName\":\"p\",\"PodUID\":\"u\",\"Node\":\"n\"}",
		  "PodNamespace is missing" },
		{ "{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":null,\"Node\":\"n\"}",
		  "PodUID is missing" },
		{ "{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u\",\"Node\":\"\"}",
		  "Node is missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = new_world(false);

		world_pod(world, POD("p", "u1"));
		world_ask(world, "/bind", rows[i].body);
		expect_error(world, rows[i].text);
		assert_int_equal(world->binds, 0);
		world_free(world);
	}
}

static void test_any_case_of_keys(void **state)
{
	struct world *world = new_world(false);

	(void)state;
	world_pod(world, POD("p", "u1"));
	world_ask(world, "/bind",
		  "{\"podname\":\"p\",\"PODNAMESPACE\":\"ns\",\"podUID\":\"u1\",\"node\":\"n1\","
		  "\"more\":{}} and more");
	expect_reply(world, "any case", 200, SUCCESS);
	world_free(world);
}

static void test_captured(void **state)
{
	struct world *world = world_new();
	size_t size;
	char *body = read_data("captured-1.20.2/filter-1.json", &size);

	(void)state;
	world_ready(world);
	world_node(world, "gpu-1", "GPU-a,NVIDIA A100,81920,10");
	world_ask_as(world, "/filter", "application/json", body, size);
	free(body);
	body = read_data("captured-1.20.2/bind-1.json", &size);
	world_ask_as(world, "/bind", "application/json", body, size);
	expect_reply(world, "captured", 200, SUCCESS);
	assert_non_null(strstr(world->bind_text,
			       "demo/train 5fcfda65-a98e-4846-9b3b-a9c63ab17e95 -> gpu-1"));
	/* The init container "fetch" comes first and has no card, nor has "side". */
	assert_non_null(strstr(world->bind_text,
			       "hami.io/vgpu-devices-allocated=;GPU-a,NVIDIA,8192,30:;;"));
	free(body);
	world_free(world);
}

/* ---- the end comes later ---------------------------------------------------------------------- */

static void *finish(void *argument)
{
	struct world *world = argument;

	world->done(world->done_ctx, world->bind_code, world->bind_message);
	return NULL;
}

/* The reply waits for the API server and may be given by any thread. */
static void test_asynchronous(void **state)
{
	struct world *world = new_world(false);
	pthread_t thread;

	(void)state;
	world->auto_bind = false;
	world_ask(world, "/filter", FILTER("p", "u1"));
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	assert_int_equal(world->binds, 1);
	assert_int_equal(world->reply.count, 0);
	assert_int_equal(pthread_create(&thread, NULL, finish, world), 0);
	pthread_join(thread, NULL);
	expect_reply(world, "bound", 200, SUCCESS);
	assert_int_equal(world->reply.count, 1);
	world_free(world);
}

static void test_failed(void **state)
{
	struct world *world = new_world(false);
	struct vg_cluster_stats stats;

	(void)state;
	world->bind_code = -EEXIST;
	world->bind_message = "pod ns/p is assigned to node \"other\" already";
	world_ask(world, "/filter", FILTER("p", "u1"));
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	expect_reply(world, "failed", 200,
		     "{\"Error\":\"pod ns/p is assigned to node \\\"other\\\" already\"}");
	expect_result(world, VG_RESULT_bind_failed, 1);
	vg_cluster_stats(world->cluster, 0, &stats);
	assert_int_equal(stats.pods[VG_STATE_RESERVED] + stats.pods[VG_STATE_BOUND], 0);

	/* Nobody knows: what was reserved stays taken. */
	world->bind_code = -ETIMEDOUT;
	world->bind_message = "no answer";
	world_ask(world, "/filter", FILTER("p", "u1"));
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	expect_error(world, "no answer");
	vg_cluster_stats(world->cluster, 0, &stats);
	assert_int_equal(stats.pods[VG_STATE_BINDING], 1);
	world_free(world);
}

/* ---- one pod per node at a time --------------------------------------------------------------- */

static void test_turns(void **state)
{
	struct world *world = new_world(true);

	(void)state;
	world_pod(world, POD("p", "u1"));
	world_pod(world, POD("q", "u2"));
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	expect_reply(world, "first", 200, SUCCESS);
	world_ask(world, "/bind", BIND("q", "u2", "n1"));
	assert_int_equal(world->reply.count, 0);
	assert_int_equal(world->binds, 1);
	/* The other node is free. */
	world_pod(world, POD("r", "u3"));
	world_ask(world, "/bind", BIND("r", "u3", "n2"));
	expect_reply(world, "another node", 200, SUCCESS);
	/* The node agent acknowledges the first: the second is bound, from the watch's thread. */
	world_forget(world);
	world_pod(world,
		  "{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\","
		  "\"resourceVersion\":\"2\",\"annotations\":{\"hami.io/bind-phase\":\"success\","
		  "\"hami.io/vgpu-node\":\"n1\","
		  "\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,1000,10:;\"}},"
		  "\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"main\"}]}}");
	assert_int_equal(world->binds, 3);
	expect_reply(world, "second", 200, SUCCESS);
	assert_non_null(strstr(world->bind_text, "ns/q u2 -> n1"));
	world_free(world);
}

static void test_turn_never_comes(void **state)
{
	struct world *world = new_world(true);

	(void)state;
	world_pod(world, POD("p", "u1"));
	world_pod(world, POD("q", "u2"));
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	world_ask(world, "/bind", BIND("q", "u2", "n1"));
	assert_int_equal(world->reply.count, 0);
	vg_cluster_tick(world->cluster, vg_clock_mono_ns() + VG_BIND_WAIT_NS + 1);
	expect_error(world, "node n1 is still allocating cards to pod ns/p");
	expect_result(world, VG_RESULT_bind_timed_out, 1);
	assert_int_equal(world->binds, 1);
	world_free(world);
}

static void test_shutdown_while_waiting(void **state)
{
	struct world *world = new_world(true);

	(void)state;
	world_pod(world, POD("p", "u1"));
	world_pod(world, POD("q", "u2"));
	world_ask(world, "/bind", BIND("p", "u1", "n1"));
	world_ask(world, "/bind", BIND("q", "u2", "n1"));
	vg_cluster_free(world->cluster);
	world->cluster = NULL;
	expect_error(world, "shutting down");
	expect_result(world, VG_RESULT_bind_failed, 1);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_success),
		cmocka_unit_test(test_lost_reservation),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_any_case_of_keys),
		cmocka_unit_test(test_captured),
		cmocka_unit_test(test_asynchronous),
		cmocka_unit_test(test_failed),
		cmocka_unit_test(test_turns),
		cmocka_unit_test(test_turn_never_comes),
		cmocka_unit_test(test_shutdown_while_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
