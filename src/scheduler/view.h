/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cluster as the decision sees it: nodes, their cards, and what is used of each. Plain data, kept
 * by src/cluster and never written by src/scheduler.
 */
#ifndef VGPU_SCHEDULER_VIEW_H
#define VGPU_SCHEDULER_VIEW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "device/node.h"
#include "device/quota.h"

/*
 * Small (56 bytes), since a decision may have to look at every card of the cluster. What is used is the
 * sum of numbers that people wrote: two of them can pass 32 bits.
 */
struct vg_card {
	const char *uuid;
	int64_t mem_used_mib;
	int64_t cores_used;
	int32_t mem_mib;
	int32_t cores; /* percent, 100 unless scaled */
	int32_t slots;
	int32_t slots_used;
	int32_t index; /* NVML index */
	int16_t numa;
	uint16_t model; /* index into the view's models */
	uint8_t class_index;
	uint8_t mode; /* enum vg_card_mode */
	bool healthy;
	bool cordoned;
};

/* Sums over the node's cards. */
struct vg_sums {
	int64_t mem_mib;
	int64_t mem_used_mib;
	int64_t cores;
	int64_t cores_used;
	int64_t slots;
	int64_t slots_used;
};

struct vg_node {
	const char *name;
	struct vg_card *cards; /* sorted by class, then index, then UUID */
	uint32_t card_count;   /* 0: nothing registered */
	struct vg_sums sums;   /* kept equal to the cards by whoever owns the node */
	/* How closely the cards are linked: card_count x card_count numbers, symmetric. NULL: all alike. */
	const int32_t *links;
};

/*
 * What the namespace of a pod may have, and what its other pods have of it, by class. hard is
 * VG_QUOTA_NO_LIMIT where nothing is limited. Used may be more than hard: limits are lowered.
 */
struct vg_quota {
	struct vg_total hard[VG_CLASSES_MAX];
	struct vg_total used[VG_CLASSES_MAX];
};

/* The models of the cluster, each once; card.model is an index. */
struct vg_models {
	const char *const *name;
	size_t count;
};

#endif
