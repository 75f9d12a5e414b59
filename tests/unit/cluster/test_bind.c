/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations, binds, and turns at a node. */
#include "unit/cluster/cluster_fixture.h"

#include <errno.h>

#define S VG_NS_PER_S

static const char *const n1[] = { "n1" };
static const char *const n12[] = { "n1", "n2" };

struct turn {
	int calls;
	int code;
	char message[256];
};

static void on_turn(void *ctx, int code, const char *message)
{
	struct turn *turn = ctx;

	turn->calls++;
	turn->code = code;
	vg_copy(turn->message, sizeof(turn->message), message);
}

static int begin(struct fixture *f, const char *name, const char *uid, const char *node,
		 int64_t now_ns, struct turn *turn, enum vg_bind_outcome *ret_outcome,
		 struct vg_bind_call *ret_call, struct vg_err *err)
{
	struct vg_bind_args args = {
		.namespace = "default",
		.name = name,
		.uid = uid,
		.node = node,
		.now_ns = now_ns,
		.unix_s = 1755756040,
		.turn = on_turn,
		.turn_ctx = turn,
	};

	return vg_cluster_bind_begin(f->cluster, &args, &f->arena, ret_outcome, ret_call, err);
}

static const char *annotation(const struct vg_bind_call *call, const char *key)
{
	for (size_t i = 0; i < call->annotation_count; i++)
		if (vg_streq(call->annotations[i].key, key))
			return call->annotations[i].value;
	return NULL;
}

static void test_reservation_counts_at_once(void **state)
{
	struct fixture f;
	struct vg_pod *a, *b;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	a = fixture_pod(&f, "a", "uid-a", 1, 6000, 30);
	b = fixture_pod(&f, "b", "uid-b", 1, 6000, 30);
	assert_string_equal(place(&f, a, n1, 1, 1 * S, NULL), "n1");
	assert_null(place(&f, b, n1, 1, 2 * S, NULL));
	/* Filtered again: replaced, not added. */
	assert_string_equal(place(&f, a, n1, 1, 3 * S, NULL), "n1");
	assert_string_equal(usage(&f), "GPU-n1-0=6000/30/1");
	/* It lapses 300 s after the last filter. */
	vg_cluster_tick(f.cluster, 302 * S);
	assert_string_equal(usage(&f), "GPU-n1-0=6000/30/1");
	vg_cluster_tick(f.cluster, 303 * S);
	assert_string_equal(usage(&f), "");
	assert_string_equal(place(&f, b, n1, 1, 304 * S, NULL), "n1");
	fixture_release(&f);
}

static void test_reservation_ends_with_its_pod(void **state)
{
	struct fixture f;
	struct vg_pod *a;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	a = fixture_pod(&f, "a", "uid-a", 1, 6000, 30);
	put_pod(&f, a);
	assert_string_equal(place(&f, a, n1, 1, 1 * S, NULL), "n1");
	/* An event from before the decision does not end it. */
	put_pod(&f, a);
	assert_string_equal(usage(&f), "GPU-n1-0=6000/30/1");
	f.sink.ops->delete_pod(f.sink.ctx, "default", "a", "uid-a");
	assert_string_equal(usage(&f), "");
	/* A list that lacks the pod ends it as well. */
	put_pod(&f, a);
	assert_string_equal(place(&f, a, n1, 1, 1 * S, NULL), "n1");
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_POD);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_POD);
	assert_string_equal(usage(&f), "");
	/* But not one of a pod that only a request has shown so far. */
	assert_string_equal(place(&f, a, n1, 1, 1 * S, NULL), "n1");
	f.sink.ops->list_begin(f.sink.ctx, VG_KIND_POD);
	f.sink.ops->list_end(f.sink.ctx, VG_KIND_POD);
	assert_string_equal(usage(&f), "GPU-n1-0=6000/30/1");
	fixture_release(&f);
}

