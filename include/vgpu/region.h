/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The file that all processes of a container share with the node agent: limits, who uses how much,
 * and the budget of GPU time. Contract between libvgpu.so, vgpu-agent, vgpu-region, and HAMi's
 * monitor, which knows the first part as layout 1.2.
 *
 *	0 ................ 2,008,952   struct vgpu_region: byte-compatible with layout 1.2
 *	2,008,952 ........ 2,011,136   unused; older openers write a zero byte at its start
 *	2,011,136 ...                  struct vgpu_region_ext: ours, with its own magic and version
 *
 * Everything in the file can be written by the container: readers outside must copy and check
 * (region/read.h). Fields that change while processes run are read and written atomically.
 */
#ifndef VGPU_REGION_H
#define VGPU_REGION_H

#include <stdint.h>

enum {
	VGPU_REGION_MAGIC = 19920718,
	VGPU_REGION_MAJOR = 1,
	VGPU_REGION_MINOR = 2,
	VGPU_REGION_DEVICES = 16,
	VGPU_REGION_SLOTS = 1024,
	VGPU_REGION_UUID = 96,
	VGPU_REGION_BASE_BYTES = 2008952, /* struct vgpu_region */
	VGPU_REGION_EXT_OFFSET = 2011136,
	VGPU_REGION_BUSY = 64,
	VGPU_REGION_MESSAGE = 256,
};

/* Bytes that one process holds on one device. */
struct vgpu_region_memory {
	uint64_t context;
	uint64_t module;
	uint64_t data;
	uint64_t offset; /* never written */
	uint64_t total;  /* the sum that counts against the limit */
	uint64_t unused[3];
};

struct vgpu_region_util {
	uint64_t decoder;
	uint64_t encoder;
	uint64_t sm; /* percent of GPU time */
	uint64_t unused[3];
};

enum vgpu_slot_status {
	VGPU_SLOT_FREE = 0,
	VGPU_SLOT_RUNNING = 1,
	VGPU_SLOT_SUSPENDED = 2,
};

/* One process. A slot never moves; a free one has pid 0. */
struct vgpu_region_slot {
	int32_t pid;      /* in the container's namespace */
	int32_t host_pid; /* as NVML reports it; 0 unknown */
	struct vgpu_region_memory used[VGPU_REGION_DEVICES];
	uint64_t monitor_used[VGPU_REGION_DEVICES];
	struct vgpu_region_util util[VGPU_REGION_DEVICES];
	int32_t status; /* enum vgpu_slot_status */
	uint32_t padding;
	uint64_t sequence; /* odd: an older writer is in the middle; ours leaves it even */
	uint64_t unused[2];
};

struct vgpu_region {
	int32_t magic; /* stored last */
	uint32_t major;
	uint32_t minor;
	int32_t sm_init;
	uint64_t owner_pid;    /* holder of sem, for older readers */
	uint64_t sem[4];       /* sem_t, process-shared, initially 1 */
	uint64_t device_count; /* as NVML counts */
	char uuid[VGPU_REGION_DEVICES][VGPU_REGION_UUID];
	uint64_t limit[VGPU_REGION_DEVICES];    /* bytes, 0 = unlimited */
	uint64_t sm_limit[VGPU_REGION_DEVICES]; /* percent; 0 and >= 100 = unlimited */
	struct vgpu_region_slot slot[VGPU_REGION_SLOTS];
	int32_t slot_count;         /* high-water mark: slots in use are below it */
	int32_t utilization_switch; /* 1: hold the share of GPU time, 0: don't; monitor */
	int32_t recent_kernel;      /* activity countdown; -1: blocked by the monitor */
	int32_t priority;
	uint64_t last_kernel_time; /* Unix seconds */
	uint64_t sem_postinit[4];  /* sem_t */
};

/* ---- our extension ------------------------------------------------------------------------- */

#define VGPU_REGION_EXT_MAGIC 0x7667707565787431ull /* "vgpuext1" */

enum {
	VGPU_REGION_EXT_VERSION = 1,

