/* SPDX-License-Identifier: Apache-2.0 */
/* Touching pods that wait in kube-scheduler's queue, so that they are tried again. */
#ifndef VGPU_KUBE_NUDGE_INTERNAL_H
#define VGPU_KUBE_NUDGE_INTERNAL_H

#include "kube/client_internal.h"
#include "kube/kube_internal.h"

struct vg_nudges;

struct vg_nudges *vg_nudges_new(struct vg_client *client, struct vg_kube_counters *counters,
				int32_t answer_ms);
/* On the client's thread, or after its end: forgets what was not sent. */
void vg_nudges_stop(struct vg_nudges *nudges);
/* NULL is fine. */
void vg_nudges_free(struct vg_nudges *nudges);
/* From any thread; see struct vg_nudger. */
void vg_nudges_add(struct vg_nudges *nudges, const char *namespace, const char *name,
		   const char *uid);
/* On the client's thread: sends what there is room for. */
void vg_nudges_run(struct vg_nudges *nudges);

#endif
