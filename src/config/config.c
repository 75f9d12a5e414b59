/* SPDX-License-Identifier: Apache-2.0 */
/* Walks the tree of the file along the table of keys, and tells about everything that does not fit. */
#include "config/config.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/str.h"
#include "config/config_internal.h"
#include "yaml/yaml_tree.h"

/* A complaint names keys and values of the file: enough of them to be found. */
#define LINE_MAX_BYTES 1024
#define SHOWN_MAX      64
/* The two halves of a resource name, by the rules of the API server. */
#define PREFIX_MAX     253
#define NAME_MAX_LEN   63

/* Where in the file a value stands; frames of the walk, from the inside out. */
struct place {
	const struct place *outer;
	const char *key; /* NULL: an item of a list */
	size_t index;
};

struct reader {
	const char *name;
	struct vg_class *class;
	vg_config_complaint complaint;
	void *ctx;
	unsigned errors;
	char first[LINE_MAX_BYTES];
};

/* ---- complaints ----------------------------------------------------------------------------------- */

static void add_place(struct vg_buf *line, const struct place *place)
{
	if (!place)
		return;
	add_place(line, place->outer);
	if (!place->key)
		vg_buf_addf(line, "[%zu]", place->index);
	else
		vg_buf_addf(line, "%s%.*s", place->outer ? "." : "", SHOWN_MAX, place->key);
}

static void say(struct reader *reader, bool is_error, const char *line)
{
	if (is_error && reader->errors++ == 0)
		vg_copy(reader->first, sizeof(reader->first), line);
	if (reader->complaint)
		reader->complaint(reader->ctx, is_error, line);
}

__attribute__((format(printf, 5, 0))) static void complain(struct reader *reader, bool is_error,
							   unsigned file_line,
							   const struct place *place,
							   const char *format, va_list args)
{
	vg_cleanup(vg_buf_release) struct vg_buf line;
	char reason[LINE_MAX_BYTES];

	vsnprintf(reason, sizeof(reason), format, args);
	vg_buf_init(&line, 4 * LINE_MAX_BYTES);
	vg_buf_addf(&line, "%s:%u: ", reader->name, file_line);
	add_place(&line, place);
	vg_buf_addf(&line, "%s%s", place ? ": " : "", reason);
	say(reader, is_error, line.data ? line.data : reason);
}

__attribute__((format(printf, 4, 5))) static void
wrong(struct reader *reader, unsigned line, const struct place *place, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(reader, true, line, place, format, args);
	va_end(args);
}

__attribute__((format(printf, 4, 5))) static void
odd(struct reader *reader, unsigned line, const struct place *place, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	complain(reader, false, line, place, format, args);
	va_end(args);
}

/* ---- scalars -------------------------------------------------------------------------------------- */

static bool is_null(const struct vg_yaml *value)
{
	return value->kind == VG_YAML_SCALAR && vg_yaml_resolve(value).type == VG_YAML_NULL;
}

static const char *what_it_is(const struct vg_yaml *value)
{
	return value->kind == VG_YAML_MAPPING ? "a block of keys" : "a list";
}

static bool want_scalar(struct reader *reader, const struct vg_yaml *value,
			const struct place *place, const char *wanted)
{
	if (value->kind == VG_YAML_SCALAR)
		return true;
	wrong(reader, value->line, place, "must be %s, is %s", wanted, what_it_is(value));
	return false;
}

static void store_text(struct reader *reader, const struct config_row *row, const char *text)
{
	char **member;

	if (row->store != CONFIG_STORE_TEXT)
		return;
	member = (char **)((char *)reader->class + row->offset);
	free(*member);
	*member = vg_strdup(text);
}

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Letters, digits and some of "-_." with a letter or digit at both ends. */
static bool is_label(struct vg_span text, const char *inner, size_t max)
{
	if (!text.size || text.size > max || !is_alnum(text.data[0]) ||
	    !is_alnum(text.data[text.size - 1]))
		return false;
	for (size_t i = 0; i < text.size; i++)
		if (!is_alnum(text.data[i]) && !strchr(inner, text.data[i]))
			return false;
	return true;
}

/* [dns-subdomain "/"] name */
static bool is_resource_name(const char *text)
{
	struct vg_span rest = VG_SPAN(text);
	struct vg_span prefix;

	vg_cut(&rest, '/', &prefix);
	if (!rest.data)
		return is_label(prefix, "-_.", NAME_MAX_LEN);
	return is_label(prefix, "-.", PREFIX_MAX) && is_label(rest, "-_.", NAME_MAX_LEN);
}

