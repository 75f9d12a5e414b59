/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /explain: where would this pod go, and why not elsewhere? The same decision as filter's, on a copy
 * of the cluster, with every check of every card; nothing is reserved.
 *
 * The body is a v1.Pod, tried on all nodes, or what kube-scheduler sends to filter. ?node=NAME,… asks
 * about these nodes alone, ?limit=N shows so many nodes with their checks (the rest is counted by reason).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "server/explain_codec_internal.h"
#include "server/extender_codec_internal.h"
#include "server/server_internal.h"

/* clang-format off */
#define EXPLAIN_STEPS \
	STEP(decode)     /* body and query                   -> question->pod, names */ \
	STEP(understand) /* resources and annotations        -> question->request    */ \
	STEP(copy)       /* nodes as if the pod were not there -> question->copy     */ \
	STEP(decide)     /* on every candidate               -> question->decision   */ \
	STEP(select)     /* the best ones and the losers     -> answer.shown         */ \
	STEP(encode)     /* question->answer                 -> JSON                 */
/* clang-format on */

#define SHOWN_DEFAULT 50

struct question {
	struct vg_job job;
	struct vg_err err;
	struct vg_pod pod;
	struct vg_request request;
	const char *const *names; /* NULL: all nodes */
	size_t name_count;
	size_t limit;
	struct vg_cluster_copy copy;
	struct vg_decision decision;
	struct vg_explain answer;
	char not_ready[VG_READY_REASON_BYTES];
};

static struct question *question_of(struct vg_job *job)
{
	return (struct question *)job;
}

/* ---- decode ----------------------------------------------------------------------------------- */

static int decode_extender_args(struct question *question, struct vg_span body)
{
	const struct vg_classes *classes = question->job.server->options.classes;
	struct vg_arena *arena = question->job.arena;
	struct vg_extender_args args;
	struct vg_node_info *nodes = NULL;
	struct vg_span *json = NULL;
	const char **names;
	size_t count = 0;
	int r = vg_extender_args_decode(body, classes, arena, &args, &question->err);

	if (r < 0)
		return r;
	question->pod = args.pod;
	question->names = args.node_names;
	question->name_count = args.node_name_count;
	if (!args.nodes_json.data)
		return 0;
	/* The names alone: explained is what this daemon knows of the nodes. */
	r = vg_extender_nodes_decode(args.nodes_json, classes, arena, &nodes, &json, &count,
				     &question->err);
	if (r < 0)
		return r;
	names = vg_arena_new_array(arena, count, sizeof(*names));
	for (size_t i = 0; i < count; i++)
		names[i] = nodes[i].name;
	question->names = names;
	question->name_count = count;
	return 0;
}

static int decode_query(struct question *question)
{
	const char *query = question->job.request->query;
	struct vg_span limit = vg_query_value(query, "limit");
	const char *const *names;
	uint64_t shown = SHOWN_DEFAULT;
	size_t count;

	if (limit.data &&
	    vg_parse_u64(limit, 0, VG_LIMIT_EXPLAIN_NODES, &shown, &question->err) < 0)
		return vg_err_wrap(&question->err, -EINVAL, "?limit=");
	question->limit = (size_t)shown;
	names = vg_query_list(query, "node", question->job.arena, &count);
	if (count > VG_LIMIT_QUERY_NAMES)
		return vg_fail(&question->err, EINVAL,
			       "?node= lists %zu names; at most %u are accepted", count,
			       VG_LIMIT_QUERY_NAMES);
	if (names) {
		question->names = names;
		question->name_count = count;
	}
	return 0;
}

static enum vg_step_result step_decode(struct vg_job *job)
{
	struct question *question = question_of(job);
	struct vg_span body = { job->request->body, job->request->body_size };
	int r;

	if (!body.size)
		return vg_job_fail(job, 400, "the body is empty: send a Pod as JSON");
	if (vg_extender_args_like(body))
		r = decode_extender_args(question, body);
	else
		r = vg_pod_json_decode(body, job->server->options.classes, job->arena,
				       &question->pod, &question->err);
	if (r == 0)
		r = decode_query(question);
	if (r < 0)
		return vg_job_fail(job, 400, "%s", question->err.msg);
	return VG_STEP_NEXT;
}

/* ---- decide ----------------------------------------------------------------------------------- */

static enum vg_step_result step_understand(struct vg_job *job)
{
	const struct vg_server_options *options = &job->server->options;
	struct question *question = question_of(job);
	struct vg_explain *answer = &question->answer;

