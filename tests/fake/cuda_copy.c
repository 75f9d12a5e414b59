/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies and fills. The bytes move when the call is made; the time that it takes goes into the stream.
 * Memory that nobody has written stays unwritten: blocks of zeros are not copied over zeros, so that a
 * program may copy a card's worth of memory on a small machine.
 */
#include <string.h>
#include <sys/mman.h>

#include "cuda_array.h"
#include "cuda_graph.h"

#define BLOCK             65536u
/* Within a card: an H200 copies about 2 TB/s. */
#define CARD_BYTES_PER_US 2000000ull
#define FILL_BYTES_PER_US 3000000ull
/* A fill of more than this is not carried out beyond it; zeros always are. */
#define FILL_BYTES_MAX    (256ull << 20)

/* ---- moving bytes ---- */

static bool all_zero(const unsigned char *data, size_t bytes)
{
	return bytes == 0 || (data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0);
}

static void move_bytes(void *to, const void *from, size_t bytes)
{
	unsigned char *target = to;
	const unsigned char *source = from;

	if (bytes <= BLOCK || (target < source + bytes && source < target + bytes)) {
		memmove(target, source, bytes);
		return;
	}
	for (size_t at = 0; at < bytes; at += BLOCK) {
		size_t part = bytes - at < BLOCK ? bytes - at : BLOCK;

		if (!all_zero(source + at, part) || !all_zero(target + at, part))
			memcpy(target + at, source + at, part);
	}
}

/* Whether [address, address + bytes) is memory that CUDA knows, in one piece or several. */
static bool known_range(uint64_t address, uint64_t bytes)
{
	while (bytes) {
		const struct fake_alloc *alloc = fake_alloc_find(address);
		uint64_t part;

		if (!alloc)
			return false;
		part = alloc->base + alloc->bytes - address;
		if (part >= bytes)
			return true;
		address += part;
		bytes -= part;
	}
	return true;
}

static bool is_host(uint64_t address)
{
	const struct fake_alloc *alloc = fake_alloc_find(address);

	return !alloc || alloc->kind == FAKE_MEM_HOST || alloc->kind == FAKE_MEM_REGISTERED;
}

static void *at(uint64_t address)
{
	return (void *)(uintptr_t)address;
}

static uint64_t copy_ns(uint32_t device, uint64_t bytes, bool over_the_bus)
{
	uint64_t rate = CARD_BYTES_PER_US;

	if (over_the_bus)
		rate = fake.machine.card[fake.device[device].card].copy_bytes_per_us;
	return rate ? bytes * 1000 / rate : 0;
}

/* ---- linear copies ---- */

/* NULL handle with `sync`: the default stream, and back when it is done. */
static CUresult submit(CUstream handle, bool sync, uint64_t ns, struct CUstream_st **ret_stream)
{
	struct CUstream_st *stream;
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc == CUDA_SUCCESS)
		rc = fake_capture_implicit(stream);
	/* A copy engine works beside the SMs. */
	if (rc == CUDA_SUCCESS)
		rc = fake_stream_work(stream, ns, 1);
	if (rc == CUDA_SUCCESS && sync)
		rc = fake_stream_wait(stream);
	if (rc == CUDA_SUCCESS && ret_stream)
		*ret_stream = stream;
	return rc;
}

static CUDA_MEMCPY3D linear(uint64_t to, int to_type, uint64_t from, int from_type, size_t bytes)
{
	CUDA_MEMCPY3D what = {
		.srcMemoryType = from_type,
		.dstMemoryType = to_type,
		.WidthInBytes = bytes,
		.Height = 1,
		.Depth = 1,
	};

	if (from_type == CU_MEMORYTYPE_HOST)
		what.srcHost = at(from);
	else
		what.srcDevice = from;
	if (to_type == CU_MEMORYTYPE_HOST)
		what.dstHost = at(to);
	else
		what.dstDevice = to;
	return what;
}

