/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/server/harness.h"

#define POD(name, uid)                                                                             \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" uid                 \
	"\"},\"spec\":{\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"             \
	"\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"2000\",\"nvidia.com/gpucores\":\"30\"}}" \
	"}]}}"

static struct world *small_cluster(void)
{
	struct world *world = world_new();

	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10");
	world_node(world, "bare", "");
	return world;
}

#define NODE_BARE                                                                                  \
	"{\"name\":\"bare\",\"registered\":false,\"slots\":{\"used\":0,\"total\":0},\"memMiB\":{"  \
	"\"used\":0,\"total\":0},\"cores\":{\"used\":0,\"total\":0},\"cards\":[]}"
#define NODE_N1(slots, mem, cores)                                                                 \
	"{\"name\":\"n1\",\"registered\":true,\"slots\":{\"used\":" slots                          \
	",\"total\":10},\"memMiB\":{\"used\":" mem ",\"total\":8000},\"cores\":{\"used\":" cores   \
	",\"total\":100},\"cards\":[{\"index\":0,\"uuid\":\"GPU-a\",\"class\":\"NVIDIA\","         \
	"\"model\":\"NVIDIA A100\",\"mode\":\"hami-core\",\"numa\":0,\"healthy\":true,"            \
	"\"cordoned\":false,\"slots\":{\"used\":" slots ",\"total\":10},\"memMiB\":{\"used\":" mem \
	",\"total\":8000},\"cores\":{\"used\":" cores ",\"total\":100}}]}"

static void test_empty(void **state)
{
	struct world *world = small_cluster();

	(void)state;
	world_ask(world, "/state", "");
	assert_string_equal(world->reply.type, "application/json");
	expect_reply(world, "empty", 200,
		     "{\"ready\":true,\"nodes\":[" NODE_BARE
		     "," NODE_N1("0", "0", "0") "],"
						"\"pods\":[],\"reservations\":[],\"quotas\":[]}\n");
	world_ask(world, "/state?node=bare,nobody", "");
	expect_reply(world, "one and an unknown one", 200,
		     "{\"ready\":true,\"nodes\":[" NODE_BARE ",{\"name\":\"nobody\",\"registered\":"
		     "false,\"slots\":{\"used\":0,\"total\":0},\"memMiB\":{\"used\":0,\"total\":0},"
		     "\"cores\":{\"used\":0,\"total\":0},\"cards\":[]}],\"pods\":[],"
		     "\"reservations\":[],\"quotas\":[]}\n");
	world_free(world);
}

static void test_not_ready(void **state)
{
	struct world *world = world_new();

	(void)state;
	world_ask(world, "/state", "");
	expect_reply(world, "not ready", 200,
		     "{\"ready\":false,\"notReady\":\"the list of nodes has not been read yet\","
		     "\"nodes\":[],\"pods\":[],\"reservations\":[],\"quotas\":[]}\n");
	world_free(world);
}

