/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/server/harness.h"

#include "unit/server/json_patch.h"

/* A review with this metadata and spec. */
#define REVIEW(object)                                                                             \
	"{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"request\":{"       \
	"\"uid\":\"r1\",\"resource\":{\"group\":\"\",\"version\":\"v1\",\"resource\":\"pods\"},"   \
	"\"namespace\":\"ns\",\"operation\":\"CREATE\",\"object\":" object "}}"
#define META      "\"metadata\":{\"name\":\"p\"}"
#define POD(spec) REVIEW("{" META ",\"spec\":{" spec "}}")
/* One container with these members, and a pod that the API server has defaulted. */
#define ONE(members)                                                                               \
	POD("\"schedulerName\":\"default-scheduler\",\"containers\":[{\"name\":\"c\"" members "}]")
#define LIMITS(text) ",\"resources\":{\"limits\":{" text "}}"
#define SCHEDULER                                                                                  \
	"{\"op\":\"replace\",\"path\":\"/spec/schedulerName\",\"value\":\"vgpu-scheduler\"}"

struct row {
	const char *what;
	const char *body;
	const char *message; /* NULL: allowed without words; with `patch` NULL: denied with these */
	const char *patch;   /* "" = none, NULL = denied */
};

/* The patch can be applied, and the patched pod passes as it is. */
static void check_applies(struct world *world, const struct row *row, json_t *patch)
{
	json_t *review = json_loads(row->body, 0, NULL);
	json_t *object = json_object_get(json_object_get(review, "request"), "object");
	json_t *before;
	json_t *reply;
	json_t *response;
	const char *again64;
	char *body;

	if (!patch_apply(object, patch))
		fail_msg("%s: the patch cannot be applied", row->what);
	before = json_deep_copy(object);
	body = json_dumps(review, 0);
	world_ask(world, "/webhook", body);
	reply = json_loads(world->reply.body, 0, NULL);
	response = json_object_get(reply, "response");
	assert_true(json_is_true(json_object_get(response, "allowed")));
	/* What is forced is forced again, with the same outcome. */
	again64 = json_string_value(json_object_get(response, "patch"));
	if (again64) {
		char *text = patch_base64(again64);
		json_t *again = json_loads(text, 0, NULL);

		assert_true(patch_apply(object, again));
		json_decref(again);
		free(text);
	}
	if (!json_equal(before, object))
		fail_msg("%s: a second pass changes the pod again", row->what);
	json_decref(before);
	json_decref(reply);
	json_decref(review);
	free(body);
}

static void check(struct world *world, const struct row *row)
{
	json_t *review;
	json_t *response;
	const char *patch64;
	const char *message;
	bool allowed;

	world_ask(world, "/webhook", row->body);
	assert_int_equal(world->reply.status, 200);
	assert_string_equal(world->reply.type, "application/json");
	review = json_loads(world->reply.body, JSON_REJECT_DUPLICATES, NULL);
	assert_non_null(review);
	assert_string_equal(json_string_value(json_object_get(review, "kind")), "AdmissionReview");
	response = json_object_get(review, "response");
	assert_string_equal(json_string_value(json_object_get(response, "uid")), "r1");
	allowed = json_is_true(json_object_get(response, "allowed"));
	message =
		json_string_value(json_object_get(json_object_get(response, "status"), "message"));
	if (allowed != (row->patch != NULL) || !message != !row->message ||
	    (message && strcmp(message, row->message) != 0))
		fail_msg("%s: allowed %d, message %s, want %s", row->what, allowed,
			 message ? message : "(none)", row->message ? row->message : "(none)");
	assert_int_equal(
		json_integer_value(json_object_get(json_object_get(response, "status"), "code")),
		allowed ? 200 : 403);
	patch64 = json_string_value(json_object_get(response, "patch"));
	if (row->patch && row->patch[0]) {
		char *patch = patch64 ? patch_base64(patch64) : vg_strdup("(none)");
		json_t *tree;

		assert_non_null(patch);
		if (strcmp(patch, row->patch) != 0)
			fail_msg("%s:\n%s\nwant\n%s", row->what, patch, row->patch);
		assert_string_equal(json_string_value(json_object_get(response, "patchType")),
				    "JSONPatch");
		tree = json_loads(patch, JSON_REJECT_DUPLICATES, NULL);
		check_applies(world, row, tree);
		json_decref(tree);
		free(patch);
	} else if (patch64) {
		fail_msg("%s: an unexpected patch: %s", row->what, patch64);
	}
	json_decref(review);
}

