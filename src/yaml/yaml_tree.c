/* SPDX-License-Identifier: Apache-2.0 */
/*
 * libyaml's events, put together to trees. Nodes that are complete but whose parent is not wait on one
 * stack; a frame per open collection remembers where its own begin.
 */
#include "yaml/yaml_tree.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/cleanup.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

/* Mappings of up to this many keys are searched for duplicates without a table. */
#define SMALL_MAPPING 16

#define TAG_PREFIX "tag:yaml.org,2002:"

/* What a tree costs whoever walks it: aliases count as what they stand for. */
struct weight {
	size_t nodes;
	size_t bytes;    /* of scalars */
	unsigned height; /* 1 for a scalar */
};

struct anchor {
	struct vg_yaml *node; /* NULL while the node is not complete */
	struct weight weight;
};

struct frame {
	struct vg_yaml *node;
	size_t first; /* index in waiting[] of its first item */
	struct weight weight;
	struct anchor *anchor; /* NULL when it has none */
};

struct builder {
	const char *name;
	struct vg_arena *arena;
	struct vg_err *err;
	struct frame frame[VG_LIMIT_YAML_DEPTH];
	unsigned depth;
	struct vg_yaml **waiting;
	size_t waiting_count;
	size_t waiting_room;
	struct vg_yaml **documents;
	size_t document_count;
	size_t document_room;
	size_t document_nodes; /* of documents that are complete */
	size_t document_bytes;
	struct vg_map anchors; /* name -> struct anchor; per document */
};

static unsigned line_of(const yaml_mark_t *mark)
{
	return (unsigned)mark->line + 1;
}

/* Ends the parse with "name:line: …". */
#define fail_at(builder, line, ...)                                                                \
	fail_at_line(builder, line, vg_fail(builder->err, EINVAL, __VA_ARGS__))

static int fail_at_line(struct builder *builder, unsigned line, int code)
{
	return vg_err_wrap(builder->err, code, "%s:%u", builder->name, line);
}

/* ---- limits --------------------------------------------------------------------------------------- */

/*
 * Adds a complete node to what is open (or to the finished documents). The sum over the open frames is not
 * needed: every frame alone may not pass the limits, and what a frame holds goes to its parent at its end.
 */
static int add_weight(struct builder *builder, const struct weight *weight, unsigned line)
{
	struct weight *sum = builder->depth ? &builder->frame[builder->depth - 1].weight : NULL;
	size_t *nodes = sum ? &sum->nodes : &builder->document_nodes;
	size_t *bytes = sum ? &sum->bytes : &builder->document_bytes;

	*nodes += weight->nodes;
	*bytes += weight->bytes;
	if (*nodes > VG_LIMIT_YAML_NODES)
		return fail_at(builder, line, "more than %u nodes, aliases counted each time",
			       VG_LIMIT_YAML_NODES);
	if (*bytes > VG_LIMIT_YAML_BYTES)
		return fail_at(builder, line,
			       "more than %u bytes of text, aliases counted each time",
			       VG_LIMIT_YAML_BYTES);
	if (sum && weight->height + 1 > sum->height)
		sum->height = weight->height + 1;
	/* A tree that hangs in `depth` open collections reaches this deep. */
	if (builder->depth + weight->height > VG_LIMIT_YAML_DEPTH)
		return fail_at(builder, line, "nested deeper than %u levels", VG_LIMIT_YAML_DEPTH);
	return 0;
}

static void push_waiting(struct builder *builder, struct vg_yaml *node)
{
	if (builder->waiting_count == builder->waiting_room) {
		builder->waiting_room = builder->waiting_room ? builder->waiting_room * 2 : 256;
		builder->waiting =
			vg_grow(builder->waiting, builder->waiting_room, sizeof(*builder->waiting));
	}
	builder->waiting[builder->waiting_count++] = node;
}

static int add_document(struct builder *builder, struct vg_yaml *tree)
{
	if (builder->document_count == builder->document_room) {
		builder->document_room = builder->document_room ? builder->document_room * 2 : 4;
		builder->documents = vg_grow(builder->documents, builder->document_room,
					     sizeof(*builder->documents));
	}
	builder->documents[builder->document_count++] = tree;
	return 0;
}

/* A node is complete: it becomes an item of the open collection, or a document. */
static int add_node(struct builder *builder, struct vg_yaml *node, const struct weight *weight,
		    unsigned line)
{
	int r = add_weight(builder, weight, line);

	if (r < 0)
		return r;
	if (!builder->depth)
		return add_document(builder, node);
	push_waiting(builder, node);
	return 0;
}

/* ---- anchors -------------------------------------------------------------------------------------- */

