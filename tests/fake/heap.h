/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory of a pool: one stretch of addresses, in which physical memory comes and goes in chunks.
 * Blocks lie side by side and may span chunks; a chunk that no block touches can be given back. (A real
 * pool shows it: four allocations of 32 MiB and a bit reserve five chunks of 32 MiB, not eight.)
 */
#ifndef FAKE_HEAP_H
#define FAKE_HEAP_H

#include <stdbool.h>
#include <stdint.h>

struct fake_heap_block {
	uint64_t offset, bytes;
	bool used;
	struct fake_heap_block *next, *previous; /* by address */
};

struct fake_heap {
	/* Takes or gives back physical memory; false: there is none. */
	bool (*take)(void *context, uint64_t bytes);
	void (*give)(void *context, uint64_t bytes);
	void *context;
	uint64_t chunk_bytes;
	uint64_t room_bytes;  /* of addresses, a multiple of chunk_bytes */
	uint64_t limit_bytes; /* of physical memory; 0: none */

	unsigned char *data; /* mapped at the first use */
	struct fake_heap_block *blocks;
	uint64_t *chunk_used; /* bytes of blocks in each chunk */
	bool *chunk_present;
	uint64_t reserved_bytes, reserved_high;
	uint64_t used_bytes, used_high;
};

/* NULL when there is no memory. Sizes are rounded up to 512 bytes. */
struct fake_heap_block *fake_heap_take(struct fake_heap *heap, uint64_t bytes);
void fake_heap_give(struct fake_heap *heap, struct fake_heap_block *block);
/* Gives unused chunks back, from the top, until at most `keep_bytes` are reserved. */
void fake_heap_trim(struct fake_heap *heap, uint64_t keep_bytes);
/* Gives everything back; blocks that are still out are gone. */
void fake_heap_release(struct fake_heap *heap);
void *fake_heap_address(const struct fake_heap *heap, const struct fake_heap_block *block);

#endif
