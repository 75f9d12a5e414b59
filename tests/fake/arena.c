/* SPDX-License-Identifier: Apache-2.0 */
#include "arena.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

#define ALIGNMENT (2ull << 20)

struct fake_segment {
	unsigned char *data;
	uint64_t bytes, used_bytes;
	uint64_t largest; /* no free block is larger; may be too high */
	struct fake_block *first;
	int share;
	struct fake_segment *next;
};

void *fake_map(uint64_t bytes)
{
	/* Over-mapped, and aligned by cutting off both ends. */
	uint64_t room = bytes + ALIGNMENT;
	unsigned char *data, *aligned;

	if (bytes > UINT64_MAX / 2)
		return NULL;
	data = mmap(NULL, room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
		    -1, 0);
	if (data == MAP_FAILED)
		return NULL;
	aligned = data + (ALIGNMENT - (uintptr_t)data % ALIGNMENT) % ALIGNMENT;
	if (aligned != data)
		munmap(data, (size_t)(aligned - data));
	munmap(aligned + bytes, (size_t)(data + room - (aligned + bytes)));
	return aligned;
}

void fake_unmap(void *address, uint64_t bytes)
{
	munmap(address, bytes);
}

void *fake_block_address(const struct fake_block *block)
{
	return block->segment->data + block->offset;
}

unsigned char *fake_block_segment(const struct fake_block *block, uint64_t *ret_bytes)
{
	*ret_bytes = block->segment->bytes;
	return block->segment->data;
}

int *fake_block_share(const struct fake_block *block)
{
	return &block->segment->share;
}

static struct fake_block *cut(struct fake_arena *arena, struct fake_block *block, uint64_t bytes)
{
	struct fake_segment *segment = block->segment;

	if (block->bytes > bytes) {
		struct fake_block *rest = vg_new(sizeof(*rest));

		*rest = (struct fake_block){
			.segment = segment,
			.offset = block->offset + bytes,
			.bytes = block->bytes - bytes,
			.next = block->next,
			.previous = block,
		};
		if (rest->next)
			rest->next->previous = rest;
		block->next = rest;
		block->bytes = bytes;
	}
	block->used = true;
	segment->used_bytes += bytes;
	arena->used_bytes += bytes;
	if (arena->used_bytes > arena->used_high)
		arena->used_high = arena->used_bytes;
	return block;
}

static struct fake_block *find(struct fake_arena *arena, uint64_t bytes)
{
	for (struct fake_segment *segment = arena->segments; segment; segment = segment->next) {
		uint64_t largest = 0;

		if (segment->largest < bytes)
			continue;
		for (struct fake_block *block = segment->first; block; block = block->next) {
			if (block->used)
				continue;
			if (block->bytes >= bytes)
				return block;
			if (block->bytes > largest)
				largest = block->bytes;
		}
		segment->largest = largest;
	}
	return NULL;
}

static struct fake_segment *grow(struct fake_arena *arena, uint64_t bytes)
{
	struct fake_segment *segment;
	void *data;

	bytes = (bytes + arena->segment_bytes - 1) / arena->segment_bytes * arena->segment_bytes;
	if (arena->limit_bytes && arena->reserved_bytes + bytes > arena->limit_bytes)
		return NULL;
	if (!arena->take(arena->context, bytes))
		return NULL;
	data = fake_map(bytes);
	if (!data) {
		arena->give(arena->context, bytes);
		return NULL;
	}
	segment = vg_new(sizeof(*segment));
	segment->data = data;
	segment->bytes = segment->largest = bytes;
	segment->first = vg_new(sizeof(*segment->first));
	*segment->first = (struct fake_block){ .segment = segment, .bytes = bytes };
	segment->next = arena->segments;
	arena->segments = segment;
	arena->reserved_bytes += bytes;
	if (arena->reserved_bytes > arena->reserved_high)
		arena->reserved_high = arena->reserved_bytes;
	return segment;
}

struct fake_block *fake_arena_take(struct fake_arena *arena, uint64_t bytes)
{
	struct fake_block *block;

	if (bytes > UINT64_MAX / 4)
		return NULL;
	bytes = (bytes + FAKE_BLOCK_BYTES - 1) / FAKE_BLOCK_BYTES * FAKE_BLOCK_BYTES;
	block = find(arena, bytes);
	if (!block) {
		struct fake_segment *segment = grow(arena, bytes);

		if (!segment)
			return NULL;
		block = segment->first;
	}
	return cut(arena, block, bytes);
}

/* Joins `block` with the free one behind it. */
static void join(struct fake_block *block)
{
	struct fake_block *next = block->next;

	if (!next || next->used)
		return;
	block->bytes += next->bytes;
	block->next = next->next;
	if (block->next)
		block->next->previous = block;
	free(next);
}

void fake_arena_give(struct fake_arena *arena, struct fake_block *block)
{
	struct fake_segment *segment = block->segment;

	block->used = false;
	segment->used_bytes -= block->bytes;
	arena->used_bytes -= block->bytes;
	join(block);
	if (block->previous && !block->previous->used) {
		block = block->previous;
		join(block);
	}
	if (block->bytes > segment->largest)
		segment->largest = block->bytes;
}

static void segment_free(struct fake_arena *arena, struct fake_segment *segment)
{
	arena->reserved_bytes -= segment->bytes;
	arena->used_bytes -= segment->used_bytes;
	arena->give(arena->context, segment->bytes);
	fake_unmap(segment->data, segment->bytes);
	if (segment->share)
		close(segment->share - 1);
	while (segment->first) {
		struct fake_block *next = segment->first->next;

		free(segment->first);
		segment->first = next;
	}
	free(segment);
}

void fake_arena_trim(struct fake_arena *arena, uint64_t keep_bytes)
{
	struct fake_segment **at = &arena->segments;

	while (*at && arena->reserved_bytes > keep_bytes) {
		struct fake_segment *segment = *at;

		if (segment->used_bytes) {
			at = &segment->next;
			continue;
		}
		*at = segment->next;
		segment_free(arena, segment);
	}
}

void fake_arena_release(struct fake_arena *arena)
{
	while (arena->segments) {
		struct fake_segment *next = arena->segments->next;

		segment_free(arena, arena->segments);
		arena->segments = next;
	}
}
