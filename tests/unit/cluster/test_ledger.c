/* SPDX-License-Identifier: Apache-2.0 */
/* The ledger is a function of pods and nodes, in whatever order and however often they are told. */
#include "unit/cluster/cluster_fixture.h"

#include <stdlib.h>

static void test_bound_pod_is_charged_once(void **state)
{
	struct fixture f;
	struct vg_pod *pod;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	pod = fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,3000,30:;", "success");
	put_pod(&f, pod);
	assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
	put_pod(&f, pod);
	assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "a", "uid-a");
	assert_string_equal(usage(&f), "");
	fixture_release(&f);
}

static void test_pods_before_their_node(void **state)
{
	struct vg_cluster_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_pod(&f, fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-1,NVIDIA,3000,30:;", "success"));
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.unknown_cards, 1);
	put_node(&f, "n1", 2);
	assert_string_equal(usage(&f), "GPU-n1-1=3000/30/1");
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.unknown_cards, 0);
	/* The node goes and comes back: its pods are still there. */
	f.sink.ops->delete_node(f.sink.ctx, "n1");
	assert_string_equal(usage(&f), "");
	put_node(&f, "n1", 2);
	assert_string_equal(usage(&f), "GPU-n1-1=3000/30/1");
	fixture_release(&f);
}

static void test_card_vanishes_and_returns(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	put_pod(&f, fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-1,NVIDIA,3000,30:;", "success"));
	put_node(&f, "n1", 1);
	assert_string_equal(usage(&f), "");
	put_node(&f, "n1", 2);
	assert_string_equal(usage(&f), "GPU-n1-1=3000/30/1");
	fixture_release(&f);
}

static void test_ended_and_terminating(void **state)
{
	struct fixture f;
	struct vg_pod *pod;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	pod = fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,3000,30:;", "success");
	pod->terminating = true;
	put_pod(&f, pod);
	assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
	pod->phase = VG_POD_SUCCEEDED;
	put_pod(&f, pod);
	assert_string_equal(usage(&f), "");
	fixture_release(&f);
}

static void test_init_containers_are_released(void **state)
{
	struct vg_container containers[2];
	struct vg_pod *pod;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	pod = fixture_bound(&f, "a", "uid-a", "n1",
			    "GPU-n1-0,NVIDIA,6000,30:;GPU-n1-0,NVIDIA,4000,50:;", "success");
	containers[0] = pod->containers[0];
	containers[1] = pod->containers[0];
	containers[0].kind = VG_CONTAINER_INIT;
	pod->containers = containers;
	pod->container_count = 2;
	pod->init_count = 1;
	put_pod(&f, pod);
	assert_string_equal(usage(&f), "GPU-n1-0=6000/50/1");
	pod->init_done = true;
	put_pod(&f, pod);
	assert_string_equal(usage(&f), "GPU-n1-0=4000/50/1");
	fixture_release(&f);
}

static void test_same_name_another_pod(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	put_pod(&f, fixture_bound(&f, "a", "uid-1", "n1", "GPU-n1-0,NVIDIA,3000,30:;", "success"));
	/* The delete of uid-1 was missed. */
	put_pod(&f, fixture_bound(&f, "a", "uid-2", "n1", "GPU-n1-1,NVIDIA,1000,10:;", "success"));
	assert_string_equal(usage(&f), "GPU-n1-1=1000/10/1");
	/* And comes late. */
	f.sink.ops->delete_pod(f.sink.ctx, "default", "a", "uid-1");
	assert_string_equal(usage(&f), "GPU-n1-1=1000/10/1");
	fixture_release(&f);
}

static void test_never_back_in_time(void **state)
{
	struct vg_cluster_stats stats;
	struct fixture f;
	struct vg_pod *pod;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	pod = fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,3000,30:;", "success");
	pod->resource_version = 20;
	put_pod(&f, pod);
	pod = fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,9999,99:;", "success");
	pod->resource_version = 10;
	put_pod(&f, pod);
	assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.stale_events, 1);
	fixture_release(&f);
}

static void test_malformed_annotations_hide_nothing(void **state)
{
	struct vg_cluster_stats stats;
	struct vg_node_info *node;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	node = fixture_node(&f, "n2", 0);
	node->register_error = "not JSON";
	f.sink.ops->put_node(f.sink.ctx, node);
	put_pod(&f, fixture_bound(&f, "bad", "uid-b", "n1", "GPU-n1-0,NVIDIA,x,y:;", "success"));
	put_pod(&f,
		fixture_bound(&f, "good", "uid-g", "n1", "GPU-n1-0,NVIDIA,3000,30:;", "success"));
	assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.malformed[VG_KIND_NODE], 1);
	assert_int_equal(stats.malformed[VG_KIND_POD], 1);
	assert_int_equal(stats.nodes, 2);
	assert_int_equal(stats.nodes_registered, 1);
	fixture_release(&f);
}

