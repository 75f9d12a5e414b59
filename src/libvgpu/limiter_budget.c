/* SPDX-License-Identifier: Apache-2.0 */
#include "libvgpu/limiter_budget.h"

#include <string.h>

static int64_t load_budget(const struct vgpu_region_device *device)
{
	return __atomic_load_n(&device->budget_ns, __ATOMIC_RELAXED);
}

static int64_t cap_of(uint32_t percent)
{
	int64_t cap = (int64_t)VG_CAP_WALL_NS * percent / 100;

	return cap < 2 * VG_QUANTUM_NS ? 2 * VG_QUANTUM_NS : cap;
}

void vg_budget_refill(struct vgpu_region_device *device, uint64_t now_ns, uint32_t percent)
{
	uint64_t last = __atomic_load_n(&device->refilled_ns, __ATOMIC_RELAXED);
	int64_t cap = cap_of(percent), budget, gain;

	/* A clock that went back is a region that survived a reboot: start over. */
	if (last == 0 || now_ns < last - (last > VG_CAP_WALL_NS ? VG_CAP_WALL_NS : last)) {
		if (__atomic_compare_exchange_n(&device->refilled_ns, &last, now_ns, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			__atomic_store_n(&device->budget_ns, VG_QUANTUM_NS, __ATOMIC_RELAXED);
		return;
	}
	if (now_ns <= last)
		return;
	/* Whoever moves the time forward brings the growth of that time: nothing comes twice. */
	if (!__atomic_compare_exchange_n(&device->refilled_ns, &last, now_ns, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	if (now_ns - last > INT64_MAX / 100)
		gain = cap;
	else
		gain = (int64_t)(now_ns - last) * percent / 100;
	budget = load_budget(device);
	for (;;) {
		int64_t next = budget > cap - gain ? cap : budget + gain;

		if (next < budget)
			next = budget; /* the share was lowered: keep what was saved, add nothing */
		if (__atomic_compare_exchange_n(&device->budget_ns, &budget, next, false,
						__ATOMIC_RELAXED, __ATOMIC_RELAXED))
			return;
	}
}

bool vg_budget_open(const struct vgpu_region_device *device)
{
	return load_budget(device) > 0;
}

void vg_budget_take(struct vgpu_region_device *device, int64_t ns)
{
	__atomic_fetch_sub(&device->budget_ns, ns, __ATOMIC_RELAXED);
}

uint64_t vg_budget_wait(const struct vgpu_region_device *device, uint32_t percent)
{
	int64_t missing = (int64_t)VG_QUANTUM_NS - load_budget(device);

	if (missing <= 0)
		return 1;
	if (missing > INT64_MAX / 100)
		missing = INT64_MAX / 100;
	return (uint64_t)missing * 100 / (percent ? percent : 1) + 1;
}

/* ---- intervals ----------------------------------------------------------------------------- */

/* Joins the two oldest, so that there is room; the gap between them counts as settled. */
static void drop_oldest(struct vgpu_region_device *device)
{
	device->busy_floor_ns = device->busy[0].end_ns;
	device->busy_count--;
	memmove(&device->busy[0], &device->busy[1], device->busy_count * sizeof(device->busy[0]));
}

uint64_t vg_busy_add(struct vgpu_region_device *device, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t n, first, last, fresh;

	if (device->busy_count > VGPU_REGION_BUSY) /* damage: forget */
		device->busy_count = 0;
	/* A floor in the future is a region that survived a reboot. */
	if (device->busy_floor_ns > end_ns + 1000000000000ull)
		device->busy_floor_ns = 0;
	if (start_ns < device->busy_floor_ns)
		start_ns = device->busy_floor_ns;
	if (end_ns <= start_ns)
		return 0;
	n = device->busy_count;
	fresh = end_ns - start_ns;
	/* Sorted and disjoint: [first, last) are those that touch ours. */
	for (first = 0; first < n && device->busy[first].end_ns < start_ns; first++)
		;
	for (last = first; last < n && device->busy[last].start_ns <= end_ns; last++) {
		uint64_t from = device->busy[last].start_ns, to = device->busy[last].end_ns;

		if (from < start_ns)
			from = start_ns;
		if (to > end_ns)
			to = end_ns;
		if (to > from)
			fresh -= to - from > fresh ? fresh : to - from;
	}
	if (last > first) {
		if (device->busy[first].start_ns < start_ns)
			start_ns = device->busy[first].start_ns;
		if (device->busy[last - 1].end_ns > end_ns)
			end_ns = device->busy[last - 1].end_ns;
		memmove(&device->busy[first + 1], &device->busy[last],
			(n - last) * sizeof(device->busy[0]));
		device->busy_count = n - (last - first) + 1;
	} else {
		if (n == VGPU_REGION_BUSY) {
			if (first == 0) {
				/* Older than all that we remember: it can only be a straggler. */
				return fresh;
			}
			drop_oldest(device);
			n = device->busy_count;
			first--;
		}
		memmove(&device->busy[first + 1], &device->busy[first],
			(n - first) * sizeof(device->busy[0]));
		device->busy_count = n + 1;
	}
	device->busy[first].start_ns = start_ns;
	device->busy[first].end_ns = end_ns;
	return fresh;
}

/* ---- estimates ----------------------------------------------------------------------------- */

uint64_t vg_estimate_ns(const struct vg_estimate *estimate)
{
	return estimate->samples ? estimate->ns : VG_UNKNOWN_NS;
}

bool vg_estimate_wants_solo(const struct vg_estimate *estimate)
{
	return estimate->samples < VG_SOLO_FIRST || estimate->launches % VG_SOLO_EVERY == 0;
}

static void blend(struct vg_estimate *estimate, uint64_t sample, unsigned int shift)
{
	if (estimate->samples == 0)
		estimate->ns = sample;
	else
		estimate->ns = estimate->ns - (estimate->ns >> shift) + (sample >> shift);
	if (estimate->ns == 0)
		estimate->ns = 1;
	if (estimate->samples < UINT32_MAX)
		estimate->samples++;
}

void vg_estimate_solo(struct vg_estimate *estimate, uint64_t pair_ns, uint64_t submit_ns)
{
	uint64_t sample = pair_ns > VG_PAIR_NS ? pair_ns - VG_PAIR_NS : pair_ns / 2;

	/*
	 * On an idle stream the first event fires before the kernel arrives, and the pair holds the
	 * time of submission too (the first launch of a lazily loaded module: many milliseconds).
	 */
	if (submit_ns > sample / 2)
		sample = sample > submit_ns ? sample - submit_ns / 2 : sample / 2;
	blend(estimate, sample ? sample : 1, estimate->samples < 8 ? 1 : 3);
}

void vg_estimate_scale(struct vg_estimate *estimate, uint64_t ratio)
{
	uint64_t sample;

	if (!estimate->samples)
		return;
	if (ratio > (uint64_t)16 << 16)
		ratio = (uint64_t)16 << 16;
	if (estimate->ns > UINT64_MAX >> 22)
		return;
	sample = (estimate->ns * ratio) >> 16;
	blend(estimate, sample ? sample : 1, 3);
}

uint64_t vg_batch_work(uint64_t pair_ns, uint64_t submit_ns, uint64_t estimate_ns)
{
	uint64_t least = pair_ns > submit_ns ? pair_ns - submit_ns : 0;

	if (estimate_ns < least)
		return least;
	return estimate_ns > pair_ns ? pair_ns : estimate_ns;
}

/* ---- batches ------------------------------------------------------------------------------- */

void vg_batch_open(struct vg_batch *batch, uint64_t now_ns)
{
	memset(batch, 0, sizeof(*batch));
	batch->first_host_ns = now_ns;
	batch->last_host_ns = now_ns;
}

void vg_batch_launched(struct vg_batch *batch, struct vg_estimate *estimate, uint64_t charged_ns,
		       uint64_t now_ns)
{
	uint32_t i;

	batch->launches++;
	batch->estimate_ns += charged_ns;
	batch->last_host_ns = now_ns;
	for (i = 0; i < batch->kinds && i < VG_BATCH_KINDS; i++)
		if (batch->kind[i] == estimate)
			return;
	if (batch->kinds < VG_BATCH_KINDS)
		batch->kind[batch->kinds] = estimate;
	if (batch->kinds <= VG_BATCH_KINDS)
		batch->kinds++;
}

bool vg_batch_full(const struct vg_batch *batch)
{
	return batch->solo || batch->estimate_ns >= VG_QUANTUM_NS ||
	       batch->launches >= VG_BATCH_LAUNCHES;
}

/* Charges and teaches from a time that is all ours. */
static uint64_t settle_alone(struct vg_batch *batch, uint64_t pair_ns)
{
	uint64_t submit = batch->last_host_ns - batch->first_host_ns;
	uint64_t work;

	if (batch->launches == 1 && batch->kinds == 1) {
		vg_estimate_solo(batch->kind[0], pair_ns, submit);
		return vg_batch_work(pair_ns, submit, vg_estimate_ns(batch->kind[0]));
	}
	work = vg_batch_work(pair_ns, submit, batch->estimate_ns);
	/* A batch that kept the device busy is a better sample than any single launch. */
	if (submit < pair_ns / 4 && batch->estimate_ns > 0 && work < UINT64_MAX >> 17) {
		uint64_t ratio = (work << 16) / batch->estimate_ns;

		for (uint32_t i = 0; i < batch->kinds && i < VG_BATCH_KINDS; i++)
			vg_estimate_scale(batch->kind[i], ratio);
	}
	return work;
}

/*
 * One launch alone while other tenants are about. Shorter than a slice, it was most likely not
 * interrupted, and its pair is its length; one that was stands out, and is only believed when that
 * goes on. Longer ones are always interrupted: there the fair part is the best guess.
 */
static void teach_shared(struct vg_estimate *e, uint64_t pair_ns, uint64_t mine, uint64_t submit)
{
	if (pair_ns >= VG_SLICE_NS) {
		vg_estimate_solo(e, mine, submit);
		return;
	}
	if (e->samples >= VG_SOLO_FIRST && pair_ns > 2 * e->ns + VG_PAIR_NS &&
	    ++e->outliers <= VG_OUTLIERS_MOST)
		return;
	e->outliers = 0;
	vg_estimate_solo(e, pair_ns, submit);
}

uint64_t vg_batch_settle(struct vg_batch *batch, uint64_t pair_ns, uint32_t part, bool shared)
{
	uint64_t mine, estimate = batch->estimate_ns;

	if (!shared && part >= VG_PART_WHOLE)
		return settle_alone(batch, pair_ns);
	mine = part >= VG_PART_WHOLE || pair_ns > UINT64_MAX >> 16 ? pair_ns
								   : pair_ns * part / VG_PART_WHOLE;
	if (batch->launches == 1 && batch->kinds == 1) {
		teach_shared(batch->kind[0], pair_ns, mine,
			     batch->last_host_ns - batch->first_host_ns);
		estimate = vg_estimate_ns(batch->kind[0]);
	} else if (pair_ns <= estimate + estimate / VG_UNDISTURBED_PART) {
		/*
		 * Not a slice longer than expected: nobody came between, and the time is a measurement
		 * as good as one on a card of our own. It also corrects what launches measured alone
		 * have taught: their pairs hold some microseconds of submission, 6 % of a kernel of
		 * 0.09 ms.
		 */
		return settle_alone(batch, pair_ns);
	}
	/*
	 * Slices are longer than most batches: one that ran through while its neighbour waited has
	 * all of its time, one that was interrupted less than a fair part. Only the time itself is
	 * a bound above; below, half of the guess, for work that has become longer.
	 */
	if (estimate < mine / 2)
		return mine / 2;
	return estimate > pair_ns ? pair_ns : estimate;
}
