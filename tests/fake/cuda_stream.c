/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events over the unit's queue (state.h).
 *
 * A stream's work goes straight into the device's queue as long as its order is the queue's business
 * alone. What also waits for something else (a host function, a value in memory, another device)
 * stays in the stream's own list, with everything behind it; the pump, a thread that is started by
 * the first such item, moves it on.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cuda_driver.h"

/* A nap never lasts longer: other processes may die, and then things go faster than expected. */
#define NAP_MAX_NS 20000000ull
#define NAP_MIN_NS 5000ull
/* How often a value in memory is looked at. */
#define POLL_NS    100000ull

enum deferred_kind {
	DEFERRED_WORK,
	DEFERRED_RECORD,
	DEFERRED_WAIT,
	DEFERRED_HOST,
	DEFERRED_CALLBACK,
	DEFERRED_VALUE,
	DEFERRED_PAGE,
};

struct fake_deferred {
	enum deferred_kind kind;
	struct fake_deferred *next;
	bool running;
	uint64_t ns;
	uint32_t sms;
	struct fake_mark *mark;
	struct fake_event_page *page;
	CUhostFn host;
	CUstreamCallback callback;
	void *data;
	uint64_t address, value;
	uint32_t bytes;
	int compare;
};

static struct CUstream_st *deferred_streams;
static pthread_t pump;
static bool pump_runs, pump_ends;

/* ---- waiting ---- */

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ (time_t)(ns / 1000000000), (long)(ns % 1000000000) };
}

static void nap_until(uint64_t until_ns)
{
	uint64_t now_ns = fake_clock_ns();
	struct timespec until;
	int slack;

	if (until_ns < now_ns + NAP_MIN_NS)
		until_ns = now_ns + NAP_MIN_NS;
	if (until_ns > now_ns + NAP_MAX_NS)
		until_ns = now_ns + NAP_MAX_NS;
	until = timespec_of(until_ns);
	pthread_mutex_unlock(&fake.lock);
	/* The kernel rounds a thread's naps up by its slack, 50 us unless told otherwise: ten times what a
	 * real card takes to answer. The thread gets its own value back. */
	slack = prctl(PR_GET_TIMERSLACK);
	prctl(PR_SET_TIMERSLACK, 1ul);
	clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	if (slack > 0)
		prctl(PR_SET_TIMERSLACK, (unsigned long)slack);
	pthread_mutex_lock(&fake.lock);
}

CUresult fake_nap(void)
{
	nap_until(fake_clock_ns() + POLL_NS);
	return fake.phase == FAKE_READY ? CUDA_SUCCESS : CUDA_ERROR_DEINITIALIZED;
}

/* ---- the device's queue ---- */

void fake_mark_put(struct fake_mark *mark)
{
	if (mark && --mark->refs == 0)
		free(mark);
}

static struct fake_mark *mark_new(uint32_t device)
{
	struct fake_mark *mark = vg_new(sizeof(*mark));

	mark->refs = 1;
	mark->device = device;
	return mark;
}

static struct fake_mark *mark_get(struct fake_mark *mark)
{
	mark->refs++;
	return mark;
}

static void mark_done(struct fake_mark *mark, uint64_t end_ns)
{
	mark->state = FAKE_MARK_DONE;
	mark->end_ns = end_ns;
	if (mark->page && mark->page->seq == mark->seq)
		mark->page->state = FAKE_PAGE_DONE;
}

static void drained(void *context, uint64_t seq, uint64_t start_ns, uint64_t end_ns)
{
	struct fake_device *device = context;
	struct fake_mark **at = &device->mark_at[seq % FAKE_QUEUE_OPS];

	(void)start_ns;
	device->drained_seq = seq + 1;
	if (*at) {
		mark_done(*at, end_ns);
		fake_mark_put(*at);
		*at = NULL;
	}
}

static void drain(struct fake_device *device)
{
	if (device->queue_open && device->drained_seq != device->next_seq)
		fake_queue_drain(fake.state, device->queue, drained, device);
}

