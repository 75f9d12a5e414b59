/* SPDX-License-Identifier: Apache-2.0 */
/* Events: recorded points of streams, with the device's time. */
#include <stdlib.h>
#include <unistd.h>

#include "cuda_driver.h"

#define FLAGS_KNOWN 0x7u

FAKE_CUDA(cuEventCreate, FAKE_CURRENT, (CUevent * ret_event, unsigned int flags),
	  (ret_event, flags))
{
	struct CUevent_st *event;

	if (!ret_event || (flags & ~FLAGS_KNOWN))
		return CUDA_ERROR_INVALID_VALUE;
	/* Other processes cannot read its clock. */
	if ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING))
		return CUDA_ERROR_INVALID_VALUE;
	event = fake_object_new(sizeof(*event), FAKE_EVENT, fake_current());
	event->flags = flags;
	*ret_event = event;
	return CUDA_SUCCESS;
}

void fake_event_release(struct CUevent_st *event)
{
	fake_mark_put(event->mark);
	event->mark = NULL;
	free(event->captured);
	event->captured = NULL;
	event->captured_count = 0;
	if (event->page)
		close(event->page_fd);
}

void fake_events_forget(struct fake_capture *capture)
{
	for (uint32_t i = 0; i < FAKE_BUCKETS; i++) {
		for (struct fake_object *at = fake_bucket(i); at; at = at->hash_next) {
			struct CUevent_st *event = (struct CUevent_st *)at;

			if (at->kind == FAKE_EVENT && event->capture == capture)
				event->capture = NULL;
		}
	}
}

static CUresult event_destroy(CUevent event)
{
	if (!fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_destroy(&event->object);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuEventDestroy_v2, FAKE_INIT, (CUevent event), (event))
{
	return event_destroy(event);
}

FAKE_CUDA(cuEventDestroy, FAKE_INIT, (CUevent event), (event))
{
	return event_destroy(event);
}

static CUresult event_record(CUevent event, CUstream handle, unsigned int flags)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (flags & ~(unsigned int)CU_EVENT_RECORD_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(event, FAKE_EVENT) || event->object.context != stream->object.context)
		return CUDA_ERROR_INVALID_HANDLE;
	if (stream->capture)
		return fake_capture_record(stream, event, flags & CU_EVENT_RECORD_EXTERNAL);
	rc = fake_capture_implicit(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	return fake_stream_record(stream, event);
}

FAKE_CUDA_STREAM(cuEventRecord, FAKE_INIT, (CUevent event, CUstream handle), (event, handle),
		 handle)
{
	return event_record(event, handle, 0);
}

FAKE_CUDA_STREAM(cuEventRecordWithFlags, FAKE_INIT,
		 (CUevent event, CUstream handle, unsigned int flags), (event, handle, flags),
		 handle)
{
	return event_record(event, handle, flags);
}

/* That the event stands for a point in a capture counts more than that others capture. */
static CUresult looked_at(CUevent event)
{
	if (!fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->capture)
		return fake_capture_event(event);
	return fake.captures ? fake_capture_forbids() : CUDA_SUCCESS;
}

FAKE_CUDA(cuEventQuery, FAKE_INIT, (CUevent event), (event))
{
	CUresult rc = looked_at(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (event->page)
		return fake_page_done(event->page) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
	/* One that was never recorded is complete. */
	return !event->mark || fake_mark_look(event->mark) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

FAKE_CUDA(cuEventSynchronize, FAKE_INIT, (CUevent event), (event))
{
	CUresult rc = looked_at(event);

	if (rc != CUDA_SUCCESS)
		return rc;
	while (event->page && !fake_page_done(event->page)) {
		CUresult ended = fake_nap();

		if (ended != CUDA_SUCCESS || !fake_is(event, FAKE_EVENT))
			return ended;
	}
	return event->mark ? fake_mark_wait(event->mark) : CUDA_SUCCESS;
}

static CUresult elapsed(float *milliseconds, CUevent start, CUevent end)
{
	if (!milliseconds)
		return CUDA_ERROR_INVALID_HANDLE; /* measured */
	if (!fake_is(start, FAKE_EVENT) || !fake_is(end, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING || !start->mark || !end->mark)
		return CUDA_ERROR_INVALID_HANDLE;
	if (!fake_mark_look(start->mark) || !fake_mark_look(end->mark))
		return CUDA_ERROR_NOT_READY;
	*milliseconds = (float)((double)(int64_t)(end->mark->end_ns - start->mark->end_ns) / 1e6);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuEventElapsedTime, FAKE_INIT, (float *milliseconds, CUevent start, CUevent end),
	  (milliseconds, start, end))
{
	return elapsed(milliseconds, start, end);
}

FAKE_CUDA(cuEventElapsedTime_v2, FAKE_INIT, (float *milliseconds, CUevent start, CUevent end),
	  (milliseconds, start, end))
{
	return elapsed(milliseconds, start, end);
}

FAKE_CUDA_STREAM(cuStreamWaitEvent, FAKE_INIT, (CUstream handle, CUevent event, unsigned int flags),
		 (handle, event, flags), handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (flags & ~(unsigned int)CU_EVENT_WAIT_EXTERNAL)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_HANDLE;
	if (event->capture || stream->capture)
		return fake_capture_wait(stream, event, flags & CU_EVENT_WAIT_EXTERNAL);
	rc = fake_capture_implicit(stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (event->page)
		return fake_stream_wait_page(stream, event->page);
	return event->mark ? fake_stream_wait_mark(stream, event->mark) : CUDA_SUCCESS;
}
