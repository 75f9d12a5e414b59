/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture. A captured stream runs nothing: its calls add nodes to a graph, each behind what the
 * stream did last. Other streams join by waiting for an event of a captured stream, and must be joined
 * back before the capture ends.
 *
 * Calls that could hang or lie while somebody captures are forbidden, by thread and mode; a forbidden
 * call fails with STREAM_CAPTURE_UNSUPPORTED and spoils the capture that it would have disturbed.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "cuda_graph.h"

static struct fake_capture *captures;
static __thread CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

static pid_t self(void)
{
	return (pid_t)syscall(SYS_gettid);
}

/* ---- the streams of a capture ---- */

static void tail_set(struct CUstream_st *stream, struct CUgraphNode_st *const *nodes, size_t count)
{
	struct CUgraphNode_st **copy = vg_new_array(count + 1, sizeof(*copy));

	if (count)
		memcpy(copy, nodes, count * sizeof(*copy));
	free(stream->capture_tail);
	stream->capture_tail = copy;
	stream->capture_tail_count = count;
}

static void tail_add(struct CUstream_st *stream, struct CUgraphNode_st *const *nodes, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		bool there = false;

		for (size_t j = 0; j < stream->capture_tail_count && !there; j++)
			there = stream->capture_tail[j] == nodes[i];
		if (there)
			continue;
		stream->capture_tail = vg_grow(stream->capture_tail, stream->capture_tail_count + 1,
					       sizeof(struct CUgraphNode_st *));
		stream->capture_tail[stream->capture_tail_count++] = nodes[i];
	}
}

static void stream_join(struct CUstream_st *stream, struct fake_capture *capture)
{
	stream->capture = capture;
	tail_set(stream, NULL, 0);
}

static void stream_leave(struct CUstream_st *stream)
{
	stream->capture = NULL;
	free(stream->capture_tail);
	stream->capture_tail = NULL;
	stream->capture_tail_count = 0;
}

/* Calls `fn` for every stream that takes part. Streams of other contexts can. */
static void each_stream(struct fake_capture *capture, void (*fn)(struct CUstream_st *, void *),
			void *data)
{
	for (uint32_t i = 0; i < FAKE_BUCKETS; i++) {
		struct fake_object *next;

		for (struct fake_object *at = fake_bucket(i); at; at = next) {
			struct CUstream_st *stream = (struct CUstream_st *)at;

			next = at->hash_next;
			if (at->kind == FAKE_STREAM && stream->capture == capture)
				fn(stream, data);
		}
	}
}

static void leave_one(struct CUstream_st *stream, void *unused)
{
	stream_leave(stream);
}

/* Events that stand for points of the capture mean nothing any more, but may not be waited for. */
static void capture_end(struct fake_capture *capture)
{
	struct fake_capture **at = &captures;

	each_stream(capture, leave_one, NULL);
	while (*at != capture)
		at = &(*at)->next;
	*at = capture->next;
	fake.captures--;
	capture->graph->capture = NULL;
	fake_events_forget(capture);
	free(capture);
}

/* ---- who may do what ---- */

