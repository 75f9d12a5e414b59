/* SPDX-License-Identifier: Apache-2.0 */
#include "server/explain_codec_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "base/str.h"
#include "server/quota_json_internal.h"

/* A summary and a list of reasons stay readable; the rest is counted. */
#define SUMMARY_BYTES   4096
#define SUMMARY_REASONS 5
#define REASONS_MAX     100

static const char *const kind_word[] = {
	[VG_CONTAINER_INIT] = "init",
	[VG_CONTAINER_SIDECAR] = "sidecar",
	[VG_CONTAINER_APP] = "app",
};

static const char *container_name(const struct vg_explain *explain, size_t container)
{
	return container < explain->pod->container_count ? explain->pod->containers[container].name
							 : "";
}

/* ---- why nodes lost --------------------------------------------------------------------------- */

static int by_frequency(const void *left, const void *right)
{
	const struct vg_explain_reason *a = left;
	const struct vg_explain_reason *b = right;

	if (a->nodes != b->nodes)
		return a->nodes < b->nodes ? 1 : -1;
	return strcmp(a->text, b->text);
}

size_t vg_explain_reasons(const struct vg_explain *explain, struct vg_arena *arena,
			  struct vg_explain_reason **ret_reasons)
{
	struct vg_explain_reason *list =
		vg_arena_new_array(arena, explain->candidate_count, sizeof(*list));
	struct vg_buf text;
	struct vg_map known;
	size_t count = 0;

	vg_map_init(&known);
	vg_buf_init(&text, VG_LIMIT_REASON_BYTES);
	for (size_t i = 0; i < explain->candidate_count; i++) {
		const struct vg_verdict *verdict = &explain->decision->verdicts[i];
		struct vg_explain_reason *reason;

		if (verdict->reason == VG_NODE_FITS)
			continue;
		vg_buf_clear(&text);
		vg_verdict_text(verdict, &text);
		reason = vg_map_get(&known, text.data ? text.data : "");
		if (!reason) {
			reason = &list[count++];
			reason->text = vg_arena_strdup(arena, text.data ? text.data : "");
			reason->verdict = verdict;
			vg_map_put(&known, reason->text, reason);
		}
		reason->nodes++;
	}
	vg_buf_release(&text);
	vg_map_release(&known);
	if (count)
		qsort(list, count, sizeof(*list), by_frequency);
	*ret_reasons = list;
	return count;
}

/* ---- in words --------------------------------------------------------------------------------- */

static const char *plural(size_t count)
{
	return count == 1 ? "" : "s";
}

/* "1 card with 8192 MiB and 30 % of its compute for container main" */
static void say_want(const struct vg_explain *explain, const struct vg_want *want,
		     struct vg_buf *text)
{
	const struct vg_class *class = &explain->classes->item[want->class_index];

	vg_buf_addf(text, "%d %s card%s", want->count, class->word, plural((size_t)want->count));
	if (want->mem_mib)
		vg_buf_addf(text, " with %d MiB", want->mem_mib);
	else if (want->mem_percent < 100)
		vg_buf_addf(text, " with %d %% of the memory", want->mem_percent);
	else
		vg_buf_adds(text, " with all memory");
	if (want->cores)
		vg_buf_addf(text, " and %d %% of the compute", want->cores);
	if (want->count > 1)
		vg_buf_adds(text, " each");
	vg_buf_addf(text, " for container %s", container_name(explain, want->container));
}

static void say_request(const struct vg_explain *explain, struct vg_buf *text)
{
	const struct vg_request *request = explain->request;

	vg_buf_addf(text, "Pod %s%s%s asks for ", explain->pod->namespace,
		    explain->pod->namespace[0] ? "/" : "", explain->pod->name);
	for (size_t i = 0; i < request->want_count; i++) {
		if (i)
			vg_buf_adds(text, i + 1 == request->want_count ? " and " : ", ");
		say_want(explain, &request->wants[i], text);
	}
	vg_buf_adds(text, ". ");
}

