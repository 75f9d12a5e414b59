/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and mipmapped arrays: shapes of device memory. Their texels are never looked at, so what a
 * copy moves is the bytes, in rows of the array's width. */
#include "cuda_array.h"

#include <string.h>

#define FLAGS_KNOWN 0xffu

struct format {
	CUarray_format first, last;
	uint32_t bits; /* of a texel; of one channel where `per_channel` */
	bool per_channel;
};

static const struct format formats[] = {
	{ 0x01, 0x01, 8, true }, /* unsigned integers */
	{ 0x02, 0x02, 16, true },
	{ 0x03, 0x03, 32, true },
	{ 0x08, 0x08, 8, true }, /* signed integers */
	{ 0x09, 0x09, 16, true },
	{ 0x0a, 0x0a, 32, true },
	{ 0x10, 0x10, 16, true }, /* half */
	{ 0x20, 0x20, 32, true }, /* float */
	{ 0x50, 0x50, 32, false },
	{ 0x91, 0x92, 4, false }, /* block compressed */
	{ 0x93, 0x96, 8, false },
	{ 0x97, 0x98, 4, false },
	{ 0x99, 0x9e, 8, false },
	{ 0x9f, 0x9f, 24, false }, /* video: all planes together */
	{ 0xa1, 0xa1, 24, false },
	{ 0xa2, 0xa2, 16, false },
	{ 0xa3, 0xa4, 32, false },
	{ 0xa5, 0xa5, 16, false },
	{ 0xa6, 0xa9, 32, false },
	{ 0xb0, 0xb0, 12, false },
	{ 0xb1, 0xb1, 64, false },
	{ 0xb2, 0xb2, 24, false },
	{ 0xb3, 0xb3, 48, false },
	{ 0xc0, 0xc0, 8, false }, /* normalised, the channels in the name */
	{ 0xc1, 0xc1, 16, false },
	{ 0xc2, 0xc2, 32, false },
	{ 0xc3, 0xc3, 16, false },
	{ 0xc4, 0xc4, 32, false },
	{ 0xc5, 0xc5, 64, false },
	{ 0xc6, 0xc6, 8, false },
	{ 0xc7, 0xc7, 16, false },
	{ 0xc8, 0xc8, 32, false },
	{ 0xc9, 0xc9, 16, false },
	{ 0xca, 0xca, 32, false },
	{ 0xcb, 0xcb, 64, false },
};

static const struct format *format_of(CUarray_format format)
{
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (format >= formats[i].first && format <= formats[i].last)
			return &formats[i];
	}
	return NULL;
}

static bool shape_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, uint64_t *ret_bytes,
			uint64_t *ret_row_bytes)
{
	const struct format *format = format_of(shape->Format);
	uint64_t height = shape->Height ? shape->Height : 1;
	uint64_t depth = shape->Depth ? shape->Depth : 1;
	uint64_t bits, row;

	if (!format || !shape->Width || (shape->Flags & ~FLAGS_KNOWN) || !shape->NumChannels ||
	    shape->NumChannels > 4)
		return false;
	bits = format->bits;
	if (format->per_channel) {
		if (shape->NumChannels == 3)
			return false;
		bits *= shape->NumChannels;
	}
	/* The maker's limits for a texture are of this order. */
	if (shape->Width > 1u << 20 || height > 1u << 20 || depth > 1u << 17)
		return false;
	row = (shape->Width * bits + 7) / 8;
	*ret_row_bytes = row;
	*ret_bytes = row * height * depth;
	return true;
}

/*
 * What the shape takes on a card: rows of whole 64 bytes, in bands of up to 128 rows. Measured: 904 rows
 * of 904 texels of 16 bytes take 1,024 rows.
 */
static uint64_t padded_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, uint64_t bytes,
			     uint64_t row_bytes)
{
	uint64_t height = shape->Height ? shape->Height : 1, band = 8;
	uint64_t slices = bytes / (row_bytes * height);

	if (height == 1)
		band = 1;
	while (band > 1 && band < 128 && band < height)
		band *= 2;
	return (row_bytes + 63) / 64 * 64 * ((height + band - 1) / band * band) * slices;
}

/* Small ones share pages with other small things of the context. */
static CUresult storage_take(struct CUctx_st *context, unsigned int flags, uint64_t bytes,
			     struct fake_storage *ret_storage)
{
	struct fake_storage storage = { .context = context, .map_bytes = fake_page_round(bytes) };
	bool later = flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING);

	if (!later && bytes <= FAKE_PAGE) {
		storage.block = fake_arena_take(&context->arrays, bytes);
		if (!storage.block)
			return CUDA_ERROR_OUT_OF_MEMORY;
		storage.data = fake_block_address(storage.block);
		*ret_storage = storage;
		return CUDA_SUCCESS;
	}
	if (!later) {
		storage.charged_bytes = storage.map_bytes;
		if (!fake_charge(&fake.device[context->device], storage.charged_bytes))
			return CUDA_ERROR_OUT_OF_MEMORY;
	}
	storage.data = fake_map(storage.map_bytes);
	if (!storage.data) {
		fake_uncharge(&fake.device[context->device], storage.charged_bytes);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	*ret_storage = storage;
	return CUDA_SUCCESS;
}