static void test_a_request_cannot_end_a_strangers_allocation(void **state)
{
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 2);
	put_pod(&f,
		fixture_bound(&f, "a", "uid-real", "n1", "GPU-n1-0,NVIDIA,9000,90:;", "success"));
	place(&f, fixture_pod(&f, "a", "uid-old", 1, 2000, 10), n1, 1, 1 * S, NULL);
	assert_string_equal(usage(&f), "GPU-n1-0=9000/90/1 GPU-n1-1=2000/10/1");
	fixture_release(&f);
}

static void test_bind_writes_the_reservation(void **state)
{
	enum vg_bind_outcome outcome;
	struct vg_bind_call call;
	struct fixture f;
	struct vg_pod *a;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	a = fixture_pod(&f, "a", "uid-a", 1, 3000, 30);
	place(&f, a, n1, 1, 1 * S, NULL);
	assert_int_equal(begin(&f, "a", "uid-a", "n1", 2 * S, NULL, &outcome, &call, NULL), 0);
	assert_int_equal(outcome, VG_BIND_POST);
	assert_string_equal(call.namespace, "default");
	assert_string_equal(call.uid, "uid-a");
	assert_string_equal(call.node, "n1");
	assert_int_equal(call.annotation_count, 6);
	assert_string_equal(annotation(&call, "hami.io/vgpu-node"), "n1");
	assert_string_equal(annotation(&call, "hami.io/bind-phase"), "allocating");
	assert_string_equal(annotation(&call, "hami.io/bind-time"), "1755756040");
	assert_string_equal(annotation(&call, "hami.io/vgpu-devices-allocated"),
			    "GPU-n1-0,NVIDIA,3000,30:;");
	assert_string_equal(annotation(&call, "hami.io/vgpu-devices-to-allocate"),
			    "GPU-n1-0,NVIDIA,3000,30:;");
	assert_non_null(annotation(&call, "hami.io/vgpu-time"));
	/* A second request while the first is under way. */
	assert_int_equal(begin(&f, "a", "uid-a", "n1", 2 * S, NULL, &outcome, &call, NULL), -EBUSY);
	vg_cluster_bind_end(f.cluster, "uid-a", 0, 3 * S);
	/* A repeat after success. */
	assert_int_equal(begin(&f, "a", "uid-a", "n1", 4 * S, NULL, &outcome, &call, NULL), 0);
	assert_int_equal(outcome, VG_BIND_DONE);
	assert_int_equal(begin(&f, "a", "uid-a", "n2", 4 * S, NULL, &outcome, &call, NULL),
			 -EEXIST);
	/* Bound does not lapse. */
	vg_cluster_tick(f.cluster, 9999 * S);
	assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
	fixture_release(&f);
}

static void test_bind_failures(void **state)
{
	enum vg_bind_outcome outcome;
	struct vg_bind_call call;
	struct vg_err err;
	struct fixture f;
	struct vg_pod *a;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	a = fixture_pod(&f, "a", "uid-a", 1, 3000, 30);
	put_pod(&f, a);
	assert_int_equal(begin(&f, "a", "uid-x", "n1", S, NULL, &outcome, &call, &err), -ENOENT);
	assert_int_equal(begin(&f, "b", "uid-a", "n1", S, NULL, &outcome, &call, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "default/a"));
	assert_int_equal(begin(&f, "a", "uid-a", "n9", S, NULL, &outcome, &call, &err), -ENOENT);
	/* Refused by the API server: the cards are free at once. */
	place(&f, a, n1, 1, 1 * S, NULL);
	assert_int_equal(begin(&f, "a", "uid-a", "n1", S, NULL, &outcome, &call, &err), 0);
	vg_cluster_bind_end(f.cluster, "uid-a", -EEXIST, 2 * S);
	assert_string_equal(usage(&f), "");
	/* Unknown outcome: held until the source tells or the time is over. */
	place(&f, a, n1, 1, 1 * S, NULL);
	assert_int_equal(begin(&f, "a", "uid-a", "n1", S, NULL, &outcome, &call, &err), 0);
	vg_cluster_bind_end(f.cluster, "uid-a", -ETIMEDOUT, 2 * S);
	assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
	vg_cluster_tick(f.cluster, 303 * S);
	assert_string_equal(usage(&f), "");
	fixture_release(&f);
}