/* Whether the place is complete; otherwise when it may be. */
static bool seq_done(struct fake_device *device, uint64_t seq, uint64_t *ret_when_ns)
{
	uint64_t start_ns;

	if (seq >= device->drained_seq)
		drain(device);
	if (seq < device->drained_seq)
		return true;
	return fake_queue_done(fake.state, device->queue, seq, &start_ns, ret_when_ns);
}

static CUresult queue_open(struct fake_device *device)
{
	if (device->queue_open)
		return CUDA_SUCCESS;
	if (fake_queue_open(fake.state, device->unit, &device->queue) < 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	device->queue_open = true;
	device->next_seq = device->drained_seq = 0;
	return CUDA_SUCCESS;
}

/* May sleep; afterwards one push will succeed. */
static CUresult make_room(struct fake_device *device)
{
	CUresult rc = queue_open(device);

	if (rc != CUDA_SUCCESS)
		return rc;
	for (;;) {
		uint64_t when_ns;

		if (device->next_seq - device->drained_seq < FAKE_QUEUE_OPS)
			return CUDA_SUCCESS;
		drain(device);
		if (device->next_seq - device->drained_seq < FAKE_QUEUE_OPS)
			return CUDA_SUCCESS;
		if (!seq_done(device, device->drained_seq, &when_ns))
			nap_until(when_ns);
		if (fake.phase != FAKE_READY)
			return CUDA_ERROR_DEINITIALIZED;
	}
}

/* Needs room. `mark` may be NULL. */
static void push(struct CUstream_st *stream, const struct fake_work *like, struct fake_mark *mark)
{
	struct fake_device *device = &fake.device[stream->object.context->device];
	struct fake_work work = *like;
	uint64_t seq;

	work.stream = stream->id;
	if (stream->legacy)
		work.flags |= FAKE_OP_BARRIER;
	else if (stream->flags & CU_STREAM_NON_BLOCKING)
		work.flags |= FAKE_OP_FREE;
	if (fake_queue_push(fake.state, device->queue, &work, &seq) < 0)
		abort(); /* make_room() promised */
	device->next_seq = seq + 1;
	stream->has_work = true;
	stream->last_seq = seq;
	if (mark) {
		mark->state = FAKE_MARK_QUEUED;
		mark->seq = seq;
		if (mark->page) {
			mark->page->queue = device->queue;
			mark->page->seq = seq;
			mark->page->state = FAKE_PAGE_QUEUED;
		}
		device->mark_at[seq % FAKE_QUEUE_OPS] = mark_get(mark);
	}
}

static struct fake_work work_of(const struct CUstream_st *stream, uint64_t ns, uint32_t sms)
{
	uint32_t all =
		fake_unit_sms(&fake.machine, fake.device[stream->object.context->device].unit);

	return (struct fake_work){
		.ns = ns,
		.sms = (uint16_t)(sms == 0 || sms > all ? all : sms),
	};
}

/* ---- what waits for more than the queue ---- */

static void *pump_main(void *unused);

static struct fake_deferred *defer(struct CUstream_st *stream, enum deferred_kind kind)
{
	struct fake_deferred *item = vg_new(sizeof(*item));

	item->kind = kind;
	if (!stream->deferred)
		stream->deferred_end = &stream->deferred;
	*stream->deferred_end = item;
	stream->deferred_end = &item->next;
	if (!stream->in_deferred_list) {
		stream->in_deferred_list = true;
		stream->next_deferred = deferred_streams;
		deferred_streams = stream;
	}
	if (!pump_runs) {
		pump_ends = false;
		pump_runs = pthread_create(&pump, NULL, pump_main, NULL) == 0;
	}
	pthread_cond_broadcast(&fake.changed);
	return item;
}

static void deferred_pop(struct CUstream_st *stream)
{
	struct fake_deferred *item = stream->deferred;

	stream->deferred = item->next;
	fake_mark_put(item->mark);
	free(item);
	pthread_cond_broadcast(&fake.changed);
}

static bool value_matches(const struct fake_deferred *item)
{
	const volatile void *place = (const volatile void *)(uintptr_t)item->address;
	uint64_t now =
		item->bytes == 4
			? __atomic_load_n((const volatile uint32_t *)place, __ATOMIC_ACQUIRE)
			: __atomic_load_n((const volatile uint64_t *)place, __ATOMIC_ACQUIRE);
	uint64_t mask = item->bytes == 4 ? UINT32_MAX : UINT64_MAX;

	switch (item->compare) {
	case CU_STREAM_WAIT_VALUE_GEQ:
		return item->bytes == 4 ? (int32_t)(uint32_t)(now - item->value) >= 0
					: (int64_t)(now - item->value) >= 0;
	case CU_STREAM_WAIT_VALUE_EQ:
		return now == (item->value & mask);
	case CU_STREAM_WAIT_VALUE_AND:
		return (now & item->value) != 0;
	default:
		return ((~(now | item->value)) & mask) != 0;
	}
}

static void value_write(const struct fake_deferred *item)
{
	volatile void *place = (volatile void *)(uintptr_t)item->address;

	if (item->bytes == 4)
		__atomic_store_n((volatile uint32_t *)place, (uint32_t)item->value,
				 __ATOMIC_RELEASE);
	else
		__atomic_store_n((volatile uint64_t *)place, item->value, __ATOMIC_RELEASE);
}

/* What is left of the stream in the device's queue must be complete before its next item. */
static bool queue_part_done(struct CUstream_st *stream, uint64_t *ret_when_ns)
{
	struct fake_device *device = &fake.device[stream->object.context->device];

	if (!stream->has_work)
		return true;
	if (!seq_done(device, stream->last_seq, ret_when_ns))
		return false;
	stream->has_work = false;
	return true;
}

static bool mark_is_done(struct fake_mark *mark, uint64_t *ret_when_ns)
{
	uint64_t start_ns, end_ns;
	struct fake_device *device = &fake.device[mark->device];

	if (mark->state == FAKE_MARK_QUEUED)
		drain(device);
	switch (mark->state) {
	case FAKE_MARK_DONE:
		return true;
	case FAKE_MARK_DEFERRED:
		*ret_when_ns = fake_clock_ns() + NAP_MAX_NS;
		return false;
	case FAKE_MARK_QUEUED:
		break;
	}
	if (!fake_queue_done(fake.state, device->queue, mark->seq, &start_ns, &end_ns)) {
		*ret_when_ns = end_ns;
		return false;
	}
	/* Complete before older work of other streams; its place is handed over later. */
	mark_done(mark, end_ns);
	return true;
}

bool fake_page_done(struct fake_event_page *page)
{
	uint32_t state = page->state;
	uint64_t start_ns, end_ns;

	switch (state) {
	case FAKE_PAGE_DEFERRED:
		return false;
	case FAKE_PAGE_QUEUED:
		/* Its process need not be looking; the queue is common property. */
		return fake_queue_done(fake.state, page->queue, page->seq, &start_ns, &end_ns) ||
		       page->state == FAKE_PAGE_DONE;
	default:
		return true;
	}
}

bool fake_mark_look(struct fake_mark *mark)
{
	uint64_t when_ns;

	return mark_is_done(mark, &when_ns);
}

CUresult fake_mark_wait(struct fake_mark *mark)
{
	CUresult rc = CUDA_SUCCESS;
	uint64_t when_ns;

	mark_get(mark);
	while (rc == CUDA_SUCCESS && !mark_is_done(mark, &when_ns)) {
		if (mark->state == FAKE_MARK_DEFERRED)
			pthread_cond_wait(&fake.changed, &fake.lock);
		else
			nap_until(when_ns);
		if (fake.phase != FAKE_READY)
			rc = CUDA_ERROR_DEINITIALIZED;
	}
	if (rc == CUDA_SUCCESS)
		fake_pools_synchronised(mark->device);
	fake_mark_put(mark);
	return rc;
}

/*
 * Moves the stream's first item on. False when it has to wait, with the moment to look again. Lets go
 * of the lock while a function of the program runs.
 */
static bool deferred_step(struct CUstream_st *stream, uint64_t *ret_when_ns)
{
	struct fake_deferred *item = stream->deferred;
	struct fake_work work;

	if (item->running)
		return false;
	switch (item->kind) {
	case DEFERRED_WORK:
	case DEFERRED_RECORD:
		item->running = true; /* make_room() may sleep */
		if (make_room(&fake.device[stream->object.context->device]) != CUDA_SUCCESS)
			return false;
		item->running = false;
		work = (struct fake_work){ .ns = item->ns, .sms = (uint16_t)item->sms };
		push(stream, &work, item->mark);
		break;
	case DEFERRED_WAIT:
		if (!mark_is_done(item->mark, ret_when_ns))
			return false;
		break;
	case DEFERRED_HOST:
	case DEFERRED_CALLBACK:
		if (!queue_part_done(stream, ret_when_ns))
			return false;
		item->running = true;
		pthread_mutex_unlock(&fake.lock);
		if (item->kind == DEFERRED_HOST)
			item->host(item->data);
		else
			item->callback(stream->legacy ? NULL : stream, CUDA_SUCCESS, item->data);
		pthread_mutex_lock(&fake.lock);
		break;
	case DEFERRED_PAGE:
		if (!fake_page_done(item->page)) {
			*ret_when_ns = fake_clock_ns() + POLL_NS;
			return false;
		}
		break;
	case DEFERRED_VALUE:
		if (!queue_part_done(stream, ret_when_ns))
			return false;
		if (item->compare < 0) {
			value_write(item);
		} else if (!value_matches(item)) {
			*ret_when_ns = fake_clock_ns() + POLL_NS;
			return false;
		}
		break;
	}
	deferred_pop(stream);
	return true;
}

static void *pump_main(void *unused)
{
	(void)unused;
	pthread_mutex_lock(&fake.lock);
	while (!pump_ends) {
		uint64_t wake_ns = UINT64_MAX;
		bool moved = false;

		for (struct CUstream_st **at = &deferred_streams; *at && !moved;) {
			struct CUstream_st *stream = *at;
			uint64_t when_ns = UINT64_MAX;

			if (!stream->deferred) {
				*at = stream->next_deferred;
				stream->in_deferred_list = false;
				continue;
			}
			/* The list may have changed while a function ran: start again. */
			moved = deferred_step(stream, &when_ns);
			if (when_ns < wake_ns)
				wake_ns = when_ns;
			if (!moved)
				at = &stream->next_deferred;
		}
		if (moved || pump_ends)
			continue;
		if (wake_ns == UINT64_MAX) {
			pthread_cond_wait(&fake.changed, &fake.lock);
		} else {
			uint64_t now_ns = fake_clock_ns();
			struct timespec until;

			if (wake_ns < now_ns + NAP_MIN_NS)
				wake_ns = now_ns + NAP_MIN_NS;
			if (wake_ns > now_ns + NAP_MAX_NS)
				wake_ns = now_ns + NAP_MAX_NS;
			until = timespec_of(wake_ns);
			pthread_cond_timedwait(&fake.changed, &fake.lock, &until);
		}
	}
	pthread_mutex_unlock(&fake.lock);
	return NULL;
}

void fake_pump_after_fork(void)
{
	pump_runs = false;
}

void fake_pump_stop(void)
{
	pthread_mutex_lock(&fake.lock);
	if (!pump_runs || pthread_equal(pthread_self(), pump)) {
		pthread_mutex_unlock(&fake.lock);
		return;
	}
	pump_ends = true;
	pump_runs = false;
	pthread_cond_broadcast(&fake.changed);
	pthread_mutex_unlock(&fake.lock);
	/* Not joined: it may be inside a function of the program that never returns. */
	pthread_detach(pump);
}

/* ---- what a stream can be given ---- */

CUresult fake_stream_work(struct CUstream_st *stream, uint64_t ns, uint32_t sms)
{
	struct fake_work work = work_of(stream, ns, sms);
	CUresult rc;

	if (!stream->deferred) {
		rc = make_room(&fake.device[stream->object.context->device]);
		if (rc != CUDA_SUCCESS)
			return rc;
	}
	if (stream->deferred) {
		struct fake_deferred *item = defer(stream, DEFERRED_WORK);

		item->ns = work.ns;
		item->sms = work.sms;
		return CUDA_SUCCESS;
	}
	push(stream, &work, NULL);
	return CUDA_SUCCESS;
}

static CUresult record_mark(struct CUstream_st *stream, uint64_t ns, struct fake_event_page *page,
			    struct fake_mark **ret_mark)
{
	uint32_t device = stream->object.context->device;
	struct fake_work work = { .ns = ns };
	struct fake_mark *mark;
	CUresult rc;

	if (!stream->deferred) {
		rc = make_room(&fake.device[device]);
		if (rc != CUDA_SUCCESS)
			return rc;
	}
	mark = mark_new(device);
	mark->page = page;
	if (page)
		page->state = FAKE_PAGE_DEFERRED;
	if (stream->deferred) {
		struct fake_deferred *item = defer(stream, DEFERRED_RECORD);

		item->ns = ns;
		item->mark = mark_get(mark);
	} else {
		push(stream, &work, mark);
	}
	*ret_mark = mark;
	return CUDA_SUCCESS;
}

CUresult fake_stream_mark(struct CUstream_st *stream, struct fake_mark **ret_mark)
{
	return record_mark(stream, 0, NULL, ret_mark);
}

CUresult fake_stream_record(struct CUstream_st *stream, struct CUevent_st *event)
{
	uint32_t card = fake.device[stream->object.context->device].card;
	struct fake_mark *mark;
	CUresult rc = record_mark(stream, fake.machine.card[card].event_ns, event->page, &mark);

	if (rc != CUDA_SUCCESS)
		return rc;
	fake_mark_put(event->mark);
	event->mark = mark;
	event->capture = NULL;
	return CUDA_SUCCESS;
}

CUresult fake_stream_wait_mark(struct CUstream_st *stream, struct fake_mark *mark)
{
	uint32_t device = stream->object.context->device;
	uint64_t when_ns;
	CUresult rc;

	if (!stream->deferred && mark_is_done(mark, &when_ns))
		return CUDA_SUCCESS;
	if (!stream->deferred && mark->device == device && mark->state == FAKE_MARK_QUEUED) {
		struct fake_work work = { .flags = FAKE_OP_AFTER, .after = mark->seq };

		mark_get(mark);
		rc = make_room(&fake.device[device]);
		if (rc == CUDA_SUCCESS && mark->state == FAKE_MARK_QUEUED)
			push(stream, &work, NULL);
		fake_mark_put(mark);
		return rc;
	}
	defer(stream, DEFERRED_WAIT)->mark = mark_get(mark);
	return CUDA_SUCCESS;
}

CUresult fake_stream_wait_page(struct CUstream_st *stream, struct fake_event_page *page)
{
	if (stream->deferred || !fake_page_done(page))
		defer(stream, DEFERRED_PAGE)->page = page;
	return CUDA_SUCCESS;
}

CUresult fake_stream_host_function(struct CUstream_st *stream, CUhostFn fn, void *data)
{
	struct fake_deferred *item = defer(stream, DEFERRED_HOST);

	item->host = fn;
	item->data = data;
	return CUDA_SUCCESS;
}

CUresult fake_stream_callback(struct CUstream_st *stream, CUstreamCallback fn, void *data)
{
	struct fake_deferred *item = defer(stream, DEFERRED_CALLBACK);

	item->callback = fn;
	item->data = data;
	return CUDA_SUCCESS;
}

CUresult fake_stream_value(struct CUstream_st *stream, CUdeviceptr address, uint64_t value,
			   uint32_t bytes, int compare)
{
	struct fake_deferred *item = defer(stream, DEFERRED_VALUE);

	item->address = address;
	item->value = value;
	item->bytes = bytes;
	item->compare = compare;
	return CUDA_SUCCESS;
}

bool fake_stream_idle(struct CUstream_st *stream)
{
	uint64_t when_ns;

	return !stream->deferred && queue_part_done(stream, &when_ns);
}

CUresult fake_stream_wait(struct CUstream_st *stream)
{
	uint32_t device = stream->object.context->device;

	/* The legacy stream stands for all that synchronise with it. */
	if (stream->legacy) {
		CUresult rc = fake_stream_work(stream, 0, 1);

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	for (;;) {
		uint64_t when_ns;

		if (!fake_is(stream, FAKE_STREAM))
			return CUDA_ERROR_INVALID_HANDLE;
		if (fake.phase != FAKE_READY)
			return CUDA_ERROR_DEINITIALIZED;
		if (stream->deferred)
			pthread_cond_wait(&fake.changed, &fake.lock);
		else if (queue_part_done(stream, &when_ns))
			break;
		else
			nap_until(when_ns);
	}
	fake_pools_synchronised(device);
	return CUDA_SUCCESS;
}

static bool device_has_deferred(uint32_t device)
{
	for (struct CUstream_st *stream = deferred_streams; stream;
	     stream = stream->next_deferred) {
		if (stream->deferred && stream->object.context->device == device)
			return true;
	}
	return false;
}

CUresult fake_device_wait(uint32_t ordinal)
{
	struct fake_device *device = &fake.device[ordinal];

	for (;;) {
		uint64_t when_ns;

		if (fake.phase != FAKE_READY)
			return CUDA_ERROR_DEINITIALIZED;
		if (device_has_deferred(ordinal)) {
			pthread_cond_wait(&fake.changed, &fake.lock);
			continue;
		}
		drain(device);
		if (device->drained_seq == device->next_seq)
			break;
		if (!seq_done(device, device->next_seq - 1, &when_ns))
			nap_until(when_ns);
	}
	fake_pools_synchronised(ordinal);
	return CUDA_SUCCESS;
}

/* ---- streams ---- */

static void stream_forget(struct CUstream_st *stream)
{
	while (stream->deferred)
		deferred_pop(stream);
	for (struct CUstream_st **at = &deferred_streams; *at; at = &(*at)->next_deferred) {
		if (*at == stream) {
			*at = stream->next_deferred;
			break;
		}
	}
	stream->in_deferred_list = false;
}

void fake_streams_close(struct CUctx_st *context)
{
	for (struct fake_object *object = context->objects; object; object = object->next) {
		if (object->kind == FAKE_STREAM)
			stream_forget((struct CUstream_st *)object);
	}
}

static CUresult stream_create(CUstream *ret_stream, unsigned int flags, int priority)
{
	struct CUctx_st *context = fake_current();
	struct CUstream_st *stream;

	if (!ret_stream || (flags & ~(unsigned int)CU_STREAM_NON_BLOCKING))
		return CUDA_ERROR_INVALID_VALUE;
	stream = fake_object_new(sizeof(*stream), FAKE_STREAM, context);
	stream->id = (uint32_t)++fake.next_id;
	stream->flags = flags;
	/* Out of the range is cut, not refused. */
	stream->priority = priority > 0 ? 0 : priority < -5 ? -5 : priority;
	*ret_stream = stream;
	return CUDA_SUCCESS;
}

static struct CUstream_st *per_thread_stream(struct CUctx_st *context)
{
	pid_t self = (pid_t)syscall(SYS_gettid);
	struct CUstream_st *stream;

	for (struct fake_object *object = context->objects; object; object = object->next) {
		stream = (struct CUstream_st *)object;
		if (object->kind == FAKE_STREAM && stream->thread == self)
			return stream;
	}
	stream = fake_object_new(sizeof(*stream), FAKE_STREAM, context);
	stream->id = (uint32_t)++fake.next_id;
	stream->thread = self;
	return stream;
}

CUresult fake_stream_of(CUstream handle, struct CUstream_st **ret_stream)
{
	struct CUctx_st *context = fake_current();

	if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD) {
		if (!context)
			return fake_current_check();
		*ret_stream = handle == CU_STREAM_PER_THREAD ? per_thread_stream(context)
							     : context->legacy;
		return CUDA_SUCCESS;
	}
	if (!fake_is(handle, FAKE_STREAM))
		return CUDA_ERROR_INVALID_HANDLE;
	*ret_stream = handle;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuStreamCreate, FAKE_CURRENT, (CUstream * stream, unsigned int flags), (stream, flags))
{
	return stream_create(stream, flags, 0);
}

FAKE_CUDA(cuStreamCreateWithPriority, FAKE_CURRENT,
	  (CUstream * stream, unsigned int flags, int priority), (stream, flags, priority))
{
	return stream_create(stream, flags, priority);
}

/* Returns at once; what the stream still had to do goes on. */
static CUresult stream_destroy(CUstream handle)
{
	if (!fake_is(handle, FAKE_STREAM) || handle->legacy || handle->thread)
		return CUDA_ERROR_INVALID_HANDLE;
	if (handle->capture)
		fake_capture_abandon(handle);
	while (handle->deferred) {
		pthread_cond_wait(&fake.changed, &fake.lock);
		if (!fake_is(handle, FAKE_STREAM))
			return CUDA_SUCCESS;
	}
	fake_object_destroy(&handle->object);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuStreamDestroy_v2, FAKE_INIT, (CUstream stream), (stream))
{
	return stream_destroy(stream);
}

FAKE_CUDA(cuStreamDestroy, FAKE_INIT, (CUstream stream), (stream))
{
	return stream_destroy(stream);
}

FAKE_CUDA_STREAM(cuStreamSynchronize, FAKE_INIT | FAKE_UNSAFE, (CUstream handle), (handle), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc == CUDA_SUCCESS)
		rc = fake_capture_refuses(stream);
	return rc == CUDA_SUCCESS ? fake_stream_wait(stream) : rc;
}