CUresult fake_capture_forbids(void)
{
	pid_t me = self();
	CUresult rc = CUDA_SUCCESS;

	if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_SUCCESS;
	for (struct fake_capture *capture = captures; capture; capture = capture->next) {
		bool mine = capture->thread == me;

		if (capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED)
			continue;
		if (!mine && (capture->mode != CU_STREAM_CAPTURE_MODE_GLOBAL ||
			      thread_mode != CU_STREAM_CAPTURE_MODE_GLOBAL))
			continue;
		capture->invalid = true;
		rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return rc;
}

CUresult fake_capture_refuses(struct CUstream_st *stream)
{
	CUresult rc = fake_capture_implicit(stream);

	if (rc != CUDA_SUCCESS || !stream->capture)
		return rc;
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	stream->capture->invalid = true;
	return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

/* The legacy stream waits for all blocking streams of the context, which a captured one cannot
 * grant. */
CUresult fake_capture_implicit(struct CUstream_st *stream)
{
	CUresult rc = CUDA_SUCCESS;

	if (!fake.captures || !stream->legacy)
		return CUDA_SUCCESS;
	for (struct fake_object *object = stream->object.context->objects; object;
	     object = object->next) {
		struct CUstream_st *other = (struct CUstream_st *)object;

		if (object->kind != FAKE_STREAM || !other->capture ||
		    (other->flags & CU_STREAM_NON_BLOCKING))
			continue;
		other->capture->invalid = true;
		rc = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
	}
	return rc;
}

CUresult fake_capture_in(struct CUctx_st *context)
{
	CUresult rc = CUDA_SUCCESS;

	for (struct fake_object *object = context->objects; fake.captures && object;
	     object = object->next) {
		struct CUstream_st *stream = (struct CUstream_st *)object;

		if (object->kind != FAKE_STREAM || !stream->capture)
			continue;
		stream->capture->invalid = true;
		rc = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	}
	return rc;
}

CUresult fake_capture_event(struct CUevent_st *event)
{
	event->capture->invalid = true;
	return CUDA_ERROR_CAPTURED_EVENT;
}

void fake_capture_abandon(struct CUstream_st *stream)
{
	struct fake_capture *capture = stream->capture;
	struct CUgraph_st *graph = capture->graph;

	if (capture->origin != stream) {
		capture->invalid = true;
		stream_leave(stream);
		return;
	}
	if (capture->own_graph) {
		capture_end(capture);
		fake_graph_free(graph);
	} else {
		capture_end(capture);
	}
}

/* ---- what a captured stream is given ---- */

CUresult fake_capture_add(struct CUstream_st *stream, struct fake_action *action,
			  struct CUgraphNode_st **ret_node)
{
	struct CUgraphNode_st *node;
	CUresult rc;

	if (stream->capture->invalid) {
		fake_action_release(action);
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	}
	rc = fake_graph_add(stream->capture->graph, stream->capture_tail,
			    stream->capture_tail_count, action, &node);
	if (rc != CUDA_SUCCESS)
		return rc;
	tail_set(stream, &node, 1);
	if (ret_node)
		*ret_node = node;
	return CUDA_SUCCESS;
}

CUresult fake_capture_kernel(struct CUstream_st *stream, CUfunction function,
			     const struct fake_grid *grid, void **params, void **extra)
{
	struct fake_action action;
	CUresult rc =
		fake_action_kernel(stream->object.context, function, grid, params, extra, &action);

	return rc == CUDA_SUCCESS ? fake_capture_add(stream, &action, NULL) : rc;
}

CUresult fake_capture_alloc(struct CUstream_st *stream, const CUmemPoolProps *props, size_t bytes,
			    CUdeviceptr *pointer)
{
	CUDA_MEM_ALLOC_NODE_PARAMS params = { .poolProps = *props, .bytesize = bytes };
	struct fake_action action;
	CUdeviceptr address;
	CUresult rc;

	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	rc = fake_action_alloc(&params, &action);
	if (rc != CUDA_SUCCESS)
		return rc;
	address = action.alloc.what.dptr;
	rc = fake_capture_add(stream, &action, NULL);
	if (rc == CUDA_SUCCESS)
		*pointer = address;
	return rc;
}

CUresult fake_capture_free(struct CUstream_st *stream, CUdeviceptr pointer)
{
	struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = pointer };

	return fake_capture_add(stream, &action, NULL);
}

CUresult fake_capture_host(struct CUstream_st *stream, CUhostFn fn, void *data)
{
	struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_HOST, .host = { fn, data } };

	return fake_capture_add(stream, &action, NULL);
}

/* An ordinary record adds no node: the event then stands for what the stream did last. */
CUresult fake_capture_record(struct CUstream_st *stream, struct CUevent_st *event, bool external)
{
	if (stream->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (external) {
		struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_EVENT_RECORD,
					      .event = event };

		return fake_capture_add(stream, &action, NULL);
	}
	event->capture = stream->capture;
	free(event->captured);
	event->captured = vg_new_array(stream->capture_tail_count + 1, sizeof(*event->captured));
	memcpy(event->captured, stream->capture_tail,
	       stream->capture_tail_count * sizeof(*event->captured));
	event->captured_count = stream->capture_tail_count;
	return CUDA_SUCCESS;
}

CUresult fake_capture_wait(struct CUstream_st *stream, struct CUevent_st *event, bool external)
{
	if (!event->capture) {
		struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_WAIT_EVENT,
					      .event = event };

		if (external)
			return fake_capture_add(stream, &action, NULL);
		/* A point outside cannot be waited for from inside. */
		stream->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
	}
	if (event->capture->invalid)
		return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
	if (!stream->capture) {
		if (stream->legacy) {
			event->capture->invalid = true;
			return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
		stream_join(stream, event->capture);
	} else if (stream->capture != event->capture) {
		stream->capture->invalid = event->capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_MERGE;
	}
	tail_add(stream, event->captured, event->captured_count);
	return CUDA_SUCCESS;
}

