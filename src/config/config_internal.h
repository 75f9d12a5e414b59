/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of config_keys.def as a table. */
#ifndef VGPU_CONFIG_CONFIG_INTERNAL_H
#define VGPU_CONFIG_CONFIG_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

enum config_block {
#define BLOCK(name, help) CONFIG_BLOCK_##name,
#define ROW(block, key, type, of, min, max, initial, use, help)
#include "config/config_keys.def"
#undef BLOCK
#undef ROW
	CONFIG_BLOCK_COUNT,
};

enum config_type {
	CONFIG_TEXT,
	CONFIG_RESOURCE,
	CONFIG_CHOICE,
	CONFIG_BOOL,
	CONFIG_INT,
	CONFIG_NUMBER,
	CONFIG_INTS,
	CONFIG_TEXTS,
	CONFIG_PROFILES,
	CONFIG_ANY,
	CONFIG_MAP,
	CONFIG_LIST,
	CONFIG_MAP_OR_LIST,
};

enum config_use {
	CONFIG_USE_CLASS,
	CONFIG_USE_AGENT,
	CONFIG_USE_VENDOR,
	CONFIG_USE_INSIDE,
	CONFIG_USE_GONE,
};

/* The type of the member of struct vg_class that a row fills. */
enum config_store {
	CONFIG_STORE_NONE,
	CONFIG_STORE_TEXT,
	CONFIG_STORE_INT32,
	CONFIG_STORE_BOOL,
};

struct config_row {
	enum config_block block;
	const char *key;
	enum config_type type;
	const char *words;            /* CHOICE: "a|b|"; an empty piece allows the empty text */
	enum config_block inside;     /* MAP, LIST */
	enum config_block list_items; /* LIST, MAP_OR_LIST */
	double min;
	double max;
	const char *initial;
	enum config_use use;
	enum config_store store;
	size_t offset; /* in struct vg_class */
	const char *help;
};

extern const struct config_row config_rows[];
extern const size_t config_row_count;

/* NULL when the block has no such key. */
const struct config_row *config_row_find(enum config_block block, const char *key);
/*
 * The row that whoever wrote an unknown key most likely meant: one of the same block that is spelt alike,
 * or the same key in another block. NULL when nothing comes near.
 */
const struct config_row *config_row_guess(enum config_block block, const char *key);
/* The row by which the file gets to a block ("nvidia"), or NULL for the file itself. */
const struct config_row *config_row_of_block(enum config_block block);

#endif
