/* SPDX-License-Identifier: Apache-2.0 */
#include "server/metrics_text_internal.h"

#include <stdio.h>
#include <string.h>

#include "server/decimal_internal.h"

static const struct {
	const char *name;
	const char *type;
	const char *help;
} rows[VG_METRIC_COUNT] = {
#define METRIC(id, name, type, help) [VG_METRIC_##id] = { name, #type, help },
#include "server/metrics.def"
#undef METRIC
};

void vg_metrics_init(struct vg_metrics *metrics, struct vg_buf *buf)
{
	*metrics = (struct vg_metrics){ .buf = buf, .current = VG_METRIC_COUNT };
}

/* `suffix` is that of a histogram's series. */
static void begin(struct vg_metrics *metrics, enum vg_metric metric, const char *suffix)
{
	struct vg_buf *buf = metrics->buf;

	if (metrics->current != metric) {
		vg_buf_addf(buf, "# HELP %s %s\n# TYPE %s %s\n", rows[metric].name,
			    rows[metric].help, rows[metric].name, rows[metric].type);
		metrics->current = metric;
	}
	vg_buf_adds(buf, rows[metric].name);
	vg_buf_adds(buf, suffix);
	metrics->labels = false;
}

void vg_sample_begin(struct vg_metrics *metrics, enum vg_metric metric)
{
	begin(metrics, metric, "");
}

static void begin_label(struct vg_metrics *metrics, const char *name)
{
	vg_buf_add(metrics->buf, metrics->labels ? "," : "{", 1);
	vg_buf_adds(metrics->buf, name);
	vg_buf_add(metrics->buf, "=\"", 2);
	metrics->labels = true;
}

void vg_sample_label(struct vg_metrics *metrics, const char *name, const char *value)
{
	struct vg_buf *buf = metrics->buf;

	begin_label(metrics, name);
	for (;;) {
		size_t plain = strcspn(value, "\\\"\n");

		vg_buf_add(buf, value, plain);
		value += plain;
		if (!*value)
			break;
		vg_buf_adds(buf, *value == '\n' ? "\\n" : *value == '"' ? "\\\"" : "\\\\");
		value++;
	}
	vg_buf_add(buf, "\"", 1);
}

void vg_sample_label_i64(struct vg_metrics *metrics, const char *name, int64_t value)
{
	begin_label(metrics, name);
	vg_buf_add_decimal(metrics->buf, value);
	vg_buf_add(metrics->buf, "\"", 1);
}

static void end_labels(struct vg_metrics *metrics)
{
	if (metrics->labels)
		vg_buf_add(metrics->buf, "}", 1);
}

void vg_sample_end_i64(struct vg_metrics *metrics, int64_t value)
{
	end_labels(metrics);
	vg_buf_add(metrics->buf, " ", 1);
	vg_buf_add_decimal(metrics->buf, value);
	vg_buf_add(metrics->buf, "\n", 1);
}

void vg_sample_end_real(struct vg_metrics *metrics, double value)
{
	end_labels(metrics);
	vg_buf_addf(metrics->buf, " %.12g\n", value);
}

void vg_sample(struct vg_metrics *metrics, enum vg_metric metric, int64_t value)
{
	vg_sample_begin(metrics, metric);
	vg_sample_end_i64(metrics, value);
}

void vg_sample_with(struct vg_metrics *metrics, enum vg_metric metric, const char *name,
		    const char *value, int64_t count)
{
	vg_sample_begin(metrics, metric);
	vg_sample_label(metrics, name, value);
	vg_sample_end_i64(metrics, count);
}

void vg_sample_histogram(struct vg_metrics *metrics, enum vg_metric metric, const char *name,
			 const char *value, struct vg_histogram *histogram)
{
	double sum_s = (double)atomic_load_explicit(&histogram->sum_ns, memory_order_relaxed) / 1e9;
	uint64_t count = 0;

	/* The count is made of the buckets that were read, so that the two never disagree. */
	for (int i = 0; i < VG_HISTOGRAM_BUCKETS; i++) {
		char bound[32] = "+Inf";

		count += atomic_load_explicit(&histogram->bucket[i], memory_order_relaxed);
		if (i < VG_HISTOGRAM_BUCKETS - 1)
			snprintf(bound, sizeof(bound), "%g",
				 (double)vg_histogram_bound_us[i] / 1e6);
		begin(metrics, metric, "_bucket");
		if (name)
			vg_sample_label(metrics, name, value);
		vg_sample_label(metrics, "le", bound);
		vg_sample_end_i64(metrics, (int64_t)count);
	}
	begin(metrics, metric, "_sum");
	if (name)
		vg_sample_label(metrics, name, value);
	vg_sample_end_real(metrics, sum_s);
	begin(metrics, metric, "_count");
	if (name)
		vg_sample_label(metrics, name, value);
	vg_sample_end_i64(metrics, (int64_t)count);
}
