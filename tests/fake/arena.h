/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that is handed out in pieces: the small allocations and arrays of a context. An arena
 * takes segments of physical memory from the unit and cuts blocks from them, first fit; a block lies
 * in one segment. (A real card shows it: allocations of 600,000 bytes take a page for every three.)
 */
#ifndef FAKE_ARENA_H
#define FAKE_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fake_segment;

struct fake_block {
	struct fake_segment *segment;
	uint64_t offset, bytes;
	bool used;
	struct fake_block *next, *previous; /* in the segment, by address */
};

struct fake_arena {
	/* Takes or gives back physical memory; false: there is none. */
	bool (*take)(void *context, uint64_t bytes);
	void (*give)(void *context, uint64_t bytes);
	void *context;
	uint64_t segment_bytes; /* a segment is a multiple of this */
	uint64_t limit_bytes;   /* of all segments together; 0: none */
	struct fake_segment *segments;
	uint64_t reserved_bytes; /* in segments */
	uint64_t used_bytes;     /* in blocks */
	uint64_t reserved_high, used_high;
};

#define FAKE_BLOCK_BYTES 512u /* sizes are rounded up to this, addresses are multiples of it */

/* NULL when there is no memory. */
struct fake_block *fake_arena_take(struct fake_arena *arena, uint64_t bytes);
void fake_arena_give(struct fake_arena *arena, struct fake_block *block);
/* Gives unused segments back until at most `keep_bytes` are reserved. */
void fake_arena_trim(struct fake_arena *arena, uint64_t keep_bytes);
/* Gives everything back; blocks that are still out are gone. */
void fake_arena_release(struct fake_arena *arena);
void *fake_block_address(const struct fake_block *block);
/* The segment that the block is in, and where to keep the descriptor + 1 of a file that its pages have
 * moved to; the arena closes it. */
unsigned char *fake_block_segment(const struct fake_block *block, uint64_t *ret_bytes);
int *fake_block_share(const struct fake_block *block);

/* Address space aligned to 2 MiB that costs memory only where it is touched; NULL when there is none.
 * fake_unmap() takes what fake_map() returned. */
void *fake_map(uint64_t bytes);
void fake_unmap(void *address, uint64_t bytes);

#endif
