/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside the fake libcuda.so.1: the objects behind the handles, and what every entry point does
 * first and last.
 *
 * One lock, `fake.lock`, is taken by every entry point (FAKE_CUDA) and held while its body runs, so
 * bodies need no locks of their own; those that wait let go of it in fake_sleep_until() and
 * fake_wait_change() and must look again afterwards at what they hold pointers to.
 */
#ifndef FAKE_CUDA_DRIVER_H
#define FAKE_CUDA_DRIVER_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "arena.h"
#include "cuda_more_abi.h"
#include "heap.h"
#include "machine.h"
#include "state.h"

struct fake_line;
void fake_line_unsigned(struct fake_line *line, const char *name, unsigned long long value);

static inline void fake_line_place(struct fake_line *line, const char *name, CUmemLocation place)
{
	/* type in the hundreds, so that one number says both: device 1 is 101, the host 200 */
	fake_line_unsigned(line, name, (unsigned long long)place.type * 100 + (unsigned)place.id);
}
#define FAKE_ARG_TYPES                                                                             \
	CUmemLocation:                                                                             \
	fake_line_place,
#include "trace.h"

#define FAKE_API        __attribute__((visibility("default")))
#define FAKE_MIB        (1ull << 20)
/* The driver hands out physical memory in pages of this size. */
#define FAKE_PAGE       (2 * FAKE_MIB)
/* A pool reserves it in larger pieces. */
#define FAKE_POOL_CHUNK (32 * FAKE_MIB)

/* libvgpu's list of symbols declares what we must be compatible with; a different parameter list in
 * the fake does not compile. */
#define VG_CUDA(symbol, base, version, flavour, class, params) FAKE_API CUresult symbol params;
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA

/* ---- objects behind handles ---- */

enum fake_kind {
	FAKE_CONTEXT = 1,
	FAKE_STREAM,
	FAKE_EVENT,
	FAKE_MODULE,
	FAKE_LIBRARY,
	FAKE_FUNCTION,
	FAKE_ARRAY,
	FAKE_MIPMAP,
	FAKE_POOL,
	FAKE_PHYSICAL,
	FAKE_GRAPH,
	FAKE_NODE,
	FAKE_EXEC,
	FAKE_USER_OBJECT,
	FAKE_LINK,
};

/* First member of everything that a program holds a handle of. */
struct fake_object {
	enum fake_kind kind;
	struct CUctx_st *context; /* destroyed with it; NULL: lives on its own */
	struct fake_object *next, *previous;
	struct fake_object *hash_next;
};

/* Zeroed, known to fake_is(), in the context's list. */
void *fake_object_new(size_t size, enum fake_kind kind, struct CUctx_st *context);
void fake_object_free(void *object);
/* Ends an object of any kind but a context, with all that it holds. */
void fake_object_destroy(struct fake_object *object);
/* All objects, by a hash of their address. */
#define FAKE_BUCKETS 4096u
struct fake_object *fake_bucket(uint32_t index);
/* Whether a handle that a program gave is a live object of that kind. */
bool fake_is(const void *handle, enum fake_kind kind);

struct CUctx_st {
	struct fake_object object;
	struct fake_object *objects; /* of this context */
	uint64_t id;
	uint32_t device; /* ordinal */
	unsigned int flags;
	unsigned int api_version;
	bool primary;
	bool alive;        /* an inactive primary context keeps its handle */
	uint32_t attached; /* cuCtxAttach */
	struct CUstream_st *legacy;
	struct fake_arena small, arrays; /* they don't share pages with each other */
	uint64_t peers;                  /* ordinals that it may access */
	size_t limit[CU_LIMIT_COUNT];
	int cache_config, shared_config;
};

struct fake_device {
	uint32_t unit, card, mig; /* mig: 0, or number + 1 */
	struct CUctx_st *primary;
	uint32_t primary_refs;
	unsigned int primary_flags;
	struct CUmemPoolHandle_st *default_pool, *current_pool;
	/* Physical memory for the allocation nodes of graphs. */
	uint64_t graph_reserved, graph_reserved_high;
	uint64_t graph_used_high;
	uint64_t graph_orphans; /* allocations in use whose executable graph is gone */