static struct anchor *define_anchor(struct builder *builder, const yaml_char_t *name)
{
	struct anchor *anchor;

	if (!name)
		return NULL;
	anchor = vg_arena_new(builder->arena, sizeof(*anchor));
	vg_map_put(&builder->anchors, vg_arena_strdup(builder->arena, (const char *)name), anchor);
	return anchor;
}

static int on_alias(struct builder *builder, const yaml_event_t *event)
{
	const char *name = (const char *)event->data.alias.anchor;
	unsigned line = line_of(&event->start_mark);
	const struct anchor *anchor = vg_map_get(&builder->anchors, name);

	if (!anchor)
		return fail_at(builder, line, "alias *%s: no anchor of that name stands before it",
			       name);
	if (!anchor->node)
		return fail_at(builder, line, "alias *%s stands inside the node that it names",
			       name);
	return add_node(builder, anchor->node, &anchor->weight, line);
}

/* ---- nodes ---------------------------------------------------------------------------------------- */

static int check_tag(struct builder *builder, const yaml_char_t *tag, unsigned line,
		     const char *const *known, bool *ret_is_string)
{
	const char *name = (const char *)tag;

	*ret_is_string = false;
	if (!name)
		return 0;
	if (vg_starts_with(name, TAG_PREFIX)) {
		const char *word = name + strlen(TAG_PREFIX);

		for (; *known; known++) {
			if (strcmp(word, *known) == 0) {
				*ret_is_string = strcmp(word, "str") == 0;
				return 0;
			}
		}
	}
	/* The non-specific tag: "take it as the plainest of its kind". */
	if (strcmp(name, "!") == 0) {
		*ret_is_string = true;
		return 0;
	}
	return fail_at(builder, line, "tag %s is not supported here; write the value without it",
		       name);
}

static int on_scalar(struct builder *builder, const yaml_event_t *event)
{
	static const char *const tags[] = { "str",  "int",       "float", "bool",
					    "null", "timestamp", "merge", NULL };
	const char *value = (const char *)event->data.scalar.value;
	size_t size = event->data.scalar.length;
	struct weight weight = { .nodes = 1, .bytes = size, .height = 1 };
	unsigned line = line_of(&event->start_mark);
	struct vg_yaml *node;
	struct anchor *anchor;
	bool is_string;
	int r;

	r = check_tag(builder, event->data.scalar.tag, line, tags, &is_string);
	if (r < 0)
		return r;
	if (memchr(value, '\0', size))
		return fail_at(builder, line, "a text holds a NUL byte");
	node = vg_arena_new(builder->arena, sizeof(*node));
	node->kind = VG_YAML_SCALAR;
	node->line = line;
	node->scalar = vg_arena_strndup(builder->arena, value, size);
	node->quoted = is_string || (!event->data.scalar.tag &&
				     event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE);
	anchor = define_anchor(builder, event->data.scalar.anchor);
	if (anchor)
		*anchor = (struct anchor){ .node = node, .weight = weight };
	return add_node(builder, node, &weight, line);
}

static int on_start(struct builder *builder, const yaml_event_t *event, enum vg_yaml_kind kind)
{
	static const char *const sequence_tags[] = { "seq", NULL };
	static const char *const mapping_tags[] = { "map", NULL };
	bool is_mapping = kind == VG_YAML_MAPPING;
	const yaml_char_t *tag =
		is_mapping ? event->data.mapping_start.tag : event->data.sequence_start.tag;
	const yaml_char_t *anchor =
		is_mapping ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
	unsigned line = line_of(&event->start_mark);
	struct frame *frame;
	bool ignored;
	int r;

	r = check_tag(builder, tag, line, is_mapping ? mapping_tags : sequence_tags, &ignored);
	if (r < 0)
		return r;
	if (builder->depth == VG_LIMIT_YAML_DEPTH)
		return fail_at(builder, line, "nested deeper than %u levels", VG_LIMIT_YAML_DEPTH);
	frame = &builder->frame[builder->depth++];
	*frame = (struct frame){
		.node = vg_arena_new(builder->arena, sizeof(*frame->node)),
		.first = builder->waiting_count,
		.weight = { .nodes = 1, .height = 1 },
		.anchor = define_anchor(builder, anchor),
	};
	frame->node->kind = kind;
	frame->node->line = line;
	return 0;
}

/* ---- mappings ------------------------------------------------------------------------------------- */

/* The keys of one mapping: few are compared one by one, many through a table. */
struct keys {
	struct vg_yaml *const *items;
	size_t count; /* of items: key, value, … */
	struct vg_map table;
	bool use_table;
};

static void keys_release(struct keys *keys)
{
	vg_map_release(&keys->table);
}

