/* SPDX-License-Identifier: Apache-2.0 */
/* The page is read by a strict reader of the text format: what it accepts, Prometheus accepts. */
#include "unit/server/harness.h"

#include <ctype.h>
#include <math.h>

#include "server/metrics_text_internal.h"

#define SAMPLES_MAX 4000

struct sample {
	char name[128];
	char labels[512]; /* a="b",c="d" as written */
	double value;
};

struct page {
	struct sample samples[SAMPLES_MAX];
	size_t count;
	char family[128]; /* of the last TYPE line */
	char type[16];
	char families[200][128];
	size_t family_count;
};

/* ---- a strict reader -------------------------------------------------------------------------- */

static size_t read_name(const char *text, bool colon)
{
	size_t size = 0;

	if (!isalpha((unsigned char)text[0]) && text[0] != '_')
		return 0;
	while (isalnum((unsigned char)text[size]) || text[size] == '_' ||
	       (colon && text[size] == ':'))
		size++;
	return size;
}

/* From '{' to behind '}'. */
static const char *read_labels(const char *line, const char *text, struct sample *sample)
{
	char seen[16][64];
	size_t count = 0;
	const char *start = ++text;

	for (;;) {
		size_t size = read_name(text, false);

		if (!size || size >= 64 || count == 16)
			fail_msg("no label name at %s in %s", text, line);
		snprintf(seen[count], sizeof(seen[0]), "%.*s", (int)size, text);
		for (size_t i = 0; i < count; i++)
			if (strcmp(seen[i], seen[count]) == 0)
				fail_msg("label %s twice in %s", seen[i], line);
		count++;
		text += size;
		if (text[0] != '=' || text[1] != '"')
			fail_msg("no value at %s in %s", text, line);
		for (text += 2; *text != '"'; text++) {
			if (!*text)
				fail_msg("a value without end in %s", line);
			if (*text == '\\' && !strchr("\\\"n", *++text))
				fail_msg("a wrong escape in %s", line);
		}
		text++;
		if (*text == '}')
			break;
		if (*text++ != ',')
			fail_msg("no comma at %s in %s", text, line);
	}
	assert_true((size_t)(text - start) < sizeof(sample->labels));
	snprintf(sample->labels, sizeof(sample->labels), "%.*s", (int)(text - start), start);
	return text + 1;
}

static bool of_family(const struct page *page, const char *name)
{
	static const char *const suffixes[] = { "_bucket", "_sum", "_count" };
	size_t size = strlen(page->family);

	if (strcmp(page->type, "histogram") != 0)
		return strcmp(name, page->family) == 0;
	for (size_t i = 0; i < 3; i++)
		if (strncmp(name, page->family, size) == 0 && strcmp(name + size, suffixes[i]) == 0)
			return true;
	return false;
}

static void read_sample(struct page *page, const char *line)
{
	struct sample *sample = &page->samples[page->count];
	size_t size = read_name(line, true);
	const char *text = line + size;
	char *end;

	assert_true(page->count < SAMPLES_MAX);
	if (!size || size >= sizeof(sample->name))
		fail_msg("no name in %s", line);
	snprintf(sample->name, sizeof(sample->name), "%.*s", (int)size, line);
	if (!of_family(page, sample->name))
		fail_msg("%s stands in family %s", sample->name, page->family);
	if (*text == '{')
		text = read_labels(line, text, sample);
	if (*text++ != ' ')
		fail_msg("no blank before the value in %s", line);
	sample->value = strtod(text, &end);
	if (end == text || *end)
		fail_msg("no value in %s", line);
	for (size_t i = 0; i < page->count; i++)
		if (strcmp(page->samples[i].name, sample->name) == 0 &&
		    strcmp(page->samples[i].labels, sample->labels) == 0)
			fail_msg("twice: %s", line);
	page->count++;
}

/* "# HELP name text", then "# TYPE name type", then samples; each family once. */
static void read_comment(struct page *page, const char *line, bool *help)
{
	char name[128];
	char type[16];

	if (strncmp(line, "# HELP ", 7) == 0) {
		size_t size = read_name(line + 7, true);

		assert_false(*help);
		assert_true(size > 0 && line[7 + size] == ' ' && line[8 + size] != '\0');
		snprintf(name, sizeof(name), "%.*s", (int)size, line + 7);
		for (size_t i = 0; i < page->family_count; i++)
			if (strcmp(page->families[i], name) == 0)
				fail_msg("family %s twice", name);
		snprintf(page->families[page->family_count++], sizeof(page->families[0]), "%s",
			 name);
		*help = true;
		return;
	}
	assert_int_equal(sscanf(line, "# TYPE %127s %15s", name, type), 2);
	assert_true(*help);
	assert_string_equal(name, page->families[page->family_count - 1]);
	if (strcmp(type, "counter") != 0 && strcmp(type, "gauge") != 0 &&
	    strcmp(type, "histogram") != 0)
		fail_msg("type %s", type);
	if (strcmp(type, "counter") == 0 && !strstr(name, "_total"))
		fail_msg("counter %s does not end in _total", name);
	snprintf(page->family, sizeof(page->family), "%s", name);
	snprintf(page->type, sizeof(page->type), "%s", type);
	*help = false;
}

