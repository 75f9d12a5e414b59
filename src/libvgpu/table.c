/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pointer holds how much. Open addressing in shards, each behind a lock that is held for some
 * nanoseconds and never across a call of the driver. Storage comes from mmap: the heap is the
 * program's.
 */
#include <sched.h>
#include <string.h>
#include <sys/mman.h>

#include "libvgpu/guest.h"

enum { SHARDS = 64, FIRST_SLOTS = 128 };

static const uint64_t TOMBSTONE = UINT64_MAX;

struct shard {
	uint32_t lock;
	uint32_t used; /* entries and tombstones */
	uint32_t live;
	uint64_t size; /* power of two, 0: nothing yet */
	struct vg_entry *slots;
	char padding[32];
};

static struct shard shards[SHARDS] __attribute__((aligned(64)));

static uint64_t mix(uint64_t key)
{
	key ^= key >> 33;
	key *= 0xff51afd7ed558ccdull;
	key ^= key >> 33;
	return key;
}

static void lock(struct shard *s)
{
	for (unsigned int i = 0; __atomic_exchange_n(&s->lock, 1u, __ATOMIC_ACQUIRE); i++)
		if (i % 64 == 63)
			sched_yield();
}

static void unlock(struct shard *s)
{
	__atomic_store_n(&s->lock, 0u, __ATOMIC_RELEASE);
}

static struct shard *shard_of(uint64_t hash)
{
	return &shards[hash >> 58];
}

_Static_assert(SHARDS == 64, "shard_of() takes six bits");

static bool grow(struct shard *s)
{
	uint64_t size = s->size, old_size = s->size;
	struct vg_entry *slots, *old = s->slots;

	if (!size)
		size = FIRST_SLOTS;
	else if (s->live * 2 >= s->used) /* else tombstones fill it: same size, cleaned */
		size *= 2;
	slots = mmap(NULL, size * sizeof(*slots), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED)
		return false;
	for (uint64_t i = 0; i < old_size; i++) {
		uint64_t at;

		if (old[i].key == 0 || old[i].key == TOMBSTONE)
			continue;
		at = mix(old[i].key) & (size - 1);
		while (slots[at].key)
			at = (at + 1) & (size - 1);
		slots[at] = old[i];
	}
	s->slots = slots;
	s->size = size;
	s->used = s->live;
	if (old)
		munmap(old, old_size * sizeof(*old));
	return true;
}

/* Kinds live in one table; a module and an array may share a value, so both are compared. */
static struct vg_entry *find(struct shard *s, uint64_t hash, uint64_t key, enum vg_kind kind)
{
	uint64_t mask = s->size - 1;

	if (!s->size)
		return NULL;
	for (uint64_t at = hash & mask; s->slots[at].key; at = (at + 1) & mask)
		if (s->slots[at].key == key && s->slots[at].kind == kind)
			return &s->slots[at];
	return NULL;
}

bool vg_table_put(const struct vg_entry *entry)
{
	uint64_t hash = mix(entry->key), at;
	struct shard *s = shard_of(hash);

	if (entry->key == 0 || entry->key == TOMBSTONE)
		return false;
	lock(s);
	if ((!s->size || s->used * 4 >= s->size * 3) && !grow(s)) {
		unlock(s);
		return false;
	}
	at = hash & (s->size - 1);
	while (s->slots[at].key && s->slots[at].key != TOMBSTONE)
		at = (at + 1) & (s->size - 1);
	if (!s->slots[at].key)
		s->used++;
	__atomic_store_n(&s->live, s->live + 1, __ATOMIC_RELAXED);
	s->slots[at].bytes = entry->bytes;
	s->slots[at].owner = entry->owner;
	s->slots[at].references = entry->references;
	s->slots[at].kind = entry->kind;
	s->slots[at].index = entry->index;
	s->slots[at].key = entry->key;
	unlock(s);
	return true;
}

static void remove_at(struct shard *s, struct vg_entry *entry)
{
	uint64_t next = ((uint64_t)(entry - s->slots) + 1) & (s->size - 1);

	__atomic_store_n(&s->live, s->live - 1, __ATOMIC_RELAXED);
	if (s->slots[next].key) {
		entry->key = TOMBSTONE;
		return;
	}
	entry->key = 0;
	s->used--;
}

bool vg_table_take(uint64_t key, enum vg_kind kind, struct vg_entry *ret)
{
	uint64_t hash = mix(key);
	struct shard *s = shard_of(hash);
	struct vg_entry *entry;

	/* Whoever frees a pointer has seen it allocated: an empty shard is empty for him, too. */
	if (!__atomic_load_n(&s->live, __ATOMIC_RELAXED))
		return false;
	lock(s);
	entry = find(s, hash, key, kind);
	if (entry) {
		*ret = *entry;
		remove_at(s, entry);
	}
	unlock(s);
	return entry != NULL;
}

bool vg_table_get(uint64_t key, enum vg_kind kind, struct vg_entry *ret)
{
	uint64_t hash = mix(key);
	struct shard *s = shard_of(hash);
	struct vg_entry *entry;

	lock(s);
	entry = find(s, hash, key, kind);
	if (entry)
		*ret = *entry;
	unlock(s);
	return entry != NULL;
}

int64_t vg_table_refer(uint64_t key, enum vg_kind kind, int32_t change)
{
	uint64_t hash = mix(key);
	struct shard *s = shard_of(hash);
	struct vg_entry *entry;
	int64_t now = -1;

	lock(s);
	entry = find(s, hash, key, kind);
	if (entry) {
		if (change < 0 && entry->references < (uint32_t)-change)
			entry->references = 0;
		else
			entry->references += (uint32_t)change;
		now = entry->references;
	}
	unlock(s);
	return now;
}

void vg_table_sweep(uint64_t owner, void (*taken)(const struct vg_entry *entry))
{
	for (int i = 0; i < SHARDS; i++) {
		struct shard *s = &shards[i];

		for (uint64_t at = 0;; at++) {
			struct vg_entry entry = { 0 };

			lock(s);
			while (at < s->size &&
			       (s->slots[at].key == 0 || s->slots[at].key == TOMBSTONE ||
				s->slots[at].owner != owner ||
				s->slots[at].kind == VG_KIND_MAPPING))
				at++;
			if (at < s->size) {
				entry = s->slots[at];
				remove_at(s, &s->slots[at]);
			}
			unlock(s);
			if (!entry.key)
				break;
			taken(&entry);
		}
	}
}

bool vg_table_find_mapping(uint64_t address, struct vg_entry *ret)
{
	for (int i = 0; i < SHARDS; i++) {
		struct shard *s = &shards[i];
		bool found = false;

		lock(s);
		for (uint64_t at = 0; at < s->size && !found; at++) {
			const struct vg_entry *e = &s->slots[at];

			if (e->kind == VG_KIND_MAPPING && e->key && e->key != TOMBSTONE &&
			    address >= e->key && address - e->key < e->bytes) {
				*ret = *e;
				found = true;
			}
		}
		unlock(s);
		if (found)
			return true;
	}
	return false;
}

void vg_table_reset(void)
{
	for (int i = 0; i < SHARDS; i++) {
		if (shards[i].slots)
			munmap(shards[i].slots, shards[i].size * sizeof(*shards[i].slots));
		memset(&shards[i], 0, sizeof(shards[i]));
	}
}