static CUresult copy(const CUDA_MEMCPY3D *what, CUstream handle, bool sync)
{
	struct CUstream_st *stream;
	CUresult rc = fake_copy_check(what);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!what->WidthInBytes || !what->Height || !what->Depth)
		return CUDA_SUCCESS;
	rc = fake_stream_of(handle, &stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture && !sync) {
		struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_MEMCPY,
					      .copy = { *what, stream->object.context } };

		return fake_capture_add(stream, &action, NULL);
	}
	rc = submit(handle, sync, fake_copy_ns(stream->object.context, what), NULL);
	if (rc == CUDA_SUCCESS)
		fake_copy_move(what);
	return rc;
}

static CUresult copy_linear(uint64_t to, int to_type, uint64_t from, int from_type, size_t bytes,
			    CUstream handle, bool sync)
{
	CUDA_MEMCPY3D what = linear(to, to_type, from, from_type, bytes);

	return copy(&what, handle, sync);
}

#define HOST    CU_MEMORYTYPE_HOST
#define DEVICE  CU_MEMORYTYPE_DEVICE
#define UNIFIED CU_MEMORYTYPE_UNIFIED
/* Measured: a copy on the default stream disturbs nobody's capture, if that stream may work at all. */
#define NEED    FAKE_CURRENT

