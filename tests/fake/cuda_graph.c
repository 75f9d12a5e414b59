/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs and their nodes. */
#include "cuda_graph.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- user objects: things of the program that live as long as a graph ---- */

struct CUuserObject_st {
	struct fake_object object;
	void *thing;
	CUhostFn destroy;
	uint64_t refs;
};

struct fake_held {
	struct CUuserObject_st *object;
	uint64_t count;
	struct fake_held *next;
};

static void user_object_put(struct CUuserObject_st *object, uint64_t count)
{
	CUhostFn destroy = object->destroy;
	void *thing = object->thing;

	object->refs -= count;
	if (object->refs)
		return;
	fake_object_destroy(&object->object);
	/* The program's function may take its time, and must not call CUDA. */
	pthread_mutex_unlock(&fake.lock);
	destroy(thing);
	pthread_mutex_lock(&fake.lock);
}

void fake_held_release(struct fake_held **held)
{
	while (*held) {
		struct fake_held *first = *held;

		*held = first->next;
		user_object_put(first->object, first->count);
		free(first);
	}
}

void fake_held_copy(const struct fake_held *from, struct fake_held **to)
{
	for (; from; from = from->next) {
		struct fake_held *copy = vg_new(sizeof(*copy));

		*copy = *from;
		copy->object->refs += copy->count;
		copy->next = *to;
		*to = copy;
	}
}

FAKE_CUDA(cuUserObjectCreate, FAKE_INIT,
	  (CUuserObject * ret_object, void *thing, CUhostFn destroy, unsigned int refs,
	   unsigned int flags),
	  (ret_object, thing, destroy, refs, flags))
{
	/* The one flag there is says that the destructor does not synchronise; it is required. */
	if (!ret_object || !destroy || !refs || refs > INT32_MAX || flags != 1)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_object = fake_object_new(sizeof(**ret_object), FAKE_USER_OBJECT, NULL);
	(*ret_object)->thing = thing;
	(*ret_object)->destroy = destroy;
	(*ret_object)->refs = refs;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuUserObjectRetain, FAKE_INIT, (CUuserObject object, unsigned int count), (object, count))
{
	if (!fake_is(object, FAKE_USER_OBJECT) || !count || count > INT32_MAX)
		return CUDA_ERROR_INVALID_VALUE;
	object->refs += count;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuUserObjectRelease, FAKE_INIT, (CUuserObject object, unsigned int count),
	  (object, count))
{
	if (!fake_is(object, FAKE_USER_OBJECT) || !count || count > object->refs)
		return CUDA_ERROR_INVALID_VALUE;
	user_object_put(object, count);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphRetainUserObject, FAKE_INIT,
	  (CUgraph graph, CUuserObject object, unsigned int count, unsigned int flags),
	  (graph, object, count, flags))
{
	struct fake_held *held;

	if (!fake_is(graph, FAKE_GRAPH) || !fake_is(object, FAKE_USER_OBJECT) || !count ||
	    flags > 1)
		return CUDA_ERROR_INVALID_VALUE;
	held = vg_new(sizeof(*held));
	*held = (struct fake_held){ object, count, graph->held };
	graph->held = held;
	/* Flag 1: the caller's references move to the graph. */
	if (!flags)
		object->refs += count;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphReleaseUserObject, FAKE_INIT,
	  (CUgraph graph, CUuserObject object, unsigned int count), (graph, object, count))
{
	if (!fake_is(graph, FAKE_GRAPH) || !fake_is(object, FAKE_USER_OBJECT) || !count)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct fake_held **at = &graph->held; *at; at = &(*at)->next) {
		struct fake_held *held = *at;

		if (held->object != object || held->count < count)
			continue;
		held->count -= count;
		if (!held->count) {
			*at = held->next;
			free(held);
		}
		user_object_put(object, count);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- what a node does ---- */

static struct fake_alloc *graph_alloc(CUdeviceptr pointer)
{
	struct fake_alloc *alloc = fake_alloc_find(pointer);

	return alloc && alloc->kind == FAKE_MEM_GRAPH && alloc->base == pointer ? alloc : NULL;
}

void fake_action_release(struct fake_action *action)
{
	struct fake_alloc *alloc;

	switch (action->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		free(action->kernel.values);
		free(action->kernel.params);
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		if (action->child)
			fake_graph_free(action->child);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		alloc = graph_alloc(action->alloc.what.dptr);
		if (alloc && --alloc->graph_refs == 0 && !alloc->graph_live)
			fake_alloc_release(alloc);
		break;
	default:
		break;
	}
	action->type = CU_GRAPH_NODE_TYPE_EMPTY;
}

void fake_action_copy(const struct fake_action *action, struct fake_action *ret_copy)
{
	struct fake_alloc *alloc;

	*ret_copy = *action;
	switch (action->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		if (!action->kernel.values)
			break;
		ret_copy->kernel.values = vg_new(action->kernel.values_bytes + 1);
		memcpy(ret_copy->kernel.values, action->kernel.values, action->kernel.values_bytes);
		ret_copy->kernel.params = vg_new_array(FAKE_PARAMS_MAX, sizeof(void *));
		for (uint32_t i = 0; i < FAKE_PARAMS_MAX && action->kernel.params[i]; i++) {
			const unsigned char *value = action->kernel.params[i];

			ret_copy->kernel.params[i] =
				ret_copy->kernel.values + (value - action->kernel.values);
		}
		break;
	case CU_GRAPH_NODE_TYPE_GRAPH:
		ret_copy->child = fake_graph_clone(action->child);
		break;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		alloc = graph_alloc(action->alloc.what.dptr);
		if (alloc)
			alloc->graph_refs++;
		break;
	default:
		break;
	}
}

uint32_t fake_action_device(const struct fake_action *action, uint32_t other)
{
	switch (action->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return action->kernel.context->device;
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return action->copy.context->device;
	case CU_GRAPH_NODE_TYPE_MEMSET:
		return action->set.context->device;
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		return action->alloc.device;
	default:
		return other;
	}
}

/* The values as the kernel would get them; the caller's places may be gone when it runs. */
static void copy_params(const struct CUfunc_st *function, void **params, void **extra,
			struct fake_action *action)
{
	if (!function->params_known || !function->params || (!params && !extra))
		return;
	action->kernel.values_bytes = function->params_bytes;
	action->kernel.values = vg_new(function->params_bytes + 1);
	action->kernel.params = vg_new_array(FAKE_PARAMS_MAX, sizeof(void *));
	for (uint32_t i = 0; i < function->params && i + 1 < FAKE_PARAMS_MAX; i++) {
		unsigned char *value = action->kernel.values + function->param_offset[i];

		if (params)
			memcpy(value, params[i], function->param_bytes[i]);
		action->kernel.params[i] = value;
	}
	for (; extra && extra[0] != CU_LAUNCH_PARAM_END; extra += 2) {
		if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER)
			memcpy(action->kernel.values, extra[1], function->params_bytes);
	}
}

