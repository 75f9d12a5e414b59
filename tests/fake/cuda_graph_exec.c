/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Executable graphs, and the memory of allocation nodes. Nodes' addresses are fixed when the node is
 * made; physical memory comes from a per-device reserve when the graph is uploaded or launched, and
 * stays in the reserve until it is trimmed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda_graph.h"

static struct CUgraphExec_st *execs;

/* ---- the reserve ---- */

/*
 * An executable graph that was uploaded or launched keeps physical memory for its allocations until it
 * is destroyed, or trimmed while none of them is in use. Measured: freeing an allocation changes
 * nothing in what counts as used.
 */
static uint64_t used_bytes(uint32_t device)
{
	uint64_t bytes = fake.device[device].graph_orphans;

	for (struct CUgraphExec_st *exec = execs; exec; exec = exec->next) {
		if (exec->device == device && exec->mapped)
			bytes += exec->peak_bytes;
	}
	return bytes;
}

static void note_used(uint32_t device)
{
	if (used_bytes(device) > fake.device[device].graph_used_high)
		fake.device[device].graph_used_high = used_bytes(device);
}

static struct fake_alloc *alloc_of(CUdeviceptr pointer)
{
	struct fake_alloc *alloc = fake_alloc_find(pointer);

	return alloc && alloc->kind == FAKE_MEM_GRAPH ? alloc : NULL;
}

/* Bytes of its allocations that a launch left and nobody freed. */
static uint64_t live_bytes(const struct CUgraphExec_st *exec)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < exec->count; i++) {
		const struct fake_action *action = &exec->items[i].action;
		const struct fake_alloc *alloc;

		if (action->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			continue;
		alloc = alloc_of(action->alloc.what.dptr);
		if (alloc && alloc->graph_live)
			bytes += fake_page_round(alloc->bytes);
	}
	return bytes;
}

static void trim(uint32_t ordinal)
{
	struct fake_device *device = &fake.device[ordinal];
	uint64_t keep;

	for (struct CUgraphExec_st *exec = execs; exec; exec = exec->next) {
		if (exec->device == ordinal && exec->mapped && !live_bytes(exec) &&
		    (!exec->running || fake_mark_look(exec->running)))
			exec->mapped = false;
	}
	keep = used_bytes(ordinal);
	if (device->graph_reserved > keep) {
		fake_uncharge(device, device->graph_reserved - keep);
		device->graph_reserved = keep;
	}
}

static bool reserve(struct fake_device *device, uint64_t bytes)
{
	if (device->graph_reserved >= bytes)
		return true;
	if (!fake_charge(device, bytes - device->graph_reserved))
		return false;
	device->graph_reserved = bytes;
	if (device->graph_reserved > device->graph_reserved_high)
		device->graph_reserved_high = device->graph_reserved;
	return true;
}

