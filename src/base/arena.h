/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one request or one decision: taken piece by piece, given back in one place. Clearing an
 * arena keeps its first block, so that a loop that clears it settles at no allocation at all.
 * Not thread-safe: one owner at a time.
 */
#ifndef VGPU_BASE_ARENA_H
#define VGPU_BASE_ARENA_H

#include <stddef.h>

struct vg_arena_block;

struct vg_arena {
	struct vg_arena_block *blocks; /* newest first */
};

void vg_arena_init(struct vg_arena *arena);
void vg_arena_release(struct vg_arena *arena);
/* Gives everything back but the largest block, which stays for the next round. */
void vg_arena_clear(struct vg_arena *arena);

/* Zeroed, aligned for any object, never NULL. Lives until the arena is cleared or released. */
void *vg_arena_new(struct vg_arena *arena, size_t size) __attribute__((returns_nonnull));
void *vg_arena_new_array(struct vg_arena *arena, size_t count, size_t size)
	__attribute__((returns_nonnull));
char *vg_arena_strdup(struct vg_arena *arena, const char *text) __attribute__((returns_nonnull));
char *vg_arena_strndup(struct vg_arena *arena, const char *text, size_t length)
	__attribute__((returns_nonnull));
char *vg_arena_printf(struct vg_arena *arena, const char *format, ...)
	__attribute__((format(printf, 2, 3), returns_nonnull));

#endif