/* ---- with the defaults ------------------------------------------------------------------------ */

static void test_table(void **state)
{
	static const struct row rows[] = {
		{ "a slice: the scheduler alone",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"100\"")), NULL,
		  "[" SCHEDULER "]" },
		{ "a number instead of a text is the same to us",
		  ONE(LIMITS("\"nvidia.com/gpu\":1,\"nvidia.com/gpumem\":100")), NULL,
		  "[" SCHEDULER "]" },
		{ "whole cards are for one alone", ONE(LIMITS("\"nvidia.com/gpu\":\"2\"")), NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits/"
		  "nvidia.com~1gpucores\",\"value\":\"100\"}," SCHEDULER "]" },
		{ "all memory by percentage is a whole card",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"100\"")),
		  NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits/"
		  "nvidia.com~1gpucores\",\"value\":\"100\"}," SCHEDULER "]" },
		{ "half of the memory is none",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"50\"")),
		  NULL, "[" SCHEDULER "]" },
		{ "who names cores gets those",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpucores\":\"0\"")), NULL,
		  "[" SCHEDULER "]" },
		{ "memory without a card", ONE(LIMITS("\"nvidia.com/gpumem\":\"1\"")),
		  "container \"c\": a part of a card is asked for, but no card; set nvidia.com/gpu to 1",
		  NULL },
		{ "cards in requests alone: Kubernetes itself complains, we add the scheduler",
		  ONE(",\"resources\":{\"requests\":{\"nvidia.com/gpu\":\"1\","
		      "\"nvidia.com/gpumem\":\"5\"}}"),
		  NULL, "[" SCHEDULER "]" },
		{ "a priority becomes environment; there was none",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"100\","
			     "\"nvidia.com/priority\":\"1\"")),
		  NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/env\",\"value\":[{\"name\":"
		  "\"CUDA_TASK_PRIORITY\",\"value\":\"1\"}]}," SCHEDULER "]" },
		{ "and is appended to what there is",
		  ONE(",\"env\":[{\"name\":\"A\",\"value\":\"b\"}]" LIMITS(
			  "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"100\","
			  "\"nvidia.com/priority\":\"1\"")),
		  NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/env/-\",\"value\":{\"name\":"
		  "\"CUDA_TASK_PRIORITY\",\"value\":\"1\"}}," SCHEDULER "]" },
		{ "a variable of the user is left alone",
		  ONE(",\"env\":[{\"name\":\"CUDA_TASK_PRIORITY\",\"value\":\"0\"}]" LIMITS(
			  "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"100\","
			  "\"nvidia.com/priority\":\"1\"")),
		  NULL, "[" SCHEDULER "]" },
		{ "the second of two containers, behind an init container",
		  POD("\"initContainers\":[{\"name\":\"i\"}],\"containers\":[{\"name\":\"a\"},"
		      "{\"name\":\"b\"" LIMITS("\"nvidia.com/gpu\":\"1\"") "}]"),
		  NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/1/resources/limits/"
		  "nvidia.com~1gpucores\",\"value\":\"100\"},{\"op\":\"add\",\"path\":"
		  "\"/spec/schedulerName\",\"value\":\"vgpu-scheduler\"}]" },
		{ "an init container",
		  POD("\"schedulerName\":\"vgpu-scheduler\",\"initContainers\":[{\"name\":\"i\"" LIMITS(
			  "\"nvidia.com/gpu\":\"1\"") "}],\"containers\":[{\"name\":\"a\"}]"),
		  NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/initContainers/0/resources/limits/"
		  "nvidia.com~1gpucores\",\"value\":\"100\"}]" },

		{ "no cards: untouched", ONE(LIMITS("\"cpu\":\"1\"")), NULL, "" },
		{ "zero cards: untouched", ONE(LIMITS("\"nvidia.com/gpu\":\"0\"")), NULL, "" },
		{ "nothing at all: untouched", ONE(""), NULL, "" },
		{ "somebody else's pod: untouched",
		  POD("\"schedulerName\":\"other\",\"containers\":[{\"name\":\"c\"" LIMITS(
			  "\"nvidia.com/gpu\":\"1\"") "}]"),
		  "pod already has different scheduler assigned", "" },
		{ "somebody else's pod with nonsense: untouched",
		  POD("\"schedulerName\":\"other\",\"containers\":[{\"name\":\"c\"" LIMITS(
			  "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"16Gi\"") "}]"),
		  "pod already has different scheduler assigned", "" },

		{ "no containers", POD("\"containers\":[]"), "pod has no containers", NULL },
		{ "no spec", REVIEW("{" META "}"), "pod has no containers", NULL },
		{ "memory in bytes",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"16Gi\"")),
		  "container \"c\": nvidia.com/gpumem \"16Gi\" is not a count of MiB; write 16384",
		  NULL },
		{ "half a card", ONE(LIMITS("\"nvidia.com/gpu\":\"500m\"")),
		  "container \"c\": nvidia.com/gpu \"500m\" is not a whole number of cards; for a part "
		  "of a card ask for 1 card and for its memory and cores",
		  NULL },
		{ "a negative number",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpucores\":\"-5\"")),
		  "container \"c\": nvidia.com/gpucores \"-5\" is negative; write a whole number",
		  NULL },
		{ "more than all memory",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"101\"")),
		  "invalid nvidia.com/gpumem-percentage value 101 in container c: must be an integer "
		  "between 0 and 100",
		  NULL },
		{ "weights that are none",
		  REVIEW("{\"metadata\":{\"name\":\"p\",\"annotations\":{\"hami.io/"
			 "device-scoring-weights\":\"x\"}},\"spec\":{\"containers\":[{\"name\":\"c\"" LIMITS(
				 "\"nvidia.com/gpu\":\"1\"") "}]}}"),
		  "invalid hami.io/device-scoring-weights annotation \"x\": expected slot, core, and "
		  "memory weights",
		  NULL },
		{ "a privileged container sees every card anyway",
		  ONE(",\"securityContext\":{\"privileged\":true}" LIMITS(
			  "\"nvidia.com/gpu\":\"1\"")),
		  "container c is privileged", NULL },
		{ "privileged without cards: untouched",
		  ONE(",\"securityContext\":{\"privileged\":true}"), NULL, "" },
		{ "a node chosen by hand",
		  POD("\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\"" LIMITS(
			  "\"nvidia.com/gpu\":\"1\"") "}]"),
		  "pod has node assigned", NULL },
		{ "a node chosen by hand, without cards: untouched",
		  POD("\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\"}]"), NULL, "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = world_new();

		check(world, &rows[i]);
		world_free(world);
	}
}

