/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /filter: kube-scheduler asks which of these nodes can take the pod. The answer is one node, and its
 * cards are reserved for the pod. Errors of any kind are HTTP 200 with "Error", as kube-scheduler wants.
 */
#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "server/extender_codec_internal.h"
#include "server/server_internal.h"

/* clang-format off */
#define FILTER_STEPS \
	STEP(decode)     /* bytes from kube-scheduler          -> filter->args              */ \
	STEP(understand) /* resources and annotations          -> filter->request           */ \
	STEP(be_ready)   /* is our view of the cluster usable?                              */ \
	STEP(simulate)   /* Node objects: decide, no effect    -> filter->placement, result */ \
	STEP(place)      /* node names: decide and reserve     -> filter->placement, result */ \
	STEP(encode)     /* filter->result                     -> ExtenderFilterResult JSON */
/* clang-format on */

struct filter {
	struct vg_job job;
	struct vg_err err;
	struct vg_extender_args args;
	struct vg_request request;
	struct vg_placement placement;
	struct vg_extender_result result;
};

static struct filter *filter_of(struct vg_job *job)
{
	return (struct filter *)job;
}

/* ---- steps ------------------------------------------------------------------------------------ */

static enum vg_step_result step_decode(struct vg_job *job)
{
	struct filter *filter = filter_of(job);
	struct vg_span body = { job->request->body, job->request->body_size };

	if (vg_extender_args_decode(body, job->server->options.classes, job->arena, &filter->args,
				    &filter->err) == 0)
		return VG_STEP_NEXT;
	filter->result.error = filter->err.msg;
	vg_server_count(job->server, VG_RESULT_filter_error);
	vg_warn("server", "a filter request cannot be read", VG_S("why", filter->result.error));
	return VG_STEP_LAST;
}

/* The names of all nodes that were sent, in either form. */
static int name_nodes(struct filter *filter)
{
	struct vg_job *job = &filter->job;
	struct vg_node_info *nodes = NULL;
	struct vg_span *json = NULL;
	const char **names;
	size_t count = 0;
	int r;

	if (!filter->args.nodes_json.data) {
		filter->result.names = filter->args.node_names;
		filter->result.name_count = filter->args.node_name_count;
		return 0;
	}
	r = vg_extender_nodes_decode(filter->args.nodes_json, job->server->options.classes,
				     job->arena, &nodes, &json, &count, &filter->err);
	if (r < 0)
		return r;
	names = vg_arena_new_array(job->arena, count, sizeof(*names));
	for (size_t i = 0; i < count; i++)
		names[i] = nodes[i].name;
	filter->result.names = names;
	filter->result.name_count = count;
	return 0;
}

/* A pod that can be placed nowhere as it is: evicting others would be in vain, on every node. */
static enum vg_step_result refuse_everywhere(struct filter *filter)
{
	const struct vg_pod *pod = &filter->args.pod;

	vg_server_count(filter->job.server, VG_RESULT_filter_invalid);
	vg_warn("server", "a pod asks for what is no request", VG_S("namespace", pod->namespace),
		VG_S("pod", pod->name), VG_S("uid", pod->uid), VG_S("why", filter->err.msg));
	filter->result.reason = vg_arena_strdup(filter->job.arena, filter->err.msg);
	if (name_nodes(filter) < 0 || filter->result.name_count == 0)
		filter->result.error = filter->result.reason;
	return VG_STEP_LAST;
}

static enum vg_step_result step_understand(struct vg_job *job)
{
	const struct vg_server_options *options = &job->server->options;
	struct filter *filter = filter_of(job);

	if (vg_request_parse(&filter->args.pod, options->classes, &options->policy, job->arena,
			     &filter->request, &filter->err) < 0)
		return refuse_everywhere(filter);
	if (filter->request.uncounted) {
		vg_fail(&filter->err, EINVAL,
			"container \"%s\" asks for a part of a card, but names no number of cards: the "
			"admission webhook would have added it, and did not see this pod; is the webhook "
			"running? Or write the number into the pod",
			filter->request.uncounted);
		return refuse_everywhere(filter);
	}
	if (filter->request.want_count)
		return VG_STEP_NEXT;
	filter->result.nodes_json = filter->args.nodes_json;
	filter->result.node_names_json = filter->args.node_names_json;
	vg_server_count(job->server, VG_RESULT_filter_no_cards);
	return VG_STEP_LAST;
}

static enum vg_step_result fail(struct filter *filter, enum vg_result result, const char *error)
{
	const struct vg_pod *pod = &filter->args.pod;

	filter->result = (struct vg_extender_result){ .error = error };
	vg_server_count(filter->job.server, result);
	vg_warn("server", "a filter request cannot be answered", VG_S("namespace", pod->namespace),
		VG_S("pod", pod->name), VG_S("uid", pod->uid), VG_S("why", error));
	return VG_STEP_LAST;
}

static enum vg_step_result step_be_ready(struct vg_job *job)
{
	struct filter *filter = filter_of(job);
	char reason[VG_READY_REASON_BYTES];