CUresult fake_action_kernel(struct CUctx_st *context, CUfunction function,
			    const struct fake_grid *grid, void **params, void **extra,
			    struct fake_action *ret_action)
{
	struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_KERNEL };
	CUresult rc;

	if (fake_is(function, FAKE_FUNCTION) && function->module)
		context = function->module->object.context;
	if (!context)
		return CUDA_ERROR_INVALID_CONTEXT;
	rc = fake_kernel_launch(function, context->device, grid, params, extra,
				&action.kernel.launch);
	if (rc != CUDA_SUCCESS)
		return rc;
	action.kernel.function = function;
	action.kernel.context = context;
	action.kernel.grid = *grid;
	copy_params(function, params, extra, &action);
	*ret_action = action;
	return CUDA_SUCCESS;
}

/* Only an address: memory comes with the launch. */
CUresult fake_action_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS *params, struct fake_action *ret_action)
{
	struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_MEM_ALLOC };
	struct fake_device *device = fake_device(params->poolProps.location.id);
	struct fake_alloc alloc = {
		.kind = FAKE_MEM_GRAPH,
		.bytes = params->bytesize,
		.device = (uint32_t)params->poolProps.location.id,
		.graph_refs = 1,
	};

	if (!params->bytesize || params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
	    params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	if (params->bytesize > 1ull << 46)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.mapping_bytes = fake_page_round(params->bytesize);
	alloc.mapping = fake_map(alloc.mapping_bytes);
	if (!alloc.mapping)
		return CUDA_ERROR_OUT_OF_MEMORY;
	alloc.base = (uint64_t)(uintptr_t)alloc.mapping;
	fake_alloc_add(&alloc);
	action.alloc.what = *params;
	action.alloc.what.dptr = alloc.base;
	action.alloc.device = alloc.device;
	*ret_action = action;
	return CUDA_SUCCESS;
}

static CUresult action_copy3d(const CUDA_MEMCPY3D *what, CUcontext context,
			      struct fake_action *ret_action)
{
	CUresult rc;

	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(context, FAKE_CONTEXT) || !context->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	rc = fake_copy_check(what);
	if (rc != CUDA_SUCCESS)
		return rc;
	*ret_action = (struct fake_action){ .type = CU_GRAPH_NODE_TYPE_MEMCPY,
					    .copy = { *what, context } };
	return CUDA_SUCCESS;
}

static CUresult action_memset(const CUDA_MEMSET_NODE_PARAMS *what, CUcontext context,
			      struct fake_action *ret_action)
{
	CUresult rc;

	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(context, FAKE_CONTEXT) || !context->alive)
		return CUDA_ERROR_INVALID_CONTEXT;
	rc = fake_set_check(what);
	if (rc != CUDA_SUCCESS)
		return rc;
	*ret_action = (struct fake_action){ .type = CU_GRAPH_NODE_TYPE_MEMSET,
					    .set = { *what, context } };
	return CUDA_SUCCESS;
}