static void say_placed(const struct vg_explain *explain, struct vg_buf *text)
{
	const struct vg_decision *decision = explain->decision;
	const struct vg_node *node = explain->candidates[decision->candidate];

	vg_buf_addf(text, "It would be placed on node %s: ", node->name);
	for (size_t i = 0; i < decision->allocation.grant_count; i++) {
		const struct vg_grant *grant = &decision->allocation.grants[i];
		uint32_t card = 0;

		while (card < node->card_count && !vg_streq(node->cards[card].uuid, grant->uuid))
			card++;
		if (i)
			vg_buf_adds(text, ", ");
		if (card < node->card_count)
			vg_buf_addf(text, "card %d (%s)", node->cards[card].index, grant->uuid);
		vg_buf_addf(text, " with %d MiB and %d %% for container %s", grant->mem_mib,
			    grant->cores, container_name(explain, grant->container));
	}
	vg_buf_addf(text, ". %zu of %zu node%s would do; policy %s takes the %s one. ",
		    decision->fit_count, explain->candidate_count, plural(explain->candidate_count),
		    explain->request->policy.node == VG_NODE_SPREAD ? "spread" : "binpack",
		    explain->request->policy.node == VG_NODE_SPREAD ? "emptiest" : "fullest");
}

/* What would help against the verdict. */
static const char *advice(const struct vg_verdict *verdict)
{
	unsigned most = 0;

	if (verdict->reason != VG_NODE_CARDS)
		return vg_node_reason_help[verdict->reason];
	for (unsigned i = 1; i < VG_CARD_REASON_COUNT; i++)
		if (verdict->counts[i] > verdict->counts[most])
			most = i;
	return vg_card_reason_help[most];
}

static void say_reasons(const struct vg_explain *explain, struct vg_arena *arena,
			struct vg_buf *text)
{
	struct vg_explain_reason *reasons;
	size_t count = vg_explain_reasons(explain, arena, &reasons);

	if (!explain->decision->found)
		vg_buf_addf(text, "None of %zu node%s fits. ", explain->candidate_count,
			    plural(explain->candidate_count));
	for (size_t i = 0; i < count && i < SUMMARY_REASONS; i++)
		vg_buf_addf(text, "%zu node%s: %s (%s). ", reasons[i].nodes,
			    plural(reasons[i].nodes), reasons[i].text, advice(reasons[i].verdict));
	if (count > SUMMARY_REASONS)
		vg_buf_addf(text, "And %zu more reasons. ", count - SUMMARY_REASONS);
}

const char *vg_explain_summary(const struct vg_explain *explain, struct vg_arena *arena)
{
	struct vg_buf text;
	char *summary;

	vg_buf_init(&text, SUMMARY_BYTES);
	if (explain->not_ready)
		vg_buf_addf(&text, "The view of the cluster is incomplete: %s. ",
			    explain->not_ready);
	if (explain->invalid) {
		vg_buf_addf(&text, "The pod can be placed nowhere as it is: %s. ",
			    explain->invalid);
	} else if (!explain->request->want_count) {
		vg_buf_addf(&text, "Pod %s asks for no card: every node will do. ",
			    explain->pod->name);
	} else {
		say_request(explain, &text);
		if (explain->decision->found)
			say_placed(explain, &text);
		say_reasons(explain, arena, &text);
	}
	/* Without the last blank. */
	summary = vg_arena_strndup(arena, text.data, text.used ? text.used - 1 : 0);
	vg_buf_release(&text);
	return summary;
}

/* ---- request and decision --------------------------------------------------------------------- */

static void put_want(const struct vg_explain *explain, struct vg_out *out,
		     const struct vg_want *want)
{
	vg_out_open(out, '{');
	vg_out_member_i64(out, "container", want->container);
	vg_out_member_text(out, "name", container_name(explain, want->container));
	vg_out_member_text(out, "kind", kind_word[want->kind]);
	vg_out_member_text(out, "class", explain->classes->item[want->class_index].word);
	vg_out_member_i64(out, "cards", want->count);
	if (want->mem_mib)
		vg_out_member_i64(out, "memMiB", want->mem_mib);
	else
		vg_out_member_i64(out, "memPercent", want->mem_percent);
	vg_out_member_i64(out, "cores", want->cores);
	vg_out_close(out, '}');
}

static void put_words(struct vg_out *out, const char *key, const struct vg_words *words,
		      struct vg_arena *arena)
{
	if (!words->count)
		return;
	vg_out_key(out, key);
	vg_out_open(out, '[');
	for (size_t i = 0; i < words->count; i++)
		vg_out_text(out, vg_arena_strndup(arena, words->item[i].data, words->item[i].size));
	vg_out_close(out, ']');
}