FAKE_CUDA_STREAM(cuStreamQuery, FAKE_INIT | FAKE_UNSAFE, (CUstream handle), (handle), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc == CUDA_SUCCESS)
		rc = fake_capture_refuses(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->legacy) {
		struct fake_device *device = &fake.device[stream->object.context->device];

		drain(device);
		return device->drained_seq == device->next_seq &&
				       !device_has_deferred(stream->object.context->device)
			       ? CUDA_SUCCESS
			       : CUDA_ERROR_NOT_READY;
	}
	return fake_stream_idle(stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

FAKE_CUDA_STREAM(cuStreamGetFlags, FAKE_INIT, (CUstream handle, unsigned int *flags),
		 (handle, flags), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*flags = stream->flags;
	return rc;
}

FAKE_CUDA_STREAM(cuStreamGetPriority, FAKE_INIT, (CUstream handle, int *priority),
		 (handle, priority), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!priority)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*priority = stream->priority;
	return rc;
}

FAKE_CUDA_STREAM(cuStreamGetId, FAKE_INIT, (CUstream handle, unsigned long long *id), (handle, id),
		 handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!id)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*id = stream->id;
	return rc;
}

FAKE_CUDA_STREAM(cuStreamGetCtx, FAKE_INIT, (CUstream handle, CUcontext *context),
		 (handle, context), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!context)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*context = stream->object.context;
	return rc;
}

