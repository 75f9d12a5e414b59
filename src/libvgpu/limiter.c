/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Holds a container to its share of GPU time. The arithmetic is in limiter_budget.c; here is what
 * touches the driver: pairs of events around batches of launches, their times on one clock, waiting.
 *
 * No thread of our own: what is due is done by the next launch, or by the one that waits anyway. No
 * lock that anybody waits for is held across a call of the driver: a thread that finds a meter in use
 * launches with the estimate alone.
 */
#include <string.h>
#include <time.h>

#include "libvgpu/guest.h"
#include "libvgpu/limiter_budget.h"
#include "libvgpu/tenancy.h"

enum {
	METERS = 32,   /* contexts */
	STREAMS = 64,  /* streams with an open batch, per context */
	PENDING = 256, /* closed batches under way, per context */
	EVENTS = 2 * (PENDING + STREAMS),
	ESTIMATES = 4096, /* kinds of launches, per process */
	UNKNOWN_MOST = 4, /* launches of unknown length under way */

	POLL_NS = 200000,
	NAP_PENDING_NS = 2000000,
	NAP_NS = 20000000,
	NAP_LEAST_NS = 30000,
	BLOCKED_NAP_NS = 20000000,
	UNKNOWN_WAIT_NS = 100000000,
};

static const uint64_t ANCHOR_EVERY_NS = 2000000000u;
static const uint64_t UTIL_EVERY_NS = 1000000000u;

struct stream_state {
	CUstream stream;
	CUevent start;
	bool open;
	struct vg_batch batch;
};

struct pending {
	CUevent start, end;
	struct vg_batch batch;
	uint64_t start_ns, pair_ns, seen_ns; /* once it has been measured */
};

struct meter {
	CUcontext context; /* NULL: free */
	int index;
	uint32_t busy; /* somebody works on it: never waited for */
	uint32_t unknown;
	uint64_t polled_ns;
	CUstream side; /* a stream of ours, for the anchor */
	CUevent anchor;
	uint64_t anchor_ns; /* host time of the anchor, 0 none */
	struct vg_tenancy tenancy;
	uint64_t open_ns; /* host time since which work is under way, 0: none */
	/* Batches: settled | measured, waiting for the others' word | under way | free. */
	uint32_t head, middle, tail;
	uint32_t free_count, created;
	CUevent free_events[EVENTS];
	struct stream_state streams[STREAMS];
	struct pending pending[PENDING];
};

static struct meter meters[METERS];
static uint32_t meters_lock; /* for adding one */
static struct vg_estimate estimates[ESTIMATES];
static struct vg_estimate other = { .key = 1 };