static CUresult action_host(const CUDA_HOST_NODE_PARAMS *what, struct fake_action *ret_action)
{
	if (!what || !what->fn)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_action = (struct fake_action){ .type = CU_GRAPH_NODE_TYPE_HOST, .host = *what };
	return CUDA_SUCCESS;
}

static CUresult action_child(CUgraph child, struct fake_action *ret_action)
{
	if (!fake_is(child, FAKE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_graph_has_memory(child))
		return CUDA_ERROR_NOT_SUPPORTED;
	*ret_action = (struct fake_action){ .type = CU_GRAPH_NODE_TYPE_GRAPH,
					    .child = fake_graph_clone(child) };
	return CUDA_SUCCESS;
}

static CUresult action_event(CUgraphNodeType type, CUevent event, struct fake_action *ret_action)
{
	if (!fake_is(event, FAKE_EVENT))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_action = (struct fake_action){ .type = type, .event = event };
	return CUDA_SUCCESS;
}

static CUresult action_free(CUdeviceptr pointer, struct fake_action *ret_action)
{
	if (!graph_alloc(pointer))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_action = (struct fake_action){ .type = CU_GRAPH_NODE_TYPE_MEM_FREE, .free = pointer };
	return CUDA_SUCCESS;
}

static CUresult action_kernel_params(const CUDA_KERNEL_NODE_PARAMS *params,
				     struct fake_action *ret_action)
{
	struct fake_grid grid;
	CUfunction function;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	grid = (struct fake_grid){
		.grid = { params->gridDimX, params->gridDimY, params->gridDimZ },
		.block = { params->blockDimX, params->blockDimY, params->blockDimZ },
		.shared_bytes = params->sharedMemBytes,
	};
	/* Either a function, or a library's kernel and the context to run it in. */
	function = params->func ? params->func : (CUfunction)params->kern;
	return fake_action_kernel(params->ctx && !params->func ? params->ctx : fake_current(),
				  function, &grid, params->kernelParams, params->extra, ret_action);
}

/* Before CUDA 12 the two last members did not exist. */
static CUDA_KERNEL_NODE_PARAMS kernel_params_of_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *old)
{
	CUDA_KERNEL_NODE_PARAMS params = { 0 };

	memcpy(&params, old, sizeof(*old));
	return params;
}

CUresult fake_action_of(CUgraphNodeParams *params, struct fake_action *ret_action)
{
	union {
		CUDA_KERNEL_NODE_PARAMS kernel;
		CUDA_MEMCPY_NODE_PARAMS copy;
		CUDA_MEMSET_NODE_PARAMS_v2 set;
		CUDA_HOST_NODE_PARAMS host;
		CUgraph child;
		CUevent event;
	} as;
	CUDA_MEMSET_NODE_PARAMS set;
	CUresult rc;

	_Static_assert(sizeof(as) <= sizeof(params->reserved1), "fits the union");
	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(&as, params->reserved1, sizeof(as));
	switch (params->type) {
	case CU_GRAPH_NODE_TYPE_KERNEL:
		return action_kernel_params(&as.kernel, ret_action);
	case CU_GRAPH_NODE_TYPE_MEMCPY:
		return action_copy3d(&as.copy.copyParams, as.copy.copyCtx, ret_action);
	case CU_GRAPH_NODE_TYPE_MEMSET:
		memcpy(&set, &as.set, sizeof(set));
		return action_memset(&set, as.set.ctx, ret_action);
	case CU_GRAPH_NODE_TYPE_HOST:
		return action_host(&as.host, ret_action);
	case CU_GRAPH_NODE_TYPE_GRAPH:
		return action_child(as.child, ret_action);
	case CU_GRAPH_NODE_TYPE_EMPTY:
		*ret_action = (struct fake_action){ .type = CU_GRAPH_NODE_TYPE_EMPTY };
		return CUDA_SUCCESS;
	case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
	case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
		return action_event(params->type, as.event, ret_action);
	case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
		rc = fake_action_alloc(&params->alloc, ret_action);
		if (rc == CUDA_SUCCESS)
			params->alloc.dptr = ret_action->alloc.what.dptr;
		return rc;
	case CU_GRAPH_NODE_TYPE_MEM_FREE:
		return action_free(params->free, ret_action);
	default:
		return CUDA_ERROR_NOT_SUPPORTED;
	}
}

/* ---- graphs ---- */

struct CUgraph_st *fake_graph_new(void)
{
	return fake_object_new(sizeof(struct CUgraph_st), FAKE_GRAPH, NULL);
}