FAKE_CUDA_STREAM(cuStreamGetCtx_v2, FAKE_INIT,
		 (CUstream handle, CUcontext *context, CUgreenCtx *green), (handle, context, green),
		 handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!context || !green)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS) {
		*context = stream->object.context;
		*green = NULL;
	}
	return rc;
}

FAKE_CUDA_STREAM(cuStreamGetDevice, FAKE_INIT, (CUstream handle, CUdevice *device),
		 (handle, device), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		*device = (CUdevice)stream->object.context->device;
	return rc;
}

FAKE_CUDA_STREAM(cuStreamAddCallback, FAKE_INIT,
		 (CUstream handle, CUstreamCallback fn, void *data, unsigned int flags),
		 (handle, fn, data, flags), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!fn || flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		rc = fake_capture_refuses(stream);
	return rc == CUDA_SUCCESS ? fake_stream_callback(stream, fn, data) : rc;
}

FAKE_CUDA_STREAM(cuLaunchHostFunc, FAKE_INIT, (CUstream handle, CUhostFn fn, void *data),
		 (handle, fn, data), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!fn)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture)
		return fake_capture_host(stream, fn, data);
	rc = fake_capture_implicit(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	return fake_stream_host_function(stream, fn, data);
}

/* ---- values in memory ---- */