	/* vgpu_region_ext.flags */
	VGPU_REGION_SEALED = 1 << 0, /* limits were written by the node: environment ignored */

	/* vgpu_region_device.state: why a limit is what it is */
	VGPU_DEVICE_LIMIT_INVALID = 1 << 0,   /* unreadable text: nothing may be allocated */
	VGPU_DEVICE_SM_INVALID = 1 << 1,      /* unreadable text: the smallest share applies */
	VGPU_DEVICE_LIMIT_OVER_CARD = 1 << 2, /* larger than the card */
	VGPU_DEVICE_SHARE_ENFORCED = 1 << 3,  /* some process measures and delays */
	VGPU_DEVICE_SHARED = 1 << 4,          /* other tenants were seen on the card */
};

struct vgpu_region_interval {
	uint64_t start_ns; /* CLOCK_MONOTONIC */
	uint64_t end_ns;
};

struct vgpu_region_device {
	/* One cache line that every allocation of every process changes. */
	uint64_t used;     /* sum of slot[].used[].total, plus overflow */
	uint64_t overflow; /* bytes of processes that found no free slot */
	uint64_t peak;
	uint64_t refused; /* allocations refused */
	uint64_t reserved_a[4];

	/* Rarely written. */
	uint64_t physical;      /* bytes of the card, 0 unknown */
	uint64_t context_bytes; /* smallest context measured, 0 unknown */
	uint32_t state;         /* VGPU_DEVICE_* */
	uint32_t part;          /* of the last interval that was ours, of 65536; 0 unknown */
	uint64_t reserved_b[5];

	/* Budget of GPU time: what may still be started, in nanoseconds. */
	int64_t budget_ns;
	uint64_t refilled_ns; /* CLOCK_MONOTONIC of the last refill, 0 never */
	uint64_t charged_ns;  /* since the region was created */
	uint64_t waited_ns;
	uint64_t measured_ns; /* like charged_ns, with the slices of other tenants */
	uint64_t reserved_c[3];

	/* Recent intervals in which the container kept the device busy; under the mutex. */
	uint64_t busy_count;
	uint64_t busy_floor_ns; /* everything before it is settled */
	uint64_t reserved_d[6];
	struct vgpu_region_interval busy[VGPU_REGION_BUSY];
};

struct vgpu_region_slot_ext {
	uint64_t start_time; /* field 22 of /proc/PID/stat: tells a reused pid */
	uint64_t pid_namespace;
	uint32_t inflight; /* threads between the two halves of a ledger entry */
	uint32_t suspend;  /* 1: stop taking memory and launching */
	uint32_t generation;
	uint32_t reserved;
	uint64_t unused[4];
};

struct vgpu_region_ext {
	uint64_t magic;
	uint32_t version;
	uint32_t bytes;     /* sizeof(struct vgpu_region_ext) */
	uint32_t flags;     /* VGPU_REGION_SEALED */
	uint32_t quiesce;   /* a repair waits until no ledger entry is half written */
	uint64_t reclaimed; /* slots taken back from dead processes */
	uint64_t repaired;  /* times that sums were rebuilt */
	uint64_t doubtful;  /* a rebuild could not finish: sums may be wrong until one does */
	uint64_t id;        /* random: tells this container from others */
	uint64_t reserved;
	uint64_t mutex[8];                 /* pthread_mutex_t: robust, process-shared */
	char message[VGPU_REGION_MESSAGE]; /* last complaint, for people */
	struct vgpu_region_device device[VGPU_REGION_DEVICES];
	struct vgpu_region_slot_ext slot[VGPU_REGION_SLOTS];
};

#define VGPU_REGION_FILE_BYTES (VGPU_REGION_EXT_OFFSET + sizeof(struct vgpu_region_ext))

/*
 * Kernel record locks, far behind the end of the file: the kernel drops them when their holder dies,
 * in whatever way. START is held while a region is created or adopted; SLOT + n for the life of the
 * process in slot n.
 */
#define VGPU_REGION_LOCK_START (1ll << 40)
#define VGPU_REGION_LOCK_SLOT  ((1ll << 40) + 4096)

#endif