	bool queue_open;
	uint32_t queue;
	uint64_t next_seq;                         /* nothing from here on was pushed */
	uint64_t drained_seq;                      /* nothing before here is outstanding */
	struct fake_mark *mark_at[FAKE_QUEUE_OPS]; /* what the place's completion completes */
};

enum fake_phase {
	FAKE_COLD, /* before cuInit() */
	FAKE_READY,
	FAKE_FORKED, /* child of a process that had called cuInit() */
	FAKE_GONE,   /* the process is on its way out */
};

struct fake_driver {
	pthread_mutex_t lock;
	pthread_cond_t changed; /* what a waiter may wait for that is not time */
	enum fake_phase phase;
	struct fake_machine machine;
	bool machine_known;
	struct fake_state *state;
	uint32_t devices;
	struct fake_device device[FAKE_CARDS_MAX];
	uint64_t next_id;        /* contexts, streams, buffers */
	uint32_t captures;       /* streams that are being captured */
	CUstream default_stream; /* see FAKE_CUDA_SYNC */
};

extern struct fake_driver fake;

/* ---- entry points ---- */

#define FAKE_ANY     0x0 /* may be called before cuInit() */
#define FAKE_INIT    0x1
#define FAKE_CURRENT 0x3 /* a current context too */
#define FAKE_UNSAFE  0x4 /* not while another thread captures a stream, see cuda_capture.c */

/* Takes the lock. Anything but CUDA_SUCCESS: the call ends with that. */
CUresult fake_enter(const char *symbol, unsigned int need);
void fake_leave(void);

