/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A server on a real cluster of made-up nodes and pods, without sockets: a test hands a request to a
 * route and looks at the reply. Replaces the reply functions of src/http.
 */
#ifndef VGPU_TESTS_SERVER_HARNESS_H
#define VGPU_TESTS_SERVER_HARNESS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "cluster/cluster.h"
#include "server/server_internal.h"

struct reply {
	unsigned status; /* 0: there was none yet */
	char type[64];
	char *body;
	size_t size;
	unsigned count;
};

struct world {
	struct vg_classes classes;
	struct vg_cluster *cluster;
	struct vg_server *server;
	struct vg_server_options options;
	struct reply reply;

	/* The fake API server: the last bind, and who wants to know its end. */
	bool auto_bind; /* answers at once with bind_code */
	int bind_code;
	const char *bind_message;
	unsigned binds;
	char bind_text[2048]; /* namespace/name uid -> node key=value… */
	vg_bind_done done;
	void *done_ctx;
};

/* The one that the reply functions fill. */
static struct world *the_world;

void vg_http_reply(struct vg_http_request *request, unsigned status, const char *content_type,
		   char *body, size_t body_size)
{
	struct reply *reply = &the_world->reply;

	free(reply->body);
	reply->status = status;
	snprintf(reply->type, sizeof(reply->type), "%s", content_type);
	reply->body = body ? body : vg_strdup("");
	reply->size = body_size;
	reply->count++;
	/* As in the daemon: the request and all its memory are gone from here on. */
	vg_arena_release(&request->arena);
	free(request);
}

void vg_http_reply_text(struct vg_http_request *request, unsigned status, const char *text)
{
	char *line = vg_printf("%s\n", text);

	vg_http_reply(request, status, "text/plain", line, strlen(line));
}

static void world_bind(void *ctx, const struct vg_bind_call *call, vg_bind_done done,
		       void *done_ctx)
{
	struct world *world = ctx;
	size_t used;

	used = (size_t)snprintf(world->bind_text, sizeof(world->bind_text), "%s/%s %s -> %s",
				call->namespace, call->name, call->uid, call->node);
	for (size_t i = 0; i < call->annotation_count; i++) {
		bool time = strstr(call->annotations[i].key, "time") != NULL;

		used += (size_t)snprintf(world->bind_text + used, sizeof(world->bind_text) - used,
					 " %s=%s", call->annotations[i].key,
					 time ? "TIME" : call->annotations[i].value);
	}
	world->binds++;
	world->done = done;
	world->done_ctx = done_ctx;
	if (world->auto_bind)
		done(done_ctx, world->bind_code, world->bind_message);
}

static inline struct vg_sink world_sink(struct world *world)
{
	return vg_cluster_sink(world->cluster);
}

/* A node with cards "UUID,model,mem_mib,slots" separated by ";". */
static inline void world_node(struct world *world, const char *name, const char *cards)
{
	struct vg_sink sink = world_sink(world);
	struct vg_card_info list[16];
	struct vg_node_info node = { .name = name, .uid = name, .cards = list, .allocatable = -1 };
	struct vg_span rest = VG_SPAN(cards);
	struct vg_span piece;
	struct vg_arena arena;

	vg_arena_init(&arena);
	while (cards[0] && vg_cut(&rest, ';', &piece)) {
		struct vg_span field;
		struct vg_card_info *card = &list[node.card_count];

		*card = (struct vg_card_info){ .index = (int32_t)node.card_count,
					       .cores = 100,
					       .mode = VG_MODE_HAMI_CORE,
					       .healthy = true };
		node.card_count++;
		vg_cut(&piece, ',', &field);
		card->uuid = vg_arena_strndup(&arena, field.data, field.size);
		vg_cut(&piece, ',', &field);
		card->model = vg_arena_strndup(&arena, field.data, field.size);
		vg_cut(&piece, ',', &field);
		card->mem_mib = (int32_t)strtol(field.data, NULL, 10);
		vg_cut(&piece, ',', &field);
		card->slots = (int32_t)strtol(field.data, NULL, 10);
	}
	sink.ops->put_node(sink.ctx, &node);
	vg_arena_release(&arena);
}

