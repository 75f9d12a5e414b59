/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decisions as rows of a table: a cluster and a pod as short texts, and what must come out.
 *
 * A node is "name | card | card …"; behind the name, "link=I,J,SCORE" for the cards at these places. A card is
 * its UUID and words:
 *	mem=MIB cores=PERCENT slots=N      totals; 16000, 100 and 10 unless given
 *	used=MIB,PERCENT,SLOTS             what is taken
 *	numa=N model=N mode=WORD class=N   model is an index into case_models
 *	sick cordoned
 * A pod is "container | container …", a container its kind (app, init, sidecar) and words:
 *	gpu=N mem=MIB percent=N cores=N    of class 0, as a user would write them in limits
 *	npu=N npumem=MIB                   of class 1
 * A quota is "mem=USED/LIMIT cores=USED/LIMIT npumem=USED/LIMIT", each optional.
 */
#ifndef TESTS_SCHEDULER_CASES_H
#define TESTS_SCHEDULER_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "device/request.h"
#include "scheduler/decide.h"

#define CASE_NODES 6
#define CASE_CARDS 24

static const char *const case_models[] = { "NVIDIA A100-SXM4-80GB", "NVIDIA-Tesla T4",
					   "NVIDIA H100 80GB HBM3", "ACME NPU-1" };
static const struct vg_models case_model_list = {
	case_models,
	sizeof(case_models) / sizeof(case_models[0]),
};

struct decide_case {
	const char *name;
	const char *nodes[CASE_NODES];
	const char *pod;
	/* The pod's annotations; NULL = absent. */
	const char *node_policy;
	const char *gpu_policy;
	const char *weights;
	const char *use_type;
	const char *nouse_type;
	const char *use_uuid;
	const char *nouse_uuid;
	const char *mode;
	const char *numa_bind;
	const char *quota; /* of the pod's namespace; NULL = none */
	/* What must come out. */
	const char *node; /* NULL: fits nowhere */
	const char *allocation;
	const char *npu_allocation;
	/* Per node, of those that do not fit: the text, behind "+" where eviction could cure it, "-"
	 * where not. NULL: not looked at. */
	const char *verdicts[CASE_NODES];
};

struct case_cluster {
	struct vg_node node[CASE_NODES];
	const struct vg_node *candidates[CASE_NODES];
	size_t count;
};

static inline int32_t case_number(struct vg_span text)
{
	struct vg_err err = { 0 };
	int64_t value = 0;

	if (vg_parse_i64(text, INT32_MIN, INT32_MAX, &value, &err) < 0)
		fail_msg("\"%.*s\": %s", (int)text.size, text.data, err.msg);
	return (int32_t)value;
}

static inline uint8_t case_mode(struct vg_span word)
{
	for (size_t i = 0; i < VG_MODE_COUNT; i++)
		if (vg_span_eq(word, vg_card_mode_word[i]))
			return (uint8_t)i;
	fail_msg("no mode \"%.*s\"", (int)word.size, word.data);
	return 0;
}

static inline void case_card_word(struct vg_card *card, struct vg_span word)
{
	struct vg_span value = word;
	struct vg_span key;
	struct vg_span part;

	vg_cut(&value, '=', &key);
	if (vg_span_eq(key, "mem"))
		card->mem_mib = case_number(value);
	else if (vg_span_eq(key, "cores"))
		card->cores = case_number(value);
	else if (vg_span_eq(key, "slots"))
		card->slots = case_number(value);
	else if (vg_span_eq(key, "numa"))
		card->numa = (int16_t)case_number(value);
	else if (vg_span_eq(key, "model"))
		card->model = (uint16_t)case_number(value);
	else if (vg_span_eq(key, "class"))
		card->class_index = (uint8_t)case_number(value);
	else if (vg_span_eq(key, "mode"))
		card->mode = case_mode(value);
	else if (vg_span_eq(key, "sick"))
		card->healthy = false;
	else if (vg_span_eq(key, "cordoned"))
		card->cordoned = true;
	else if (vg_span_eq(key, "used")) {
		vg_cut(&value, ',', &part);
		card->mem_used_mib = case_number(part);
		vg_cut(&value, ',', &part);
		card->cores_used = case_number(part);
		vg_cut(&value, ',', &part);
		card->slots_used = case_number(part);
	} else
		fail_msg("no card word \"%.*s\"", (int)word.size, word.data);
}

