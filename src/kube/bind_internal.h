/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bindings: many at once, each repeated until its outcome is known or its time is over. What happened
 * to a request whose answer was lost is found out from the pod.
 */
#ifndef VGPU_KUBE_BIND_INTERNAL_H
#define VGPU_KUBE_BIND_INTERNAL_H

#include <stdint.h>

#include "device/sink.h"
#include "kube/client_internal.h"
#include "kube/kube.h"
#include "kube/kube_internal.h"

struct vg_binds;

struct vg_binds *vg_binds_new(struct vg_client *client, const struct vg_kube_timing *timing,
			      struct vg_kube_counters *counters);
/*
 * On the client's thread: ends everything with -ECANCELED, has told all ends before it returns, and
 * refuses whatever is added later.
 */
void vg_binds_stop(struct vg_binds *binds);
/* NULL is fine. */
void vg_binds_free(struct vg_binds *binds);

/* From any thread; see struct vg_binder. */
void vg_binds_add(struct vg_binds *binds, const struct vg_bind_call *call, vg_bind_done done,
		  void *done_ctx);

/* Starts what is due. Returns when to call again; INT64_MAX when there is nothing to wait for. */
int64_t vg_binds_run(struct vg_binds *binds, int64_t now_ns);

#endif