/* FAKE_CUDA(cuMemAlloc_v2, FAKE_CURRENT, (CUdeviceptr *pointer, size_t bytes), (pointer, bytes)) */
#define FAKE_CUDA(symbol, need, params, names)                                                     \
	FAKE_API CUresult symbol params;                                                           \
	static CUresult body_##symbol params;                                                      \
	FAKE_API CUresult symbol params                                                            \
	{                                                                                          \
		CUresult rc = fake_enter(#symbol, need);                                           \
                                                                                                   \
		if (rc == CUDA_SUCCESS)                                                            \
			rc = body_##symbol names;                                                  \
		if (fake_trace_on()) {                                                             \
			struct fake_line line;                                                     \
                                                                                                   \
			fake_line_begin(&line, #symbol);                                           \
			FAKE_NAMES(names)                                                          \
			fake_line_end(&line, rc);                                                  \
		}                                                                                  \
		fake_leave();                                                                      \
		return rc;                                                                         \
	}                                                                                          \
	static CUresult body_##symbol params
#define FAKE_NAMES(names)    FAKE_NAMES_OPEN names
#define FAKE_NAMES_OPEN(...) FAKE_EACH(&line __VA_OPT__(, ) __VA_ARGS__)

/* The same body under a second name, for a stream handle that means the calling thread's own default
 * stream where it is NULL. `stream` is the parameter. */
#define FAKE_CUDA_STREAM(symbol, need, params, names, stream)                                      \
	FAKE_API CUresult symbol##_ptsz params;                                                    \
	static CUresult body_##symbol params;                                                      \
	FAKE_API CUresult symbol##_ptsz params                                                     \
	{                                                                                          \
		CUresult rc = fake_enter(#symbol "_ptsz", need);                                   \
                                                                                                   \
		if (!(stream))                                                                     \
			(stream) = CU_STREAM_PER_THREAD;                                           \
		if (rc == CUDA_SUCCESS)                                                            \
			rc = body_##symbol names;                                                  \
		if (fake_trace_on()) {                                                             \
			struct fake_line line;                                                     \
                                                                                                   \
			fake_line_begin(&line, #symbol "_ptsz");                                   \
			FAKE_NAMES(names)                                                          \
			fake_line_end(&line, rc);                                                  \
		}                                                                                  \
		fake_leave();                                                                      \
		return rc;                                                                         \
	}                                                                                          \
	FAKE_CUDA(symbol, need, params, names)

/* 0 when the machine's description cannot be read. */
int fake_cuda_version(void);

/*
 * For calls that take no stream and work on the default one: defines symbol and symbol_ptds. The body
 * finds in fake.default_stream which default is meant, and must take it before it sleeps.
 */
#define FAKE_CUDA_SYNC(symbol, need, params, names)                                                \
	FAKE_CUDA_SYNC_ONE(symbol, symbol, NULL, need, params, names)                              \
	FAKE_CUDA_SYNC_ONE(symbol##_ptds, symbol, CU_STREAM_PER_THREAD, need, params, names)       \
	static CUresult body_##symbol params
#define FAKE_CUDA_SYNC_ONE(name, symbol, stream, need, params, names)                              \
	FAKE_API CUresult name params;                                                             \
	static CUresult body_##symbol params;                                                      \
	FAKE_API CUresult name params                                                              \
	{                                                                                          \
		CUresult rc = fake_enter(#name, need);                                             \
                                                                                                   \
		fake.default_stream = (stream);                                                    \
		if (rc == CUDA_SUCCESS)                                                            \
			rc = body_##symbol names;                                                  \
		if (fake_trace_on()) {                                                             \
			struct fake_line line;                                                     \
                                                                                                   \
			fake_line_begin(&line, #name);                                             \
			FAKE_NAMES(names)                                                          \
			fake_line_end(&line, rc);                                                  \
		}                                                                                  \
		fake_leave();                                                                      \
		return rc;                                                                         \
	}

/* ---- contexts and devices (cuda_context.c, cuda_device.c) ---- */

/* Fills fake.device[] from the machine and CUDA_VISIBLE_DEVICES. */
void fake_devices_choose(void);

/* The calling thread's; NULL when there is none. FAKE_CURRENT promises one. */
struct CUctx_st *fake_current(void);
CUresult fake_current_check(void);
/* NULL: no such ordinal. */
struct fake_device *fake_device(CUdevice ordinal);
void fake_contexts_setup(void);
/* Destroys what belongs to the context. */
void fake_context_empty(struct CUctx_st *context);

/* ---- memory (cuda_memory.c) ---- */

enum fake_alloc_kind {
	FAKE_MEM_DEVICE,
	FAKE_MEM_MANAGED,
	FAKE_MEM_POOL,
	FAKE_MEM_GRAPH,
	FAKE_MEM_HOST,
	FAKE_MEM_REGISTERED,
	FAKE_MEM_MAPPED,   /* cuMemMap() */
	FAKE_MEM_IMPORTED, /* cuIpcOpenMemHandle(), cuMemPoolImportPointer() */
	FAKE_MEM_GLOBAL,   /* a module's variable */
};

struct fake_alloc {
	uint64_t base, bytes; /* as asked for */
	enum fake_alloc_kind kind;
	struct CUctx_st *context; /* NULL: none */
	uint32_t device;
	uint64_t id;
	unsigned int flags;
	void *mapping; /* to unmap */
	uint64_t mapping_bytes;
	uint64_t charged_bytes;   /* of the unit's physical memory */
	struct fake_block *block; /* in the context's arena instead */
	struct CUmemPoolHandle_st *pool;
	struct fake_heap_block *pool_block; /* in the pool's heap instead */
	struct CUphysical_st *physical;     /* cuMemMap() */
	uint32_t graph_refs; /* FAKE_MEM_GRAPH: nodes and executable graphs that name it */
	bool graph_live;     /* allocated by a launch and not freed since */
	bool graph_orphan;   /* and the executable graph is gone */
	int share;           /* descriptor + 1 once it is exported */
	/* FAKE_MEM_IMPORTED: how often it was opened, and where it comes from. */
	uint32_t opens, pid_of_other;
	int fd_of_other;
	uint64_t id_of_other;
	struct fake_alloc *next, *previous; /* all allocations */
};

struct fake_alloc *fake_alloc_add(const struct fake_alloc *like);
void fake_alloc_remove(struct fake_alloc *alloc);
/* The allocation that contains the address; NULL. */
struct fake_alloc *fake_alloc_find(uint64_t address);
struct fake_alloc *fake_allocs(void);
/* Frees whatever kind it is, without a look at who uses it. */
void fake_alloc_release(struct fake_alloc *alloc);

/* New device memory, zero-filled where nobody wrote. */
CUresult fake_device_alloc(struct CUctx_st *context, uint64_t bytes, enum fake_alloc_kind kind,
			   struct fake_alloc **ret_alloc);
/* Where managed memory counts from now on. */
CUresult fake_managed_move(struct fake_alloc *alloc, CUmemLocation to);

/* Physical memory of a device for this process. */
bool fake_charge(struct fake_device *device, uint64_t bytes);
void fake_uncharge(struct fake_device *device, uint64_t bytes);
uint64_t fake_page_round(uint64_t bytes);

/* The callbacks of struct fake_arena; context: the fake_device. */
bool fake_arena_charge(void *device, uint64_t bytes);
void fake_arena_uncharge(void *device, uint64_t bytes);

/* ---- pools (cuda_pool.c) ---- */

struct CUmemPoolHandle_st {
	struct fake_object object;
	uint32_t device;
	bool is_default;
	CUmemPoolProps props;
	uint64_t release_threshold;
	int reuse[3];
	struct fake_heap heap;
	int access[FAKE_CARDS_MAX];
	uint64_t used_shown, used_shown_high; /* what the attributes say: bytes as asked for */
	bool doomed;                          /* destroyed, but memory of it is still out */
	struct CUmemPoolHandle_st *next_pool;
};

/* Default pools exist from cuInit() on. */
void fake_pools_setup(void);
void fake_pool_block_free(struct CUmemPoolHandle_st *pool, struct fake_heap_block *block);
/* A context ends: what its device's pools keep for later goes back. */
void fake_pools_empty(uint32_t device);
/* What a synchronisation does: memory above the threshold goes back. */
void fake_pools_synchronised(uint32_t device);

/* ---- streams, events, time (cuda_stream.c) ---- */

/*
 * A point in a stream that others refer to: what an event recorded last. It outlives the event, since
 * a stream may wait for a point that the event has left behind.
 */
enum fake_mark_state {
	FAKE_MARK_DEFERRED, /* not in the device's queue yet */
	FAKE_MARK_QUEUED,
	FAKE_MARK_DONE,
};

/* What another process that opened the event sees of it: in a memory file, never unmapped. */
struct fake_event_page {
	_Atomic uint32_t state; /* an enum fake_page_state */
	uint32_t queue;
	uint64_t seq;
};

enum fake_page_state {
	FAKE_PAGE_NEVER,
	FAKE_PAGE_DEFERRED, /* recorded, but not in a queue yet */
	FAKE_PAGE_QUEUED,
	FAKE_PAGE_DONE,
};

/* Whether what was recorded last, in whichever process, is complete. */
bool fake_page_done(struct fake_event_page *page);

struct fake_mark {
	struct fake_event_page *page; /* NULL: no other process knows the event */
	uint32_t refs;
	uint32_t device;
	enum fake_mark_state state;
	uint64_t seq;    /* FAKE_MARK_QUEUED */
	uint64_t end_ns; /* FAKE_MARK_DONE */
};

struct CUevent_st {
	struct fake_object object;
	unsigned int flags;
	struct fake_mark *mark;           /* NULL: never recorded */
	struct fake_capture *capture;     /* last recorded in a stream that was being captured */
	struct CUgraphNode_st **captured; /* what it stands for there */
	size_t captured_count;
	struct fake_event_page *page; /* shared between processes */
	int page_fd;
};

struct CUstream_st {
	struct fake_object object;
	uint32_t id;
	unsigned int flags;
	int priority;
	bool legacy;
	pid_t thread; /* of a per-thread default stream */
	bool has_work;
	uint64_t last_seq;
	/* What waits for more than the device: host functions, values in memory, other devices, and
	 * everything behind such. The pump thread takes it from here. */
	struct fake_deferred *deferred, **deferred_end;
	struct CUstream_st *next_deferred;
	bool in_deferred_list;
	struct fake_capture *capture;
	struct CUgraphNode_st **capture_tail; /* what it did last there */
	size_t capture_tail_count;
};

/* NULL, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD or a handle. */
CUresult fake_stream_of(CUstream handle, struct CUstream_st **ret_stream);

/*
 * What a stream can be given to do. All may sleep while the device's queue is full. `sms`: how many
 * the work fills, 0 for all.
 */
CUresult fake_stream_work(struct CUstream_st *stream, uint64_t ns, uint32_t sms);
CUresult fake_stream_record(struct CUstream_st *stream, struct CUevent_st *event);
CUresult fake_stream_wait_mark(struct CUstream_st *stream, struct fake_mark *mark);
/* For an event that another process may have recorded. */
CUresult fake_stream_wait_page(struct CUstream_st *stream, struct fake_event_page *page);
CUresult fake_stream_host_function(struct CUstream_st *stream, CUhostFn fn, void *data);
CUresult fake_stream_callback(struct CUstream_st *stream, CUstreamCallback fn, void *data);
/* `bytes` is 4 or 8; `compare`: a CU_STREAM_WAIT_VALUE_…, or -1 to write. */
CUresult fake_stream_value(struct CUstream_st *stream, CUdeviceptr address, uint64_t value,
			   uint32_t bytes, int compare);

/* A moment without the lock, for who waits for something that only can be looked at. */
CUresult fake_nap(void);
bool fake_stream_idle(struct CUstream_st *stream);
/* Sleeps until everything that is in the stream now is complete. */
CUresult fake_stream_wait(struct CUstream_st *stream);
/* The same for all streams of this process on the device. */
CUresult fake_device_wait(uint32_t device);
/* Before a context ends: its streams forget what they still had to do. */
void fake_streams_close(struct CUctx_st *context);
void fake_event_release(struct CUevent_st *event);
void fake_events_forget(struct fake_capture *capture);
void fake_mark_put(struct fake_mark *mark);
/* A mark behind everything that the stream has now. */
CUresult fake_stream_mark(struct CUstream_st *stream, struct fake_mark **ret_mark);
/* Whether the point is reached. */
bool fake_mark_look(struct fake_mark *mark);
CUresult fake_mark_wait(struct fake_mark *mark);

/* The thread that runs host functions. */
void fake_pump_after_fork(void);
void fake_pump_stop(void);

/* ---- arrays (cuda_array.c), modules and kernels (cuda_module.c) ---- */

void fake_array_release(struct CUarray_st *array);
void fake_mipmap_release(struct CUmipmappedArray_st *mipmap);
void fake_module_release(struct CUmod_st *module);
void fake_library_release(struct CUlib_st *library);
void fake_function_release(struct CUfunc_st *function);
void fake_link_release(struct CUlinkState_st *link);

/* ---- graphs (cuda_graph.c) ---- */

/* An allocation node's memory that the graph itself does not free. */
CUresult fake_graph_memory_free(struct fake_alloc *alloc);

/* ---- stream capture (cuda_capture.c) ---- */

/* For calls that may disturb another thread's capture: whether this one is forbidden now. */
CUresult fake_capture_forbids(void);
/* For calls that a stream cannot record: ends its capture and says so. CUDA_SUCCESS: no capture. */
CUresult fake_capture_refuses(struct CUstream_st *stream);
struct fake_grid;
CUresult fake_capture_kernel(struct CUstream_st *stream, CUfunction function,
			     const struct fake_grid *grid, void **params, void **extra);
CUresult fake_capture_alloc(struct CUstream_st *stream, const CUmemPoolProps *props, size_t bytes,
			    CUdeviceptr *pointer);
CUresult fake_capture_free(struct CUstream_st *stream, CUdeviceptr pointer);
CUresult fake_capture_host(struct CUstream_st *stream, CUhostFn fn, void *data);
CUresult fake_capture_record(struct CUstream_st *stream, struct CUevent_st *event, bool external);
CUresult fake_capture_wait(struct CUstream_st *stream, struct CUevent_st *event, bool external);
/* For waiting for a whole context: whether one of its streams is being captured. */
CUresult fake_capture_in(struct CUctx_st *context);
/* For work on the legacy stream, which no captured stream can let through. */
CUresult fake_capture_implicit(struct CUstream_st *stream);
/* An event that stands for a point in a capture cannot be waited for. */
CUresult fake_capture_event(struct CUevent_st *event);
/* The stream ends while it is being captured. */
void fake_capture_abandon(struct CUstream_st *stream);

#endif
