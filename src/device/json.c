/* SPDX-License-Identifier: Apache-2.0 */
#include "device/json_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"

const char *vg_json_kind(const json_t *value)
{
	switch (json_typeof(value)) {
	case JSON_OBJECT:
		return "an object";
	case JSON_ARRAY:
		return "an array";
	case JSON_STRING:
		return "a string";
	case JSON_INTEGER:
	case JSON_REAL:
		return "a number";
	case JSON_TRUE:
	case JSON_FALSE:
		return "a boolean";
	case JSON_NULL:
		break;
	}
	return "null";
}

/* NULL when absent or null. */
static json_t *member(const json_t *parent, const char *path)
{
	const char *dot = strrchr(path, '.');
	json_t *value = json_object_get(parent, dot ? dot + 1 : path);

	return json_is_null(value) ? NULL : value;
}

static int wrong_type(const json_t *value, const char *path, const char *wanted, struct vg_err *err)
{
	return vg_fail(err, EINVAL, "%s is %s, not %s", path, vg_json_kind(value), wanted);
}

int vg_json_object(const json_t *parent, const char *path, json_t **ret_member, struct vg_err *err)
{
	json_t *value = member(parent, path);

	if (value && !json_is_object(value))
		return wrong_type(value, path, "an object", err);
	*ret_member = value;
	return 0;
}

int vg_json_array(const json_t *parent, const char *path, json_t **ret_member, struct vg_err *err)
{
	json_t *value = member(parent, path);

	if (value && !json_is_array(value))
		return wrong_type(value, path, "an array", err);
	*ret_member = value;
	return 0;
}

int vg_json_bool(const json_t *parent, const char *path, bool *ret_value, struct vg_err *err)
{
	const json_t *value = member(parent, path);

	if (value && !json_is_boolean(value))
		return wrong_type(value, path, "a boolean", err);
	*ret_value = json_is_true(value);
	return 0;
}

int vg_json_i64(const json_t *parent, const char *path, int64_t min, int64_t max,
		int64_t *ret_value, struct vg_err *err)
{
	const json_t *value = member(parent, path);
	int64_t number;

	if (value && !json_is_number(value))
		return wrong_type(value, path, "a whole number", err);
	if (json_is_real(value))
		return vg_fail(err, EINVAL, "%s is %g, not a whole number", path,
			       json_real_value(value));
	number = json_integer_value(value);
	if (value && (number < min || number > max))
		return vg_fail(err, EINVAL, "%s is %lld, outside %lld to %lld", path,
			       (long long)number, (long long)min, (long long)max);
	*ret_value = number;
	return 0;
}

int vg_json_word(const json_t *parent, const char *path, const char **ret_word, struct vg_err *err)
{
	const json_t *value = member(parent, path);

	if (value && !json_is_string(value))
		return wrong_type(value, path, "a string", err);
	*ret_word = value ? json_string_value(value) : "";
	return 0;
}

int vg_json_text(const json_t *parent, const char *path, size_t max, struct vg_arena *arena,
		 const char **ret_text, struct vg_err *err)
{
	const json_t *value = member(parent, path);
	size_t size;

	if (value && !json_is_string(value))
		return wrong_type(value, path, "a string", err);
	size = json_string_length(value);
	if (size > max)
		return vg_fail(err, E2BIG, "%s has %zu bytes; at most %zu are accepted", path, size,
			       max);
	*ret_text = size ? vg_arena_strndup(arena, json_string_value(value), size) : "";
	return 0;
}

/* The shortest text that reads as the same number: 0.1 and not 0.10000000000000001. */
static char *real_text(double real, struct vg_arena *arena)
{
	char text[32];

	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, real);
		if (strtod(text, NULL) == real)
			break;
	}
	return vg_arena_strdup(arena, text);
}

int vg_json_quantity(const json_t *value, const char *path, struct vg_arena *arena,
		     const char **ret_text, struct vg_err *err)
{
	switch (json_typeof(value)) {
	case JSON_STRING:
		*ret_text = vg_arena_strndup(arena, json_string_value(value),
					     json_string_length(value));
		return 0;
	case JSON_INTEGER:
		*ret_text = vg_arena_printf(arena, "%lld", (long long)json_integer_value(value));
		return 0;
	case JSON_REAL:
		*ret_text = real_text(json_real_value(value), arena);
		return 0;
	default:
		return wrong_type(value, path, "a quantity", err);
	}
}