/* What pods hold is what their annotations say, and whoever may write those may write anything. */
static void test_huge_grants_leave_no_room(void **state)
{
	static const char *const n1[] = { "n1" };
	static const char huge[] = "GPU-n1-0,NVIDIA,2147483647,2147483647:;";
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_pod(&f, fixture_bound(&f, "p1", "u1", "n1", huge, "success"));
	put_pod(&f, fixture_bound(&f, "p2", "u2", "n1", huge, "success"));
	put_pod(&f, fixture_bound(&f, "p3", "u3", "n1", huge, "success"));
	assert_string_equal(usage(&f), "GPU-n1-0=6442450941/6442450941/3");
	assert_null(place(&f, fixture_pod(&f, "p4", "u4", 1, 100, 1), n1, 1, 0, NULL));
	f.sink.ops->delete_pod(f.sink.ctx, "default", "p1", "u1");
	assert_null(place(&f, fixture_pod(&f, "p4", "u4", 1, 100, 1), n1, 1, 0, NULL));
	f.sink.ops->delete_pod(f.sink.ctx, "default", "p2", "u2");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "p3", "u3");
	assert_string_equal(usage(&f), "");
	assert_non_null(place(&f, fixture_pod(&f, "p4", "u4", 1, 100, 1), n1, 1, 0, NULL));
	fixture_release(&f);
}

static void test_list_sweeps_what_it_lacks(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	for (int i = 0; i < 300; i++) {
		char name[32], uid[32], node[32], devices[64];

		snprintf(node, sizeof(node), "n%d", i);
		snprintf(name, sizeof(name), "p%d", i);
		snprintf(uid, sizeof(uid), "uid-%d", i);
		snprintf(devices, sizeof(devices), "GPU-n%d-0,NVIDIA,1000,10:;", i);
		put_node(&f, node, 1);
		put_pod(&f, fixture_bound(&f, name, uid, node, devices, "success"));
	}
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_POD);
	put_pod(&f, fixture_bound(&f, "p7", "uid-7", "n7", "GPU-n7-0,NVIDIA,1000,10:;", "success"));
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_POD);
	assert_string_equal(usage(&f), "GPU-n7-0=1000/10/1");
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_NODE);
	f.sink.ops->list_abort(f.sink.ctx, VG_KIND_NODE);
	assert_int_equal(look(&f, 0).node_count, 300);
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_NODE);
	put_node(&f, "n9", 1);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_NODE);
	/* n7 stays as a name without cards, since a pod still refers to it. */
	assert_int_equal(look(&f, 0).node_count, 2);
	fixture_release(&f);
}

static void test_readiness(void **state)
{
	char reason[VG_READY_REASON_BYTES];
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	assert_false(vg_cluster_ready(f.cluster, vg_clock_mono_ns(), reason));
	assert_non_null(strstr(reason, "nodes"));
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_NODE);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_NODE);
	assert_false(vg_cluster_ready(f.cluster, vg_clock_mono_ns(), reason));
	assert_non_null(strstr(reason, "pods"));
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_POD);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_POD);
	assert_false(vg_cluster_ready(f.cluster, vg_clock_mono_ns(), reason));
	assert_non_null(strstr(reason, "resourcequotas"));
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_QUOTA);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_QUOTA);
	assert_true(vg_cluster_ready(f.cluster, vg_clock_mono_ns(), reason));
	fixture_release(&f);
}

static void test_silence_ends_readiness(void **state)
{
	char reason[VG_READY_REASON_BYTES];
	struct vg_cluster *cluster;
	struct vg_classes classes;
	struct vg_sink sink;
	int64_t now_ns;

	(void)state;
	vg_classes_init(&classes);
	cluster = vg_cluster_new(
		&(struct vg_cluster_options){ .classes = &classes, .stale_ns = 120 * VG_NS_PER_S });
	sink = vg_cluster_sink(cluster);
	for (int kind = 0; kind < VG_KIND_COUNT; kind++) {
		sink.ops->list_begin(sink.ctx, (enum vg_kind)kind);
		sink.ops->list_end(sink.ctx, (enum vg_kind)kind);
	}
	now_ns = vg_clock_mono_ns();
	assert_true(vg_cluster_ready(cluster, now_ns + 100 * VG_NS_PER_S, reason));
	assert_false(vg_cluster_ready(cluster, now_ns + 121 * VG_NS_PER_S, reason));
	assert_non_null(strstr(reason, "nodes for 121 s"));
	vg_cluster_free(cluster);
	vg_classes_release(&classes);
}

