/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the objects of a file. JSON and YAML trees look alike from here through `struct view`, so that
 * lists and kinds are told apart in one place. YAML objects become JSON one at a time, when they are
 * decoded: a saved cluster is large.
 */
#include "snapshot/saved_internal.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "yaml/yaml_tree.h"

/* One node of either tree. */
struct view {
	const struct vg_yaml *yaml;
	json_t *json;
};

static bool view_is_object(struct view view)
{
	return view.yaml ? view.yaml->kind == VG_YAML_MAPPING : json_is_object(view.json);
}

static bool view_is_list(struct view view)
{
	return view.yaml ? view.yaml->kind == VG_YAML_SEQUENCE : json_is_array(view.json);
}

static bool view_is_null(struct view view)
{
	if (view.yaml)
		return view.yaml->kind == VG_YAML_SCALAR &&
		       vg_yaml_resolve(view.yaml).type == VG_YAML_NULL;
	return json_is_null(view.json);
}

/* Both members are NULL when there is no such key. */
static struct view view_get(struct view view, const char *key)
{
	if (view.yaml)
		return (struct view){ .yaml = vg_yaml_get(view.yaml, key) };
	return (struct view){ .json = json_object_get(view.json, key) };
}

static bool view_exists(struct view view)
{
	return view.yaml || view.json;
}

/* The text of a key, or "" when it has none. */
static const char *view_text(struct view view, const char *key)
{
	struct view value = view_get(view, key);

	if (value.yaml && value.yaml->kind == VG_YAML_SCALAR)
		return value.yaml->scalar;
	return json_is_string(value.json) ? json_string_value(value.json) : "";
}

static size_t view_count(struct view view)
{
	return view.yaml ? view.yaml->item_count : json_array_size(view.json);
}

static struct view view_item(struct view view, size_t i)
{
	if (view.yaml)
		return (struct view){ .yaml = view.yaml->items[i] };
	return (struct view){ .json = json_array_get(view.json, i) };
}

/* ---- objects -------------------------------------------------------------------------------------- */

/* VG_KIND_COUNT for kinds that are not ours. */
static enum vg_kind kind_of(const char *kind, const char *version)
{
	if (!vg_streq(version, "v1"))
		return VG_KIND_COUNT;
	if (vg_streq(kind, "Node"))
		return VG_KIND_NODE;
	if (vg_streq(kind, "Pod"))
		return VG_KIND_POD;
	if (vg_streq(kind, "ResourceQuota"))
		return VG_KIND_QUOTA;
	return VG_KIND_COUNT;
}

static int add_object(struct saved *saved, const struct saved_object *object, struct vg_err *err)
{
	static const unsigned limits[VG_KIND_COUNT] = {
		[VG_KIND_NODE] = VG_LIMIT_NODES,
		[VG_KIND_POD] = VG_LIMIT_SNAPSHOT_PODS,
		[VG_KIND_QUOTA] = VG_LIMIT_SNAPSHOT_QUOTAS,
	};
	static const char *const names[VG_KIND_COUNT] = {
		[VG_KIND_NODE] = "nodes",
		[VG_KIND_POD] = "pods",
		[VG_KIND_QUOTA] = "resource quotas",
	};

	if (++saved->counts[object->kind] > limits[object->kind])
		return vg_fail(err, E2BIG, "%s: more than %u %s", saved->name, limits[object->kind],
			       names[object->kind]);
	if (saved->object_count == saved->object_room) {
		saved->object_room = saved->object_room ? saved->object_room * 2 : 64;
		saved->objects = vg_grow(saved->objects, saved->object_room, sizeof(*object));
	}
	saved->objects[saved->object_count++] = *object;
	return 0;
}

/* What is no object is counted as a pod: a saved cluster has mostly these. */
static int add_broken(struct saved *saved, enum vg_kind kind, const char *place,
		      const char *problem, struct vg_err *err)
{
	struct saved_object object = {
		.kind = kind == VG_KIND_COUNT ? VG_KIND_POD : kind,
		.place = place,
		.problem = problem,
	};

	return add_object(saved, &object, err);
}

static int add_view(struct saved *saved, struct view view, enum vg_kind kind, const char *place,
		    struct vg_err *err)
{
	struct saved_object object = {
		.kind = kind,
		.place = place,
		.yaml = view.yaml,
		.json = view.json,
	};

	if (kind == VG_KIND_COUNT) {
		saved->passed_over++;
		return 0;
	}
	return add_object(saved, &object, err);
}

static const char *place_of(struct saved *saved, struct view view, size_t item)
{
	if (view.yaml)
		return vg_arena_printf(&saved->arena, "%s:%u", saved->name, view.yaml->line);
	return vg_arena_printf(&saved->arena, "%s: items[%zu]", saved->name, item);
}

/* ---- lists ---------------------------------------------------------------------------------------- */

/* Items of a NodeList, PodList or ResourceQuotaList need not repeat what they are; those of a List must. */
static int read_item(struct saved *saved, struct view item, size_t index, enum vg_kind list_kind,
		     struct vg_err *err)
{
	const char *place = place_of(saved, item, index);
	const char *kind;
	const char *version;

	if (!view_is_object(item))
		return add_broken(saved, list_kind, place, "is not an object", err);
	kind = view_text(item, "kind");
	version = view_text(item, "apiVersion");
	if (kind[0])
		return add_view(saved, item, kind_of(kind, version), place, err);
	if (list_kind == VG_KIND_COUNT)
		return add_broken(saved, list_kind, place, "has no kind", err);
	return add_view(saved, item, list_kind, place, err);
}

