/* SPDX-License-Identifier: Apache-2.0 */
/* Namespaces: which limit counts, what is counted against it, and who asks. */
#include "unit/cluster/cluster_fixture.h"

#include <errno.h>

#include "base/buf.h"

#define NONE VG_QUOTA_NO_LIMIT

static const char *const n1[] = { "n1" };

static void test_tightest_counts(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	assert_string_equal(quotas(&f), "");
	put_quota(&f, "team", "wide", 8000, 200);
	assert_string_equal(quotas(&f), "team=0/8000(wide),0/200(wide)");
	put_quota(&f, "team", "narrow", 5000, NONE);
	assert_string_equal(quotas(&f), "team=0/5000(narrow),0/200(wide)");
	put_quota(&f, "other", "narrow", 1, NONE);
	assert_string_equal(quotas(&f), "other=0/1(narrow),0/- team=0/5000(narrow),0/200(wide)");
	/* One that says the same takes nothing away when it goes. */
	put_quota(&f, "team", "again", 5000, NONE);
	assert_string_equal(quotas(&f), "other=0/1(narrow),0/- team=0/5000(again),0/200(wide)");
	f.sink.ops->delete_quota(f.sink.ctx, "team", "again");
	f.sink.ops->delete_quota(f.sink.ctx, "other", "narrow");
	f.sink.ops->delete_quota(f.sink.ctx, "other", "narrow");
	f.sink.ops->delete_quota(f.sink.ctx, "nobody", "narrow");
	assert_string_equal(quotas(&f), "team=0/5000(narrow),0/200(wide)");
	f.sink.ops->delete_quota(f.sink.ctx, "team", "narrow");
	assert_string_equal(quotas(&f), "team=0/8000(wide),0/200(wide)");
	/* It may be raised, and say less. */
	put_quota(&f, "team", "wide", NONE, 300);
	assert_string_equal(quotas(&f), "team=0/-,0/300(wide)");
	put_quota(&f, "team", "wide", 0, NONE);
	assert_string_equal(quotas(&f), "team=0/0(wide),0/-");
	f.sink.ops->delete_quota(f.sink.ctx, "team", "wide");
	assert_string_equal(quotas(&f), "");
	fixture_release(&f);
}

static void test_list_sweeps(void **state)
{
	struct vg_quota_info old = {
		.namespace = "a", .name = "q1", .uid = "", .resource_version = 5
	};
	struct vg_cluster_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	vg_quota_unlimited(old.hard);
	old.hard[0].mem_mib = 100;
	f.sink.ops->put_quota(f.sink.ctx, &old);
	put_quota(&f, "a", "q2", 200, NONE);
	put_quota(&f, "a", "q3", 300, NONE);
	put_quota(&f, "b", "q4", 400, NONE);
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_QUOTA);
	/* An event from the past changes nothing, and keeps the object. */
	old.hard[0].mem_mib = 1;
	old.resource_version = 4;
	f.sink.ops->put_quota(f.sink.ctx, &old);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_QUOTA);
	assert_string_equal(quotas(&f), "a=0/100(q1),0/-");
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.stale_events, 1);
	assert_int_equal(stats.quotas, 1);
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_QUOTA);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_QUOTA);
	assert_string_equal(quotas(&f), "");
	fixture_release(&f);
}

static void test_problem_is_counted_once(void **state)
{
	struct vg_quota_info quota = { .namespace = "a", .name = "q", .uid = "" };
	struct vg_cluster_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	vg_quota_unlimited(quota.hard);
	quota.problem = "not a number";
	f.sink.ops->put_quota(f.sink.ctx, &quota);
	f.sink.ops->put_quota(f.sink.ctx, &quota);
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.malformed[VG_KIND_QUOTA], 1);
	quota.problem = "another one";
	f.sink.ops->put_quota(f.sink.ctx, &quota);
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.malformed[VG_KIND_QUOTA], 2);
	fixture_release(&f);
}

