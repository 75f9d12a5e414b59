/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include <errno.h>

#include "base/limits.h"
#include "device/request.h"

/* ---- resources ------------------------------------------------------------------------------- */

/*
 * A pod from a line: "container: resource=limit resource=/request …", containers separated by "|". A
 * name that begins with "i" is an init container, with "s" a sidecar.
 */
static void build_pod(const char *text, struct vg_arena *arena, struct vg_pod *ret_pod)
{
	struct vg_span rest = VG_SPAN(text);
	struct vg_span part;

	*ret_pod = (struct vg_pod){ .namespace = "ns", .name = "pod", .uid = "uid" };
	ret_pod->containers = vg_arena_new_array(arena, 8, sizeof(*ret_pod->containers));
	while (text[0] && vg_cut(&rest, '|', &part)) {
		struct vg_container *c = &ret_pod->containers[ret_pod->container_count++];
		struct vg_span name;
		struct vg_span word;

		vg_cut(&part, ':', &name);
		name = vg_trim(name);
		c->name = vg_arena_strndup(arena, name.data, name.size);
		c->kind = name.data[0] == 'i'   ? VG_CONTAINER_INIT
			  : name.data[0] == 's' ? VG_CONTAINER_SIDECAR
						: VG_CONTAINER_APP;
		c->resources = vg_arena_new_array(arena, 8, sizeof(*c->resources));
		part = vg_trim(part);
		while (part.size && vg_cut(&part, ' ', &word)) {
			struct vg_resource *entry = &c->resources[c->resource_count++];
			struct vg_span key;

			vg_cut(&word, '=', &key);
			entry->name = vg_arena_strndup(arena, key.data, key.size);
			if (word.data[0] == '/')
				entry->request =
					vg_arena_strndup(arena, word.data + 1, word.size - 1);
			else
				entry->limit = vg_arena_strndup(arena, word.data, word.size);
		}
	}
}

/* "container.class(kind): count mem percent cores" per want. */
static const char *show(const struct vg_request *request, struct vg_arena *arena)
{
	char *text = vg_arena_strdup(arena, "");

	for (size_t i = 0; i < request->want_count; i++) {
		const struct vg_want *want = &request->wants[i];

		assert_int_equal(want->kind, request->kinds[want->container]);
		text = vg_arena_printf(arena, "%s%s%d.%d: %d %d %d %d", text, i ? " | " : "",
				       want->container, want->class_index, want->count,
				       want->mem_mib, want->mem_percent, want->cores);
	}
	return text;
}

/* What a class says beside its names. */
struct rules {
	int32_t count;
	int32_t mem_mib;
	int32_t cores;
	int32_t factor;
};

static void set_rules(struct vg_class *class, const struct rules *rules)
{
	class->default_count = rules->count;
	class->default_mem_mib = rules->mem_mib;
	class->default_cores = rules->cores;
	class->mem_factor = rules->factor;
}

static const struct rules plain = { 0, 0, 0, 1 };
static const struct rules chart = { 1, 0, 0, 1 };
static const struct rules filled = { 2, 5000, 40, 1 };
static const struct rules factor = { 1, 700, 0, 256 };

static struct vg_policy default_policy(void)
{
	struct vg_policy policy;

	vg_policy_parse("binpack", "spread", &policy);
	return policy;
}

#define GPU     "nvidia.com/gpu="
#define MEM     "nvidia.com/gpumem="
#define PERCENT "nvidia.com/gpumem-percentage="
#define CORES   "nvidia.com/gpucores="

