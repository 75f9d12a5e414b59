/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of one process in another. When an allocation is exported its pages move to a memory file,
 * under the same address; the other process opens that file through /proc and finds the same bytes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cuda_driver.h"

#define HANDLE_MAGIC 0x66616b6549504331ull

/* What the 64 bytes of a handle hold. */
struct handle {
	uint64_t magic;
	uint32_t pid;
	int32_t fd;
	uint64_t map_bytes; /* of the file */
	uint64_t offset;    /* of the allocation in it */
	uint64_t bytes;
	uint32_t unit;
};

_Static_assert(sizeof(struct handle) <= sizeof(CUipcMemHandle), "fits");

/* The pages that hold the allocation: its own, or the segment that it shares with others. */
static void pages_of(const struct fake_alloc *alloc, unsigned char **ret_data, uint64_t *ret_bytes)
{
	if (alloc->block) {
		*ret_data = fake_block_segment(alloc->block, ret_bytes);
	} else {
		*ret_data = alloc->mapping;
		*ret_bytes = alloc->mapping_bytes;
	}
}

static bool all_zero(const unsigned char *data, size_t bytes)
{
	return data[0] == 0 && memcmp(data, data + 1, bytes - 1) == 0;
}

/* Moves the pages into a file; -1 when that fails. */
static int pages_share(unsigned char *data, uint64_t bytes)
{
	int fd = memfd_create("fake device memory", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)bytes) < 0)
		goto fail;
	for (uint64_t at = 0; at < bytes; at += 4096) {
		if (!all_zero(data + at, 4096) && pwrite(fd, data + at, 4096, (off_t)at) != 4096)
			goto fail;
	}
	if (mmap(data, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		 0) == MAP_FAILED)
		goto fail;
	return fd;
fail:
	if (fd >= 0)
		close(fd);
	return -1;
}