FAKE_CUDA_SYNC(cuMemcpy, NEED, (CUdeviceptr to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
	return copy_linear(to, UNIFIED, from, UNIFIED, bytes, fake.default_stream, true);
}

FAKE_CUDA_SYNC(cuMemcpyHtoD_v2, NEED, (CUdeviceptr to, const void *from, size_t bytes),
	       (to, from, bytes))
{
	return copy_linear(to, DEVICE, (uint64_t)(uintptr_t)from, HOST, bytes, fake.default_stream,
			   true);
}

FAKE_CUDA_SYNC(cuMemcpyDtoH_v2, NEED, (void *to, CUdeviceptr from, size_t bytes), (to, from, bytes))
{
	return copy_linear((uint64_t)(uintptr_t)to, HOST, from, DEVICE, bytes, fake.default_stream,
			   true);
}

FAKE_CUDA_SYNC(cuMemcpyDtoD_v2, NEED, (CUdeviceptr to, CUdeviceptr from, size_t bytes),
	       (to, from, bytes))
{
	return copy_linear(to, DEVICE, from, DEVICE, bytes, fake.default_stream, true);
}

FAKE_CUDA_SYNC(cuMemcpyPeer, NEED,
	       (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
		size_t bytes),
	       (to, to_context, from, from_context, bytes))
{
	if (!fake_is(to_context, FAKE_CONTEXT) || !fake_is(from_context, FAKE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy_linear(to, DEVICE, from, DEVICE, bytes, fake.default_stream, true);
}

FAKE_CUDA_STREAM(cuMemcpyAsync, FAKE_INIT,
		 (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle),
		 (to, from, bytes, handle), handle)
{
	return copy_linear(to, UNIFIED, from, UNIFIED, bytes, handle, false);
}

FAKE_CUDA_STREAM(cuMemcpyHtoDAsync_v2, FAKE_INIT,
		 (CUdeviceptr to, const void *from, size_t bytes, CUstream handle),
		 (to, from, bytes, handle), handle)
{
	return copy_linear(to, DEVICE, (uint64_t)(uintptr_t)from, HOST, bytes, handle, false);
}

FAKE_CUDA_STREAM(cuMemcpyDtoHAsync_v2, FAKE_INIT,
		 (void *to, CUdeviceptr from, size_t bytes, CUstream handle),
		 (to, from, bytes, handle), handle)
{
	return copy_linear((uint64_t)(uintptr_t)to, HOST, from, DEVICE, bytes, handle, false);
}

FAKE_CUDA_STREAM(cuMemcpyDtoDAsync_v2, FAKE_INIT,
		 (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream handle),
		 (to, from, bytes, handle), handle)
{
	return copy_linear(to, DEVICE, from, DEVICE, bytes, handle, false);
}

FAKE_CUDA_STREAM(cuMemcpyPeerAsync, FAKE_INIT,
		 (CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
		  size_t bytes, CUstream handle),
		 (to, to_context, from, from_context, bytes, handle), handle)
{
	if (!fake_is(to_context, FAKE_CONTEXT) || !fake_is(from_context, FAKE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	return copy_linear(to, DEVICE, from, DEVICE, bytes, handle, false);
}

/* ---- copies of boxes ---- */

struct side {
	unsigned char *data; /* of the first byte to copy */
	uint64_t row, slice; /* bytes from one to the next */
};

static bool side_of(int type, const void *host, CUdeviceptr device, CUarray array, size_t x,
		    size_t y, size_t z, size_t pitch, size_t height, const CUDA_MEMCPY3D *what,
		    struct side *ret)
{
	struct side side;
	uint64_t reach;

	if (type == CU_MEMORYTYPE_ARRAY) {
		if (!fake_is(array, FAKE_ARRAY))
			return false;
		side.row = array->row_bytes;
		side.slice = side.row * (array->shape.Height ? array->shape.Height : 1);
		side.data = array->data + z * side.slice + y * side.row + x;
		reach = z * side.slice + y * side.row + x + (what->Depth - 1) * side.slice +
			(what->Height - 1) * side.row + what->WidthInBytes;
		if (x + what->WidthInBytes > side.row || reach > array->bytes)
			return false;
		*ret = side;
		return true;
	}
	side.row = pitch ? pitch : what->WidthInBytes + x;
	side.slice = side.row * (height ? height : what->Height + y);
	if (what->WidthInBytes + x > side.row)
		return false;
	side.data = (unsigned char *)(type == CU_MEMORYTYPE_HOST ? (uintptr_t)host
								 : (uintptr_t)device) +
		    z * side.slice + y * side.row + x;
	reach = (what->Depth - 1) * side.slice + (what->Height - 1) * side.row + what->WidthInBytes;
	switch (type) {
	case CU_MEMORYTYPE_HOST:
		if (!host)
			return false;
		break;
	case CU_MEMORYTYPE_DEVICE:
		if (!known_range((uint64_t)(uintptr_t)side.data, reach))
			return false;
		break;
	case CU_MEMORYTYPE_UNIFIED:
		if (!device || (fake_alloc_find(device) &&
				!known_range((uint64_t)(uintptr_t)side.data, reach)))
			return false;
		break;
	default:
		return false;
	}
	*ret = side;
	return true;
}

static bool sides_of(const CUDA_MEMCPY3D *what, struct side *ret_from, struct side *ret_to)
{
	return side_of(what->srcMemoryType, what->srcHost, what->srcDevice, what->srcArray,
		       what->srcXInBytes, what->srcY, what->srcZ, what->srcPitch, what->srcHeight,
		       what, ret_from) &&
	       side_of(what->dstMemoryType, what->dstHost, what->dstDevice, what->dstArray,
		       what->dstXInBytes, what->dstY, what->dstZ, what->dstPitch, what->dstHeight,
		       what, ret_to);
}

CUresult fake_copy_check(const CUDA_MEMCPY3D *what)
{
	struct side from, to;

	if (!what)
		return CUDA_ERROR_INVALID_VALUE;
	if (!what->WidthInBytes || !what->Height || !what->Depth)
		return CUDA_SUCCESS;
	return sides_of(what, &from, &to) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

void fake_copy_move(const CUDA_MEMCPY3D *what)
{
	struct side from, to;

	/* What a graph copies may have been freed since the graph was made. */
	if (!what->WidthInBytes || !what->Height || !what->Depth || !sides_of(what, &from, &to))
		return;
	for (size_t z = 0; z < what->Depth; z++) {
		for (size_t y = 0; y < what->Height; y++)
			move_bytes(to.data + z * to.slice + y * to.row,
				   from.data + z * from.slice + y * from.row, what->WidthInBytes);
	}
}

uint64_t fake_copy_ns(const struct CUctx_st *context, const CUDA_MEMCPY3D *what)
{
	bool host = what->srcMemoryType == CU_MEMORYTYPE_HOST ||
		    what->dstMemoryType == CU_MEMORYTYPE_HOST ||
		    (what->srcMemoryType == CU_MEMORYTYPE_UNIFIED && is_host(what->srcDevice)) ||
		    (what->dstMemoryType == CU_MEMORYTYPE_UNIFIED && is_host(what->dstDevice));

	return copy_ns(context->device, what->WidthInBytes * what->Height * what->Depth, host);
}

static CUDA_MEMCPY3D of_2d(const CUDA_MEMCPY2D *flat)
{
	return (CUDA_MEMCPY3D){
		.srcXInBytes = flat->srcXInBytes,
		.srcY = flat->srcY,
		.srcMemoryType = flat->srcMemoryType,
		.srcHost = flat->srcHost,
		.srcDevice = flat->srcDevice,
		.srcArray = flat->srcArray,
		.srcPitch = flat->srcPitch,
		.dstXInBytes = flat->dstXInBytes,
		.dstY = flat->dstY,
		.dstMemoryType = flat->dstMemoryType,
		.dstHost = flat->dstHost,
		.dstDevice = flat->dstDevice,
		.dstArray = flat->dstArray,
		.dstPitch = flat->dstPitch,
		.WidthInBytes = flat->WidthInBytes,
		.Height = flat->Height,
		.Depth = 1,
	};
}

static CUresult copy_2d(const CUDA_MEMCPY2D *flat, CUstream handle, bool sync)
{
	CUDA_MEMCPY3D what;

	if (!flat)
		return CUDA_ERROR_INVALID_VALUE;
	what = of_2d(flat);
	return copy(&what, handle, sync);
}

FAKE_CUDA_SYNC(cuMemcpy2D_v2, NEED, (const CUDA_MEMCPY2D *what), (what))
{
	return copy_2d(what, fake.default_stream, true);
}

FAKE_CUDA_SYNC(cuMemcpy2DUnaligned_v2, NEED, (const CUDA_MEMCPY2D *what), (what))
{
	return copy_2d(what, fake.default_stream, true);
}

FAKE_CUDA_STREAM(cuMemcpy2DAsync_v2, FAKE_INIT, (const CUDA_MEMCPY2D *what, CUstream handle),
		 (what, handle), handle)
{
	return copy_2d(what, handle, false);
}

FAKE_CUDA_SYNC(cuMemcpy3D_v2, NEED, (const CUDA_MEMCPY3D *what), (what))
{
	return copy(what, fake.default_stream, true);
}

FAKE_CUDA_STREAM(cuMemcpy3DAsync_v2, FAKE_INIT, (const CUDA_MEMCPY3D *what, CUstream handle),
		 (what, handle), handle)
{
	return copy(what, handle, false);
}

/* Differs from the other only in members that name contexts, which addresses imply here. */
static CUDA_MEMCPY3D of_peer(const CUDA_MEMCPY3D_PEER *peer)
{
	CUDA_MEMCPY3D what;

	memcpy(&what, peer, sizeof(what));
	what.reserved0 = what.reserved1 = NULL;
	return what;
}

FAKE_CUDA_SYNC(cuMemcpy3DPeer, NEED, (const CUDA_MEMCPY3D_PEER *peer), (peer))
{
	CUDA_MEMCPY3D what;

	if (!peer)
		return CUDA_ERROR_INVALID_VALUE;
	what = of_peer(peer);
	return copy(&what, fake.default_stream, true);
}

FAKE_CUDA_STREAM(cuMemcpy3DPeerAsync, FAKE_INIT, (const CUDA_MEMCPY3D_PEER *peer, CUstream handle),
		 (peer, handle), handle)
{
	CUDA_MEMCPY3D what;

	if (!peer)
		return CUDA_ERROR_INVALID_VALUE;
	what = of_peer(peer);
	return copy(&what, handle, false);
}

/* ---- between arrays and linear memory ---- */

static CUDA_MEMCPY3D one_row(size_t bytes)
{
	return (CUDA_MEMCPY3D){ .WidthInBytes = bytes, .Height = 1, .Depth = 1 };
}

static CUresult array_copy(CUarray to_array, size_t to_offset, uint64_t to, int to_type,
			   CUarray from_array, size_t from_offset, uint64_t from, int from_type,
			   size_t bytes, CUstream handle, bool sync)
{
	CUDA_MEMCPY3D what = one_row(bytes);

	what.srcMemoryType = from_type;
	what.srcArray = from_array;
	what.srcXInBytes = from_offset;
	what.srcHost = at(from);
	what.srcDevice = from;
	what.dstMemoryType = to_type;
	what.dstArray = to_array;
	what.dstXInBytes = to_offset;
	what.dstHost = at(to);
	what.dstDevice = to;
	return copy(&what, handle, sync);
}

#define ARRAY CU_MEMORYTYPE_ARRAY

FAKE_CUDA_SYNC(cuMemcpyDtoA_v2, NEED,
	       (CUarray to, size_t to_offset, CUdeviceptr from, size_t bytes),
	       (to, to_offset, from, bytes))
{
	return array_copy(to, to_offset, 0, ARRAY, NULL, 0, from, DEVICE, bytes,
			  fake.default_stream, true);
}

FAKE_CUDA_SYNC(cuMemcpyAtoD_v2, NEED,
	       (CUdeviceptr to, CUarray from, size_t from_offset, size_t bytes),
	       (to, from, from_offset, bytes))
{
	return array_copy(NULL, 0, to, DEVICE, from, from_offset, 0, ARRAY, bytes,
			  fake.default_stream, true);
}

FAKE_CUDA_SYNC(cuMemcpyHtoA_v2, NEED,
	       (CUarray to, size_t to_offset, const void *from, size_t bytes),
	       (to, to_offset, from, bytes))
{
	return array_copy(to, to_offset, 0, ARRAY, NULL, 0, (uint64_t)(uintptr_t)from, HOST, bytes,
			  fake.default_stream, true);
}

FAKE_CUDA_SYNC(cuMemcpyAtoH_v2, NEED, (void *to, CUarray from, size_t from_offset, size_t bytes),
	       (to, from, from_offset, bytes))
{
	return array_copy(NULL, 0, (uint64_t)(uintptr_t)to, HOST, from, from_offset, 0, ARRAY,
			  bytes, fake.default_stream, true);
}

FAKE_CUDA_SYNC(cuMemcpyAtoA_v2, NEED,
	       (CUarray to, size_t to_offset, CUarray from, size_t from_offset, size_t bytes),
	       (to, to_offset, from, from_offset, bytes))
{
	return array_copy(to, to_offset, 0, ARRAY, from, from_offset, 0, ARRAY, bytes,
			  fake.default_stream, true);
}

FAKE_CUDA_STREAM(cuMemcpyHtoAAsync_v2, FAKE_INIT,
		 (CUarray to, size_t to_offset, const void *from, size_t bytes, CUstream handle),
		 (to, to_offset, from, bytes, handle), handle)
{
	return array_copy(to, to_offset, 0, ARRAY, NULL, 0, (uint64_t)(uintptr_t)from, HOST, bytes,
			  handle, false);
}

FAKE_CUDA_STREAM(cuMemcpyAtoHAsync_v2, FAKE_INIT,
		 (void *to, CUarray from, size_t from_offset, size_t bytes, CUstream handle),
		 (to, from, from_offset, bytes, handle), handle)
{
	return array_copy(NULL, 0, (uint64_t)(uintptr_t)to, HOST, from, from_offset, 0, ARRAY,
			  bytes, handle, false);
}

/* ---- fills ---- */

CUresult fake_set_check(const CUDA_MEMSET_NODE_PARAMS *what)
{
	uint64_t row = what->width * what->elementSize, reach;

	if (what->elementSize != 1 && what->elementSize != 2 && what->elementSize != 4)
		return CUDA_ERROR_INVALID_VALUE;
	if (!what->width || !what->height)
		return CUDA_SUCCESS;
	if (what->dst % what->elementSize || (what->height > 1 && what->pitch < row))
		return CUDA_ERROR_INVALID_VALUE;
	reach = (what->height - 1) * what->pitch + row;
	return known_range(what->dst, reach) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void zero_bytes(unsigned char *data, size_t bytes)
{
	const struct fake_alloc *alloc = fake_alloc_find((uint64_t)(uintptr_t)data);
	uintptr_t start = ((uintptr_t)data + 4095) / 4096 * 4096;
	uintptr_t end = ((uintptr_t)data + bytes) / 4096 * 4096;

	/* Private pages read as zeros once they are given back; shared ones would not. */
	if (bytes > BLOCK && end > start && alloc && alloc->kind != FAKE_MEM_MAPPED &&
	    alloc->kind != FAKE_MEM_IMPORTED && alloc->kind != FAKE_MEM_REGISTERED &&
	    !alloc->share && madvise((void *)start, end - start, MADV_DONTNEED) == 0) {
		memset(data, 0, start - (uintptr_t)data);
		memset((void *)end, 0, (uintptr_t)data + bytes - end);
		return;
	}
	for (size_t done = 0; done < bytes; done += BLOCK) {
		size_t part = bytes - done < BLOCK ? bytes - done : BLOCK;

		if (!all_zero(data + done, part))
			memset(data + done, 0, part);
	}
}

void fake_set_fill(const CUDA_MEMSET_NODE_PARAMS *what)
{
	uint64_t row = what->width * what->elementSize, left = FILL_BYTES_MAX;

	if (fake_set_check(what) != CUDA_SUCCESS)
		return;
	for (size_t y = 0; y < what->height && left; y++) {
		unsigned char *data = at(what->dst + y * what->pitch);
		uint64_t bytes = row;

		if (!what->value) {
			zero_bytes(data, bytes);
			continue;
		}
		if (bytes > left)
			bytes = left;
		left -= bytes;
		if (what->elementSize == 1) {
			memset(data, (int)what->value, bytes);
			continue;
		}
		for (uint64_t x = 0; x + what->elementSize <= bytes; x += what->elementSize)
			memcpy(data + x, &what->value, what->elementSize);
	}
}

uint64_t fake_set_ns(const CUDA_MEMSET_NODE_PARAMS *what)
{
	return what->width * what->elementSize * what->height * 1000 / FILL_BYTES_PER_US;
}

static CUresult fill(CUdeviceptr to, size_t pitch, uint32_t value, uint32_t element, size_t width,
		     size_t height, CUstream handle)
{
	CUDA_MEMSET_NODE_PARAMS what = { to, pitch, value, element, width, height };
	struct CUstream_st *stream;
	CUresult rc = fake_set_check(&what);

	if (rc != CUDA_SUCCESS)
		return rc;
	rc = fake_stream_of(handle, &stream);
	if (rc != CUDA_SUCCESS)
		return rc;
	if (stream->capture) {
		struct fake_action action = { .type = CU_GRAPH_NODE_TYPE_MEMSET,
					      .set = { what, stream->object.context } };

		return fake_capture_add(stream, &action, NULL);
	}
	/* On device memory the call without a stream does not wait either. */
	rc = submit(handle, false, fake_set_ns(&what), NULL);
	if (rc == CUDA_SUCCESS)
		fake_set_fill(&what);
	return rc;
}

#define FILLS(bits, type)                                                                          \
	FAKE_CUDA_SYNC(cuMemsetD##bits##_v2, FAKE_CURRENT,                                         \
		       (CUdeviceptr to, type value, size_t count), (to, value, count))             \
	{                                                                                          \
		return fill(to, 0, value, (bits) / 8, count, 1, fake.default_stream);              \
	}                                                                                          \
	FAKE_CUDA_STREAM(cuMemsetD##bits##Async, FAKE_INIT,                                        \
			 (CUdeviceptr to, type value, size_t count, CUstream handle),              \
			 (to, value, count, handle), handle)                                       \
	{                                                                                          \
		return fill(to, 0, value, (bits) / 8, count, 1, handle);                           \
	}                                                                                          \
	FAKE_CUDA_SYNC(cuMemsetD2D##bits##_v2, FAKE_CURRENT,                                       \
		       (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height),    \
		       (to, pitch, value, width, height))                                          \
	{                                                                                          \
		return fill(to, pitch, value, (bits) / 8, width, height, fake.default_stream);     \
	}                                                                                          \
	FAKE_CUDA_STREAM(cuMemsetD2D##bits##Async, FAKE_INIT,                                      \
			 (CUdeviceptr to, size_t pitch, type value, size_t width, size_t height,   \
			  CUstream handle),                                                        \
			 (to, pitch, value, width, height, handle), handle)                        \
	{                                                                                          \
		return fill(to, pitch, value, (bits) / 8, width, height, handle);                  \
	}

FILLS(8, unsigned char)
FILLS(16, unsigned short)
FILLS(32, unsigned int)

/* ---- managed memory ---- */

static CUresult prefetch(CUdeviceptr pointer, size_t bytes, CUmemLocation to, CUstream handle)
{
	struct CUstream_st *stream;
	struct fake_alloc *alloc = fake_alloc_find(pointer);
	CUresult rc = fake_stream_of(handle, &stream);

	if (rc != CUDA_SUCCESS)
		return rc;
	if (!alloc || alloc->kind != FAKE_MEM_MANAGED || !bytes ||
	    bytes > alloc->base + alloc->bytes - pointer)
		return CUDA_ERROR_INVALID_VALUE;
	rc = fake_capture_refuses(stream);
	if (rc == CUDA_SUCCESS)
		rc = fake_managed_move(alloc, to);
	if (rc == CUDA_SUCCESS)
		rc = fake_stream_work(stream, copy_ns(stream->object.context->device, bytes, true),
				      1);
	return rc;
}

FAKE_CUDA_STREAM(cuMemPrefetchAsync_v2, FAKE_INIT,
		 (CUdeviceptr pointer, size_t bytes, CUmemLocation to, unsigned int flags,
		  CUstream handle),
		 (pointer, bytes, to, flags, handle), handle)
{
	return flags ? CUDA_ERROR_INVALID_VALUE : prefetch(pointer, bytes, to, handle);
}

/* Before CUDA 12.2 the place was a device, or -1 for the host. */
FAKE_CUDA_STREAM(cuMemPrefetchAsync, FAKE_INIT,
		 (CUdeviceptr pointer, size_t bytes, CUdevice to, CUstream handle),
		 (pointer, bytes, to, handle), handle)
{
	CUmemLocation place = { to == -1 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE,
				to };

	return prefetch(pointer, bytes, place, handle);
}

static CUresult advise(CUdeviceptr pointer, size_t bytes, CUmem_advise advice)
{
	const struct fake_alloc *alloc = fake_alloc_find(pointer);

	if (advice < 1 || advice > 6 || !alloc || alloc->kind != FAKE_MEM_MANAGED || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuMemAdvise, FAKE_INIT,
	  (CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUdevice ordinal),
	  (pointer, bytes, advice, ordinal))
{
	if (ordinal != -1 && !fake_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	return advise(pointer, bytes, advice);
}

FAKE_CUDA(cuMemAdvise_v2, FAKE_INIT,
	  (CUdeviceptr pointer, size_t bytes, CUmem_advise advice, CUmemLocation place),
	  (pointer, bytes, advice, place))
{
	if (place.type == CU_MEM_LOCATION_TYPE_DEVICE && !fake_device(place.id))
		return CUDA_ERROR_INVALID_DEVICE;
	return advise(pointer, bytes, advice);
}

/* Nothing was ever advised. */
FAKE_CUDA(cuMemRangeGetAttribute, FAKE_INIT,
	  (void *data, size_t size, CUmem_range_attribute attribute, CUdeviceptr pointer,
	   size_t bytes),
	  (data, size, attribute, pointer, bytes))
{
	const struct fake_alloc *alloc = fake_alloc_find(pointer);

	if (!data || !size || attribute < 1 || attribute > 8 || !alloc ||
	    alloc->kind != FAKE_MEM_MANAGED || !bytes)
		return CUDA_ERROR_INVALID_VALUE;
	memset(data, 0, size);
	if (attribute == 4 && size == sizeof(int)) /* last prefetched to */
		*(int *)data = alloc->charged_bytes ? (int)alloc->device : -2;
	return CUDA_SUCCESS;
}