static CUresult reserve_for(struct CUgraphExec_st *exec)
{
	struct fake_device *device = &fake.device[exec->device];

	if (exec->mapped || !exec->peak_bytes)
		return CUDA_SUCCESS;
	if (!reserve(device, used_bytes(exec->device) + exec->peak_bytes)) {
		/* What other graphs keep without need is taken first. */
		fake_device_wait(exec->device);
		trim(exec->device);
		if (!reserve(device, used_bytes(exec->device) + exec->peak_bytes))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->mapped = true;
	note_used(exec->device);
	return CUDA_SUCCESS;
}

static void live_remove(struct fake_alloc *alloc)
{
	alloc->graph_live = false;
	if (alloc->graph_orphan)
		fake.device[alloc->device].graph_orphans -= fake_page_round(alloc->bytes);
	alloc->graph_orphan = false;
	if (!alloc->graph_refs)
		fake_alloc_release(alloc);
}

CUresult fake_graph_memory_free(struct fake_alloc *alloc)
{
	if (!alloc->graph_live)
		return CUDA_ERROR_INVALID_VALUE;
	live_remove(alloc);
	return CUDA_SUCCESS;
}

static CUresult memory_attribute(CUdevice ordinal, CUgraphMem_attribute attribute, void *value,
				 bool set)
{
	struct fake_device *device = fake_device(ordinal);
	uint64_t used;

	if (!value)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	used = used_bytes((uint32_t)ordinal);
	if (set) {
		/* High-water marks can be put back to the present, nothing else be set. */
		if (*(uint64_t *)value)
			return CUDA_ERROR_INVALID_VALUE;
		if (attribute == CU_GRAPH_MEM_ATTR_USED_MEM_HIGH)
			device->graph_used_high = used;
		else if (attribute == CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH)
			device->graph_reserved_high = device->graph_reserved;
		else
			return CUDA_ERROR_INVALID_VALUE;
		return CUDA_SUCCESS;
	}
	switch (attribute) {
	case CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT:
		*(uint64_t *)value = used;
		break;
	case CU_GRAPH_MEM_ATTR_USED_MEM_HIGH:
		*(uint64_t *)value = device->graph_used_high;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT:
		*(uint64_t *)value = device->graph_reserved;
		break;
	case CU_GRAPH_MEM_ATTR_RESERVED_MEM_HIGH:
		*(uint64_t *)value = device->graph_reserved_high;
		break;
	default:
		return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetGraphMemAttribute, FAKE_INIT,
	  (CUdevice ordinal, CUgraphMem_attribute attribute, void *value),
	  (ordinal, attribute, value))
{
	return memory_attribute(ordinal, attribute, value, false);
}

FAKE_CUDA(cuDeviceSetGraphMemAttribute, FAKE_INIT,
	  (CUdevice ordinal, CUgraphMem_attribute attribute, void *value),
	  (ordinal, attribute, value))
{
	return memory_attribute(ordinal, attribute, value, true);
}

FAKE_CUDA(cuDeviceGraphMemTrim, FAKE_INIT, (CUdevice ordinal), (ordinal))
{
	if (!fake_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	trim((uint32_t)ordinal);
	return CUDA_SUCCESS;
}

/* ---- from graph to executable graph ---- */

struct builder {
	struct fake_item *items;
	size_t count;
};

static bool ready(const struct CUgraphNode_st *node)
{
	for (size_t i = 0; i < node->need_count; i++) {
		if (!node->needs[i]->placed)
			return false;
	}
	return true;
}

/* False: the dependencies go round in a circle. Nodes mostly come after what they need already, so
 * that one round does. */
static bool build(struct CUgraph_st *graph, struct builder *builder)
{
	size_t placed = 0;

	for (struct CUgraphNode_st *node = graph->first; node; node = node->next)
		node->placed = false;
	while (placed < graph->count) {
		size_t before = placed;

		for (struct CUgraphNode_st *node = graph->first; node; node = node->next) {
			if (node->placed || !ready(node))
				continue;
			node->placed = true;
			placed++;
			if (node->action.type == CU_GRAPH_NODE_TYPE_GRAPH) {
				if (!build(node->action.child, builder))
					return false;
				continue;
			}
			builder->items = vg_grow(builder->items, builder->count + 1,
						 sizeof(*builder->items));
			builder->items[builder->count] = (struct fake_item){ .node = node };
			fake_action_copy(&node->action, &builder->items[builder->count].action);
			builder->count++;
		}
		if (placed == before)
			return false;
	}
	return true;
}

static void items_free(struct fake_item *items, size_t count)
{
	for (size_t i = 0; i < count; i++)
		fake_action_release(&items[i].action);
	free(items);
}

static void peak_find(struct CUgraphExec_st *exec)
{
	uint64_t now = 0;

	exec->peak_bytes = 0;
	for (size_t i = 0; i < exec->count; i++) {
		const struct fake_action *action = &exec->items[i].action;

		if (action->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
			now += fake_page_round(action->alloc.what.bytesize);
			if (now > exec->peak_bytes)
				exec->peak_bytes = now;
		}
		if (action->type != CU_GRAPH_NODE_TYPE_MEM_FREE)
			continue;
		for (size_t j = 0; j < i; j++) {
			const struct fake_action *other = &exec->items[j].action;

			if (other->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
			    other->alloc.what.dptr == action->free)
				now -= fake_page_round(other->alloc.what.bytesize);
		}
	}
}

#define FLAGS_KNOWN 0xfu

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph graph, unsigned long long flags)
{
	struct builder builder = { 0 };
	struct CUgraphExec_st *exec;
	uint32_t device = fake_current()->device;

	if (!ret_exec || !fake_is(graph, FAKE_GRAPH) || graph->capture || (flags & ~FLAGS_KNOWN))
		return CUDA_ERROR_INVALID_VALUE;
	/* Two could not use the same addresses. */
	if (graph->executables && fake_graph_has_memory(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	if (!build(graph, &builder)) {
		items_free(builder.items, builder.count);
		return CUDA_ERROR_INVALID_VALUE;
	}
	exec = fake_object_new(sizeof(*exec), FAKE_EXEC, NULL);
	exec->graph = graph;
	exec->flags = flags;
	exec->items = builder.items;
	exec->count = builder.count;
	exec->device = device;
	for (size_t i = 0; i < exec->count; i++)
		exec->device = fake_action_device(&exec->items[i].action, exec->device);
	peak_find(exec);
	fake_held_copy(graph->held, &exec->held);
	graph->executables++;
	exec->next = execs;
	if (execs)
		execs->previous = exec;
	execs = exec;
	*ret_exec = exec;
	return CUDA_SUCCESS;
}

static void exec_free(struct CUgraphExec_st *exec)
{
	/* What is in use stays so until somebody frees it. */
	for (size_t i = 0; i < exec->count; i++) {
		const struct fake_action *action = &exec->items[i].action;
		struct fake_alloc *alloc = action->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC
						   ? alloc_of(action->alloc.what.dptr)
						   : NULL;

		if (alloc && alloc->graph_live && !alloc->graph_orphan) {
			alloc->graph_orphan = true;
			fake.device[alloc->device].graph_orphans += fake_page_round(alloc->bytes);
		}
	}
	if (exec->previous)
		exec->previous->next = exec->next;
	else
		execs = exec->next;
	if (exec->next)
		exec->next->previous = exec->previous;
	if (fake_is(exec->graph, FAKE_GRAPH) && exec->graph->executables)
		exec->graph->executables--;
	items_free(exec->items, exec->count);
	fake_mark_put(exec->running);
	fake_held_release(&exec->held);
	fake_object_free(exec);
}

static CUresult instantiate_old(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
				char *log, size_t log_bytes)
{
	CUresult rc = instantiate(exec, graph, 0);

	if (error_node)
		*error_node =
			rc == CUDA_SUCCESS || !fake_is(graph, FAKE_GRAPH) ? NULL : graph->first;
	if (log && log_bytes)
		log[0] = 0;
	return rc;
}

FAKE_CUDA(cuGraphInstantiate, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	  (exec, graph, error_node, log, log_bytes))
{
	return instantiate_old(exec, graph, error_node, log, log_bytes);
}

FAKE_CUDA(cuGraphInstantiate_v2, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUgraphExec * exec, CUgraph graph, CUgraphNode *error_node, char *log, size_t log_bytes),
	  (exec, graph, error_node, log, log_bytes))
{
	return instantiate_old(exec, graph, error_node, log, log_bytes);
}

/* Uploading needs a stream, which this form does not have. */
FAKE_CUDA(cuGraphInstantiateWithFlags, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUgraphExec * exec, CUgraph graph, unsigned long long flags), (exec, graph, flags))
{
	if (flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD)
		return CUDA_ERROR_INVALID_VALUE;
	return instantiate(exec, graph, flags);
}

static CUresult with_params(CUgraphExec *exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
			    CUstream handle)
{
	struct CUstream_st *stream;
	CUresult rc;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	params->hErrNode_out = NULL;
	params->result_out = CUDA_GRAPH_INSTANTIATE_ERROR;
	rc = instantiate(exec, graph, params->flags);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) {
		rc = fake_stream_of(handle, &stream);
		if (rc == CUDA_SUCCESS)
			rc = reserve_for(*exec);
		if (rc != CUDA_SUCCESS) {
			exec_free(*exec);
			return rc;
		}
	}
	params->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphInstantiateWithParams, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	  (exec, graph, params))
{
	return with_params(exec, graph, params, params ? params->hUploadStream : NULL);
}

FAKE_CUDA(cuGraphInstantiateWithParams_ptsz, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUgraphExec * exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
	  (exec, graph, params))
{
	CUstream handle = params ? params->hUploadStream : NULL;

	return with_params(exec, graph, params, handle ? handle : CU_STREAM_PER_THREAD);
}

FAKE_CUDA(cuGraphExecDestroy, FAKE_INIT, (CUgraphExec exec), (exec))
{
	if (!fake_is(exec, FAKE_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	exec_free(exec);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphExecGetFlags, FAKE_INIT, (CUgraphExec exec, cuuint64_t *flags), (exec, flags))
{
	if (!fake_is(exec, FAKE_EXEC) || !flags)
		return CUDA_ERROR_INVALID_VALUE;
	*flags = exec->flags;
	return CUDA_SUCCESS;
}

/* ---- launching ---- */

/* Memory that an earlier launch left behind stands in the way of the next, unless the graph was made
 * to free it then. */
static CUresult memory_before(struct CUgraphExec_st *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		const struct fake_action *action = &exec->items[i].action;
		struct fake_alloc *alloc;

		if (action->type != CU_GRAPH_NODE_TYPE_MEM_ALLOC)
			continue;
		alloc = alloc_of(action->alloc.what.dptr);
		if (!alloc || !alloc->graph_live)
			continue;
		if (!(exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
			return CUDA_ERROR_INVALID_VALUE;
		live_remove(alloc);
	}
	return CUDA_SUCCESS;
}

/* After the launch as before it: in program order, like everything about memory here. */
static void memory_after(struct CUgraphExec_st *exec)
{
	for (size_t i = 0; i < exec->count; i++) {
		const struct fake_action *action = &exec->items[i].action;
		struct fake_alloc *alloc;

		if (action->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
			alloc = alloc_of(action->alloc.what.dptr);
			if (alloc)
				alloc->graph_live = true;
		} else if (action->type == CU_GRAPH_NODE_TYPE_MEM_FREE) {
			alloc = alloc_of(action->free);
			if (alloc && alloc->graph_live)
				live_remove(alloc);
		}
	}
}

/* Kernels that follow one another are one piece of work to the queue: a graph takes as little room
 * there as on a card. */
struct batch {
	uint64_t ns;
	uint32_t sms;
};

static CUresult flush(struct CUstream_st *stream, struct batch *batch)
{
	CUresult rc = CUDA_SUCCESS;

	if (batch->ns)
		rc = fake_stream_work(stream, batch->ns, batch->sms);
	*batch = (struct batch){ 0 };
	return rc;
}

static CUresult run_item(struct CUstream_st *stream, const struct fake_action *action,
			 struct batch *batch)
{
	CUresult rc;

	switch (action->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		batch->ns += action->kernel.launch.ns;
		if (action->kernel.launch.sms > batch->sms)
			batch->sms = action->kernel.launch.sms;
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		batch->ns += fake_copy_ns(action->copy.context, &action->copy.what);
		batch->sms = batch->sms ? batch->sms : 1;
		fake_copy_move(&action->copy.what);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		batch->ns += fake_set_ns(&action->set.what);
		batch->sms = batch->sms ? batch->sms : 1;
		fake_set_fill(&action->set.what);
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_HOST:
		rc = flush(stream, batch);
		return rc == CUDA_SUCCESS ? fake_stream_host_function(stream, action->host.fn,
								      action->host.userData)
					  : rc;
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		rc = flush(stream, batch);
		if (rc != CUDA_SUCCESS || !fake_is(action->event, FAKE_EVENT))
			return rc;
		return fake_stream_record(stream, action->event);
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
		rc = flush(stream, batch);
		if (rc != CUDA_SUCCESS || !fake_is(action->event, FAKE_EVENT) ||
		    !action->event->mark)
			return rc;
		return fake_stream_wait_mark(stream, action->event->mark);
	default:
		return CUDA_SUCCESS;
	}
}

CUresult fake_graph_launch(struct CUgraphExec_st *exec, struct CUstream_st *stream)
{
	struct batch batch = { 0 };
	CUresult rc = memory_before(exec);

	if (rc == CUDA_SUCCESS)
		rc = reserve_for(exec);
	/* Waiting for memory or for room lets other threads in. */
	for (size_t i = 0; rc == CUDA_SUCCESS && i < exec->count; i++) {
		if (!exec->items[i].disabled)
			rc = run_item(stream, &exec->items[i].action, &batch);
		if (!fake_is(exec, FAKE_EXEC))
			return CUDA_ERROR_INVALID_HANDLE;
	}
	if (rc == CUDA_SUCCESS)
		rc = flush(stream, &batch);
	if (rc == CUDA_SUCCESS && exec->peak_bytes) {
		struct fake_mark *mark;

		rc = fake_stream_mark(stream, &mark);
		if (rc == CUDA_SUCCESS) {
			fake_mark_put(exec->running);
			exec->running = mark;
		}
	}
	if (rc == CUDA_SUCCESS)
		memory_after(exec);
	return rc;
}

FAKE_CUDA_STREAM(cuGraphLaunch, FAKE_INIT, (CUgraphExec exec, CUstream handle), (exec, handle),
		 handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!fake_is(exec, FAKE_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	if (rc != CUDA_SUCCESS)
		return rc;
	rc = fake_capture_refuses(stream);
	return rc == CUDA_SUCCESS ? fake_graph_launch(exec, stream) : rc;
}

FAKE_CUDA_STREAM(cuGraphUpload, FAKE_INIT, (CUgraphExec exec, CUstream handle), (exec, handle),
		 handle)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (!fake_is(exec, FAKE_EXEC))
		return CUDA_ERROR_INVALID_VALUE;
	if (rc == CUDA_SUCCESS)
		rc = fake_capture_refuses(stream);
	return rc == CUDA_SUCCESS ? reserve_for(exec) : rc;
}

/* ---- changing an executable graph ---- */

static struct fake_item *item_of(CUgraphExec exec, CUgraphNode node)
{
	if (!fake_is(exec, FAKE_EXEC))
		return NULL;
	for (size_t i = 0; i < exec->count; i++) {
		if (exec->items[i].node == node)
			return &exec->items[i];
	}
	return NULL;
}

static CUresult item_set(CUgraphExec exec, CUgraphNode node, CUresult rc,
			 struct fake_action *action)
{
	struct fake_item *item = item_of(exec, node);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!item || item->action.type != action->type) {
		fake_action_release(action);
		return CUDA_ERROR_INVALID_VALUE;
	}
	fake_action_release(&item->action);
	item->action = *action;
	return CUDA_SUCCESS;
}

/* The same through the union of all parameters, which spares a second set of readers. */
static CUresult item_set_as(CUgraphExec exec, CUgraphNode node, CUgraphNodeType type,
			    const void *params, size_t bytes)
{
	CUgraphNodeParams all = { .type = type };
	struct fake_action action;
	CUresult rc;

	if (!params || !item_of(exec, node))
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(all.reserved1, params, bytes);
	rc = fake_action_of(&all, &action);
	return item_set(exec, node, rc, &action);
}

FAKE_CUDA(cuGraphExecKernelNodeSetParams_v2, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params),
	  (exec, node, params))
{
	return item_set_as(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, params, sizeof(*params));
}

FAKE_CUDA(cuGraphExecKernelNodeSetParams, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params),
	  (exec, node, params))
{
	return item_set_as(exec, node, CU_GRAPH_NODE_TYPE_KERNEL, params, sizeof(*params));
}

FAKE_CUDA(cuGraphExecMemcpyNodeSetParams, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *what, CUcontext context),
	  (exec, node, what, context))
{
	CUDA_MEMCPY_NODE_PARAMS params = { .copyCtx = context };

	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	params.copyParams = *what;
	return item_set_as(exec, node, CU_GRAPH_NODE_TYPE_MEMCPY, &params, sizeof(params));
}