static void node_free(struct CUgraphNode_st *node)
{
	struct CUgraph_st *graph = node->graph;

	if (node->previous)
		node->previous->next = node->next;
	else
		graph->first = node->next;
	if (node->next)
		node->next->previous = node->previous;
	else
		graph->last = node->previous;
	graph->count--;
	fake_action_release(&node->action);
	free(node->needs);
	fake_object_free(node);
}

void fake_graph_free(struct CUgraph_st *graph)
{
	while (graph->last)
		node_free(graph->last);
	fake_held_release(&graph->held);
	fake_object_free(graph);
}

static CUresult needs_add(struct CUgraphNode_st *node, struct CUgraphNode_st *need)
{
	for (size_t i = 0; i < node->need_count; i++) {
		if (node->needs[i] == need)
			return CUDA_ERROR_INVALID_VALUE;
	}
	node->needs = vg_grow(node->needs, node->need_count + 1, sizeof(struct CUgraphNode_st *));
	node->needs[node->need_count++] = need;
	return CUDA_SUCCESS;
}

CUresult fake_graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *const *needs, size_t count,
			struct fake_action *action, struct CUgraphNode_st **ret_node)
{
	struct CUgraphNode_st *node;

	for (size_t i = 0; i < count; i++) {
		if (!fake_is(needs[i], FAKE_NODE) || needs[i]->graph != graph) {
			fake_action_release(action);
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	node = fake_object_new(sizeof(*node), FAKE_NODE, NULL);
	node->graph = graph;
	node->action = *action;
	for (size_t i = 0; i < count; i++) {
		if (needs_add(node, needs[i]) != CUDA_SUCCESS) {
			node->previous = graph->last;
			fake_action_release(&node->action);
			free(node->needs);
			fake_object_free(node);
			return CUDA_ERROR_INVALID_VALUE;
		}
	}
	node->previous = graph->last;
	if (graph->last)
		graph->last->next = node;
	else
		graph->first = node;
	graph->last = node;
	graph->count++;
	if (node->action.type == CU_GRAPH_NODE_TYPE_GRAPH)
		node->action.child->owner = node;
	*ret_node = node;
	return CUDA_SUCCESS;
}

struct CUgraph_st *fake_graph_clone(const struct CUgraph_st *graph)
{
	struct CUgraph_st *clone = fake_graph_new();

	for (struct CUgraphNode_st *node = graph->first; node; node = node->next) {
		struct CUgraphNode_st *copy;
		struct fake_action action;

		fake_action_copy(&node->action, &action);
		fake_graph_add(clone, NULL, 0, &action, &copy);
		copy->origin = node;
	}
	/* Both lists have the same order: walk them side by side. */
	for (struct CUgraphNode_st *node = graph->first, *copy = clone->first; node;
	     node = node->next, copy = copy->next) {
		for (size_t i = 0; i < node->need_count; i++) {
			for (struct CUgraphNode_st *other = clone->first; other;
			     other = other->next) {
				if (other->origin == node->needs[i])
					needs_add(copy, other);
			}
		}
	}
	fake_held_copy(graph->held, &clone->held);
	return clone;
}

bool fake_graph_has_memory(const struct CUgraph_st *graph)
{
	for (const struct CUgraphNode_st *node = graph->first; node; node = node->next) {
		if (node->action.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
		    node->action.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
			return true;
		if (node->action.type == CU_GRAPH_NODE_TYPE_GRAPH &&
		    fake_graph_has_memory(node->action.child))
			return true;
	}
	return false;
}

FAKE_CUDA(cuGraphCreate, FAKE_INIT, (CUgraph * graph, unsigned int flags), (graph, flags))
{
	if (!graph || flags)
		return CUDA_ERROR_INVALID_VALUE;
	*graph = fake_graph_new();
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphDestroy, FAKE_INIT, (CUgraph graph), (graph))
{
	if (!fake_is(graph, FAKE_GRAPH) || graph->owner || graph->capture)
		return CUDA_ERROR_INVALID_VALUE;
	fake_graph_free(graph);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphClone, FAKE_INIT, (CUgraph * ret_clone, CUgraph graph), (ret_clone, graph))
{
	if (!ret_clone || !fake_is(graph, FAKE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	if (fake_graph_has_memory(graph))
		return CUDA_ERROR_NOT_SUPPORTED;
	*ret_clone = fake_graph_clone(graph);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphNodeFindInClone, FAKE_INIT,
	  (CUgraphNode * ret_node, CUgraphNode node, CUgraph clone), (ret_node, node, clone))
{
	if (!ret_node || !fake_is(clone, FAKE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	for (struct CUgraphNode_st *at = clone->first; at; at = at->next) {
		if (at->origin == node) {
			*ret_node = at;
			return CUDA_SUCCESS;
		}
	}
	return CUDA_ERROR_INVALID_VALUE;
}

/* ---- adding nodes ---- */

static CUresult add(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *needs, size_t count,
		    CUresult rc, struct fake_action *action)
{
	if (rc != CUDA_SUCCESS)
		return rc;
	if (!ret_node || !fake_is(graph, FAKE_GRAPH) || (count && !needs)) {
		fake_action_release(action);
		return CUDA_ERROR_INVALID_VALUE;
	}
	return fake_graph_add(graph, needs, count, action, ret_node);
}

FAKE_CUDA(cuGraphAddKernelNode_v2, FAKE_CURRENT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   const CUDA_KERNEL_NODE_PARAMS *params),
	  (node, graph, needs, count, params))
{
	struct fake_action action;
	CUresult rc = action_kernel_params(params, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddKernelNode, FAKE_CURRENT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   const CUDA_KERNEL_NODE_PARAMS_v1 *params),
	  (node, graph, needs, count, params))
{
	CUDA_KERNEL_NODE_PARAMS now;
	struct fake_action action;
	CUresult rc;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	now = kernel_params_of_v1(params);
	rc = action_kernel_params(&now, &action);
	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddMemcpyNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   const CUDA_MEMCPY3D *what, CUcontext context),
	  (node, graph, needs, count, what, context))
{
	struct fake_action action;
	CUresult rc = action_copy3d(what, context, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddMemsetNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   const CUDA_MEMSET_NODE_PARAMS *what, CUcontext context),
	  (node, graph, needs, count, what, context))
{
	struct fake_action action;
	CUresult rc = action_memset(what, context, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddHostNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   const CUDA_HOST_NODE_PARAMS *what),
	  (node, graph, needs, count, what))
{
	struct fake_action action;
	CUresult rc = action_host(what, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddChildGraphNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   CUgraph child),
	  (node, graph, needs, count, child))
{
	struct fake_action action;
	CUresult rc = action_child(child, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddEmptyNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count),
	  (node, graph, needs, count))
{
	struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_EMPTY };

	return add(node, graph, needs, count, CUDA_SUCCESS, &action);
}

FAKE_CUDA(cuGraphAddEventRecordNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   CUevent event),
	  (node, graph, needs, count, event))
{
	struct fake_action action;
	CUresult rc = action_event(CU_GRAPH_NODE_TYPE_EVENT_RECORD, event, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddEventWaitNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   CUevent event),
	  (node, graph, needs, count, event))
{
	struct fake_action action;
	CUresult rc = action_event(CU_GRAPH_NODE_TYPE_WAIT_EVENT, event, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddMemAllocNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   CUDA_MEM_ALLOC_NODE_PARAMS *params),
	  (node, graph, needs, count, params))
{
	struct fake_action action;
	CUdeviceptr address;
	CUresult rc;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_action_alloc(params, &action);
	if (rc != CUDA_SUCCESS)
		return rc;
	address = action.alloc.what.dptr;
	rc = add(node, graph, needs, count, CUDA_SUCCESS, &action);
	if (rc == CUDA_SUCCESS)
		params->dptr = address;
	return rc;
}

FAKE_CUDA(cuGraphAddMemFreeNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   CUdeviceptr pointer),
	  (node, graph, needs, count, pointer))
{
	struct fake_action action;
	CUresult rc = action_free(pointer, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddNode, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs, size_t count,
	   CUgraphNodeParams *params),
	  (node, graph, needs, count, params))
{
	struct fake_action action;
	CUresult rc = fake_action_of(params, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphAddNode_v2, FAKE_INIT,
	  (CUgraphNode * node, CUgraph graph, const CUgraphNode *needs,
	   const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params),
	  (node, graph, needs, edges, count, params))
{
	struct fake_action action;
	CUresult rc = fake_action_of(params, &action);

	return add(node, graph, needs, count, rc, &action);
}

FAKE_CUDA(cuGraphDestroyNode, FAKE_INIT, (CUgraphNode node), (node))
{
	if (!fake_is(node, FAKE_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	if (node->action.type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    node->action.type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_ERROR_NOT_SUPPORTED;
	for (struct CUgraphNode_st *other = node->graph->first; other; other = other->next) {
		for (size_t i = 0; i < other->need_count; i++) {
			if (other->needs[i] == node)
				other->needs[i--] = other->needs[--other->need_count];
		}
	}
	node_free(node);
	return CUDA_SUCCESS;
}

/* ---- nodes' parameters ---- */

static CUresult node_check(CUgraphNode node, CUgraphNodeType type, const void *place)
{
	if (!fake_is(node, FAKE_NODE) || node->action.type != type || !place)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

/* A node's place in the graph stays; only what it does is replaced. */
static CUresult node_set(CUgraphNode node, CUresult rc, struct fake_action *action)
{
	if (rc != CUDA_SUCCESS)
		return rc;
	if (!fake_is(node, FAKE_NODE) || node->action.type != action->type) {
		fake_action_release(action);
		return CUDA_ERROR_INVALID_VALUE;
	}
	fake_action_release(&node->action);
	node->action = *action;
	if (action->type == CU_GRAPH_NODE_TYPE_GRAPH)
		node->action.child->owner = node;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphNodeGetType, FAKE_INIT, (CUgraphNode node, CUgraphNodeType *type), (node, type))
{
	if (!fake_is(node, FAKE_NODE) || !type)
		return CUDA_ERROR_INVALID_VALUE;
	*type = node->action.type;
	return CUDA_SUCCESS;
}

static CUDA_KERNEL_NODE_PARAMS kernel_params_of(const struct CUgraphNode_st *node)
{
	const struct fake_grid *grid = &node->action.kernel.grid;
	struct CUfunc_st *function = node->action.kernel.function;
	CUDA_KERNEL_NODE_PARAMS params = {
		.gridDimX = grid->grid[0],
		.gridDimY = grid->grid[1],
		.gridDimZ = grid->grid[2],
		.blockDimX = grid->block[0],
		.blockDimY = grid->block[1],
		.blockDimZ = grid->block[2],
		.sharedMemBytes = grid->shared_bytes,
		.kernelParams = node->action.kernel.params,
	};

	if (function->library && !function->module) {
		params.kern = (CUkernel)function;
		params.ctx = node->action.kernel.context;
	} else {
		params.func = function;
	}
	return params;
}

FAKE_CUDA(cuGraphKernelNodeGetParams_v2, FAKE_INIT,
	  (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *params), (node, params))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_KERNEL, params);

	if (rc == CUDA_SUCCESS)
		*params = kernel_params_of(node);
	return rc;
}

FAKE_CUDA(cuGraphKernelNodeGetParams, FAKE_INIT,
	  (CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *params), (node, params))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_KERNEL, params);
	CUDA_KERNEL_NODE_PARAMS now;

	if (rc != CUDA_SUCCESS)
		return rc;
	now = kernel_params_of(node);
	memcpy(params, &now, sizeof(*params));
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphKernelNodeSetParams_v2, FAKE_INIT,
	  (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *params), (node, params))
{
	struct fake_action action;
	CUresult rc = action_kernel_params(params, &action);

	return node_set(node, rc, &action);
}

FAKE_CUDA(cuGraphKernelNodeSetParams, FAKE_INIT,
	  (CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *params), (node, params))
{
	CUDA_KERNEL_NODE_PARAMS now;
	struct fake_action action;
	CUresult rc;

	if (!params)
		return CUDA_ERROR_INVALID_VALUE;
	now = kernel_params_of_v1(params);
	rc = action_kernel_params(&now, &action);
	return node_set(node, rc, &action);
}

FAKE_CUDA(cuGraphMemcpyNodeGetParams, FAKE_INIT, (CUgraphNode node, CUDA_MEMCPY3D *what),
	  (node, what))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_MEMCPY, what);

	if (rc == CUDA_SUCCESS)
		*what = node->action.copy.what;
	return rc;
}

FAKE_CUDA(cuGraphMemcpyNodeSetParams, FAKE_INIT, (CUgraphNode node, const CUDA_MEMCPY3D *what),
	  (node, what))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_MEMCPY, what);

	if (rc == CUDA_SUCCESS)
		rc = fake_copy_check(what);
	if (rc == CUDA_SUCCESS)
		node->action.copy.what = *what;
	return rc;
}

