/* SPDX-License-Identifier: Apache-2.0 */
/* Pods that were refused are woken when something is freed that they fit on, and not otherwise. */
#include "unit/cluster/cluster_fixture.h"

#define S VG_NS_PER_S

static const char *const n12[] = { "n1", "n2" };

/* "name name": who is woken, in order. */
static const char *woken(struct fixture *f, int64_t now_ns)
{
	struct vg_wake *list;
	size_t count = vg_cluster_wake(f->cluster, now_ns, &f->arena, &list);
	char *text = vg_arena_strdup(&f->arena, "");

	for (size_t i = 0; i < count; i++)
		text = vg_arena_printf(&f->arena, "%s%s%s", text, i ? " " : "", list[i].name);
	return text;
}

/* n1 and n2 with one card of 10,000 MiB each, both taken by "big"; "small" and "large" were refused. */
static void full_cluster(struct fixture *f)
{
	fixture_init(f, false);
	put_node(f, "n1", 1);
	put_node(f, "n2", 1);
	put_pod(f, fixture_bound(f, "big1", "u1", "n1", "GPU-n1-0,NVIDIA,9500,10:;", "success"));
	put_pod(f, fixture_bound(f, "big2", "u2", "n2", "GPU-n2-0,NVIDIA,9500,10:;", "success"));
	put_pod(f, fixture_pod(f, "large", "ul", 1, 9000, 10));
	put_pod(f, fixture_pod(f, "small", "us", 1, 2000, 10));
	assert_null(place(f, fixture_pod(f, "large", "ul", 1, 9000, 10), n12, 2, 1 * S, NULL));
	assert_null(place(f, fixture_pod(f, "small", "us", 1, 2000, 10), n12, 2, 2 * S, NULL));
	woken(f, 2 * S); /* the nodes were new */
}

static void test_deleted_pod_wakes_who_fits(void **state)
{
	struct fixture f;

	(void)state;
	full_cluster(&f);
	assert_string_equal(woken(&f, 3 * S), "");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "big1", "u1");
	assert_string_equal(woken(&f, 3 * S), "large small");
	/* Once per chance: not again in the same second. */
	assert_string_equal(woken(&f, 3 * S), "");
	/* Placed: nobody to wake any more. The other one does not fit now. */
	assert_string_equal(
		place(&f, fixture_pod(&f, "large", "ul", 1, 9000, 10), n12, 2, 4 * S, NULL), "n1");
	assert_string_equal(woken(&f, 60 * S), "");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "large", "ul");
	assert_string_equal(woken(&f, 61 * S), "small");
	fixture_release(&f);
}

static void test_only_who_fits(void **state)
{
	struct fixture f;

	(void)state;
	full_cluster(&f);
	/* The pod on n1 shrinks: room for the small one only. */
	put_pod(&f, fixture_bound(&f, "big1", "u1", "n1", "GPU-n1-0,NVIDIA,7000,10:;", "success"));
	assert_string_equal(woken(&f, 3 * S), "small");
	fixture_release(&f);
}

static void test_ended_pod_and_new_cards(void **state)
{
	struct fixture f;
	struct vg_pod *pod;

	(void)state;
	full_cluster(&f);
	pod = fixture_bound(&f, "big2", "u2", "n2", "GPU-n2-0,NVIDIA,9500,10:;", "success");
	pod->phase = VG_POD_SUCCEEDED;
	put_pod(&f, pod);
	assert_string_equal(woken(&f, 3 * S), "large small");
	fixture_release(&f);

	full_cluster(&f);
	put_node(&f, "n1", 1); /* a heartbeat */
	assert_string_equal(woken(&f, 3 * S), "");
	put_node(&f, "n1", 2);
	assert_string_equal(woken(&f, 3 * S), "large small");
	fixture_release(&f);
}

static void test_woken_in_vain(void **state)
{
	struct fixture f;
	int times = 0;

	(void)state;
	full_cluster(&f);
	f.sink.ops->delete_pod(f.sink.ctx, "default", "big1", "u1");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "small", "us");
	/* A taint keeps the pod from n1: every second for an hour. */
	for (int second = 3; second < 3600; second++)
		times += *woken(&f, second * S) != '\0';
	assert_in_range(times, 2, 6);
	/* The next card that is freed is a new chance. */
	f.sink.ops->delete_pod(f.sink.ctx, "default", "big2", "u2");
	assert_string_equal(woken(&f, 3600 * S), "large");
	fixture_release(&f);
}