static int read_list(struct saved *saved, struct view list, const char *kind, const char *place,
		     struct vg_err *err)
{
	const char *version = view_text(list, "apiVersion");
	enum vg_kind list_kind = VG_KIND_COUNT;
	struct view items = view_get(list, "items");

	if (vg_streq(kind, "NodeList"))
		list_kind = kind_of("Node", version);
	else if (vg_streq(kind, "PodList"))
		list_kind = kind_of("Pod", version);
	else if (vg_streq(kind, "ResourceQuotaList"))
		list_kind = kind_of("ResourceQuota", version);
	if (list_kind == VG_KIND_COUNT && !vg_streq(kind, "List")) {
		saved->passed_over += view_count(items);
		return 0;
	}
	if (view_text(view_get(list, "metadata"), "continue")[0])
		return vg_fail(err, EINVAL,
			       "%s: is one page of a longer list (metadata.continue); save all of "
			       "it with kubectl get nodes,pods,resourcequotas -A -o json",
			       place);
	if (view_exists(items) && view_is_null(items))
		return 0;
	if (!view_is_list(items))
		return vg_fail(err, EINVAL, "%s: a %s without a list of items", place, kind);
	for (size_t i = 0; i < view_count(items); i++) {
		int r = read_item(saved, view_item(items, i), i, list_kind, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int read_document(struct saved *saved, struct view document, const char *place,
			 struct vg_err *err)
{
	const char *kind = view_text(document, "kind");

	if (view_is_object(document) && vg_ends_with(kind, "List"))
		return read_list(saved, document, kind, place, err);
	if (view_is_object(document) && kind[0])
		return add_view(saved, document, kind_of(kind, view_text(document, "apiVersion")),
				place, err);
	return vg_fail(
		err, EINVAL,
		"%s: no Kubernetes object; wanted is what kubectl get nodes,pods,resourcequotas -A -o json "
		"(or -o yaml) prints",
		place);
}

/* ---- files ---------------------------------------------------------------------------------------- */

static int read_yaml(struct saved *saved, const char *text, size_t size, struct vg_err *err)
{
	struct vg_yaml **documents;
	size_t count;
	bool found = false;
	int r;

	if (size > VG_LIMIT_YAML_BYTES)
		return vg_fail(err, EFBIG,
			       "%s: YAML of more than %u bytes; save it with -o json instead",
			       saved->name, VG_LIMIT_YAML_BYTES);
	r = vg_yaml_parse(saved->name, text, size, &saved->arena, &documents, &count, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < count; i++) {
		struct view view = { .yaml = documents[i] };

		/* Templates leave empty documents between "---" lines. */
		if (view_is_null(view))
			continue;
		found = true;
		r = read_document(saved, view, place_of(saved, view, 0), err);
		if (r < 0)
			return r;
	}
	if (!found)
		return vg_fail(err, EINVAL, "%s: is empty", saved->name);
	return 0;
}

static size_t skip_blanks(const char *text, size_t size, size_t at, unsigned *line)
{
	for (; at < size && strchr(" \t\r\n", text[at]) && text[at]; at++)
		*line += text[at] == '\n';
	return at;
}

/* Several documents may follow each other, as when the output of two commands was put into one file. */
static int read_json(struct saved *saved, const char *text, size_t size, struct vg_err *err)
{
	unsigned line = 1;
	size_t at = skip_blanks(text, size, 0, &line);

	while (at < size) {
		size_t count = saved->document_count;
		unsigned first_line = line;
		json_error_t error;
		json_t *document;
		int r;

		document = json_loadb(text + at, size - at,
				      JSON_REJECT_DUPLICATES | JSON_DISABLE_EOF_CHECK, &error);
		if (!document)
			return vg_fail(err, EINVAL, "%s:%u: %s", saved->name,
				       line + (unsigned)(error.line > 0 ? error.line - 1 : 0),
				       error.text);
		saved->documents = vg_grow(saved->documents, count + 1, sizeof(document));
		saved->documents[saved->document_count++] = document;
		r = read_document(saved, (struct view){ .json = document },
				  vg_arena_printf(&saved->arena, "%s:%u", saved->name, first_line),
				  err);
		if (r < 0)
			return r;
		for (int i = 0; i < error.position; i++)
			line += text[at + (size_t)i] == '\n';
		at = skip_blanks(text, size, at + (size_t)error.position, &line);
	}
	return 0;
}

int saved_read(const char *name, const char *text, size_t size, struct saved *ret_saved,
	       struct vg_err *err)
{
	struct saved saved = { .name = name };
	unsigned line = 1;
	size_t first = skip_blanks(text, size, 0, &line);
	int r;

	vg_arena_init(&saved.arena);
	if (first < size && text[first] == '{')
		r = read_json(&saved, text, size, err);
	else
		r = read_yaml(&saved, text, size, err);
	if (r < 0) {
		saved_release(&saved);
		return r;
	}
	*ret_saved = saved;
	return 0;
}

void saved_release(struct saved *saved)
{
	if (!saved)
		return;
	for (size_t i = 0; i < saved->document_count; i++)
		json_decref(saved->documents[i]);
	free(saved->documents);
	free(saved->objects);
	vg_arena_release(&saved->arena);
	*saved = (struct saved){ 0 };
}

json_t *saved_json(const struct saved_object *object)
{
	return object->yaml ? vg_yaml_to_json(object->yaml) : json_incref(object->json);
}