	if (vg_cluster_ready(job->server->options.cluster, vg_clock_mono_ns(), reason))
		return VG_STEP_NEXT;
	return fail(filter, VG_RESULT_filter_not_ready,
		    vg_arena_printf(job->arena, "vgpu-scheduler is not ready: %s", reason));
}

/* Nobody fits: each node with its reason. */
static void report_failed(struct filter *filter, const char *const *names, size_t count)
{
	filter->result.names = names;
	filter->result.name_count = count;
	filter->result.verdicts = filter->placement.verdicts;
}

static enum vg_step_result step_simulate(struct vg_job *job)
{
	struct filter *filter = filter_of(job);
	struct vg_node_info *nodes = NULL;
	struct vg_span *json = NULL;
	const char **names;
	size_t count = 0;

	if (!filter->args.nodes_json.data)
		return VG_STEP_NEXT;
	if (vg_extender_nodes_decode(filter->args.nodes_json, job->server->options.classes,
				     job->arena, &nodes, &json, &count, &filter->err) < 0)
		return fail(filter, VG_RESULT_filter_error, filter->err.msg);
	vg_cluster_simulate(job->server->options.cluster, &filter->request, nodes, count,
			    job->arena, &filter->placement);
	vg_histogram_add(&job->server->decision, filter->placement.decision_ns);
	names = vg_arena_new_array(job->arena, count, sizeof(*names));
	for (size_t i = 0; i < count; i++)
		names[i] = nodes[i].name;
	report_failed(filter, names, count);
	if (filter->placement.found)
		filter->result.node_json = json[filter->placement.candidate];
	vg_server_count(job->server, VG_RESULT_filter_simulated);
	return VG_STEP_LAST;
}

/* Ranked mode: all that fit, and no reservation, since it is not known yet which one it will be. */
static enum vg_step_result rank(struct filter *filter)
{
	const struct vg_extender_args *args = &filter->args;
	struct vg_server *server = filter->job.server;
	float *scores;

	vg_cluster_rank(server->options.cluster, &filter->request, args->node_names,
			args->node_name_count, filter->job.arena, &filter->placement, &scores);
	vg_histogram_add(&server->decision, filter->placement.decision_ns);
	report_failed(filter, args->node_names, args->node_name_count);
	filter->result.name_fitting = filter->placement.found;
	vg_server_count(server, filter->placement.found ? VG_RESULT_filter_ranked
							: VG_RESULT_filter_no_fit);
	return VG_STEP_NEXT;
}

static enum vg_step_result step_place(struct vg_job *job)
{
	const struct vg_server_options *options = &job->server->options;
	struct filter *filter = filter_of(job);
	const struct vg_extender_args *args = &filter->args;
	const struct vg_placement *placement = &filter->placement;

	if (!args->node_names_json.data)
		return fail(filter, VG_RESULT_filter_error,
			    "ExtenderArgs have neither NodeNames nor Nodes: which nodes is the "
			    "pod to be tried on?");
	if (!args->pod.uid[0])
		return fail(filter, VG_RESULT_filter_error,
			    "the pod has no metadata.uid: cards are reserved under it");
	if (options->learn)
		options->learn(options->learn_ctx, &args->pod);
	if (options->ranked)
		return rank(filter);
	vg_cluster_place(options->cluster, &filter->request, args->node_names,
			 args->node_name_count, vg_clock_mono_ns(), job->arena, &filter->placement);
	vg_histogram_add(&job->server->decision, placement->decision_ns);
	if (placement->found) {
		filter->result.node_name = args->node_names[placement->candidate];
		vg_server_count(job->server, VG_RESULT_filter_placed);
		vg_info("server", "placed", VG_S("namespace", args->pod.namespace),
			VG_S("pod", args->pod.name), VG_S("uid", args->pod.uid),
			VG_S("node", filter->result.node_name),
			VG_I("nodes", args->node_name_count),
			VG_I("us", placement->decision_ns / 1000));
	} else {
		report_failed(filter, args->node_names, args->node_name_count);
		vg_server_count(job->server, VG_RESULT_filter_no_fit);
		vg_info("server", "no node fits", VG_S("namespace", args->pod.namespace),
			VG_S("pod", args->pod.name), VG_S("uid", args->pod.uid),
			VG_I("nodes", args->node_name_count),
			VG_I("us", placement->decision_ns / 1000));
	}
	return VG_STEP_NEXT;
}

static enum vg_step_result step_encode(struct vg_job *job)
{
	vg_extender_result_encode(&filter_of(job)->result, job->arena, &job->reply);
	return VG_STEP_NEXT;
}

void vg_route_filter(void *ctx, struct vg_http_request *request)
{
#define STEP(name) VG_STEP_ROW(name)
	static const struct vg_step steps[] = { FILTER_STEPS };
#undef STEP
	struct filter *filter = vg_arena_new(&request->arena, sizeof(*filter));

	vg_job_init(&filter->job, ctx, request, "filter", steps, sizeof(steps) / sizeof(steps[0]));
	vg_job_run(&filter->job);
}
