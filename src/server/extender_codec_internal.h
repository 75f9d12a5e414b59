/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The scheduler extender's JSON. The Go structs of kube-scheduler have no JSON tags: it sends PascalCase
 * and reads any case, so any case is taken here and PascalCase is sent. All members are always sent.
 * Only the first JSON value of a body counts, unknown members are ignored, and of a member that is there
 * twice the last one counts.
 *
 * Source: k8s.io/kube-scheduler/extender/v1, types.go.
 */
#ifndef VGPU_SERVER_EXTENDER_CODEC_INTERNAL_H
#define VGPU_SERVER_EXTENDER_CODEC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device/class.h"
#include "device/node.h"
#include "device/pod.h"
#include "scheduler/decide.h"

/* ---- filter ----------------------------------------------------------------------------------- */

struct vg_extender_args {
	struct vg_pod pod;
	/* As they were sent, data NULL when absent or null; checked to be JSON. Inside the body. */
	struct vg_span node_names_json;
	struct vg_span nodes_json;

	const char *const *node_names;
	size_t node_name_count;
};

/*
 * Decodes ExtenderArgs; the node list is left for vg_extender_nodes_decode(), since most callers send
 * names. Errors name the place. Everything is in the arena, but for the spans.
 */
int vg_extender_args_decode(struct vg_span body, const struct vg_classes *classes,
			    struct vg_arena *arena, struct vg_extender_args *ret_args,
			    struct vg_err *err);

/* A v1.Pod from its text. */
int vg_pod_json_decode(struct vg_span json, const struct vg_classes *classes,
		       struct vg_arena *arena, struct vg_pod *ret_pod, struct vg_err *err);

/* Whether the body is one object with a member "Pod" in any case: ExtenderArgs and not a v1.Pod. */
bool vg_extender_args_like(struct vg_span body);

/* The nodes of a v1.NodeList, and each as it was sent. A node whose cards cannot be read has none. */
int vg_extender_nodes_decode(struct vg_span nodes_json, const struct vg_classes *classes,
			     struct vg_arena *arena, struct vg_node_info **ret_nodes,
			     struct vg_span **ret_json, size_t *ret_count, struct vg_err *err);

/* What goes back; a member that is not set is null, or "" for Error. */
struct vg_extender_result {
	const char *error;
	struct vg_span nodes_json;      /* Nodes, echoed */
	struct vg_span node_names_json; /* NodeNames, echoed */
	struct vg_span node_json;       /* Nodes with this one item */
	const char *node_name;          /* NodeNames with this one name */
	bool name_fitting;              /* NodeNames with all of `names` whose verdict is FITS */

	/* The failed ones: of these names, those whose verdict says so, or all with `reason`. */
	const char *const *names;
	size_t name_count;
	const struct vg_verdict *verdicts;
	const char *reason;
};

/*
 * Nodes that no eviction would help stand in FailedAndUnresolvableNodes, and in FailedNodes as well:
 * kube-scheduler lets the former win, and versions before 1.21 know the latter alone.
 */
void vg_extender_result_encode(const struct vg_extender_result *result, struct vg_arena *arena,
			       struct vg_buf *buf);

/* ---- prioritize ------------------------------------------------------------------------------- */

#define VG_PRIORITY_MAX 10 /* MaxExtenderPriority of kube-scheduler */

/* HostPriorityList: a score from 0 to VG_PRIORITY_MAX per name. */
void vg_host_priorities_encode(const char *const *names, const int *scores, size_t count,
			       struct vg_buf *buf);

/* ---- bind ------------------------------------------------------------------------------------- */

struct vg_binding_args {
	const char *namespace;
	const char *name;
	const char *uid;
	const char *node;
};

/* All four must be there. In the arena. */
int vg_binding_args_decode(struct vg_span body, struct vg_arena *arena,
			   struct vg_binding_args *ret_args, struct vg_err *err);
/* `error` "" = success. */
void vg_binding_result_encode(const char *error, struct vg_buf *buf);

#endif
