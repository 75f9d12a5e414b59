/* SPDX-License-Identifier: Apache-2.0 */
/* Members of Kubernetes objects, without asking at every step whether they are there. */
#ifndef VGPU_KUBE_JSON_INTERNAL_H
#define VGPU_KUBE_JSON_INTERNAL_H

#include <jansson.h>

/* The text of a member; "" when the object, the member or its type is not what it should be. */
static inline const char *vg_json_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text ? text : "";
}

static inline const char *vg_json_meta(const json_t *object, const char *member)
{
	return vg_json_text(json_object_get(object, "metadata"), member);
}

#endif