/* ---- begin and end ---- */

static CUresult begin(CUstream handle, struct CUgraph_st *graph,
		      struct CUgraphNode_st *const *needs, size_t count, CUstreamCaptureMode mode)
{
	struct fake_capture *capture;
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (mode < 0 || mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	if (stream->legacy)
		return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
	if (stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	capture = vg_new(sizeof(*capture));
	*capture = (struct fake_capture){
		.graph = graph ? graph : fake_graph_new(),
		.own_graph = !graph,
		.mode = mode,
		.origin = stream,
		.thread = self(),
		.id = ++fake.next_id,
		.next = captures,
	};
	capture->graph->capture = capture;
	captures = capture;
	fake.captures++;
	stream_join(stream, capture);
	tail_add(stream, needs, count);
	return CUDA_SUCCESS;
}

FAKE_CUDA_STREAM(cuStreamBeginCapture_v2, FAKE_INIT, (CUstream handle, CUstreamCaptureMode mode),
		 (handle, mode), handle)
{
	return begin(handle, NULL, NULL, 0, mode);
}

FAKE_CUDA_STREAM(cuStreamBeginCapture, FAKE_INIT, (CUstream handle), (handle), handle)
{
	return begin(handle, NULL, NULL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL);
}

FAKE_CUDA_STREAM(cuStreamBeginCaptureToGraph, FAKE_INIT,
		 (CUstream handle, CUgraph graph, const CUgraphNode *needs,
		  const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode),
		 (handle, graph, needs, edges, count, mode), handle)
{
	if (!fake_is(graph, FAKE_GRAPH) || graph->capture || (count && !needs))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (!fake_is(needs[i], FAKE_NODE) || needs[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return begin(handle, graph, needs, count, mode);
}

/* Marks what the stream's last nodes build on. Nodes come after what they need, so one walk from the
 * end does. */
static void reach(struct CUgraph_st *graph, struct CUstream_st *stream)
{
	for (struct CUgraphNode_st *node = graph->first; node; node = node->next)
		node->visited = false;
	for (size_t i = 0; i < stream->capture_tail_count; i++)
		stream->capture_tail[i]->visited = true;
	for (struct CUgraphNode_st *node = graph->last; node; node = node->previous) {
		for (size_t i = 0; node->visited && i < node->need_count; i++)
			node->needs[i]->visited = true;
	}
}

static void unjoined_one(struct CUstream_st *stream, void *unjoined)
{
	for (size_t i = 0; i < stream->capture_tail_count; i++) {
		if (!stream->capture_tail[i]->visited)
			*(bool *)unjoined = true;
	}
}

FAKE_CUDA_STREAM(cuStreamEndCapture, FAKE_INIT, (CUstream handle, CUgraph *ret_graph),
		 (handle, ret_graph), handle)
{
	struct fake_capture *capture;
	struct CUstream_st *stream;
	struct CUgraph_st *graph;
	bool unjoined = false, own;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!ret_graph)
		return CUDA_ERROR_INVALID_VALUE;
	capture = stream->capture;
	if (!capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	if (capture->thread != self() && capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
	if (capture->origin != stream) {
		capture->invalid = true;
		return CUDA_ERROR_STREAM_CAPTURE_UNMATCHED;
	}
	graph = capture->graph;
	own = capture->own_graph;
	reach(graph, stream);
	each_stream(capture, unjoined_one, &unjoined);
	rc = capture->invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
	     : unjoined       ? CUDA_ERROR_STREAM_CAPTURE_UNJOINED
			      : CUDA_SUCCESS;
	capture_end(capture);
	*ret_graph = rc == CUDA_SUCCESS ? graph : NULL;
	if (rc != CUDA_SUCCESS && own)
		fake_graph_free(graph);
	return rc;
}

/* ---- asking ---- */

static CUresult status_of(CUstream handle, struct CUstream_st **ret_stream,
			  CUstreamCaptureStatus *ret_status)
{
	CUresult rc = fake_stream_of(handle, ret_stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	/* Asking for the legacy stream does no harm, but gets no answer either. */
	if ((*ret_stream)->legacy) {
		for (struct fake_object *object = (*ret_stream)->object.context->objects; object;
		     object = object->next) {
			struct CUstream_st *other = (struct CUstream_st *)object;

			if (object->kind == FAKE_STREAM && other->capture &&
			    !(other->flags & CU_STREAM_NON_BLOCKING))
				return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
		}
	}
	*ret_status = !(*ret_stream)->capture           ? CU_STREAM_CAPTURE_STATUS_NONE
		      : (*ret_stream)->capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
							: CU_STREAM_CAPTURE_STATUS_ACTIVE;
	return CUDA_SUCCESS;
}

FAKE_CUDA_STREAM(cuStreamIsCapturing, FAKE_INIT, (CUstream handle, CUstreamCaptureStatus *status),
		 (handle, status), handle)
{
	struct CUstream_st *stream;

	return status ? status_of(handle, &stream, status) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult info(CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		     const CUgraphNode **nodes, size_t *count)
{
	struct CUstream_st *stream;
	CUstreamCaptureStatus now;
	CUresult rc = status_of(handle, &stream, &now);

	if (!status)
		return CUDA_ERROR_INVALID_VALUE;
	if (rc != CUDA_SUCCESS)
		return rc;
	*status = now;
	if (now != CU_STREAM_CAPTURE_STATUS_ACTIVE)
		return CUDA_SUCCESS;
	if (id)
		*id = stream->capture->id;
	if (graph)
		*graph = stream->capture->graph;
	if (nodes)
		*nodes = stream->capture_tail;
	if (count)
		*count = stream->capture_tail_count;
	return CUDA_SUCCESS;
}

FAKE_CUDA_STREAM(cuStreamGetCaptureInfo, FAKE_INIT,
		 (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id),
		 (handle, status, id), handle)
{
	return info(handle, status, id, NULL, NULL, NULL);
}

FAKE_CUDA_STREAM(cuStreamGetCaptureInfo_v2, FAKE_INIT,
		 (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		  const CUgraphNode **nodes, size_t *count),
		 (handle, status, id, graph, nodes, count), handle)
{
	return info(handle, status, id, graph, nodes, count);
}

FAKE_CUDA_STREAM(cuStreamGetCaptureInfo_v3, FAKE_INIT,
		 (CUstream handle, CUstreamCaptureStatus *status, cuuint64_t *id, CUgraph *graph,
		  const CUgraphNode **nodes, const CUgraphEdgeData **edges, size_t *count),
		 (handle, status, id, graph, nodes, edges, count), handle)
{
	if (edges)
		*edges = NULL;
	return info(handle, status, id, graph, nodes, count);
}

static CUresult update(CUstream handle, CUgraphNode *nodes, size_t count, unsigned int flags)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if ((count && !nodes) || flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stream->capture)
		return CUDA_ERROR_ILLEGAL_STATE;
	for (size_t i = 0; i < count; i++) {
		if (!fake_is(nodes[i], FAKE_NODE) || nodes[i]->graph != stream->capture->graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	if (flags == CU_STREAM_SET_CAPTURE_DEPENDENCIES)
		tail_set(stream, nodes, count);
	else
		tail_add(stream, nodes, count);
	return CUDA_SUCCESS;
}

FAKE_CUDA_STREAM(cuStreamUpdateCaptureDependencies, FAKE_INIT,
		 (CUstream handle, CUgraphNode *nodes, size_t count, unsigned int flags),
		 (handle, nodes, count, flags), handle)
{
	return update(handle, nodes, count, flags);
}

FAKE_CUDA_STREAM(cuStreamUpdateCaptureDependencies_v2, FAKE_INIT,
		 (CUstream handle, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count,
		  unsigned int flags),
		 (handle, nodes, edges, count, flags), handle)
{
	return update(handle, nodes, count, flags);
}

FAKE_CUDA(cuThreadExchangeStreamCaptureMode, FAKE_INIT, (CUstreamCaptureMode * mode), (mode))
{
	CUstreamCaptureMode now = thread_mode;

	if (!mode || *mode < 0 || *mode > CU_STREAM_CAPTURE_MODE_RELAXED)
		return CUDA_ERROR_INVALID_VALUE;
	thread_mode = *mode;
	*mode = now;
	return CUDA_SUCCESS;
}