static void test_plugin_gone_makes_cards_unhealthy(void **state)
{
	struct vg_node_info *node;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	node = fixture_node(&f, "n1", 1);
	node->allocatable = 0;
	f.sink.ops->put_node(f.sink.ctx, node);
	assert_false(look(&f, 0).nodes[0].node.cards[0].healthy);
	node->allocatable = 10;
	f.sink.ops->put_node(f.sink.ctx, node);
	assert_true(look(&f, 0).nodes[0].node.cards[0].healthy);
	fixture_release(&f);
}

/* ---- property: any order of events ends where a fresh list of the end state ends ---------------- */

#define NODES  6
#define PODS   24
#define SPACES 3
#define EVENTS 400
#define ROUNDS 200

struct truth {
	int cards[NODES]; /* 0 = no such node */
	struct {
		bool exists;
		int uid;
		int node;
		int card;
		int mem;
		int phase; /* 0 pending, 1 bound, 2 ended */
	} pod[PODS];
	int64_t quota[SPACES][2]; /* MiB of two quotas per namespace; -1 = no such quota */
};

static const char *const space_name[SPACES] = { "a", "b", "c" };
static const char *const quota_name[2] = { "q0", "q1" };

static struct vg_pod *truth_pod(struct fixture *f, const struct truth *t, int i)
{
	char name[32], uid[32], node[32], devices[96];
	struct vg_pod *pod;

	snprintf(name, sizeof(name), "p%d", i);
	snprintf(uid, sizeof(uid), "uid-%d-%d", i, t->pod[i].uid);
	if (t->pod[i].phase == 0) {
		pod = fixture_pod(f, name, uid, 1, 100, 10);
		pod->namespace = space_name[i % SPACES];
		return pod;
	}
	snprintf(node, sizeof(node), "n%d", t->pod[i].node);
	snprintf(devices, sizeof(devices), "GPU-%s-%d,NVIDIA,%d,1:;", node, t->pod[i].card,
		 t->pod[i].mem);
	pod = fixture_bound(f, name, uid, node, devices, "success");
	pod->namespace = space_name[i % SPACES];
	if (t->pod[i].phase == 2)
		pod->phase = VG_POD_SUCCEEDED;
	return pod;
}

static void truth_list(struct fixture *f, const struct truth *t)
{
	char name[32];

	f->sink.ops->list_begin(f->sink.ctx, VG_KIND_POD);
	for (int i = 0; i < PODS; i++)
		if (t->pod[i].exists)
			put_pod(f, truth_pod(f, t, i));
	f->sink.ops->list_end(f->sink.ctx, VG_KIND_POD);
	f->sink.ops->list_begin(f->sink.ctx, VG_KIND_NODE);
	for (int i = 0; i < NODES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		if (t->cards[i])
			put_node(f, name, (size_t)t->cards[i]);
	}
	f->sink.ops->list_end(f->sink.ctx, VG_KIND_NODE);
	f->sink.ops->list_begin(f->sink.ctx, VG_KIND_QUOTA);
	for (int i = 0; i < SPACES; i++)
		for (int q = 0; q < 2; q++)
			if (t->quota[i][q] >= 0)
				put_quota(f, space_name[i], quota_name[q], t->quota[i][q],
					  VG_QUOTA_NO_LIMIT);
	f->sink.ops->list_end(f->sink.ctx, VG_KIND_QUOTA);
}

/* What the pods of a namespace hold, in the plainest way. */
static void truth_quotas(struct fixture *f, const struct truth *t)
{
	struct vg_cluster_copy copy = look(f, 0);
	size_t at = 0;

	for (int i = 0; i < SPACES; i++) {
		int64_t hard = VG_QUOTA_NO_LIMIT;
		int64_t used = 0;
		bool there = false;

		for (int k = i; k < PODS; k += SPACES)
			if (t->pod[k].exists && t->pod[k].phase == 1) {
				used += t->pod[k].mem;
				there = true;
			}
		for (int q = 0; q < 2; q++)
			if (t->quota[i][q] >= 0) {
				hard = t->quota[i][q] < hard ? t->quota[i][q] : hard;
				there = true;
			}
		if (!there)
			continue;
		assert_true(at < copy.space_count);
		assert_string_equal(copy.spaces[at].namespace, space_name[i]);
		assert_int_equal(copy.spaces[at].quota.used[0].mem_mib, used);
		assert_int_equal(copy.spaces[at].quota.hard[0].mem_mib, hard);
		at++;
	}
	assert_int_equal(at, copy.space_count);
}

