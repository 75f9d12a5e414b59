/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything together over real sockets: the routes behind the real HTTP edge, on a real cluster. What
 * bad input does to the daemon, and what many clients at once do.
 */
#include "unit/http/wire.h"

#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>

#include "base/log.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "server/server_internal.h"

#define NODES 40

static struct vg_classes classes;
static struct vg_cluster *cluster;
static struct vg_server *server;
static struct vg_http_listener *listener;
static uint16_t port;

/* ---- the daemon ------------------------------------------------------------------------------- */

struct post {
	vg_bind_done done;
	void *ctx;
};

static void *answer(void *argument)
{
	struct post post = *(struct post *)argument;

	free(argument);
	post.done(post.ctx, 0, "");
	return NULL;
}

/* An API server that answers from another thread. */
static void on_bind(void *ctx, const struct vg_bind_call *call, vg_bind_done done, void *done_ctx)
{
	struct post *post = vg_new(sizeof(*post));
	pthread_t thread;

	(void)ctx;
	(void)call;
	*post = (struct post){ done, done_ctx };
	assert_int_equal(pthread_create(&thread, NULL, answer, post), 0);
	pthread_detach(thread);
}

static void fill(void)
{
	struct vg_sink sink = vg_cluster_sink(cluster);

	sink.ops->list_begin(sink.ctx, VG_KIND_NODE);
	for (int i = 0; i < NODES; i++) {
		char name[16];
		char uuid[2][16];
		struct vg_card_info cards[2] = {
			{ .model = "NVIDIA A100",
			  .slots = 100,
			  .mem_mib = 80000,
			  .cores = 100,
			  .healthy = true,
			  .mode = VG_MODE_HAMI_CORE },
			{ .model = "NVIDIA A100",
			  .index = 1,
			  .slots = 100,
			  .mem_mib = 80000,
			  .cores = 100,
			  .healthy = true,
			  .mode = VG_MODE_HAMI_CORE },
		};
		struct vg_node_info node = { .name = name,
					     .uid = name,
					     .cards = cards,
					     .card_count = 2,
					     .allocatable = -1 };

		snprintf(name, sizeof(name), "n%d", i);
		for (int k = 0; k < 2; k++) {
			snprintf(uuid[k], sizeof(uuid[k]), "GPU-%d-%d", i, k);
			cards[k].uuid = uuid[k];
		}
		sink.ops->put_node(sink.ctx, &node);
	}
	sink.ops->list_end(sink.ctx, VG_KIND_NODE);
	sink.ops->list_begin(sink.ctx, VG_KIND_POD);
	sink.ops->list_end(sink.ctx, VG_KIND_POD);
	sink.ops->list_begin(sink.ctx, VG_KIND_QUOTA);
	sink.ops->list_end(sink.ctx, VG_KIND_QUOTA);
}

static int start(void **state)
{
	struct vg_cluster_options cluster_options = { .classes = &classes };
	struct vg_server_options options = { .classes = &classes,
					     .binder = { .bind = on_bind },
					     .scheduler_name = "vgpu-scheduler" };
	struct vg_http_options http = { .name = "test",
					.address = "127.0.0.1:0",
					.observer = vg_server_observe,
					.threads = 2 };
	struct vg_err err = { 0 };

	(void)state;
	vg_log_setup(VG_LOG_ERROR, false);
	vg_classes_init(&classes);
	vg_policy_parse("binpack", "spread", &cluster_options.policy);
	options.policy = cluster_options.policy;
	cluster = vg_cluster_new(&cluster_options);
	options.cluster = cluster;
	fill();
	server = vg_server_new(&options);
	http.routes = vg_server_routes(server, VG_SERVER_ALL, &http.route_count);
	http.ctx = server;
	if (vg_http_listen(&http, &listener, &err) < 0)
		fail_msg("%s", err.msg);
	port = vg_http_port(listener);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	vg_http_stop(listener, 2000);
	vg_cluster_free(cluster);
	vg_server_free(server);
	vg_classes_release(&classes);
	return 0;
}

/* ---- a client --------------------------------------------------------------------------------- */

static void send_post(int fd, const char *path, const char *body, size_t size)
{
	char head[256];

	snprintf(head, sizeof(head),
		 "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
		 "Content-Length: %zu\r\n\r\n",
		 path, size);
	wire_text(fd, head);
	wire_send(fd, body, size);
}

static void post(int fd, const char *path, const char *body, struct wire_reply *reply)
{
	send_post(fd, path, body, strlen(body));
	wire_read(fd, reply);
}

