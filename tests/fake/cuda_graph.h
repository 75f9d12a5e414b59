/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs, what is made from them, and captures. A graph is a list of nodes with their dependencies; an
 * executable graph is a copy of the nodes' parameters in an order that respects them. Branches run one
 * after the other.
 */
#ifndef FAKE_CUDA_GRAPH_H
#define FAKE_CUDA_GRAPH_H

#include "cuda_module.h"

/* What a node does. Pointers inside belong to it. */
struct fake_action {
	CUgraphNodeType type;
	union {
		struct {
			struct CUfunc_st *function;
			struct CUctx_st *context;
			struct fake_grid grid;
			struct fake_launch launch;
			/* A copy of the parameters where their sizes are known. */
			unsigned char *values;
			size_t values_bytes;
			void **params;
		} kernel;
		struct {
			CUDA_MEMCPY3D what;
			struct CUctx_st *context;
		} copy;
		struct {
			CUDA_MEMSET_NODE_PARAMS what;
			struct CUctx_st *context;
		} set;
		CUDA_HOST_NODE_PARAMS host;
		struct CUgraph_st *child;
		struct CUevent_st *event;
		struct {
			CUDA_MEM_ALLOC_NODE_PARAMS what;
			uint32_t device;
		} alloc;
		CUdeviceptr free;
	};
};

struct CUgraphNode_st {
	struct fake_object object;
	struct CUgraph_st *graph;
	struct CUgraphNode_st *next, *previous;
	struct CUgraphNode_st *origin; /* in the graph that this one was cloned from */
	struct CUgraphNode_st **needs;
	size_t need_count;
	struct fake_action action;
	bool visited; /* by whoever walks the graph */
	bool placed;  /* in the order of an executable graph that is being made */
};

struct CUgraph_st {
	struct fake_object object;
	struct CUgraphNode_st *first, *last;
	size_t count;
	struct CUgraphNode_st *owner; /* the child node whose graph it is */
	struct fake_capture *capture; /* being filled by one */
	uint32_t executables;         /* made from it and alive */
	struct fake_held *held;       /* user objects */
};

struct fake_item {
	struct CUgraphNode_st *node; /* a handle to compare with, possibly destroyed */
	struct fake_action action;
	bool disabled;
};

struct CUgraphExec_st {
	struct fake_object object;
	struct CUgraph_st *graph; /* may be destroyed: only compared */
	unsigned long long flags;
	uint32_t device;
	struct fake_item *items;
	size_t count;
	/* Memory of its allocation nodes: the most that lives at once while it runs. */
	uint64_t peak_bytes;
	bool mapped;               /* has that much of the device's reserve */
	struct fake_mark *running; /* the end of the last launch */
	struct fake_held *held;
	struct CUgraphExec_st *next, *previous;
};

struct fake_capture {
	struct CUgraph_st *graph;
	bool own_graph; /* nobody has a handle of it yet */
	CUstreamCaptureMode mode;
	struct CUstream_st *origin;
	pid_t thread;
	uint64_t id;
	bool invalid;
	struct fake_capture *next;
};

/* ---- graphs ---- */

struct CUgraph_st *fake_graph_new(void);
void fake_graph_free(struct CUgraph_st *graph);
/* Takes what `action` owns, in any case. `needs` may hold nodes of this graph only. */
CUresult fake_graph_add(struct CUgraph_st *graph, struct CUgraphNode_st *const *needs, size_t count,
			struct fake_action *action, struct CUgraphNode_st **ret_node);
void fake_action_release(struct fake_action *action);
/* Another of the same, with everything that it owns. */
void fake_action_copy(const struct fake_action *action, struct fake_action *ret_copy);
/* The device that the action belongs to; `other` for those that belong to none. */
uint32_t fake_action_device(const struct fake_action *action, uint32_t other);
/* From a union of all kinds of parameters (cuGraphAddNode). */
CUresult fake_action_of(CUgraphNodeParams *params, struct fake_action *ret_action);
/* A kernel's part, with a copy of its parameters. */
CUresult fake_action_kernel(struct CUctx_st *context, CUfunction function,
			    const struct fake_grid *grid, void **params, void **extra,
			    struct fake_action *ret_action);
/* An allocation's part; its address is in `what.dptr`. */
CUresult fake_action_alloc(const CUDA_MEM_ALLOC_NODE_PARAMS *params,
			   struct fake_action *ret_action);
CUresult fake_graph_launch(struct CUgraphExec_st *exec, struct CUstream_st *stream);
/* A second graph with the same nodes. */
struct CUgraph_st *fake_graph_clone(const struct CUgraph_st *graph);
bool fake_graph_has_memory(const struct CUgraph_st *graph);
/* Gives a program's list `count` handles: as many as fit, and how many there are. */
CUresult fake_give_nodes(CUgraphNode *list, size_t *count, struct CUgraphNode_st *const *nodes,
			 size_t have);
void fake_held_release(struct fake_held **held);
void fake_held_copy(const struct fake_held *from, struct fake_held **to);

/* ---- captures ---- */

/* Adds a node behind what the stream did last. */
CUresult fake_capture_add(struct CUstream_st *stream, struct fake_action *action,
			  struct CUgraphNode_st **ret_node);

/* ---- copies (cuda_copy.c) ---- */

CUresult fake_copy_check(const CUDA_MEMCPY3D *what);
void fake_copy_move(const CUDA_MEMCPY3D *what);
uint64_t fake_copy_ns(const struct CUctx_st *context, const CUDA_MEMCPY3D *what);
CUresult fake_set_check(const CUDA_MEMSET_NODE_PARAMS *what);
void fake_set_fill(const CUDA_MEMSET_NODE_PARAMS *what);
uint64_t fake_set_ns(const CUDA_MEMSET_NODE_PARAMS *what);

#endif
