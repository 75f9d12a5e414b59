/* SPDX-License-Identifier: Apache-2.0 */
/* The table of keys, and what an unknown one was meant to be. */
#include "config/config_internal.h"

#include <stdbool.h>
#include <string.h>

#include "base/limits.h"
#include "base/str.h"
#include "device/class.h"

/* Longer keys are not compared; none of ours comes near. */
#define KEY_MAX 64

#define MEMBER(name) (((const struct vg_class *)0)->name)

#define NONE
#define WORDS(text)           .words = (text),
#define IN(name)              .inside = CONFIG_BLOCK_##name, .list_items = CONFIG_BLOCK_##name,
#define IN_OR(name, of_items) .inside = CONFIG_BLOCK_##name, .list_items = CONFIG_BLOCK_##of_items,

#define CLASS(member)                                                                              \
	.use = CONFIG_USE_CLASS, .offset = offsetof(struct vg_class, member),                      \
	.store = _Generic(MEMBER(member), char * : CONFIG_STORE_TEXT, int32_t : CONFIG_STORE_INT32, \
			  bool : CONFIG_STORE_BOOL)
#define AGENT  .use = CONFIG_USE_AGENT
#define VENDOR .use = CONFIG_USE_VENDOR
#define INSIDE .use = CONFIG_USE_INSIDE
#define GONE   .use = CONFIG_USE_GONE

const struct config_row config_rows[] = {
#define BLOCK(name, text)
#define ROW(in_block, name, kind, of, low, high, start, uses, text)                                \
	{ .block = CONFIG_BLOCK_##in_block,                                                        \
	  .key = #name,                                                                            \
	  .type = CONFIG_##kind,                                                                   \
	  of.min = (low),                                                                          \
	  .max = (high),                                                                           \
	  .initial = (start),                                                                      \
	  uses,                                                                                    \
	  .help = (text) },
#include "config/config_keys.def"
#undef BLOCK
#undef ROW
};

const size_t config_row_count = sizeof(config_rows) / sizeof(config_rows[0]);

const struct config_row *config_row_find(enum config_block block, const char *key)
{
	for (size_t i = 0; i < config_row_count; i++)
		if (config_rows[i].block == block && strcmp(config_rows[i].key, key) == 0)
			return &config_rows[i];
	return NULL;
}

const struct config_row *config_row_of_block(enum config_block block)
{
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		bool is_map = row->type == CONFIG_MAP || row->type == CONFIG_MAP_OR_LIST;
		bool is_list = row->type == CONFIG_LIST || row->type == CONFIG_MAP_OR_LIST;

		if ((is_map && row->inside == block) || (is_list && row->list_items == block))
			return row;
	}
	return NULL;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

static unsigned smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;

	return least < c ? least : c;
}

/*
 * Edits between two keys: a letter more, less, another one, or two neighbours exchanged; the case of
 * letters does not count.
 */
static unsigned distance(const char *a, const char *b)
{
	unsigned rows[3][KEY_MAX + 1];
	unsigned *before = rows[0];
	unsigned *last = rows[1];
	unsigned *now = rows[2];
	size_t a_size = strlen(a);
	size_t b_size = strlen(b);

	if (a_size > KEY_MAX || b_size > KEY_MAX)
		return KEY_MAX;
	for (size_t j = 0; j <= b_size; j++)
		last[j] = (unsigned)j;
	for (size_t i = 1; i <= a_size; i++) {
		unsigned *spare = before;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= b_size; j++) {
			char x = lower(a[i - 1]);
			char y = lower(b[j - 1]);

			now[j] = smallest(last[j] + 1, now[j - 1] + 1, last[j - 1] + (x != y));
			if (i > 1 && j > 1 && x == lower(b[j - 2]) && lower(a[i - 2]) == y &&
			    before[j - 2] + 1 < now[j])
				now[j] = before[j - 2] + 1;
		}
		before = last;
		last = now;
		now = spare;
	}
	return last[b_size];
}

const struct config_row *config_row_guess(enum config_block block, const char *key)
{
	const struct config_row *nearest = NULL;
	unsigned nearest_distance = 0;

	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		size_t length = strlen(row->key);
		/* A third of the letters, but two in any case: "amb" is near enough to "amd". */
		unsigned limit = length > 6 ? (unsigned)length / 3 : 2;
		unsigned edits;

		if (row->block != block || row->use == CONFIG_USE_GONE)
			continue;
		edits = distance(key, row->key);
		/* What starts alike was cut short: "defaultMem". */
		if (strlen(key) >= 5 && vg_starts_with(row->key, key))
			edits = 1;
		if (edits <= limit && edits < length && (!nearest || edits < nearest_distance)) {
			nearest = row;
			nearest_distance = edits;
		}
	}
	if (nearest)
		return nearest;
	for (size_t i = 0; i < config_row_count; i++)
		if (strcmp(config_rows[i].key, key) == 0)
			return &config_rows[i];
	return NULL;
}
