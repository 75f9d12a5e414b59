/* SPDX-License-Identifier: Apache-2.0 */
#include "base/str.h"

#include <string.h>
#include <strings.h>

bool vg_streq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool vg_strcaseeq(const char *a, const char *b)
{
	return a == b || (a && b && strcasecmp(a, b) == 0);
}

bool vg_span_eq(struct vg_span span, const char *text)
{
	return strlen(text) == span.size && (!span.size || memcmp(span.data, text, span.size) == 0);
}

bool vg_span_has(struct vg_span span, char c)
{
	return span.size && memchr(span.data, c, span.size);
}

bool vg_starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

bool vg_ends_with(const char *text, const char *suffix)
{
	size_t length = strlen(text);
	size_t tail = strlen(suffix);

	return length >= tail && memcmp(text + length - tail, suffix, tail) == 0;
}

bool vg_contains_nocase(const char *hay, struct vg_span needle)
{
	size_t length = strlen(hay);

	for (size_t i = 0; i + needle.size <= length; i++)
		if (strncasecmp(hay + i, needle.data, needle.size) == 0)
			return true;
	return false;
}

static bool is_space(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

struct vg_span vg_trim(struct vg_span span)
{
	while (span.size && is_space(span.data[0])) {
		span.data++;
		span.size--;
	}
	while (span.size && is_space(span.data[span.size - 1]))
		span.size--;
	return span;
}

bool vg_cut(struct vg_span *rest, char separator, struct vg_span *ret_piece)
{
	const char *end;

	if (!rest->data)
		return false;
	end = rest->size ? memchr(rest->data, separator, rest->size) : NULL;
	if (!end) {
		*ret_piece = *rest;
		*rest = (struct vg_span){ NULL, 0 };
		return true;
	}
	*ret_piece = (struct vg_span){ rest->data, (size_t)(end - rest->data) };
	rest->size -= ret_piece->size + 1;
	rest->data = end + 1;
	return true;
}

bool vg_copy(char *target, size_t room, const char *text)
{
	size_t length = strlen(text);
	size_t fits = length < room ? length : room - 1;

	memcpy(target, text, fits);
	target[fits] = '\0';
	return fits == length;
}

/* An odd number with no pattern in its bits: the golden ratio's. */
#define HASH_FACTOR 0x9e3779b97f4a7c15ULL

static unsigned long long hash_step(unsigned long long hash, unsigned long long word)
{
	hash = (hash ^ word) * HASH_FACTOR;
	return hash ^ hash >> 29;
}

unsigned long long vg_hash(const char *text, size_t size)
{
	return vg_hash_seeded(text, size, 0);
}

unsigned long long vg_hash_seeded(const char *text, size_t size, unsigned long long seed)
{
	unsigned long long hash = hash_step(seed, size + 1);
	unsigned long long word;

	for (; size >= sizeof(word); size -= sizeof(word), text += sizeof(word)) {
		memcpy(&word, text, sizeof(word));
		hash = hash_step(hash, word);
	}
	word = 0;
	for (size_t i = 0; i < size; i++)
		word |= (unsigned long long)(unsigned char)text[i] << 8 * i;
	return hash_step(hash_step(hash, word), 0);
}