static void storage_give(struct fake_storage *storage)
{
	if (storage->block) {
		fake_arena_give(&storage->context->arrays, storage->block);
		fake_arena_trim(&storage->context->arrays, 0);
	} else if (storage->data) {
		fake_unmap(storage->data, storage->map_bytes);
		if (storage->charged_bytes)
			fake_uncharge(&fake.device[storage->context->device],
				      storage->charged_bytes);
	}
}

static CUresult array_create(CUarray *ret_array, const CUDA_ARRAY3D_DESCRIPTOR *shape)
{
	struct CUctx_st *context = fake_current();
	struct fake_storage storage;
	struct CUarray_st *array;
	uint64_t bytes, row_bytes;
	CUresult rc;

	if (!ret_array || !shape_bytes(shape, &bytes, &row_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	rc = storage_take(context, shape->Flags, padded_bytes(shape, bytes, row_bytes), &storage);
	if (rc != CUDA_SUCCESS)
		return rc;
	array = fake_object_new(sizeof(*array), FAKE_ARRAY, context);
	array->shape = *shape;
	array->storage = storage;
	array->data = storage.data;
	array->row_bytes = row_bytes;
	array->bytes = bytes;
	*ret_array = array;
	return CUDA_SUCCESS;
}

void fake_array_release(struct CUarray_st *array)
{
	storage_give(&array->storage);
}

void fake_mipmap_release(struct CUmipmappedArray_st *mipmap)
{
	for (unsigned int i = 0; i < mipmap->levels; i++) {
		if (mipmap->level[i])
			fake_object_destroy(&mipmap->level[i]->object);
	}
	storage_give(&mipmap->storage);
}

FAKE_CUDA(cuArray3DCreate_v2, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR *shape), (array, shape))
{
	return shape ? array_create(array, shape) : CUDA_ERROR_INVALID_VALUE;
}

FAKE_CUDA(cuArrayCreate_v2, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUarray * array, const CUDA_ARRAY_DESCRIPTOR *shape), (array, shape))
{
	CUDA_ARRAY3D_DESCRIPTOR full;

	if (!shape)
		return CUDA_ERROR_INVALID_VALUE;
	full = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = shape->Width,
		.Height = shape->Height,
		.Format = shape->Format,
		.NumChannels = shape->NumChannels,
	};
	return array_create(array, &full);
}

FAKE_CUDA(cuArray3DCreate, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUarray * array, const CUDA_ARRAY3D_DESCRIPTOR_v1 *shape), (array, shape))
{
	CUDA_ARRAY3D_DESCRIPTOR full;

	if (!shape)
		return CUDA_ERROR_INVALID_VALUE;
	full = (CUDA_ARRAY3D_DESCRIPTOR){ shape->Width,  shape->Height,      shape->Depth,
					  shape->Format, shape->NumChannels, shape->Flags };
	return array_create(array, &full);
}

FAKE_CUDA(cuArrayCreate, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUarray * array, const CUDA_ARRAY_DESCRIPTOR_v1 *shape), (array, shape))
{
	CUDA_ARRAY3D_DESCRIPTOR full;

	if (!shape)
		return CUDA_ERROR_INVALID_VALUE;
	full = (CUDA_ARRAY3D_DESCRIPTOR){
		.Width = shape->Width,
		.Height = shape->Height,
		.Format = shape->Format,
		.NumChannels = shape->NumChannels,
	};
	return array_create(array, &full);
}

