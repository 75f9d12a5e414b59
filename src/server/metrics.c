/* SPDX-License-Identifier: Apache-2.0 */
/* GET /metrics: what is given out, in HAMi's words, and how the daemon itself is doing. */
#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "server/metrics_text_internal.h"
#include "server/server_internal.h"
#include "vgpu/version.h"

/* clang-format off */
#define METRICS_STEPS \
	STEP(copy)   /* nodes, pods, quotas and counters of the cluster -> page->copy, stats */ \
	STEP(encode) /* everything                                      -> Prometheus text   */
/* clang-format on */

#define ZONE          "zone", "vGPU"
#define BYTES_PER_MIB 1048576
#define CONTENT_TYPE  "text/plain; version=0.0.4; charset=utf-8"

struct metrics_page {
	struct vg_job job;
	struct vg_metrics metrics;
	struct vg_cluster_copy copy;
	struct vg_cluster_stats stats;
	bool ready;
};

static struct metrics_page *page_of(struct vg_job *job)
{
	return (struct metrics_page *)job;
}

static enum vg_step_result step_copy(struct vg_job *job)
{
	struct vg_cluster *cluster = job->server->options.cluster;
	struct metrics_page *page = page_of(job);
	const struct vg_copy_args args = { .with_pods = true };
	int64_t now_ns = vg_clock_mono_ns();

	vg_cluster_copy(cluster, &args, now_ns, job->arena, &page->copy);
	vg_cluster_stats(cluster, now_ns, &page->stats);
	page->ready = vg_cluster_ready(cluster, now_ns, NULL);
	return VG_STEP_NEXT;
}

/* ---- cards ------------------------------------------------------------------------------------ */

enum card_labels {
	WITH_CORES = 1,     /* device_cores */
	WITH_MEM_LIMIT = 2, /* device_memory_limit, MiB */
};

static double mem_limit(const struct vg_card *card)
{
	return (double)card->mem_mib * BYTES_PER_MIB;
}

static double core_limit(const struct vg_card *card)
{
	return card->cores;
}

static double mem_used(const struct vg_card *card)
{
	return (double)card->mem_used_mib * BYTES_PER_MIB;
}

static double shared(const struct vg_card *card)
{
	return card->slots_used;
}

static double core_used(const struct vg_card *card)
{
	return (double)card->cores_used;
}

/* Not a number: no sample. */
static double mem_ratio(const struct vg_card *card)
{
	return card->mem_mib > 0 ? (double)card->mem_used_mib / card->mem_mib : NAN;
}

static const struct {
	enum vg_metric metric;
	double (*value)(const struct vg_card *card);
	unsigned labels; /* enum card_labels */
} card_metrics[] = {
	{ VG_METRIC_GPU_MEM_LIMIT, mem_limit, 0 },
	{ VG_METRIC_GPU_CORE_LIMIT, core_limit, 0 },
	{ VG_METRIC_GPU_MEM_USED, mem_used, WITH_CORES },
	{ VG_METRIC_GPU_SHARED, shared, 0 },
	{ VG_METRIC_GPU_CORE_USED, core_used, 0 },
	{ VG_METRIC_GPU_OVERVIEW, mem_used, WITH_CORES | WITH_MEM_LIMIT },
	{ VG_METRIC_GPU_MEM_RATIO, mem_ratio, 0 },
};

static void put_value(struct vg_metrics *metrics, double value)
{
	if (value == (double)(int64_t)value)
		vg_sample_end_i64(metrics, (int64_t)value);
	else
		vg_sample_end_real(metrics, value);
}

static void put_card(struct metrics_page *page, size_t row, const struct vg_node *node,
		     const struct vg_card *card)
{
	struct vg_metrics *metrics = &page->metrics;
	double value = card_metrics[row].value(card);

	if (isnan(value))
		return;
	vg_sample_begin(metrics, card_metrics[row].metric);
	vg_sample_label(metrics, ZONE);
	vg_sample_label(metrics, "node", node->name);
	vg_sample_label(metrics, "device_uuid", card->uuid);
	vg_sample_label_i64(metrics, "device_index", card->index);
	if (card_metrics[row].labels & WITH_CORES)
		vg_sample_label_i64(metrics, "device_cores", card->cores);
	if (card_metrics[row].labels & WITH_MEM_LIMIT)
		vg_sample_label_i64(metrics, "device_memory_limit", card->mem_mib);
	vg_sample_label(metrics, "device_type", page->copy.models.name[card->model]);
	put_value(metrics, value);
}

