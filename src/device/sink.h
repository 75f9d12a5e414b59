/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where cluster objects go to, and where decisions go to: the two contracts between a cluster source
 * (src/kube: the API server; src/snapshot: a file) and the rest of the daemon.
 */
#ifndef VGPU_DEVICE_SINK_H
#define VGPU_DEVICE_SINK_H

#include <stddef.h>
#include <stdint.h>

#include "device/node.h"
#include "device/pod.h"
#include "device/quota.h"

enum vg_kind {
	VG_KIND_NODE,
	VG_KIND_POD,
	VG_KIND_QUOTA,
	VG_KIND_COUNT,
};

/*
 * A source calls these from one thread. A list is list_begin, put for every object, list_end: what was
 * known before and was not put in between is gone. list_abort keeps everything. Objects that could not
 * be decoded are reported, never silently skipped, and an object known under that name stays.
 * Pointers are valid during the call only.
 */
struct vg_sink_ops {
	void (*list_begin)(void *ctx, enum vg_kind kind);
	void (*list_end)(void *ctx, enum vg_kind kind);
	void (*list_abort)(void *ctx, enum vg_kind kind);
	void (*put_node)(void *ctx, const struct vg_node_info *node);
	void (*put_pod)(void *ctx, const struct vg_pod *pod);
	void (*put_quota)(void *ctx, const struct vg_quota_info *quota);
	void (*delete_node)(void *ctx, const char *name);
	/* `uid` as far as the event tells, else "". */
	void (*delete_pod)(void *ctx, const char *namespace, const char *name, const char *uid);
	void (*delete_quota)(void *ctx, const char *namespace, const char *name);
	/*
	 * The source may not read objects of this kind, and we can do without: nobody has to wait for them.
	 * What was known of them stays, since the right may have been lost by an accident that ends; a list
	 * or an event of the kind says that it is over. Called for quotas only.
	 */
	void (*forbidden)(void *ctx, enum vg_kind kind);
	/* An object that could not be decoded; `what` names it as far as known. */
	void (*malformed)(void *ctx, enum vg_kind kind, const char *what, const char *why);
	/* Anything heard from the source, bookmarks included: the view is current as of now. */
	void (*heard)(void *ctx, enum vg_kind kind);
};

struct vg_sink {
	const struct vg_sink_ops *ops;
	void *ctx;
};

struct vg_key_value {
	const char *key;
	const char *value;
};

/* One Binding: the pod gets its node and these annotations in one transaction. */
struct vg_bind_call {
	const char *namespace;
	const char *name;
	const char *uid;
	const char *node;
	const struct vg_key_value *annotations;
	size_t annotation_count;
};

/*
 * The end of a bind: 0, or a negative errno with a text. -EEXIST: the pod is bound already, to another
 * node or with another allocation. -ENOENT: no such pod, or another UID. Called once, from any thread,
 * possibly before bind() returns.
 */
typedef void (*vg_bind_done)(void *ctx, int code, const char *message);

struct vg_binder {
	/* Copies what it keeps. Always ends in one call of done(). */
	void (*bind)(void *ctx, const struct vg_bind_call *call, vg_bind_done done, void *done_ctx);
	void *ctx;
};

/*
 * Wakes a pod that waits in kube-scheduler's queue, by touching it. Best effort: nobody is told how it
 * ends. `nudge` is NULL where there is no queue to wake anybody in.
 */
struct vg_nudger {
	/* Copies what it keeps; from any thread. */
	void (*nudge)(void *ctx, const char *namespace, const char *name, const char *uid);
	void *ctx;
};

#endif
