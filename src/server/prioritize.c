/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /prioritize: in ranked mode, our voice among kube-scheduler's own: a score for each node by the node
 * policy, from how much of its cards is given out. The score of a node does not depend on the others
 * that are asked about, so that our weight against kube-scheduler's plugins means the same every time.
 */
#include <errno.h>
#include <math.h>

#include "server/extender_codec_internal.h"
#include "server/server_internal.h"

/* clang-format off */
#define PRIORITIZE_STEPS \
	STEP(decode) /* bytes from kube-scheduler        -> prioritize->args, request */ \
	STEP(score)  /* what is used of each node        -> prioritize->scores        */ \
	STEP(encode) /* prioritize->scores               -> HostPriorityList JSON     */
/* clang-format on */

/* vg_node_score() of a node that is given out altogether. */
#define FULL_SCORE 30.0f

struct prioritize {
	struct vg_job job;
	struct vg_extender_args args;
	struct vg_request request;
	int *scores;
};

static struct prioritize *prioritize_of(struct vg_job *job)
{
	return (struct prioritize *)job;
}

static enum vg_step_result step_decode(struct vg_job *job)
{
	struct prioritize *prioritize = prioritize_of(job);
	const struct vg_server_options *options = &job->server->options;
	struct vg_span body = { job->request->body, job->request->body_size };
	struct vg_err err = { 0 };
	int r = vg_extender_args_decode(body, options->classes, job->arena, &prioritize->args,
					&err);

	if (r == 0)
		r = vg_request_parse(&prioritize->args.pod, options->classes, &options->policy,
				     job->arena, &prioritize->request, &err);
	if (r == 0 && !prioritize->args.node_names_json.data)
		r = vg_fail(&err, EINVAL,
			    "ExtenderArgs have no NodeNames; the extender stanza needs "
			    "nodeCacheCapable: true");
	if (r == 0)
		return VG_STEP_NEXT;
	vg_server_count(job->server, VG_RESULT_prioritize_error);
	/* kube-scheduler knows no error here but the HTTP status, and goes on without our scores. */
	return vg_job_fail(job, 400, "%s", err.msg);
}

static int priority(enum vg_node_policy policy, float score)
{
	float part = fminf(fmaxf(score / FULL_SCORE, 0.0f), 1.0f);

	if (policy == VG_NODE_SPREAD)
		part = 1.0f - part;
	return (int)lroundf(part * VG_PRIORITY_MAX);
}

static enum vg_step_result step_score(struct vg_job *job)
{
	struct prioritize *prioritize = prioritize_of(job);
	const struct vg_extender_args *args = &prioritize->args;
	enum vg_node_policy policy = prioritize->request.policy.node;
	struct vg_placement placement;
	float *scores;

	prioritize->scores =
		vg_arena_new_array(job->arena, args->node_name_count, sizeof(*prioritize->scores));
	vg_server_count(job->server, VG_RESULT_prioritize_scored);
	/* Nothing to do with cards: no preference. */
	if (!prioritize->request.want_count)
		return VG_STEP_NEXT;
	vg_cluster_rank(job->server->options.cluster, &prioritize->request, args->node_names,
			args->node_name_count, job->arena, &placement, &scores);
	for (size_t i = 0; i < args->node_name_count; i++)
		if (placement.verdicts[i].reason == VG_NODE_FITS)
			prioritize->scores[i] = priority(policy, scores[i]);
	return VG_STEP_NEXT;
}

static enum vg_step_result step_encode(struct vg_job *job)
{
	const struct prioritize *prioritize = prioritize_of(job);

	vg_host_priorities_encode(prioritize->args.node_names, prioritize->scores,
				  prioritize->args.node_name_count, &job->reply);
	return VG_STEP_NEXT;
}

void vg_route_prioritize(void *ctx, struct vg_http_request *request)
{
#define STEP(name) VG_STEP_ROW(name)
	static const struct vg_step steps[] = { PRIORITIZE_STEPS };
#undef STEP
	struct prioritize *prioritize = vg_arena_new(&request->arena, sizeof(*prioritize));

	vg_job_init(&prioritize->job, ctx, request, "prioritize", steps,
		    sizeof(steps) / sizeof(steps[0]));
	vg_job_run(&prioritize->job);
}