static void truth_step_quota(struct fixture *f, struct truth *t, bool told)
{
	int space = rand() % SPACES;
	int q = rand() % 2;

	t->quota[space][q] = rand() % 3 ? rand() % 5000 : -1;
	if (told && t->quota[space][q] >= 0)
		put_quota(f, space_name[space], quota_name[q], t->quota[space][q],
			  VG_QUOTA_NO_LIMIT);
	else if (told)
		f->sink.ops->delete_quota(f->sink.ctx, space_name[space], quota_name[q]);
}

static void truth_step(struct fixture *f, struct truth *t)
{
	int i = rand() % PODS;
	int n = rand() % NODES;
	bool told = rand() % 8 != 0; /* some events never arrive: the next list mends it */
	char name[32], uid[32];

	snprintf(name, sizeof(name), "p%d", i);
	switch (rand() % 9) {
	case 8:
		truth_step_quota(f, t, told);
		return;
	case 0: /* created, or re-created under the same name with the delete unseen */
		t->pod[i].exists = true;
		t->pod[i].uid++;
		t->pod[i].phase = 0;
		break;
	case 1:
	case 2:
	case 3: /* bound */
		if (!t->pod[i].exists || t->pod[i].phase != 0)
			return;
		t->pod[i].phase = 1;
		t->pod[i].node = n;
		t->pod[i].card = rand() % 3;
		t->pod[i].mem = 1 + rand() % 1000;
		break;
	case 4: /* ended */
		if (!t->pod[i].exists || t->pod[i].phase != 1)
			return;
		t->pod[i].phase = 2;
		break;
	case 5: /* deleted */
		if (!t->pod[i].exists)
			return;
		t->pod[i].exists = false;
		snprintf(uid, sizeof(uid), "uid-%d-%d", i, t->pod[i].uid);
		if (told)
			f->sink.ops->delete_pod(f->sink.ctx, space_name[i % SPACES], name, uid);
		return;
	case 6: /* a node's cards change, or the node goes */
		t->cards[n] = rand() % 4;
		snprintf(name, sizeof(name), "n%d", n);
		if (told && t->cards[n])
			put_node(f, name, (size_t)t->cards[n]);
		else if (told)
			f->sink.ops->delete_node(f->sink.ctx, name);
		return;
	default: /* the same again */
		if (!t->pod[i].exists)
			return;
	}
	if (told)
		put_pod(f, truth_pod(f, t, i));
}

static void test_incremental_equals_from_scratch(void **state)
{
	(void)state;
	srand(20261120);
	for (int round = 0; round < ROUNDS; round++) {
		struct truth t = { .quota = { { -1, -1 }, { -1, -1 }, { -1, -1 } } };
		struct fixture incremental, scratch;

		fixture_init(&incremental, round % 2);
		fixture_init(&scratch, round % 2);
		for (int i = 0; i < EVENTS; i++)
			truth_step(&incremental, &t);
		truth_list(&incremental, &t);
		truth_list(&scratch, &t);
		assert_string_equal(usage(&incremental), usage(&scratch));
		assert_string_equal(quotas(&incremental), quotas(&scratch));
		truth_quotas(&incremental, &t);
		fixture_release(&incremental);
		fixture_release(&scratch);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bound_pod_is_charged_once),
		cmocka_unit_test(test_pods_before_their_node),
		cmocka_unit_test(test_card_vanishes_and_returns),
		cmocka_unit_test(test_ended_and_terminating),
		cmocka_unit_test(test_init_containers_are_released),
		cmocka_unit_test(test_same_name_another_pod),
		cmocka_unit_test(test_never_back_in_time),
		cmocka_unit_test(test_malformed_annotations_hide_nothing),
		cmocka_unit_test(test_huge_grants_leave_no_room),
		cmocka_unit_test(test_list_sweeps_what_it_lacks),
		cmocka_unit_test(test_readiness),
		cmocka_unit_test(test_silence_ends_readiness),
		cmocka_unit_test(test_plugin_gone_makes_cards_unhealthy),
		cmocka_unit_test(test_incremental_equals_from_scratch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
