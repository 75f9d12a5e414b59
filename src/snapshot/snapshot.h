/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A saved cluster as the source and the place for decisions, instead of an API server: the output of
 * `kubectl get nodes,pods,resourcequotas -A -o json` (or -o yaml) as it is.
 *
 * Nothing runs behind it, so the snapshot also plays the pod's node agent and kubelet: a pod that was
 * bound is handed its devices at once (bind phase "success", nothing left to allocate, phase Running).
 *
 * Thread-safe, except for load and free. The sink is called by whoever calls in here, one call at a time,
 * with a lock held: it must not call back, and callers must hold no lock that the sink takes.
 */
#ifndef VGPU_SNAPSHOT_SNAPSHOT_H
#define VGPU_SNAPSHOT_SNAPSHOT_H

#include <stddef.h>

#include "base/err.h"
#include "device/class.h"
#include "device/sink.h"

struct vg_snapshot;

/*
 * Reads the file and feeds it to the sink as one complete list of nodes, one of pods and one of quotas. The
 * file holds a v1 List, a NodeList, a PodList, a ResourceQuotaList, single objects, or several of these one
 * after the other (YAML documents, or concatenated JSON). Other kinds are passed over; those that cannot be
 * decoded go to sink.malformed. Errors name file and line; the sink has heard nothing then. -EFBIG and
 * -E2BIG: over a limit of base/limits.h. `classes` must live as long as the snapshot.
 */
int vg_snapshot_load(const char *path, const struct vg_classes *classes, struct vg_sink sink,
		     struct vg_snapshot **ret_snapshot, struct vg_err *err);
/* The same from memory; `name` is for messages. */
int vg_snapshot_parse(const char *name, const char *text, size_t size,
		      const struct vg_classes *classes, struct vg_sink sink,
		      struct vg_snapshot **ret_snapshot, struct vg_err *err);
void vg_snapshot_free(struct vg_snapshot *snapshot);

/*
 * Makes a pod known that came with a request: a snapshot has no kube-scheduler behind it that created
 * the pod first. Known pods of the same UID are left alone; a pod of the same name and another UID is
 * taken for a re-created one, and replaced. Feeds the sink. Beyond VG_LIMIT_SNAPSHOT_LEARNED the oldest
 * learned pod that is not bound is forgotten.
 */
void vg_snapshot_learn(struct vg_snapshot *snapshot, const struct vg_pod *pod);

/*
 * Binds in memory: same answers as the API server (no such pod, being deleted, bound already), and the
 * changed pod is fed to the sink before done() is called. A repetition with the same node and allocation
 * succeeds. -EBUSY: the pod is being deleted.
 */
struct vg_binder vg_snapshot_binder(struct vg_snapshot *snapshot);

#endif
