/* SPDX-License-Identifier: Apache-2.0 */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/str.h"

#define ROOM_MIN 16

/* Names of pods are chosen by tenants: without a secret, one of them could make all of his collide. */
static uint64_t secret;

__attribute__((constructor)) static void choose_secret(void)
{
	/* Too early for entropy, in a fresh virtual machine: the address of something is then better than
	 * nothing, and better than to wait. */
	if (getrandom(&secret, sizeof(secret), GRND_NONBLOCK) != sizeof(secret))
		secret = (uint64_t)(uintptr_t)&secret;
}

static uint64_t hash_of(const char *key, size_t size)
{
	return vg_hash_seeded(key, size, secret);
}

void vg_map_init(struct vg_map *map)
{
	*map = (struct vg_map){ 0 };
}

void vg_map_release(struct vg_map *map)
{
	if (!map)
		return;
	free(map->slots);
	vg_map_init(map);
}

/* The slot that holds the key, or the free one where it would go. The table is never full. */
static struct vg_map_slot *find(const struct vg_map *map, const char *key, size_t size,
				uint64_t hash)
{
	size_t mask = map->room - 1;

	for (size_t i = (size_t)hash & mask;; i = (i + 1) & mask) {
		struct vg_map_slot *slot = &map->slots[i];

		if (!slot->key)
			return slot;
		if (slot->hash == hash && strncmp(slot->key, key, size) == 0 &&
		    slot->key[size] == '\0')
			return slot;
	}
}

static void grow(struct vg_map *map)
{
	struct vg_map old = *map;

	map->room = old.room ? old.room * 2 : ROOM_MIN;
	map->slots = vg_new_array(map->room, sizeof(*map->slots));
	for (size_t i = 0; i < old.room; i++) {
		struct vg_map_slot *slot = &old.slots[i];

		if (slot->key)
			*find(map, slot->key, strlen(slot->key), slot->hash) = *slot;
	}
	free(old.slots);
}

void *vg_map_getn(const struct vg_map *map, const char *key, size_t size)
{
	if (!map->used)
		return NULL;
	return find(map, key, size, hash_of(key, size))->value;
}

void *vg_map_get(const struct vg_map *map, const char *key)
{
	return vg_map_getn(map, key, strlen(key));
}

/* How far ahead a slot is asked for, and the key that it points to. */
#define AHEAD_SLOT 16
#define AHEAD_KEY  8

void vg_map_get_many(const struct vg_map *map, const char *const *keys, size_t count,
		     void **ret_values)
{
	struct {
		uint64_t hash;
		size_t size;
	} ahead[AHEAD_SLOT];
	size_t mask = map->room - 1;

	if (!map->used) {
		for (size_t i = 0; i < count; i++)
			ret_values[i] = NULL;
		return;
	}
	for (size_t i = 0; i < count + AHEAD_SLOT; i++) {
		if (i >= AHEAD_SLOT) {
			size_t now = i - AHEAD_SLOT;
			size_t place = now % AHEAD_SLOT;

			ret_values[now] =
				find(map, keys[now], ahead[place].size, ahead[place].hash)->value;
		}
		if (i < count) {
			size_t place = i % AHEAD_SLOT;

			ahead[place].size = strlen(keys[i]);
			ahead[place].hash = hash_of(keys[i], ahead[place].size);
			__builtin_prefetch(&map->slots[ahead[place].hash & mask]);
		}
		if (i >= AHEAD_KEY && i - AHEAD_KEY < count) {
			uint64_t hash = ahead[(i - AHEAD_KEY) % AHEAD_SLOT].hash;

			__builtin_prefetch(map->slots[hash & mask].key);
		}
	}
}

void *vg_map_put(struct vg_map *map, const char *key, void *value)
{
	size_t size = strlen(key);
	uint64_t hash = hash_of(key, size);
	struct vg_map_slot *slot;
	void *before;

	if ((map->used + 1) * 4 > map->room * 3)
		grow(map);
	slot = find(map, key, size, hash);
	before = slot->value;
	if (!slot->key)
		map->used++;
	*slot = (struct vg_map_slot){ .key = key, .hash = hash, .value = value };
	return before;
}

void *vg_map_del(struct vg_map *map, const char *key)
{
	size_t mask = map->room - 1;
	struct vg_map_slot *slot;
	size_t hole;
	size_t size = strlen(key);
	void *value;

	if (!map->used)
		return NULL;
	slot = find(map, key, size, hash_of(key, size));
	if (!slot->key)
		return NULL;
	value = slot->value;
	hole = (size_t)(slot - map->slots);
	map->used--;
	/* Close the gap: move back every entry of the run that may not stand behind a hole. */
	for (size_t i = (hole + 1) & mask; map->slots[i].key; i = (i + 1) & mask) {
		size_t home = (size_t)map->slots[i].hash & mask;

		if (((i - home) & mask) >= ((i - hole) & mask)) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = (struct vg_map_slot){ 0 };
	return value;
}

void *vg_map_next(const struct vg_map *map, size_t *cursor)
{
	while (*cursor < map->room) {
		const struct vg_map_slot *slot = &map->slots[(*cursor)++];

		if (slot->key)
			return slot->value;
	}
	return NULL;
}