FAKE_CUDA(cuGraphMemsetNodeGetParams, FAKE_INIT, (CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *what),
	  (node, what))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_MEMSET, what);

	if (rc == CUDA_SUCCESS)
		*what = node->action.set.what;
	return rc;
}

FAKE_CUDA(cuGraphMemsetNodeSetParams, FAKE_INIT,
	  (CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *what), (node, what))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_MEMSET, what);

	if (rc == CUDA_SUCCESS)
		rc = fake_set_check(what);
	if (rc == CUDA_SUCCESS)
		node->action.set.what = *what;
	return rc;
}

FAKE_CUDA(cuGraphHostNodeGetParams, FAKE_INIT, (CUgraphNode node, CUDA_HOST_NODE_PARAMS *what),
	  (node, what))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_HOST, what);

	if (rc == CUDA_SUCCESS)
		*what = node->action.host;
	return rc;
}

FAKE_CUDA(cuGraphHostNodeSetParams, FAKE_INIT,
	  (CUgraphNode node, const CUDA_HOST_NODE_PARAMS *what), (node, what))
{
	struct fake_action action;
	CUresult rc = action_host(what, &action);

	return node_set(node, rc, &action);
}

FAKE_CUDA(cuGraphChildGraphNodeGetGraph, FAKE_INIT, (CUgraphNode node, CUgraph *graph),
	  (node, graph))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_GRAPH, graph);

	if (rc == CUDA_SUCCESS)
		*graph = node->action.child;
	return rc;
}

