/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "snapshot/snapshot.h"

#define TEXT_MAX ((size_t)4 << 20)

/* ---- a sink that writes down what it hears -------------------------------------------------------- */

static const char *kind_name(enum vg_kind kind)
{
	static const char *const names[VG_KIND_COUNT] = { "nodes", "pods", "quotas" };

	return names[kind];
}

static void on_begin(void *ctx, enum vg_kind kind)
{
	vg_buf_addf(ctx, "begin %s\n", kind_name(kind));
}

static void on_end(void *ctx, enum vg_kind kind)
{
	vg_buf_addf(ctx, "end %s\n", kind_name(kind));
}

static void on_abort(void *ctx, enum vg_kind kind)
{
	vg_buf_addf(ctx, "abort %s\n", kind_name(kind));
}

static void on_node(void *ctx, const struct vg_node_info *node)
{
	vg_buf_addf(ctx, "node %s cards=%zu version=%llu\n", node->name, node->card_count,
		    (unsigned long long)node->resource_version);
}

static const char *or_dash(const char *text)
{
	return text && text[0] ? text : "-";
}

static void on_pod(void *ctx, const struct vg_pod *pod)
{
	static const char *const phases[] = { "pending", "running", "succeeded", "failed" };
	const char *const *value = pod->annotations.value;

	vg_buf_addf(ctx, "pod %s/%s uid=%s node=%s %s version=%llu allocated=%s left=%s bind=%s\n",
		    pod->namespace, pod->name, or_dash(pod->uid), or_dash(pod->node_name),
		    phases[pod->phase], (unsigned long long)pod->resource_version,
		    or_dash(value[VG_ANNO_POD_ALLOCATED]), or_dash(value[VG_ANNO_POD_TO_ALLOCATE]),
		    or_dash(value[VG_ANNO_POD_BIND_PHASE]));
}

static void on_quota(void *ctx, const struct vg_quota_info *quota)
{
	vg_buf_addf(ctx, "quota %s/%s mem=%lld version=%llu problem=%s\n", quota->namespace,
		    quota->name, (long long)quota->hard[0].mem_mib,
		    (unsigned long long)quota->resource_version, or_dash(quota->problem));
}

static void on_delete_node(void *ctx, const char *name)
{
	vg_buf_addf(ctx, "delete node %s\n", name);
}

static void on_delete_pod(void *ctx, const char *namespace, const char *name, const char *uid)
{
	vg_buf_addf(ctx, "delete pod %s/%s uid=%s\n", namespace, name, or_dash(uid));
}

static void on_malformed(void *ctx, enum vg_kind kind, const char *what, const char *why)
{
	vg_buf_addf(ctx, "malformed %s %s: %s\n", kind_name(kind), what, why);
}

static void on_heard(void *ctx, enum vg_kind kind)
{
	vg_buf_addf(ctx, "heard %s\n", kind_name(kind));
}

static const struct vg_sink_ops recorder = {
	.list_begin = on_begin,
	.list_end = on_end,
	.list_abort = on_abort,
	.put_node = on_node,
	.put_pod = on_pod,
	.put_quota = on_quota,
	.delete_node = on_delete_node,
	.delete_pod = on_delete_pod,
	.malformed = on_malformed,
	.heard = on_heard,
};

struct world {
	struct vg_classes classes;
	struct vg_buf heard;
	struct vg_snapshot *snapshot;
};

static void world_init(struct world *world)
{
	*world = (struct world){ 0 };
	vg_classes_init(&world->classes);
	vg_buf_init(&world->heard, TEXT_MAX);
}

static int world_load(struct world *world, const char *text, struct vg_err *err)
{
	struct vg_sink sink = { .ops = &recorder, .ctx = &world->heard };

	world_init(world);
	return vg_snapshot_parse("f", text, strlen(text), &world->classes, sink, &world->snapshot,
				 err);
}

static void world_release(struct world *world)
{
	vg_snapshot_free(world->snapshot);
	vg_classes_release(&world->classes);
	vg_buf_release(&world->heard);
}