static void test_wants(void **state)
{
	static const struct {
		const char *pod;
		const struct rules *rules;
		const char *wants;
	} rows[] = {
		{ "", &plain, "" },
		{ "a:", &plain, "" },
		{ "a: cpu=1", &plain, "" },
		/* Counts. */
		{ "a: " GPU "1", &plain, "0.0: 1 0 100 0" },
		{ "a: " GPU "2.0", &plain, "0.0: 2 0 100 0" },
		{ "a: " GPU "3000m", &plain, "0.0: 3 0 100 0" },
		{ "a: " GPU "64", &plain, "0.0: 64 0 100 0" },
		{ "a: " GPU "0", &plain, "" },
		{ "a: " GPU "/1", &plain, "0.0: 1 0 100 0" },
		/* With 0 cards nothing else counts, not even nonsense. */
		{ "a: " GPU "0 " MEM "16Gi", &chart, "" },
		/* Memory. */
		{ "a: " GPU "1 " MEM "8192", &plain, "0.0: 1 8192 101 0" },
		{ "a: " GPU "1 " MEM "/8192", &plain, "0.0: 1 8192 101 0" },
		{ "a: " GPU "1 " MEM "8k", &plain, "0.0: 1 8000 101 0" },
		{ "a: " GPU "1 " MEM "16Ki", &plain, "0.0: 1 16384 101 0" },
		{ "a: " GPU "1 " MEM "16.0Ki", &plain, "0.0: 1 16384 101 0" },
		{ "a: " GPU "1 " MEM "1e4", &plain, "0.0: 1 10000 101 0" },
		{ "a: " GPU "1 " MEM "2147483647", &plain, "0.0: 1 2147483647 101 0" },
		{ "a: " GPU "1 " MEM "0", &plain, "0.0: 1 0 100 0" },
		{ "a: " GPU "1 " MEM "0", &filled, "0.0: 1 5000 101 40" },
		{ "a: " GPU "1 " MEM "10", &factor, "0.0: 1 2560 101 0" },
		{ "a: " GPU "1 " MEM "8388607", &factor, "0.0: 1 2147483392 101 0" },
		/* The default is in MiB whatever the factor. */
		{ "a: " GPU "1", &factor, "0.0: 1 700 101 0" },
		/* Percentage, and memory before it. */
		{ "a: " GPU "1 " PERCENT "50", &plain, "0.0: 1 0 50 0" },
		{ "a: " GPU "1 " PERCENT "50", &filled, "0.0: 1 0 50 40" },
		{ "a: " GPU "1 " PERCENT "100", &filled, "0.0: 1 0 100 40" },
		{ "a: " GPU "1 " PERCENT "150", &plain, "0.0: 1 0 100 0" },
		{ "a: " GPU "1 " PERCENT "9223372036854775807", &plain, "0.0: 1 0 100 0" },
		{ "a: " GPU "1 " PERCENT "0", &filled, "0.0: 1 5000 101 40" },
		{ "a: " GPU "1 " MEM "10 " PERCENT "50", &plain, "0.0: 1 10 101 0" },
		{ "a: " GPU "1 " MEM "0 " PERCENT "50", &filled, "0.0: 1 0 50 40" },
		/* Cores. */
		{ "a: " GPU "1 " CORES "30", &plain, "0.0: 1 0 100 30" },
		{ "a: " GPU "1 " CORES "0", &filled, "0.0: 1 5000 101 0" },
		{ "a: " GPU "1 " CORES "100", &plain, "0.0: 1 0 100 100" },
		{ "a: " GPU "1 " CORES "250", &plain, "0.0: 1 0 100 100" },
		/* A part of a card, but no card. */
		{ "a: " MEM "100", &chart, "0.0: 1 100 101 0" },
		{ "a: " PERCENT "10", &chart, "0.0: 1 0 10 0" },
		{ "a: " CORES "10", &filled, "0.0: 2 5000 101 10" },
		{ "a: " MEM "0", &chart, "" },
		{ "a: " MEM "0", &plain, "" },
		{ "a: " CORES "0", &filled, "" },
		{ "a: nvidia.com/priority=1", &chart, "" },
		/* Several containers; the index is the index in the pod. */
		{ "i: " GPU "1 | s: | a: cpu=1 | b: " GPU "2 " MEM "7", &plain,
		  "0.0: 1 0 100 0 | 3.0: 2 7 101 0" },
		{ "s: " GPU "1 | a: mlu.com/count=1 mlu.com/mem=3 " GPU "1", &plain,
		  "0.0: 1 0 100 0 | 1.0: 1 0 100 0 | 1.1: 1 768 101 0" },
	};
	const struct vg_policy defaults = default_policy();

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_request request;
		struct vg_err err = { 0 };
		struct world world;
		struct vg_pod pod;
		const char *got;

		world_init(&world);
		world_add_class(&world, "mlu", 256);
		set_rules(&world.classes.item[0], rows[i].rules);
		build_pod(rows[i].pod, &world.arena, &pod);
		if (vg_request_parse(&pod, &world.classes, &defaults, &world.arena, &request,
				     &err) < 0)
			fail_msg("%s: %s", rows[i].pod, err.msg);
		got = show(&request, &world.arena);
		if (strcmp(got, rows[i].wants) != 0)
			fail_msg("%s: \"%s\", not \"%s\"", rows[i].pod, got, rows[i].wants);
		assert_int_equal(request.container_count, pod.container_count);
		for (size_t c = 0; c < pod.container_count; c++)
			assert_int_equal(request.kinds[c], pod.containers[c].kind);
		assert_string_equal(request.namespace, "ns");
		assert_string_equal(request.name, "pod");
		assert_string_equal(request.uid, "uid");
		world_release(&world);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *pod;
		const struct rules *rules;
		const char *why;
	} rows[] = {
		/* Bytes, where a count of MiB is meant: the message says which. */
		{ "main: " GPU "1 " MEM "16Gi", &plain,
		  "container \"main\": nvidia.com/gpumem \"16Gi\" is not a count of MiB; write "
		  "16384" },
		{ "main: " GPU "1 " MEM "16.0Gi", &plain,
		  "\"16.0Gi\" is not a count of MiB; write 16384" },
		{ "main: " GPU "1 " MEM "0.5Gi", &plain, "is not a count of MiB; write 512" },
		{ "main: " GPU "1 " MEM "0.3Gi", &plain, "is not a count of MiB; write 308" },
		{ "main: " GPU "1 " MEM "1Mi", &plain, "is not a count of MiB; write 1" },
		{ "main: " GPU "1 " MEM "8192Mi", &plain, "is not a count of MiB; write 8192" },
		{ "main: " GPU "1 " MEM "16G", &plain, "is not a count of MiB; write 15259" },
		{ "main: " GPU "1 " MEM "1G", &plain, "is not a count of MiB; write 954" },
		{ "main: " GPU "1 " MEM "1Ti", &plain, "is not a count of MiB; write 1048576" },
		{ "main: " GPU "1 " MEM "17179869184", &plain,
		  "is not a count of MiB; write 16384" },
		{ "main: " GPU "1 " MEM "7Ei", &plain,
		  "is not a count of MiB; write a whole number, at most 2147483647" },
		{ "main: " GPU "1 " MEM "16Gi", &factor, "is not a count of 256 MiB; write 64" },
		{ "main: " GPU "1 " MEM "8388608", &factor, "is not a count of 256 MiB; write 1" },
		/* Fractions, signs and texts. */
		{ "main: " GPU "1 " MEM "1.5", &plain,
		  "is not a count of MiB; write a whole number, at most 2147483647" },
		{ "main: " GPU "1 " MEM "500m", &plain,
		  "is not a count of MiB; write a whole number" },
		{ "main: " GPU "1 " MEM "-1", &plain,
		  "nvidia.com/gpumem \"-1\" is negative; write a whole number" },
		{ "main: " GPU "1 " MEM "16GB", &plain,
		  "nvidia.com/gpumem \"16GB\" is not a quantity; write a whole number" },
		{ "main: " GPU "1 " MEM "99999999999999999999", &plain, "is too large" },
		{ "main: " GPU "-1", &plain, "nvidia.com/gpu \"-1\" is negative" },
		{ "main: " GPU "500m", &plain,
		  "container \"main\": nvidia.com/gpu \"500m\" is not a whole number of cards; "
		  "for a part of a card ask for 1 card" },
		{ "main: " GPU "1.5", &plain, "is not a whole number of cards" },
		{ "main: " GPU "65", &plain,
		  "nvidia.com/gpu \"65\" is more than the 64 cards that a container may ask for" },
		{ "main: " GPU "4294967297", &plain, "is more than the 64 cards" },
		{ "main: " GPU "one", &plain, "is not a quantity" },
		{ "main: " GPU "1 " PERCENT "-1", &plain,
		  "nvidia.com/gpumem-percentage \"-1\" is negative" },
		{ "main: " GPU "1 " PERCENT "12.5", &plain,
		  "is not a whole number of percent; write 1 to 100" },
		{ "main: " GPU "1 " PERCENT "x", &plain, "is not a quantity" },
		{ "main: " GPU "1 " CORES "-1", &plain, "nvidia.com/gpucores \"-1\" is negative" },
		{ "main: " GPU "1 " CORES "500m", &plain,
		  "is not a whole number of percent; write 0 to 100" },
		/* The limit counts, whatever the request is. */
		{ "a: " GPU "1 | main: " GPU "/1 " CORES "/x", &plain,
		  "container \"main\": nvidia.com/gpucores \"x\" is not a quantity" },
		/* A part of a card, but no card, and no default for that. */
		{ "main: " MEM "100", &plain,
		  "container \"main\": a part of a card is asked for, but no card; set "
		  "nvidia.com/gpu to 1" },
		{ "main: " PERCENT "10", &plain, "but no card" },
		{ "main: " CORES "10", &plain, "but no card" },
		{ "main: " MEM "16Gi", &plain, "is not a count of MiB; write 16384" },
	};
	const struct vg_policy defaults = default_policy();

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_request request = { .name = "untouched" };
		struct vg_err err = { 0 };
		struct world world;
		struct vg_pod pod;
		int r;

		world_init(&world);
		set_rules(&world.classes.item[0], rows[i].rules);
		build_pod(rows[i].pod, &world.arena, &pod);
		r = vg_request_parse(&pod, &world.classes, &defaults, &world.arena, &request, &err);
		if (r != -EINVAL || err.code != r || !strstr(err.msg, rows[i].why))
			fail_msg("%s: %d \"%s\", not \"%s\"", rows[i].pod, r, err.msg, rows[i].why);
		assert_string_equal(request.name, "untouched");
		world_release(&world);
	}
}