static void put_policy(struct vg_out *out, const struct vg_policy *policy)
{
	static const char *const key_word[VG_KEY_COUNT] = {
		[VG_KEY_BINPACK] = "binpack",
		[VG_KEY_SPREAD] = "spread",
		[VG_KEY_NUMA] = "numa",
	};

	vg_out_member_text(out, "nodePolicy",
			   policy->node == VG_NODE_SPREAD ? "spread" : "binpack");
	vg_out_key(out, "cardPolicy");
	vg_out_open(out, '[');
	for (size_t i = 0; i < policy->key_count; i++)
		vg_out_text(out, key_word[policy->keys[i]]);
	if (!policy->key_count)
		vg_out_text(out, "spread");
	if (policy->mutex)
		vg_out_text(out, "mutex");
	if (policy->topology)
		vg_out_text(out, "topology-aware");
	vg_out_close(out, ']');
	vg_out_key(out, "weights");
	vg_out_open(out, '{');
	vg_out_member_i64(out, "slot", policy->weight_slot);
	vg_out_member_i64(out, "core", policy->weight_core);
	vg_out_member_i64(out, "memory", policy->weight_mem);
	vg_out_close(out, '}');
}

static void put_request(const struct vg_explain *explain, struct vg_out *out,
			struct vg_arena *arena)
{
	const struct vg_request *request = explain->request;

	vg_out_key(out, "request");
	vg_out_open(out, '{');
	vg_out_key(out, "containers");
	vg_out_open(out, '[');
	for (size_t i = 0; i < request->want_count; i++)
		put_want(explain, out, &request->wants[i]);
	vg_out_close(out, ']');
	if (request->want_count) {
		put_policy(out, &request->policy);
		put_words(out, "useType", &request->use_type, arena);
		put_words(out, "nouseType", &request->nouse_type, arena);
		put_words(out, "useUuid", &request->use_uuid, arena);
		put_words(out, "nouseUuid", &request->nouse_uuid, arena);
		if (request->mode)
			vg_out_member_text(out, "mode", request->mode);
		vg_out_member_bool(out, "numaBind", request->numa_bind);
	}
	vg_out_close(out, '}');
}

static void put_allocation(const struct vg_explain *explain, struct vg_out *out)
{
	const struct vg_allocation *allocation = &explain->decision->allocation;

	vg_out_key(out, "devices");
	vg_out_open(out, '[');
	for (size_t i = 0; i < allocation->grant_count; i++) {
		const struct vg_grant *grant = &allocation->grants[i];

		vg_out_open(out, '{');
		vg_out_member_i64(out, "container", grant->container);
		vg_out_member_text(out, "name", container_name(explain, grant->container));
		vg_out_member_text(out, "class", explain->classes->item[grant->class_index].word);
		vg_out_member_text(out, "uuid", grant->uuid);
		vg_out_member_i64(out, "memMiB", grant->mem_mib);
		vg_out_member_i64(out, "cores", grant->cores);
		vg_out_close(out, '}');
	}
	vg_out_close(out, ']');
}

static bool holds_class(const struct vg_allocation *allocation, size_t class)
{
	for (size_t i = 0; i < allocation->grant_count; i++)
		if (allocation->grants[i].class_index == class)
			return true;
	return false;
}

/* As bind would write it. */
static void put_annotations(const struct vg_explain *explain, struct vg_out *out,
			    struct vg_arena *arena)
{
	const struct vg_allocation *allocation = &explain->decision->allocation;

	vg_out_key(out, "annotations");
	vg_out_open(out, '{');
	for (size_t i = 0; i < explain->classes->count; i++) {
		const struct vg_class *class = &explain->classes->item[i];

		if (!holds_class(allocation, i))
			continue;
		vg_out_key_text(out, vg_annotation_key[class->allocated]);
		vg_out_text(out, vg_allocation_encode(allocation, class, (uint8_t)i, arena));
	}
	vg_out_close(out, '}');
}

static void put_decision(const struct vg_explain *explain, struct vg_out *out,
			 struct vg_arena *arena)
{
	const struct vg_decision *decision = explain->decision;