static inline void case_add_card(struct vg_node *node, struct vg_span text, struct vg_arena *arena)
{
	struct vg_card *card = &node->cards[node->card_count];
	struct vg_span word;

	assert_true(node->card_count < CASE_CARDS);
	vg_cut(&text, ' ', &word);
	*card = (struct vg_card){
		.uuid = vg_arena_strndup(arena, word.data, word.size),
		.mem_mib = 16000,
		.cores = 100,
		.slots = 10,
		.index = (int32_t)node->card_count,
		.mode = VG_MODE_HAMI_CORE,
		.healthy = true,
	};
	while (vg_cut(&text, ' ', &word))
		if (word.size)
			case_card_word(card, word);
	node->card_count++;
	node->sums.mem_mib += card->mem_mib;
	node->sums.mem_used_mib += card->mem_used_mib;
	node->sums.cores += card->cores;
	node->sums.cores_used += card->cores_used;
	node->sums.slots += card->slots;
	node->sums.slots_used += card->slots_used;
}

/* "name link=0,1,300 link=…" */
static inline void case_node_words(struct vg_node *node, struct vg_span text,
				   struct vg_arena *arena)
{
	int32_t *links = NULL;
	struct vg_span word;

	vg_cut(&text, ' ', &word);
	node->name = vg_arena_strndup(arena, word.data, word.size);
	while (vg_cut(&text, ' ', &word)) {
		struct vg_span value = word;
		struct vg_span part;
		int32_t number[3];

		vg_cut(&value, '=', &part);
		assert_true(vg_span_eq(part, "link"));
		for (size_t i = 0; i < 3; i++) {
			assert_true(vg_cut(&value, ',', &part));
			number[i] = case_number(part);
		}
		if (!links)
			links = vg_arena_new_array(arena, node->card_count * node->card_count,
						   sizeof(*links));
		links[(uint32_t)number[0] * node->card_count + (uint32_t)number[1]] = number[2];
		links[(uint32_t)number[1] * node->card_count + (uint32_t)number[0]] = number[2];
	}
	node->links = links;
}

/* "" is a candidate that nothing is known about. */
static inline void case_cluster(const struct decide_case *c, struct vg_arena *arena,
				struct case_cluster *ret_cluster)
{
	*ret_cluster = (struct case_cluster){ 0 };
	for (size_t i = 0; i < CASE_NODES && c->nodes[i]; i++) {
		struct vg_node *node = &ret_cluster->node[i];
		struct vg_span rest = VG_SPAN(c->nodes[i]);
		struct vg_span piece;
		struct vg_span head;

		ret_cluster->count++;
		if (!rest.size)
			continue;
		vg_cut(&rest, '|', &head);
		node->cards = vg_arena_new_array(arena, CASE_CARDS, sizeof(*node->cards));
		while (vg_cut(&rest, '|', &piece))
			case_add_card(node, vg_trim(piece), arena);
		case_node_words(node, vg_trim(head), arena);
		ret_cluster->candidates[i] = node;
	}
}

static inline void case_classes(struct vg_classes *classes)
{
	vg_classes_init(classes);
	classes->item[1] = (struct vg_class){
		.word = vg_strdup("NPU"),
		.resource_count = vg_strdup("acme.com/npu"),
		.resource_mem = vg_strdup("acme.com/npumem"),
		.resource_mem_percent = vg_strdup(""),
		.resource_cores = vg_strdup(""),
		.resource_priority = vg_strdup(""),
		.mem_factor = 1,
		.core_policy = vg_strdup(""),
		.runtime_class = vg_strdup(""),
	};
	classes->count = 2;
}

