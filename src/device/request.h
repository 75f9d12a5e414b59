/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a pod asks for, in numbers: containers' resources and the pod's annotations by the rules of the
 * device classes.
 */
#ifndef VGPU_DEVICE_REQUEST_H
#define VGPU_DEVICE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "device/class.h"
#include "device/pod.h"

#define VG_MEM_PERCENT_UNSET 101

/* One class asked for by one container. */
struct vg_want {
	uint16_t container; /* index in the pod */
	uint8_t class_index;
	uint8_t kind;        /* enum vg_container_kind */
	int32_t count;       /* cards, at least 1 */
	int32_t mem_mib;     /* per card; 0 = by percentage */
	int32_t mem_percent; /* of the card's memory, or VG_MEM_PERCENT_UNSET */
	int32_t cores;       /* percent per card, 0 to 100 */
};

enum vg_node_policy {
	VG_NODE_BINPACK,
	VG_NODE_SPREAD,
};

/* Keys of the order in which cards of a node are tried, most important first. */
enum vg_card_key {
	VG_KEY_BINPACK,
	VG_KEY_SPREAD,
	VG_KEY_NUMA,
	VG_KEY_COUNT,
};

struct vg_policy {
	enum vg_node_policy node;
	enum vg_card_key keys[VG_KEY_COUNT];
	size_t key_count; /* 0: spread */
	bool chain;       /* several words or numa: ties end at the index, not at the NUMA node */
	bool mutex;       /* a card in use is not taken */
	bool topology;    /* best-connected cards */
	int32_t weight_slot;
	int32_t weight_core;
	int32_t weight_mem;
};

/* A comma list that was split, without blank members; count 0 = no constraint. */
struct vg_words {
	struct vg_span *item;
	size_t count;
};

struct vg_request {
	const char *namespace;
	const char *name;
	const char *uid;
	struct vg_want *wants; /* sorted by container, then class */
	size_t want_count;     /* 0: the pod asks for no device */
	size_t container_count;
	uint8_t *kinds; /* enum vg_container_kind per container */
	/* A container that names no count, so that the class's default was taken, as the webhook would have
	 * written it; NULL: none. kubelet hands out no card for it unless that is done. */
	const char *uncounted;
	struct vg_policy policy;
	struct vg_words use_type; /* the model must contain one, ASCII case ignored */
	struct vg_words nouse_type;
	struct vg_words use_uuid; /* exact */
	struct vg_words nouse_uuid;
	const char *mode; /* text that must contain the card's mode; NULL = any */
	bool numa_bind;
};

/*
 * The policy of a daemon's flags: node "binpack" or "spread", cards as the annotation's text. Any text
 * is accepted as HAMi does: a node word that is not "spread" is binpack, card words that are not known
 * say nothing. The weights are 1, 1, 1.
 */
void vg_policy_parse(const char *node_text, const char *card_text, struct vg_policy *ret_policy);

/*
 * Fills the request of a pod; `defaults` is the daemon's own policy, which the pod's annotations
 * override. Per container and class, a resource is its limit, else its request:
 *
 *	cards    a whole number up to VG_LIMIT_CARDS_PER_REQUEST; 0 = none, whatever else is given. Absent:
 *	         the class's default_count where memory, percentage or cores are asked for
 *	memory   a whole number of MiB × mem_factor. Absent or 0: the percentage; without one the class's
 *	         default_mem_mib, and without that the whole card
 *	percent  1 to 100, more is 100
 *	cores    0 to 100, more is 100. Absent: the class's default_cores
 *
 * Whatever is no such number is -EINVAL with a text that names container, resource and value, and says
 * what would be right: quantities of bytes ("16Gi") where a count of MiB is meant, fractions, negative
 * numbers, a part of a card but no card, lists that are too long, a malformed weights annotation.
 * Other readers of these resources treat such a pod as one that asks for nothing.
 *
 * Annotations are looked at only where a device is asked for. Texts and spans of the request point into
 * the pod; arrays are in the arena.
 */
int vg_request_parse(const struct vg_pod *pod, const struct vg_classes *classes,
		     const struct vg_policy *defaults, struct vg_arena *arena,
		     struct vg_request *ret_request, struct vg_err *err);

/* Parses "slot=1,core=1,memory=3" with HAMi's error texts. */
int vg_weights_parse(const char *text, struct vg_policy *policy, struct vg_err *err);

#endif