/* Rising buckets, the last one is the count. */
static void check_histogram(const struct page *page, size_t at)
{
	char without[512];
	double last = 0;
	size_t i = at;

	for (; strstr(page->samples[i].name, "_bucket"); i++) {
		assert_true(page->samples[i].value >= last);
		last = page->samples[i].value;
	}
	assert_non_null(strstr(page->samples[i - 1].labels, "le=\"+Inf\""));
	assert_non_null(strstr(page->samples[i].name, "_sum"));
	assert_non_null(strstr(page->samples[i + 1].name, "_count"));
	assert_true(page->samples[i + 1].value == last);
	snprintf(without, sizeof(without), "%s", page->samples[i].labels);
	assert_string_equal(without, page->samples[i + 1].labels);
}

static struct page *read_page(const char *text)
{
	struct page *page = vg_new(sizeof(*page));
	char *copy = vg_strdup(text);
	bool help = false;
	char *next;

	assert_true(text[0] && text[strlen(text) - 1] == '\n');
	for (char *line = copy; *line; line = next) {
		char *end = strchr(line, '\n');

		*end = '\0';
		next = end + 1;
		if (line[0] == '#')
			read_comment(page, line, &help);
		else
			read_sample(page, line);
	}
	for (size_t i = 0; i < page->count; i++)
		if (strstr(page->samples[i].name, "_bucket") &&
		    (i == 0 || !strstr(page->samples[i - 1].name, "_bucket")))
			check_histogram(page, i);
	free(copy);
	return page;
}

static struct page *ask(struct world *world)
{
	world_ask(world, "/metrics", "");
	assert_int_equal(world->reply.status, 200);
	assert_string_equal(world->reply.type, "text/plain; version=0.0.4; charset=utf-8");
	return read_page(world->reply.body);
}

/* NAN when it is not there. */
static double value_of(const struct page *page, const char *name, const char *labels)
{
	for (size_t i = 0; i < page->count; i++)
		if (strcmp(page->samples[i].name, name) == 0 &&
		    strcmp(page->samples[i].labels, labels) == 0)
			return page->samples[i].value;
	return NAN;
}

static void expect(const struct page *page, const char *name, const char *labels, double value)
{
	double found = value_of(page, name, labels);

	if (!(found == value))
		fail_msg("%s{%s} is %g, want %g", name, labels, found, value);
}

/* ---- tests ------------------------------------------------------------------------------------ */

#define POD(name, uid, limits)                                                                     \
	"{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"ns\",\"uid\":\"" uid                 \
	"\"},\"spec\":{\"containers\":[{\"name\":\"a\"},{\"name\":\"main\",\"resources\":{"        \
	"\"limits\":{" limits "}}}]}}"
#define SLICE                                                                                      \
	"\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"2000\",\"nvidia.com/gpucores\":\"30\""

