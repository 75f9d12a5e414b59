/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The answer of /explain, as data and as JSON. Our own format: lowerCamel members, numbers with their unit
 * in the name.
 */
#ifndef VGPU_SERVER_EXPLAIN_CODEC_INTERNAL_H
#define VGPU_SERVER_EXPLAIN_CODEC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "cluster/cluster.h"
#include "device/class.h"
#include "device/request.h"
#include "scheduler/decide.h"
#include "server/json_out_internal.h"

struct vg_explain {
	const struct vg_classes *classes;
	const struct vg_pod *pod;
	const char *not_ready; /* NULL = ready */
	const char *invalid;   /* NULL, or why the pod's request is none: nothing below then */
	const struct vg_request *request; /* want_count 0: nothing below but the copy */
	const struct vg_cluster_copy *copy;
	const struct vg_node *const *candidates; /* as the decision saw them */
	size_t candidate_count;
	const struct vg_decision *decision; /* over all candidates */

	/* Indexes of the candidates that are shown with every check, best first. */
	const size_t *shown;
	size_t shown_count;
};

/* Everything; decides once more about the shown nodes, to see every check. */
void vg_explain_encode(const struct vg_explain *explain, struct vg_arena *arena,
		       struct vg_buf *buf);

/* One paragraph for people. In the arena. */
const char *vg_explain_summary(const struct vg_explain *explain, struct vg_arena *arena);

/* The nodes that lost, by their reason. */
struct vg_explain_reason {
	const char *text;
	size_t nodes;
	const struct vg_verdict *verdict; /* of one of them */
};

/* Most frequent first, then by text. In the arena. */
size_t vg_explain_reasons(const struct vg_explain *explain, struct vg_arena *arena,
			  struct vg_explain_reason **ret_reasons);

#endif