/* What was heard since the last time. */
static void expect_heard(struct world *world, const char *want)
{
	assert_string_equal(world->heard.data ? world->heard.data : "", want);
	vg_buf_clear(&world->heard);
}

/* ---- files ---------------------------------------------------------------------------------------- */

#define NODE_A                                                                                     \
	"{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"a\",\"uid\":\"ua\","    \
	"\"resourceVersion\":\"7\",\"annotations\":{\"hami.io/node-nvidia-register\":"             \
	"\"[{\\\"id\\\":\\\"GPU-1\\\",\\\"count\\\":10,\\\"devmem\\\":81920,\\\"devcore\\\":100,"  \
	"\\\"type\\\":\\\"NVIDIA A100\\\",\\\"health\\\":true}]\"}}}"
#define POD_P                                                                                      \
	"{\"apiVersion\":\"v1\",\"kind\":\"Pod\",\"metadata\":{\"name\":\"p\",\"namespace\":"      \
	"\"x\",\"uid\":\"up\",\"resourceVersion\":\"9\"},\"spec\":{\"containers\":[{\"name\":"     \
	"\"c\",\"resources\":{\"limits\":{\"nvidia.com/gpu\":\"1\"}}}]}}"
#define HEARD_A "node a cards=1 version=7\n"
#define HEARD_P "pod x/p uid=up node=- pending version=9 allocated=- left=- bind=-\n"
#define HEARD   "begin nodes\n" HEARD_A "end nodes\nbegin pods\n" HEARD_P "end pods\n"
#define NOTHING "begin nodes\nend nodes\nbegin pods\nend pods\n"

