/* SPDX-License-Identifier: Apache-2.0 */
/*
 * YAML as a tree that remembers line numbers, on libyaml. The only folder that includes yaml.h.
 * Accepts what Kubernetes and Helm write: block and flow style, anchors and aliases, merge keys, several
 * documents, JSON. Bounded by base/limits.h: size, depth, nodes and text (what an alias stands for counts
 * each time that it is used, so a small file cannot grow into a large tree).
 *
 * Refused, with the line: a key that a mapping has twice, a key that is not a scalar, a NUL byte in a
 * scalar, an alias of an unknown anchor or of a node that contains it, tags other than those of the
 * core schema.
 */
#ifndef VGPU_YAML_YAML_TREE_H
#define VGPU_YAML_YAML_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct json_t;

enum vg_yaml_kind {
	VG_YAML_SCALAR,
	VG_YAML_SEQUENCE,
	VG_YAML_MAPPING,
};

/* Aliases share the node that they name: a tree is for reading only. */
struct vg_yaml {
	enum vg_yaml_kind kind;
	unsigned line;          /* from 1; where the text stands, also for what an alias names */
	const char *scalar;     /* NUL-terminated; scalars only */
	bool quoted;            /* a quoted or block scalar is a string whatever it looks like */
	struct vg_yaml **items; /* sequence: elements; mapping: key, value, key, value, … */
	size_t item_count;      /* mapping: twice the number of entries */
};

/*
 * One tree per document; a file of comments has none. `name` is for messages, which begin with
 * "name:line: ". Merge keys ("<<") are resolved: an entry of the mapping itself wins over a merged one,
 * an earlier merged mapping over a later one. Everything is in the arena.
 */
int vg_yaml_parse(const char *name, const char *text, size_t size, struct vg_arena *arena,
		  struct vg_yaml ***ret_documents, size_t *ret_count, struct vg_err *err);
int vg_yaml_parse_file(const char *path, struct vg_arena *arena, struct vg_yaml ***ret_documents,
		       size_t *ret_count, struct vg_err *err);
/* The value of a key, or NULL; also NULL for a tree that is NULL or no mapping. */
struct vg_yaml *vg_yaml_get(const struct vg_yaml *mapping, const char *key);

enum vg_yaml_type {
	VG_YAML_STRING,
	VG_YAML_NULL,
	VG_YAML_BOOL,
	VG_YAML_INT,
	VG_YAML_FLOAT,
};

struct vg_yaml_value {
	enum vg_yaml_type type;
	bool truth;      /* BOOL */
	int64_t integer; /* INT */
	double real;     /* INT and FLOAT */
};

/*
 * What a scalar means. The types are those of the YAML 1.2 core schema; where that differs from what
 * kubectl, Helm and every Go program of the Kubernetes world make of the same text (sigs.k8s.io/yaml, which
 * keeps YAML 1.1's words and number forms), theirs counts, because these files are written for them:
 *
 *	yes no on off y n, True TRUE …    booleans (core: strings)
 *	010                               octal, 8 (core: 10); 089 is no octal number: 89
 *	0x10 0o10 0b10 with a sign, 1_000 integers
 *	1e3 1.5 .5                        floats
 *	12:30:45, 2026-01-02              strings
 *	16Gi 500m 1e                      strings
 *	.inf .nan                         strings (JSON has no such numbers)
 *
 * Integers beyond int64 are floats, numbers beyond a double or of more than 127 characters strings.
 */
struct vg_yaml_value vg_yaml_resolve(const struct vg_yaml *scalar);

/*
 * The same tree as JSON, scalars typed by vg_yaml_resolve(). Floats that are whole numbers become integers
 * ("1e3" is 1000, as Kubernetes sees it). Keys stay as written. A new reference; never NULL.
 */
struct json_t *vg_yaml_to_json(const struct vg_yaml *tree);

#endif
