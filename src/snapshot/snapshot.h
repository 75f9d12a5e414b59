/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A saved cluster as the source and the place for decisions, instead of an API server: the output of
 * `kubectl get nodes,pods -A -o json` (or -o yaml) as it is.
 */
#ifndef VGPU_SNAPSHOT_SNAPSHOT_H
#define VGPU_SNAPSHOT_SNAPSHOT_H

#include "base/err.h"
#include "device/class.h"
#include "device/sink.h"

struct vg_snapshot;

/*
 * Reads the file (a v1.List, a NodeList, a PodList, or several YAML documents of such or of single
 * objects) and feeds it to the sink as one complete list of each kind. Errors name file, line and object.
 */
int vg_snapshot_load(const char *path, const struct vg_classes *classes, struct vg_sink sink,
		     struct vg_snapshot **ret_snapshot, struct vg_err *err);
void vg_snapshot_free(struct vg_snapshot *snapshot);

/*
 * Makes a pod known that came with a request: a snapshot has no kube-scheduler behind it that created
 * the pod first. Known pods of the same UID are left alone.
 */
void vg_snapshot_learn(struct vg_snapshot *snapshot, const struct vg_pod *pod);

/* Binds in memory: same answers as the API server (no such pod, bound already), and the changed pod is
 * fed to the sink before done() is called. Thread-safe. */
struct vg_binder vg_snapshot_binder(struct vg_snapshot *snapshot);

#endif