static json_t *ask(struct world *world, const char *path)
{
	json_t *state;

	world_ask(world, path, "");
	assert_int_equal(world->reply.status, 200);
	state = json_loads(world->reply.body, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(state);
	return state;
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	assert_non_null(text);
	return text;
}

static void test_reservation(void **state)
{
	struct world *world = small_cluster();
	json_t *page;
	json_t *list;
	json_t *pod;
	json_t *grant;

	(void)state;
	world_ask(world, "/filter", "{\"Pod\":" POD("p", "u1") ",\"NodeNames\":[\"n1\"]}");
	page = ask(world, "/state");
	assert_int_equal(json_array_size(json_object_get(page, "pods")), 0);
	list = json_object_get(page, "reservations");
	assert_int_equal(json_array_size(list), 1);
	pod = json_array_get(list, 0);
	assert_string_equal(text_of(pod, "name"), "p");
	assert_string_equal(text_of(pod, "namespace"), "ns");
	assert_string_equal(text_of(pod, "uid"), "u1");
	assert_string_equal(text_of(pod, "state"), "reserved");
	assert_string_equal(text_of(pod, "node"), "n1");
	assert_true(json_real_value(json_object_get(pod, "ageSeconds")) >= 0);
	assert_true(json_number_value(json_object_get(pod, "lapsesInSeconds")) > 290);
	assert_true(json_number_value(json_object_get(pod, "lapsesInSeconds")) <= 300);
	grant = json_array_get(json_object_get(pod, "grants"), 0);
	assert_string_equal(text_of(grant, "uuid"), "GPU-a");
	assert_string_equal(text_of(grant, "class"), "NVIDIA");
	assert_int_equal(json_integer_value(json_object_get(grant, "container")), 0);
	assert_int_equal(json_integer_value(json_object_get(grant, "memMiB")), 2000);
	assert_int_equal(json_integer_value(json_object_get(grant, "cores")), 30);
	json_decref(page);
	assert_non_null(strstr(world->reply.body, NODE_N1("1", "2000", "30")));

	/* Bound: in the ledger, no reservation any more. */
	world_ask(world, "/bind",
		  "{\"PodName\":\"p\",\"PodNamespace\":\"ns\",\"PodUID\":\"u1\",\"Node\":\"n1\"}");
	page = ask(world, "/state");
	assert_int_equal(json_array_size(json_object_get(page, "reservations")), 0);
	pod = json_array_get(json_object_get(page, "pods"), 0);
	assert_string_equal(text_of(pod, "state"), "bound");
	assert_true(json_is_true(json_object_get(pod, "allocating")));
	assert_null(json_object_get(pod, "lapsesInSeconds"));
	json_decref(page);

	page = ask(world, "/state?node=bare");
	assert_int_equal(json_array_size(json_object_get(page, "pods")), 0);
	json_decref(page);
	page = ask(world, "/state?node=n1");
	assert_int_equal(json_array_size(json_object_get(page, "pods")), 1);
	json_decref(page);
	world_free(world);
}

static void test_quotas(void **state)
{
	struct world *world = small_cluster();
	struct vg_sink sink = world_sink(world);
	struct vg_quota_info quota = { .namespace = "ns", .name = "q", .uid = "" };

	(void)state;
	world_ask(world, "/filter", "{\"Pod\":" POD("p", "u1") ",\"NodeNames\":[\"n1\"]}");
	world_ask(world, "/state", "");
	assert_non_null(strstr(world->reply.body,
			       "\"quotas\":[{\"namespace\":\"ns\",\"class\":\"NVIDIA\","
			       "\"memMiB\":{\"used\":2000},\"cores\":{\"used\":30}}]}\n"));
	vg_quota_unlimited(quota.hard);
	quota.hard[0].mem_mib = 5000;
	sink.ops->put_quota(sink.ctx, &quota);
	quota.namespace = "a";
	quota.hard[0] = (struct vg_total){ VG_QUOTA_NO_LIMIT, 0 };
	sink.ops->put_quota(sink.ctx, &quota);
	sink.ops->forbidden(sink.ctx, VG_KIND_QUOTA);
	world_ask(world, "/state?node=bare", "");
	assert_non_null(strstr(
		world->reply.body,
		"\"quotas\":[{\"namespace\":\"a\",\"class\":\"NVIDIA\",\"memMiB\":{\"used\":0},"
		"\"cores\":{\"used\":0,\"limit\":0,\"quota\":\"q\"}},"
		"{\"namespace\":\"ns\",\"class\":\"NVIDIA\","
		"\"memMiB\":{\"used\":2000,\"limit\":5000,\"quota\":\"q\"},"
		"\"cores\":{\"used\":30}}],\"quotasForbidden\":true}\n"));
	world_free(world);
}

static void test_too_many_names(void **state)
{
	struct world *world = small_cluster();
	char path[2048] = "/state?node=a";
	size_t used = strlen(path);

	(void)state;
	for (int i = 0; i < 256; i++)
		used += (size_t)snprintf(path + used, sizeof(path) - used, ",b");
	world_ask(world, path, "");
	expect_reply(world, "too many", 400,
		     "{\"error\":\"?node= lists 257 names; at most 256 are accepted\"}\n");
	assert_string_equal(world->reply.type, "application/json");
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_empty),          cmocka_unit_test(test_not_ready),
		cmocka_unit_test(test_reservation),    cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_too_many_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
