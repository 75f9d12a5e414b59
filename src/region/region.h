/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared region as a process inside the container uses it: open or create the file, take a slot,
 * keep the ledger of memory. Uses no heap, ends no process, installs no handlers, changes no umask.
 * Readers outside the container use region/read.h instead, which trusts nothing in the file.
 *
 * Locks, from fast to slow:
 *   - ledger entries take none: atomic additions, bracketed by the slot's inflight count;
 *   - region_lock() is a robust mutex in the file: slots, repairs, intervals of busy time. It is never
 *     held across a call of a driver;
 *   - record locks of the kernel say which process lives, and serialise creation.
 */
#ifndef VGPU_REGION_REGION_H
#define VGPU_REGION_REGION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "vgpu/region.h"

enum { REGION_FAULT_TEXT = 240, REGION_NO_SLOT = -1 };

/* Why something failed or fell back, for one line of log. */
struct region_fault {
	char text[REGION_FAULT_TEXT];
};

/* What the environment says. */
struct region_setup {
	bool memory_set[VGPU_REGION_DEVICES]; /* limit or state below comes from a variable */
	bool sm_set[VGPU_REGION_DEVICES];
	uint64_t limit[VGPU_REGION_DEVICES];
	uint64_t sm_limit[VGPU_REGION_DEVICES];
	uint32_t state[VGPU_REGION_DEVICES]; /* VGPU_DEVICE_*_INVALID */
	int32_t priority;
	bool seal;
};

struct region {
	struct vgpu_region *base;
	struct vgpu_region_ext *ext;
	int fd;       /* -1: private, this process only */
	dev_t device; /* of the file behind fd, to notice a descriptor that was closed under us */
	ino_t inode;
	bool ofd_locks; /* false: the kernel has no open-file-description locks, POSIX ones serve */
	int slot;       /* ours, or REGION_NO_SLOT */
	int32_t pid;
};

/*
 * Maps the region at path, creating it if needed. A file that is not ours to use (foreign, a
 * symbolic link, another version, not writable, no space) is left alone, and the next place is tried:
 * path + ".vgpu", then a name under /tmp made from path, then memory of this process only, so that
 * limits hold in any case. Returns 0, or 1 when it had to leave path (fault says why), or a negative
 * errno when not even memory was available.
 */
int region_open(struct region *r, const char *path, const struct region_setup *setup,
		struct region_fault *fault);

/* Only this path; -errno instead of falling back. */
int region_open_only(struct region *r, const char *path, const struct region_setup *setup,
		     struct region_fault *fault);

/* Maps an existing, complete region without taking part: no slot, no changes of limits. */
int region_attach(struct region *r, const char *path, struct region_fault *fault);

/* Unmaps; releases the slot. In a forked child use region_abandon(). */
void region_close(struct region *r);

/* Forgets the mapping of the parent in a forked child: nothing of the parent's state is changed. */
void region_abandon(struct region *r);

/* ---- slots ---- */

/* Takes a slot for this process; without a free one the process is kept in the overflow count. */
void region_slot_claim(struct region *r);
void region_slot_release(struct region *r);
/* Takes back the slots of dead processes. Returns how many. */
int region_reclaim(struct region *r);
/* False only if the process of the slot is certainly gone. */
bool region_slot_alive(const struct region *r, int slot);
/* Takes the record lock again if somebody closed our descriptor. */
void region_slot_refresh(struct region *r);

/* ---- from outside: tools of the node, after region_attach() ---- */

/* Tells every process to stand still (or to go on) at its next allocation or launch. */
void region_suspend(struct region *r, bool stop);
/* Processes alive, and how many of them stand still. */
void region_suspended(const struct region *r, int *ret_alive, int *ret_suspended);

/* ---- mutex ---- */

/* 0, or -errno; recovers from a holder that died. Not recursive. */
int region_lock(struct region *r);
void region_unlock(struct region *r);

/* ---- ledger ---- */

enum region_kind { REGION_CONTEXT, REGION_MODULE, REGION_DATA };

/*
 * Charges bytes to this process and the container. 0, or -ENOMEM when the limit would be passed: then
 * nothing is charged. Takes back dead slots before it refuses.
 */
int region_reserve(struct region *r, int device, enum region_kind kind, uint64_t bytes);
/* The same without a check: for what has already happened. */
void region_charge(struct region *r, int device, enum region_kind kind, uint64_t bytes);
/* Gives bytes back; never more than this process was charged. */
void region_discharge(struct region *r, int device, enum region_kind kind, uint64_t bytes);

/* Bytes of the container, and the limit (0: none). */
uint64_t region_used(const struct region *r, int device);
uint64_t region_limit(const struct region *r, int device);

/* Rebuilds the sums from the slots of living processes; caller holds region_lock(). */
void region_rebuild_locked(struct region *r);

#endif
