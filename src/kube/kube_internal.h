/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of the client share: counters, and log lines that cannot flood. */
#ifndef VGPU_KUBE_KUBE_INTERNAL_H
#define VGPU_KUBE_KUBE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "device/sink.h"

/* struct vg_kube_stats while it is being counted. */
struct vg_kube_counters {
	_Atomic uint64_t lists[VG_KIND_COUNT];
	_Atomic uint64_t watch_restarts[VG_KIND_COUNT];
	_Atomic uint64_t failures[VG_KIND_COUNT];
	_Atomic uint64_t events[VG_KIND_COUNT];
	_Atomic uint64_t malformed[VG_KIND_COUNT];
	_Atomic uint64_t stale[VG_KIND_COUNT];
	_Atomic uint64_t requests;
	_Atomic uint64_t request_failures;
	_Atomic uint64_t bind_posts;
	_Atomic uint64_t nudges;
};

static inline void vg_count(_Atomic uint64_t *counter)
{
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

/*
 * A subject may log one line in so long, so that an API server that is down for hours fills no disk;
 * and a few more when it has something else to say.
 */
#define VG_LOG_GATE_NS    (30 * VG_NS_PER_S)
#define VG_LOG_GATE_EXTRA 4

struct vg_log_gate {
	int64_t open_ns;     /* the next line may come from then on */
	uint32_t suppressed; /* lines that did not since the last one */
	int64_t topic;       /* of the last line */
	unsigned extra;      /* lines on other topics since it was open */
};

/*
 * Whether to log now; *ret_suppressed is then how many lines were left out before. `topic` tells
 * messages apart that are worth a line each.
 */
static inline bool vg_log_gate_pass(struct vg_log_gate *gate, int64_t now_ns, int64_t topic,
				    uint32_t *ret_suppressed)
{
	if (now_ns >= gate->open_ns) {
		gate->open_ns = now_ns + VG_LOG_GATE_NS;
		gate->extra = 0;
	} else if (topic != gate->topic && gate->extra < VG_LOG_GATE_EXTRA) {
		gate->extra++;
	} else {
		gate->suppressed++;
		return false;
	}
	gate->topic = topic;
	*ret_suppressed = gate->suppressed;
	gate->suppressed = 0;
	return true;
}

#endif