static void put_cards(struct metrics_page *page)
{
	for (size_t row = 0; row < sizeof(card_metrics) / sizeof(card_metrics[0]); row++) {
		for (size_t i = 0; i < page->copy.node_count; i++) {
			const struct vg_node *node = &page->copy.nodes[i].node;

			for (uint32_t k = 0; k < node->card_count; k++)
				put_card(page, row, node, &node->cards[k]);
		}
	}
}

/* ---- pods ------------------------------------------------------------------------------------- */

static void put_grant(struct metrics_page *page, enum vg_metric metric,
		      const struct vg_pod_copy *pod, const struct vg_grant *grant, int64_t value)
{
	struct vg_metrics *metrics = &page->metrics;

	vg_sample_begin(metrics, metric);
	vg_sample_label(metrics, ZONE);
	vg_sample_label(metrics, "namespace", pod->namespace);
	vg_sample_label(metrics, "node", pod->node);
	vg_sample_label(metrics, "pod", pod->name);
	vg_sample_label_i64(metrics, "container_index", grant->container);
	vg_sample_label(metrics, "device_uuid", grant->uuid);
	vg_sample_end_i64(metrics, value);
}

static bool same_series(const struct vg_grant *a, const struct vg_grant *b)
{
	return a->container == b->container && vg_streq(a->uuid, b->uuid);
}

/* A container may hold a card twice, which is one series. */
static void put_pod(struct metrics_page *page, enum vg_metric metric, const struct vg_pod_copy *pod)
{
	const struct vg_allocation *allocation = &pod->allocation;

	for (size_t i = 0; i < allocation->grant_count; i++) {
		const struct vg_grant *grant = &allocation->grants[i];
		int64_t value = 0;
		bool first = true;

		for (size_t k = 0; k < allocation->grant_count; k++) {
			const struct vg_grant *other = &allocation->grants[k];

			if (!same_series(grant, other))
				continue;
			first = first && k >= i;
			value += metric == VG_METRIC_POD_MEM
					 ? (int64_t)other->mem_mib * BYTES_PER_MIB
					 : other->cores;
		}
		if (first)
			put_grant(page, metric, pod, grant, value);
	}
}

static bool same_pod(const struct vg_pod_copy *a, const struct vg_pod_copy *b)
{
	return vg_streq(a->namespace, b->namespace) && vg_streq(a->name, b->name);
}

/* A pod and its successor of the same name may be there together: one of them makes the series. */
static void put_pods(struct metrics_page *page, enum vg_metric metric)
{
	const struct vg_cluster_copy *copy = &page->copy;

	for (size_t i = 0; i < copy->pod_count;) {
		const struct vg_pod_copy *shown = &copy->pods[i];

		for (i++; i < copy->pod_count && same_pod(shown, &copy->pods[i]); i++)
			if (copy->pods[i].state > shown->state)
				shown = &copy->pods[i];
		put_pod(page, metric, shown);
	}
}

/* ---- quotas ------------------------------------------------------------------------------------ */

/* The limit as the quota says it: in units of the resource. */
static int64_t quota_limit(const struct vg_class *class, const struct vg_total *hard, bool mem)
{
	if (!mem)
		return hard->cores;
	if (hard->mem_mib == VG_QUOTA_NO_LIMIT)
		return VG_QUOTA_NO_LIMIT;
	return hard->mem_mib / (class->mem_factor > 1 ? class->mem_factor : 1);
}

static void put_quota(struct metrics_page *page, enum vg_metric metric,
		      const struct vg_space_copy *space, size_t class_index, bool mem)
{
	const struct vg_class *class = &page->job.server->options.classes->item[class_index];
	const struct vg_total *used = &space->quota.used[class_index];
	int64_t limit = quota_limit(class, &space->quota.hard[class_index], mem);
	const char *resource = mem ? class->resource_mem : class->resource_cores;
	bool limited = limit != VG_QUOTA_NO_LIMIT;
	int64_t value = mem ? used->mem_mib : used->cores;

	if (!resource[0] || (!limited && (metric == VG_METRIC_QUOTA_LIMIT || !value)))
		return;
	vg_sample_begin(&page->metrics, metric);
	vg_sample_label(&page->metrics, ZONE);
	vg_sample_label(&page->metrics, "namespace", space->namespace);
	vg_sample_label(&page->metrics, "quota_name", resource);
	if (metric == VG_METRIC_QUOTA_USED)
		vg_sample_label_i64(&page->metrics, "limit", limited ? limit : 0);
	vg_sample_end_i64(&page->metrics, metric == VG_METRIC_QUOTA_USED ? value : limit);
}