/* ---- policy ---------------------------------------------------------------------------------- */

/* "node keys flags" */
static const char *show_policy(const struct vg_policy *policy, struct vg_arena *arena)
{
	static const char *const words[] = { "binpack", "spread", "numa" };
	char *text = vg_arena_strdup(arena, policy->node == VG_NODE_SPREAD ? "spread" : "binpack");

	for (size_t i = 0; i < policy->key_count; i++)
		text = vg_arena_printf(arena, "%s %s", text, words[policy->keys[i]]);
	return vg_arena_printf(arena, "%s%s%s%s", text, policy->chain ? " +chain" : "",
			       policy->mutex ? " +mutex" : "",
			       policy->topology ? " +topology" : "");
}

static void test_policy(void **state)
{
	static const struct {
		const char *node;
		const char *card;
		const char *policy;
	} rows[] = {
		{ "binpack", "binpack", "binpack binpack" },
		{ "spread", "spread", "spread spread" },
		{ " spread ", " binpack ", "spread binpack" },
		{ "", "", "binpack" },
		{ "Spread", "Binpack", "binpack" },
		{ "anything", "anything", "binpack" },
		{ "binpack", "mutex", "binpack +mutex" },
		{ "binpack", "topology-aware", "binpack +topology" },
		{ "binpack", "numa", "binpack numa +chain" },
		{ "binpack", "numa,binpack", "binpack numa binpack +chain" },
		{ "binpack", " binpack , numa ", "binpack binpack numa +chain" },
		{ "binpack", "binpack,spread,numa", "binpack binpack spread numa +chain" },
		{ "binpack", "numa,numa,spread,numa,spread", "binpack numa spread +chain" },
		{ "binpack", "mutex,topology-aware", "binpack +chain +mutex +topology" },
		{ "binpack", "topology-aware,binpack", "binpack binpack +chain +topology" },
		{ "binpack", "what,mutex,binpack,ever", "binpack binpack +chain +mutex" },
		{ "binpack", "binpack,", "binpack binpack +chain" },
		{ "binpack", ",", "binpack +chain" },
		{ "binpack", "binpackspread", "binpack" },
	};
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_policy policy;

		vg_policy_parse(rows[i].node, rows[i].card, &policy);
		assert_string_equal(show_policy(&policy, &arena), rows[i].policy);
		assert_int_equal(policy.weight_slot, 1);
		assert_int_equal(policy.weight_core, 1);
		assert_int_equal(policy.weight_mem, 1);
	}
	vg_arena_release(&arena);
}

