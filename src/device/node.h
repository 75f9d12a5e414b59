/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of a v1.Node that matters for sharing GPUs, decoded once at the edge. Texts and arrays live
 * in the arena that the decoder was given.
 */
#ifndef VGPU_DEVICE_NODE_H
#define VGPU_DEVICE_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"
#include "device/annotation.h"
#include "device/class.h"

struct json_t;

/* How a card is divided; the words of the register annotation. */
enum vg_card_mode {
	VG_MODE_NONE, /* empty: matches every request */
	VG_MODE_HAMI_CORE,
	VG_MODE_MIG,
	VG_MODE_MPS,
	VG_MODE_OTHER, /* a word that this version does not know: matches only by not being asked for */
	VG_MODE_COUNT,
};

extern const char *const vg_card_mode_word[VG_MODE_COUNT];

/* A card as a node agent registered it. */
struct vg_card_info {
	const char *uuid;
	const char *model; /* "NVIDIA A100-SXM4-80GB" */
	int32_t index;     /* NVML index */
	int32_t slots;     /* how many containers may share it */
	int32_t mem_mib;   /* already × device memory scaling */
	int32_t cores;     /* percent, 100 unless scaled */
	int32_t numa;
	enum vg_card_mode mode;
	bool healthy;
	uint8_t class_index;
};

struct vg_node_info {
	const char *name;
	const char *uid;
	uint64_t resource_version;
	struct vg_annotations annotations;
	struct vg_card_info *cards; /* sorted by class, then index, then UUID */
	size_t card_count;
	/* status.allocatable of the count resource of class 0; -1 when absent, else never below 0.
	 * A node whose plugin is gone reports 0 while its register annotation stays. */
	int64_t allocatable;
	/* Set when the register annotation is there and could not be read: the cards are then empty and
	 * the text says why. The rest of the node is valid. */
	const char *register_error;
	/*
	 * How closely the cards are linked, from the score annotation: card_count x card_count numbers by
	 * the places of `cards`, symmetric, 0 on the diagonal. NULL when there is no annotation, or none
	 * that could be read: links_error then says why.
	 */
	int32_t *links;
	const char *links_error;
	size_t links_odd; /* pairs that the annotation leaves out, or gives differently from both sides */
};

/* Decodes a v1.Node; a broken register annotation is not an error of the node (see above). */
int vg_node_decode(const struct json_t *object, const struct vg_classes *classes,
		   struct vg_arena *arena, struct vg_node_info *ret_node, struct vg_err *err);

/*
 * Reads the text of a register annotation: the JSON form, or the comma form of plugins up to 2.7
 * (told apart by the first character). No cards is not an error. Absent JSON members are 0 or false;
 * migProfiles and other unknown members are accepted and not looked at. Duplicate UUIDs, missing ids,
 * wrong types and numbers out of range are errors that name the card. Cards are sorted by index, then
 * UUID. Source: scheduler-protocol facts in docs/protocol.md, "Node keys".
 */
int vg_register_decode(const char *text, uint8_t class_index, struct vg_arena *arena,
		       struct vg_card_info **ret_cards, size_t *ret_count, struct vg_err *err);
/* Scores beyond this are a mistake: 18 NVLinks of 100 points and a place on one board make 1,860. */
#define VG_LINK_SCORE_MAX 100000

/*
 * Reads a score annotation for these cards; see struct vg_node_info. Cards that it does not know are
 * ignored. A pair that is given from one side counts; one that is given differently counts as the lower
 * number; one that is missing counts 0. All three are counted in ret_odd.
 */
int vg_links_decode(const char *text, const struct vg_card_info *cards, size_t count,
		    struct vg_arena *arena, int32_t **ret_links, size_t *ret_odd,
		    struct vg_err *err);
/* The JSON form, in stable member order; what vgpu-agent and the tests write. Texts are UTF-8 and not
 * NULL. In the arena. */
char *vg_register_encode(const struct vg_card_info *cards, size_t count, struct vg_arena *arena);

/* Whether the UUID stands in a comma list (blanks and stray commas tolerated). NULL list: false. */
bool vg_uuid_listed(const char *list, const char *uuid);

#endif
