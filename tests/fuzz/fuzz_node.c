/* SPDX-License-Identifier: Apache-2.0 */
/* A v1.Node in JSON. */
#include <stdint.h>
#include <stdlib.h>

#include <jansson.h>

#include "base/limits.h"
#include "device/node.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_node_info node;
	struct vg_classes classes;
	struct vg_arena arena;
	struct vg_err err = { 0 };
	json_t *object = json_loadb((const char *)data, size, JSON_DECODE_ANY, NULL);
	int r;

	if (!object)
		return 0;
	vg_arena_init(&arena);
	vg_classes_init(&classes);
	r = vg_node_decode(object, &classes, &arena, &node, &err);
	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	if (r == 0) {
		check(node.name[0] && node.allocatable >= -1);
		check(node.card_count <= VG_LIMIT_CARDS_PER_NODE);
		check(!node.register_error || !node.card_count);
		if (!node.annotations.value[VG_ANNO_NODE_REGISTER])
			check(!node.register_error && !node.card_count);
	}
	json_decref(object);
	vg_classes_release(&classes);
	vg_arena_release(&arena);
	return 0;
}