#define BAD_WEIGHTS(text) "invalid hami.io/device-scoring-weights annotation \"" text "\": "

static void test_weights(void **state)
{
	static const struct {
		const char *text;
		int32_t slot;
		int32_t core;
		int32_t mem;
		const char *error; /* NULL: none */
	} rows[] = {
		{ "slot=1,core=1,memory=3", 1, 1, 3, NULL },
		{ "memory=3,slot=1,core=2", 1, 2, 3, NULL },
		{ " slot = 1 , core = 0 ,memory= 0 ", 1, 0, 0, NULL },
		{ "slot=+1,core=0,memory=2147483647", 1, 0, INT32_MAX, NULL },
		{ "", 9, 9, 9, BAD_WEIGHTS("") "expected slot, core, and memory weights" },
		{ "slot=1,core=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1") "expected slot, core, and memory weights" },
		{ "slot=1,core=1,memory=1,slot=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1,memory=1,slot=1") "expected slot, core, and memory "
							       "weights" },
		{ "slot=1,core,memory=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core,memory=1") "expected key=value entries" },
		{ ",,", 9, 9, 9, BAD_WEIGHTS(",,") "expected key=value entries" },
		{ "slot=1,slot=2,memory=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,slot=2,memory=1") "duplicate \"slot\" weight" },
		{ "slot=1,core=x,memory=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=x,memory=1") "\"core\" weight must be an integer" },
		{ "slot=1,core=1.5,memory=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1.5,memory=1") "\"core\" weight must be an integer" },
		{ "slot=1,core=,memory=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=,memory=1") "\"core\" weight must be an integer" },
		{ "slot=1,core=1=1,memory=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1=1,memory=1") "\"core\" weight must be an integer" },
		{ "slot=1,core=1,memory=-1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1,memory=-1") "\"memory\" weight must not be negative" },
		{ "slot=1,core=1,mem=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1,mem=1") "unknown weight \"mem\"" },
		{ "slot=1,core=1,=1", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1,=1") "unknown weight \"\"" },
		{ "slot=0,core=0,memory=0", 9, 9, 9,
		  BAD_WEIGHTS("slot=0,core=0,memory=0") "at least one weight must be positive" },
		{ "slot=1,core=1,memory=2147483648", 9, 9, 9,
		  BAD_WEIGHTS("slot=1,core=1,memory=2147483648") "\"memory\" weight must be at "
								 "most 2147483647" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_policy policy = { .weight_slot = 9, .weight_core = 9, .weight_mem = 9 };
		struct vg_err err = { 0 };
		int r = vg_weights_parse(rows[i].text, &policy, &err);

		assert_int_equal(r, rows[i].error ? -EINVAL : 0);
		assert_string_equal(err.msg, rows[i].error ? rows[i].error : "");
		assert_int_equal(policy.weight_slot, rows[i].slot);
		assert_int_equal(policy.weight_core, rows[i].core);
		assert_int_equal(policy.weight_mem, rows[i].mem);
	}
}