static struct {
	uint64_t since_ns;
	uint64_t work_ns;
} used_time[VGPU_REGION_DEVICES];

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nap(uint64_t ns)
{
	struct timespec t = { (time_t)(ns / 1000000000u), (long)(ns % 1000000000u) };

	(void)clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

void vg_limiter_reset(void)
{
	for (int i = 0; i < METERS; i++) {
		/* A forked child has none of its parent's contexts, so nothing is destroyed. */
		if (meters[i].context) {
			vg_tenancy_abandon(&meters[i].tenancy);
			memset(&meters[i], 0, sizeof(meters[i]));
		}
	}
	meters_lock = 0;
	memset(used_time, 0, sizeof(used_time));
}

/* ---- what applies ------------------------------------------------------------------------------- */

/* Percent that the device's time is to be held to now, 0: not at all. Read anew by every launch. */
static uint32_t share_of(int index)
{
	uint64_t percent = __atomic_load_n(&vg.region.base->sm_limit[index], __ATOMIC_RELAXED);

	if (percent == 0 || percent >= 100 || vg.policy == VG_POLICY_DISABLE)
		return 0;
	if (vg.policy == VG_POLICY_DEFAULT &&
	    !__atomic_load_n(&vg.region.base->utilization_switch, __ATOMIC_RELAXED))
		return 0;
	return (uint32_t)percent;
}

/* Tells the monitor that we are active. Its -1 (blocked) is never overwritten. */
static void report_activity(void)
{
	struct vgpu_region *base = vg.region.base;
	int32_t recent = __atomic_load_n(&base->recent_kernel, __ATOMIC_RELAXED);
	uint64_t second = (uint64_t)time(NULL);

	while (recent >= 0 && recent < 2 &&
	       !__atomic_compare_exchange_n(&base->recent_kernel, &recent, 2, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	if (__atomic_load_n(&base->last_kernel_time, __ATOMIC_RELAXED) != second)
		__atomic_store_n(&base->last_kernel_time, second, __ATOMIC_RELAXED);
}

static bool blocked(void)
{
	return __atomic_load_n(&vg.region.base->recent_kernel, __ATOMIC_RELAXED) < 0;
}

static bool capturing(CUstream stream)
{
	CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;

	/* An error means a capture that this stream would disturb: keep away from it. */
	if (!vg_cuda.cuStreamIsCapturing)
		return false;
	return vg_cuda.cuStreamIsCapturing(stream, &status) != CUDA_SUCCESS ||
	       status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* ---- meters --------------------------------------------------------------------------------------- */

static bool take_meter(struct meter *m)
{
	return !__atomic_exchange_n(&m->busy, 1u, __ATOMIC_ACQUIRE);
}

static void give_meter(struct meter *m)
{
	__atomic_store_n(&m->busy, 0u, __ATOMIC_RELEASE);
}

static struct meter *meter_of(const struct vg_where *where)
{
	struct meter *m = NULL;

	for (int i = 0; i < METERS; i++)
		if (__atomic_load_n(&meters[i].context, __ATOMIC_ACQUIRE) == where->context)
			return &meters[i];
	if (__atomic_exchange_n(&meters_lock, 1u, __ATOMIC_ACQUIRE))
		return NULL;
	for (int i = 0; i < METERS && !m; i++)
		if (!meters[i].context && !meters[i].busy)
			m = &meters[i];
	if (m) {
		vg_tenancy_abandon(&m->tenancy);
		memset(m, 0, sizeof(*m));
		m->index = where->index;
		vg_tenancy_open(&m->tenancy, vg.region.base->uuid[where->index], vg.region.ext->id,
				now_ns());
		__atomic_store_n(&m->context, where->context, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&meters_lock, 0u, __ATOMIC_RELEASE);
	return m;
}

/* The events and the stream died with the context. */
void vg_limiter_context_gone(CUcontext context)
{
	for (int i = 0; i < METERS; i++)
		if (__atomic_load_n(&meters[i].context, __ATOMIC_ACQUIRE) == context)
			__atomic_store_n(&meters[i].context, NULL, __ATOMIC_RELEASE);
	/* Its row among the tenants goes with the meter's next use, or with the process. */
}

static CUevent get_event(struct meter *m)
{
	CUevent event = NULL;

	if (m->free_count)
		return m->free_events[--m->free_count];
	if (m->created < EVENTS && REAL(cuEventCreate, &event, CU_EVENT_DEFAULT) == CUDA_SUCCESS)
		m->created++;
	else
		event = NULL;
	return event;
}

static void put_event(struct meter *m, CUevent event)
{
	if (event && m->free_count < EVENTS)
		m->free_events[m->free_count++] = event;
}

/* The second event of a stream's open batch. */
static void close_batch(struct meter *m, struct stream_state *s)
{
	struct pending *p = &m->pending[m->tail % PENDING];
	CUevent end;

	s->open = false;
	if (m->tail - m->head >= PENDING || !(end = get_event(m))) {
		put_event(m, s->start); /* unmeasured: the estimates stand */
		return;
	}
	if (REAL(cuEventRecord, end, s->stream) != CUDA_SUCCESS) {
		put_event(m, s->start);
		put_event(m, end);
		return;
	}
	p->start = s->start;
	p->end = end;
	p->batch = s->batch;
	m->tail++;
}

static struct stream_state *stream_of(struct meter *m, CUstream stream)
{
	struct stream_state *unused = NULL;

	for (int i = 0; i < STREAMS; i++) {
		if (m->streams[i].open && m->streams[i].stream == stream)
			return &m->streams[i];
		if (!m->streams[i].open && !unused)
			unused = &m->streams[i];
	}
	return unused;
}

/* A stream that is being destroyed must not be recorded on any more. */
void vg_limiter_stream_gone(CUstream stream)
{
	for (int i = 0; i < METERS; i++) {
		struct meter *m = &meters[i];

		if (!m->context || !take_meter(m))
			continue;
		for (int s = 0; s < STREAMS; s++) {
			if (m->streams[s].open && m->streams[s].stream == stream) {
				m->streams[s].open = false;
				put_event(m, m->streams[s].start);
			}
		}
		give_meter(m);
	}
}

/* ---- one clock -------------------------------------------------------------------------------------- */

/*
 * Event times are relative; processes of a container compare theirs on CLOCK_MONOTONIC. An event on a
 * stream of our own is passed at once, so the moment of its completion is known to some microseconds.
 */
static void drop_anchor(struct meter *m, uint64_t now)
{
	uint64_t before, after;

	if (m->anchor_ns && now - m->anchor_ns < ANCHOR_EVERY_NS)
		return;
	if (!m->side && REAL(cuStreamCreate, &m->side, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS) {
		m->side = NULL;
		return;
	}
	if (!m->anchor && REAL(cuEventCreate, &m->anchor, CU_EVENT_DEFAULT) != CUDA_SUCCESS) {
		m->anchor = NULL;
		return;
	}
	before = now_ns();
	if (REAL(cuEventRecord, m->anchor, m->side) != CUDA_SUCCESS ||
	    REAL(cuEventSynchronize, m->anchor) != CUDA_SUCCESS) {
		m->anchor_ns = 0;
		return;
	}
	after = now_ns();
	m->anchor_ns = before + (after - before) / 2;
}

static bool elapsed(CUevent from, CUevent to, int64_t *ret_ns)
{
	float ms = 0;

	if (REAL(cuEventElapsedTime, &ms, from, to) != CUDA_SUCCESS)
		return false;
	*ret_ns = (int64_t)((double)ms * 1e6);
	return true;
}

/* ---- settling ----------------------------------------------------------------------------------------- */

static void note_utilisation(int index, uint64_t now, uint64_t work)
{
	uint64_t sum = __atomic_add_fetch(&used_time[index].work_ns, work, __ATOMIC_RELAXED);
	uint64_t since = __atomic_load_n(&used_time[index].since_ns, __ATOMIC_RELAXED);

	if (now - since < UTIL_EVERY_NS ||
	    !__atomic_compare_exchange_n(&used_time[index].since_ns, &since, now, false,
					 __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		return;
	__atomic_fetch_sub(&used_time[index].work_ns, sum, __ATOMIC_RELAXED);
	if (since && vg.region.slot != REGION_NO_SLOT) {
		uint64_t percent = sum * 100 / (now - since);

		__atomic_store_n(&vg.region.base->slot[vg.region.slot].util[index].sm,
				 percent > 100 ? 100 : percent, __ATOMIC_RELAXED);
	}
}

/* Its second event has been passed: reads the times, gives the events back. */
static void measure(struct meter *m, struct pending *p, uint64_t now)
{
	int64_t pair = 0, offset;

	for (uint32_t i = 0; i < p->batch.kinds && i < VG_BATCH_KINDS; i++)
		if (p->batch.kind[i]->samples == 0 && m->unknown)
			m->unknown--;
	p->pair_ns = 0;
	p->seen_ns = now;
	if (elapsed(p->start, p->end, &pair) && pair > 0) {
		p->pair_ns = (uint64_t)pair;
		p->start_ns = now - p->pair_ns;
		if (m->anchor_ns && elapsed(m->anchor, p->start, &offset))
			p->start_ns = (uint64_t)((int64_t)m->anchor_ns + offset);
		/* What is still under way began no earlier than this ended. */
		if (m->open_ns && m->open_ns < p->start_ns + p->pair_ns)
			m->open_ns = p->start_ns + p->pair_ns;
		m->tenancy.own.open_ns = m->open_ns;
		vg_tenancy_publish(&m->tenancy, p->start_ns, p->start_ns + p->pair_ns, now);
	}
	put_event(m, p->start);
	put_event(m, p->end);
}

static void settle(struct meter *m, struct pending *p, uint64_t now)
{
	struct vgpu_region_device *device = &vg.region.ext->device[m->index];
	uint64_t end = p->start_ns + p->pair_ns, fresh = p->pair_ns, work;
	uint32_t part;

	if (!p->pair_ns)
		return; /* not measured: the estimates stand */
	if (region_lock(&vg.region) == 0) {
		fresh = vg_busy_add(device, p->start_ns, end);
		region_unlock(&vg.region);
	}
	/* The slices of other tenants inside the interval are not ours. */
	part = vg_tenancy_part(&m->tenancy, p->start_ns, end, now);
	if (fresh < p->pair_ns)
		fresh = fresh * part / VG_TENANT_WHOLE;
	work = p->batch.estimate_ns;
	vg_budget_take(device, -(int64_t)work);
	work = vg_batch_settle(&p->batch, p->pair_ns, part, m->tenancy.others);
	/* Time that another stream or process of ours has paid for is not paid again. */
	if (fresh < p->pair_ns)
		work = work < fresh ? work : fresh;
	vg_budget_take(device, (int64_t)work);
	__atomic_store_n(&device->part, part, __ATOMIC_RELAXED);
	if (part < VG_TENANT_WHOLE)
		__atomic_fetch_or(&device->state, VGPU_DEVICE_SHARED, __ATOMIC_RELAXED);
	__atomic_fetch_add(&device->charged_ns, work, __ATOMIC_RELAXED);
	__atomic_fetch_add(&device->measured_ns, p->pair_ns, __ATOMIC_RELAXED);
	note_utilisation(m->index, now, work);
}

/* Tells the other tenants whether work of this context is under way, and for about how long. */
static void tell(struct meter *m, uint64_t now)
{
	uint64_t expected = 0;
	bool open = m->middle != m->tail;

	for (uint32_t i = m->middle; i != m->tail; i++)
		expected += m->pending[i % PENDING].batch.estimate_ns;
	for (int i = 0; i < STREAMS; i++) {
		if (!m->streams[i].open)
			continue;
		open = true;
		expected += m->streams[i].batch.estimate_ns;
	}
	if (!open)
		m->open_ns = 0;
	else if (!m->open_ns)
		m->open_ns = now;
	/* Twice: our estimates are for a card of our own, and it is shared. */
	vg_tenancy_working(&m->tenancy, m->open_ns,
			   m->open_ns ? now + 2 * expected + VG_QUANTUM_NS : 0, now);
}

/* Takes in what has completed. Caller has taken the meter. */
static void poll(struct meter *m, uint64_t now)
{
	m->polled_ns = now;
	while (m->middle != m->tail) {
		struct pending *p = &m->pending[m->middle % PENDING];
		CUresult rc = REAL(cuEventQuery, p->end);

		if (rc == CUDA_ERROR_NOT_READY)
			break;
		if (rc != CUDA_SUCCESS) {
			/* A broken context: it will not measure anything any more. */
			m->head = m->middle = m->tail;
			return;
		}
		measure(m, p, now);
		m->middle++;
	}
	for (; m->head != m->middle; m->head++) {
		struct pending *p = &m->pending[m->head % PENDING];

		if (m->tenancy.others && now - p->seen_ns < VG_TENANT_LAG_NS)
			break;
		settle(m, p, now);
	}
}

/* ---- launches -------------------------------------------------------------------------------------------- */

static struct vg_estimate *estimate_of(uint64_t key)
{
	uint64_t at;

	key ^= key >> 31;
	key *= 0x9e3779b97f4a7c15ull;
	key ^= key >> 29;
	if (key < 2)
		key = 2;
	at = key % ESTIMATES;
	for (int i = 0; i < 64; i++, at = (at + 1) % ESTIMATES) {
		uint64_t have = __atomic_load_n(&estimates[at].key, __ATOMIC_RELAXED);

		if (have == key)
			return &estimates[at];
		if (have == 0 && (__atomic_compare_exchange_n(&estimates[at].key, &have, key, false,
							      __ATOMIC_RELAXED, __ATOMIC_RELAXED) ||
				  have == key))
			return &estimates[at];
	}
	return &other;
}

/*
 * Our calls of the driver must not disturb a capture that another thread has begun in global mode;
 * in relaxed mode the driver lets this thread do them.
 */
static CUstreamCaptureMode relax(void)
{
	CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;

	(void)REAL(cuThreadExchangeStreamCaptureMode, &mode);
	return mode;
}

static void unrelax(CUstreamCaptureMode mode)
{
	(void)REAL(cuThreadExchangeStreamCaptureMode, &mode);
}

static void close_all(struct meter *m)
{
	for (int i = 0; i < STREAMS; i++)
		if (m->streams[i].open)
			close_batch(m, &m->streams[i]);
}

/* Waits for its turn. False: the share no longer applies. */
static bool admit(struct meter *m, struct vg_launch *launch, uint64_t now)
{
	struct vgpu_region_device *device = &vg.region.ext->device[launch->index];
	uint64_t began = now;
	bool shut = false;

	for (;; now = now_ns()) {
		uint32_t percent = share_of(launch->index);
		bool unknown, pending = false;
		uint64_t wait;

		if (!percent)
			return false;
		vg_budget_refill(device, now, percent);
		if (m && (shut || now - m->polled_ns > POLL_NS) && take_meter(m)) {
			if (shut)
				close_all(m);
			drop_anchor(m, now);
			poll(m, now);
			tell(m, now);
			pending = m->middle != m->tail || m->tenancy.others;
			give_meter(m);
		}
		unknown = m && launch->estimate->samples == 0 && m->unknown >= UNKNOWN_MOST &&
			  now - began < UNKNOWN_WAIT_NS;
		wait = vg_budget_wait(device, percent);
		if (!unknown && (shut ? wait <= 1 : vg_budget_open(device)))
			break;
		if (!shut) {
			shut = true; /* close and look once more before sleeping */
			continue;
		}
		if (unknown && wait <= 1)
			wait = NAP_LEAST_NS;
		if (wait > (pending ? NAP_PENDING_NS : NAP_NS))
			wait = pending ? NAP_PENDING_NS : NAP_NS;
		nap(wait > NAP_LEAST_NS ? wait : NAP_LEAST_NS);
	}
	if (shut)
		__atomic_fetch_add(&device->waited_ns, now - began, __ATOMIC_RELAXED);
	return true;
}

static void begin_limited(struct vg_launch *launch, const struct vg_where *where, uint64_t key)
{
	struct vgpu_region_device *device = &vg.region.ext->device[where->index];
	CUstreamCaptureMode mode = relax();
	struct vg_estimate *e = estimate_of(key);
	struct meter *m = meter_of(where);

	launch->index = where->index;
	launch->estimate = e;
	if (!(__atomic_load_n(&device->state, __ATOMIC_RELAXED) & VGPU_DEVICE_SHARE_ENFORCED))
		__atomic_fetch_or(&device->state, VGPU_DEVICE_SHARE_ENFORCED, __ATOMIC_RELAXED);
	if (!admit(m, launch, now_ns())) {
		launch->estimate = NULL;
		unrelax(mode);
		return;
	}
	__atomic_fetch_add(&e->launches, 1u, __ATOMIC_RELAXED);
	launch->charged = vg_estimate_ns(e);
	vg_budget_take(device, (int64_t)launch->charged);
	if (m && take_meter(m)) {
		struct stream_state *s = stream_of(m, launch->stream);
		bool solo = vg_estimate_wants_solo(e);

		if (s && s->open && solo) {
			close_batch(m, s);
		}
		if (s && !s->open) {
			s->stream = launch->stream;
			s->start = get_event(m);
			launch->before_ns = now_ns();
			if (s->start && REAL(cuEventRecord, s->start, s->stream) == CUDA_SUCCESS) {
				s->open = true;
				vg_batch_open(&s->batch, launch->before_ns);
				s->batch.solo = solo;
			} else {
				put_event(m, s->start);
			}
		}
		if (e->samples == 0)
			m->unknown++;
		give_meter(m);
		launch->meter = m;
	}
	unrelax(mode);
}

void vg_launch_begin(struct vg_launch *launch, CUstream stream, uint64_t key)
{
	struct vg_where where;

	launch->meter = NULL;
	launch->estimate = NULL;
	launch->stream = stream;
	report_activity();
	if (UNLIKELY((blocked() || vg_suspended()) && !capturing(stream))) {
		vg_gate();
		while (blocked())
			nap(BLOCKED_NAP_NS);
	}
	/* The usual case costs nothing more: one device, no share. */
	if (LIKELY(vg.single_device) && !share_of(vg.index[0]))
		return;
	if (!vg_current(&where) || !share_of(where.index))
		return;
	if (capturing(stream))
		return;
	begin_limited(launch, &where, key);
}

void vg_launch_end(struct vg_launch *launch, CUresult rc)
{
	struct vgpu_region_device *device;
	struct meter *m = launch->meter;

	if (LIKELY(!launch->estimate))
		return;
	device = &vg.region.ext->device[launch->index];
	if (rc != CUDA_SUCCESS) {
		vg_budget_take(device, -(int64_t)launch->charged);
		return;
	}
	if (m && take_meter(m)) {
		struct stream_state *s = stream_of(m, launch->stream);

		if (s && s->open) {
			vg_batch_launched(&s->batch, launch->estimate, launch->charged, now_ns());
			if (vg_batch_full(&s->batch)) {
				CUstreamCaptureMode mode = relax();

				close_batch(m, s);
				unrelax(mode);
				tell(m, s->batch.last_host_ns);
			}
		}
		give_meter(m);
	}
}
