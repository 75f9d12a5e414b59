/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What all processes on the simulated host share: who has how much memory of which unit, and what
 * each unit is working on. It lives in the file VGPU_FAKE_STATE (README.md), so that many processes
 * compete for the same cards, and so that NVML can answer for all of them.
 *
 * A process that uses CUDA has a slot. While it lives it holds a kernel lock on the slot's byte; a
 * slot whose byte is free belonged to a process that died, however it died, and whoever notices
 * first takes its memory and its queued work away.
 *
 * Locking: one robust mutex guards the whole structure. Functions here take and release it; none
 * calls back into the caller while holding it, but for the drain callback.
 */
#ifndef FAKE_STATE_H
#define FAKE_STATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "machine.h"

#define FAKE_SLOTS_MAX   1024u
#define FAKE_QUEUES_MAX  2048u
/* Launches that may wait in one queue; the real driver blocks the caller after about as many. */
#define FAKE_QUEUE_OPS   1024u
#define FAKE_OBJECTS_MAX 256u
/* NVML's sampling period is a sixth of a second on most cards. */
#define FAKE_SAMPLE_NS   166666667ull
#define FAKE_SAMPLES     64u

struct fake_state;

/* Opens or creates the file. Every library of a process attaches for itself; repeated calls do
 * nothing. `machine` gives the timing parameters of the units. */
int fake_state_attach(const struct fake_machine *machine, struct fake_state **ret_state,
		      struct vg_err *err);
/* After fork(), in the child: forgets the parent's slot and file without touching either. */
void fake_state_after_fork(struct fake_state *state);

/* Takes a slot for this process. -EAGAIN: all are taken. */
int fake_state_join(struct fake_state *state, struct vg_err *err);
/* Gives the slot back with all its memory and work. */
void fake_state_leave(struct fake_state *state);

uint64_t fake_clock_ns(void);

/* ---- memory ---- */

/* Whether `bytes` of the unit were free; then they are this process's. `capacity` in bytes. */
bool fake_memory_take(struct fake_state *state, uint32_t unit, uint64_t capacity, uint64_t bytes);
void fake_memory_give(struct fake_state *state, uint32_t unit, uint64_t bytes);
/* In use by all processes that still live. */
uint64_t fake_memory_used(struct fake_state *state, uint32_t unit);
/* Counts this process's contexts on the unit; NVML lists processes that have one. */
void fake_contexts_add(struct fake_state *state, uint32_t unit, int delta);

/*
 * Memory that several processes refer to (exported VMM handles). The bytes belong to no process;
 * they are in use until the last holder releases them or dies.
 */
int fake_object_create(struct fake_state *state, uint32_t unit, uint64_t bytes,
		       uint32_t *ret_object, uint64_t *ret_generation);
/* Whether the object still existed; then this process holds it (once, however often it asks). */
bool fake_object_hold(struct fake_state *state, uint32_t object, uint64_t generation);
void fake_object_release(struct fake_state *state, uint32_t object);

struct fake_process {
	pid_t pid;
	uint64_t used_bytes;
	uint32_t busy_percent; /* since `since_ns` of the question */
};

/* The live processes with a context on the unit; returns how many there are, fills up to `room`. */
uint32_t fake_processes(struct fake_state *state, uint32_t unit, uint64_t since_ns,
			struct fake_process *processes, uint32_t room);
/* Percent of the last second during which the unit worked. */
uint32_t fake_unit_busy(struct fake_state *state, uint32_t unit);

/* ---- time ---- */

/* Work waits for everything before it that came from streams without FAKE_OP_FREE, and the other way
 * round: the legacy default stream. */
#define FAKE_OP_BARRIER 0x1u
/* Pays no attention to barriers. */
#define FAKE_OP_FREE    0x2u
/* `after` holds a sequence number that must be complete first. */
#define FAKE_OP_AFTER   0x4u

struct fake_work {
	uint64_t ns;
	uint64_t after;
	uint32_t stream; /* work of one stream runs in order */
	uint16_t sms;    /* that it fills; work of other streams may use the rest */
	uint16_t flags;
};

/* A queue for this process's work on a unit. -EAGAIN: all are taken. */
int fake_queue_open(struct fake_state *state, uint32_t unit, uint32_t *ret_queue);
void fake_queue_close(struct fake_state *state, uint32_t queue);
/*
 * Appends; sequence numbers count from 0 per queue. -EAGAIN while the queue is full: drain, or wait
 * for its oldest work. With `now_ns` non-NULL, receives the time of submission.
 */
int fake_queue_push(struct fake_state *state, uint32_t queue, const struct fake_work *work,
		    uint64_t *ret_seq);
/*
 * Hands over, in order, what is complete and was not handed over yet: the caller must note the
 * times that it needs, the places are used again.
 */
typedef void fake_drain_fn(void *context, uint64_t seq, uint64_t start_ns, uint64_t end_ns);
void fake_queue_drain(struct fake_state *state, uint32_t queue, fake_drain_fn *fn, void *context);
/*
 * For `seq` not yet handed over: true and its times when it is complete; otherwise the earliest
 * moment at which it can be (others may delay it).
 */
bool fake_queue_done(struct fake_state *state, uint32_t queue, uint64_t seq, uint64_t *ret_start_ns,
		     uint64_t *ret_end_ns);
/* The sequence number that the next push gets. */
uint64_t fake_queue_tail(struct fake_state *state, uint32_t queue);

#endif