static void get(int fd, const char *path, struct wire_reply *reply)
{
	char head[256];

	snprintf(head, sizeof(head), "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
	wire_text(fd, head);
	wire_read(fd, reply);
}

#define POD(uid)                                                                                   \
	"{\"metadata\":{\"name\":\"" uid "\",\"namespace\":\"ns\",\"uid\":\"" uid                  \
	"\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{\"limits\":{"                \
	"\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1000\"}}}]}}"

/* The daemon is as good as new: it places a pod. */
static void expect_works(const char *after)
{
	static struct wire_reply reply;
	int fd = wire_connect(port);

	post(fd, "/filter", "{\"Pod\":" POD("probe") ",\"NodeNames\":[\"n1\"]}", &reply);
	if (reply.status != 200 || !strstr(reply.body, "\"NodeNames\":[\"n1\"]"))
		fail_msg("after %s: %d %s", after, reply.status, reply.body);
	get(fd, "/healthz", &reply);
	assert_int_equal(reply.status, 200);
	close(fd);
}

/* ---- bad input -------------------------------------------------------------------------------- */

static void test_bad_bodies(void **state)
{
	static const char *const bodies[] = {
		"",
		" ",
		"null",
		"0",
		"\"text\"",
		"[]",
		"{}",
		"{",
		"{\"Pod\":",
		"{\"Pod\":{\"metadata\":{\"name\":\"",
		"{\"Pod\":[],\"NodeNames\":{}}",
		"{\"Pod\":{\"metadata\":7},\"NodeNames\":[\"n1\"]}",
		"{\"Pod\":{\"metadata\":{\"annotations\":[]}},\"NodeNames\":[\"n1\"]}",
		"{\"Pod\":{\"metadata\":{\"name\":1}},\"NodeNames\":[\"n1\"]}",
		"{\"Pod\":{\"metadata\":{},\"spec\":{\"containers\":[7]}},\"NodeNames\":[\"n1\"]}",
		"{\"Pod\":{\"metadata\":{},\"spec\":{\"containers\":[{\"resources\":{\"limits\":{"
		"\"nvidia.com/gpu\":[]}}}]}},\"NodeNames\":[\"n1\"]}",
		"{\"Pod\":" POD("x") ",\"NodeNames\":[[]]}",
		"{\"Pod\":" POD("x") ",\"NodeNames\":[\"\xff\xfe\"",
		"{\"PodName\":{},\"PodNamespace\":\"\",\"PodUID\":[],\"Node\":1}",
		"{\"request\":[]}",
		"{\"request\":{\"object\":null,\"operation\":\"CREATE\",\"resource\":{\"resource\":"
		"\"pods\",\"group\":\"\"}}}",
		"{\"request\":{\"object\":{\"metadata\":{},\"spec\":{\"containers\":[[]]}},"
		"\"operation\":\"CREATE\",\"resource\":{\"resource\":\"pods\",\"group\":\"\"}}}",
		"\xef\xbb\xbf{}",
		"<xml/>",
	};
	static const char *const paths[] = { "/filter", "/bind", "/webhook", "/explain" };
	static struct wire_reply reply;

	(void)state;
	for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
		int fd = wire_connect(port);

		for (size_t i = 0; i < sizeof(bodies) / sizeof(bodies[0]); i++) {
			json_t *tree;

			post(fd, paths[p], bodies[i], &reply);
			/* People's route answers with 400, those of Kubernetes with 200 and an error. */
			if (reply.status != (p == 3 ? 400 : 200))
				fail_msg("%s %s: %d %s", paths[p], bodies[i], reply.status,
					 reply.body);
			tree = json_loads(reply.body, 0, NULL);
			if (!tree)
				fail_msg("%s %s: no JSON: %s", paths[p], bodies[i], reply.body);
			if (p < 2)
				assert_true(json_string_length(json_object_get(tree, "Error")) > 0);
			if (p == 2)
				assert_true(json_is_false(json_object_get(
					json_object_get(tree, "response"), "allowed")));
			json_decref(tree);
		}
		close(fd);
	}
	expect_works("bad bodies");
}

static void test_nesting(void **state)
{
	static const char *const paths[] = { "/filter", "/bind", "/webhook", "/explain" };
	static const char *const starts[] = { "", "{\"Pod\":", "{\"request\":{\"object\":",
					      "{\"Pod\":{\"metadata\":{\"labels\":" };
	static struct wire_reply reply;
	size_t room = 60000; /* below the limit of /bind */
	char *body = vg_new(room);

	(void)state;
	for (size_t p = 0; p < sizeof(paths) / sizeof(paths[0]); p++) {
		int fd = wire_connect(port);

		for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
			size_t used = strlen(starts[i]);

			memcpy(body, starts[i], used);
			for (size_t at = used; at < room; at++)
				body[at] = '[';
			send_post(fd, paths[p], body, room);
			wire_read(fd, &reply);
			assert_int_equal(reply.status, p == 3 ? 400 : 200);
			for (size_t at = used; at + 5 <= room; at += 5)
				memcpy(body + at, "{\"a\":", 5);
			send_post(fd, paths[p], body, room);
			wire_read(fd, &reply);
			assert_int_equal(reply.status, p == 3 ? 400 : 200);
		}
		close(fd);
	}
	free(body);
	expect_works("deep nesting");
}

