/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table from text to a pointer. Keys are not copied: they must live as long as their entry
 * (usually inside the value). Open addressing, linear probing, no tombstones.
 * Not thread-safe.
 */
#ifndef VGPU_BASE_MAP_H
#define VGPU_BASE_MAP_H

#include <stddef.h>
#include <stdint.h>

struct vg_map_slot {
	const char *key; /* NULL = free */
	uint64_t hash;
	void *value;
};

struct vg_map {
	struct vg_map_slot *slots;
	size_t room; /* a power of two, 0 before the first entry */
	size_t used;
};

void vg_map_init(struct vg_map *map);
/* Gives back the table, not the keys and values. */
void vg_map_release(struct vg_map *map);

/* The value, or NULL. */
void *vg_map_get(const struct vg_map *map, const char *key);
void *vg_map_getn(const struct vg_map *map, const char *key, size_t size);
/*
 * The values of many keys at once, NULL where there is none: while one key is looked up, the memory of the
 * ones behind it is on its way already. For thousands of keys in a table that is larger than a cache.
 */
void vg_map_get_many(const struct vg_map *map, const char *const *keys, size_t count,
		     void **ret_values);
/* Adds or replaces; returns what was there before, or NULL. `value` is not NULL. */
void *vg_map_put(struct vg_map *map, const char *key, void *value);
/* Takes the entry out and returns its value, or NULL. */
void *vg_map_del(struct vg_map *map, const char *key);

/*
 * Walks all entries in no particular order: start with *cursor = 0, returns NULL at the end. The
 * table must not change during the walk.
 */
void *vg_map_next(const struct vg_map *map, size_t *cursor);

#endif
