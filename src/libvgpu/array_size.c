/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much memory an array takes. The driver tells only for sparse arrays, so it is computed: rows in
 * units of 64 bytes, rows grouped in blocks of 8 to 128 (a power of two), large ones rounded to 2 MiB.
 * Compared with what left the card on an H200: docs/benchmarks.md.
 */
#include "libvgpu/guest.h"

struct format {
	uint8_t bits;  /* per channel of a texel, or per texel for packed formats */
	bool packed;   /* bits are those of the whole texel: channels don't multiply */
	uint8_t block; /* side of a compressed block, 1 */
};

static struct format format_of(CUarray_format format)
{
	switch (format) {
	case 0x01: /* unsigned and signed 8 bit */
	case 0x08:
		return (struct format){ 8, false, 1 };
	case 0x02:
	case 0x09:
	case 0x10: /* half */
		return (struct format){ 16, false, 1 };
	case 0x03:
	case 0x0a:
	case 0x20: /* float */
		return (struct format){ 32, false, 1 };
	case 0x50: /* 10:10:10:2 */
		return (struct format){ 32, true, 1 };
	case 0x91: /* BC1, BC4: 8 bytes per 4 x 4 */
	case 0x92:
	case 0x97:
	case 0x98:
		return (struct format){ 64, true, 4 };
	case 0x93: /* BC2, BC3, BC5, BC6H, BC7: 16 bytes per 4 x 4 */
	case 0x94:
	case 0x95:
	case 0x96:
	case 0x99:
	case 0x9a:
	case 0x9b:
	case 0x9c:
	case 0x9d:
	case 0x9e:
		return (struct format){ 128, true, 4 };
	case 0xb0: /* NV12: 8 bit luma, half as much chroma */
		return (struct format){ 12, true, 1 };
	case 0xc0: /* normalised: width and count in the name */
	case 0xc6:
		return (struct format){ 8, true, 1 };
	case 0xc1:
	case 0xc7:
	case 0xc3:
	case 0xc9:
		return (struct format){ 16, true, 1 };
	case 0xc2:
	case 0xc8:
	case 0xc4:
	case 0xca:
		return (struct format){ 32, true, 1 };
	case 0xc5:
	case 0xcb:
		return (struct format){ 64, true, 1 };
	case 0x9f: /* P010, P016 */
	case 0xa1:
	case 0xa2: /* NV16 */
	case 0xa4: /* YUY2 */
		return (struct format){ 24, true, 1 };
	default: /* other video formats: no texel is wider */
		return (struct format){ 64, true, 1 };
	}
}

static uint64_t times(uint64_t a, uint64_t b)
{
	uint64_t product;

	return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX / 4 : product;
}

static uint64_t up(uint64_t value, uint64_t step)
{
	return value > UINT64_MAX / 2 ? value : (value + step - 1) & ~(step - 1);
}

static uint64_t level_bytes(const struct format *f, unsigned int channels, uint64_t width,
			    uint64_t height, uint64_t layers)
{
	uint64_t row, rows = (height + f->block - 1u) / f->block, group = 8;

	row = times((width + f->block - 1u) / f->block, f->bits);
	if (!f->packed)
		row = times(row, channels == 3 ? 4 : channels);
	row = up(row / 8 + (row % 8 != 0), 64);
	while (group < 128 && group < rows)
		group *= 2;
	return times(times(row, up(rows, group)), layers);
}

uint64_t vg_array_bytes(const CUDA_ARRAY3D_DESCRIPTOR *shape, unsigned int levels)
{
	struct format f = format_of(shape->Format);
	uint64_t width = shape->Width, height = shape->Height ? shape->Height : 1;
	uint64_t depth = shape->Depth ? shape->Depth : 1, total = 0;
	bool layered = (shape->Flags & (CUDA_ARRAY3D_LAYERED | CUDA_ARRAY3D_CUBEMAP)) != 0;

	/* Their memory comes from cuMemCreate, and is charged there. */
	if (shape->Flags & (CUDA_ARRAY3D_SPARSE | CUDA_ARRAY3D_DEFERRED_MAPPING))
		return 0;
	if (!width || levels == 0)
		return 0;
	for (unsigned int level = 0; level < levels && level < 64; level++) {
		uint64_t bytes = level_bytes(&f, shape->NumChannels, width, height, depth);

		total = total > UINT64_MAX / 4 - bytes ? UINT64_MAX / 4 : total + bytes;
		if (width == 1 && height == 1 && (layered || depth == 1))
			break;
		width = width > 1 ? width / 2 : 1;
		height = height > 1 ? height / 2 : 1;
		if (!layered)
			depth = depth > 1 ? depth / 2 : 1;
	}
	return total > 1u << 20 ? up(total, 2u << 20) : up(total, 65536);
}
