/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which state of each object was seen last, so that time never goes back: a server that repeats,
 * reorders or falls behind cannot make an old state count again. Resource versions are opaque by
 * contract; where they are numbers, as etcd's are, they rise, and only numbers are compared. 0 stands
 * for a version that is none: it is always accepted.
 */
#ifndef VGPU_KUBE_VERSIONS_INTERNAL_H
#define VGPU_KUBE_VERSIONS_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct vg_version_entry;

struct vg_versions {
	struct vg_map map;
	/* Everything up to this version was listed: what is not known with it is gone. */
	uint64_t floor;
	uint32_t list_mark; /* counts lists, to tell what was not in the last one */
	/* Deleted objects, oldest first, as a ring. */
	struct vg_version_entry **tombstones;
	size_t tombstone_first;
	size_t tombstone_count;
};

void vg_versions_init(struct vg_versions *versions);
void vg_versions_release(struct vg_versions *versions);

/* The number of a resourceVersion; 0 when it is none. */
uint64_t vg_version_number(const char *text);

/* A state from a watch: whether it is news, which it then is remembered to be. Same version: true. */
bool vg_versions_put(struct vg_versions *versions, const char *key, uint64_t version);
bool vg_versions_delete(struct vg_versions *versions, const char *key, uint64_t version);

/*
 * A list: begin, every object, end. An object that is older than what was seen makes the list one
 * that must not be used: vg_versions_listed() returns false. After list_end() objects that were not
 * listed are forgotten; a list that is broken off forgets nothing.
 */
void vg_versions_list_begin(struct vg_versions *versions);
bool vg_versions_listed(struct vg_versions *versions, const char *key, uint64_t version);
void vg_versions_list_end(struct vg_versions *versions, uint64_t list_version);

#endif
