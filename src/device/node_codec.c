/* SPDX-License-Identifier: Apache-2.0 */
#include "device/node.h"

#include <errno.h>

#include "base/limits.h"
#include "base/str.h"
#include "device/json_internal.h"
#include "device/quantity.h"

/* How many devices of the class kubelet offers: -1 when the node says nothing about them. */
static int decode_allocatable(const json_t *object, const struct vg_classes *classes,
			      struct vg_arena *arena, int64_t *ret_count, struct vg_err *err)
{
	struct vg_quantity quantity = { 0 };
	const char *name = classes->count ? classes->item[0].resource_count : "";
	const char *text = "";
	json_t *allocatable = NULL;
	json_t *status = NULL;
	json_t *value;
	int r;

	r = vg_json_object(object, "status", &status, err);
	if (r == 0)
		r = vg_json_object(status, "status.allocatable", &allocatable, err);
	if (r < 0)
		return r;
	value = name[0] ? json_object_get(allocatable, name) : NULL;
	if (!value || json_is_null(value)) {
		*ret_count = -1;
		return 0;
	}
	r = vg_json_quantity(value, name, arena, &text, err);
	if (r == 0)
		r = vg_quantity_parse(VG_SPAN(text), &quantity, err);
	if (r < 0)
		return vg_err_wrap(err, -EINVAL, "status.allocatable[\"%s\"]", name);
	*ret_count = quantity.value > 0 ? quantity.value : 0;
	return 0;
}

int vg_node_decode(const struct json_t *object, const struct vg_classes *classes,
		   struct vg_arena *arena, struct vg_node_info *ret_node, struct vg_err *err)
{
	struct vg_json_meta meta;
	struct vg_node_info node;
	struct vg_err why = { 0 };
	const char *text;
	int r;

	r = vg_json_meta(object, "Node", arena, &meta, err);
	if (r < 0)
		return r;
	if (!meta.name[0])
		return vg_fail(err, EINVAL, "not a Node: metadata.name is missing");
	node = (struct vg_node_info){
		.name = meta.name,
		.uid = meta.uid,
		.resource_version = meta.resource_version,
		.annotations = meta.annotations,
	};
	r = decode_allocatable(object, classes, arena, &node.allocatable, err);
	if (r < 0)
		return vg_err_wrap(err, r, "Node %s", node.name);
	text = node.annotations.value[VG_ANNO_NODE_REGISTER];
	if (text && vg_register_decode(text, 0, arena, &node.cards, &node.card_count, &why) < 0)
		node.register_error = vg_arena_strdup(arena, why.msg);
	text = node.annotations.value[VG_ANNO_NODE_SCORE];
	if (text && node.card_count &&
	    vg_links_decode(text, node.cards, node.card_count, arena, &node.links, &node.links_odd,
			    &why) < 0)
		node.links_error = vg_arena_strdup(arena, why.msg);
	*ret_node = node;
	return 0;
}