static void read_text(struct reader *reader, const struct config_row *row,
		      const struct vg_yaml *value, const struct place *place)
{
	if (!want_scalar(reader, value, place, "a text"))
		return;
	if (row->type == CONFIG_RESOURCE && value->scalar[0] && !is_resource_name(value->scalar)) {
		wrong(reader, value->line, place,
		      "\"%.*s\" is no resource name; one looks like nvidia.com/gpu", SHOWN_MAX,
		      value->scalar);
		return;
	}
	store_text(reader, row, value->scalar);
}

static void read_choice(struct reader *reader, const struct config_row *row,
			const struct vg_yaml *value, const struct place *place)
{
	vg_cleanup(vg_buf_release) struct vg_buf words = { 0 };
	struct vg_span rest = VG_SPAN(row->words);
	struct vg_span word;

	if (!want_scalar(reader, value, place, "a word"))
		return;
	while (vg_cut(&rest, '|', &word)) {
		if (vg_span_eq(word, value->scalar)) {
			store_text(reader, row, value->scalar);
			return;
		}
	}
	vg_buf_init(&words, LINE_MAX_BYTES);
	rest = VG_SPAN(row->words);
	while (vg_cut(&rest, '|', &word))
		if (word.size)
			vg_buf_addf(&words, "%s%.*s", words.used ? ", " : "", (int)word.size,
				    word.data);
	wrong(reader, value->line, place, "\"%.*s\" is none of %s", SHOWN_MAX, value->scalar,
	      words.data);
}

static void read_bool(struct reader *reader, const struct config_row *row,
		      const struct vg_yaml *value, const struct place *place)
{
	struct vg_yaml_value is;

	if (!want_scalar(reader, value, place, "true or false"))
		return;
	is = vg_yaml_resolve(value);
	if (is.type != VG_YAML_BOOL) {
		wrong(reader, value->line, place, "must be true or false%s, is \"%.*s\"",
		      value->quoted ? " without quotes" : "", SHOWN_MAX, value->scalar);
		return;
	}
	if (row->store == CONFIG_STORE_BOOL)
		*(bool *)((char *)reader->class + row->offset) = is.truth;
}

/* Whether the value is a number of the row's range; says so when not. */
static bool want_number(struct reader *reader, const struct config_row *row, bool whole,
			const struct vg_yaml *value, const struct place *place, double *ret_number)
{
	const char *wanted = whole ? "a whole number" : "a number";
	struct vg_yaml_value is;

	if (!want_scalar(reader, value, place, wanted))
		return false;
	is = vg_yaml_resolve(value);
	if ((is.type != VG_YAML_INT && is.type != VG_YAML_FLOAT) ||
	    (whole && trunc(is.real) != is.real)) {
		wrong(reader, value->line, place, "must be %s%s, is \"%.*s\"", wanted,
		      value->quoted ? " without quotes" : "", SHOWN_MAX, value->scalar);
		return false;
	}
	if (is.real < row->min || is.real > row->max) {
		wrong(reader, value->line, place, "%.*s is outside %.10g to %.10g", SHOWN_MAX,
		      value->scalar, row->min, row->max);
		return false;
	}
	*ret_number = is.real;
	return true;
}

static void read_number(struct reader *reader, const struct config_row *row,
			const struct vg_yaml *value, const struct place *place)
{
	double number;

	if (!want_number(reader, row, row->type != CONFIG_NUMBER, value, place, &number))
		return;
	if (row->store == CONFIG_STORE_INT32)
		*(int32_t *)((char *)reader->class + row->offset) = (int32_t)number;
}

/* ---- lists of scalars ----------------------------------------------------------------------------- */

static void read_numbers(struct reader *reader, const struct config_row *row,
			 const struct vg_yaml *value, const struct place *place)
{
	double ignored;

	if (value->kind != VG_YAML_SEQUENCE) {
		want_number(reader, row, true, value, place, &ignored);
		return;
	}
	for (size_t i = 0; i < value->item_count; i++) {
		struct place item = { .outer = place, .index = i };

		want_number(reader, row, true, value->items[i], &item, &ignored);
	}
}

/* A list of as many items as the row allows; says so when not. */
static bool want_list(struct reader *reader, const struct config_row *row,
		      const struct vg_yaml *value, const struct place *place)
{
	if (value->kind != VG_YAML_SEQUENCE) {
		wrong(reader, value->line, place, "must be a list, is %s",
		      value->kind == VG_YAML_SCALAR ? "one value" : what_it_is(value));
		return false;
	}
	if ((double)value->item_count < row->min) {
		wrong(reader, value->line, place, "must not be empty");
		return false;
	}
	if ((double)value->item_count > row->max) {
		wrong(reader, value->line, place, "has %zu items, more than %.10g",
		      value->item_count, row->max);
		return false;
	}
	return true;
}

