/* SPDX-License-Identifier: Apache-2.0 */
#include "base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Small, since some owners are many (a pod each); blocks double from here. */
#define BLOCK_MIN ((size_t)1024)
#define ALIGNMENT _Alignof(max_align_t)

struct vg_arena_block {
	struct vg_arena_block *next;
	size_t size; /* bytes behind this header */
	size_t used;
	max_align_t data[];
};

void vg_arena_init(struct vg_arena *arena)
{
	arena->blocks = NULL;
}

void vg_arena_release(struct vg_arena *arena)
{
	if (!arena)
		return;
	while (arena->blocks) {
		struct vg_arena_block *next = arena->blocks->next;

		free(arena->blocks);
		arena->blocks = next;
	}
}

void vg_arena_clear(struct vg_arena *arena)
{
	struct vg_arena_block *largest = NULL;

	while (arena->blocks) {
		struct vg_arena_block *block = arena->blocks;

		arena->blocks = block->next;
		if (!largest || block->size > largest->size) {
			free(largest);
			largest = block;
		} else {
			free(block);
		}
	}
	if (largest) {
		largest->next = NULL;
		largest->used = 0;
	}
	arena->blocks = largest;
}

void *vg_arena_new(struct vg_arena *arena, size_t size)
{
	size_t need = (size + ALIGNMENT - 1) & ~(ALIGNMENT - 1);
	struct vg_arena_block *block = arena->blocks;
	void *memory;

	if (!block || block->size - block->used < need) {
		size_t room = block ? block->size * 2 : BLOCK_MIN;

		if (room < need)
			room = need;
		block = vg_grow(NULL, 1, sizeof(*block) + room);
		block->size = room;
		block->used = 0;
		block->next = arena->blocks;
		arena->blocks = block;
	}
	memory = (char *)block->data + block->used;
	block->used += need;
	return memset(memory, 0, size);
}

void *vg_arena_new_array(struct vg_arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes)) {
		fprintf(stderr, "arena: %zu objects of %zu bytes overflow\n", count, size);
		abort();
	}
	return vg_arena_new(arena, bytes);
}

char *vg_arena_strndup(struct vg_arena *arena, const char *text, size_t length)
{
	char *copy = vg_arena_new(arena, length + 1);

	memcpy(copy, text, length);
	return copy;
}

char *vg_arena_strdup(struct vg_arena *arena, const char *text)
{
	return vg_arena_strndup(arena, text, strlen(text));
}

char *vg_arena_printf(struct vg_arena *arena, const char *format, ...)
{
	va_list args;
	va_list again;
	int length;
	char *text;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	text = vg_arena_new(arena, (size_t)(length > 0 ? length : 0) + 1);
	vsnprintf(text, (size_t)(length > 0 ? length : 0) + 1, format, again);
	va_end(again);
	return text;
}
