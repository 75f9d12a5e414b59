/* SPDX-License-Identifier: Apache-2.0 */
#include "server/server.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "server/server_internal.h"

const char *const vg_route_path[VG_ROUTE_COUNT] = {
#define ROUTE(name, method, path, body_max, listeners, help) [VG_ROUTE_##name] = (path),
#include "server/routes.def"
#undef ROUTE
};

const unsigned vg_status_slot[VG_STATUS_SLOTS] = { 200, 400, 403, 404, 405, 413, 500, 503, 0 };

static const struct {
	struct vg_http_route route;
	unsigned listeners;
} all_routes[VG_ROUTE_COUNT] = {
#define ROUTE(name, method, path, body_max, listeners, help)                                       \
	[VG_ROUTE_##name] = { { #method, (path), (body_max), vg_route_##name }, (listeners) },
#include "server/routes.def"
#undef ROUTE
};

struct vg_server *vg_server_new(const struct vg_server_options *options)
{
	struct vg_server *server = vg_new(sizeof(*server));

	server->options = *options;
	for (unsigned listener = 1; listener <= VG_SERVER_ALL; listener++) {
		for (size_t i = 0; i < VG_ROUTE_COUNT; i++) {
			if (!(all_routes[i].listeners & listener))
				continue;
			server->routes[listener][server->route_count[listener]++] =
				all_routes[i].route;
		}
	}
	return server;
}

void vg_server_free(struct vg_server *server)
{
	free(server);
}

const struct vg_http_route *vg_server_routes(struct vg_server *server,
					     enum vg_server_listener listener, size_t *ret_count)
{
	*ret_count = server->route_count[listener];
	return server->routes[listener];
}

void vg_server_observe(void *ctx, const char *path, unsigned status, int64_t took_ns)
{
	struct vg_server *server = ctx;
	size_t route = 0;
	size_t slot = 0;

	while (route < VG_ROUTE_COUNT && !vg_streq(vg_route_path[route], path))
		route++;
	while (slot < VG_STATUS_SLOTS - 1 && vg_status_slot[slot] != status)
		slot++;
	vg_histogram_add(&server->request[route], took_ns);
	atomic_fetch_add_explicit(&server->requests[route][slot], 1, memory_order_relaxed);
}

struct vg_span vg_query_value(const char *query, const char *name)
{
	struct vg_span rest = VG_SPAN(query);
	struct vg_span piece;

	while (vg_cut(&rest, '&', &piece)) {
		struct vg_span value = piece;
		struct vg_span key;

		if (vg_cut(&value, '=', &key) && value.data && vg_span_eq(key, name))
			return value;
	}
	return (struct vg_span){ 0 };
}

const char *const *vg_query_list(const char *query, const char *name, struct vg_arena *arena,
				 size_t *ret_count)
{
	struct vg_span value = vg_query_value(query, name);
	struct vg_span piece;
	const char **list;
	size_t count = 0;

	*ret_count = 0;
	if (!value.data)
		return NULL;
	for (struct vg_span rest = value; vg_cut(&rest, ',', &piece);)
		count++;
	list = vg_arena_new_array(arena, count, sizeof(*list));
	for (struct vg_span rest = value; vg_cut(&rest, ',', &piece);)
		if (piece.size)
			list[(*ret_count)++] = vg_arena_strndup(arena, piece.data, piece.size);
	return list;
}