#define EVENT_NODE(name, type)                                                                     \
	FAKE_CUDA(cuGraph##name##NodeGetEvent, FAKE_INIT, (CUgraphNode node, CUevent * event),     \
		  (node, event))                                                                   \
	{                                                                                          \
		CUresult rc = node_check(node, type, event);                                       \
                                                                                                   \
		if (rc == CUDA_SUCCESS)                                                            \
			*event = node->action.event;                                               \
		return rc;                                                                         \
	}                                                                                          \
	FAKE_CUDA(cuGraph##name##NodeSetEvent, FAKE_INIT, (CUgraphNode node, CUevent event),       \
		  (node, event))                                                                   \
	{                                                                                          \
		struct fake_action action;                                                         \
		CUresult rc = action_event(type, event, &action);                                  \
                                                                                                   \
		return node_set(node, rc, &action);                                                \
	}

EVENT_NODE(EventRecord, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
EVENT_NODE(EventWait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)

FAKE_CUDA(cuGraphMemAllocNodeGetParams, FAKE_INIT,
	  (CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS *params), (node, params))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_MEM_ALLOC, params);

	if (rc == CUDA_SUCCESS)
		*params = node->action.alloc.what;
	return rc;
}

FAKE_CUDA(cuGraphMemFreeNodeGetParams, FAKE_INIT, (CUgraphNode node, CUdeviceptr *pointer),
	  (node, pointer))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_MEM_FREE, pointer);

	if (rc == CUDA_SUCCESS)
		*pointer = node->action.free;
	return rc;
}