/* "1g.10gb": one character or more, "g.", anything. */
static bool is_profile(const char *text)
{
	return text[0] && strstr(text + 1, "g.");
}

static void read_texts(struct reader *reader, const struct config_row *row,
		       const struct vg_yaml *value, const struct place *place)
{
	if (!want_list(reader, row, value, place))
		return;
	for (size_t i = 0; i < value->item_count; i++) {
		const struct vg_yaml *text = value->items[i];
		struct place item = { .outer = place, .index = i };

		if (!want_scalar(reader, text, &item, "a text"))
			continue;
		if (row->type == CONFIG_PROFILES && !is_profile(text->scalar))
			wrong(reader, text->line, &item,
			      "\"%.*s\" is no MIG profile; one looks like 1g.10gb", SHOWN_MAX,
			      text->scalar);
	}
}

/* ---- blocks --------------------------------------------------------------------------------------- */

static void read_block(struct reader *reader, enum config_block block, const struct vg_yaml *tree,
		       const struct place *place);

static void read_map(struct reader *reader, enum config_block block, const struct vg_yaml *value,
		     const struct place *place)
{
	if (value->kind == VG_YAML_MAPPING)
		read_block(reader, block, value, place);
	else
		wrong(reader, value->line, place, "must be a block of keys, is %s",
		      value->kind == VG_YAML_SCALAR ? "one value" : what_it_is(value));
}

static void read_list(struct reader *reader, const struct config_row *row,
		      const struct vg_yaml *value, const struct place *place)
{
	if (!want_list(reader, row, value, place))
		return;
	for (size_t i = 0; i < value->item_count; i++) {
		struct place item = { .outer = place, .index = i };

		read_map(reader, row->list_items, value->items[i], &item);
	}
}

static void read_value(struct reader *reader, const struct config_row *row,
		       const struct vg_yaml *value, const struct place *place)
{
	switch (row->type) {
	case CONFIG_TEXT:
	case CONFIG_RESOURCE:
		read_text(reader, row, value, place);
		return;
	case CONFIG_CHOICE:
		read_choice(reader, row, value, place);
		return;
	case CONFIG_BOOL:
		read_bool(reader, row, value, place);
		return;
	case CONFIG_INT:
	case CONFIG_NUMBER:
		read_number(reader, row, value, place);
		return;
	case CONFIG_INTS:
		read_numbers(reader, row, value, place);
		return;
	case CONFIG_TEXTS:
	case CONFIG_PROFILES:
		read_texts(reader, row, value, place);
		return;
	case CONFIG_MAP:
		read_map(reader, row->inside, value, place);
		return;
	case CONFIG_LIST:
		read_list(reader, row, value, place);
		return;
	case CONFIG_MAP_OR_LIST:
		if (value->kind == VG_YAML_SEQUENCE)
			read_list(reader, row, value, place);
		else
			read_map(reader, row->inside, value, place);
		return;
	case CONFIG_ANY:
		return;
	}
}

static void unknown_key(struct reader *reader, enum config_block block, const struct vg_yaml *key,
			const struct place *place)
{
	const struct config_row *guess = config_row_guess(block, key->scalar);
	const struct config_row *home = guess ? config_row_of_block(guess->block) : NULL;

	if (!guess)
		odd(reader, key->line, place, "unknown key, ignored");
	else if (guess->block == block)
		odd(reader, key->line, place, "unknown key, ignored; did you mean %s?", guess->key);
	else
		odd(reader, key->line, place, "unknown key here, ignored; it belongs %s%s",
		    home ? "under " : "to the top of the file", home ? home->key : "");
}

/* Lists that must not be empty must be there as well. */
static void check_missing(struct reader *reader, enum config_block block,
			  const struct vg_yaml *tree, const struct place *place)
{
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		const struct vg_yaml *value;

		if (row->block != block || row->min < 1 ||
		    (row->type != CONFIG_TEXTS && row->type != CONFIG_PROFILES))
			continue;
		value = vg_yaml_get(tree, row->key);
		if (!value || is_null(value))
			wrong(reader, tree->line, place, "lacks the list \"%s\"", row->key);
	}
}