static void keys_init(struct keys *keys, struct vg_yaml *const *items, size_t room)
{
	*keys = (struct keys){ .items = items, .use_table = room > SMALL_MAPPING * 2 };
	vg_map_init(&keys->table);
}

static const struct vg_yaml *keys_find(const struct keys *keys, const char *key)
{
	if (keys->use_table)
		return vg_map_get(&keys->table, key);
	for (size_t i = 0; i < keys->count; i += 2)
		if (strcmp(keys->items[i]->scalar, key) == 0)
			return keys->items[i];
	return NULL;
}

static void keys_add(struct keys *keys, struct vg_yaml *key)
{
	keys->count += 2;
	if (keys->use_table)
		vg_map_put(&keys->table, key->scalar, key);
}

static bool is_merge_key(const struct vg_yaml *key)
{
	return key->kind == VG_YAML_SCALAR && !key->quoted && strcmp(key->scalar, "<<") == 0;
}

/* How many items a merge may add at most; checks that its value can be merged. */
static int merge_room(struct builder *builder, const struct vg_yaml *value, unsigned line,
		      size_t *room)
{
	if (value->kind == VG_YAML_MAPPING) {
		*room += value->item_count;
		return 0;
	}
	if (value->kind == VG_YAML_SEQUENCE) {
		for (size_t i = 0; i < value->item_count; i++) {
			if (value->items[i]->kind != VG_YAML_MAPPING)
				return fail_at(builder, line,
					       "\"<<\" merges mappings only, item %zu is none", i);
			*room += value->items[i]->item_count;
		}
		return 0;
	}
	return fail_at(builder, line,
		       "\"<<\" wants a mapping or a list of mappings, as in <<: *name");
}

static void merge_one(struct vg_yaml *node, struct keys *keys, const struct vg_yaml *from)
{
	for (size_t i = 0; i < from->item_count; i += 2) {
		if (keys_find(keys, from->items[i]->scalar))
			continue;
		node->items[node->item_count++] = from->items[i];
		node->items[node->item_count++] = from->items[i + 1];
		keys_add(keys, from->items[i]);
	}
}

/* Fills a mapping from `count` waiting items; merged entries come behind its own. */
static int fill_mapping(struct builder *builder, struct vg_yaml *node, struct vg_yaml **items,
			size_t count)
{
	vg_cleanup(keys_release) struct keys keys = { 0 };
	const struct vg_yaml *merge = NULL;
	size_t room = count;
	int r;

	for (size_t i = 0; i < count; i += 2) {
		if (items[i]->kind != VG_YAML_SCALAR)
			return fail_at(builder, items[i]->line,
				       "a list or mapping cannot be a key");
		if (!is_merge_key(items[i]))
			continue;
		if (merge)
			return fail_at(builder, items[i]->line,
				       "\"<<\" is given twice; merge a list instead: <<: [*a, *b]");
		merge = items[i + 1];
		r = merge_room(builder, merge, items[i]->line, &room);
		if (r < 0)
			return r;
	}
	node->items = vg_arena_new_array(builder->arena, room, sizeof(struct vg_yaml *));
	keys_init(&keys, node->items, room);
	for (size_t i = 0; i < count; i += 2) {
		const struct vg_yaml *first;

		if (is_merge_key(items[i]))
			continue;
		first = keys_find(&keys, items[i]->scalar);
		if (first)
			return fail_at(builder, items[i]->line,
				       "key \"%s\" is given twice, first on line %u",
				       items[i]->scalar, first->line);
		node->items[node->item_count++] = items[i];
		node->items[node->item_count++] = items[i + 1];
		keys_add(&keys, items[i]);
	}
	if (merge && merge->kind == VG_YAML_MAPPING)
		merge_one(node, &keys, merge);
	if (merge && merge->kind == VG_YAML_SEQUENCE)
		for (size_t i = 0; i < merge->item_count; i++)
			merge_one(node, &keys, merge->items[i]);
	return 0;
}

static int on_end(struct builder *builder)
{
	struct frame *frame;
	struct vg_yaml **items;
	struct vg_yaml *node;
	struct weight weight;
	size_t count;
	int r;

	assert(builder->depth); /* libyaml pairs its events */
	frame = &builder->frame[builder->depth - 1];
	node = frame->node;
	weight = frame->weight;
	count = builder->waiting_count - frame->first;
	/* There may be no stack yet when nothing waits on it. */
	items = count ? builder->waiting + frame->first : NULL;
	if (node->kind == VG_YAML_MAPPING) {
		r = fill_mapping(builder, node, items, count);
		if (r < 0)
			return r;
	} else {
		node->items = vg_arena_new_array(builder->arena, count, sizeof(struct vg_yaml *));
		node->item_count = count;
		if (count)
			memcpy(node->items, items, count * sizeof(struct vg_yaml *));
	}
	builder->waiting_count = frame->first;
	if (frame->anchor)
		*frame->anchor = (struct anchor){ .node = node, .weight = weight };
	builder->depth--;
	return add_node(builder, node, &weight, node->line);
}