/* The API server did not answer: perhaps the pod is bound, and its Allocate is to come. */
static void test_unknown_end_keeps_the_turn(void **state)
{
	int64_t t0 = vg_clock_mono_ns();
	enum vg_bind_outcome outcome;
	struct turn turn = { 0 };
	struct vg_bind_call call;
	struct vg_err err = { 0 };
	struct fixture f;
	struct vg_pod *p;

	(void)state;
	fixture_init(&f, true);
	put_node(&f, "n1", 1);
	put_node(&f, "n2", 1);
	p = fixture_pod(&f, "p", "up", 1, 1000, 10);
	put_pod(&f, p);
	put_pod(&f, fixture_pod(&f, "q", "uq", 1, 1000, 10));
	place(&f, p, n1, 1, t0, NULL);
	assert_int_equal(begin(&f, "p", "up", "n1", t0, NULL, &outcome, &call, NULL), 0);
	vg_cluster_bind_end(f.cluster, "up", -ETIMEDOUT, t0 + S);
	/* The next pod waits. */
	assert_int_equal(begin(&f, "q", "uq", "n1", t0 + 2 * S, &turn, &outcome, &call, NULL), 0);
	assert_int_equal(outcome, VG_BIND_WAITING);
	vg_cluster_tick(f.cluster, t0 + 3 * S);
	assert_int_equal(turn.calls, 0);
	/* Filtered again: nothing is moved. Bound elsewhere: refused. The same again: sent. */
	place(&f, p, n12, 2, t0 + 3 * S, NULL);
	assert_string_equal(usage(&f), "GPU-n1-0=1000/10/1");
	assert_int_equal(begin(&f, "p", "up", "n2", t0 + 3 * S, NULL, &outcome, &call, &err),
			 -EBUSY);
	assert_non_null(strstr(err.msg, "n1"));
	assert_int_equal(begin(&f, "p", "up", "n1", t0 + 4 * S, NULL, &outcome, &call, NULL), 0);
	assert_int_equal(outcome, VG_BIND_POST);
	vg_cluster_bind_end(f.cluster, "up", -ETIMEDOUT, t0 + 5 * S);
	/* The watch tells: bound and allocated. */
	put_pod(&f, fixture_bound(&f, "p", "up", "n1", "GPU-n1-0,NVIDIA,1000,10:;", "success"));
	assert_int_equal(turn.calls, 1);
	assert_int_equal(turn.code, 0);
	fixture_release(&f);
}

/* Nobody ever tells: the turn ends first, then the reservation. */
static void test_unknown_end_lapses(void **state)
{
	int64_t t0 = vg_clock_mono_ns();
	enum vg_bind_outcome outcome;
	struct turn turn = { 0 };
	struct vg_bind_call call;
	struct fixture f;
	struct vg_pod *p;

	(void)state;
	fixture_init(&f, true);
	put_node(&f, "n1", 1);
	p = fixture_pod(&f, "p", "up", 1, 1000, 10);
	put_pod(&f, p);
	put_pod(&f, fixture_pod(&f, "q", "uq", 1, 1000, 10));
	place(&f, p, n1, 1, t0, NULL);
	assert_int_equal(begin(&f, "p", "up", "n1", t0, NULL, &outcome, &call, NULL), 0);
	vg_cluster_bind_end(f.cluster, "up", -ECANCELED, t0 + S);
	assert_int_equal(begin(&f, "q", "uq", "n1", t0 + 59 * S, &turn, &outcome, &call, NULL), 0);
	assert_int_equal(outcome, VG_BIND_WAITING);
	vg_cluster_tick(f.cluster, t0 + 62 * S);
	assert_int_equal(turn.calls, 1);
	assert_int_equal(turn.code, 0);
	assert_string_equal(usage(&f), "GPU-n1-0=1000/10/1");
	vg_cluster_tick(f.cluster, t0 + 302 * S);
	assert_string_equal(usage(&f), "");
	fixture_release(&f);
}