/* ---- annotations ----------------------------------------------------------------------------- */

static const char *show_words(const struct vg_words *words, struct vg_arena *arena)
{
	char *text = vg_arena_strdup(arena, words->item ? "" : "none");

	for (size_t i = 0; i < words->count; i++)
		text = vg_arena_printf(arena, "%s[%.*s]", text, (int)words->item[i].size,
				       words->item[i].data);
	return text;
}

static int parse_with(struct world *world, enum vg_annotation annotation, const char *value,
		      struct vg_request *ret_request, struct vg_err *err)
{
	const struct vg_policy defaults = {
		.node = VG_NODE_SPREAD,
		.keys = { VG_KEY_BINPACK },
		.key_count = 1,
		.mutex = true,
		.weight_slot = 4,
		.weight_core = 5,
		.weight_mem = 6,
	};
	struct vg_pod pod;

	build_pod("a: " GPU "1", &world->arena, &pod);
	pod.annotations.value[annotation] = value;
	return vg_request_parse(&pod, &world->classes, &defaults, &world->arena, ret_request, err);
}

/* Each list goes to its own member, and blank members are no members. */
static void test_lists(void **state)
{
	static const struct {
		const char *text;
		const char *words;
	} rows[] = {
		{ NULL, "none" },     { "", "none" },
		{ "  ", "none" },     { ", ,", "none" },
		{ "A100", "[A100]" }, { " A100 , Tesla P4 ,,H100,", "[A100][Tesla P4][H100]" },
	};
	static const enum vg_annotation lists[] = {
		VG_ANNO_POD_USE_TYPE,
		VG_ANNO_POD_NOUSE_TYPE,
		VG_ANNO_POD_USE_UUID,
		VG_ANNO_POD_NOUSE_UUID,
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t list = 0; list < COUNT(lists); list++) {
		for (size_t i = 0; i < COUNT(rows); i++) {
			struct vg_request request;

			assert_int_equal(
				parse_with(&world, lists[list], rows[i].text, &request, NULL), 0);
			assert_string_equal(show_words(&request.use_type, &world.arena),
					    list == 0 ? rows[i].words : "none");
			assert_string_equal(show_words(&request.nouse_type, &world.arena),
					    list == 1 ? rows[i].words : "none");
			assert_string_equal(show_words(&request.use_uuid, &world.arena),
					    list == 2 ? rows[i].words : "none");
			assert_string_equal(show_words(&request.nouse_uuid, &world.arena),
					    list == 3 ? rows[i].words : "none");
		}
	}
	world_release(&world);
}