static CUresult stream_value(CUstream handle, CUdeviceptr address, uint64_t value, uint32_t bytes,
			     int compare)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (address % bytes || !fake_alloc_find(address))
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_capture_refuses(stream);
	return rc == CUDA_SUCCESS ? fake_stream_value(stream, address, value, bytes, compare) : rc;
}

#define FAKE_VALUE_CALLS(suffix, type, bytes)                                                      \
	FAKE_CUDA_STREAM(cuStreamWaitValue##suffix, FAKE_INIT,                                     \
			 (CUstream handle, CUdeviceptr address, type value, unsigned int flags),   \
			 (handle, address, value, flags), handle)                                  \
	{                                                                                          \
		return stream_value(handle, address, value, bytes, (int)(flags & 3));              \
	}                                                                                          \
	FAKE_CUDA_STREAM(cuStreamWriteValue##suffix, FAKE_INIT,                                    \
			 (CUstream handle, CUdeviceptr address, type value, unsigned int flags),   \
			 (handle, address, value, flags), handle)                                  \
	{                                                                                          \
		return stream_value(handle, address, value, bytes, -1);                            \
	}

FAKE_VALUE_CALLS(32, uint32_t, 4)
FAKE_VALUE_CALLS(32_v2, uint32_t, 4)
FAKE_VALUE_CALLS(64, uint64_t, 8)
FAKE_VALUE_CALLS(64_v2, uint64_t, 8)