static void test_lost_reservation_is_decided_again(void **state)
{
	enum vg_bind_outcome outcome;
	struct vg_cluster_stats stats;
	struct vg_bind_call call;
	struct vg_err err = { 0 };
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_node(&f, "n2", 1);
	put_pod(&f, fixture_pod(&f, "a", "uid-a", 1, 6000, 30));
	put_pod(&f, fixture_pod(&f, "b", "uid-b", 1, 6000, 30));
	/* As after a restart: no filter was seen. */
	assert_int_equal(begin(&f, "a", "uid-a", "n2", S, NULL, &outcome, &call, &err), 0);
	assert_int_equal(outcome, VG_BIND_POST);
	assert_string_equal(annotation(&call, "hami.io/vgpu-devices-allocated"),
			    "GPU-n2-0,NVIDIA,6000,30:;");
	vg_cluster_stats(f.cluster, 0, &stats);
	assert_int_equal(stats.decided_at_bind, 1);
	/* And when it does not fit any more, the reasons are in the error. */
	assert_int_equal(begin(&f, "b", "uid-b", "n2", S, NULL, &outcome, &call, &err), -ENOSPC);
	assert_non_null(strstr(err.msg, "1/1 CardInsufficientMemory"));
	/* Reserved on one node, bound to another. */
	assert_string_equal(place(&f, fixture_pod(&f, "b", "uid-b", 1, 6000, 30), n12, 2, S, NULL),
			    "n1");
	vg_cluster_bind_end(f.cluster, "uid-a", -EEXIST, 2 * S);
	assert_int_equal(begin(&f, "b", "uid-b", "n2", S, NULL, &outcome, &call, &err), 0);
	assert_string_equal(usage(&f), "GPU-n2-0=6000/30/1");
	fixture_release(&f);
}

static void test_turns_at_a_node(void **state)
{
	struct turn turn[4] = { 0 };
	enum vg_bind_outcome outcome;
	struct vg_bind_call call;
	struct vg_err err = { 0 };
	struct fixture f;
	const char *names[] = { "p0", "p1", "p2", "p3" };
	const char *uids[] = { "u0", "u1", "u2", "u3" };
	/* The sink reads the real clock. */
	int64_t t0 = vg_clock_mono_ns();

	(void)state;
	fixture_init(&f, true);
	put_node(&f, "n1", 1);
	for (int i = 0; i < 4; i++) {
		struct vg_pod *pod = fixture_pod(&f, names[i], uids[i], 1, 1000, 10);

		put_pod(&f, pod);
		assert_string_equal(place(&f, pod, n1, 1, t0 + S, NULL), "n1");
		assert_int_equal(
			begin(&f, names[i], uids[i], "n1", t0 + S, &turn[i], &outcome, &call, &err),
			0);
		assert_int_equal(outcome, i == 0 ? VG_BIND_POST : VG_BIND_WAITING);
	}
	vg_cluster_bind_end(f.cluster, "u0", 0, t0 + 2 * S);
	assert_int_equal(turn[1].calls, 0); /* bound, but not acknowledged yet */
	put_pod(&f, fixture_bound(&f, "p0", "u0", "n1", "GPU-n1-0,NVIDIA,1000,10:;", "allocating"));
	assert_int_equal(turn[1].calls, 0);
	put_pod(&f, fixture_bound(&f, "p0", "u0", "n1", "GPU-n1-0,NVIDIA,1000,10:;", "success"));
	assert_int_equal(turn[1].calls, 1);
	assert_int_equal(turn[1].code, 0);
	assert_int_equal(turn[2].calls, 0); /* one at a time, in order */
	/* A newcomer may not slip in before the one whose turn it is. */
	put_pod(&f, fixture_pod(&f, "new", "un", 1, 1000, 10));
	assert_int_equal(begin(&f, "new", "un", "n1", t0 + 2 * S, &turn[0], &outcome, &call, &err),
			 0);
	assert_int_equal(outcome, VG_BIND_WAITING);
	assert_int_equal(begin(&f, "p1", "u1", "n1", t0 + 2 * S, &turn[1], &outcome, &call, &err),
			 0);
	assert_int_equal(outcome, VG_BIND_POST);
	/* It fails: the next one is let in. */
	vg_cluster_bind_end(f.cluster, "u1", -EEXIST, t0 + 3 * S);
	assert_int_equal(turn[2].calls, 1);
	/* That one is deleted before it begins: the next one is let in. */
	f.sink.ops->delete_pod(f.sink.ctx, "default", "p2", "u2");
	assert_int_equal(turn[3].calls, 1);
	assert_int_equal(begin(&f, "p3", "u3", "n1", t0 + 3 * S, &turn[3], &outcome, &call, &err),
			 0);
	assert_int_equal(outcome, VG_BIND_POST);
	vg_cluster_bind_end(f.cluster, "u3", 0, t0 + 3 * S);
	/* Nobody acknowledges: the wait ends with the name of the pod that was waited for. */
	vg_cluster_tick(f.cluster, t0 + 28 * S);
	assert_int_equal(turn[0].calls, 1);
	assert_int_equal(turn[0].code, -ETIMEDOUT);
	assert_non_null(strstr(turn[0].message, "default/p3"));
	fixture_release(&f);
}