/* ---- with other settings ---------------------------------------------------------------------- */

static void set_text(char **text, const char *value)
{
	free(*text);
	*text = vg_strdup(value);
}

static void test_settings(void **state)
{
	static const struct row own[] = {
		{ "without force, default-scheduler is another scheduler",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\"")),
		  "pod already has different scheduler assigned", "" },
		{ "without force, no name is still ours",
		  POD("\"containers\":[{\"name\":\"c\"" LIMITS(
			  "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1\"") "}]"),
		  NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/schedulerName\",\"value\":\"vgpu-scheduler\"}]" },
	};
	static const struct row nameless[] = {
		{ "no scheduler of our own: a chosen node is fine",
		  POD("\"nodeName\":\"n1\",\"containers\":[{\"name\":\"c\"" LIMITS(
			  "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1\"") "}]"),
		  NULL, "" },
		{ "no scheduler of our own: any name is another one",
		  POD("\"schedulerName\":\"x\",\"containers\":[{\"name\":\"c\"" LIMITS(
			  "\"nvidia.com/gpu\":\"1\"") "}]"),
		  "pod already has different scheduler assigned", "" },
	};
	static const struct row runtime[] = {
		{ "a runtime class for pods with cards",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1\"")), NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/runtimeClassName\",\"value\":\"nvidia\"}," SCHEDULER
		  "]" },
		{ "unless they have one",
		  POD("\"schedulerName\":\"vgpu-scheduler\",\"runtimeClassName\":\"mine\","
		      "\"containers\":[{\"name\":\"c\"" LIMITS(
			      "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1\"") "}]"),
		  NULL, "" },
		{ "not for others", ONE(""), NULL, "" },
	};
	static const struct row overwrite[] = {
		{ "no cards: none are visible, there was no environment", ONE(""), NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/env\",\"value\":[{\"name\":"
		  "\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"none\"}]}]" },
		{ "the user's wish to see all is overruled, every one of them",
		  ONE(",\"env\":[{\"name\":\"A\"},{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"all\"}"
		      ",{\"name\":\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"0\"}]"),
		  NULL,
		  "[{\"op\":\"replace\",\"path\":\"/spec/containers/0/env/1\",\"value\":{\"name\":"
		  "\"NVIDIA_VISIBLE_DEVICES\",\"value\":\"none\"}},{\"op\":\"replace\",\"path\":"
		  "\"/spec/containers/0/env/2\",\"value\":{\"name\":\"NVIDIA_VISIBLE_DEVICES\","
		  "\"value\":\"none\"}}]" },
		{ "with cards nothing is hidden",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1\"")), NULL,
		  "[" SCHEDULER "]" },
	};
	static const struct row policy[] = {
		{ "a core policy for containers with cards",
		  POD("\"schedulerName\":\"vgpu-scheduler\",\"containers\":[{\"name\":\"a\"},{\"name\":"
		      "\"b\"" LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1\","
				     "\"nvidia.com/priority\":\"2\"") "}]"),
		  NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/1/env\",\"value\":[{\"name\":"
		  "\"CUDA_TASK_PRIORITY\",\"value\":\"2\"},{\"name\":\"GPU_CORE_UTILIZATION_POLICY\","
		  "\"value\":\"force\"}]}]" },
	};
	static const struct row one_card[] = {
		{ "memory alone means one card", ONE(LIMITS("\"nvidia.com/gpumem\":\"100\"")), NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits/nvidia.com~1gpu\","
		  "\"value\":\"1\"}," SCHEDULER "]" },
	};
	static const struct row renamed[] = {
		{ "a resource name with a tilde, and limits that are not there",
		  ONE(",\"resources\":{\"requests\":{\"x~/mem\":\"5\"}}"), NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits\",\"value\":{"
		  "\"nvidia.com/gpu\":\"1\"}}," SCHEDULER "]" },
		{ "the tilde in a path", ONE(LIMITS("\"nvidia.com/gpu\":\"1\"")), NULL,
		  "[{\"op\":\"add\",\"path\":\"/spec/containers/0/resources/limits/x~0~1cores\","
		  "\"value\":\"100\"}," SCHEDULER "]" },
	};
	struct world *world;

	(void)state;
