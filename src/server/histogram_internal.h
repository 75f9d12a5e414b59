/* SPDX-License-Identifier: Apache-2.0 */
/* Durations in buckets, counted from any thread without a lock. */
#ifndef VGPU_SERVER_HISTOGRAM_INTERNAL_H
#define VGPU_SERVER_HISTOGRAM_INTERNAL_H

#include <stdatomic.h>
#include <stdint.h>

/* Upper bounds in microseconds, rising; the last bucket has none. */
#define VG_HISTOGRAM_BOUNDS_US                                                                     \
	100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000,     \
		2500000, 5000000, 10000000, 30000000

#define VG_HISTOGRAM_BUCKETS 18

struct vg_histogram {
	atomic_uint_fast64_t bucket[VG_HISTOGRAM_BUCKETS];
	atomic_uint_fast64_t sum_ns;
};

extern const int64_t vg_histogram_bound_us[VG_HISTOGRAM_BUCKETS - 1];

void vg_histogram_add(struct vg_histogram *histogram, int64_t took_ns);

#endif