static void put_quotas(struct metrics_page *page, enum vg_metric metric)
{
	for (size_t i = 0; i < page->copy.space_count; i++) {
		for (size_t c = 0; c < page->job.server->options.classes->count; c++) {
			put_quota(page, metric, &page->copy.spaces[i], c, true);
			put_quota(page, metric, &page->copy.spaces[i], c, false);
		}
	}
}

/* ---- the daemon ------------------------------------------------------------------------------- */

static void put_builds(struct vg_metrics *metrics)
{
#ifdef __clang__
	static const char compiler[] = "clang";
#else
	static const char compiler[] = "gcc";
#endif
#ifdef __aarch64__
	static const char platform[] = "linux/arm64";
#else
	static const char platform[] = "linux/amd64";
#endif

	vg_sample_begin(metrics, VG_METRIC_HAMI_BUILD);
	vg_sample_label(metrics, "version", VGPU_VERSION);
	vg_sample_label(metrics, "revision", "kube-vgpu");
	vg_sample_label(metrics, "build_date", "");
	vg_sample_label(metrics, "go_version", "");
	vg_sample_label(metrics, "compiler", compiler);
	vg_sample_label(metrics, "platform", platform);
	vg_sample_end_i64(metrics, 1);
	vg_sample_begin(metrics, VG_METRIC_BUILD);
	vg_sample_label(metrics, "version", VGPU_VERSION);
	vg_sample_label(metrics, "compiler", compiler);
	vg_sample_end_i64(metrics, 1);
}

static const char *path_label(size_t route)
{
	return route < VG_ROUTE_COUNT ? vg_route_path[route] : "other";
}

static void put_requests(struct vg_metrics *metrics, struct vg_server *server)
{
	for (size_t i = 0; i <= VG_ROUTE_COUNT; i++)
		vg_sample_histogram(metrics, VG_METRIC_HTTP_SECONDS, "path", path_label(i),
				    &server->request[i]);
	for (size_t i = 0; i <= VG_ROUTE_COUNT; i++) {
		for (size_t slot = 0; slot < VG_STATUS_SLOTS; slot++) {
			uint64_t count = atomic_load_explicit(&server->requests[i][slot],
							      memory_order_relaxed);

			/* Series appear with their first request; the common one is always there. */
			if (!count && slot)
				continue;
			vg_sample_begin(metrics, VG_METRIC_HTTP_TOTAL);
			vg_sample_label(metrics, "path", path_label(i));
			vg_sample_label_i64(metrics, "code", vg_status_slot[slot]);
			vg_sample_end_i64(metrics, (int64_t)count);
		}
	}
	vg_sample_histogram(metrics, VG_METRIC_DECISION_SECONDS, NULL, NULL, &server->decision);
}

static void put_results(struct vg_metrics *metrics, struct vg_server *server)
{
	static const struct {
		const char *verb;
		const char *name;
	} names[VG_RESULT_COUNT] = {
#define RESULT(verb, name, help) [VG_RESULT_##verb##_##name] = { #verb, #name },
#include "server/results.def"
#undef RESULT
	};
	static const struct {
		const char *verb;
		enum vg_metric metric;
	} verbs[] = {
		{ "filter", VG_METRIC_FILTER_TOTAL },
		{ "prioritize", VG_METRIC_PRIORITIZE_TOTAL },
		{ "bind", VG_METRIC_BIND_TOTAL },
		{ "webhook", VG_METRIC_WEBHOOK_TOTAL },
	};

	for (size_t v = 0; v < sizeof(verbs) / sizeof(verbs[0]); v++)
		for (size_t i = 0; i < VG_RESULT_COUNT; i++)
			if (vg_streq(names[i].verb, verbs[v].verb))
				vg_sample_with(metrics, verbs[v].metric, "result", names[i].name,
					       (int64_t)atomic_load_explicit(&server->results[i],
									     memory_order_relaxed));
}

static const char *const kind_label[VG_KIND_COUNT] = {
	[VG_KIND_NODE] = "node",
	[VG_KIND_POD] = "pod",
	[VG_KIND_QUOTA] = "resourcequota",
};

static void put_kinds(struct vg_metrics *metrics, enum vg_metric metric,
		      const uint64_t counts[VG_KIND_COUNT])
{
	for (int kind = 0; kind < VG_KIND_COUNT; kind++)
		vg_sample_with(metrics, metric, "kind", kind_label[kind], (int64_t)counts[kind]);
}

