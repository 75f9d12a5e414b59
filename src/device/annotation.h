/* SPDX-License-Identifier: Apache-2.0 */
/* The annotation keys as an enum, from the one list in include/vgpu/annotations.def. */
#ifndef VGPU_DEVICE_ANNOTATION_H
#define VGPU_DEVICE_ANNOTATION_H

#include <stddef.h>

enum vg_annotation {
#define ROW(name, key, object, help) VG_ANNO_##name,
#include "vgpu/annotations.def"
#undef ROW
	VG_ANNO_COUNT,
};

/* "hami.io/…" */
extern const char *const vg_annotation_key[VG_ANNO_COUNT];

/* The row of a key, or VG_ANNO_COUNT when the key is not ours. The spellings "use-gpuuid" and
 * "nouse-gpuuid", one u short, which front ends write, are found under their row too. */
enum vg_annotation vg_annotation_find(const char *key);

/* Values by row; NULL where the object has none. The texts belong to whoever filled the set. */
struct vg_annotations {
	const char *value[VG_ANNO_COUNT];
};

#endif