#define CHECK(rows)                                                                                \
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)                                \
		check(world, &rows[i]);                                                            \
	world_free(world)

	world = world_new();
	world->options.force_overwrite = false;
	world_restart(world);
	CHECK(own);

	world = world_new();
	world->options.scheduler_name = "";
	world_restart(world);
	CHECK(nameless);

	world = world_new();
	set_text(&world->classes.item[0].runtime_class, "nvidia");
	CHECK(runtime);

	world = world_new();
	world->classes.item[0].overwrite_env = true;
	CHECK(overwrite);

	world = world_new();
	set_text(&world->classes.item[0].core_policy, "force");
	CHECK(policy);

	world = world_new();
	world->classes.item[0].default_count = 1;
	CHECK(one_card);

	world = world_new();
	world->classes.item[0].default_count = 1;
	set_text(&world->classes.item[0].resource_mem, "x~/mem");
	set_text(&world->classes.item[0].resource_cores, "x~/cores");
	CHECK(renamed);
#undef CHECK
}

/* ---- the envelope ----------------------------------------------------------------------------- */

/* ---- quotas ----------------------------------------------------------------------------------- */

#define GPU(count, mem)                                                                            \
	",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"" count                                  \
	"\",\"nvidia.com/gpumem\":\"" mem "\"}}"
