/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who holds how much. The container's sum and the process's own count are two words, and a process
 * can die between them: both changes stand between two changes of the slot's inflight count, so that
 * whoever takes the slot back knows whether the sum can be trusted. If not, it is rebuilt: quiesce
 * keeps new entries out, the living finish theirs, and the sum is taken from the slots.
 */
#include <errno.h>
#include <sched.h>
#include <time.h>

#include "region/internal.h"

enum { QUIESCE_TRIES = 2000, QUIESCE_NAP_NS = 50000 };

static bool in_range(int device)
{
	return device >= 0 && device < VGPU_REGION_DEVICES;
}

/* Opens an entry; the slot's count is our bracket. Processes in overflow have no bracket. */
static void enter(struct region *r)
{
	uint32_t *inflight;

	if (r->slot == REGION_NO_SLOT)
		return;
	inflight = &r->ext->slot[r->slot].inflight;
	for (;;) {
		ADD(inflight, 1u);
		if (!LOAD(&r->ext->quiesce))
			return;
		SUB(inflight, 1u);
		/* The repair runs under the mutex: waiting for it, or inheriting it, ends the wait. */
		if (region_lock(r) == 0) {
			if (LOAD(&r->ext->quiesce))
				STORE(&r->ext->quiesce, 0);
			region_unlock(r);
		}
	}
}

static void leave(struct region *r)
{
	if (r->slot != REGION_NO_SLOT)
		SUB(&r->ext->slot[r->slot].inflight, 1u);
}

static uint64_t *part_of(struct vgpu_region_memory *memory, enum region_kind kind)
{
	switch (kind) {
	case REGION_CONTEXT:
		return &memory->context;
	case REGION_MODULE:
		return &memory->module;
	case REGION_DATA:
		break;
	}
	return &memory->data;
}

static void book(struct region *r, int device, enum region_kind kind, uint64_t bytes)
{
	struct vgpu_region_memory *memory;

	if (r->slot == REGION_NO_SLOT) {
		ADD(&r->ext->device[device].overflow, bytes);
		return;
	}
	memory = &r->base->slot[r->slot].used[device];
	__atomic_fetch_add(part_of(memory, kind), bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&memory->total, bytes, __ATOMIC_RELAXED);
}

static void note_peak(struct vgpu_region_device *device, uint64_t used)
{
	/* Lossy on purpose: a statistic is not worth a loop on the hottest line. */
	if (used > __atomic_load_n(&device->peak, __ATOMIC_RELAXED))
		__atomic_store_n(&device->peak, used, __ATOMIC_RELAXED);
}

static int try_reserve(struct region *r, int device, enum region_kind kind, uint64_t bytes)
{
	struct vgpu_region_device *d = &r->ext->device[device];
	uint64_t limit = LOAD(&r->base->limit[device]), used;

	enter(r);
	used = LOAD(&d->used);
	do {
		/*
		 * Look before adding: an addition that is taken back could make a neighbour's
		 * smaller request fail although it fits.
		 */
		if (limit && (bytes > limit || used > limit - bytes)) {
			leave(r);
			return -ENOMEM;
		}
	} while (!CAS(&d->used, &used, used + bytes));
	book(r, device, kind, bytes);
	leave(r);
	note_peak(d, used + bytes);
	return 0;
}

int region_reserve(struct region *r, int device, enum region_kind kind, uint64_t bytes)
{
	if (!in_range(device) || bytes > INT64_MAX)
		return -ENOMEM;
	if (try_reserve(r, device, kind, bytes) == 0)
		return 0;
	if (region_reclaim(r) > 0 && try_reserve(r, device, kind, bytes) == 0)
		return 0;
	ADD(&r->ext->device[device].refused, 1u);
	return -ENOMEM;
}

void region_charge(struct region *r, int device, enum region_kind kind, uint64_t bytes)
{
	if (!in_range(device) || !bytes)
		return;
	enter(r);
	note_peak(&r->ext->device[device], ADD(&r->ext->device[device].used, bytes));
	book(r, device, kind, bytes);
	leave(r);
}

/* Takes up to bytes from *count; returns how much. */
static uint64_t take(uint64_t *count, uint64_t bytes)
{
	uint64_t now = LOAD(count), part;

	do {
		part = bytes < now ? bytes : now;
	} while (!CAS(count, &now, now - part));
	return part;
}

void region_discharge(struct region *r, int device, enum region_kind kind, uint64_t bytes)
{
	uint64_t part;

	if (!in_range(device) || !bytes)
		return;
	enter(r);
	if (r->slot == REGION_NO_SLOT) {
		part = take(&r->ext->device[device].overflow, bytes);
	} else {
		struct vgpu_region_memory *memory = &r->base->slot[r->slot].used[device];

		part = take(part_of(memory, kind), bytes);
		part = take(&memory->total, part);
	}
	take(&r->ext->device[device].used, part);
	leave(r);
}

uint64_t region_used(const struct region *r, int device)
{
	return in_range(device) ? LOAD(&r->ext->device[device].used) : 0;
}

uint64_t region_limit(const struct region *r, int device)
{
	return in_range(device) ? LOAD(&r->base->limit[device]) : 0;
}

/* Until no living process is inside an entry. False when one of them does not move (stopped). */
static bool wait_for_entries(struct region *r)
{
	for (int i = 0; i < QUIESCE_TRIES; i++) {
		struct timespec nap = { 0, QUIESCE_NAP_NS };
		int count = LOAD(&r->base->slot_count), busy = 0;

		for (int s = 0; s < count && s < VGPU_REGION_SLOTS; s++)
			if (LOAD(&r->ext->slot[s].inflight) && region_slot_alive(r, s))
				busy++;
		if (!busy)
			return true;
		nanosleep(&nap, NULL);
	}
	return false;
}

void region_rebuild_locked(struct region *r)
{
	STORE(&r->ext->doubtful, 1u);
	STORE(&r->ext->quiesce, 1u);
	if (wait_for_entries(r)) {
		int count = LOAD(&r->base->slot_count);

		for (int d = 0; d < VGPU_REGION_DEVICES; d++) {
			uint64_t sum = LOAD(&r->ext->device[d].overflow);

			for (int s = 0; s < count && s < VGPU_REGION_SLOTS; s++)
				if (LOAD(&r->base->slot[s].pid) != 0)
					sum += LOAD(&r->base->slot[s].used[d].total);
			STORE(&r->ext->device[d].used, sum);
		}
		r->ext->repaired++;
		STORE(&r->ext->doubtful, 0u);
	}
	STORE(&r->ext->quiesce, 0u);
}
