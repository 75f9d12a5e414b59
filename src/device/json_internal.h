/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the decoders of Kubernetes objects share: members by name, with the rules of the Go decoders
 * that these objects are written for (absent and null are the zero value), and errors that name the
 * path of the member.
 *
 * `path` is the full path of the member for messages; the key is its part behind the last dot.
 */
#ifndef VGPU_DEVICE_JSON_INTERNAL_H
#define VGPU_DEVICE_JSON_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/annotation.h"

/* "an object", "null", … */
const char *vg_json_kind(const json_t *value);

/* The member, or NULL when it is absent or null. -EINVAL for another type. `parent` may be NULL. */
int vg_json_object(const json_t *parent, const char *path, json_t **ret_member, struct vg_err *err);
int vg_json_array(const json_t *parent, const char *path, json_t **ret_member, struct vg_err *err);
int vg_json_bool(const json_t *parent, const char *path, bool *ret_value, struct vg_err *err);
int vg_json_i64(const json_t *parent, const char *path, int64_t min, int64_t max,
		int64_t *ret_value, struct vg_err *err);

/* Text that belongs to the JSON value, "" when absent. */
int vg_json_word(const json_t *parent, const char *path, const char **ret_word, struct vg_err *err);

/* Text copied to the arena, "" when absent. More than `max` bytes are -E2BIG. */
int vg_json_text(const json_t *parent, const char *path, size_t max, struct vg_arena *arena,
		 const char **ret_text, struct vg_err *err);

/* The text of a quantity, which may also stand as a JSON number. Copied to the arena. */
int vg_json_quantity(const json_t *value, const char *path, struct vg_arena *arena,
		     const char **ret_text, struct vg_err *err);

/* The members of ObjectMeta that any object has. */
struct vg_json_meta {
	const char *namespace;
	const char *name;
	const char *uid;
	uint64_t resource_version;
	bool terminating;
	struct vg_annotations annotations;
};

/* Decodes metadata of an object whose kind, if it says one, is `kind`. */
int vg_json_meta(const json_t *object, const char *kind, struct vg_arena *arena,
		 struct vg_json_meta *ret_meta, struct vg_err *err);

#endif