/* The same card is offered again: it recovered, or the administrator lifted its cordon. */
static void test_cards_that_return(void **state)
{
	struct vg_node_info *sick, *cordoned;
	struct vg_pod *leaving;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	sick = fixture_node(&f, "n1", 1);
	sick->cards[0].healthy = false;
	cordoned = fixture_node(&f, "n2", 1);
	cordoned->annotations.value[VG_ANNO_NODE_CORDON] = "GPU-n2-0";
	f.sink.ops->put_node(f.sink.ctx, sick);
	f.sink.ops->put_node(f.sink.ctx, cordoned);
	put_pod(&f, fixture_pod(&f, "small", "us", 1, 2000, 10));
	assert_null(place(&f, fixture_pod(&f, "small", "us", 1, 2000, 10), n12, 2, 1 * S, NULL));
	leaving = fixture_pod(&f, "leaving", "ul", 1, 2000, 10);
	assert_null(place(&f, leaving, n12, 2, 1 * S, NULL));
	leaving->terminating = true;
	put_pod(&f, leaving);
	assert_string_equal(woken(&f, 2 * S), "");
	put_node(&f, "n1", 1);
	assert_string_equal(woken(&f, 3 * S), "small");
	f.sink.ops->put_node(f.sink.ctx, sick);
	woken(&f, 300 * S); /* the chase of n1 ends */
	put_node(&f, "n2", 1);
	assert_string_equal(woken(&f, 600 * S), "small");
	fixture_release(&f);
}

/* More pods than one call decides about wait for more than was freed, each longer than the one that fits. */
static void test_the_rest_has_its_turn(void **state)
{
	struct fixture f;
	int calls = 0;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_node(&f, "n2", 1);
	put_pod(&f, fixture_bound(&f, "big1", "u1", "n1", "GPU-n1-0,NVIDIA,9500,10:;", "success"));
	put_pod(&f, fixture_bound(&f, "big2", "u2", "n2", "GPU-n2-0,NVIDIA,9500,10:;", "success"));
	for (int i = 0; i < 2 * VG_WAKE_DECISIONS + 10; i++) {
		const char *name = vg_arena_printf(&f.arena, "wide%d", i);
		const struct vg_pod *pod = fixture_pod(&f, name, name, 2, 2000, 10);

		put_pod(&f, pod);
		assert_null(place(&f, pod, n12, 2, 1 * S + i, NULL));
	}
	put_pod(&f, fixture_pod(&f, "small", "us", 1, 2000, 10));
	assert_null(place(&f, fixture_pod(&f, "small", "us", 1, 2000, 10), n12, 2, 2 * S, NULL));
	while (calls++ < 10)
		woken(&f, 2 * S); /* the nodes were new */

	f.sink.ops->delete_pod(f.sink.ctx, "default", "big1", "u1");
	for (calls = 1; calls < 10 && !vg_streq(woken(&f, 3 * S), "small"); calls++)
		;
	assert_int_equal(calls, 3);
	/* Nothing more is freed: after its time nobody looks any more. */
	assert_string_equal(woken(&f, 3 * S), "");
	fixture_release(&f);
}

static void test_refused_before_it_was_seen(void **state)
{
	struct vg_cluster_stats stats;
	struct fixture f;

	(void)state;
	full_cluster(&f);
	assert_null(place(&f, fixture_pod(&f, "new", "un", 1, 2000, 10), n12, 2, 3 * S, NULL));
	put_pod(&f, fixture_pod(&f, "new", "un", 1, 2000, 10));
	f.sink.ops->delete_pod(f.sink.ctx, "default", "big1", "u1");
	assert_string_equal(woken(&f, 4 * S), "large small new");
	/* One that is never seen is forgotten. */
	assert_null(place(&f, fixture_pod(&f, "ghost", "ug", 1, 99999, 10), n12, 2, 5 * S, NULL));
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.pods[VG_STATE_PENDING], 4);
	vg_cluster_tick(f.cluster, 305 * S);
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.pods[VG_STATE_PENDING], 3);
	fixture_release(&f);
}

