/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon as the routes see it. */
#ifndef VGPU_SERVER_SERVER_INTERNAL_H
#define VGPU_SERVER_SERVER_INTERNAL_H

#include <stdatomic.h>

#include "base/limits.h"
#include "http/http.h"
#include "server/histogram_internal.h"
#include "server/job_internal.h"
#include "server/server.h"

enum vg_route {
#define ROUTE(name, method, path, body_max, listeners, help) VG_ROUTE_##name,
#include "server/routes.def"
#undef ROUTE
	VG_ROUTE_COUNT,
};

enum vg_result {
#define RESULT(verb, name, help) VG_RESULT_##verb##_##name,
#include "server/results.def"
#undef RESULT
	VG_RESULT_COUNT,
};

/* HTTP statuses that occur. Everything else counts as the last, which is 0: no reply was sent. */
#define VG_STATUS_SLOTS 9
extern const unsigned vg_status_slot[VG_STATUS_SLOTS];

struct vg_server {
	struct vg_server_options options;
	struct vg_http_route routes[VG_SERVER_ALL + 1][VG_ROUTE_COUNT]; /* by listener */
	size_t route_count[VG_SERVER_ALL + 1];

	/* Requests that matched no route are in the last place. */
	struct vg_histogram request[VG_ROUTE_COUNT + 1];
	atomic_uint_fast64_t requests[VG_ROUTE_COUNT + 1][VG_STATUS_SLOTS];
	struct vg_histogram decision;
	atomic_uint_fast64_t results[VG_RESULT_COUNT];
};

static inline void vg_server_count(struct vg_server *server, enum vg_result result)
{
	atomic_fetch_add_explicit(&server->results[result], 1, memory_order_relaxed);
}

/* The paths by route. */
extern const char *const vg_route_path[VG_ROUTE_COUNT];

#define ROUTE(name, method, path, body_max, listeners, help)                                       \
	void vg_route_##name(void *ctx, struct vg_http_request *request);
#include "server/routes.def"
#undef ROUTE

/*
 * The value of `name` in the query: "limit=50&node=a,b". Not decoded, since node names need no escapes;
 * data is NULL when absent.
 */
struct vg_span vg_query_value(const char *query, const char *name);
/* The members of such a comma list, in the arena; NULL when the query does not have it. */
const char *const *vg_query_list(const char *query, const char *name, struct vg_arena *arena,
				 size_t *ret_count);

#endif
