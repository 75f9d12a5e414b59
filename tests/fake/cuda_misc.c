/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that programs call in passing, and objects whose content nobody looks at. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuda_driver.h"

FAKE_CUDA(cuProfilerStart, FAKE_CURRENT, (void), ())
{
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuProfilerStop, FAKE_CURRENT, (void), ())
{
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuFlushGPUDirectRDMAWrites, FAKE_CURRENT, (int target, int scope), (target, scope))
{
	return CUDA_SUCCESS;
}

/* ---- textures and surfaces: handles that remember what they were made of ---- */

#define RESOURCE_BYTES 144u /* CUDA_RESOURCE_DESC */
#define TEXTURE_BYTES  104u /* CUDA_TEXTURE_DESC */
#define VIEW_BYTES     112u /* CUDA_RESOURCE_VIEW_DESC */

struct texture {
	uint64_t id;
	bool surface;
	unsigned char resource[RESOURCE_BYTES], texture[TEXTURE_BYTES], view[VIEW_BYTES];
	struct texture *next;
};

static struct texture *textures;

static struct texture *texture_find(unsigned long long id, bool surface)
{
	for (struct texture *at = textures; at; at = at->next) {
		if (at->id == id && at->surface == surface)
			return at;
	}
	return NULL;
}

static unsigned long long texture_new(const void *resource, const void *texture, const void *view,
				      bool surface)
{
	struct texture *made = vg_new(sizeof(*made));

	made->id = ++fake.next_id;
	made->surface = surface;
	memcpy(made->resource, resource, RESOURCE_BYTES);
	if (texture)
		memcpy(made->texture, texture, TEXTURE_BYTES);
	if (view)
		memcpy(made->view, view, VIEW_BYTES);
	made->next = textures;
	textures = made;
	return made->id;
}

static CUresult texture_destroy(unsigned long long id, bool surface)
{
	for (struct texture **at = &textures; *at; at = &(*at)->next) {
		struct texture *found = *at;

		if (found->id != id || found->surface != surface)
			continue;
		*at = found->next;
		free(found);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

static CUresult texture_give(void *to, unsigned long long id, bool surface, size_t offset,
			     size_t bytes)
{
	const struct texture *found = texture_find(id, surface);

	if (!to || !found)
		return CUDA_ERROR_INVALID_VALUE;
	memcpy(to, (const unsigned char *)found + offset, bytes);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuTexObjectCreate, FAKE_CURRENT,
	  (unsigned long long *id, const void *resource, const void *texture, const void *view),
	  (id, resource, texture, view))
{
	if (!id || !resource || !texture)
		return CUDA_ERROR_INVALID_VALUE;
	*id = texture_new(resource, texture, view, false);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuTexObjectDestroy, FAKE_CURRENT, (unsigned long long id), (id))
{
	return texture_destroy(id, false);
}

FAKE_CUDA(cuTexObjectGetResourceDesc, FAKE_INIT, (void *to, unsigned long long id), (to, id))
{
	return texture_give(to, id, false, offsetof(struct texture, resource), RESOURCE_BYTES);
}

FAKE_CUDA(cuTexObjectGetTextureDesc, FAKE_INIT, (void *to, unsigned long long id), (to, id))
{
	return texture_give(to, id, false, offsetof(struct texture, texture), TEXTURE_BYTES);
}

FAKE_CUDA(cuTexObjectGetResourceViewDesc, FAKE_INIT, (void *to, unsigned long long id), (to, id))
{
	return texture_give(to, id, false, offsetof(struct texture, view), VIEW_BYTES);
}

FAKE_CUDA(cuSurfObjectCreate, FAKE_CURRENT, (unsigned long long *id, const void *resource),
	  (id, resource))
{
	if (!id || !resource)
		return CUDA_ERROR_INVALID_VALUE;
	*id = texture_new(resource, NULL, NULL, true);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuSurfObjectDestroy, FAKE_CURRENT, (unsigned long long id), (id))
{
	return texture_destroy(id, true);
}

FAKE_CUDA(cuSurfObjectGetResourceDesc, FAKE_INIT, (void *to, unsigned long long id), (to, id))
{
	return texture_give(to, id, true, offsetof(struct texture, resource), RESOURCE_BYTES);
}
