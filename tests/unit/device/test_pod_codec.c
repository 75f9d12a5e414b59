/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include <errno.h>

#include "base/limits.h"
#include "device/pod.h"

static int decode(struct world *world, const char *text, struct vg_pod *ret_pod, struct vg_err *err)
{
	json_t *object = json_from(text);
	int r = vg_pod_decode(object, &world->classes, &world->arena, ret_pod, err);

	/* What was decoded must not need the JSON any more. */
	json_decref(object);
	return r;
}

/* Everything that was decoded, as text. */
static const char *show(const struct vg_pod *pod, struct vg_arena *arena)
{
	static const char *const phases[] = { "Pending", "Running", "Succeeded", "Failed" };
	static const char *const kinds[] = { "init", "sidecar", "app" };
	char *text = vg_arena_printf(
		arena, "%s/%s %s %llu node=%s by=%s rc=%s %s%s%s prio=%d inits=%zu", pod->namespace,
		pod->name, pod->uid, (unsigned long long)pod->resource_version, pod->node_name,
		pod->scheduler_name, pod->runtime_class, phases[pod->phase],
		pod->terminating ? " terminating" : "", pod->init_done ? " init_done" : "",
		pod->priority, pod->init_count);

	for (size_t i = 0; i < pod->container_count; i++) {
		const struct vg_container *c = &pod->containers[i];

		text = vg_arena_printf(
			arena, "%s\n%s %s%s%s%s%s%s", text, kinds[c->kind], c->name,
			c->privileged ? " privileged" : "", c->has_resources ? " resources" : "",
			c->has_limits ? " limits" : "", c->has_requests ? " requests" : "",
			c->has_env ? " env" : "");
		for (size_t k = 0; k < c->resource_count; k++)
			text = vg_arena_printf(arena, "%s %s=%s/%s", text, c->resources[k].name,
					       c->resources[k].limit ? c->resources[k].limit : "-",
					       c->resources[k].request ? c->resources[k].request
								       : "-");
		for (const char **name = c->env_names; *name; name++)
			text = vg_arena_printf(arena, "%s $%s", text, *name);
	}
	return text;
}