static void test_long_lists(void **state)
{
	struct vg_request request;
	struct vg_err err = { 0 };
	struct world world;
	char *text;
	int r;

	(void)state;
	world_init(&world);
	text = vg_arena_new(&world.arena, 2 * VG_LIMIT_WORDS_PER_LIST + 8);
	for (size_t i = 0; i < VG_LIMIT_WORDS_PER_LIST; i++)
		memcpy(text + 2 * i, "x,", 2);
	assert_int_equal(parse_with(&world, VG_ANNO_POD_USE_UUID, text, &request, NULL), 0);
	assert_int_equal(request.use_uuid.count, VG_LIMIT_WORDS_PER_LIST);
	memcpy(text + strlen(text), "x", 1);
	r = parse_with(&world, VG_ANNO_POD_USE_UUID, text, &request, &err);
	assert_failed(r, -EINVAL, err, "nvidia.com/use-gpuuuid lists 257 members; at most 256");
	world_release(&world);
}

/* What the pod says replaces the daemon's policy, what it does not say leaves it alone. */
static void test_policy_overrides(void **state)
{
	static const struct {
		enum vg_annotation annotation;
		const char *text;
		const char *policy;
		int32_t weight_mem;
	} rows[] = {
		{ VG_ANNO_POD_TIME, "1", "spread binpack +mutex", 6 },
		{ VG_ANNO_POD_NODE_POLICY, "binpack", "binpack binpack +mutex", 6 },
		{ VG_ANNO_POD_NODE_POLICY, "", "binpack binpack +mutex", 6 },
		{ VG_ANNO_POD_NODE_POLICY, "spread", "spread binpack +mutex", 6 },
		{ VG_ANNO_POD_GPU_POLICY, "spread", "spread spread", 6 },
		{ VG_ANNO_POD_GPU_POLICY, "", "spread", 6 },
		{ VG_ANNO_POD_GPU_POLICY, "numa,topology-aware", "spread numa +chain +topology",
		  6 },
		{ VG_ANNO_POD_WEIGHTS, "slot=1,core=2,memory=3", "spread binpack +mutex", 3 },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_request request;

		assert_int_equal(
			parse_with(&world, rows[i].annotation, rows[i].text, &request, NULL), 0);
		assert_string_equal(show_policy(&request.policy, &world.arena), rows[i].policy);
		assert_int_equal(request.policy.weight_mem, rows[i].weight_mem);
	}
	world_release(&world);
}