/* What is freed is no card but the namespace's room: on any node. */
static void test_quota_eases(void **state)
{
	struct vg_pod *pod;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_node(&f, "n2", 1);
	put_quota(&f, "default", "q", 5000, VG_QUOTA_NO_LIMIT);
	pod = fixture_bound(&f, "a", "ua", "n1", "GPU-n1-0,NVIDIA,5000,10:;", "success");
	put_pod(&f, pod);
	put_pod(&f, fixture_pod(&f, "b", "ub", 1, 2000, 10));
	assert_null(place(&f, fixture_pod(&f, "b", "ub", 1, 2000, 10), n12, 2, 1 * S, NULL));
	assert_string_equal(woken(&f, 2 * S), "");
	/* Shown again as it is: nothing is freed. */
	put_pod(&f, pod);
	put_quota(&f, "default", "q", 4000, VG_QUOTA_NO_LIMIT);
	assert_string_equal(woken(&f, 3 * S), "");
	/* Cards are free all the time; now the quota has room. n1 is not there any more. */
	put_quota(&f, "default", "q", 7000, VG_QUOTA_NO_LIMIT);
	f.sink.ops->delete_node(f.sink.ctx, "n1");
	assert_string_equal(woken(&f, 4 * S), "b");
	/* In vain: once more for the same reason. */
	assert_string_equal(woken(&f, 6 * S), "b");
	/* It went elsewhere and came back; the quota goes altogether. */
	put_quota(&f, "default", "q", 5000, VG_QUOTA_NO_LIMIT);
	assert_string_equal(woken(&f, 60 * S), "");
	f.sink.ops->delete_quota(f.sink.ctx, "default", "q");
	assert_string_equal(woken(&f, 61 * S), "b");
	fixture_release(&f);

	/* A pod of the namespace ends on a node that the other one may not use: another one will do. */
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_node(&f, "n2", 1);
	put_quota(&f, "default", "q", 5000, VG_QUOTA_NO_LIMIT);
	put_pod(&f, fixture_bound(&f, "a", "ua", "n1", "GPU-n1-0,NVIDIA,5000,10:;", "success"));
	put_pod(&f, fixture_pod(&f, "b", "ub", 1, 2000, 10));
	assert_null(place(&f, fixture_pod(&f, "b", "ub", 1, 2000, 10), n12, 2, 1 * S, NULL));
	assert_string_equal(woken(&f, 2 * S), "");
	f.sink.ops->delete_node(f.sink.ctx, "n1");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "a", "ua");
	assert_string_equal(woken(&f, 3 * S), "b");
	fixture_release(&f);
}

/* The init containers of another pod end. Nothing is freed on a card, since its node is not there. */
static void test_quota_after_init(void **state)
{
	struct vg_container containers[2];
	struct vg_pod *pod;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n2", 1);
	put_quota(&f, "default", "q", 5000, VG_QUOTA_NO_LIMIT);
	pod = fixture_bound(&f, "a", "ua", "n1",
			    "GPU-n1-0,NVIDIA,5000,10:;GPU-n1-0,NVIDIA,1000,10:;", "success");
	containers[0] = pod->containers[0];
	containers[1] = pod->containers[0];
	containers[0].kind = VG_CONTAINER_INIT;
	pod->containers = containers;
	pod->container_count = 2;
	pod->init_count = 1;
	put_pod(&f, pod);
	put_pod(&f, fixture_pod(&f, "b", "ub", 1, 2000, 10));
	assert_null(place(&f, fixture_pod(&f, "b", "ub", 1, 2000, 10), n12, 2, 1 * S, NULL));
	assert_string_equal(woken(&f, 2 * S), "");
	put_pod(&f, pod);
	assert_string_equal(woken(&f, 3 * S), "");
	pod->init_done = true;
	put_pod(&f, pod);
	assert_string_equal(woken(&f, 4 * S), "b");
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deleted_pod_wakes_who_fits),
		cmocka_unit_test(test_only_who_fits),
		cmocka_unit_test(test_ended_pod_and_new_cards),
		cmocka_unit_test(test_woken_in_vain),
		cmocka_unit_test(test_cards_that_return),
		cmocka_unit_test(test_the_rest_has_its_turn),
		cmocka_unit_test(test_refused_before_it_was_seen),
		cmocka_unit_test(test_quota_eases),
		cmocka_unit_test(test_quota_after_init),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