/* Only the keys of include/vgpu/annotations.def; the API server bounds the sum of all of them. */
static int decode_annotations(const json_t *metadata, struct vg_arena *arena,
			      struct vg_annotations *ret_annotations, struct vg_err *err)
{
	struct vg_annotations annotations = { { NULL } };
	size_t sum = 0;
	json_t *object = NULL;
	const char *key;
	json_t *value;
	int r;

	r = vg_json_object(metadata, "metadata.annotations", &object, err);
	if (r < 0)
		return r;
	json_object_foreach(object, key, value)
	{
		enum vg_annotation row = vg_annotation_find(key);

		if (row == VG_ANNO_COUNT || json_is_null(value))
			continue;
		if (!json_is_string(value))
			return vg_fail(err, EINVAL,
				       "metadata.annotations[\"%s\"] is %s, not a string", key,
				       vg_json_kind(value));
		sum += json_string_length(value);
		if (sum > VG_LIMIT_ANNOTATION_BYTES)
			return vg_fail(err, E2BIG, "metadata.annotations have more than %u bytes",
				       VG_LIMIT_ANNOTATION_BYTES);
		/* Where an object has two spellings of one key, the listed one counts. */
		if (!annotations.value[row] || vg_streq(key, vg_annotation_key[row]))
			annotations.value[row] = vg_arena_strndup(arena, json_string_value(value),
								  json_string_length(value));
	}
	*ret_annotations = annotations;
	return 0;
}

static int decode_meta(const json_t *metadata, struct vg_arena *arena, struct vg_json_meta *meta,
		       struct vg_err *err)
{
	const char *version = "";
	const char *deletion = "";
	int r;

	r = vg_json_text(metadata, "metadata.name", VG_LIMIT_NAME_BYTES, arena, &meta->name, err);
	if (r == 0)
		r = vg_json_text(metadata, "metadata.namespace", VG_LIMIT_NAME_BYTES, arena,
				 &meta->namespace, err);
	if (r == 0)
		r = vg_json_text(metadata, "metadata.uid", VG_LIMIT_NAME_BYTES, arena, &meta->uid,
				 err);
	if (r == 0)
		r = vg_json_word(metadata, "metadata.resourceVersion", &version, err);
	if (r == 0)
		r = vg_json_word(metadata, "metadata.deletionTimestamp", &deletion, err);
	if (r == 0)
		r = decode_annotations(metadata, arena, &meta->annotations, err);
	if (r < 0)
		return r;
	meta->terminating = deletion[0] != '\0';
	/* Opaque by contract: one that is no number is as good as none. */
	vg_parse_u64(VG_SPAN(version), 0, UINT64_MAX, &meta->resource_version, NULL);
	return 0;
}

int vg_json_meta(const json_t *object, const char *kind, struct vg_arena *arena,
		 struct vg_json_meta *ret_meta, struct vg_err *err)
{
	struct vg_json_meta meta = { .name = "", .namespace = "" };
	const char *said = "";
	json_t *metadata = NULL;
	int r;

	if (!json_is_object(object))
		return vg_fail(err, EINVAL, "not a %s: %s instead of an object", kind,
			       object ? vg_json_kind(object) : "nothing");
	r = vg_json_word(object, "kind", &said, err);
	if (r < 0)
		return r;
	if (said[0] && !vg_streq(said, kind))
		return vg_fail(err, EINVAL, "not a %s: kind is \"%s\"", kind, said);
	r = vg_json_object(object, "metadata", &metadata, err);
	if (r < 0)
		return r;
	if (!metadata)
		return vg_fail(err, EINVAL, "not a %s: metadata is missing", kind);
	r = decode_meta(metadata, arena, &meta, err);
	if (r < 0) {
		if (meta.namespace[0])
			return vg_err_wrap(err, r, "%s %s/%s", kind, meta.namespace, meta.name);
		return vg_err_wrap(err, r, "%s %s", kind,
				   meta.name[0] ? meta.name : "without a name");
	}
	*ret_meta = meta;
	return 0;
}