static void test_deleted_while_waiting_and_turn_lapse(void **state)
{
	struct turn turn[3] = { 0 };
	enum vg_bind_outcome outcome;
	struct vg_bind_call call;
	struct fixture f;

	(void)state;
	fixture_init(&f, true);
	put_node(&f, "n1", 1);
	put_pod(&f, fixture_bound(&f, "p0", "u0", "n1", "GPU-n1-0,NVIDIA,1000,10:;", "allocating"));
	put_pod(&f, fixture_pod(&f, "p1", "u1", 1, 1000, 10));
	put_pod(&f, fixture_pod(&f, "p2", "u2", 1, 1000, 10));
	begin(&f, "p1", "u1", "n1", vg_clock_mono_ns(), &turn[1], &outcome, &call, NULL);
	assert_int_equal(outcome, VG_BIND_WAITING);
	f.sink.ops->delete_pod(f.sink.ctx, "default", "p1", "u1");
	assert_int_equal(turn[1].calls, 1);
	assert_int_equal(turn[1].code, -ENOENT);
	/* 60 s without an acknowledgement: it no longer keeps others waiting. */
	begin(&f, "p2", "u2", "n1", vg_clock_mono_ns() + 59 * S, &turn[2], &outcome, &call, NULL);
	assert_int_equal(outcome, VG_BIND_WAITING);
	vg_cluster_tick(f.cluster, vg_clock_mono_ns() + 61 * S);
	assert_int_equal(turn[2].calls, 1);
	assert_int_equal(turn[2].code, 0);
	fixture_release(&f);
}

/* Nobody knows whether it was written: its cards stay taken until the source tells. */
static void test_unknown_ends_keep_the_cards(void **state)
{
	static const int codes[] = { -ETIMEDOUT, -ECANCELED };
	enum vg_bind_outcome outcome;
	struct vg_bind_call call;
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		fixture_init(&f, true);
		put_node(&f, "n1", 1);
		place(&f, fixture_pod(&f, "a", "uid-a", 1, 3000, 30), n1, 1, 1 * S, NULL);
		begin(&f, "a", "uid-a", "n1", 2 * S, NULL, &outcome, &call, NULL);
		vg_cluster_bind_end(f.cluster, "uid-a", codes[i], 3 * S);
		assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
		vg_cluster_tick(f.cluster, 302 * S);
		assert_string_equal(usage(&f), "GPU-n1-0=3000/30/1");
		vg_cluster_tick(f.cluster, 303 * S);
		assert_string_equal(usage(&f), "");
		fixture_release(&f);
	}
}