static void test_oversized(void **state)
{
	static struct wire_reply reply;
	size_t size = VG_LIMIT_BIND_BODY_BYTES + 1;
	char *body = vg_new(size);
	int fd = wire_connect(port);
	char want[128];

	(void)state;
	memset(body, ' ', size);
	send_post(fd, "/bind", body, size);
	wire_read(fd, &reply);
	assert_int_equal(reply.status, 413);
	snprintf(want, sizeof(want), "the body of /bind may have %u bytes; this one has %zu\n",
		 VG_LIMIT_BIND_BODY_BYTES, size);
	assert_string_equal(reply.body, want);
	/* The connection goes on. */
	send_post(fd, "/bind", body, size - 1);
	wire_read(fd, &reply);
	assert_int_equal(reply.status, 200);
	assert_non_null(strstr(reply.body, "the body is empty"));
	close(fd);
	free(body);
	expect_works("an oversized body");
}

/* ---- many clients ----------------------------------------------------------------------------- */

static atomic_uint placed;
static atomic_uint bound;

static void *schedule(void *argument)
{
	struct wire_reply *reply = vg_new(sizeof(*reply));
	unsigned client = *(unsigned *)argument;
	int fd = wire_connect(port);

	for (unsigned i = 0; i < 40; i++) {
		char body[4096];
		char node[16];
		size_t used;

		used = (size_t)snprintf(
			body, sizeof(body),
			"{\"Pod\":{\"metadata\":{\"name\":\"p%u-%u\",\"namespace\":\"ns\",\"uid\":"
			"\"u%u-%u\"},\"spec\":{\"containers\":[{\"name\":\"c\",\"resources\":{"
			"\"limits\":{\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1000\"}}}]}},"
			"\"NodeNames\":[\"n0\"",
			client, i, client, i);
		for (int n = 1; n < NODES; n++)
			used += (size_t)snprintf(body + used, sizeof(body) - used, ",\"n%d\"", n);
		snprintf(body + used, sizeof(body) - used, "]}");
		post(fd, "/filter", body, reply);
		assert_int_equal(
			sscanf(reply->body, "{\"Nodes\":null,\"NodeNames\":[\"%15[n0-9]\"]", node),
			1);
		atomic_fetch_add(&placed, 1);
		snprintf(body, sizeof(body),
			 "{\"PodName\":\"p%u-%u\",\"PodNamespace\":\"ns\",\"PodUID\":\"u%u-%u\","
			 "\"Node\":\"%s\"}",
			 client, i, client, i, node);
		post(fd, "/bind", body, reply);
		if (strcmp(reply->body, "{\"Error\":\"\"}") == 0)
			atomic_fetch_add(&bound, 1);
		else
			fail_msg("%s", reply->body);
	}
	close(fd);
	free(reply);
	return NULL;
}

static atomic_bool looking;

static void *look(void *argument)
{
	struct wire_reply *reply = vg_new(sizeof(*reply));
	int fd = wire_connect(port);

	(void)argument;
	while (atomic_load(&looking)) {
		get(fd, "/metrics", reply);
		assert_int_equal(reply->status, 200);
		get(fd, "/state", reply);
		assert_int_equal(reply->status, 200);
		post(fd, "/explain?limit=5", POD("looker"), reply);
		assert_int_equal(reply->status, 200);
		get(fd, "/readyz", reply);
		assert_int_equal(reply->status, 200);
	}
	close(fd);
	free(reply);
	return NULL;
}

static void test_many(void **state)
{
	struct vg_cluster_stats stats;
	pthread_t schedulers[4];
	pthread_t looker;
	unsigned numbers[4];

	(void)state;
	atomic_store(&looking, true);
	assert_int_equal(pthread_create(&looker, NULL, look, NULL), 0);
	for (unsigned i = 0; i < 4; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&schedulers[i], NULL, schedule, &numbers[i]), 0);
	}
	for (unsigned i = 0; i < 4; i++)
		pthread_join(schedulers[i], NULL);
	atomic_store(&looking, false);
	pthread_join(looker, NULL);
	assert_int_equal(atomic_load(&placed), 160);
	assert_int_equal(atomic_load(&bound), 160);
	vg_cluster_stats(cluster, 0, &stats);
	assert_int_equal(stats.pods[VG_STATE_BOUND], 160);
	assert_int_equal(atomic_load(&server->results[VG_RESULT_bind_bound]), 160);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_bodies),
		cmocka_unit_test(test_nesting),
		cmocka_unit_test(test_oversized),
		cmocka_unit_test(test_many),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
