/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/versions_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"

struct vg_version_entry {
	uint64_t version;
	uint32_t list_mark;
	bool deleted;
	char key[]; /* NUL-terminated */
};

void vg_versions_init(struct vg_versions *versions)
{
	*versions = (struct vg_versions){ 0 };
	vg_map_init(&versions->map);
	versions->tombstones = vg_new_array(VG_LIMIT_TOMBSTONES, sizeof(*versions->tombstones));
}

void vg_versions_release(struct vg_versions *versions)
{
	struct vg_version_entry *entry;
	size_t cursor = 0;

	if (!versions)
		return;
	while ((entry = vg_map_next(&versions->map, &cursor)))
		free(entry);
	vg_map_release(&versions->map);
	free(versions->tombstones);
	*versions = (struct vg_versions){ 0 };
}

uint64_t vg_version_number(const char *text)
{
	uint64_t number;

	return vg_parse_u64(VG_SPAN(text), 1, UINT64_MAX, &number, NULL) < 0 ? 0 : number;
}

static struct vg_version_entry *entry_add(struct vg_versions *versions, const char *key)
{
	size_t size = strlen(key) + 1;
	struct vg_version_entry *entry = vg_new(sizeof(*entry) + size);

	memcpy(entry->key, key, size);
	vg_map_put(&versions->map, entry->key, entry);
	return entry;
}

static void tombstone_drop(struct vg_versions *versions, struct vg_version_entry *entry)
{
	size_t kept = 0;

	for (size_t i = 0; i < versions->tombstone_count; i++) {
		size_t from = (versions->tombstone_first + i) % VG_LIMIT_TOMBSTONES;
		size_t to = (versions->tombstone_first + kept) % VG_LIMIT_TOMBSTONES;

		versions->tombstones[to] = versions->tombstones[from];
		kept += versions->tombstones[from] != entry;
	}
	versions->tombstone_count = kept;
}

static void tombstone_add(struct vg_versions *versions, struct vg_version_entry *entry)
{
	if (versions->tombstone_count == VG_LIMIT_TOMBSTONES) {
		struct vg_version_entry *oldest = versions->tombstones[versions->tombstone_first];

		versions->tombstone_first = (versions->tombstone_first + 1) % VG_LIMIT_TOMBSTONES;
		versions->tombstone_count--;
		vg_map_del(&versions->map, oldest->key);
		free(oldest);
	}
	versions->tombstones[(versions->tombstone_first + versions->tombstone_count++) %
			     VG_LIMIT_TOMBSTONES] = entry;
}

/* A live object must be at least as new as what was seen, a revived one newer than its end. */
static bool is_older(const struct vg_version_entry *entry, uint64_t version)
{
	if (!version || !entry->version)
		return false;
	return entry->deleted ? version <= entry->version : version < entry->version;
}

static void entry_set(struct vg_versions *versions, struct vg_version_entry *entry,
		      uint64_t version)
{
	if (entry->deleted)
		tombstone_drop(versions, entry);
	entry->deleted = false;
	entry->version = version;
	entry->list_mark = versions->list_mark;
}

bool vg_versions_put(struct vg_versions *versions, const char *key, uint64_t version)
{
	struct vg_version_entry *entry = vg_map_get(&versions->map, key);

	if (entry ? is_older(entry, version) : version && version <= versions->floor)
		return false;
	entry_set(versions, entry ? entry : entry_add(versions, key), version);
	return true;
}

bool vg_versions_delete(struct vg_versions *versions, const char *key, uint64_t version)
{
	struct vg_version_entry *entry = vg_map_get(&versions->map, key);

	if (!entry && version && version <= versions->floor)
		return false;
	if (entry && version && entry->version && version < entry->version)
		return false;
	if (!entry)
		entry = entry_add(versions, key);
	if (!entry->deleted)
		tombstone_add(versions, entry);
	entry->deleted = true;
	entry->version = version;
	return true;
}

void vg_versions_list_begin(struct vg_versions *versions)
{
	versions->list_mark++;
}

bool vg_versions_listed(struct vg_versions *versions, const char *key, uint64_t version)
{
	struct vg_version_entry *entry = vg_map_get(&versions->map, key);

	if (entry && is_older(entry, version))
		return false;
	entry_set(versions, entry ? entry : entry_add(versions, key), version);
	return true;
}

void vg_versions_list_end(struct vg_versions *versions, uint64_t list_version)
{
	struct vg_version_entry **gone = vg_new_array(versions->map.used + 1, sizeof(*gone));
	struct vg_version_entry *entry;
	size_t count = 0;
	size_t cursor = 0;

	/* The floor speaks for the deleted ones, too, unless it is no number. */
	while ((entry = vg_map_next(&versions->map, &cursor)))
		if (entry->deleted ? list_version != 0 : entry->list_mark != versions->list_mark)
			gone[count++] = entry;
	if (list_version) {
		versions->tombstone_first = 0;
		versions->tombstone_count = 0;
		if (versions->floor < list_version)
			versions->floor = list_version;
	}
	for (size_t i = 0; i < count; i++) {
		vg_map_del(&versions->map, gone[i]->key);
		free(gone[i]);
	}
	free(gone);
}