static void put_stats(struct metrics_page *page)
{
	const struct vg_cluster_stats *stats = &page->stats;
	struct vg_metrics *metrics = &page->metrics;

	vg_sample_with(metrics, VG_METRIC_NODES, "state", "known", (int64_t)stats->nodes);
	vg_sample_with(metrics, VG_METRIC_NODES, "state", "registered",
		       (int64_t)stats->nodes_registered);
	vg_sample(metrics, VG_METRIC_CARDS, (int64_t)stats->cards);
	for (int state = 0; state <= VG_STATE_BOUND; state++)
		vg_sample_with(metrics, VG_METRIC_PODS, "state", vg_pod_state_word[state],
			       (int64_t)stats->pods[state]);
	vg_sample(metrics, VG_METRIC_BIND_WAITING, (int64_t)stats->bind_waiting);
	vg_sample(metrics, VG_METRIC_RESERVED, (int64_t)stats->reservations_made);
	vg_sample(metrics, VG_METRIC_LAPSED, (int64_t)stats->reservations_lapsed);
	vg_sample(metrics, VG_METRIC_AT_BIND, (int64_t)stats->decided_at_bind);
	put_kinds(metrics, VG_METRIC_MALFORMED, stats->malformed);
	vg_sample(metrics, VG_METRIC_UNKNOWN_CARDS, (int64_t)stats->unknown_cards);
	vg_sample(metrics, VG_METRIC_STALE_EVENTS, (int64_t)stats->stale_events);
	for (int kind = 0; kind < VG_KIND_COUNT; kind++) {
		if (stats->since_heard_ns[kind] < 0)
			continue;
		vg_sample_begin(metrics, VG_METRIC_SILENCE);
		vg_sample_label(metrics, "kind", kind_label[kind]);
		vg_sample_end_real(metrics, (double)stats->since_heard_ns[kind] / 1e9);
	}
	for (int kind = 0; kind < VG_KIND_COUNT; kind++)
		vg_sample_with(metrics, VG_METRIC_FORBIDDEN, "kind", kind_label[kind],
			       stats->forbidden[kind]);
}

static void put_api(struct vg_metrics *metrics, const struct vg_server_options *options)
{
	struct vg_server_certificate certificates[VG_SERVER_CERTIFICATES_MAX];
	struct vg_server_api_stats stats = { 0 };
	size_t count = 0;

	if (options->api_stats) {
		options->api_stats(options->metrics_ctx, &stats);
		put_kinds(metrics, VG_METRIC_API_LISTS, stats.lists);
		put_kinds(metrics, VG_METRIC_API_RESTARTS, stats.watch_restarts);
		put_kinds(metrics, VG_METRIC_API_EVENTS, stats.events);
		vg_sample(metrics, VG_METRIC_API_REQUESTS, (int64_t)stats.requests);
		vg_sample(metrics, VG_METRIC_API_FAILURES, (int64_t)stats.request_failures);
		vg_sample(metrics, VG_METRIC_API_BINDS, (int64_t)stats.bind_posts);
	}
	if (options->certificates)
		count = options->certificates(options->metrics_ctx, certificates);
	for (size_t i = 0; i < count; i++)
		vg_sample_with(metrics, VG_METRIC_CERTIFICATE, "listener", certificates[i].listener,
			       certificates[i].expires_unix_s);
}

static enum vg_step_result step_encode(struct vg_job *job)
{
	struct metrics_page *page = page_of(job);
	struct vg_metrics *metrics = &page->metrics;

	vg_metrics_init(metrics, &job->reply);
	put_cards(page);
	put_pods(page, VG_METRIC_POD_MEM);
	put_pods(page, VG_METRIC_POD_CORE);
	put_quotas(page, VG_METRIC_QUOTA_USED);
	put_quotas(page, VG_METRIC_QUOTA_LIMIT);
	put_builds(metrics);
	vg_sample(metrics, VG_METRIC_READY, page->ready);
	put_requests(metrics, job->server);
	put_results(metrics, job->server);
	put_stats(page);
	put_api(metrics, &job->server->options);
	job->content_type = CONTENT_TYPE;
	return VG_STEP_NEXT;
}

void vg_route_metrics(void *ctx, struct vg_http_request *request)
{
#define STEP(name) VG_STEP_ROW(name)
	static const struct vg_step steps[] = { METRICS_STEPS };
#undef STEP
	struct metrics_page *page = vg_arena_new(&request->arena, sizeof(*page));

	vg_job_init(&page->job, ctx, request, "metrics", steps, sizeof(steps) / sizeof(steps[0]));
	vg_job_run(&page->job);
}