/* What a pod holds counts from its reservation on, until it holds it no more. */
static void test_used_follows_pods(void **state)
{
	struct vg_pod *pod;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 4);
	put_quota(&f, "default", "q", 10000, 100);
	pod = fixture_pod(&f, "a", "uid-a", 2, 3000, 10);
	assert_non_null(place(&f, pod, n1, 1, 0, NULL));
	assert_string_equal(quotas(&f), "default=6000/10000(q),20/100(q)");
	/* It is decided again: its own reservation does not stand in its way. */
	assert_non_null(place(&f, pod, n1, 1, 0, NULL));
	assert_string_equal(quotas(&f), "default=6000/10000(q),20/100(q)");
	assert_null(place(&f, fixture_pod(&f, "b", "uid-b", 1, 4001, 10), n1, 1, 0, NULL));
	assert_non_null(place(&f, fixture_pod(&f, "c", "uid-c", 1, 4000, 10), n1, 1, 0, NULL));
	assert_string_equal(quotas(&f), "default=10000/10000(q),30/100(q)");
	/* Bound to other cards than were reserved: what counts is what it got. */
	put_pod(&f, fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,1000,5:;", "success"));
	assert_string_equal(quotas(&f), "default=5000/10000(q),15/100(q)");
	/* The reservation lapses. */
	vg_cluster_tick(f.cluster, VG_RESERVATION_NS + 1);
	assert_string_equal(quotas(&f), "default=1000/10000(q),5/100(q)");
	pod = fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,1000,5:;", "success");
	pod->phase = VG_POD_FAILED;
	put_pod(&f, pod);
	assert_string_equal(quotas(&f), "default=0/10000(q),0/100(q)");
	fixture_release(&f);
}

/*
 * Elsewhere the sum is added to when a pod is first seen, and drifts when the pod's entry is replaced: its
 * node is reported anew, its annotation is read again, it is shown twice.
 */
static void test_no_drift(void **state)
{
	static const char want[] = "default=3000/10000(q),30/-";
	struct vg_pod *pod;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	put_quota(&f, "default", "q", 10000, NONE);
	pod = fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,3000,30:;", "allocating");
	put_pod(&f, pod);
	assert_string_equal(quotas(&f), want);
	put_pod(&f, pod);
	put_node(&f, "n1", 1);
	put_node(&f, "n1", 2);
	f.sink.ops->delete_node(f.sink.ctx, "n1");
	assert_string_equal(quotas(&f), want);
	put_node(&f, "n1", 2);
	assert_string_equal(quotas(&f), want);
	pod->annotations.value[VG_ANNO_POD_ALLOCATED] = "GPU-n1-1,NVIDIA,4000,40:;";
	put_pod(&f, pod);
	assert_string_equal(quotas(&f), "default=4000/10000(q),40/-");
	/* Annotations that cannot be read hold nothing, on cards and here. */
	pod->annotations.value[VG_ANNO_POD_ALLOCATED] = "GPU-n1-1,NVIDIA,x,40:;";
	put_pod(&f, pod);
	assert_string_equal(quotas(&f), "default=0/10000(q),0/-");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "a", "uid-a");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "a", "uid-a");
	assert_string_equal(quotas(&f), "default=0/10000(q),0/-");
	/* A bind that fails gives everything back. */
	assert_non_null(place(&f, fixture_pod(&f, "b", "uid-b", 1, 3000, 30), n1, 1, 0, NULL));
	assert_string_equal(quotas(&f), want);
	vg_cluster_bind_end(f.cluster, "uid-b", -EINVAL, 0);
	assert_string_equal(quotas(&f), want); /* it was not being bound */
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_POD);
	put_pod(&f, fixture_pod(&f, "b", "uid-b", 1, 3000, 30));
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_POD);
	assert_string_equal(quotas(&f), want);
	fixture_release(&f);
}

static void test_init_containers_are_released(void **state)
{
	struct vg_container containers[3];
	struct vg_pod *pod;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	put_quota(&f, "default", "q", 10000, NONE);
	pod = fixture_bound(&f, "a", "uid-a", "n1",
			    "GPU-n1-0,NVIDIA,7000,30:;GPU-n1-1,NVIDIA,2000,50:;"
			    "GPU-n1-1,NVIDIA,3000,20:;",
			    "success");
	for (size_t i = 0; i < 3; i++)
		containers[i] = pod->containers[0];
	containers[0].kind = VG_CONTAINER_INIT;
	pod->containers = containers;
	pod->container_count = 3;
	pod->init_count = 1;
	put_pod(&f, pod);
	/* On the cards 7000 and 5000, but never both at a time. */
	assert_string_equal(usage(&f), "GPU-n1-0=7000/30/1 GPU-n1-1=5000/70/2");
	assert_string_equal(quotas(&f), "default=7000/10000(q),70/-");
	pod->init_done = true;
	put_pod(&f, pod);
	assert_string_equal(quotas(&f), "default=5000/10000(q),70/-");
	fixture_release(&f);
}