FAKE_CUDA(cuIpcGetMemHandle, FAKE_CURRENT, (CUipcMemHandle * ret_handle, CUdeviceptr pointer),
	  (ret_handle, pointer))
{
	struct fake_alloc *alloc = fake_alloc_find(pointer);
	struct handle handle = { .magic = HANDLE_MAGIC, .pid = (uint32_t)getpid() };
	unsigned char *data;
	int *share;

	if (!ret_handle || !alloc || alloc->kind != FAKE_MEM_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	pages_of(alloc, &data, &handle.map_bytes);
	share = alloc->block ? fake_block_share(alloc->block) : &alloc->share;
	if (!*share) {
		int fd = pages_share(data, handle.map_bytes);

		if (fd < 0)
			return CUDA_ERROR_OPERATING_SYSTEM;
		*share = fd + 1;
	}
	handle.fd = *share - 1;
	handle.offset = alloc->base - (uint64_t)(uintptr_t)data;
	handle.bytes = alloc->bytes;
	handle.unit = fake.device[alloc->device].unit;
	memset(ret_handle, 0, sizeof(*ret_handle));
	memcpy(ret_handle, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

static CUresult open_handle(CUdeviceptr *pointer, const CUipcMemHandle *given, unsigned int flags)
{
	struct CUctx_st *context = fake_current();
	struct fake_alloc alloc = { .kind = FAKE_MEM_IMPORTED, .context = context, .opens = 1 };
	struct handle handle;
	char path[64];
	void *data;
	int fd;

	memcpy(&handle, given, sizeof(handle));
	if (!pointer || flags != CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS || handle.magic != HANDLE_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	/* A process cannot open what is its own. */
	if (handle.pid == (uint32_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	for (struct fake_alloc *other = fake_allocs(); other; other = other->next) {
		if (other->kind == FAKE_MEM_IMPORTED && other->id_of_other == handle.offset &&
		    other->pid_of_other == handle.pid && other->fd_of_other == handle.fd) {
			other->opens++;
			*pointer = other->base;
			return CUDA_SUCCESS;
		}
	}
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", handle.pid, handle.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return CUDA_ERROR_INVALID_VALUE;
	data = mmap(NULL, handle.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		    0);
	close(fd);
	if (data == MAP_FAILED)
		return CUDA_ERROR_MAP_FAILED;
	alloc.mapping = data;
	alloc.mapping_bytes = handle.map_bytes;
	alloc.base = (uint64_t)(uintptr_t)data + handle.offset;
	alloc.bytes = handle.bytes;
	alloc.pid_of_other = handle.pid;
	alloc.fd_of_other = handle.fd;
	alloc.id_of_other = handle.offset;
	alloc.device = context->device;
	for (uint32_t i = 0; i < fake.devices; i++) {
		if (fake.device[i].unit == handle.unit)
			alloc.device = i;
	}
	fake_alloc_add(&alloc);
	*pointer = alloc.base;
	return CUDA_SUCCESS;
}

/* ---- events ---- */

#define EVENT_MAGIC 0x66616b6549504532ull

struct event_handle {
	uint64_t magic;
	uint32_t pid;
	int32_t fd;
};

_Static_assert(sizeof(struct event_handle) <= sizeof(CUipcEventHandle), "fits");

static struct fake_event_page *page_map(int fd)
{
	void *page = mmap(NULL, sizeof(struct fake_event_page), PROT_READ | PROT_WRITE, MAP_SHARED,
			  fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

FAKE_CUDA(cuIpcGetEventHandle, FAKE_CURRENT, (CUipcEventHandle * ret_handle, CUevent event),
	  (ret_handle, event))
{
	struct event_handle handle = { .magic = EVENT_MAGIC, .pid = (uint32_t)getpid() };

	if (!ret_handle)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(event, FAKE_EVENT) || !(event->flags & CU_EVENT_INTERPROCESS))
		return CUDA_ERROR_INVALID_HANDLE;
	if (!event->page) {
		int fd = memfd_create("fake event", MFD_CLOEXEC);

		if (fd < 0 || ftruncate(fd, sizeof(struct fake_event_page)) < 0 ||
		    !(event->page = page_map(fd))) {
			if (fd >= 0)
				close(fd);
			return CUDA_ERROR_OPERATING_SYSTEM;
		}
		event->page_fd = fd;
		/* What was recorded before is waited for, so that the page begins with the truth. */
		if (event->mark && fake_mark_wait(event->mark) == CUDA_SUCCESS)
			event->page->state = FAKE_PAGE_DONE;
	}
	handle.fd = event->page_fd;
	memset(ret_handle, 0, sizeof(*ret_handle));
	memcpy(ret_handle, &handle, sizeof(handle));
	return CUDA_SUCCESS;
}

static CUresult open_event(CUevent *ret_event, const CUipcEventHandle *given)
{
	struct fake_event_page *page;
	struct event_handle handle;
	struct CUevent_st *event;
	char path[64];
	int fd;

	memcpy(&handle, given, sizeof(handle));
	if (!ret_event || handle.magic != EVENT_MAGIC)
		return CUDA_ERROR_INVALID_VALUE;
	if (handle.pid == (uint32_t)getpid())
		return CUDA_ERROR_INVALID_CONTEXT;
	snprintf(path, sizeof(path), "/proc/%u/fd/%d", handle.pid, handle.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	page = fd < 0 ? NULL : page_map(fd);
	if (!page) {
		if (fd >= 0)
			close(fd);
		return CUDA_ERROR_INVALID_VALUE;
	}
	event = fake_object_new(sizeof(*event), FAKE_EVENT, fake_current());
	event->flags = CU_EVENT_INTERPROCESS | CU_EVENT_DISABLE_TIMING;
	event->page = page;
	event->page_fd = fd;
	*ret_event = event;
	return CUDA_SUCCESS;
}

/* Handles are passed by value, so the wrapper that FAKE_CUDA makes would not do. */
FAKE_API CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle);
FAKE_API CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle)
{
	CUresult rc = fake_enter("cuIpcOpenEventHandle", FAKE_CURRENT);

	if (rc == CUDA_SUCCESS)
		rc = open_event(event, &handle);
	if (fake_trace_on()) {
		struct fake_line line;

		fake_line_begin(&line, "cuIpcOpenEventHandle");
		FAKE_EACH(&line, event)
		fake_line_end(&line, rc);
	}
	fake_leave();
	return rc;
}

/* ---- opening memory ---- */

static CUresult open_call(const char *symbol, CUdeviceptr *pointer, const CUipcMemHandle *handle,
			  unsigned int flags)
{
	CUresult rc = fake_enter(symbol, FAKE_CURRENT);

	if (rc == CUDA_SUCCESS)
		rc = open_handle(pointer, handle, flags);
	if (fake_trace_on()) {
		struct fake_line line;

		fake_line_begin(&line, symbol);
		FAKE_EACH(&line, pointer, flags)
		fake_line_end(&line, rc);
	}
	fake_leave();
	return rc;
}

FAKE_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle,
					unsigned int flags);
FAKE_API CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *pointer, CUipcMemHandle handle,
					unsigned int flags)
{
	return open_call("cuIpcOpenMemHandle_v2", pointer, &handle, flags);
}

FAKE_API CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle,
				     unsigned int flags);
FAKE_API CUresult cuIpcOpenMemHandle(CUdeviceptr *pointer, CUipcMemHandle handle,
				     unsigned int flags)
{
	return open_call("cuIpcOpenMemHandle", pointer, &handle, flags);
}

FAKE_CUDA(cuIpcCloseMemHandle, FAKE_CURRENT, (CUdeviceptr pointer), (pointer))
{
	struct fake_alloc *alloc = fake_alloc_find(pointer);

	if (!alloc || alloc->kind != FAKE_MEM_IMPORTED || alloc->base != pointer)
		return CUDA_ERROR_INVALID_VALUE;
	if (--alloc->opens == 0)
		fake_alloc_release(alloc);
	return CUDA_SUCCESS;
}
