/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One kind of object, followed for ever: a list in pages, then watches that go on where the last one
 * ended, then a new list when the server no longer knows that place.
 */
#ifndef VGPU_KUBE_LIST_WATCH_INTERNAL_H
#define VGPU_KUBE_LIST_WATCH_INTERNAL_H

#include <stdint.h>

#include "device/class.h"
#include "device/sink.h"
#include "kube/client_internal.h"
#include "kube/kube.h"
#include "kube/kube_internal.h"

struct vg_list_watch;

struct vg_list_watch_options {
	struct vg_client *client;
	enum vg_kind kind;
	const struct vg_classes *classes;
	struct vg_sink sink;
	struct vg_kube_timing timing; /* without zeros */
	struct vg_kube_counters *counters;
};

struct vg_list_watch *vg_list_watch_new(const struct vg_list_watch_options *options);
/* Cancels what is in flight; a list in progress is broken off at the sink. NULL is fine. */
void vg_list_watch_free(struct vg_list_watch *lw);

/* Starts what is due. Returns when to call again; INT64_MAX while an exchange is in flight. */
int64_t vg_list_watch_run(struct vg_list_watch *lw, int64_t now_ns);

#endif