static void test_hami_names(void **state)
{
	struct world *world = world_new();
	struct page *page;

	(void)state;
	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10;GPU-b,NVIDIA A100,8000,10");
	world_node(world, "bare", "");
	world_ask(world, "/filter", "{\"Pod\":" POD("p", "u1", SLICE) ",\"NodeNames\":[\"n1\"]}");
	page = ask(world);
	/* Ties go to the card with the lower index. */
	expect(page, "hami_gpu_memory_limit_bytes",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-a\",device_index=\"0\","
	       "device_type=\"NVIDIA A100\"",
	       8000.0 * 1048576);
	expect(page, "hami_gpu_core_limit_ratio",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-b\",device_index=\"1\","
	       "device_type=\"NVIDIA A100\"",
	       100);
	expect(page, "hami_gpu_memory_allocated_bytes",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-a\",device_index=\"0\","
	       "device_cores=\"100\",device_type=\"NVIDIA A100\"",
	       2000.0 * 1048576);
	expect(page, "hami_gpu_memory_allocated_bytes",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-b\",device_index=\"1\","
	       "device_cores=\"100\",device_type=\"NVIDIA A100\"",
	       0);
	expect(page, "hami_gpu_shared_count",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-a\",device_index=\"0\","
	       "device_type=\"NVIDIA A100\"",
	       1);
	expect(page, "hami_gpu_core_allocated_ratio",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-a\",device_index=\"0\","
	       "device_type=\"NVIDIA A100\"",
	       30);
	expect(page, "hami_node_gpu_overview",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-a\",device_index=\"0\","
	       "device_cores=\"100\",device_memory_limit=\"8000\",device_type=\"NVIDIA A100\"",
	       2000.0 * 1048576);
	expect(page, "hami_node_gpu_memory_allocated_ratio",
	       "zone=\"vGPU\",node=\"n1\",device_uuid=\"GPU-a\",device_index=\"0\","
	       "device_type=\"NVIDIA A100\"",
	       0.25);
	expect(page, "hami_vgpu_memory_allocated_bytes",
	       "zone=\"vGPU\",namespace=\"ns\",node=\"n1\",pod=\"p\",container_index=\"1\","
	       "device_uuid=\"GPU-a\"",
	       2000.0 * 1048576);
	expect(page, "hami_vgpu_core_allocated_ratio",
	       "zone=\"vGPU\",namespace=\"ns\",node=\"n1\",pod=\"p\",container_index=\"1\","
	       "device_uuid=\"GPU-a\"",
	       30);
	free(page);
	world_free(world);
}

static void test_own_names(void **state)
{
	struct world *world = world_new();
	struct page *page;

	(void)state;
	page = ask(world);
	expect(page, "kube_vgpu_ready", "", 0);
	assert_true(isnan(value_of(page, "kube_vgpu_source_silence_seconds", "kind=\"node\"")));
	assert_true(isnan(value_of(page, "kube_vgpu_api_requests_total", "")));
	free(page);

	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10");
	world_ask(world, "/filter", "{\"Pod\":" POD("p", "u1", SLICE) ",\"NodeNames\":[\"n1\"]}");
	world_ask(world, "/filter", "not JSON");
	vg_server_observe(world->server, "/filter", 200, 3000000);
	vg_server_observe(world->server, "/filter", 200, 70000000000);
	vg_server_observe(world->server, "/filter", 413, 1);
	vg_server_observe(world->server, "", 404, 1);
	vg_server_observe(world->server, "/bind", 0, 1);
	page = ask(world);
	expect(page, "kube_vgpu_ready", "", 1);
	expect(page, "kube_vgpu_filter_total", "result=\"placed\"", 1);
	expect(page, "kube_vgpu_filter_total", "result=\"error\"", 1);
	expect(page, "kube_vgpu_filter_total", "result=\"no_fit\"", 0);
	expect(page, "kube_vgpu_bind_total", "result=\"bound\"", 0);
	expect(page, "kube_vgpu_decision_duration_seconds_count", "", 1);
	expect(page, "kube_vgpu_http_requests_total", "path=\"/filter\",code=\"200\"", 2);
	expect(page, "kube_vgpu_http_requests_total", "path=\"/filter\",code=\"413\"", 1);
	expect(page, "kube_vgpu_http_requests_total", "path=\"other\",code=\"404\"", 1);
	expect(page, "kube_vgpu_http_requests_total", "path=\"/bind\",code=\"0\"", 1);
	expect(page, "kube_vgpu_http_request_duration_seconds_bucket",
	       "path=\"/filter\",le=\"0.0025\"", 1);
	expect(page, "kube_vgpu_http_request_duration_seconds_bucket",
	       "path=\"/filter\",le=\"0.005\"", 2);
	expect(page, "kube_vgpu_http_request_duration_seconds_bucket", "path=\"/filter\",le=\"30\"",
	       2);
	expect(page, "kube_vgpu_http_request_duration_seconds_count", "path=\"/filter\"", 3);
	expect(page, "kube_vgpu_http_request_duration_seconds_sum", "path=\"/filter\"",
	       70.003000001);
	expect(page, "kube_vgpu_nodes", "state=\"known\"", 1);
	expect(page, "kube_vgpu_nodes", "state=\"registered\"", 1);
	expect(page, "kube_vgpu_cards", "", 1);
	expect(page, "kube_vgpu_pods", "state=\"reserved\"", 1);
	expect(page, "kube_vgpu_pods", "state=\"bound\"", 0);
	expect(page, "kube_vgpu_reservations_total", "", 1);
	expect(page, "kube_vgpu_malformed_total", "kind=\"node\"", 0);
	assert_true(value_of(page, "kube_vgpu_source_silence_seconds", "kind=\"pod\"") >= 0);
	free(page);
	world_free(world);
}

