/* SPDX-License-Identifier: Apache-2.0 */
#include "server/histogram_internal.h"

const int64_t vg_histogram_bound_us[VG_HISTOGRAM_BUCKETS - 1] = { VG_HISTOGRAM_BOUNDS_US };

_Static_assert(sizeof((int64_t[]){ VG_HISTOGRAM_BOUNDS_US }) / sizeof(int64_t) ==
		       VG_HISTOGRAM_BUCKETS - 1,
	       "one bucket per bound, and one above");

void vg_histogram_add(struct vg_histogram *histogram, int64_t took_ns)
{
	int index = 0;

	if (took_ns < 0)
		took_ns = 0;
	while (index < VG_HISTOGRAM_BUCKETS - 1 && took_ns > vg_histogram_bound_us[index] * 1000)
		index++;
	atomic_fetch_add_explicit(&histogram->bucket[index], 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&histogram->sum_ns, (uint64_t)took_ns, memory_order_relaxed);
}
