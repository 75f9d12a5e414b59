/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /state: the daemon's view of the cluster. Copied under the cluster's lock, encoded outside of it.
 * ?node=NAME,… shows these nodes only, with their pods.
 */
#include "base/clock.h"
#include "base/str.h"
#include "server/json_out_internal.h"
#include "server/quota_json_internal.h"
#include "server/server_internal.h"

/* clang-format off */
#define STATE_STEPS \
	STEP(copy)   /* nodes, pods and quotas of the cluster -> state->copy */ \
	STEP(encode) /* state->copy                           -> JSON        */
/* clang-format on */

struct state {
	struct vg_job job;
	const char *const *names; /* NULL: all */
	size_t name_count;
	struct vg_cluster_copy copy;
	char not_ready[VG_READY_REASON_BYTES]; /* "" = ready */
};

static struct state *state_of(struct vg_job *job)
{
	return (struct state *)job;
}

static enum vg_step_result step_copy(struct vg_job *job)
{
	struct vg_cluster *cluster = job->server->options.cluster;
	struct state *state = state_of(job);
	int64_t now_ns = vg_clock_mono_ns();
	struct vg_copy_args args = { .with_pods = true };

	state->names = vg_query_list(job->request->query, "node", job->arena, &state->name_count);
	if (state->name_count > VG_LIMIT_QUERY_NAMES)
		return vg_job_fail(job, 400, "?node= lists %zu names; at most %u are accepted",
				   state->name_count, VG_LIMIT_QUERY_NAMES);
	args.names = state->names;
	args.name_count = state->name_count;
	if (vg_cluster_ready(cluster, now_ns, state->not_ready))
		state->not_ready[0] = '\0';
	vg_cluster_copy(cluster, &args, now_ns, job->arena, &state->copy);
	return VG_STEP_NEXT;
}

/* ---- encode ----------------------------------------------------------------------------------- */

static void put_used(struct vg_out *out, const char *key, int64_t used, int64_t total)
{
	vg_out_key(out, key);
	vg_out_open(out, '{');
	vg_out_member_i64(out, "used", used);
	vg_out_member_i64(out, "total", total);
	vg_out_close(out, '}');
}

static void put_card(struct state *state, struct vg_out *out, const struct vg_card *card)
{
	const struct vg_class *class = &state->job.server->options.classes->item[card->class_index];

	vg_out_open(out, '{');
	vg_out_member_i64(out, "index", card->index);
	vg_out_member_text(out, "uuid", card->uuid);
	vg_out_member_text(out, "class", class->word);
	vg_out_member_text(out, "model", state->copy.models.name[card->model]);
	vg_out_member_text(out, "mode", vg_card_mode_word[card->mode]);
	vg_out_member_i64(out, "numa", card->numa);
	vg_out_member_bool(out, "healthy", card->healthy);
	vg_out_member_bool(out, "cordoned", card->cordoned);
	put_used(out, "slots", card->slots_used, card->slots);
	put_used(out, "memMiB", card->mem_used_mib, card->mem_mib);
	put_used(out, "cores", card->cores_used, card->cores);
	vg_out_close(out, '}');
}

static void put_node(struct state *state, struct vg_out *out, const struct vg_node_copy *copy)
{
	const struct vg_node *node = &copy->node;

	vg_out_open(out, '{');
	vg_out_member_text(out, "name", node->name);
	vg_out_member_bool(out, "registered", node->card_count > 0);
	if (copy->register_error)
		vg_out_member_text(out, "registerError", copy->register_error);
	if (copy->allocatable >= 0)
		vg_out_member_i64(out, "allocatable", copy->allocatable);
	put_used(out, "slots", node->sums.slots_used, node->sums.slots);
	put_used(out, "memMiB", node->sums.mem_used_mib, node->sums.mem_mib);
	put_used(out, "cores", node->sums.cores_used, node->sums.cores);
	vg_out_key(out, "cards");
	vg_out_open(out, '[');
	for (uint32_t i = 0; i < node->card_count; i++)
		put_card(state, out, &node->cards[i]);
	vg_out_close(out, ']');
	vg_out_close(out, '}');
}