#define PARTS(inits, apps)                                                                         \
	POD("\"schedulerName\":\"default-scheduler\",\"initContainers\":[" inits                   \
	    "],\"containers\":[" apps "]")
#define PATCHED "[" SCHEDULER "]"
#define OVER(asked)                                                                                \
	"exceeding resource quota: q of namespace ns limits limits.nvidia.com/gpumem to 10000 "    \
	"MiB; 4000 are used, and the pod asks for " asked

static void test_quota(void **state)
{
	static const struct row rows[] = {
		{ "exactly full", ONE(GPU("2", "3000")), NULL, PATCHED },
		{ "one too many on each card", ONE(GPU("2", "3001")), OVER("6002"), NULL },
		{ "no memory is named: filter knows what half a card is",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem-percentage\":\"50\"")),
		  NULL, PATCHED },
		{ "an init container by itself",
		  PARTS("{\"name\":\"i\"" GPU("1", "7000") "}",
			"{\"name\":\"a\"" GPU("1", "3000") "}"),
		  OVER("7000"), NULL },
		{ "two init containers run one after the other",
		  PARTS("{\"name\":\"i\"" GPU("1", "5000") "},{\"name\":\"j\"" GPU("1", "5000") "}",
			"{\"name\":\"a\"" GPU("1", "3000") "}"),
		  NULL, PATCHED },
		{ "a sidecar runs beside them",
		  PARTS("{\"name\":\"i\",\"restartPolicy\":\"Always\"" GPU(
				"1", "1500") "},{\"name\":\"j\"" GPU("1", "5000") "}",
			"{\"name\":\"a\"" GPU("1", "3000") "}"),
		  OVER("6500"), NULL },
		{ "apps run together",
		  PARTS("{\"name\":\"i\"" GPU("1", "5000") "}",
			"{\"name\":\"a\"" GPU("1", "3000") "},{\"name\":\"b\"" GPU("1",
										   "3001") "}"),
		  OVER("6001"), NULL },
		{ "cores",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1\","
			     "\"nvidia.com/gpucores\":\"90\"")),
		  "exceeding resource quota: p of namespace ns limits limits.nvidia.com/gpucores "
		  "to 150 percent; 70 are used, and the pod asks for 90",
		  NULL },
		{ "cores that we add ourselves: whole cards",
		  ONE(LIMITS("\"nvidia.com/gpu\":\"1\"")),
		  "exceeding resource quota: p of namespace ns limits limits.nvidia.com/gpucores "
		  "to 150 percent; 70 are used, and the pod asks for 100",
		  NULL },
		{ "no cards", ONE(""), NULL, "" },
	};
	struct world *world = world_new();
	struct vg_sink sink = world_sink(world);
	struct vg_quota_info quota = { .namespace = "ns", .name = "q", .uid = "" };

	(void)state;
	world_ready(world);
	vg_quota_unlimited(quota.hard);
	quota.hard[0].mem_mib = 10000;
	sink.ops->put_quota(sink.ctx, &quota);
	quota.name = "p";
	quota.hard[0] = (struct vg_total){ 11000, 150 };
	sink.ops->put_quota(sink.ctx, &quota);
	/* In the request's namespace, which the object above does not have; this one is not asked. */
	quota.namespace = "";
	quota.hard[0].mem_mib = 0;
	sink.ops->put_quota(sink.ctx, &quota);
	world_pod(world,
		  "{\"metadata\":{\"name\":\"o\",\"namespace\":\"ns\",\"uid\":\"u\","
		  "\"annotations\":{\"hami.io/vgpu-devices-allocated\":\"GPU-a,NVIDIA,4000,"
		  "70:;\"}},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":\"a\"}]}}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(world, &rows[i]);
	/* Used up, and an explicit 0: nothing passes; without the quotas all does. */
	quota.namespace = "ns";
	quota.hard[0] = (struct vg_total){ 0, VG_QUOTA_NO_LIMIT };
	sink.ops->put_quota(sink.ctx, &quota);
	check(world, &(struct row){ "zero", ONE(GPU("1", "1")),
				    "exceeding resource quota: p of namespace ns limits "
				    "limits.nvidia.com/gpumem to 0 MiB; 4000 are used, and the pod "
				    "asks for 1",
				    NULL });
	sink.ops->delete_quota(sink.ctx, "ns", "p");
	sink.ops->delete_quota(sink.ctx, "ns", "q");
	check(world, &(struct row){ "none", ONE(GPU("1", "900000")), NULL, PATCHED });
	world_free(world);
}