FAKE_CUDA(cuGraphNodeSetParams, FAKE_INIT, (CUgraphNode node, CUgraphNodeParams *params),
	  (node, params))
{
	struct fake_action action;
	CUresult rc;

	if (!params || params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC ||
	    params->type == CU_GRAPH_NODE_TYPE_MEM_FREE)
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_action_of(params, &action);
	return node_set(node, rc, &action);
}

FAKE_CUDA(cuGraphKernelNodeCopyAttributes, FAKE_INIT, (CUgraphNode to, CUgraphNode from),
	  (to, from))
{
	CUresult rc = node_check(to, CU_GRAPH_NODE_TYPE_KERNEL, to);

	return rc == CUDA_SUCCESS ? node_check(from, CU_GRAPH_NODE_TYPE_KERNEL, from) : rc;
}

FAKE_CUDA(cuGraphKernelNodeGetAttribute, FAKE_INIT,
	  (CUgraphNode node, CUlaunchAttributeID attribute, CUlaunchAttributeValue *value),
	  (node, attribute, value))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_KERNEL, value);

	if (rc != CUDA_SUCCESS)
		return rc;
	memset(value, 0, sizeof(*value));
	if (attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		value->pad[0] = node->action.kernel.grid.cooperative;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphKernelNodeSetAttribute, FAKE_INIT,
	  (CUgraphNode node, CUlaunchAttributeID attribute, const CUlaunchAttributeValue *value),
	  (node, attribute, value))
{
	CUresult rc = node_check(node, CU_GRAPH_NODE_TYPE_KERNEL, value);

	if (rc == CUDA_SUCCESS && attribute == CU_LAUNCH_ATTRIBUTE_COOPERATIVE)
		node->action.kernel.grid.cooperative = value->pad[0] != 0;
	return rc;
}

/* ---- the shape of a graph ---- */

CUresult fake_give_nodes(CUgraphNode *list, size_t *count, struct CUgraphNode_st *const *nodes,
			 size_t have)
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	if (!list) {
		*count = have;
		return CUDA_SUCCESS;
	}
	/* Places beyond what there is are cleared. */
	for (size_t i = 0; i < *count; i++)
		list[i] = i < have ? nodes[i] : NULL;
	if (*count > have)
		*count = have;
	return CUDA_SUCCESS;
}

static CUresult give_some(CUgraph graph, CUgraphNode *list, size_t *count, bool roots)
{
	struct CUgraphNode_st **nodes;
	size_t have = 0;
	CUresult rc;

	if (!fake_is(graph, FAKE_GRAPH))
		return CUDA_ERROR_INVALID_VALUE;
	nodes = vg_new_array(graph->count + 1, sizeof(*nodes));
	for (struct CUgraphNode_st *node = graph->first; node; node = node->next) {
		if (!roots || !node->need_count)
			nodes[have++] = node;
	}
	rc = fake_give_nodes(list, count, nodes, have);
	free(nodes);
	return rc;
}

FAKE_CUDA(cuGraphGetNodes, FAKE_INIT, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	  (graph, nodes, count))
{
	return give_some(graph, nodes, count, false);
}

FAKE_CUDA(cuGraphGetRootNodes, FAKE_INIT, (CUgraph graph, CUgraphNode *nodes, size_t *count),
	  (graph, nodes, count))
{
	return give_some(graph, nodes, count, true);
}