static void test_files(void **state)
{
	static const struct {
		const char *text;
		const char *want;
	} rows[] = {
		{ "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" NODE_A "," POD_P "]}",
		  HEARD },
		/* The order of the file does not matter: nodes come first. */
		{ "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" POD_P "," NODE_A "]}",
		  HEARD },
		{ " \n\t{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[" NODE_A "]}\n" POD_P
		  "\n",
		  HEARD },
		{ NODE_A POD_P, HEARD },
		{ "# saved by hand\n---\n" NODE_A "\n---\n---\n" POD_P "\n", HEARD },
		{ "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[]}", NOTHING },
		{ "{\"apiVersion\":\"v1\",\"kind\":\"PodList\",\"items\":null}", NOTHING },
		{ "apiVersion: v1\nkind: List\nitems:\n- " NODE_A
		  "\n- apiVersion: v1\n  kind: Pod\n"
		  "  metadata: {name: p, namespace: x, uid: up, resourceVersion: \"9\"}\n"
		  "  spec:\n    containers:\n    - name: c\n      resources: {limits: "
		  "{nvidia.com/gpu: 1}}\n",
		  HEARD },
		/* As the API server itself answers: items of a typed list do not say what they are. */
		{ "{\"kind\":\"NodeList\",\"apiVersion\":\"v1\",\"items\":[{\"metadata\":{\"name\":"
		  "\"b\"}}]}",
		  "begin nodes\nnode b cards=0 version=0\nend nodes\nbegin pods\nend pods\n" },
		/* Other kinds are passed over, also those that are only called alike. */
		{ "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\","
		  "\"kind\":\"Service\"},"
		  "{\"apiVersion\":\"example.com/v1\",\"kind\":\"Node\"}," POD_P "]}",
		  "begin nodes\nend nodes\nbegin pods\n" HEARD_P "end pods\n" },
		{ "{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\"}", NOTHING },
		{ "{\"apiVersion\":\"metrics.k8s.io/v1beta1\",\"kind\":\"PodList\",\"items\":[{}]}",
		  "begin nodes\nend nodes\nbegin pods\nend pods\n" },
		/* What is broken does not hide the rest, and is named. */
		{ "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[5,{}," POD_P ","
		  "{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"metadata\":{\"name\":\"b\","
		  "\"annotations\":5}}]}",
		  "begin nodes\nmalformed nodes b (f: items[3]): Node b: metadata.annotations is a "
		  "number, not an "
		  "object\nend nodes\nbegin pods\nmalformed pods f: items[0]: is not an object\n"
		  "malformed pods f: items[1]: has no kind\n" HEARD_P "end pods\n" },
		{ "kind: NodeList\napiVersion: v1\nitems:\n- metadata: {name: b}\n- none\n",
		  "begin nodes\nnode b cards=0 version=0\nmalformed nodes f:5: is not an "
		  "object\nend nodes\n"
		  "begin pods\nend pods\n" },
		{ "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  namespace: x\nspec: 5\n",
		  "begin nodes\nend nodes\nbegin pods\nmalformed pods x/p (f:1): Pod x/p: spec is "
		  "a "
		  "number, not an object\nend pods\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world world;
		struct vg_err err = { 0 };
		char *want;

		if (world_load(&world, rows[i].text, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		want = vg_printf("%sbegin quotas\nend quotas\n", rows[i].want);
		expect_heard(&world, want);
		free(want);
		world_release(&world);
	}
}

/* They come last, wherever they stand in the file. */
static void test_quotas(void **state)
{
	static const struct {
		const char *text;
		const char *want;
	} rows[] = {
		{ "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[{\"apiVersion\":\"v1\","
		  "\"kind\":\"ResourceQuota\",\"metadata\":{\"name\":\"q\",\"namespace\":\"x\","
		  "\"resourceVersion\":\"12\"},\"spec\":{\"hard\":{"
		  "\"limits.nvidia.com/gpumem\":\"500\"}}}," POD_P "," NODE_A "]}",
		  HEARD "begin quotas\nquota x/q mem=500 version=12 problem=-\nend quotas\n" },
		{ "kind: ResourceQuotaList\napiVersion: v1\nitems:\n"
		  "- metadata: {name: a, namespace: x}\n  spec: {hard: {limits.nvidia.com/gpumem: "
		  "1.5}}\n"
		  "- metadata: {name: b, namespace: x}\n  spec: 5\n- none\n",
		  NOTHING
		  "begin quotas\nquota x/a mem=9223372036854775807 version=0 "
		  "problem=limits.nvidia.com/gpumem \"1.5\" is not a whole number, and is not "
		  "looked at\n"
		  "malformed quotas x/b (f:6): ResourceQuota x/b: spec is a number, not an object\n"
		  "malformed quotas f:8: is not an object\nend quotas\n" },
		{ "{\"apiVersion\":\"example.com/v1\",\"kind\":\"ResourceQuota\"}",
		  NOTHING "begin quotas\nend quotas\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world world;
		struct vg_err err = { 0 };

		if (world_load(&world, rows[i].text, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		expect_heard(&world, rows[i].want);
		world_release(&world);
	}
}

static void test_errors(void **state)
{
	static const struct {
		const char *text;
		const char *want;
	} rows[] = {
		{ "", "f: is empty" },
		{ "---\n---\n", "f: is empty" },
		{ "\n\n{\"a\": 1,\n \"b\": }", "f:4: unexpected token near '}'" },
		{ NODE_A "\n\n{", "f:3: string or '}' expected near end of file" },
		{ "{\"a\":1,\"a\":2}", "f:1: duplicate object key near '\"a\"'" },
		{ NODE_A "\n{\"items\": []}",
		  "f:2: no Kubernetes object; wanted is what kubectl "
		  "get nodes,pods,resourcequotas -A -o json (or -o yaml) prints" },
		{ "[]",
		  "f:1: no Kubernetes object; wanted is what kubectl get nodes,pods,resourcequotas -A -o json "
		  "(or -o yaml) prints" },
		{ "NAME STATUS\na Ready\n",
		  "f:1: no Kubernetes object; wanted is what kubectl get nodes,pods,resourcequotas "
		  "-A -o json (or -o yaml) prints" },
		{ "kind: List\nitems: {}\n", "f:1: a List without a list of items" },
		{ "{\"apiVersion\":\"v1\",\"kind\":\"PodList\"}",
		  "f:1: a PodList without a list of items" },
		{ "\nkind: List\nitems:\n - a: 1\n   a: 2\n",
		  "f:5: key \"a\" is given twice, first on line 4" },
		{ "{\"apiVersion\":\"v1\",\"kind\":\"NodeList\",\"metadata\":{\"continue\":\"x\"},"
		  "\"items\":[]}",
		  "f:1: is one page of a longer list (metadata.continue); save all of it with "
		  "kubectl get "
		  "nodes,pods,resourcequotas -A -o json" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world world;
		struct vg_err err = { 0 };

		assert_int_equal(world_load(&world, rows[i].text, &err), -EINVAL);
		assert_string_equal(err.msg, rows[i].want);
		assert_null(world.snapshot);
		expect_heard(&world, "");
		world_release(&world);
	}
}

static void test_limits(void **state)
{
	struct world world;
	struct vg_err err = { 0 };
	struct vg_buf text;

	(void)state;
	vg_buf_init(&text, TEXT_MAX);
	vg_buf_adds(&text, "{\"apiVersion\":\"v1\",\"kind\":\"NodeList\",\"items\":[{}");
	for (unsigned i = 0; i < VG_LIMIT_NODES; i++)
		vg_buf_adds(&text, ",{}");
	vg_buf_adds(&text, "]}");
	assert_int_equal(world_load(&world, text.data, &err), -E2BIG);
	assert_string_equal(err.msg, "f: more than 20000 nodes");
	world_release(&world);
	vg_buf_release(&text);
}

static void test_path(void **state)
{
	struct world world;
	struct vg_err err = { 0 };
	struct vg_sink sink = { .ops = &recorder, .ctx = &world.heard };

	(void)state;
	world_init(&world);
	assert_int_equal(vg_snapshot_load("/nonexistent/f.json", &world.classes, sink,
					  &world.snapshot, &err),
			 -ENOENT);
	assert_string_equal(err.msg,
			    "/nonexistent/f.json: cannot be opened: No such file or directory");
	world_release(&world);
}

/* ---- binding -------------------------------------------------------------------------------------- */

struct ending {
	unsigned calls;
	int code;
	char message[256];
};

static void on_done(void *ctx, int code, const char *message)
{
	struct ending *ending = ctx;

	ending->calls++;
	ending->code = code;
	vg_copy(ending->message, sizeof(ending->message), message);
}

static struct ending bind(struct world *world, const char *name, const char *uid, const char *node,
			  const char *devices)
{
	const struct vg_key_value annotations[] = {
		{ "hami.io/bind-phase", "allocating" },
		{ "hami.io/vgpu-devices-to-allocate", devices },
		{ "hami.io/vgpu-devices-allocated", devices },
		{ "example.com/other", "ignored" },
	};
	struct vg_bind_call call = {
		.namespace = "x",
		.name = name,
		.uid = uid,
		.node = node,
		.annotations = annotations,
		.annotation_count = devices ? 4 : 0,
	};
	struct vg_binder binder = vg_snapshot_binder(world->snapshot);
	struct ending ending = { 0 };

	binder.bind(binder.ctx, &call, on_done, &ending);
	assert_int_equal(ending.calls, 1);
	return ending;
}

#define POD(name, rest)                                                                            \
	"---\napiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: x, uid: u-" name    \
	","                                                                                        \
	"resourceVersion: \"5\"" rest

static void test_bind(void **state)
{
	static const char text[] =
		POD("p", "}\n") POD("gone", ", deletionTimestamp: \"2026-01-01T00:00:00Z\"}\n")
			POD("bound", "}\nspec: {nodeName: b}\n");
	static const char one[] = "GPU-1,NVIDIA,1000,10:;";
	struct world world;
	struct ending ending;

	(void)state;
	assert_int_equal(world_load(&world, text, NULL), 0);
	vg_buf_clear(&world.heard);

	ending = bind(&world, "q", "u-q", "a", one);
	assert_int_equal(ending.code, -ENOENT);
	assert_string_equal(ending.message, "pods \"q\" not found in namespace x");
	ending = bind(&world, "p", "u-other", "a", one);
	assert_int_equal(ending.code, -ENOENT);
	assert_string_equal(ending.message, "pod x/p has UID u-p, not u-other");
	ending = bind(&world, "gone", "u-gone", "a", one);
	assert_int_equal(ending.code, -EBUSY);
	assert_string_equal(ending.message,
			    "pod x/gone is being deleted, cannot be assigned to a node");
	ending = bind(&world, "bound", "u-bound", "a", one);
	assert_int_equal(ending.code, -EEXIST);
	assert_string_equal(ending.message, "pod x/bound is already assigned to node \"b\"");
	expect_heard(&world, "");

	ending = bind(&world, "p", "u-p", "a", one);
	assert_int_equal(ending.code, 0);
	assert_string_equal(ending.message, "");
	expect_heard(
		&world,
		"pod x/p uid=u-p node=a pending version=6 allocated=GPU-1,NVIDIA,1000,10:; "
		"left=GPU-1,NVIDIA,1000,10:; bind=allocating\n"
		"pod x/p uid=u-p node=a running version=7 allocated=GPU-1,NVIDIA,1000,10:; left=; "
		"bind=success\n");

	/* Again: the same is fine and changes nothing, anything else is refused. */
	assert_int_equal(bind(&world, "p", "u-p", "a", one).code, 0);
	ending = bind(&world, "p", "u-p", "a", "GPU-2,NVIDIA,1000,10:;");
	assert_int_equal(ending.code, -EEXIST);
	assert_string_equal(ending.message,
			    "pod x/p is already assigned to node \"a\", with other devices");
	assert_int_equal(bind(&world, "p", "u-p", "b", one).code, -EEXIST);
	expect_heard(&world, "");
	world_release(&world);
}

/* A pod without devices, and a caller that names no UID. */
static void test_bind_plain(void **state)
{
	struct world world;

	(void)state;
	assert_int_equal(world_load(&world, POD("p", "}\n"), NULL), 0);
	vg_buf_clear(&world.heard);
	assert_int_equal(bind(&world, "p", "", "a", NULL).code, 0);
	expect_heard(&world,
		     "pod x/p uid=u-p node=a pending version=6 allocated=- left=- bind=-\n"
		     "pod x/p uid=u-p node=a running version=7 allocated=- left=- bind=-\n");
	assert_int_equal(bind(&world, "p", "u-p", "a", NULL).code, 0);
	expect_heard(&world, "");
	world_release(&world);
}

static void test_containers_left(void **state)
{
	struct world world;

	(void)state;
	assert_int_equal(world_load(&world, POD("p", "}\n"), NULL), 0);
	vg_buf_clear(&world.heard);
	assert_int_equal(bind(&world, "p", "u-p", "a", ";G,N,1,1:H,N,1,1:;;").code, 0);
	assert_non_null(strstr(world.heard.data, "left=;;; bind=success"));
	world_release(&world);
}

/* ---- learning ------------------------------------------------------------------------------------- */

/* A pod on the heap, so that a snapshot that keeps a pointer into it is caught by the sanitizers. */
static void learn(struct world *world, const char *name, const char *uid)
{
	vg_autofree char *own_name = vg_strdup(name);
	vg_autofree char *own_uid = vg_strdup(uid);
	struct vg_pod pod = {
		.namespace = "x",
		.name = own_name,
		.uid = own_uid,
		.node_name = "",
		.scheduler_name = "",
		.runtime_class = "",
	};

	vg_snapshot_learn(world->snapshot, &pod);
}

static void test_learn(void **state)
{
	struct world world;

	(void)state;
	assert_int_equal(world_load(&world, POD("p", "}\n"), NULL), 0);
	vg_buf_clear(&world.heard);
	/* Known from the file. */
	learn(&world, "p", "u-p");
	expect_heard(&world, "");
	learn(&world, "q", "u1");
	expect_heard(&world, "pod x/q uid=u1 node=- pending version=6 allocated=- left=- bind=-\n");
	learn(&world, "q", "u1");
	expect_heard(&world, "");
	/* Re-created under the same name. */
	learn(&world, "q", "u2");
	expect_heard(&world, "delete pod x/q uid=u1\n"
			     "pod x/q uid=u2 node=- pending version=7 allocated=- left=- bind=-\n");
	learn(&world, "p", "u3");
	expect_heard(&world, "delete pod x/p uid=u-p\n"
			     "pod x/p uid=u3 node=- pending version=8 allocated=- left=- bind=-\n");
	assert_int_equal(bind(&world, "q", "u1", "a", NULL).code, -ENOENT);
	assert_int_equal(bind(&world, "q", "u2", "a", NULL).code, 0);
	assert_int_equal(bind(&world, "p", "u3", "a", NULL).code, 0);
	world_release(&world);
}

static void test_learn_limit(void **state)
{
	struct world world;
	char name[32];

	(void)state;
	assert_int_equal(world_load(&world, POD("p", "}\n"), NULL), 0);
	for (unsigned i = 0; i < VG_LIMIT_SNAPSHOT_LEARNED; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		learn(&world, name, "u");
	}
	/* The oldest one that is not bound makes room; what came with the file stays. */
	assert_int_equal(bind(&world, "n0", "u", "a", NULL).code, 0);
	vg_buf_clear(&world.heard);
	learn(&world, "more", "u");
	assert_non_null(strstr(world.heard.data, "delete pod x/n1 uid=u\npod x/more "));
	assert_int_equal(bind(&world, "n1", "u", "a", NULL).code, -ENOENT);
	assert_int_equal(bind(&world, "n2", "u", "a", NULL).code, 0);
	assert_int_equal(bind(&world, "p", "u-p", "a", NULL).code, 0);
	for (unsigned i = 3; i < VG_LIMIT_SNAPSHOT_LEARNED; i++) {
		snprintf(name, sizeof(name), "n%u", i);
		assert_int_equal(bind(&world, name, "u", "a", NULL).code, 0);
	}
	assert_int_equal(bind(&world, "more", "u", "a", NULL).code, 0);
	vg_buf_clear(&world.heard);
	learn(&world, "too-many", "u");
	expect_heard(&world, "");
	assert_int_equal(bind(&world, "too-many", "u", "a", NULL).code, -ENOENT);
	world_release(&world);
}

/* ---- threads -------------------------------------------------------------------------------------- */

#define THREADS 8
#define ROUNDS  200

struct racer {
	struct world *world;
	const char *node;
	unsigned won;
};

static void *race(void *ctx)
{
	struct racer *racer = ctx;
	char name[32];

	for (unsigned i = 0; i < ROUNDS; i++) {
		snprintf(name, sizeof(name), "p%u", i);
		learn(racer->world, name, "u");
		racer->won += bind(racer->world, name, "u", racer->node, NULL).code == 0;
	}
	return NULL;
}

/* Every pod ends up on one of the nodes that the threads fight for. */
static void test_threads(void **state)
{
	static const char *const nodes[THREADS] = { "a", "b", "c", "d", "e", "f", "g", "h" };
	struct world world;
	pthread_t threads[THREADS];
	struct racer racers[THREADS];
	unsigned won = 0;

	(void)state;
	assert_int_equal(world_load(&world, POD("p", "}\n"), NULL), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		racers[i] = (struct racer){ .world = &world, .node = nodes[i] };
		assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		won += racers[i].won;
	}
	assert_int_equal(won, ROUNDS);
	world_release(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files),      cmocka_unit_test(test_quotas),
		cmocka_unit_test(test_errors),     cmocka_unit_test(test_limits),
		cmocka_unit_test(test_path),       cmocka_unit_test(test_bind),
		cmocka_unit_test(test_bind_plain), cmocka_unit_test(test_containers_left),
		cmocka_unit_test(test_learn),      cmocka_unit_test(test_learn_limit),
		cmocka_unit_test(test_threads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