static CUresult batch_mem_op(CUstream handle, unsigned int count, CUstreamBatchMemOpParams *ops,
			     unsigned int flags)
{
	if (!ops || count > 256 || flags)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		const CUstreamBatchMemOpParams *op = &ops[i];
		CUresult rc = CUDA_SUCCESS;

		switch (op->operation) {
		case CU_STREAM_MEM_OP_WAIT_VALUE_32:
			rc = stream_value(handle, op->wait.address, (uint32_t)op->wait.value, 4,
					  (int)(op->wait.flags & 3));
			break;
		case CU_STREAM_MEM_OP_WAIT_VALUE_64:
			rc = stream_value(handle, op->wait.address, op->wait.value, 8,
					  (int)(op->wait.flags & 3));
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_32:
			rc = stream_value(handle, op->write.address, (uint32_t)op->write.value, 4,
					  -1);
			break;
		case CU_STREAM_MEM_OP_WRITE_VALUE_64:
			rc = stream_value(handle, op->write.address, op->write.value, 8, -1);
			break;
		case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
		case CU_STREAM_MEM_OP_BARRIER:
			break;
		default:
			rc = CUDA_ERROR_INVALID_VALUE;
			break;
		}
		if (rc != CUDA_SUCCESS)
			return rc;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA_STREAM(cuStreamBatchMemOp, FAKE_INIT,
		 (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *ops,
		  unsigned int flags),
		 (handle, count, ops, flags), handle)
{
	return batch_mem_op(handle, count, ops, flags);
}

FAKE_CUDA_STREAM(cuStreamBatchMemOp_v2, FAKE_INIT,
		 (CUstream handle, unsigned int count, CUstreamBatchMemOpParams *ops,
		  unsigned int flags),
		 (handle, count, ops, flags), handle)
{
	return batch_mem_op(handle, count, ops, flags);
}

/* ---- attributes: kept by nobody, so every stream has the defaults ---- */

FAKE_CUDA_STREAM(cuStreamCopyAttributes, FAKE_INIT, (CUstream to, CUstream from), (to, from), to)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(to, &stream);

	return rc == CUDA_SUCCESS ? fake_stream_of(from, &stream) : rc;
}

FAKE_CUDA_STREAM(cuStreamGetAttribute, FAKE_INIT,
		 (CUstream handle, CUlaunchAttributeID attribute, CUlaunchAttributeValue *value),
		 (handle, attribute, value), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		memset(value, 0, sizeof(*value));
	return rc;
}

FAKE_CUDA_STREAM(cuStreamSetAttribute, FAKE_INIT,
		 (CUstream handle, CUlaunchAttributeID attribute,
		  const CUlaunchAttributeValue *value),
		 (handle, attribute, value), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	return value ? rc : CUDA_ERROR_INVALID_VALUE;
}

FAKE_CUDA_STREAM(cuStreamAttachMemAsync, FAKE_INIT,
		 (CUstream handle, CUdeviceptr pointer, size_t length, unsigned int flags),
		 (handle, pointer, length, flags), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);
	const struct fake_alloc *alloc = fake_alloc_find(pointer);

	if (rc == CUDA_SUCCESS && (!alloc || alloc->kind != FAKE_MEM_MANAGED))
		rc = CUDA_ERROR_INVALID_VALUE;
	return rc;
}