static CUresult edges(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
		      size_t *count)
{
	size_t have = 0;

	if (!fake_is(graph, FAKE_GRAPH) || !count || !from != !to)
		return CUDA_ERROR_INVALID_VALUE;
	for (struct CUgraphNode_st *node = graph->first; node; node = node->next) {
		for (size_t i = 0; i < node->need_count; i++, have++) {
			if (!from || have >= *count)
				continue;
			from[have] = node->needs[i];
			to[have] = node;
			if (data)
				memset(&data[have], 0, sizeof(data[have]));
		}
	}
	if (!from || *count > have)
		*count = have;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphGetEdges, FAKE_INIT,
	  (CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count),
	  (graph, from, to, count))
{
	return edges(graph, from, to, NULL, count);
}

FAKE_CUDA(cuGraphGetEdges_v2, FAKE_INIT,
	  (CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count),
	  (graph, from, to, data, count))
{
	return edges(graph, from, to, data, count);
}

static CUresult needs_of(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	if (!fake_is(node, FAKE_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	return fake_give_nodes(list, count, node->needs, node->need_count);
}

FAKE_CUDA(cuGraphNodeGetDependencies, FAKE_INIT,
	  (CUgraphNode node, CUgraphNode *list, size_t *count), (node, list, count))
{
	return needs_of(node, list, count);
}

FAKE_CUDA(cuGraphNodeGetDependencies_v2, FAKE_INIT,
	  (CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *data, size_t *count),
	  (node, list, data, count))
{
	CUresult rc = needs_of(node, list, count);

	if (rc == CUDA_SUCCESS && list && data)
		memset(data, 0, *count * sizeof(*data));
	return rc;
}

static CUresult dependents_of(CUgraphNode node, CUgraphNode *list, size_t *count)
{
	struct CUgraphNode_st **nodes;
	size_t have = 0;
	CUresult rc;

	if (!fake_is(node, FAKE_NODE))
		return CUDA_ERROR_INVALID_VALUE;
	nodes = vg_new_array(node->graph->count + 1, sizeof(*nodes));
	for (struct CUgraphNode_st *other = node->graph->first; other; other = other->next) {
		for (size_t i = 0; i < other->need_count; i++) {
			if (other->needs[i] == node)
				nodes[have++] = other;
		}
	}
	rc = fake_give_nodes(list, count, nodes, have);
	free(nodes);
	return rc;
}

FAKE_CUDA(cuGraphNodeGetDependentNodes, FAKE_INIT,
	  (CUgraphNode node, CUgraphNode *list, size_t *count), (node, list, count))
{
	return dependents_of(node, list, count);
}

FAKE_CUDA(cuGraphNodeGetDependentNodes_v2, FAKE_INIT,
	  (CUgraphNode node, CUgraphNode *list, CUgraphEdgeData *data, size_t *count),
	  (node, list, data, count))
{
	CUresult rc = dependents_of(node, list, count);

	if (rc == CUDA_SUCCESS && list && data)
		memset(data, 0, *count * sizeof(*data));
	return rc;
}

static CUresult dependencies_add(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				 size_t count)
{
	if (!fake_is(graph, FAKE_GRAPH) || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		if (!fake_is(from[i], FAKE_NODE) || !fake_is(to[i], FAKE_NODE) ||
		    from[i] == to[i] || from[i]->graph != graph || to[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	for (size_t i = 0; i < count; i++) {
		CUresult rc = needs_add(to[i], from[i]);

		if (rc != CUDA_SUCCESS)
			return rc;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphAddDependencies, FAKE_INIT,
	  (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
	  (graph, from, to, count))
{
	return dependencies_add(graph, from, to, count);
}

FAKE_CUDA(cuGraphAddDependencies_v2, FAKE_INIT,
	  (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	   const CUgraphEdgeData *data, size_t count),
	  (graph, from, to, data, count))
{
	return dependencies_add(graph, from, to, count);
}

static CUresult dependencies_remove(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
				    size_t count)
{
	if (!fake_is(graph, FAKE_GRAPH) || (count && (!from || !to)))
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		bool found = false;

		if (!fake_is(to[i], FAKE_NODE) || to[i]->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
		for (size_t j = 0; j < to[i]->need_count && !found; j++) {
			found = to[i]->needs[j] == from[i];
			if (found)
				to[i]->needs[j] = to[i]->needs[--to[i]->need_count];
		}
		if (!found)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGraphRemoveDependencies, FAKE_INIT,
	  (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count),
	  (graph, from, to, count))
{
	return dependencies_remove(graph, from, to, count);
}

FAKE_CUDA(cuGraphRemoveDependencies_v2, FAKE_INIT,
	  (CUgraph graph, const CUgraphNode *from, const CUgraphNode *to,
	   const CUgraphEdgeData *data, size_t count),
	  (graph, from, to, data, count))
{
	return dependencies_remove(graph, from, to, count);
}