/* In HAMi's words; what is used without a limit is shown as well, with limit="0". */
static void test_quotas(void **state)
{
#define LABELS(ns, name, limit)                                                                    \
	"zone=\"vGPU\",namespace=\"" ns "\",quota_name=\"nvidia.com/" name "\"" limit
	struct world *world = world_new();
	struct vg_sink sink = world_sink(world);
	struct vg_quota_info quota = { .namespace = "ns", .name = "q", .uid = "" };
	struct page *page;

	(void)state;
	world->classes.item[0].mem_factor = 4;
	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,9000,10");
	/* 2000 units of 4 MiB. */
	world_ask(world, "/filter", "{\"Pod\":" POD("p", "u1", SLICE) ",\"NodeNames\":[\"n1\"]}");
	page = ask(world);
	expect(page, "hami_resource_quota_used", LABELS("ns", "gpumem", ",limit=\"0\""), 8000);
	expect(page, "hami_resource_quota_used", LABELS("ns", "gpucores", ",limit=\"0\""), 30);
	assert_true(isnan(value_of(page, "hami_resource_quota_limit", LABELS("ns", "gpumem", ""))));
	expect(page, "kube_vgpu_source_forbidden", "kind=\"resourcequota\"", 0);
	free(page);

	vg_quota_unlimited(quota.hard);
	quota.hard[0].mem_mib = 40000;
	sink.ops->put_quota(sink.ctx, &quota);
	quota.namespace = "zero";
	quota.hard[0].mem_mib = 0;
	sink.ops->put_quota(sink.ctx, &quota);
	sink.ops->forbidden(sink.ctx, VG_KIND_QUOTA);
	page = ask(world);
	expect(page, "hami_resource_quota_used", LABELS("ns", "gpumem", ",limit=\"10000\""), 8000);
	expect(page, "hami_resource_quota_used", LABELS("ns", "gpucores", ",limit=\"0\""), 30);
	expect(page, "hami_resource_quota_limit", LABELS("ns", "gpumem", ""), 10000);
	expect(page, "hami_resource_quota_used", LABELS("zero", "gpumem", ",limit=\"0\""), 0);
	expect(page, "hami_resource_quota_limit", LABELS("zero", "gpumem", ""), 0);
	assert_true(
		isnan(value_of(page, "hami_resource_quota_limit", LABELS("zero", "gpucores", ""))));
	expect(page, "kube_vgpu_source_forbidden", "kind=\"resourcequota\"", 1);
	expect(page, "kube_vgpu_source_forbidden", "kind=\"pod\"", 0);
	free(page);
	world_free(world);
#undef LABELS
}

static void test_malformed_counts(void **state)
{
	struct world *world = world_new();
	struct vg_sink sink = world_sink(world);
	struct page *page;

	(void)state;
	sink.ops->malformed(sink.ctx, VG_KIND_POD, "ns/p", "why not");
	page = ask(world);
	expect(page, "kube_vgpu_malformed_total", "kind=\"pod\"", 1);
	free(page);
	world_free(world);
}

/* Labels with what needs an escape, and one pod that holds a card twice: one series. */
static void test_awkward(void **state)
{
	struct world *world = world_new();
	struct page *page;

	(void)state;
	world_ready(world);
	world_node(world, "n\"1\\", "GPU-a,NVIDIA \"A100\"\n\\,8000,10");
	world_pod(
		world,
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u\",\"annotations\":{"
		"\"hami.io/vgpu-node\":\"n\\\"1\\\\\",\"hami.io/vgpu-devices-allocated\":"
		"\"GPU-a,NVIDIA,100,10:GPU-a,NVIDIA,200,20:;GPU-a,NVIDIA,7,1:;\"}},"
		"\"spec\":{\"nodeName\":\"n\\\"1\\\\\",\"containers\":[{\"name\":\"a\"},{\"name\":"
		"\"b\"}]}}");
	page = ask(world);
	expect(page, "hami_vgpu_memory_allocated_bytes",
	       "zone=\"vGPU\",namespace=\"ns\",node=\"n\\\"1\\\\\",pod=\"p\",container_index=\"0\","
	       "device_uuid=\"GPU-a\"",
	       300.0 * 1048576);
	expect(page, "hami_vgpu_memory_allocated_bytes",
	       "zone=\"vGPU\",namespace=\"ns\",node=\"n\\\"1\\\\\",pod=\"p\",container_index=\"1\","
	       "device_uuid=\"GPU-a\"",
	       7.0 * 1048576);
	expect(page, "hami_gpu_memory_limit_bytes",
	       "zone=\"vGPU\",node=\"n\\\"1\\\\\",device_uuid=\"GPU-a\",device_index=\"0\","
	       "device_type=\"NVIDIA \\\"A100\\\"\\n\\\\\"",
	       8000.0 * 1048576);
	free(page);
	world_free(world);
}