/* Recursion ends where the table does: blocks do not contain themselves. */
static void read_block(struct reader *reader, enum config_block block, const struct vg_yaml *tree,
		       const struct place *place)
{
	for (size_t i = 0; i < tree->item_count; i += 2) {
		const struct vg_yaml *key = tree->items[i];
		const struct vg_yaml *value = tree->items[i + 1];
		const struct config_row *row = config_row_find(block, key->scalar);
		struct place inner = { .outer = place, .key = key->scalar };

		if (!row)
			unknown_key(reader, block, key, &inner);
		else if (!is_null(value))
			read_value(reader, row, value, &inner);
	}
	check_missing(reader, block, tree, place);
}

/* ---- the whole file ------------------------------------------------------------------------------- */

/* Two meanings under one name would make every request ambiguous. */
static void check_names(struct reader *reader, const struct vg_yaml *nvidia)
{
	struct place outer = { .key = "nvidia" };

	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		const char *name;

		if (row->type != CONFIG_RESOURCE || row->store != CONFIG_STORE_TEXT)
			continue;
		name = *(char **)((char *)reader->class + row->offset);
		for (size_t j = 0; name[0] && j < i; j++) {
			const struct config_row *before = &config_rows[j];
			const struct vg_yaml *value = vg_yaml_get(nvidia, row->key);
			struct place place = { .outer = &outer, .key = row->key };

			if (before->type == CONFIG_RESOURCE && before->store == CONFIG_STORE_TEXT &&
			    vg_streq(name, *(char **)((char *)reader->class + before->offset)))
				wrong(reader, value ? value->line : nvidia->line, &place,
				      "\"%.*s\" is the name of %s already", SHOWN_MAX, name,
				      before->key);
		}
	}
}

static void read_file(struct reader *reader, const struct vg_yaml *tree)
{
	const struct vg_yaml *nvidia;

	if (is_null(tree)) {
		odd(reader, tree->line, NULL, "holds no keys; the defaults count");
		return;
	}
	if (tree->kind != VG_YAML_MAPPING) {
		wrong(reader, tree->line, NULL, "must be a block of keys, is %s",
		      tree->kind == VG_YAML_SCALAR ? "one value" : what_it_is(tree));
		return;
	}
	read_block(reader, CONFIG_BLOCK_file, tree, NULL);
	/* HAMi takes 0 for 1. */
	if (reader->class->mem_factor == 0)
		reader->class->mem_factor = 1;
	nvidia = vg_yaml_get(tree, "nvidia");
	if (nvidia && !reader->errors)
		check_names(reader, nvidia);
}

/* Whoever got the complaints has read them: the error then only counts them. */
static int verdict(const struct reader *reader, struct vg_err *err)
{
	if (!reader->errors)
		return 0;
	if (reader->complaint)
		return vg_fail(err, EINVAL, "%s: %u error%s in the configuration", reader->name,
			       reader->errors, reader->errors == 1 ? "" : "s");
	if (reader->errors == 1)
		return vg_fail(err, EINVAL, "%s", reader->first);
	return vg_fail(err, EINVAL, "%s (and %u more)", reader->first, reader->errors - 1);
}

int vg_config_parse(const char *name, const char *text, size_t size, struct vg_classes *classes,
		    vg_config_complaint complaint, void *ctx, struct vg_err *err)
{
	static const struct vg_yaml nothing = { .kind = VG_YAML_SCALAR, .line = 1, .scalar = "" };
	vg_cleanup(vg_arena_release) struct vg_arena arena;
	struct reader reader = {
		.name = name,
		.class = &classes->item[0],
		.complaint = complaint,
		.ctx = ctx,
	};
	struct vg_yaml **documents;
	struct vg_err problem = { 0 };
	size_t count;

	vg_arena_init(&arena);
	if (vg_yaml_parse(name, text, size, &arena, &documents, &count, &problem) < 0) {
		say(&reader, true, problem.msg);
		return verdict(&reader, err);
	}
	read_file(&reader, count ? documents[0] : &nothing);
	if (count > 1)
		odd(&reader, documents[1]->line, NULL, "a second document begins here, ignored");
	return verdict(&reader, err);
}

int vg_config_load(const char *path, struct vg_classes *classes, vg_config_complaint complaint,
		   void *ctx, struct vg_err *err)
{
	vg_autofree char *text = NULL;
	size_t size;
	int r;

	r = vg_read_file(path, VG_LIMIT_CONFIG_BYTES, &text, &size, err);
	if (r < 0)
		return r;
	return vg_config_parse(path, text, size, classes, complaint, ctx, err);
}
