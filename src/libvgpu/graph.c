/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Graphs with allocation nodes. Memory leaves the card when such a graph is uploaded or launched, so
 * instantiation counts the nodes' bytes, and launches reserve them (launch.c).
 */
#include <sys/mman.h>

#include "libvgpu/guest.h"
#include "libvgpu/hooks.h"

enum { DEPTH_MOST = 16 };

/* Any limit anywhere: without one nothing needs to be counted. */
static bool some_limit(void)
{
	for (int d = 0; d < VGPU_REGION_DEVICES; d++)
		if (region_limit(&vg.region, d))
			return true;
	return false;
}

struct tally {
	uint64_t bytes;
	CUdevice device;
};

/* Sums the allocation nodes of a graph and its children. */
static void tally_graph(CUgraph graph, struct tally *tally, unsigned int depth)
{
	CUgraphNode *nodes;
	size_t count = 0, bytes;

	if (depth > DEPTH_MOST || REAL(cuGraphGetNodes, graph, NULL, &count) != CUDA_SUCCESS ||
	    !count)
		return;
	bytes = count * sizeof(*nodes);
	nodes = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (nodes == MAP_FAILED)
		return;
	if (REAL(cuGraphGetNodes, graph, nodes, &count) != CUDA_SUCCESS)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		CUDA_MEM_ALLOC_NODE_PARAMS params;
		CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
		CUgraph child;

		if (REAL(cuGraphNodeGetType, nodes[i], &type) != CUDA_SUCCESS)
			continue;
		if (type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
		    REAL(cuGraphMemAllocNodeGetParams, nodes[i], &params) == CUDA_SUCCESS) {
			tally->bytes += vg_rounded(params.bytesize);
			tally->device = params.poolProps.location.id;
		} else if (type == CU_GRAPH_NODE_TYPE_GRAPH &&
			   REAL(cuGraphChildGraphNodeGetGraph, nodes[i], &child) == CUDA_SUCCESS) {
			tally_graph(child, tally, depth + 1);
		}
	}
	munmap(nodes, bytes);
}

static void remember_exec(CUgraphExec exec, const struct tally *tally)
{
	struct vg_entry entry = {
		.key = (uint64_t)(uintptr_t)exec,
		.bytes = tally->bytes,
		.owner = (uint64_t)(uint32_t)tally->device,
		.kind = VG_KIND_GRAPH,
		.index = (int16_t)vg_index_of(tally->device),
	};

	if (tally->bytes && entry.index >= 0)
		(void)vg_table_put(&entry);
}

/* A graph that could not run even in an empty container is refused at once. */
static uint64_t most(const struct tally *tally)
{
	uint64_t limit = region_limit(&vg.region, vg_index_of(tally->device));

	return limit ? limit : UINT64_MAX;
}

#define INSTANTIATE_THROUGH(exec, graph, call)                                                     \
	do {                                                                                       \
		struct tally tally_ = { 0, 0 };                                                    \
		CUresult rc_;                                                                      \
                                                                                                   \
		if (!vg_enter())                                                                   \
			return (call);                                                             \
		if (some_limit())                                                                  \
			tally_graph(graph, &tally_, 0);                                            \
		rc_ = tally_.bytes > most(&tally_) ? CUDA_ERROR_OUT_OF_MEMORY : (call);            \
		if (rc_ == CUDA_SUCCESS)                                                           \
			remember_exec(*(exec), &tally_);                                           \
		vg_leave();                                                                        \
		return rc_;                                                                        \
	} while (0)

VG_EXPORT CUresult cuGraphInstantiate(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
				      char *log, size_t log_bytes)
{
	INSTANTIATE_THROUGH(exec, graph,
			    REAL(cuGraphInstantiate, exec, graph, error_node, log, log_bytes));
}

VG_EXPORT CUresult cuGraphInstantiate_v2(CUgraphExec *exec, CUgraph graph, CUgraphNode *error_node,
					 char *log, size_t log_bytes)
{
	INSTANTIATE_THROUGH(exec, graph,
			    REAL(cuGraphInstantiate_v2, exec, graph, error_node, log, log_bytes));
}

VG_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph,
					       unsigned long long flags)
{
	INSTANTIATE_THROUGH(exec, graph, REAL(cuGraphInstantiateWithFlags, exec, graph, flags));
}

VG_EXPORT CUresult cuGraphInstantiateWithParams(CUgraphExec *exec, CUgraph graph,
						CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	INSTANTIATE_THROUGH(exec, graph, REAL(cuGraphInstantiateWithParams, exec, graph, params));
}

VG_EXPORT CUresult cuGraphInstantiateWithParams_ptsz(CUgraphExec *exec, CUgraph graph,
						     CUDA_GRAPH_INSTANTIATE_PARAMS *params)
{
	INSTANTIATE_THROUGH(exec, graph,
			    REAL(cuGraphInstantiateWithParams_ptsz, exec, graph, params));
}

VG_EXPORT CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	struct vg_entry entry;
	bool known;
	CUresult rc;

	if (!vg_enter())
		return REAL(cuGraphExecDestroy, exec);
	known = vg_table_take((uint64_t)(uintptr_t)exec, VG_KIND_GRAPH, &entry);
	rc = REAL(cuGraphExecDestroy, exec);
	if (known && rc != CUDA_SUCCESS)
		(void)vg_table_put(&entry);
	else if (known)
		vg_graph_settle((CUdevice)entry.owner, 0);
	vg_leave();
	return rc;
}