/* A pod and its successor of the same name: their series would collide. */
static void test_successor(void **state)
{
	static const char form[] =
		"{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u1\",\"annotations\":{"
		"\"hami.io/vgpu-node\":\"n1\",\"hami.io/vgpu-devices-allocated\":"
		"\"GPU-a,NVIDIA,100,10:;\"}},\"spec\":{\"nodeName\":\"n1\",\"containers\":[{\"name\":"
		"\"a\"}]}}";
	struct world *world = world_new();
	struct page *page;

	(void)state;
	world_ready(world);
	world_node(world, "n1", "GPU-a,NVIDIA A100,8000,10");
	world_pod(world, form);
	world_ask(
		world, "/filter",
		"{\"Pod\":{\"metadata\":{\"name\":\"p\",\"namespace\":\"ns\",\"uid\":\"u2\"},\"spec\":{"
		"\"containers\":[{\"name\":\"a\",\"resources\":{\"limits\":{" SLICE "}}}]}},"
		"\"NodeNames\":[\"n1\"]}");
	assert_non_null(strstr(world->reply.body, "[\"n1\"]"));
	page = ask(world);
	expect(page, "hami_vgpu_memory_allocated_bytes",
	       "zone=\"vGPU\",namespace=\"ns\",node=\"n1\",pod=\"p\",container_index=\"0\","
	       "device_uuid=\"GPU-a\"",
	       100.0 * 1048576);
	free(page);
	world_free(world);
}

static void give_api_stats(void *ctx, struct vg_server_api_stats *ret_stats)
{
	(void)ctx;
	*ret_stats = (struct vg_server_api_stats){ .lists = { 1, 2 },
						   .watch_restarts = { 3, 4 },
						   .events = { 5, 6 },
						   .requests = 7,
						   .request_failures = 8,
						   .bind_posts = 9 };
}

static size_t give_certificates(void *ctx, struct vg_server_certificate *ret_list)
{
	(void)ctx;
	ret_list[0] = (struct vg_server_certificate){ "webhook", 1999999999 };
	return 1;
}

static void test_callbacks(void **state)
{
	struct world *world = world_new();
	struct page *page;

	(void)state;
	world->options.api_stats = give_api_stats;
	world->options.certificates = give_certificates;
	world_restart(world);
	page = ask(world);
	expect(page, "kube_vgpu_api_lists_total", "kind=\"node\"", 1);
	expect(page, "kube_vgpu_api_lists_total", "kind=\"pod\"", 2);
	expect(page, "kube_vgpu_api_watch_restarts_total", "kind=\"pod\"", 4);
	expect(page, "kube_vgpu_api_events_total", "kind=\"node\"", 5);
	expect(page, "kube_vgpu_api_requests_total", "", 7);
	expect(page, "kube_vgpu_api_request_failures_total", "", 8);
	expect(page, "kube_vgpu_api_bind_posts_total", "", 9);
	expect(page, "kube_vgpu_certificate_expiry_timestamp_seconds", "listener=\"webhook\"",
	       1999999999);
	free(page);
	world_free(world);
}

static void test_histogram(void **state)
{
	static const struct {
		int64_t took_ns;
		size_t bucket;
	} rows[] = {
		{ -5, 0 },
		{ 0, 0 },
		{ 100000, 0 },
		{ 100001, 1 },
		{ 1000000, 3 },
		{ 1000001, 4 },
		{ 30000000000, 16 },
		{ 30000000001, 17 },
		{ 900000000000, 17 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_histogram histogram = { 0 };

		vg_histogram_add(&histogram, rows[i].took_ns);
		assert_int_equal(atomic_load(&histogram.bucket[rows[i].bucket]), 1);
		assert_int_equal(atomic_load(&histogram.sum_ns),
				 rows[i].took_ns < 0 ? 0 : rows[i].took_ns);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hami_names), cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_quotas),     cmocka_unit_test(test_malformed_counts),
		cmocka_unit_test(test_awkward),    cmocka_unit_test(test_successor),
		cmocka_unit_test(test_callbacks),  cmocka_unit_test(test_histogram),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