FAKE_CUDA(cuGraphExecMemsetNodeSetParams, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *what,
	   CUcontext context),
	  (exec, node, what, context))
{
	CUDA_MEMSET_NODE_PARAMS_v2 params;

	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&params, what, sizeof(*what));
	params.ctx = context;
	return item_set_as(exec, node, CU_GRAPH_NODE_TYPE_MEMSET, &params, sizeof(params));
}

FAKE_CUDA(cuGraphExecHostNodeSetParams, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *params),
	  (exec, node, params))
{
	return item_set_as(exec, node, CU_GRAPH_NODE_TYPE_HOST, params, sizeof(*params));
}

FAKE_CUDA(cuGraphExecEventRecordNodeSetEvent, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))
{
	return item_set_as(exec, node, CU_GRAPH_NODE_TYPE_EVENT_RECORD, &event, sizeof(event));
}

FAKE_CUDA(cuGraphExecEventWaitNodeSetEvent, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, CUevent event), (exec, node, event))
{
	return item_set_as(exec, node, CU_GRAPH_NODE_TYPE_WAIT_EVENT, &event, sizeof(event));
}

FAKE_CUDA(cuGraphExecNodeSetParams, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params), (exec, node, params))
{
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	return item_set_as(exec, node, params->type, params->reserved1, sizeof(params->reserved1));
}