static const char *verdict(struct fixture *f, const struct vg_placement *placement)
{
	struct vg_buf buf;
	const char *text;

	vg_buf_init(&buf, 512);
	vg_verdict_text(&placement->verdicts[0], &buf);
	text = vg_arena_printf(&f->arena, "%s%s",
			       vg_verdict_curable(&placement->verdicts[0]) ? "+" : "-", buf.data);
	vg_buf_release(&buf);
	return text;
}

static void test_who_is_limited(void **state)
{
	struct vg_placement placement;
	struct vg_pod *pod;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_quota(&f, "default", "q", 5000, NONE);
	put_pod(&f, fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,3000,5:;", "success"));
	assert_null(place(&f, fixture_pod(&f, "b", "uid-b", 1, 3000, 5), n1, 1, 0, &placement));
	assert_string_equal(verdict(&f, &placement), "+1/1 ResourceQuotaNotFit");
	assert_null(place(&f, fixture_pod(&f, "b", "uid-b", 1, 5001, 5), n1, 1, 0, &placement));
	assert_string_equal(verdict(&f, &placement), "-1/1 ResourceQuotaNotFit");
	/* Another namespace is free to take the rest of the card. */
	pod = fixture_pod(&f, "b", "uid-c", 1, 7000, 5);
	pod->namespace = "free";
	assert_non_null(place(&f, pod, n1, 1, 0, NULL));
	assert_string_equal(quotas(&f), "default=3000/5000(q),5/- free=7000/-,5/-");
	/* A bound pod is asked about again: as if it were not there, and nothing changes. */
	assert_non_null(place(&f, fixture_pod(&f, "a", "uid-a", 1, 3000, 5), n1, 1, 0, NULL));
	assert_null(place(&f, fixture_pod(&f, "a", "uid-a", 1, 5001, 5), n1, 1, 0, NULL));
	assert_string_equal(quotas(&f), "default=3000/5000(q),5/- free=7000/-,5/-");
	fixture_release(&f);
}

static bool simulate(struct fixture *f, const struct vg_pod *pod)
{
	struct vg_placement placement;
	struct vg_request request;
	struct vg_policy policy;

	vg_policy_parse("binpack", "spread", &policy);
	assert_int_equal(vg_request_parse(pod, &f->classes, &policy, &f->arena, &request, NULL), 0);
	vg_cluster_simulate(f->cluster, &request, fixture_node(f, "new", 1), 1, &f->arena,
			    &placement);
	return placement.found;
}

/* Ranked mode: the nodes that fit, before anything is reserved. */
static void test_ranked(void **state)
{
	struct vg_placement placement;
	struct vg_request request;
	struct vg_policy policy;
	struct fixture f;
	float *scores;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_quota(&f, "default", "q", 5000, NONE);
	vg_policy_parse("binpack", "spread", &policy);
	for (int mem = 5000; mem <= 5001; mem++) {
		const struct vg_pod *pod = fixture_pod(&f, "a", "uid-a", 1, mem, 1);

		assert_int_equal(
			vg_request_parse(pod, &f.classes, &policy, &f.arena, &request, NULL), 0);
		vg_cluster_rank(f.cluster, &request, n1, 1, &f.arena, &placement, &scores);
		assert_int_equal(placement.found, mem == 5000);
	}
	assert_string_equal(quotas(&f), "default=0/5000(q),0/-");
	fixture_release(&f);
}

static void test_simulation(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_quota(&f, "default", "q", 5000, NONE);
	put_pod(&f, fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,3000,5:;", "success"));
	assert_false(simulate(&f, fixture_pod(&f, "b", "uid-b", 1, 2001, 5)));
	assert_true(simulate(&f, fixture_pod(&f, "b", "uid-b", 1, 2000, 5)));
	assert_true(simulate(&f, fixture_pod(&f, "a", "uid-a", 1, 5000, 5)));
	assert_string_equal(quotas(&f), "default=3000/5000(q),5/-");
	fixture_release(&f);
}

static int bind(struct fixture *f, const char *name, const char *uid, struct vg_err *err)
{
	struct vg_bind_args args = {
		.namespace = "default", .name = name, .uid = uid, .node = "n1", .now_ns = 1
	};
	enum vg_bind_outcome outcome;
	struct vg_bind_call call;

	return vg_cluster_bind_begin(f->cluster, &args, &f->arena, &outcome, &call, err);
}

/* The reservation is lost: bind decides again, and the quota counts there as well. */
static void test_late_decision(void **state)
{
	struct vg_err err = { 0 };
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	put_quota(&f, "default", "q", 5000, NONE);
	put_pod(&f, fixture_pod(&f, "a", "uid-a", 1, 3000, 5));
	put_pod(&f, fixture_pod(&f, "b", "uid-b", 1, 3000, 5));
	assert_int_equal(bind(&f, "a", "uid-a", &err), 0);
	assert_string_equal(quotas(&f), "default=3000/5000(q),5/-");
	assert_int_equal(bind(&f, "b", "uid-b", &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "2/2 ResourceQuotaNotFit"));
	assert_string_equal(quotas(&f), "default=3000/5000(q),5/-");
	/* Refused by the API server: everything is given back, and the other one fits. */
	vg_cluster_bind_end(f.cluster, "uid-a", -EINVAL, 2);
	assert_string_equal(quotas(&f), "default=0/5000(q),0/-");
	assert_int_equal(bind(&f, "b", "uid-b", &err), 0);
	assert_string_equal(quotas(&f), "default=3000/5000(q),5/-");
	fixture_release(&f);
}

static void test_forbidden(void **state)
{
	int64_t late_ns = vg_clock_mono_ns() + 1000000000000LL;
	struct vg_cluster_stats stats;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	for (int kind = 0; kind < VG_KIND_QUOTA; kind++) {
		f.sink.ops->list_begin(f.sink.ctx, (enum vg_kind)kind);
		f.sink.ops->list_end(f.sink.ctx, (enum vg_kind)kind);
	}
	assert_false(vg_cluster_ready(f.cluster, late_ns, NULL));
	f.sink.ops->forbidden(f.sink.ctx, VG_KIND_QUOTA);
	assert_true(vg_cluster_ready(f.cluster, late_ns, NULL));
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_true(stats.forbidden[VG_KIND_QUOTA]);
	assert_false(stats.forbidden[VG_KIND_POD]);
	assert_true(look(&f, 0).quotas_forbidden);
	/* It is allowed after all: now the list counts. */
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_QUOTA);
	put_quota(&f, "default", "q", 5000, NONE);
	assert_false(vg_cluster_ready(f.cluster, late_ns, NULL));
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_QUOTA);
	assert_true(vg_cluster_ready(f.cluster, late_ns, NULL));
	assert_false(look(&f, 0).quotas_forbidden);
	/* And taken back: what is known stays, since the same happens when an API server starts. */
	f.sink.ops->forbidden(f.sink.ctx, VG_KIND_QUOTA);
	assert_true(vg_cluster_ready(f.cluster, late_ns, NULL));
	assert_string_equal(quotas(&f), "default=0/5000(q),0/-");
	fixture_release(&f);
}