/* A class whose memory is counted in larger units: the limit, too. */
static void test_quota_units(void **state)
{
	struct world *world = world_new();
	struct vg_sink sink = world_sink(world);
	struct vg_quota_info quota = { .namespace = "ns", .name = "q", .uid = "" };

	(void)state;
	world->classes.item[0].mem_factor = 256;
	world_ready(world);
	vg_quota_unlimited(quota.hard);
	quota.hard[0].mem_mib = 2560;
	sink.ops->put_quota(sink.ctx, &quota);
	check(world, &(struct row){ "10 units", ONE(GPU("1", "10")), NULL, PATCHED });
	check(world, &(struct row){ "11 units", ONE(GPU("1", "11")),
				    "exceeding resource quota: q of namespace ns limits "
				    "limits.nvidia.com/gpumem to 2560 MiB; 0 are used, and the pod "
				    "asks for 2816",
				    NULL });
	world_free(world);
}

static void test_envelopes(void **state)
{
	static const struct {
		const char *what;
		const char *type;
		const char *body;
		const char *reply;
	} rows[] = {
		{ "denied, v1beta1", "application/json; charset=utf-8",
		  "{\"apiVersion\":\"admission.k8s.io/v1beta1\",\"kind\":\"AdmissionReview\","
		  "\"request\":{\"uid\":\"x\",\"operation\":\"CREATE\",\"resource\":{\"group\":\"\","
		  "\"resource\":\"pods\"},\"object\":{\"metadata\":{},\"spec\":{}}}}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\","
		  "\"response\":{\"uid\":\"x\",\"allowed\":false,\"status\":{\"reason\":\"Forbidden\","
		  "\"message\":\"pod has no containers\",\"code\":403}}}\n" },
		{ "no version is v1", "application/json",
		  "{\"request\":{\"uid\":\"x\",\"operation\":\"DELETE\",\"resource\":{\"group\":\"\","
		  "\"resource\":\"pods\"},\"object\":null}}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"x\",\"allowed\":true,\"status\":{\"code\":200}}}\n" },
		{ "an update is none of our business", "application/json",
		  "{\"request\":{\"uid\":\"x\",\"operation\":\"UPDATE\",\"resource\":{\"group\":\"\","
		  "\"resource\":\"pods\"},\"object\":7}}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"x\",\"allowed\":true,\"status\":{\"code\":200}}}\n" },
		{ "nor are other objects", "application/json",
		  "{\"request\":{\"uid\":\"x\",\"operation\":\"CREATE\",\"resource\":{\"group\":\"apps\","
		  "\"resource\":\"deployments\"},\"object\":{}}}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"x\",\"allowed\":true,\"status\":{\"code\":200}}}\n" },
		{ "nor is kubectl exec", "application/json",
		  "{\"request\":{\"uid\":\"x\",\"operation\":\"CREATE\",\"subResource\":\"exec\","
		  "\"resource\":{\"group\":\"\",\"resource\":\"pods\"},\"object\":{}}}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"x\",\"allowed\":true,\"status\":{\"code\":200}}}\n" },
		{ "another content type", "text/plain", "{\"request\":{\"uid\":\"x\"}}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"x\",\"allowed\":false,\"status\":{\"message\":\"contentType=text/plain, "
		  "expected application/json\",\"code\":400}}}\n" },
		{ "empty", "application/json", "",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"\",\"allowed\":false,\"status\":{\"message\":\"request body is empty\","
		  "\"code\":400}}}\n" },
		{ "no request", "application/json", "{}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"\",\"allowed\":false,\"status\":{\"message\":\"AdmissionReview has no "
		  "request\",\"code\":400}}}\n" },
		{ "no review", "application/json", "{\"apiVersion\":\"v1\",\"kind\":\"Pod\"}",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"\",\"allowed\":false,\"status\":{\"message\":\"not an AdmissionReview: "
		  "apiVersion \\\"v1\\\", kind \\\"Pod\\\"\",\"code\":400}}}\n" },
		{ "an array", "application/json", "[]",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"\",\"allowed\":false,\"status\":{\"message\":\"not an AdmissionReview: "
		  "apiVersion \\\"\\\", kind \\\"\\\"\",\"code\":400}}}\n" },
		{ "a pod of wrong types, with the uid of the request", "application/json",
		  REVIEW("{\"metadata\":{\"name\":\"p\"},\"spec\":{\"containers\":{}}}"),
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"r1\",\"allowed\":false,\"status\":{\"message\":\"Pod /p: spec.containers is "
		  "an object, not an array\",\"code\":400}}}\n" },
		{ "no object", "application/json", REVIEW("\"x\""),
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"r1\",\"allowed\":false,\"status\":{\"message\":\"AdmissionReview: "
		  "request.object is no object\",\"code\":400}}}\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = world_new();

		world_ask_as(world, "/webhook", rows[i].type, rows[i].body, strlen(rows[i].body));
		expect_reply(world, rows[i].what, 200, rows[i].reply);
		world_free(world);
	}
}

static void test_truncated(void **state)
{
	struct world *world = world_new();
	size_t size;
	char *body = read_data("captured-1.20.2/webhook-v1.json", &size);

	(void)state;
	while (size > 0 && body[size - 1] != '}')
		size--;
	for (size_t cut = 0; cut < size; cut += 11) {
		json_t *review;

		world_ask_as(world, "/webhook", "application/json", body, cut);
		assert_int_equal(world->reply.status, 200);
		review = json_loads(world->reply.body, 0, NULL);
		assert_non_null(review);
		assert_true(json_is_false(
			json_object_get(json_object_get(review, "response"), "allowed")));
		json_decref(review);
	}
	free(body);
	world_free(world);
}

/* What the API server really sends: assigned to us, complete, so nothing is left to do. */
static void test_captured(void **state)
{
	static const struct {
		const char *file;
		const char *reply;
	} rows[] = {
		{ "captured-1.20.2/webhook-v1.json",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1\",\"response\":{"
		  "\"uid\":\"9827ab6d-7e99-4908-9a96-c8cbc5b8fba5\",\"allowed\":true,\"status\":{"
		  "\"code\":200}}}\n" },
		{ "captured-1.20.2/webhook-v1beta1.json",
		  "{\"kind\":\"AdmissionReview\",\"apiVersion\":\"admission.k8s.io/v1beta1\","
		  "\"response\":{\"uid\":\"ad0c1d04-b717-4173-b988-e5a67213fb30\",\"allowed\":true,"
		  "\"status\":{\"code\":200}}}\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = world_new();
		size_t size;
		char *body = read_data(rows[i].file, &size);

		world_ask_as(world, "/webhook", "application/json", body, size);
		expect_reply(world, rows[i].file, 200, rows[i].reply);
		free(body);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),     cmocka_unit_test(test_settings),
		cmocka_unit_test(test_quota),     cmocka_unit_test(test_quota_units),
		cmocka_unit_test(test_envelopes), cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