	answer->classes = options->classes;
	answer->pod = &question->pod;
	answer->request = &question->request;
	if (!vg_cluster_ready(options->cluster, vg_clock_mono_ns(), question->not_ready))
		answer->not_ready = question->not_ready;
	if (vg_request_parse(&question->pod, options->classes, &options->policy, job->arena,
			     &question->request, &question->err) < 0) {
		answer->invalid = question->err.msg;
		return VG_STEP_LAST;
	}
	return question->request.want_count ? VG_STEP_NEXT : VG_STEP_LAST;
}

static enum vg_step_result step_copy(struct vg_job *job)
{
	struct question *question = question_of(job);
	struct vg_explain *answer = &question->answer;
	const struct vg_copy_args args = {
		.names = question->names,
		.name_count = question->name_count,
		.without_uid = question->pod.uid[0] ? question->pod.uid : NULL,
		.namespace = question->pod.namespace,
	};
	const struct vg_node **candidates;

	vg_cluster_copy(job->server->options.cluster, &args, vg_clock_mono_ns(), job->arena,
			&question->copy);
	candidates = vg_arena_new_array(job->arena, question->copy.node_count, sizeof(*candidates));
	for (size_t i = 0; i < question->copy.node_count; i++)
		candidates[i] = &question->copy.nodes[i].node;
	answer->copy = &question->copy;
	answer->candidates = candidates;
	answer->candidate_count = question->copy.node_count;
	return VG_STEP_NEXT;
}

static enum vg_step_result step_decide(struct vg_job *job)
{
	struct question *question = question_of(job);
	struct vg_explain *answer = &question->answer;
	const struct vg_decide_args args = {
		.models = &question->copy.models,
		.request = &question->request,
		.quota = question->copy.quota ? &question->copy.quota->quota : NULL,
		.candidates = answer->candidates,
		.candidate_count = answer->candidate_count,
		.evaluate_all = true,
	};

	vg_decide(&args, job->arena, &question->decision);
	answer->decision = &question->decision;
	return VG_STEP_NEXT;
}

/* ---- select ----------------------------------------------------------------------------------- */

struct rank {
	size_t candidate;
	int group;   /* 0 the chosen one, 1 fits, 2 could be cured, 3 hopeless */
	float score; /* higher is better */
	const char *name;
};

static int by_rank(const void *left, const void *right)
{
	const struct rank *a = left;
	const struct rank *b = right;

	if (a->group != b->group)
		return a->group - b->group;
	if (a->score != b->score)
		return a->score < b->score ? 1 : -1;
	return strcmp(a->name, b->name);
}

static struct rank rank_of(const struct vg_explain *answer, size_t candidate)
{
	const struct vg_verdict *verdict = &answer->decision->verdicts[candidate];
	const struct vg_node *node = answer->candidates[candidate];
	float score = vg_node_score(&node->sums, NULL);
	int group = 3;

	if (answer->decision->found && answer->decision->candidate == candidate)
		group = 0;
	else if (verdict->reason == VG_NODE_FITS)
		group = 1;
	else if (vg_verdict_curable(verdict))
		group = 2;
	if (answer->request->policy.node == VG_NODE_SPREAD)
		score = -score;
	return (struct rank){ candidate, group, group == 1 ? score : 0, node->name };
}

static enum vg_step_result step_select(struct vg_job *job)
{
	struct question *question = question_of(job);
	struct vg_explain *answer = &question->answer;
	size_t count = answer->candidate_count;
	struct rank *ranks = vg_arena_new_array(job->arena, count, sizeof(*ranks));
	size_t *shown;

	for (size_t i = 0; i < count; i++)
		ranks[i] = rank_of(answer, i);
	if (count)
		qsort(ranks, count, sizeof(*ranks), by_rank);
	answer->shown_count = count < question->limit ? count : question->limit;
	shown = vg_arena_new_array(job->arena, answer->shown_count, sizeof(*shown));
	for (size_t i = 0; i < answer->shown_count; i++)
		shown[i] = ranks[i].candidate;
	answer->shown = shown;
	return VG_STEP_NEXT;
}

static enum vg_step_result step_encode(struct vg_job *job)
{
	vg_explain_encode(&question_of(job)->answer, job->arena, &job->reply);
	return VG_STEP_NEXT;
}

void vg_route_explain(void *ctx, struct vg_http_request *request)
{
#define STEP(name) VG_STEP_ROW(name)
	static const struct vg_step steps[] = { EXPLAIN_STEPS };
#undef STEP
	struct question *question = vg_arena_new(&request->arena, sizeof(*question));

	vg_job_init(&question->job, ctx, request, "explain", steps,
		    sizeof(steps) / sizeof(steps[0]));
	vg_job_run(&question->job);
}