	vg_out_key(out, "decision");
	vg_out_open(out, '{');
	vg_out_member_bool(out, "placed", decision && decision->found);
	if (decision && decision->found) {
		vg_out_member_text(out, "node", explain->candidates[decision->candidate]->name);
		vg_out_member_real(out, "score", (double)decision->score);
		put_allocation(explain, out);
		put_annotations(explain, out, arena);
	}
	vg_out_close(out, '}');
}

static void put_reasons(const struct vg_explain *explain, struct vg_out *out,
			struct vg_arena *arena)
{
	struct vg_explain_reason *reasons;
	size_t count = vg_explain_reasons(explain, arena, &reasons);

	vg_out_key(out, "reasons");
	vg_out_open(out, '[');
	for (size_t i = 0; i < count && i < REASONS_MAX; i++) {
		vg_out_open(out, '{');
		vg_out_member_text(out, "reason", reasons[i].text);
		vg_out_member_i64(out, "nodes", (int64_t)reasons[i].nodes);
		vg_out_member_bool(out, "curable", vg_verdict_curable(reasons[i].verdict));
		vg_out_member_text(out, "help", advice(reasons[i].verdict));
		vg_out_close(out, '}');
	}
	vg_out_close(out, ']');
	if (count > REASONS_MAX)
		vg_out_member_i64(out, "reasonsOmitted", (int64_t)(count - REASONS_MAX));
}

/* ---- nodes with every check ------------------------------------------------------------------- */

/* Writes nodes while the decision is traced: cards as they are looked at, the node behind them. */
struct tracer {
	const struct vg_explain *explain;
	struct vg_out *out;
	struct vg_buf text;
	bool opened; /* the present node */
};

static void put_verdict(struct tracer *tracer, const struct vg_verdict *verdict)
{
	struct vg_out *out = tracer->out;
	bool fits = verdict->reason == VG_NODE_FITS;

	vg_out_member_bool(out, "fits", fits);
	if (fits)
		return;
	vg_buf_clear(&tracer->text);
	vg_verdict_text(verdict, &tracer->text);
	vg_out_member_text(out, "reason", tracer->text.data ? tracer->text.data : "");
	vg_out_member_bool(out, "curable", vg_verdict_curable(verdict));
	vg_out_member_text(out, "help", advice(verdict));
	if (verdict->reason == VG_NODE_CARDS || verdict->reason == VG_NODE_TOO_FEW_CARDS)
		vg_out_member_text(out, "container",
				   container_name(tracer->explain, verdict->container));
}

/* `shown` is an index into explain->shown. */
static void open_node(struct tracer *tracer, size_t shown)
{
	const struct vg_explain *explain = tracer->explain;
	const struct vg_decision *decision = explain->decision;
	size_t candidate = explain->shown[shown];
	struct vg_out *out = tracer->out;

	if (tracer->opened)
		return;
	tracer->opened = true;
	vg_out_open(out, '{');
	vg_out_member_text(out, "name", explain->candidates[candidate]->name);
	vg_out_member_bool(out, "chosen", decision->found && decision->candidate == candidate);
	put_verdict(tracer, &decision->verdicts[candidate]);
	if (explain->copy->nodes[candidate].register_error)
		vg_out_member_text(out, "registerError",
				   explain->copy->nodes[candidate].register_error);
	vg_out_key(out, "cards");
	vg_out_open(out, '[');
}

static void put_check(struct vg_out *out, const struct vg_check *check)
{
	vg_out_open(out, '{');
	vg_out_member_text(out, "check", vg_check_name[check->id]);
	vg_out_member_bool(out, "passed", check->passed);
	vg_out_member_i64(out, "have", check->have);
	vg_out_member_i64(out, "need", check->need);
	vg_out_member_i64(out, "total", check->total);
	if (!check->passed)
		vg_out_member_text(out, "reason", vg_card_reason_word[check->reason]);
	vg_out_close(out, '}');
}

