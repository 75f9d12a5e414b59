/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /bind: kube-scheduler wants the pod on the node. Its cards are written together with the binding in
 * one request to the API server; the reply waits for the end of that, and before it perhaps for the
 * node's turn, without holding a thread.
 */
#include <errno.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/extender_codec_internal.h"
#include "server/server_internal.h"

/* clang-format off */
#define BIND_STEPS \
	STEP(decode) /* bytes from kube-scheduler            -> bind->args                    */ \
	STEP(begin)  /* reservation or a new decision        -> bind->call; waits for a turn  */ \
	STEP(post)   /* bind->call, to the API server        -> bind->code; waits for the end */ \
	STEP(end)    /* tell the cluster what became of it   -> bind->error                   */ \
	STEP(encode) /* bind->error                          -> ExtenderBindingResult JSON    */
/* clang-format on */

enum { STEP_INDEX_BEGIN = 1 };

struct bind {
	struct vg_job job;
	struct vg_err err;
	struct vg_binding_args args;
	struct vg_bind_call call;
	int code; /* of the post */
	const char *error;
};

static struct bind *bind_of(struct vg_job *job)
{
	return (struct bind *)job;
}

/* ---- steps ------------------------------------------------------------------------------------ */

static enum vg_step_result step_decode(struct vg_job *job)
{
	struct bind *bind = bind_of(job);
	struct vg_span body = { job->request->body, job->request->body_size };

	if (vg_binding_args_decode(body, job->arena, &bind->args, &bind->err) == 0)
		return VG_STEP_NEXT;
	bind->error = bind->err.msg;
	vg_server_count(job->server, VG_RESULT_bind_error);
	vg_warn("server", "a bind request cannot be read", VG_S("why", bind->error));
	return VG_STEP_LAST;
}

static void fail(struct bind *bind, enum vg_result result, const char *error)
{
	bind->error = vg_arena_strdup(bind->job.arena, error);
	vg_server_count(bind->job.server, result);
	vg_warn("server", "not bound", VG_S("namespace", bind->args.namespace),
		VG_S("pod", bind->args.name), VG_S("uid", bind->args.uid),
		VG_S("node", bind->args.node), VG_S("why", error));
}

/* From any thread: it is our turn, or it will not be. */
static void on_turn(void *ctx, int code, const char *message)
{
	struct bind *bind = ctx;

	if (code < 0) {
		fail(bind, code == -ETIMEDOUT ? VG_RESULT_bind_timed_out : VG_RESULT_bind_failed,
		     message);
		bind->job.next = bind->job.step_count - 1;
	}
	vg_job_run(&bind->job);
}

static enum vg_step_result step_begin(struct vg_job *job)
{
	struct bind *bind = bind_of(job);
	struct vg_bind_args args = {
		.namespace = bind->args.namespace,
		.name = bind->args.name,
		.uid = bind->args.uid,
		.node = bind->args.node,
		.now_ns = vg_clock_mono_ns(),
		.unix_s = vg_clock_unix_s(),
		.turn = on_turn,
		.turn_ctx = bind,
	};
	enum vg_bind_outcome outcome;

	/* When the turn comes, which may be before this call returns, this step is run again. */
	job->next = STEP_INDEX_BEGIN;
	if (vg_cluster_bind_begin(job->server->options.cluster, &args, job->arena, &outcome,
				  &bind->call, &bind->err) < 0) {
		fail(bind, VG_RESULT_bind_refused, bind->err.msg);
		return VG_STEP_LAST;
	}
	if (outcome == VG_BIND_WAITING)
		return VG_STEP_WAIT;
	if (outcome == VG_BIND_DONE) {
		vg_server_count(job->server, VG_RESULT_bind_repeated);
		return VG_STEP_LAST;
	}
	job->next = STEP_INDEX_BEGIN + 1;
	return VG_STEP_NEXT;
}

/* From any thread, perhaps before the post returns. */
static void on_done(void *ctx, int code, const char *message)
{
	struct bind *bind = ctx;

	bind->code = code;
	if (code < 0)
		bind->error = vg_arena_strdup(bind->job.arena, message ? message : "");
	vg_job_run(&bind->job);
}

static enum vg_step_result step_post(struct vg_job *job)
{
	const struct vg_binder *binder = &job->server->options.binder;
	struct bind *bind = bind_of(job);

	binder->bind(binder->ctx, &bind->call, on_done, bind);
	return VG_STEP_WAIT;
}

static enum vg_step_result step_end(struct vg_job *job)
{
	struct bind *bind = bind_of(job);

	vg_cluster_bind_end(job->server->options.cluster, bind->args.uid, bind->code,
			    vg_clock_mono_ns());
	if (bind->code < 0) {
		fail(bind, VG_RESULT_bind_failed, bind->error);
		return VG_STEP_NEXT;
	}
	vg_server_count(job->server, VG_RESULT_bind_bound);
	vg_info("server", "bound", VG_S("namespace", bind->args.namespace),
		VG_S("pod", bind->args.name), VG_S("uid", bind->args.uid),
		VG_S("node", bind->args.node),
		VG_I("ms", (vg_clock_mono_ns() - job->request->received_ns) / VG_NS_PER_MS));
	return VG_STEP_NEXT;
}

static enum vg_step_result step_encode(struct vg_job *job)
{
	struct bind *bind = bind_of(job);

	vg_binding_result_encode(bind->error ? bind->error : "", &job->reply);
	return VG_STEP_NEXT;
}

void vg_route_bind(void *ctx, struct vg_http_request *request)
{
#define STEP(name) VG_STEP_ROW(name)
	static const struct vg_step steps[] = { BIND_STEPS };
#undef STEP
	struct bind *bind = vg_arena_new(&request->arena, sizeof(*bind));

	vg_job_init(&bind->job, ctx, request, "bind", steps, sizeof(steps) / sizeof(steps[0]));
	vg_job_run(&bind->job);
}
