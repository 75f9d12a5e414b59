/* SPDX-License-Identifier: Apache-2.0 */
/* Applies a JSON patch (RFC 6902: add and replace) as the API server does, strictly: the parent of each
 * path must exist, and what is replaced as well. */
#ifndef VGPU_TESTS_SERVER_JSON_PATCH_H
#define VGPU_TESTS_SERVER_JSON_PATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* The next part of the pointer, unescaped; NULL when it is malformed. */
static inline const char *patch_part(const char *pointer, char part[256])
{
	size_t used = 0;

	if (*pointer++ != '/')
		return NULL;
	while (*pointer && *pointer != '/') {
		char c = *pointer++;

		if (c == '~') {
			if (*pointer != '0' && *pointer != '1')
				return NULL;
			c = *pointer++ == '0' ? '~' : '/';
		}
		if (used >= 255)
			return NULL;
		part[used++] = c;
	}
	part[used] = '\0';
	return pointer;
}

static inline json_t *patch_child(json_t *parent, const char *part)
{
	char *end;
	size_t index;

	if (json_is_object(parent))
		return json_object_get(parent, part);
	index = strtoul(part, &end, 10);
	return *end || end == part ? NULL : json_array_get(parent, index);
}

static inline bool patch_put(json_t *parent, const char *part, bool replace, json_t *value)
{
	char *end;
	size_t index;

	if (replace && !patch_child(parent, part))
		return false;
	if (json_is_object(parent))
		return json_object_set(parent, part, value) == 0;
	if (!json_is_array(parent))
		return false;
	if (!replace && strcmp(part, "-") == 0)
		return json_array_append(parent, value) == 0;
	index = strtoul(part, &end, 10);
	if (*end || end == part)
		return false;
	return replace ? json_array_set(parent, index, value) == 0
		       : json_array_insert(parent, index, value) == 0;
}

/* Changes `object`; false when an operation cannot be applied. */
static inline bool patch_apply(json_t *object, const json_t *patch)
{
	json_t *op;
	size_t i;

	if (!json_is_array(patch) || json_array_size(patch) == 0)
		return false;
	json_array_foreach(patch, i, op)
	{
		const char *name = json_string_value(json_object_get(op, "op"));
		const char *pointer = json_string_value(json_object_get(op, "path"));
		json_t *value = json_object_get(op, "value");
		json_t *parent = object;
		char part[256];

		if (!name || !pointer || !value || json_object_size(op) != 3)
			return false;
		for (;;) {
			pointer = patch_part(pointer, part);
			if (!pointer)
				return false;
			if (!*pointer)
				break;
			parent = patch_child(parent, part);
		}
		if (strcmp(name, "add") != 0 && strcmp(name, "replace") != 0)
			return false;
		if (!patch_put(parent, part, name[0] == 'r', value))
			return false;
	}
	return true;
}

/* New text, NUL-terminated; NULL when it is no base64. */
static inline char *patch_base64(const char *text)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t size = strlen(text);
	char *bytes = calloc(1, size + 1);
	size_t used = 0;
	bool good = bytes && size % 4 == 0;

	for (size_t at = 0; good && at < size; at += 4) {
		unsigned group = 0;
		int pad = 0;

		for (size_t i = 0; i < 4; i++) {
			const char *digit = text[at + i] ? strchr(digits, text[at + i]) : NULL;

			if (text[at + i] == '=')
				pad++;
			else if (!digit || pad)
				good = false;
			group = group << 6 | (digit ? (unsigned)(digit - digits) : 0);
		}
		good = good && pad <= 2 && (!pad || at + 4 == size);
		for (int i = 0; i < 3 - pad; i++)
			bytes[used++] = (char)(group >> (16 - 8 * i));
	}
	if (good)
		return bytes;
	free(bytes);
	return NULL;
}

#endif