static void test_mode_and_numa(void **state)
{
	static const struct {
		enum vg_annotation annotation;
		const char *text;
		const char *mode; /* NULL: any */
		bool numa_bind;
	} rows[] = {
		{ VG_ANNO_POD_MODE, NULL, NULL, false },
		{ VG_ANNO_POD_MODE, "mig,hami-core", "mig,hami-core", false },
		{ VG_ANNO_POD_MODE, " ", NULL, false },
		{ VG_ANNO_POD_MODE, "", NULL, false },
		{ VG_ANNO_POD_NUMA_BIND, "true", NULL, true },
		{ VG_ANNO_POD_NUMA_BIND, "T", NULL, true },
		{ VG_ANNO_POD_NUMA_BIND, "1", NULL, true },
		{ VG_ANNO_POD_NUMA_BIND, "false", NULL, false },
		{ VG_ANNO_POD_NUMA_BIND, "yes", NULL, false },
		{ VG_ANNO_POD_NUMA_BIND, "", NULL, false },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_request request;

		assert_int_equal(
			parse_with(&world, rows[i].annotation, rows[i].text, &request, NULL), 0);
		assert_int_equal(request.mode != NULL, rows[i].mode != NULL);
		if (rows[i].mode)
			assert_string_equal(request.mode, rows[i].mode);
		assert_int_equal(request.numa_bind, rows[i].numa_bind);
	}
	world_release(&world);
}

/* An annotation that is wrong is the pod's failure, unless the pod asks for no device at all. */
static void test_wrong_annotation(void **state)
{
	const struct vg_policy defaults = default_policy();
	struct vg_request request;
	struct vg_err err = { 0 };
	struct world world;
	struct vg_pod pod;
	int r;

	(void)state;
	world_init(&world);
	r = parse_with(&world, VG_ANNO_POD_WEIGHTS, "slot=1", &request, &err);
	assert_failed(r, -EINVAL, err, "expected slot, core, and memory weights");
	build_pod("a: cpu=1", &world.arena, &pod);
	pod.annotations.value[VG_ANNO_POD_WEIGHTS] = "slot=1";
	assert_int_equal(
		vg_request_parse(&pod, &world.classes, &defaults, &world.arena, &request, NULL), 0);
	assert_int_equal(request.want_count, 0);
	world_release(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wants),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_policy),
		cmocka_unit_test(test_weights),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_long_lists),
		cmocka_unit_test(test_policy_overrides),
		cmocka_unit_test(test_mode_and_numa),
		cmocka_unit_test(test_wrong_annotation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
