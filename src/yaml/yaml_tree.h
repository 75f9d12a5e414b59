/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as a tree that remembers line numbers, on libyaml. The only folder that includes yaml.h.
 * Accepts what Kubernetes and Helm write: block and flow style, anchors and aliases, several documents,
 * JSON. Bounded by base/limits.h: size, depth, nodes (aliases count each time they are used).
 */
#ifndef VGPU_YAML_YAML_TREE_H
#define VGPU_YAML_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/err.h"

struct json_t;

enum vg_yaml_kind {
	VG_YAML_SCALAR,
	VG_YAML_SEQUENCE,
	VG_YAML_MAPPING,
};

struct vg_yaml {
	enum vg_yaml_kind kind;
	unsigned line;          /* from 1 */
	const char *scalar;     /* NUL-terminated; scalars only */
	bool quoted;            /* a quoted or block scalar is a string whatever it looks like */
	struct vg_yaml **items; /* sequence: elements; mapping: key, value, key, value, … */
	size_t item_count;      /* mapping: twice the number of entries */
};

/* One tree per document. `name` is for messages ("file.yaml"). Everything is in the arena. */
int vg_yaml_parse(const char *name, const char *text, size_t size, struct vg_arena *arena,
		  struct vg_yaml ***ret_documents, size_t *ret_count, struct vg_err *err);
int vg_yaml_parse_file(const char *path, struct vg_arena *arena, struct vg_yaml ***ret_documents,
		       size_t *ret_count, struct vg_err *err);
/* The value of a key, or NULL. */
struct vg_yaml *vg_yaml_get(const struct vg_yaml *mapping, const char *key);

/*
 * The same tree as JSON, scalars typed by the YAML 1.2 core schema (null, true, false, integers, floats;
 * everything else, and everything quoted, is a string). A new reference.
 */
struct json_t *vg_yaml_to_json(const struct vg_yaml *tree);

#endif