FAKE_CUDA(cuGraphNodeSetEnabled, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, unsigned int enabled), (exec, node, enabled))
{
	struct fake_item *item = item_of(exec, node);

	if (!item || (item->action.type != CU_GRAPH_NODE_TYPE_KERNEL &&
		      item->action.type != CU_GRAPH_NODE_TYPE_MEMCPY &&
		      item->action.type != CU_GRAPH_NODE_TYPE_MEMSET))
		return CUDA_ERROR_INVALID_VALUE;
	item->disabled = !enabled;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphNodeGetEnabled, FAKE_INIT,
	  (CUgraphExec exec, CUgraphNode node, unsigned int *enabled), (exec, node, enabled))
{
	const struct fake_item *item = item_of(exec, node);

	if (!item || !enabled)
		return CUDA_ERROR_INVALID_VALUE;
	*enabled = !item->disabled;
	return CUDA_SUCCESS;
}

/* All parameters of an executable graph from a graph of the same shape. */
static CUresult update(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
	struct builder builder = { 0 };

	*info = (CUgraphExecUpdateResultInfo){ .result = 1 };
	if (!fake_is(exec, FAKE_EXEC) || !fake_is(graph, FAKE_GRAPH) || graph->capture)
		return CUDA_ERROR_INVALID_VALUE;
	if (!build(graph, &builder) || builder.count != exec->count) {
		info->result = 2; /* another topology */
		items_free(builder.items, builder.count);
		return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
	}
	for (size_t i = 0; i < exec->count; i++) {
		if (builder.items[i].action.type != exec->items[i].action.type) {
			info->result = 3; /* another kind of node */
			info->errorNode = builder.items[i].node;
			items_free(builder.items, builder.count);
			return CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;
		}
	}
	/* The items go on answering to the nodes that they were made from. */
	for (size_t i = 0; i < exec->count; i++) {
		fake_action_release(&exec->items[i].action);
		exec->items[i].action = builder.items[i].action;
	}
	free(builder.items);
	peak_find(exec);
	info->result = 0;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphExecUpdate_v2, FAKE_INIT,
	  (CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info), (exec, graph, info))
{
	return info ? update(exec, graph, info) : CUDA_ERROR_INVALID_VALUE;
}

FAKE_CUDA(cuGraphExecUpdate, FAKE_INIT,
	  (CUgraphExec exec, CUgraph graph, CUgraphNode *error_node,
	   CUgraphExecUpdateResult *result),
	  (exec, graph, error_node, result))
{
	CUgraphExecUpdateResultInfo info;
	CUresult rc;

	if (!result)
		return CUDA_ERROR_INVALID_VALUE;
	rc = update(exec, graph, &info);
	*result = info.result;
	if (error_node)
		*error_node = info.errorNode;
	return rc;
}
