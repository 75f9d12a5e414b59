/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prometheus text format 0.0.4. HELP and TYPE come with the first sample of a metric; all samples of a
 * metric have to be written in one go.
 */
#ifndef VGPU_SERVER_METRICS_TEXT_INTERNAL_H
#define VGPU_SERVER_METRICS_TEXT_INTERNAL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "server/histogram_internal.h"

enum vg_metric {
#define METRIC(id, name, type, help) VG_METRIC_##id,
#include "server/metrics.def"
#undef METRIC
	VG_METRIC_COUNT,
};

struct vg_metrics {
	struct vg_buf *buf;
	enum vg_metric current;
	bool labels; /* of the current sample: at least one was written */
};

void vg_metrics_init(struct vg_metrics *metrics, struct vg_buf *buf);

/* One sample: begin, any labels, end. */
void vg_sample_begin(struct vg_metrics *metrics, enum vg_metric metric);
void vg_sample_label(struct vg_metrics *metrics, const char *name, const char *value);
void vg_sample_label_i64(struct vg_metrics *metrics, const char *name, int64_t value);
void vg_sample_end_i64(struct vg_metrics *metrics, int64_t value);
void vg_sample_end_real(struct vg_metrics *metrics, double value);

/* A sample without labels, and one with a single label. */
void vg_sample(struct vg_metrics *metrics, enum vg_metric metric, int64_t value);
void vg_sample_with(struct vg_metrics *metrics, enum vg_metric metric, const char *name,
		    const char *value, int64_t count);

/* The series of a histogram, with one label unless `name` is NULL. */
void vg_sample_histogram(struct vg_metrics *metrics, enum vg_metric metric, const char *name,
			 const char *value, struct vg_histogram *histogram);

#endif
