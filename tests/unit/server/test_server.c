/* SPDX-License-Identifier: Apache-2.0 */
/* Which listener serves what, health, and the query. */
#include "unit/server/harness.h"

#include "base/str.h"

static void test_routes(void **state)
{
	static const struct {
		enum vg_server_listener listener;
		const char *routes;
	} rows[] = {
		{ VG_SERVER_EXTENDER,
		  "POST /filter,POST /prioritize,POST /bind,GET /healthz,GET /readyz," },
		{ VG_SERVER_WEBHOOK, "POST /webhook,GET /healthz,GET /readyz," },
		{ VG_SERVER_METRICS,
		  "POST /explain,GET /state,GET /metrics,GET /healthz,GET /readyz," },
		{ VG_SERVER_ALL,
		  "POST /filter,POST /prioritize,POST /bind,POST /webhook,POST /explain,GET /state,GET /metrics,"
		  "GET /healthz,GET /readyz," },
	};
	struct world *world = world_new();

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vg_http_route *routes;
		char text[512] = "";
		size_t used = 0;
		size_t count;

		routes = vg_server_routes(world->server, rows[i].listener, &count);
		for (size_t k = 0; k < count; k++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s %s,",
						 routes[k].method, routes[k].path);
		assert_string_equal(text, rows[i].routes);
	}
	world_free(world);
}

static void test_health(void **state)
{
	struct world *world = world_new();
	struct vg_sink sink = world_sink(world);

	(void)state;
	world_ask(world, "/healthz", "");
	expect_reply(world, "healthy", 200, "ok\n");
	world_ask(world, "/readyz", "");
	expect_reply(world, "no nodes", 503, "the list of nodes has not been read yet\n");
	sink.ops->list_begin(sink.ctx, VG_KIND_NODE);
	sink.ops->list_end(sink.ctx, VG_KIND_NODE);
	world_ask(world, "/readyz", "");
	expect_reply(world, "no pods", 503, "the list of pods has not been read yet\n");
	world_ready(world);
	world_ask(world, "/readyz", "");
	expect_reply(world, "ready", 200, "ok\n");
	world_ask(world, "/healthz", "");
	expect_reply(world, "healthy", 200, "ok\n");
	world_free(world);
}

static void test_query(void **state)
{
	static const struct {
		const char *query;
		const char *value; /* of "node"; NULL = absent */
		const char *list;
	} rows[] = {
		{ "", NULL, NULL },
		{ "limit=5", NULL, NULL },
		{ "node", NULL, NULL },
		{ "nodes=a", NULL, NULL },
		{ "node=", "", "" },
		{ "node=a", "a", "a|" },
		{ "x=1&node=a,b&node=c", "a,b", "a|b|" },
		{ "node=,a,,b,", ",a,,b,", "a|b|" },
		{ "node=a=b", "a=b", "a=b|" },
	};
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_span value = vg_query_value(rows[i].query, "node");
		const char *const *list;
		char text[64] = "";
		size_t used = 0;
		size_t count;

		list = vg_query_list(rows[i].query, "node", &arena, &count);
		if (!rows[i].value) {
			assert_null(value.data);
			assert_null(list);
			assert_int_equal(count, 0);
			continue;
		}
		assert_true(vg_span_eq(value, rows[i].value));
		assert_non_null(list);
		for (size_t k = 0; k < count; k++)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s|", list[k]);
		assert_string_equal(text, rows[i].list);
	}
	vg_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_routes),
		cmocka_unit_test(test_health),
		cmocka_unit_test(test_query),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
