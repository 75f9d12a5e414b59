/* SPDX-License-Identifier: Apache-2.0 */
#include "yaml/yaml_tree.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Up to here every whole number has its own double. */
#define EXACT_DOUBLE_MAX 9007199254740992.0 /* 2^53 */

/* Size and UTF-8 were checked when the tree was made: what remains is a lack of memory. */
static json_t *made(json_t *json)
{
	if (!json) {
		fprintf(stderr, "yaml: no memory for a JSON value\n");
		abort();
	}
	return json;
}

static json_t *scalar_to_json(const struct vg_yaml *scalar)
{
	struct vg_yaml_value value = vg_yaml_resolve(scalar);

	switch (value.type) {
	case VG_YAML_NULL:
		return json_null();
	case VG_YAML_BOOL:
		return json_boolean(value.truth);
	case VG_YAML_INT:
		return json_integer(value.integer);
	case VG_YAML_FLOAT:
		if (fabs(value.real) <= EXACT_DOUBLE_MAX && trunc(value.real) == value.real)
			return json_integer((json_int_t)value.real);
		return json_real(value.real);
	case VG_YAML_STRING:
		break;
	}
	return json_string(scalar->scalar);
}

/* Recursion is bounded by VG_LIMIT_YAML_DEPTH. */
json_t *vg_yaml_to_json(const struct vg_yaml *tree)
{
	json_t *json;

	switch (tree->kind) {
	case VG_YAML_SEQUENCE:
		json = made(json_array());
		for (size_t i = 0; i < tree->item_count; i++)
			if (json_array_append_new(json, vg_yaml_to_json(tree->items[i])) < 0)
				made(NULL);
		return json;
	case VG_YAML_MAPPING:
		json = made(json_object());
		for (size_t i = 0; i + 1 < tree->item_count; i += 2)
			if (json_object_set_new(json, tree->items[i]->scalar,
						vg_yaml_to_json(tree->items[i + 1])) < 0)
				made(NULL);
		return json;
	case VG_YAML_SCALAR:
		break;
	}
	return made(scalar_to_json(tree));
}