/* As /explain and the webhook look at it. */
static void test_looking(void **state)
{
	struct vg_copy_args args = { .namespace = "default", .without_uid = "uid-a" };
	struct vg_space_copy space;
	struct vg_cluster_copy copy;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_pod(&f, fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,3000,5:;", "success"));
	put_pod(&f, fixture_bound(&f, "b", "uid-b", "n1", "GPU-n1-0,NVIDIA,500,5:;", "success"));
	assert_false(vg_cluster_space(f.cluster, "default", &f.arena, &space));
	vg_cluster_copy(f.cluster, &args, 0, &f.arena, &copy);
	assert_null(copy.quota);
	assert_int_equal(copy.space_count, 0);
	put_quota(&f, "default", "q", 5000, NONE);
	assert_true(vg_cluster_space(f.cluster, "default", &f.arena, &space));
	assert_int_equal(space.quota.used[0].mem_mib, 3500);
	assert_string_equal(space.mem_by[0], "q");
	assert_false(vg_cluster_space(f.cluster, "other", &f.arena, &space));
	vg_cluster_copy(f.cluster, &args, 0, &f.arena, &copy);
	assert_int_equal(copy.quota->quota.used[0].mem_mib, 500);
	assert_int_equal(copy.quota->quota.hard[0].mem_mib, 5000);
	assert_string_equal(copy.quota->mem_by[0], "q");
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tightest_counts),
		cmocka_unit_test(test_list_sweeps),
		cmocka_unit_test(test_problem_is_counted_once),
		cmocka_unit_test(test_used_follows_pods),
		cmocka_unit_test(test_no_drift),
		cmocka_unit_test(test_init_containers_are_released),
		cmocka_unit_test(test_who_is_limited),
		cmocka_unit_test(test_ranked),
		cmocka_unit_test(test_simulation),
		cmocka_unit_test(test_late_decision),
		cmocka_unit_test(test_forbidden),
		cmocka_unit_test(test_looking),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