static void put_grant(struct state *state, struct vg_out *out, const struct vg_grant *grant)
{
	const struct vg_class *class =
		&state->job.server->options.classes->item[grant->class_index];

	vg_out_open(out, '{');
	vg_out_member_i64(out, "container", grant->container);
	vg_out_member_text(out, "class", class->word);
	vg_out_member_text(out, "uuid", grant->uuid);
	vg_out_member_i64(out, "memMiB", grant->mem_mib);
	vg_out_member_i64(out, "cores", grant->cores);
	vg_out_close(out, '}');
}

static void put_pod(struct state *state, struct vg_out *out, const struct vg_pod_copy *pod)
{
	vg_out_open(out, '{');
	vg_out_member_text(out, "namespace", pod->namespace);
	vg_out_member_text(out, "name", pod->name);
	vg_out_member_text(out, "uid", pod->uid);
	vg_out_member_text(out, "state", vg_pod_state_word[pod->state]);
	vg_out_member_text(out, "node", pod->node);
	vg_out_member_bool(out, "allocating", pod->allocating);
	vg_out_member_bool(out, "terminating", pod->terminating);
	if (pod->age_ns)
		vg_out_member_real(out, "ageSeconds", (double)pod->age_ns / 1e9);
	if (pod->lapses_in_ns)
		vg_out_member_real(out, "lapsesInSeconds", (double)pod->lapses_in_ns / 1e9);
	vg_out_key(out, "grants");
	vg_out_open(out, '[');
	for (size_t i = 0; i < pod->allocation.grant_count; i++)
		put_grant(state, out, &pod->allocation.grants[i]);
	vg_out_close(out, ']');
	vg_out_close(out, '}');
}

static bool is_shown(const struct state *state, const struct vg_pod_copy *pod)
{
	for (size_t i = 0; i < state->name_count; i++)
		if (vg_streq(state->names[i], pod->node))
			return true;
	return !state->names;
}

static bool is_reservation(const struct vg_pod_copy *pod)
{
	return pod->state == VG_STATE_RESERVED || pod->state == VG_STATE_BINDING;
}

/* The ledger is what counts against the cards; reservations are the part of it that only we know. */
static void put_pods(struct state *state, struct vg_out *out, const char *key, bool reservations)
{
	vg_out_key(out, key);
	vg_out_open(out, '[');
	for (size_t i = 0; i < state->copy.pod_count; i++) {
		const struct vg_pod_copy *pod = &state->copy.pods[i];

		if (is_shown(state, pod) && is_reservation(pod) == reservations)
			put_pod(state, out, pod);
	}
	vg_out_close(out, ']');
}

/* Of the whole cluster, also where ?node= asks for a part of it. */
static void put_quotas(struct state *state, struct vg_out *out)
{
	vg_out_key(out, "quotas");
	vg_out_open(out, '[');
	for (size_t i = 0; i < state->copy.space_count; i++)
		vg_quota_json(&state->copy.spaces[i], state->job.server->options.classes, out);
	vg_out_close(out, ']');
	if (state->copy.quotas_forbidden)
		vg_out_member_bool(out, "quotasForbidden", true);
}

static enum vg_step_result step_encode(struct vg_job *job)
{
	struct state *state = state_of(job);
	struct vg_out out;

	vg_out_init(&out, &job->reply);
	vg_out_open(&out, '{');
	vg_out_member_bool(&out, "ready", !state->not_ready[0]);
	if (state->not_ready[0])
		vg_out_member_text(&out, "notReady", state->not_ready);
	vg_out_key(&out, "nodes");
	vg_out_open(&out, '[');
	for (size_t i = 0; i < state->copy.node_count; i++)
		put_node(state, &out, &state->copy.nodes[i]);
	vg_out_close(&out, ']');
	put_pods(state, &out, "pods", false);
	put_pods(state, &out, "reservations", true);
	put_quotas(state, &out);
	vg_out_close(&out, '}');
	vg_buf_adds(&job->reply, "\n");
	return VG_STEP_NEXT;
}

void vg_route_state(void *ctx, struct vg_http_request *request)
{
#define STEP(name) VG_STEP_ROW(name)
	static const struct vg_step steps[] = { STATE_STEPS };
#undef STEP
	struct state *state = vg_arena_new(&request->arena, sizeof(*state));

	vg_job_init(&state->job, ctx, request, "state", steps, sizeof(steps) / sizeof(steps[0]));
	vg_job_run(&state->job);
}