/* A gang may come late to its binds, and has to wait for its turn all the same. */
static void test_no_lapse_while_waiting(void **state)
{
	enum vg_bind_outcome outcome;
	struct vg_bind_call call;
	struct turn turn = { 0 };
	struct fixture f;

	(void)state;
	fixture_init(&f, true);
	put_node(&f, "n1", 1);
	place(&f, fixture_pod(&f, "a", "uid-a", 1, 3000, 30), n1, 1, 1 * S, NULL);
	place(&f, fixture_pod(&f, "b", "uid-b", 1, 6000, 30), n1, 1, 1 * S, NULL);
	assert_int_equal(begin(&f, "a", "uid-a", "n1", 295 * S, NULL, &outcome, &call, NULL), 0);
	assert_int_equal(begin(&f, "b", "uid-b", "n1", 296 * S, &turn, &outcome, &call, NULL), 0);
	assert_int_equal(outcome, VG_BIND_WAITING);
	vg_cluster_tick(f.cluster, 302 * S);
	assert_int_equal(turn.calls, 0);
	assert_string_equal(usage(&f), "GPU-n1-0=9000/60/2");
	/* Its turn came, and it is about to begin. */
	vg_cluster_bind_end(f.cluster, "uid-a", -EINVAL, 303 * S);
	assert_int_equal(turn.calls, 1);
	vg_cluster_tick(f.cluster, 304 * S);
	assert_int_equal(begin(&f, "b", "uid-b", "n1", 304 * S, &turn, &outcome, &call, NULL), 0);
	assert_int_equal(outcome, VG_BIND_POST);
	assert_string_equal(usage(&f), "GPU-n1-0=6000/30/1");
	fixture_release(&f);
}

static void test_simulation_has_no_effect(void **state)
{
	struct vg_node_info *nodes;
	struct vg_placement placement;
	struct vg_request request;
	struct vg_policy policy;
	struct fixture f;

	(void)state;
	fixture_init(&f, false);
	put_node(&f, "n1", 1);
	put_pod(&f, fixture_bound(&f, "a", "uid-a", "n1", "GPU-n1-0,NVIDIA,6000,30:;", "success"));
	vg_policy_parse("binpack", "spread", &policy);
	assert_int_equal(vg_request_parse(fixture_pod(&f, "b", "uid-b", 1, 6000, 30), &f.classes,
					  &policy, &f.arena, &request, NULL),
			 0);
	/* Usage is carried for the node that we know, and a node that we don't know is empty. */
	nodes = vg_arena_new_array(&f.arena, 2, sizeof(*nodes));
	nodes[0] = *fixture_node(&f, "n1", 1);
	nodes[1] = *fixture_node(&f, "new", 1);
	vg_cluster_simulate(f.cluster, &request, nodes, 2, &f.arena, &placement);
	assert_true(placement.found);
	assert_int_equal(placement.candidate, 1);
	assert_string_equal(usage(&f), "GPU-n1-0=6000/30/1");
	vg_cluster_simulate(f.cluster, &request, nodes, 1, &f.arena, &placement);
	assert_false(placement.found);
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reservation_counts_at_once),
		cmocka_unit_test(test_reservation_ends_with_its_pod),
		cmocka_unit_test(test_a_request_cannot_end_a_strangers_allocation),
		cmocka_unit_test(test_bind_writes_the_reservation),
		cmocka_unit_test(test_bind_failures),
		cmocka_unit_test(test_unknown_end_keeps_the_turn),
		cmocka_unit_test(test_unknown_end_lapses),
		cmocka_unit_test(test_lost_reservation_is_decided_again),
		cmocka_unit_test(test_turns_at_a_node),
		cmocka_unit_test(test_deleted_while_waiting_and_turn_lapse),
		cmocka_unit_test(test_unknown_ends_keep_the_cards),
		cmocka_unit_test(test_no_lapse_while_waiting),
		cmocka_unit_test(test_simulation_has_no_effect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
