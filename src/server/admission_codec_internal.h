/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdmissionReview, v1 and v1beta1, and the JSON patch inside the reply.
 *
 * Source: k8s.io/api/admission/v1, types.go; RFC 6902 (JSON patch), RFC 6901 (its pointers).
 */
#ifndef VGPU_SERVER_ADMISSION_CODEC_INTERNAL_H
#define VGPU_SERVER_ADMISSION_CODEC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "device/class.h"
#include "device/pod.h"
#include "server/json_out_internal.h"

struct vg_review {
	const char *api_version; /* echoed */
	const char *kind;
	const char *uid;
	const char *namespace; /* of the request: the object may not have it yet */
	const char *name;      /* "" when the API server will make one */
	bool dry_run;
	/* The creation of a pod; everything else is no business of ours, and `pod` is not filled. */
	bool creates_pod;
	struct vg_pod pod;
};

/*
 * -EINVAL, -E2BIG: no review, or no pod inside. As far as known, api_version, kind and uid are set in
 * that case too, since the reply has to repeat them. Everything is in the arena.
 */
int vg_review_decode(struct vg_span body, const struct vg_classes *classes, struct vg_arena *arena,
		     struct vg_review *review, struct vg_err *err);

struct vg_review_reply {
	bool allowed;
	int code;             /* 200, or the HTTP status that the user gets to see */
	const char *reason;   /* "Forbidden", NULL = none */
	const char *message;  /* NULL = none */
	struct vg_span patch; /* JSON; size 0 = none */
};

void vg_review_encode(const struct vg_review *review, const struct vg_review_reply *reply,
		      struct vg_buf *buf);

/* ---- patches ---------------------------------------------------------------------------------- */

/* An array of operations. */
struct vg_patch {
	struct vg_buf json;
	struct vg_out out;
	size_t count; /* of operations */
};

void vg_patch_init(struct vg_patch *patch);
void vg_patch_release(struct vg_patch *patch);
/* Begins an operation; the value is written to patch->out, then vg_patch_end() ends it. */
void vg_patch_begin(struct vg_patch *patch, const char *op, const char *path);
void vg_patch_end(struct vg_patch *patch);
void vg_patch_text(struct vg_patch *patch, const char *op, const char *path, const char *value);
/* A key as part of a path: "~" is "~0", "/" is "~1". In the arena. */
const char *vg_patch_escape(const char *key, struct vg_arena *arena);
/* The whole array, "" when there is no operation. Valid until the release. */
struct vg_span vg_patch_json(struct vg_patch *patch);

#endif
