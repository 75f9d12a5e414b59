/* SPDX-License-Identifier: Apache-2.0 */
#include "heap.h"

#include <stdlib.h>
#include <sys/mman.h>

#include "arena.h"
#include "base/mem.h"

#define BLOCK_BYTES 512u

void *fake_heap_address(const struct fake_heap *heap, const struct fake_heap_block *block)
{
	return heap->data + block->offset;
}

static bool open_heap(struct fake_heap *heap)
{
	uint64_t chunks = heap->room_bytes / heap->chunk_bytes;

	if (heap->data)
		return true;
	heap->data = fake_map(heap->room_bytes);
	if (!heap->data)
		return false;
	heap->chunk_used = vg_new_array(chunks, sizeof(*heap->chunk_used));
	heap->chunk_present = vg_new_array(chunks, sizeof(*heap->chunk_present));
	heap->blocks = vg_new(sizeof(*heap->blocks));
	heap->blocks->bytes = heap->room_bytes;
	return true;
}

/* Physical memory that `bytes` at `offset` still need. */
static uint64_t missing(const struct fake_heap *heap, uint64_t offset, uint64_t bytes)
{
	uint64_t sum = 0;

	for (uint64_t c = offset / heap->chunk_bytes; c <= (offset + bytes - 1) / heap->chunk_bytes;
	     c++)
		sum += heap->chunk_present[c] ? 0 : heap->chunk_bytes;
	return sum;
}

/* First where nothing has to be reserved, else wherever there is room. */
static struct fake_heap_block *find(struct fake_heap *heap, uint64_t bytes)
{
	struct fake_heap_block *room = NULL;

	for (struct fake_heap_block *block = heap->blocks; block; block = block->next) {
		if (block->used || block->bytes < bytes)
			continue;
		if (!missing(heap, block->offset, bytes))
			return block;
		if (!room)
			room = block;
	}
	return room;
}

static void count(struct fake_heap *heap, const struct fake_heap_block *block, bool used)
{
	uint64_t at = block->offset, end = block->offset + block->bytes;

	while (at < end) {
		uint64_t chunk = at / heap->chunk_bytes;
		uint64_t part = (chunk + 1) * heap->chunk_bytes - at;

		if (part > end - at)
			part = end - at;
		if (used)
			heap->chunk_used[chunk] += part;
		else
			heap->chunk_used[chunk] -= part;
		at += part;
	}
}

static bool reserve(struct fake_heap *heap, uint64_t offset, uint64_t bytes)
{
	uint64_t more = missing(heap, offset, bytes);

	if (!more)
		return true;
	if (heap->limit_bytes && heap->reserved_bytes + more > heap->limit_bytes)
		return false;
	if (!heap->take(heap->context, more))
		return false;
	for (uint64_t c = offset / heap->chunk_bytes; c <= (offset + bytes - 1) / heap->chunk_bytes;
	     c++)
		heap->chunk_present[c] = true;
	heap->reserved_bytes += more;
	if (heap->reserved_bytes > heap->reserved_high)
		heap->reserved_high = heap->reserved_bytes;
	return true;
}

struct fake_heap_block *fake_heap_take(struct fake_heap *heap, uint64_t bytes)
{
	struct fake_heap_block *block;

	if (!open_heap(heap) || bytes > heap->room_bytes)
		return NULL;
	bytes = (bytes + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES;
	block = find(heap, bytes);
	if (!block || !reserve(heap, block->offset, bytes))
		return NULL;
	if (block->bytes > bytes) {
		struct fake_heap_block *rest = vg_new(sizeof(*rest));

		*rest = (struct fake_heap_block){
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
	count(heap, block, true);
	heap->used_bytes += bytes;
	if (heap->used_bytes > heap->used_high)
		heap->used_high = heap->used_bytes;
	return block;
}

static void join(struct fake_heap_block *block)
{
	struct fake_heap_block *next = block->next;

	if (!next || next->used)
		return;
	block->bytes += next->bytes;
	block->next = next->next;
	if (block->next)
		block->next->previous = block;
	free(next);
}

void fake_heap_give(struct fake_heap *heap, struct fake_heap_block *block)
{
	block->used = false;
	count(heap, block, false);
	heap->used_bytes -= block->bytes;
	join(block);
	if (block->previous && !block->previous->used)
		join(block->previous);
}

void fake_heap_trim(struct fake_heap *heap, uint64_t keep_bytes)
{
	if (!heap->data)
		return;
	for (uint64_t c = heap->room_bytes / heap->chunk_bytes;
	     c-- > 0 && heap->reserved_bytes > keep_bytes;) {
		if (!heap->chunk_present[c] || heap->chunk_used[c])
			continue;
		heap->chunk_present[c] = false;
		heap->reserved_bytes -= heap->chunk_bytes;
		madvise(heap->data + c * heap->chunk_bytes, heap->chunk_bytes, MADV_DONTNEED);
		heap->give(heap->context, heap->chunk_bytes);
	}
}

void fake_heap_release(struct fake_heap *heap)
{
	if (!heap->data)
		return;
	if (heap->reserved_bytes)
		heap->give(heap->context, heap->reserved_bytes);
	while (heap->blocks) {
		struct fake_heap_block *next = heap->blocks->next;

		free(heap->blocks);
		heap->blocks = next;
	}
	free(heap->chunk_used);
	free(heap->chunk_present);
	fake_unmap(heap->data, heap->room_bytes);
	heap->data = NULL;
	heap->chunk_used = NULL;
	heap->chunk_present = NULL;
	heap->reserved_bytes = heap->used_bytes = 0;
}