static void test_decoded(void **state)
{
	static const struct {
		const char *text;
		const char *pod;
	} rows[] = {
		{ "{'metadata':{}}", "/  0 node= by= rc= Pending init_done prio=0 inits=0" },
		{ "{'kind':'Pod','apiVersion':'v1','metadata':{'name':'p','namespace':'n',"
		  "'uid':'u','resourceVersion':'42','labels':{'a':'b'}},'spec':null,"
		  "'status':null}",
		  "n/p u 42 node= by= rc= Pending init_done prio=0 inits=0" },
		{ "{'metadata':{'name':null,'resourceVersion':'opaque','deletionTimestamp':null,"
		  "'annotations':null},'spec':{'containers':null,'initContainers':null},"
		  "'status':{'phase':'Weird'}}",
		  "/  0 node= by= rc= Pending init_done prio=0 inits=0" },
		{ "{'metadata':{'name':'p','deletionTimestamp':'2026-01-01T00:00:00Z'},"
		  "'spec':{'nodeName':'n1','schedulerName':'vgpu-scheduler',"
		  "'runtimeClassName':'nvidia','priority':-2000,"
		  "'ephemeralContainers':[{'name':'e'}]},'status':{'phase':'Running'}}",
		  "/p  0 node=n1 by=vgpu-scheduler rc=nvidia Running terminating init_done "
		  "prio=-2000 inits=0" },
		{ "{'metadata':{},'status':{'phase':'Succeeded'}}",
		  "/  0 node= by= rc= Succeeded init_done prio=0 inits=0" },
		{ "{'metadata':{},'status':{'phase':'Failed'}}",
		  "/  0 node= by= rc= Failed init_done prio=0 inits=0" },
		/* Containers, and which of their objects exist. */
		{ "{'metadata':{},'spec':{'containers':[{'name':'a'},{'name':'b','resources':{}},"
		  "{'name':'c','resources':{'limits':{}},'env':[]},{'name':'d',"
		  "'resources':{'requests':{}},'securityContext':{'privileged':true}},"
		  "{'name':'e','resources':null,'env':null,'securityContext':null}]}}",
		  "/  0 node= by= rc= Pending init_done prio=0 inits=0\n"
		  "app a\n"
		  "app b resources\n"
		  "app c resources limits env\n"
		  "app d privileged resources requests\n"
		  "app e" },
		/* Resources of the classes only, limits and requests side by side, any spelling of a
		 * number. */
		{ "{'metadata':{},'spec':{'containers':[{'name':'a',"
		  "'resources':{'limits':{'cpu':'1','nvidia.com/gpu':'1',"
		  "'nvidia.com/gpumem':8192,'nvidia.com/gpucores':1e1},"
		  "'requests':{'memory':'1Gi','nvidia.com/gpu':null,'nvidia.com/gpumem':'8k',"
		  "'nvidia.com/priority':0.1}}}]}}",
		  "/  0 node= by= rc= Pending init_done prio=0 inits=0\n"
		  "app a resources limits requests nvidia.com/gpu=1/- nvidia.com/gpumem=8192/8k "
		  "nvidia.com/gpucores=10/- nvidia.com/priority=-/0.1" },
		{ "{'metadata':{},'spec':{'containers':[{'name':'a','env':[{'name':'X',"
		  "'value':'1'},{'name':'Y','valueFrom':{}},{'name':'X'}]}]}}",
		  "/  0 node= by= rc= Pending init_done prio=0 inits=0\napp a env $X $Y $X" },
		/* Init containers stand first, sidecars among them. restartPolicy of an app says nothing. */
		{ "{'metadata':{},'spec':{'containers':[{'name':'m','restartPolicy':'Always'}],"
		  "'initContainers':[{'name':'i'},{'name':'s','restartPolicy':'Always'},"
		  "{'name':'j','restartPolicy':'Never'}]}}",
		  "/  0 node= by= rc= Pending prio=0 inits=3\ninit i\nsidecar s\ninit j\napp m" },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_pod pod;
		struct vg_err err = { 0 };

		if (decode(&world, rows[i].text, &pod, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
		assert_string_equal(show(&pod, &world.arena), rows[i].pod);
	}
	world_release(&world);
}

static void test_init_done(void **state)
{
	static const struct {
		const char *inits;
		const char *statuses;
		bool done;
	} rows[] = {
		{ "[]", "null", true },
		{ "[{'name':'i'}]", "null", false },
		{ "[{'name':'i'}]", "[]", false },
		{ "[{'name':'i'}]", "[{'name':'i'}]", false },
		{ "[{'name':'i'}]", "[{'name':'i','state':{'running':{}}}]", false },
		{ "[{'name':'i'}]", "[{'name':'i','state':{'waiting':{}}}]", false },
		{ "[{'name':'i'}]", "[{'name':'i','state':{'terminated':{'exitCode':0}}}]", true },
		/* Absent is 0, as everywhere. */
		{ "[{'name':'i'}]", "[{'name':'i','state':{'terminated':{}}}]", true },
		{ "[{'name':'i'}]", "[{'name':'i','state':{'terminated':{'exitCode':1}}}]", false },
		{ "[{'name':'i'}]", "[{'name':'i','state':{'terminated':null}}]", false },
		/* An earlier attempt that succeeded says nothing about this one. */
		{ "[{'name':'i'}]",
		  "[{'name':'i','state':{'running':{}},'lastState':{'terminated':{'exitCode':0}}}]",
		  false },
		{ "[{'name':'i'},{'name':'j'}]", "[{'name':'j','state':{'terminated':{}}}]",
		  false },
		{ "[{'name':'i'},{'name':'j'}]",
		  "[{'name':'j','state':{'terminated':{}}},{'name':'i','state':{'terminated':{}}}]",
		  true },
		{ "[{'name':'i'},{'name':'j'}]",
		  "[{'name':'i','state':{'terminated':{}}},{'name':'i','state':{'terminated':{}}}]",
		  false },
		/* Sidecars never end. */
		{ "[{'name':'s','restartPolicy':'Always'},{'name':'i'}]",
		  "[{'name':'s','state':{'running':{}}},{'name':'i','state':{'terminated':{}}}]",
		  true },
		{ "[{'name':'s','restartPolicy':'Always'}]", "null", true },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_pod pod;
		struct vg_err err = { 0 };
		const char *text = vg_arena_printf(&world.arena,
						   "{'metadata':{},'spec':{'initContainers':%s},"
						   "'status':{'initContainerStatuses':%s}}",
						   rows[i].inits, rows[i].statuses);

		if (decode(&world, text, &pod, &err) < 0)
			fail_msg("%s: %s", text, err.msg);
		if (pod.init_done != rows[i].done)
			fail_msg("%s: init_done is %d", text, pod.init_done);
	}
	world_release(&world);
}

static void test_annotations(void **state)
{
	struct world world;
	struct vg_pod pod;

	(void)state;
	world_init(&world);
	assert_int_equal(decode(&world,
				"{'metadata':{'annotations':{'other':'x',"
				"'hami.io/vgpu-node':'n1','hami.io/bind-phase':'',"
				"'nvidia.com/vgpu-mode':null,'nvidia.com/use-gpuuuid':'GPU-a',"
				"'nvidia.com/use-gpuuid':'GPU-b',"
				"'nvidia.com/nouse-gpuuid':'GPU-c'}}}",
				&pod, NULL),
			 0);
	assert_string_equal(pod.annotations.value[VG_ANNO_POD_NODE], "n1");
	/* There but empty is not absent: for some keys that makes a difference. */
	assert_string_equal(pod.annotations.value[VG_ANNO_POD_BIND_PHASE], "");
	assert_null(pod.annotations.value[VG_ANNO_POD_MODE]);
	assert_null(pod.annotations.value[VG_ANNO_POD_TIME]);
	assert_string_equal(pod.annotations.value[VG_ANNO_POD_USE_UUID], "GPU-a");
	assert_string_equal(pod.annotations.value[VG_ANNO_POD_NOUSE_UUID], "GPU-c");
	/* In the other order too, the listed spelling counts. */
	assert_int_equal(decode(&world,
				"{'metadata':{'annotations':{'nvidia.com/use-gpuuid':'GPU-b',"
				"'nvidia.com/use-gpuuuid':'GPU-a'}}}",
				&pod, NULL),
			 0);
	assert_string_equal(pod.annotations.value[VG_ANNO_POD_USE_UUID], "GPU-a");
	world_release(&world);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} rows[] = {
		{ "[]", "not a Pod: an array instead of an object" },
		{ "{}", "not a Pod: metadata is missing" },
		{ "{'metadata':null}", "not a Pod: metadata is missing" },
		{ "{'kind':'Node','metadata':{}}", "not a Pod: kind is \"Node\"" },
		{ "{'kind':1,'metadata':{}}", "kind is a number, not a string" },
		{ "{'metadata':[]}", "metadata is an array, not an object" },
		{ "{'metadata':{'name':7}}", "metadata.name is a number, not a string" },
		{ "{'metadata':{'name':'p','namespace':'n','uid':{}}}",
		  "Pod n/p: metadata.uid is an object, not a string" },
		{ "{'metadata':{'resourceVersion':1}}", "metadata.resourceVersion is a number" },
		{ "{'metadata':{'deletionTimestamp':true}}",
		  "metadata.deletionTimestamp is a boolean" },
		{ "{'metadata':{'annotations':[]}}", "metadata.annotations is an array" },
		{ "{'metadata':{'annotations':{'hami.io/vgpu-node':1}}}",
		  "metadata.annotations[\"hami.io/vgpu-node\"] is a number, not a string" },
		{ "{'metadata':{'name':'p','namespace':'n'},'spec':[]}",
		  "Pod n/p: spec is an array, not an object" },
		{ "{'metadata':{},'spec':{'nodeName':1}}", "spec.nodeName is a number" },
		{ "{'metadata':{},'spec':{'priority':'1'}}",
		  "spec.priority is a string, not a whole number" },
		{ "{'metadata':{},'spec':{'priority':1.5}}",
		  "spec.priority is 1.5, not a whole number" },
		{ "{'metadata':{},'spec':{'priority':2147483648}}",
		  "spec.priority is 2147483648, outside -2147483648 to 2147483647" },
		{ "{'metadata':{},'spec':{'containers':{}}}",
		  "spec.containers is an object, not an array" },
		{ "{'metadata':{},'spec':{'containers':[{},null]}}",
		  "spec.containers[1]: null instead of an object" },
		{ "{'metadata':{},'spec':{'initContainers':[{'name':[]}]}}",
		  "spec.initContainers[0]: name is an array, not a string" },
		{ "{'metadata':{},'spec':{'initContainers':[{'restartPolicy':1}]}}",
		  "spec.initContainers[0]: restartPolicy is a number" },
		{ "{'metadata':{},'spec':{'containers':[{'resources':[]}]}}",
		  "spec.containers[0]: resources is an array, not an object" },
		{ "{'metadata':{},'spec':{'containers':[{'resources':{'limits':'x'}}]}}",
		  "spec.containers[0]: resources.limits is a string, not an object" },
		{ "{'metadata':{},'spec':{'containers':[{'resources':{'requests':[]}}]}}",
		  "resources.requests is an array" },
		{ "{'metadata':{},"
		  "'spec':{'containers':[{'resources':{'limits':{'nvidia.com/gpu':[]}}}]}}",
		  "spec.containers[0]: resources.limits: nvidia.com/gpu is an array, not a "
		  "quantity" },
		{ "{'metadata':{},"
		  "'spec':{'containers':[{'resources':{'requests':{'nvidia.com/gpu':true}}}]}}",
		  "resources.requests: nvidia.com/gpu is a boolean, not a quantity" },
		{ "{'metadata':{},"
		  "'spec':{'containers':[{'securityContext':{'privileged':'yes'}}]}}",
		  "spec.containers[0]: securityContext.privileged is a string, not a boolean" },
		{ "{'metadata':{},'spec':{'containers':[{'securityContext':true}]}}",
		  "securityContext is a boolean, not an object" },
		{ "{'metadata':{},'spec':{'containers':[{'env':{}}]}}",
		  "env is an object, not an array" },
		{ "{'metadata':{},'spec':{'containers':[{'env':[{},7]}]}}", "env[1] is a number" },
		{ "{'metadata':{},'spec':{'containers':[{'env':[{'name':7}]}]}}",
		  "env[0]: name is a number, not a string" },
		{ "{'metadata':{},'status':7}", "status is a number, not an object" },
		{ "{'metadata':{},'status':{'phase':7}}", "status.phase is a number" },
		{ "{'metadata':{},'status':{'initContainerStatuses':{}}}",
		  "status.initContainerStatuses is an object, not an array" },
		{ "{'metadata':{},'status':{'initContainerStatuses':[7]}}",
		  "status.initContainerStatuses[0]: a number instead of an object" },
		{ "{'metadata':{},'status':{'initContainerStatuses':[{'state':7}]}}",
		  "status.initContainerStatuses[0]: state is a number" },
		{ "{'metadata':{},'status':{'initContainerStatuses':[{'state':{'terminated':7}}]}}",
		  "state.terminated is a number, not an object" },
		{ "{'metadata':{},"
		  "'status':{'initContainerStatuses':[{'state':{'terminated':{'exitCode':'0'}}}]}}",
		  "state.terminated.exitCode is a string" },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_pod pod = { .name = "untouched" };
		struct vg_err err = { 0 };
		int r = decode(&world, rows[i].text, &pod, &err);

		if (r != -EINVAL || err.code != r || !strstr(err.msg, rows[i].why))
			fail_msg("%s: %d \"%s\", not \"%s\"", rows[i].text, r, err.msg,
				 rows[i].why);
		assert_string_equal(pod.name, "untouched");
	}
	assert_int_equal(vg_pod_decode(NULL, &world.classes, &world.arena,
				       &(struct vg_pod){ .name = NULL }, NULL),
			 -EINVAL);
	world_release(&world);
}

static json_t *pod_with_containers(size_t inits, size_t apps)
{
	json_t *pod = json_pack("{s:{}, s:{s:[], s:[]}}", "metadata", "spec", "initContainers",
				"containers");
	json_t *spec = json_object_get(pod, "spec");

	for (size_t i = 0; i < inits; i++)
		json_array_append_new(json_object_get(spec, "initContainers"),
				      json_pack("{s:s}", "name", "i"));
	for (size_t i = 0; i < apps; i++)
		json_array_append_new(json_object_get(spec, "containers"),
				      json_pack("{s:s}", "name", "a"));
	return pod;
}

static json_t *pod_with_text(const char *member, const char *key, size_t size)
{
	char *text = vg_new(size + 1);
	json_t *pod;

	memset(text, 'x', size);
	pod = json_pack("{s:{s:s}}", "metadata", "namespace", "n");
	if (strcmp(member, "annotations") == 0)
		json_object_set_new(json_object_get(pod, "metadata"), member,
				    json_pack("{s:s, s:s}", key, text, "foreign", text));
	else
		json_object_set_new(json_object_get(pod, "metadata"), member, json_string(text));
	free(text);
	return pod;
}

/* All annotations together count, and not each for itself. */
static json_t *pod_with_two_texts(size_t size)
{
	json_t *pod = pod_with_text("annotations", "hami.io/vgpu-node", size);
	json_t *all = json_object_get(json_object_get(pod, "metadata"), "annotations");

	json_object_set(all, "hami.io/vgpu-time", json_object_get(all, "hami.io/vgpu-node"));
	return pod;
}

static void test_limits(void **state)
{
	const struct {
		json_t *object;
		int code;
		const char *why;
	} rows[] = {
		{ pod_with_containers(10, VG_LIMIT_CONTAINERS_PER_POD - 10), 0, "" },
		{ pod_with_containers(10, VG_LIMIT_CONTAINERS_PER_POD - 9), -E2BIG,
		  "65 containers; at most 64 are accepted" },
		{ pod_with_text("name", NULL, VG_LIMIT_NAME_BYTES), 0, "" },
		{ pod_with_text("name", NULL, VG_LIMIT_NAME_BYTES + 1), -E2BIG,
		  "metadata.name has 254 bytes; at most 253 are accepted" },
		{ pod_with_text("annotations", "hami.io/vgpu-node", VG_LIMIT_ANNOTATION_BYTES), 0,
		  "" },
		{ pod_with_text("annotations", "hami.io/vgpu-node", VG_LIMIT_ANNOTATION_BYTES + 1),
		  -E2BIG, "metadata.annotations have more than 262144 bytes" },
		{ pod_with_two_texts(VG_LIMIT_ANNOTATION_BYTES / 2), 0, "" },
		{ pod_with_two_texts(VG_LIMIT_ANNOTATION_BYTES / 2 + 1), -E2BIG, "262144 bytes" },
		/* Other people's annotations are their business. */
		{ pod_with_text("annotations", "other", VG_LIMIT_ANNOTATION_BYTES + 1), 0, "" },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_pod pod;
		struct vg_err err = { 0 };
		int r = vg_pod_decode(rows[i].object, &world.classes, &world.arena, &pod, &err);

		assert_failed(r, rows[i].code, err, rows[i].why);
		json_decref(rows[i].object);
	}
	world_release(&world);
}

/* A pod as kube-scheduler 1.20.2 sent it, and a cluster as kubectl dumped it. */
static void test_captured(void **state)
{
	json_t *args = json_from_file(CAPTURED "filter-1.json");
	json_t *list = json_from_file(CAPTURED "kubectl-dump.json");
	struct world world;
	struct vg_pod pod;
	size_t pods = 0;
	json_t *item;
	size_t i;

	(void)state;
	world_init(&world);
	assert_int_equal(vg_pod_decode(json_object_get(args, "Pod"), &world.classes, &world.arena,
				       &pod, NULL),
			 0);
	json_decref(args);
	assert_string_equal(show(&pod, &world.arena),
			    "demo/train 5fcfda65-a98e-4846-9b3b-a9c63ab17e95 361 node= "
			    "by=vgpu-scheduler rc= Pending prio=0 inits=1\n"
			    "init fetch resources\n"
			    "app main resources limits requests env nvidia.com/gpu=1/1 "
			    "nvidia.com/gpucores=30/30 nvidia.com/gpumem=8192/8192 $A\n"
			    "app side resources");
	assert_string_equal(pod.annotations.value[VG_ANNO_POD_GPU_POLICY], "binpack");
	json_array_foreach(json_object_get(list, "items"), i, item)
	{
		struct vg_err err = { 0 };
		int r = vg_pod_decode(item, &world.classes, &world.arena, &pod, &err);

		if (strcmp(json_string_value(json_object_get(item, "kind")), "Pod") == 0) {
			assert_int_equal(r, 0);
			pods++;
		} else {
			assert_failed(r, -EINVAL, err, "kind is \"Node\"");
		}
	}
	assert_true(pods > 0);
	json_decref(list);
	world_release(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decoded),     cmocka_unit_test(test_init_done),
		cmocka_unit_test(test_annotations), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits),      cmocka_unit_test(test_captured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
