/* SPDX-License-Identifier: Apache-2.0 */
/* config/demo-cluster.yaml must be a cluster that could be: every allocation stands on a card of the pod's
 * node, is what the pod asked for, and no card carries more than it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/allocation.h"
#include "device/request.h"
#include "snapshot/snapshot.h"

#define CARDS_MAX 64

struct card {
	const char *node;
	struct vg_card_info info;
	int32_t mem_mib;
	int32_t cores;
	int32_t slots;
};

struct demo {
	struct vg_classes classes;
	struct vg_arena arena; /* texts of the cards */
	struct card cards[CARDS_MAX];
	size_t card_count;
	unsigned nodes;
	unsigned nodes_without_cards;
	unsigned unhealthy;
	unsigned cordoned;
	unsigned pods;
	unsigned holding;
	unsigned lists_ended;
};

static void on_list(void *ctx, enum vg_kind kind)
{
	(void)ctx;
	(void)kind;
}

static void on_list_end(void *ctx, enum vg_kind kind)
{
	struct demo *demo = ctx;

	(void)kind;
	demo->lists_ended++;
}

static void on_node(void *ctx, const struct vg_node_info *node)
{
	struct demo *demo = ctx;
	const char *cordoned = node->annotations.value[VG_ANNO_NODE_CORDON];
	int64_t slots = 0;

	assert_null(node->register_error);
	demo->nodes++;
	demo->nodes_without_cards += node->card_count == 0;
	for (size_t i = 0; i < node->card_count; i++) {
		struct card *card = &demo->cards[demo->card_count++];

		assert_true(demo->card_count <= CARDS_MAX);
		*card = (struct card){ .info = node->cards[i] };
		card->node = vg_arena_strdup(&demo->arena, node->name);
		card->info.uuid = vg_arena_strdup(&demo->arena, card->info.uuid);
		assert_int_equal(card->info.index, i);
		demo->unhealthy += !card->info.healthy;
		demo->cordoned += vg_uuid_listed(cordoned, card->info.uuid);
		slots += card->info.healthy ? card->info.slots : 0;
	}
	assert_int_equal(node->allocatable, node->card_count ? slots : -1);
}

static struct card *find_card(struct demo *demo, const char *uuid)
{
	for (size_t i = 0; i < demo->card_count; i++)
		if (vg_streq(demo->cards[i].info.uuid, uuid))
			return &demo->cards[i];
	fail_msg("no node has card %s", uuid);
	return NULL;
}

/* One grant against what its container asked for. */
static void check_grant(struct demo *demo, const struct vg_pod *pod,
			const struct vg_request *request, const struct vg_grant *grant)
{
	struct card *card = find_card(demo, grant->uuid);
	const struct vg_want *want = NULL;

	for (size_t i = 0; i < request->want_count; i++)
		if (request->wants[i].container == grant->container)
			want = &request->wants[i];
	if (!want) {
		fail_msg("pod %s did not ask for %s", pod->name, grant->uuid);
		return;
	}
	assert_string_equal(card->node, pod->node_name);
	assert_true(card->info.healthy);
	assert_int_equal(grant->cores, want->cores);
	if (want->mem_mib)
		assert_int_equal(grant->mem_mib, want->mem_mib);
	else
		assert_int_equal(grant->mem_mib, card->info.mem_mib * want->mem_percent / 100);
	card->mem_mib += grant->mem_mib;
	card->cores += grant->cores;
	card->slots++;
	assert_true(card->mem_mib <= card->info.mem_mib);
	assert_true(card->cores <= card->info.cores);
	assert_true(card->slots <= card->info.slots);
}

static void on_pod(void *ctx, const struct vg_pod *pod)
{
	struct demo *demo = ctx;
	struct vg_arena arena;
	struct vg_request request = { 0 };
	struct vg_allocation allocation = { 0 };
	struct vg_policy policy;
	struct vg_err err = { 0 };
	const char *allocated = pod->annotations.value[VG_ANNO_POD_ALLOCATED];
	size_t cards = 0;

	demo->pods++;
	assert_true(pod->uid[0] && pod->node_name[0]);
	vg_arena_init(&arena);
	vg_policy_parse("binpack", "spread", &policy);
	if (vg_request_parse(pod, &demo->classes, &policy, &arena, &request, &err) < 0)
		fail_msg("%s", err.msg);
	if (allocated && pod->phase == VG_POD_RUNNING) {
		demo->holding++;
		assert_string_equal(pod->annotations.value[VG_ANNO_POD_NODE], pod->node_name);
		assert_string_equal(pod->annotations.value[VG_ANNO_POD_BIND_PHASE], "success");
		if (vg_allocation_decode(allocated, 0, &arena, &allocation, &err) < 0)
			fail_msg("%s", err.msg);
		assert_int_equal(allocation.container_count, pod->container_count);
		for (size_t i = 0; i < allocation.grant_count; i++)
			check_grant(demo, pod, &request, &allocation.grants[i]);
	}
	for (size_t i = 0; i < request.want_count; i++)
		cards += (size_t)request.wants[i].count;
	if (pod->phase == VG_POD_RUNNING)
		assert_int_equal(cards, allocation.grant_count);
	vg_arena_release(&arena);
}

static void on_malformed(void *ctx, enum vg_kind kind, const char *what, const char *why)
{
	(void)ctx;
	(void)kind;
	fail_msg("%s: %s", what, why);
}

static void test_demo_cluster(void **state)
{
	static const struct vg_sink_ops ops = {
		.list_begin = on_list,
		.list_end = on_list_end,
		.put_node = on_node,
		.put_pod = on_pod,
		.malformed = on_malformed,
	};
	struct demo demo = { 0 };
	struct vg_sink sink = { .ops = &ops, .ctx = &demo };
	struct vg_snapshot *snapshot;
	struct vg_err err = { 0 };

	(void)state;
	vg_classes_init(&demo.classes);
	vg_arena_init(&demo.arena);
	if (vg_snapshot_load("config/demo-cluster.yaml", &demo.classes, sink, &snapshot, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(demo.lists_ended, VG_KIND_COUNT);
	assert_int_equal(demo.nodes, 6);
	assert_int_equal(demo.nodes_without_cards, 1);
	assert_int_equal(demo.card_count, 26);
	assert_int_equal(demo.unhealthy, 1);
	assert_int_equal(demo.cordoned, 1);
	assert_int_equal(demo.pods, 16);
	assert_int_equal(demo.holding, 13);
	vg_snapshot_free(snapshot);
	vg_arena_release(&demo.arena);
	vg_classes_release(&demo.classes);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_demo_cluster) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