/* ---- the parse ------------------------------------------------------------------------------------ */

static int on_event(struct builder *builder, const yaml_event_t *event)
{
	switch (event->type) {
	case YAML_DOCUMENT_START_EVENT:
		vg_map_release(&builder->anchors);
		vg_map_init(&builder->anchors);
		return 0;
	case YAML_ALIAS_EVENT:
		return on_alias(builder, event);
	case YAML_SCALAR_EVENT:
		return on_scalar(builder, event);
	case YAML_SEQUENCE_START_EVENT:
		return on_start(builder, event, VG_YAML_SEQUENCE);
	case YAML_MAPPING_START_EVENT:
		return on_start(builder, event, VG_YAML_MAPPING);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT:
		return on_end(builder);
	default:
		return 0;
	}
}

static int parser_failed(struct builder *builder, const yaml_parser_t *parser, const char *text,
			 size_t size)
{
	const char *problem = parser->problem ? parser->problem : "cannot be read";
	unsigned line = line_of(&parser->problem_mark);

	if (parser->error == YAML_MEMORY_ERROR)
		return vg_fail(builder->err, ENOMEM, "%s: no memory to parse it", builder->name);
	if (parser->error == YAML_READER_ERROR) {
		/* The reader knows the byte, not the line. */
		line = 1;
		for (size_t i = 0; i < size && i < parser->problem_offset; i++)
			if (text[i] == '\n')
				line++;
		return fail_at(builder, line, "is not UTF-8 text: %s", problem);
	}
	if (parser->context)
		return fail_at(builder, line, "%s, %s (begun on line %u)", problem, parser->context,
			       line_of(&parser->context_mark));
	return fail_at(builder, line, "%s", problem);
}

static int build(struct builder *builder, const char *text, size_t size)
{
	vg_cleanup(yaml_parser_delete) yaml_parser_t parser;
	bool more = true;

	if (!yaml_parser_initialize(&parser))
		return vg_fail(builder->err, ENOMEM, "%s: no memory to parse it", builder->name);
	yaml_parser_set_input_string(&parser, (const unsigned char *)text, size);
	while (more) {
		yaml_event_t event;
		int r;

		if (!yaml_parser_parse(&parser, &event))
			return parser_failed(builder, &parser, text, size);
		r = on_event(builder, &event);
		more = event.type != YAML_STREAM_END_EVENT;
		yaml_event_delete(&event);
		if (r < 0)
			return r;
	}
	return 0;
}

static void builder_release(struct builder *builder)
{
	free(builder->waiting);
	free(builder->documents);
	vg_map_release(&builder->anchors);
}

int vg_yaml_parse(const char *name, const char *text, size_t size, struct vg_arena *arena,
		  struct vg_yaml ***ret_documents, size_t *ret_count, struct vg_err *err)
{
	vg_cleanup(builder_release) struct builder builder = { .name = name,
							       .arena = arena,
							       .err = err };
	struct vg_yaml **documents;
	int r;

	if (size > VG_LIMIT_YAML_BYTES)
		return vg_fail(err, EFBIG, "%s: is larger than %u bytes", name,
			       VG_LIMIT_YAML_BYTES);
	r = build(&builder, text, size);
	if (r < 0)
		return r;
	documents = vg_arena_new_array(arena, builder.document_count, sizeof(struct vg_yaml *));
	if (builder.document_count)
		memcpy(documents, builder.documents,
		       builder.document_count * sizeof(struct vg_yaml *));
	*ret_documents = documents;
	*ret_count = builder.document_count;
	return 0;
}

int vg_yaml_parse_file(const char *path, struct vg_arena *arena, struct vg_yaml ***ret_documents,
		       size_t *ret_count, struct vg_err *err)
{
	vg_autofree char *text = NULL;
	size_t size;
	int r;

	r = vg_read_file(path, VG_LIMIT_YAML_BYTES, &text, &size, err);
	if (r < 0)
		return r;
	return vg_yaml_parse(path, text, size, arena, ret_documents, ret_count, err);
}

struct vg_yaml *vg_yaml_get(const struct vg_yaml *mapping, const char *key)
{
	if (!mapping || mapping->kind != VG_YAML_MAPPING)
		return NULL;
	for (size_t i = 0; i < mapping->item_count; i += 2)
		if (strcmp(mapping->items[i]->scalar, key) == 0)
			return mapping->items[i + 1];
	return NULL;
}