FAKE_CUDA(cuArrayDestroy, FAKE_INIT | FAKE_UNSAFE, (CUarray array), (array))
{
	if (!fake_is(array, FAKE_ARRAY) || array->mipmap)
		return CUDA_ERROR_INVALID_HANDLE;
	fake_device_wait(array->object.context->device);
	if (!fake_is(array, FAKE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_destroy(&array->object);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuArray3DGetDescriptor_v2, FAKE_INIT, (CUDA_ARRAY3D_DESCRIPTOR * shape, CUarray array),
	  (shape, array))
{
	if (!shape)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(array, FAKE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	*shape = array->shape;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuArrayGetDescriptor_v2, FAKE_INIT, (CUDA_ARRAY_DESCRIPTOR * shape, CUarray array),
	  (shape, array))
{
	if (!shape)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(array, FAKE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	*shape = (CUDA_ARRAY_DESCRIPTOR){ array->shape.Width, array->shape.Height,
					  array->shape.Format, array->shape.NumChannels };
	return CUDA_SUCCESS;
}

static CUresult requirements(CUDA_ARRAY_MEMORY_REQUIREMENTS *ret, uint64_t bytes)
{
	*ret = (CUDA_ARRAY_MEMORY_REQUIREMENTS){
		.size = (bytes + 65535) / 65536 * 65536,
		.alignment = 65536,
	};
	return CUDA_SUCCESS;
}

/* Says something only about arrays whose memory is mapped later. */
FAKE_CUDA(cuArrayGetMemoryRequirements, FAKE_INIT,
	  (CUDA_ARRAY_MEMORY_REQUIREMENTS * ret, CUarray array, CUdevice ordinal),
	  (ret, array, ordinal))
{
	if (!ret || !fake_device(ordinal))
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(array, FAKE_ARRAY))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!(array->shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_INVALID_VALUE;
	return requirements(ret, array->bytes);
}

/* ---- mipmaps ---- */

static CUDA_ARRAY3D_DESCRIPTOR level_shape(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int level)
{
	CUDA_ARRAY3D_DESCRIPTOR part = *shape;
	bool layered = shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP);

	part.Width = shape->Width >> level ? shape->Width >> level : 1;
	if (shape->Height)
		part.Height = shape->Height >> level ? shape->Height >> level : 1;
	if (shape->Depth && !layered)
		part.Depth = shape->Depth >> level ? shape->Depth >> level : 1;
	return part;
}

FAKE_CUDA(cuMipmappedArrayCreate, FAKE_CURRENT | FAKE_UNSAFE,
	  (CUmipmappedArray * ret_mipmap, const CUDA_ARRAY3D_DESCRIPTOR *shape,
	   unsigned int levels),
	  (ret_mipmap, shape, levels))
{
	struct CUctx_st *context = fake_current();
	struct CUmipmappedArray_st *mipmap;
	struct fake_storage storage;
	uint64_t bytes, row_bytes, total = 0, largest;
	CUresult rc;

	if (!ret_mipmap || !shape || !levels || !shape_bytes(shape, &bytes, &row_bytes))
		return CUDA_ERROR_INVALID_VALUE;
	largest = shape->Width;
	if (shape->Height > largest)
		largest = shape->Height;
	if (shape->Depth > largest && !(shape->Flags & CUDA_ARRAY3D_LAYERED))
		largest = shape->Depth;
	/* No more levels than it takes to get to one texel: too many are cut, not refused. */
	if (levels > 64 - (unsigned int)__builtin_clzll(largest))
		levels = 64 - (unsigned int)__builtin_clzll(largest);
	for (unsigned int i = 0; i < levels; i++) {
		CUDA_ARRAY3D_DESCRIPTOR part = level_shape(shape, i);

		shape_bytes(&part, &bytes, &row_bytes);
		total += padded_bytes(&part, bytes, row_bytes);
	}
	rc = storage_take(context, shape->Flags, total, &storage);
	if (rc != CUDA_SUCCESS)
		return rc;
	mipmap = fake_object_new(sizeof(*mipmap), FAKE_MIPMAP, context);
	mipmap->shape = *shape;
	mipmap->storage = storage;
	mipmap->levels = levels;
	mipmap->bytes = total;
	*ret_mipmap = mipmap;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMipmappedArrayDestroy, FAKE_INIT | FAKE_UNSAFE, (CUmipmappedArray mipmap), (mipmap))
{
	if (!fake_is(mipmap, FAKE_MIPMAP))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_device_wait(mipmap->object.context->device);
	if (!fake_is(mipmap, FAKE_MIPMAP))
		return CUDA_ERROR_INVALID_HANDLE;
	fake_object_destroy(&mipmap->object);
	return CUDA_SUCCESS;
}

/* The level's array belongs to the mipmap and is the same each time. */
FAKE_CUDA(cuMipmappedArrayGetLevel, FAKE_INIT,
	  (CUarray * ret_array, CUmipmappedArray mipmap, unsigned int level),
	  (ret_array, mipmap, level))
{
	unsigned char *data;
	uint64_t bytes, row_bytes;
	struct CUarray_st *array;

	if (!ret_array)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(mipmap, FAKE_MIPMAP))
		return CUDA_ERROR_INVALID_HANDLE;
	if (level >= mipmap->levels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!mipmap->level[level]) {
		data = mipmap->storage.data;
		for (unsigned int i = 0; i < level; i++) {
			CUDA_ARRAY3D_DESCRIPTOR part = level_shape(&mipmap->shape, i);

			shape_bytes(&part, &bytes, &row_bytes);
			data += padded_bytes(&part, bytes, row_bytes);
		}
		/* In no context's list: it ends with the mipmap. */
		array = fake_object_new(sizeof(*array), FAKE_ARRAY, NULL);
		array->shape = level_shape(&mipmap->shape, level);
		shape_bytes(&array->shape, &array->bytes, &array->row_bytes);
		array->data = data;
		array->mipmap = mipmap;
		mipmap->level[level] = array;
	}
	*ret_array = mipmap->level[level];
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMipmappedArrayGetMemoryRequirements, FAKE_INIT,
	  (CUDA_ARRAY_MEMORY_REQUIREMENTS * ret, CUmipmappedArray mipmap, CUdevice ordinal),
	  (ret, mipmap, ordinal))
{
	if (!ret || !fake_device(ordinal))
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(mipmap, FAKE_MIPMAP))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!(mipmap->shape.Flags & CUDA_ARRAY3D_DEFERRED_MAPPING))
		return CUDA_ERROR_INVALID_VALUE;
	return requirements(ret, mipmap->bytes);
}