static void on_card(void *ctx, const struct vg_card_trace *trace)
{
	struct tracer *tracer = ctx;
	const struct vg_explain *explain = tracer->explain;
	const struct vg_node *node = explain->candidates[explain->shown[trace->candidate]];
	const struct vg_card *card = &node->cards[trace->card];
	struct vg_out *out = tracer->out;

	open_node(tracer, trace->candidate);
	vg_out_open(out, '{');
	vg_out_member_text(out, "container", container_name(explain, trace->container));
	vg_out_member_i64(out, "index", card->index);
	vg_out_member_text(out, "uuid", card->uuid);
	vg_out_member_text(out, "model", explain->copy->models.name[card->model]);
	vg_out_member_real(out, "score", (double)trace->score);
	vg_out_member_bool(out, "chosen", trace->chosen);
	if (trace->reason != VG_CARD_OK)
		vg_out_member_text(out, "reason", vg_card_reason_word[trace->reason]);
	vg_out_key(out, "checks");
	vg_out_open(out, '[');
	for (size_t i = 0; i < VG_CHECK_COUNT; i++)
		if (trace->checks[i].total != VG_QUOTA_NO_LIMIT)
			put_check(out, &trace->checks[i]);
	vg_out_close(out, ']');
	vg_out_close(out, '}');
}

static void on_node(void *ctx, const struct vg_node_trace *trace)
{
	struct tracer *tracer = ctx;
	struct vg_out *out = tracer->out;

	open_node(tracer, trace->candidate);
	vg_out_close(out, ']');
	vg_out_key(out, "score");
	vg_out_open(out, '{');
	vg_out_member_real(out, "node", (double)trace->score);
	vg_out_member_real(out, "slots", (double)trace->score_slots);
	vg_out_member_real(out, "cores", (double)trace->score_cores);
	vg_out_member_real(out, "memory", (double)trace->score_mem);
	vg_out_close(out, '}');
	vg_out_close(out, '}');
	tracer->opened = false;
}

static void put_nodes(const struct vg_explain *explain, struct vg_out *out, struct vg_arena *arena)
{
	const struct vg_node **candidates =
		vg_arena_new_array(arena, explain->shown_count, sizeof(*candidates));
	struct tracer tracer = { .explain = explain, .out = out };
	const struct vg_trace trace = { .ctx = &tracer, .card = on_card, .node = on_node };
	const struct vg_decide_args args = {
		.models = &explain->copy->models,
		.request = explain->request,
		.quota = explain->copy->quota ? &explain->copy->quota->quota : NULL,
		.candidates = candidates,
		.candidate_count = explain->shown_count,
		.trace = &trace,
	};
	struct vg_decision again;

	for (size_t i = 0; i < explain->shown_count; i++)
		candidates[i] = explain->candidates[explain->shown[i]];
	vg_buf_init(&tracer.text, VG_LIMIT_REASON_BYTES);
	vg_out_key(out, "nodes");
	vg_out_open(out, '[');
	vg_decide(&args, arena, &again);
	vg_out_close(out, ']');
	vg_buf_release(&tracer.text);
	vg_out_member_i64(out, "nodesOmitted",
			  (int64_t)(explain->candidate_count - explain->shown_count));
}

/* ---- everything ------------------------------------------------------------------------------- */

void vg_explain_encode(const struct vg_explain *explain, struct vg_arena *arena, struct vg_buf *buf)
{
	struct vg_out out;

	vg_out_init(&out, buf);
	vg_out_open(&out, '{');
	vg_out_member_text(&out, "summary", vg_explain_summary(explain, arena));
	vg_out_key(&out, "pod");
	vg_out_open(&out, '{');
	vg_out_member_text(&out, "namespace", explain->pod->namespace);
	vg_out_member_text(&out, "name", explain->pod->name);
	vg_out_member_text(&out, "uid", explain->pod->uid);
	vg_out_close(&out, '}');
	vg_out_member_bool(&out, "ready", !explain->not_ready);
	if (explain->not_ready)
		vg_out_member_text(&out, "notReady", explain->not_ready);
	if (explain->invalid)
		vg_out_member_text(&out, "invalid", explain->invalid);
	else
		put_request(explain, &out, arena);
	put_decision(explain, &out, arena);
	if (explain->decision) {
		vg_out_member_i64(&out, "candidates", (int64_t)explain->candidate_count);
		vg_out_member_i64(&out, "fitting", (int64_t)explain->decision->fit_count);
		if (explain->copy->quota) {
			vg_out_key(&out, "quotas");
			vg_out_open(&out, '[');
			vg_quota_json(explain->copy->quota, explain->classes, &out);
			vg_out_close(&out, ']');
		}
		put_reasons(explain, &out, arena);
		put_nodes(explain, &out, arena);
	}
	vg_out_close(&out, '}');
	vg_buf_adds(buf, "\n");
}
