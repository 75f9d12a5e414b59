/* SPDX-License-Identifier: Apache-2.0 */
/* The nodes, pods and resource quotas of a saved cluster, found but not decoded. */
#ifndef VGPU_SNAPSHOT_SAVED_INTERNAL_H
#define VGPU_SNAPSHOT_SAVED_INTERNAL_H

#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/sink.h"

struct json_t;
struct vg_yaml;

/* One Node, Pod or ResourceQuota, or what stands where one should. */
struct saved_object {
	enum vg_kind kind;
	const char *place;          /* "file.yaml:12", "file.json: items[3]" */
	const char *problem;        /* not NULL: it is no object at all, and this says why */
	const struct vg_yaml *yaml; /* from a YAML file */
	struct json_t *json;        /* from a JSON file; borrowed */
};

/* Everything lives in the arena, except for the JSON documents. */
struct saved {
	const char *name;
	struct vg_arena arena;
	struct json_t **documents;
	size_t document_count;
	struct saved_object *objects; /* in the order of the file */
	size_t object_count;
	size_t object_room;
	size_t counts[VG_KIND_COUNT];
	size_t passed_over; /* objects of other kinds */
};

/* `name` and `text` must live as long as the result. */
int saved_read(const char *name, const char *text, size_t size, struct saved *ret_saved,
	       struct vg_err *err);
void saved_release(struct saved *saved);

/* The object as JSON: a new reference. */
struct json_t *saved_json(const struct saved_object *object);

#endif