static inline const char *case_resource(struct vg_span key)
{
	static const char *const names[][2] = {
		{ "gpu", "nvidia.com/gpu" },
		{ "mem", "nvidia.com/gpumem" },
		{ "percent", "nvidia.com/gpumem-percentage" },
		{ "cores", "nvidia.com/gpucores" },
		{ "npu", "acme.com/npu" },
		{ "npumem", "acme.com/npumem" },
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (vg_span_eq(key, names[i][0]))
			return names[i][1];
	fail_msg("no resource \"%.*s\"", (int)key.size, key.data);
	return NULL;
}

static inline void case_add_container(struct vg_pod *pod, struct vg_span text,
				      struct vg_arena *arena)
{
	struct vg_container *container = &pod->containers[pod->container_count++];
	struct vg_span word;

	vg_cut(&text, ' ', &word);
	container->name = "c";
	container->kind = vg_span_eq(word, "init")      ? VG_CONTAINER_INIT
			  : vg_span_eq(word, "sidecar") ? VG_CONTAINER_SIDECAR
							: VG_CONTAINER_APP;
	container->resources = vg_arena_new_array(arena, 8, sizeof(*container->resources));
	pod->init_count += container->kind != VG_CONTAINER_APP;
	while (vg_cut(&text, ' ', &word)) {
		struct vg_resource *resource = &container->resources[container->resource_count];
		struct vg_span key;

		if (!word.size)
			continue;
		vg_cut(&word, '=', &key);
		resource->name = case_resource(key);
		resource->limit = vg_arena_strndup(arena, word.data, word.size);
		container->resource_count++;
	}
}

static inline void case_request(const struct decide_case *c, const struct vg_classes *classes,
				struct vg_arena *arena, struct vg_request *ret_request)
{
	struct vg_span rest = VG_SPAN(c->pod);
	struct vg_pod pod = { .namespace = "ns", .name = "pod", .uid = "uid" };
	const char **value = pod.annotations.value;
	struct vg_policy defaults;
	struct vg_err err = { 0 };
	struct vg_span piece;

	pod.containers = vg_arena_new_array(arena, 16, sizeof(*pod.containers));
	while (vg_cut(&rest, '|', &piece))
		case_add_container(&pod, vg_trim(piece), arena);
	value[VG_ANNO_POD_NODE_POLICY] = c->node_policy;
	value[VG_ANNO_POD_GPU_POLICY] = c->gpu_policy;
	value[VG_ANNO_POD_WEIGHTS] = c->weights;
	value[VG_ANNO_POD_USE_TYPE] = c->use_type;
	value[VG_ANNO_POD_NOUSE_TYPE] = c->nouse_type;
	value[VG_ANNO_POD_USE_UUID] = c->use_uuid;
	value[VG_ANNO_POD_NOUSE_UUID] = c->nouse_uuid;
	value[VG_ANNO_POD_MODE] = c->mode;
	value[VG_ANNO_POD_NUMA_BIND] = c->numa_bind;
	vg_policy_parse("binpack", "spread", &defaults);
	if (vg_request_parse(&pod, classes, &defaults, arena, ret_request, &err) < 0)
		fail_msg("%s: %s", c->name, err.msg);
	assert_true(ret_request->want_count > 0);
}

static inline void case_quota(const char *text, struct vg_quota *ret_quota)
{
	struct vg_span rest = VG_SPAN(text);
	struct vg_span word;

	*ret_quota = (struct vg_quota){ 0 };
	vg_quota_unlimited(ret_quota->hard);
	while (vg_cut(&rest, ' ', &word)) {
		struct vg_span key;
		struct vg_span used;
		size_t class;

		vg_cut(&word, '=', &key);
		vg_cut(&word, '/', &used);
		class = vg_span_eq(key, "npumem");
		if (vg_span_eq(key, "cores")) {
			ret_quota->used[class].cores = case_number(used);
			ret_quota->hard[class].cores = case_number(word);
		} else {
			ret_quota->used[class].mem_mib = case_number(used);
			ret_quota->hard[class].mem_mib = case_number(word);
		}
	}
}

/* The pod's own total fits beside what is used, wherever there is a limit and the pod takes of it. */
static inline void case_check_totals(const char *name, const struct vg_quota *quota,
				     const struct vg_request *request,
				     const struct vg_allocation *allocation)
{
	struct vg_total totals[VG_CLASSES_MAX];

	vg_allocation_totals(allocation, request->kinds, request->container_count, false, totals);
	for (size_t i = 0; i < VG_CLASSES_MAX; i++) {
		if (totals[i].mem_mib && quota->hard[i].mem_mib != VG_QUOTA_NO_LIMIT &&
		    quota->used[i].mem_mib + totals[i].mem_mib > quota->hard[i].mem_mib)
			fail_msg("%s: the pod holds %lld MiB of class %zu", name,
				 (long long)totals[i].mem_mib, i);
		if (totals[i].cores && quota->hard[i].cores != VG_QUOTA_NO_LIMIT &&
		    quota->used[i].cores + totals[i].cores > quota->hard[i].cores)
			fail_msg("%s: the pod holds %lld percent of class %zu", name,
				 (long long)totals[i].cores, i);
	}
}

/* What the grants charge the cards with must fit beside what is used already. */
static inline void case_check_charges(const struct decide_case *c, const struct vg_node *node,
				      const struct vg_request *request,
				      const struct vg_allocation *allocation,
				      struct vg_arena *arena)
{
	struct vg_charge *charges;
	size_t count = vg_allocation_charges(allocation, request->kinds, request->container_count,
					     false, arena, &charges);

	for (size_t i = 0; i < count; i++) {
		const struct vg_card *card = node->cards;

		while (strcmp(card->uuid, charges[i].uuid) != 0)
			card++;
		if (card->mem_used_mib + charges[i].mem_mib > card->mem_mib ||
		    card->cores_used + charges[i].cores > card->cores ||
		    card->slots_used + charges[i].slots > card->slots)
			fail_msg("%s: card %s is charged with %d MiB, %d cores, %d slots", c->name,
				 card->uuid, charges[i].mem_mib, charges[i].cores,
				 charges[i].slots);
	}
}

static inline void case_expect_text(const char *name, const char *what, const char *got,
				    const char *want)
{
	if (!vg_streq(got, want))
		fail_msg("%s: %s\n  is     %s\n  not    %s", name, what, got ? got : "(nothing)",
			 want ? want : "(nothing)");
}

static inline char *case_verdict(const struct vg_verdict *verdict, struct vg_arena *arena)
{
	struct vg_buf buf;
	char *text;

	vg_buf_init(&buf, 4096);
	vg_buf_adds(&buf, vg_verdict_curable(verdict) ? "+" : "-");
	vg_verdict_text(verdict, &buf);
	assert_false(vg_buf_failed(&buf));
	text = vg_arena_strdup(arena, buf.data);
	vg_buf_release(&buf);
	return text;
}

/* The decision on the row, with the candidates in the given order. */
static inline void case_decide(const struct decide_case *c, const struct case_cluster *cluster,
			       const struct vg_request *request, const struct vg_classes *classes,
			       bool evaluate_all, struct vg_arena *arena)
{
	const struct vg_node *node = NULL;
	struct vg_decision decision;
	struct vg_quota quota;

	if (c->quota)
		case_quota(c->quota, &quota);
	vg_decide(&(struct vg_decide_args){ .models = &case_model_list,
					    .request = request,
					    .quota = c->quota ? &quota : NULL,
					    .candidates = cluster->candidates,
					    .candidate_count = cluster->count,
					    .evaluate_all = evaluate_all },
		  arena, &decision);
	if (decision.found)
		node = cluster->candidates[decision.candidate];
	case_expect_text(c->name, "node", node ? node->name : NULL, c->node);
	if (node) {
		const char *npu =
			vg_allocation_encode(&decision.allocation, &classes->item[1], 1, arena);

		case_expect_text(
			c->name, "allocation",
			vg_allocation_encode(&decision.allocation, &classes->item[0], 0, arena),
			c->allocation);
		if (c->npu_allocation)
			case_expect_text(c->name, "NPU allocation", npu, c->npu_allocation);
		case_check_charges(c, node, request, &decision.allocation, arena);
		if (c->quota)
			case_check_totals(c->name, &quota, request, &decision.allocation);
	}
	for (size_t i = 0; i < cluster->count && evaluate_all; i++)
		if (c->verdicts[i])
			case_expect_text(c->name, c->nodes[i],
					 case_verdict(&decision.verdicts[i], arena),
					 c->verdicts[i]);
}

/* Every row is decided in two orders, and with and without looking at every candidate. */
static inline void run_case(const struct decide_case *c)
{
	struct case_cluster cluster;
	struct case_cluster turned;
	struct vg_classes classes;
	struct vg_request request;
	struct vg_arena arena;

	vg_arena_init(&arena);
	case_classes(&classes);
	case_cluster(c, &arena, &cluster);
	case_request(c, &classes, &arena, &request);
	case_decide(c, &cluster, &request, &classes, true, &arena);
	case_decide(c, &cluster, &request, &classes, false, &arena);
	turned = cluster;
	for (size_t i = 0; i < cluster.count; i++)
		turned.candidates[i] = cluster.candidates[cluster.count - 1 - i];
	case_decide(c, &turned, &request, &classes, false, &arena);
	vg_classes_release(&classes);
	vg_arena_release(&arena);
}

#define RUN_CASES(cases)                                                                           \
	do {                                                                                       \
		for (size_t i_ = 0; i_ < sizeof(cases) / sizeof((cases)[0]); i_++)                 \
			run_case(&(cases)[i_]);                                                    \
	} while (0)

#endif
