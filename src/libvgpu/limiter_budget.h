/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arithmetic of the share of GPU time. Pure: no driver, no clock, no heap; works on one device of
 * the shared region and on small records of the caller, so that a simulation can drive it.
 *
 * Money is nanoseconds of GPU time. The budget grows with wall time times the share, up to a cap. A
 * launch is charged its estimate when it is admitted, and the difference to what was measured once
 * the batch that it belongs to has completed. So the budget is always "minus what is still running",
 * and the cap never eats the growth that a long kernel has already used.
 */
#ifndef VGPU_LIBVGPU_LIMITER_BUDGET_H
#define VGPU_LIBVGPU_LIMITER_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/region.h"

enum {
	VG_QUANTUM_NS = 2000000,    /* what one event pair measures, and what a wait saves up */
	VG_CAP_WALL_NS = 100000000, /* idle time that may be made up for */
	VG_UNKNOWN_NS = 1000000,    /* a kernel never measured yet */
	VG_SOLO_EVERY = 128,        /* launches of one kernel between two measured alone */
	VG_SOLO_FIRST = 3,
	VG_PAIR_NS = 2000, /* what an event pair around one kernel adds to it */
	VG_BATCH_LAUNCHES = 256,
	VG_PART_WHOLE = 65536,
	VG_SLICE_NS = 1000000, /* no device gives a process less in one go */
	VG_OUTLIERS_MOST = 8,
	VG_UNDISTURBED_PART = 8, /* a batch longer by more than this part was interrupted */
};

/* Grows the budget up to now. percent 1..100. */
void vg_budget_refill(struct vgpu_region_device *device, uint64_t now_ns, uint32_t percent);

/* True when something may be started. */
bool vg_budget_open(const struct vgpu_region_device *device);

/* Charges (or with a negative amount gives back). */
void vg_budget_take(struct vgpu_region_device *device, int64_t ns);

/* Nanoseconds of wall time until a launch that found the budget shut should look again; at least 1. */
uint64_t vg_budget_wait(const struct vgpu_region_device *device, uint32_t percent);

/*
 * The part of [start, end] in which the container was not known to be busy, and remembers it. Caller
 * holds the region's mutex. Two streams or two processes that share a moment pay for it once.
 */
uint64_t vg_busy_add(struct vgpu_region_device *device, uint64_t start_ns, uint64_t end_ns);

/* What one kind of launch costs. */
struct vg_estimate {
	uint64_t key; /* 0: unused */
	uint64_t ns;
	uint32_t samples;
	uint32_t launches;
	uint32_t outliers; /* in a row, while other tenants were about */
};

/* The estimate to charge a launch with. */
uint64_t vg_estimate_ns(const struct vg_estimate *estimate);
/* Whether this launch should be measured alone. */
bool vg_estimate_wants_solo(const struct vg_estimate *estimate);
/* A launch measured alone took ns between its events. */
void vg_estimate_solo(struct vg_estimate *estimate, uint64_t pair_ns, uint64_t submit_ns);
/* One of the launches of a batch that took ratio (1 << 16 = as estimated) of the sum of estimates. */
void vg_estimate_scale(struct vg_estimate *estimate, uint64_t ratio);

/*
 * Launches on one stream between two events. Host times are when the first launch was about to be and
 * the last had been handed to the driver.
 */
enum { VG_BATCH_KINDS = 8 };

struct vg_batch {
	uint64_t first_host_ns;
	uint64_t last_host_ns;
	uint64_t estimate_ns; /* what the launches were charged */
	uint32_t launches;
	uint32_t kinds; /* distinct estimates in it; more than VG_BATCH_KINDS: not all are listed */
	bool solo;
	struct vg_estimate *kind[VG_BATCH_KINDS];
};

void vg_batch_open(struct vg_batch *batch, uint64_t now_ns);
void vg_batch_launched(struct vg_batch *batch, struct vg_estimate *estimate, uint64_t charged_ns,
		       uint64_t now_ns);
/* Whether the second event is due now. */
bool vg_batch_full(const struct vg_batch *batch);
/*
 * The work of a completed batch; teaches the estimates. part: how much of the time between its events
 * was ours, of VG_PART_WHOLE. shared: other tenants are about; then part is a fair guess and no
 * measurement, and what launches measured alone have taught decides, inside bounds.
 */
uint64_t vg_batch_settle(struct vg_batch *batch, uint64_t pair_ns, uint32_t part, bool shared);

/*
 * How much of a batch was work. pair_ns: between its two events; submit_ns: between the host's first
 * and last call; estimate_ns: sum of the estimates. Idle time inside the batch is at most submit_ns,
 * so the work lies between pair - submit and pair; inside that range the estimates decide. So a
 * program that launches too slowly to keep the device busy does not pay for its own pauses.
 */
uint64_t vg_batch_work(uint64_t pair_ns, uint64_t submit_ns, uint64_t estimate_ns);

#endif
