/* SPDX-License-Identifier: Apache-2.0 */
#include "device/annotation.h"

#include <string.h>

const char *const vg_annotation_key[VG_ANNO_COUNT] = {
#define ROW(name, key, object, help) [VG_ANNO_##name] = (key),
#include "vgpu/annotations.def"
#undef ROW
};

struct row {
	const char *key;
	size_t size;
	enum vg_annotation annotation;
};

static const struct row rows[] = {
#define ROW(name, key, object, help) { (key), sizeof(key) - 1, VG_ANNO_##name },
#include "vgpu/annotations.def"
#undef ROW
	/* With one u less: front ends write it, and it reads as the same thing. */
	{ "nvidia.com/use-gpuuid", sizeof("nvidia.com/use-gpuuid") - 1, VG_ANNO_POD_USE_UUID },
	{ "nvidia.com/nouse-gpuuid", sizeof("nvidia.com/nouse-gpuuid") - 1,
	  VG_ANNO_POD_NOUSE_UUID },
};

enum vg_annotation vg_annotation_find(const char *key)
{
	size_t size = strlen(key);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].size == size && memcmp(rows[i].key, key, size) == 0)
			return rows[i].annotation;
	return VG_ANNO_COUNT;
}
