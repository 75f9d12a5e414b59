/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bodies of kube-scheduler through /filter, /bind and /explain. Whatever comes in, a well-formed
 * reply goes out; the walker of the outer shape takes what jansson takes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/log.h"
#include "base/mem.h"
#include "server/json_in_internal.h"
#include "server/server_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *reply_body;
static unsigned reply_status;

void vg_http_reply(struct vg_http_request *request, unsigned status, const char *content_type,
		   char *body, size_t body_size)
{
	(void)content_type;
	if (strlen(body) != body_size)
		abort();
	reply_status = status;
	reply_body = body;
	vg_arena_release(&request->arena);
	free(request);
}

void vg_http_reply_text(struct vg_http_request *request, unsigned status, const char *text)
{
	(void)request;
	(void)status;
	(void)text;
	abort();
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

static json_t *ask(struct vg_server *server, vg_http_handler handler, const uint8_t *data,
		   size_t size)
{
	struct vg_http_request *request = vg_new(sizeof(*request));
	json_t *reply;
	char *copy;

	vg_arena_init(&request->arena);
	copy = vg_arena_new(&request->arena, size + 1);
	if (size)
		memcpy(copy, data, size);
	request->method = "POST";
	request->path = "";
	request->query = "limit=3";
	request->content_type = "";
	request->body = copy;
	request->body_size = size;
	reply_body = NULL;
	handler(server, request);
	check(reply_body != NULL);
	/* What is echoed may have bytes that are no UTF-8, as it came; jansson refuses those. */
	reply = json_loads(reply_body, JSON_ALLOW_NUL, NULL);
	return reply;
}

/* A bind that reaches the API server succeeds at once. */
static void bind_at_once(void *ctx, const struct vg_bind_call *call, vg_bind_done done,
			 void *done_ctx)
{
	(void)ctx;
	check(call->annotation_count > 0 || call->node[0]);
	done(done_ctx, 0, "");
}

static void fill(struct vg_cluster *cluster)
{
	const struct vg_sink sink = vg_cluster_sink(cluster);
	struct vg_card_info cards[2] = {
		{ .uuid = "GPU-a",
		  .model = "NVIDIA A100",
		  .slots = 10,
		  .mem_mib = 8000,
		  .cores = 100,
		  .mode = VG_MODE_HAMI_CORE,
		  .healthy = true },
		{ .uuid = "GPU-b",
		  .model = "NVIDIA T4",
		  .index = 1,
		  .slots = 4,
		  .mem_mib = 16000,
		  .cores = 100,
		  .numa = 1,
		  .healthy = true },
	};
	const struct vg_node_info nodes[] = {
		{ .name = "n1", .uid = "1", .cards = cards, .card_count = 2, .allocatable = 14 },
		{ .name = "n2", .uid = "2", .allocatable = -1 },
	};

	sink.ops->list_begin(sink.ctx, VG_KIND_NODE);
	for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++)
		sink.ops->put_node(sink.ctx, &nodes[i]);
	sink.ops->list_end(sink.ctx, VG_KIND_NODE);
	sink.ops->list_begin(sink.ctx, VG_KIND_POD);
	sink.ops->list_end(sink.ctx, VG_KIND_POD);
	sink.ops->list_begin(sink.ctx, VG_KIND_QUOTA);
	sink.ops->list_end(sink.ctx, VG_KIND_QUOTA);
}

static bool is_map_or_null(const json_t *value)
{
	return json_is_null(value) || (json_is_object(value) && json_object_size(value) > 0);
}

static void check_filter(struct vg_server *server, const uint8_t *data, size_t size)
{
	json_t *reply = ask(server, vg_route_filter, data, size);

	check(reply_status == 200);
	if (reply) {
		check(json_object_size(reply) == 5);
		check(json_object_get(reply, "Nodes") && json_object_get(reply, "NodeNames"));
		check(is_map_or_null(json_object_get(reply, "FailedNodes")));
		check(is_map_or_null(json_object_get(reply, "FailedAndUnresolvableNodes")));
		check(json_is_string(json_object_get(reply, "Error")));
	} else {
		/* Only an echo may be what jansson does not take. */
		check(strncmp(reply_body, "{\"Nodes\":", 9) == 0);
		check(strstr(reply_body, "\"Error\":\"\"}") != NULL);
	}
	json_decref(reply);
	free(reply_body);
}

static void check_others(struct vg_server *server, const uint8_t *data, size_t size)
{
	json_t *reply = ask(server, vg_route_bind, data, size);

	check(reply_status == 200 && json_object_size(reply) == 1);
	check(json_is_string(json_object_get(reply, "Error")));
	json_decref(reply);
	free(reply_body);
	reply = ask(server, vg_route_explain, data, size);
	check(reply_status == 200 || reply_status == 400);
	check(json_is_string(json_object_get(reply, reply_status == 200 ? "summary" : "error")));
	json_decref(reply);
	free(reply_body);
}

/* What jansson accepts, the walker accepts, as far as it looks: UTF-8 and the range of numbers it leaves
 * to whoever reads the values. */
static void check_walker(const uint8_t *data, size_t size)
{
	struct vg_span value;
	struct vg_in in;
	json_t *tree;
	struct vg_err err = { 0 };
	int r;

	vg_in_init(&in, (struct vg_span){ (const char *)data, size });
	r = vg_in_value(&in, &value, &err);
	check(r == 0 || err.msg[0]);
	tree = json_loadb((const char *)data, size,
			  JSON_DECODE_ANY | JSON_ALLOW_NUL | JSON_DISABLE_EOF_CHECK, NULL);
	/* jansson overlooks a NUL behind a number. */
	if (tree && r < 0 && !memchr(data, '\0', size))
		check(strstr(err.msg, "nested deeper") != NULL);
	json_decref(tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_classes classes;
	struct vg_cluster_options cluster_options = { .classes = &classes };
	struct vg_server_options options = { .classes = &classes,
					     .binder = { .bind = bind_at_once },
					     .scheduler_name = "" };
	struct vg_server *server;

	vg_log_setup(VG_LOG_ERROR, false);
	check_walker(data, size);
	vg_classes_init(&classes);
	vg_policy_parse("binpack", "spread", &cluster_options.policy);
	options.policy = cluster_options.policy;
	options.cluster = vg_cluster_new(&cluster_options);
	fill(options.cluster);
	server = vg_server_new(&options);
	check_filter(server, data, size);
	check_others(server, data, size);
	vg_cluster_free(options.cluster);
	vg_server_free(server);
	vg_classes_release(&classes);
	return 0;
}