/* A pod from its JSON, as a watch event would bring it. */
static inline void world_pod(struct world *world, const char *json)
{
	struct vg_sink sink = world_sink(world);
	struct vg_err err = { 0 };
	struct vg_arena arena;
	struct vg_pod pod;
	json_error_t error;
	json_t *value = json_loads(json, 0, &error);

	if (!value)
		fail_msg("%s: %s", json, error.text);
	vg_arena_init(&arena);
	if (vg_pod_decode(value, &world->classes, &arena, &pod, &err) < 0)
		fail_msg("%s", err.msg);
	sink.ops->put_pod(sink.ctx, &pod);
	json_decref(value);
	vg_arena_release(&arena);
}

/* Empty lists of both kinds: the view is complete. */
static inline void world_ready(struct world *world)
{
	struct vg_sink sink = world_sink(world);

	for (int kind = 0; kind < VG_KIND_COUNT; kind++) {
		sink.ops->list_begin(sink.ctx, (enum vg_kind)kind);
		sink.ops->list_end(sink.ctx, (enum vg_kind)kind);
	}
}

/* `bind_queue`: one pod of a node between bind and allocate. */
static inline struct world *world_new_with(bool bind_queue)
{
	struct world *world = vg_new(sizeof(*world));
	struct vg_cluster_options options = { .classes = &world->classes,
					      .bind_queue = bind_queue };

	vg_log_setup(VG_LOG_ERROR, false);
	vg_classes_init(&world->classes);
	vg_policy_parse("binpack", "spread", &options.policy);
	world->cluster = vg_cluster_new(&options);
	world->options = (struct vg_server_options){
		.cluster = world->cluster,
		.binder = { .bind = world_bind, .ctx = world },
		.classes = &world->classes,
		.policy = options.policy,
		.scheduler_name = "vgpu-scheduler",
		.force_overwrite = true,
	};
	world->server = vg_server_new(&world->options);
	world->auto_bind = true;
	the_world = world;
	return world;
}

static inline struct world *world_new(void)
{
	return world_new_with(false);
}

/* After a change of world->options. */
static inline void world_restart(struct world *world)
{
	vg_server_free(world->server);
	world->server = vg_server_new(&world->options);
}

static inline void world_free(struct world *world)
{
	vg_cluster_free(world->cluster);
	vg_server_free(world->server);
	vg_classes_release(&world->classes);
	free(world->reply.body);
	free(world);
	the_world = NULL;
}

static inline void world_forget(struct world *world)
{
	free(world->reply.body);
	world->reply = (struct reply){ 0 };
}

/* Hands a request to the route at `path`, which may have a query. The texts may go at once. */
static inline void world_ask_as(struct world *world, const char *path, const char *type,
				const char *body, size_t size)
{
	struct vg_http_request *request = vg_new(sizeof(*request));
	const char *question = strchr(path, '?');
	const struct vg_http_route *routes;
	struct vg_arena *arena = &request->arena;
	char *copy;
	size_t count;

	vg_arena_init(arena);
	request->path = vg_arena_strndup(arena, path, strcspn(path, "?"));
	request->query = vg_arena_strdup(arena, question ? question + 1 : "");
	request->content_type = vg_arena_strdup(arena, type);
	copy = vg_arena_new(arena, size + 1);
	memcpy(copy, body, size);
	request->body = copy;
	request->body_size = size;
	request->received_ns = vg_clock_mono_ns();
	world_forget(world);
	routes = vg_server_routes(world->server, VG_SERVER_ALL, &count);
	for (size_t i = 0; i < count; i++) {
		if (strcmp(routes[i].path, request->path) == 0) {
			request->method = routes[i].method;
			routes[i].handler(world->server, request);
			return;
		}
	}
	fail_msg("no route %s", path);
}

static inline void world_ask(struct world *world, const char *path, const char *body)
{
	world_ask_as(world, path, "application/json", body, strlen(body));
}

static inline void expect_reply(struct world *world, const char *what, unsigned status,
				const char *body)
{
	if (world->reply.status != status || !world->reply.body ||
	    strcmp(world->reply.body, body) != 0)
		fail_msg("%s: %u\n%s\nwant %u\n%s", what, world->reply.status,
			 world->reply.body ? world->reply.body : "(none)", status, body);
}

/* A file of tests/data. */
static inline char *read_data(const char *name, size_t *ret_size)
{
	char path[512];
	char *text = vg_new(1 << 20);
	FILE *file;

	snprintf(path, sizeof(path), "tests/data/%s", name);
	file = fopen(path, "re");
	if (!file)
		fail_msg("%s: run the tests from the top of the tree", path);
	*ret_size = fread(text, 1, (1 << 20) - 1, file);
	fclose(file);
	return text;
}

#endif
