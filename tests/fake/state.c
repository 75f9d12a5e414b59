/* SPDX-License-Identifier: Apache-2.0 */
#include "state.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/str.h"

#define STATE_MAGIC   0x66616b6547505531ull
#define STATE_VERSION 1u
/* Lock bytes lie far behind the data, where no read or write ever goes. */
#define LOCK_BASE     (1ll << 40)
/* How far ahead of its oldest unfinished work a queue is searched for work that may run beside it. */
#define WINDOW        32u
#define SECOND_NS     1000000000ull

struct samples {
	uint64_t newest; /* number of the newest period */
	uint32_t busy_us[FAKE_SAMPLES];
};

struct op {
	uint64_t left_ns;
	uint64_t start_ns; /* 0: not begun */
	uint64_t end_ns;   /* 0: not complete */
	uint64_t after;
	uint32_t stream;
	uint16_t sms;
	uint16_t flags;
};

struct queue {
	uint32_t owner; /* slot + 1; 0: free */
	uint32_t unit;
	uint64_t drained, head,
		tail; /* drained <= head <= tail; everything before head is complete */
	struct samples samples;
	struct op op[FAKE_QUEUE_OPS];
};

struct slot {
	uint32_t pid; /* 0: free */
	uint32_t contexts[FAKE_UNITS_MAX];
	uint64_t used[FAKE_UNITS_MAX];
};

struct object {
	uint64_t generation; /* 0: free */
	uint64_t bytes;
	uint32_t unit;
	uint64_t holders[FAKE_SLOTS_MAX / 64];
};

struct unit {
	uint64_t used; /* by slots and objects together */
	uint64_t clock_ns;
	uint64_t slice_ns, switch_ns;
	uint64_t unlisted_bytes;
	uint64_t slice_left_ns, switch_left_ns;
	uint32_t sms;
	uint32_t current; /* queue + 1 */
	struct samples samples;
	uint64_t pending[FAKE_QUEUES_MAX / 64]; /* queues with unfinished work */
};

struct shared {
	uint64_t magic;
	uint32_t version;
	uint32_t slots_high, queues_high; /* beyond these nothing was ever used */
	uint64_t generation;
	pthread_mutex_t lock;
	struct unit unit[FAKE_UNITS_MAX];
	struct slot slot[FAKE_SLOTS_MAX];
	struct object object[FAKE_OBJECTS_MAX];
	struct queue queue[FAKE_QUEUES_MAX];
};

struct fake_state {
	int fd;
	uint32_t slot; /* + 1; 0: none */
	struct shared *shared;
};

static struct fake_state the_state = { .fd = -1 };

uint64_t fake_clock_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- the file ---- */

static bool path_of_state(char *path, size_t room)
{
	const char *setting = getenv("VGPU_FAKE_STATE");
	const char *folder = getenv("TMPDIR");

	if (setting && *setting)
		return vg_copy(path, room, setting);
	return snprintf(path, room, "%s/vgpu-fake-%u.state", folder && *folder ? folder : "/tmp",
			(unsigned)geteuid()) < (int)room;
}

static void shared_init(struct shared *shared)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->lock, &attr);
	pthread_mutexattr_destroy(&attr);
	shared->version = STATE_VERSION;
	shared->magic = STATE_MAGIC;
}

static int map_file(int fd, const char *path, struct shared **ret_shared, struct vg_err *err)
{
	struct stat info;
	struct shared *shared;

	if (fstat(fd, &info) < 0)
		return vg_fail(err, errno, "fake state: %s: %s", path, strerror(errno));
	if (info.st_size == 0 && ftruncate(fd, (off_t)sizeof(*shared)) < 0)
		return vg_fail(err, errno, "fake state: %s: cannot grow: %s", path,
			       strerror(errno));
	if (info.st_size != 0 && (size_t)info.st_size != sizeof(*shared))
		return vg_fail(err, EINVAL,
			       "fake state: %s: made by another build of the fake: remove it",
			       path);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd,
		      0);
	if (shared == MAP_FAILED)
		return vg_fail(err, errno, "fake state: %s: cannot map: %s", path, strerror(errno));
	if (shared->magic == 0) {
		shared_init(shared);
	} else if (shared->magic != STATE_MAGIC || shared->version != STATE_VERSION) {
		munmap(shared, sizeof(*shared));
		return vg_fail(err, EINVAL, "fake state: %s: not a state file: remove it", path);
	}
	*ret_shared = shared;
	return 0;
}

static void lock(struct fake_state *state);
static void unlock(struct fake_state *state);

int fake_state_attach(const struct fake_machine *machine, struct fake_state **ret_state,
		      struct vg_err *err)
{
	struct fake_state *state = &the_state;
	char path[4096];
	int fd, rc;

	if (state->shared) {
		*ret_state = state;
		return 0;
	}
	if (!path_of_state(path, sizeof(path)))
		return vg_fail(err, ENAMETOOLONG, "fake state: VGPU_FAKE_STATE is too long");
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return vg_fail(err, errno, "fake state: cannot open %s: %s", path, strerror(errno));
	/* Only for the moment of creation; the data has its own lock. */
	while (flock(fd, LOCK_EX) < 0 && errno == EINTR)
		;
	rc = map_file(fd, path, &state->shared, err);
	flock(fd, LOCK_UN);
	if (rc < 0) {
		close(fd);
		return rc;
	}
	state->fd = fd;

	lock(state);
	for (uint32_t card = 0; card < machine->cards; card++) {
		for (uint32_t mig = 0; mig <= machine->card[card].migs; mig++) {
			uint32_t index = fake_unit_of(card, mig);
			struct unit *unit = &state->shared->unit[index];

			unit->slice_ns = machine->card[card].slice_ns;
			unit->switch_ns = machine->card[card].switch_ns;
			unit->unlisted_bytes = machine->card[card].unlisted_bytes;
			unit->sms = fake_unit_sms(machine, index);
		}
	}
	unlock(state);
	*ret_state = state;
	return 0;
}

void fake_state_after_fork(struct fake_state *state)
{
	/* The lock on the slot's byte belongs to the open file description that parent and child
	 * share: closing the child's descriptor leaves it with the parent alone. */
	if (state->shared)
		munmap(state->shared, sizeof(*state->shared));
	if (state->fd >= 0)
		close(state->fd);
	*state = (struct fake_state){ .fd = -1 };
}

/* ---- the lock, and what to do when its owner died ---- */

static void bit_set(uint64_t *bits, uint32_t index, bool on)
{
	if (on)
		bits[index / 64] |= 1ull << (index % 64);
	else
		bits[index / 64] &= ~(1ull << (index % 64));
}

static bool bit_get(const uint64_t *bits, uint32_t index)
{
	return bits[index / 64] >> (index % 64) & 1;
}

/* Everything that is a sum or an index of something else. A process killed inside the lock leaves
 * those behind half-changed; what they are made from is written one word at a time. */
static void rebuild(struct shared *shared)
{
	for (uint32_t u = 0; u < FAKE_UNITS_MAX; u++) {
		struct unit *unit = &shared->unit[u];

		unit->used = 0;
		unit->current = 0;
		memset(unit->pending, 0, sizeof(unit->pending));
		for (uint32_t s = 0; s < shared->slots_high; s++) {
			if (shared->slot[s].pid)
				unit->used += shared->slot[s].used[u];
		}
	}
	for (uint32_t o = 0; o < FAKE_OBJECTS_MAX; o++) {
		if (shared->object[o].generation)
			shared->unit[shared->object[o].unit].used += shared->object[o].bytes;
	}
	for (uint32_t q = 0; q < shared->queues_high; q++) {
		struct queue *queue = &shared->queue[q];

		if (queue->owner && queue->head != queue->tail)
			bit_set(shared->unit[queue->unit].pending, q, true);
	}
}

static void lock(struct fake_state *state)
{
	if (pthread_mutex_lock(&state->shared->lock) == EOWNERDEAD) {
		rebuild(state->shared);
		pthread_mutex_consistent(&state->shared->lock);
	}
}

static void unlock(struct fake_state *state)
{
	pthread_mutex_unlock(&state->shared->lock);
}

/* ---- slots ---- */

static struct flock slot_byte(uint32_t slot, short type)
{
	return (struct flock){
		.l_type = type,
		.l_whence = SEEK_SET,
		.l_start = LOCK_BASE + slot,
		.l_len = 1,
	};
}

static bool slot_lives(const struct fake_state *state, uint32_t slot)
{
	struct flock byte = slot_byte(slot, F_WRLCK);

	if (slot + 1 == state->slot)
		return true;
	return fcntl(state->fd, F_OFD_GETLK, &byte) < 0 || byte.l_type != F_UNLCK;
}

static void queue_clear(struct shared *shared, uint32_t index)
{
	struct queue *queue = &shared->queue[index];
	struct unit *unit = &shared->unit[queue->unit];

	bit_set(unit->pending, index, false);
	if (unit->current == index + 1)
		unit->current = 0;
	queue->head = queue->drained = queue->tail;
	queue->owner = 0;
}

static void object_drop(struct shared *shared, uint32_t index, uint32_t slot)
{
	struct object *object = &shared->object[index];

	if (!object->generation || !bit_get(object->holders, slot))
		return;
	bit_set(object->holders, slot, false);
	for (uint32_t i = 0; i < FAKE_SLOTS_MAX / 64; i++) {
		if (object->holders[i])
			return;
	}
	object->generation = 0;
	shared->unit[object->unit].used -= object->bytes;
}

static void slot_clear(struct shared *shared, uint32_t index)
{
	struct slot *slot = &shared->slot[index];

	for (uint32_t q = 0; q < shared->queues_high; q++) {
		if (shared->queue[q].owner == index + 1)
			queue_clear(shared, q);
	}
	for (uint32_t o = 0; o < FAKE_OBJECTS_MAX; o++)
		object_drop(shared, o, index);
	for (uint32_t u = 0; u < FAKE_UNITS_MAX; u++) {
		shared->unit[u].used -= slot->used[u];
		slot->used[u] = 0;
		slot->contexts[u] = 0;
	}
	slot->pid = 0;
}

static void reap(struct fake_state *state)
{
	struct shared *shared = state->shared;

	for (uint32_t s = 0; s < shared->slots_high; s++) {
		if (shared->slot[s].pid && !slot_lives(state, s))
			slot_clear(shared, s);
	}
}

int fake_state_join(struct fake_state *state, struct vg_err *err)
{
	struct shared *shared = state->shared;

	if (state->slot)
		return 0;
	lock(state);
	reap(state);
	for (uint32_t s = 0; s < FAKE_SLOTS_MAX; s++) {
		struct flock byte = slot_byte(s, F_WRLCK);

		if (shared->slot[s].pid || fcntl(state->fd, F_OFD_SETLK, &byte) < 0)
			continue;
		if (s >= shared->slots_high)
			shared->slots_high = s + 1;
		shared->slot[s].pid = (uint32_t)getpid();
		state->slot = s + 1;
		break;
	}
	unlock(state);
	if (!state->slot)
		return vg_fail(err, EAGAIN, "fake state: %u processes use the fake already",
			       FAKE_SLOTS_MAX);
	return 0;
}

void fake_state_leave(struct fake_state *state)
{
	struct flock byte;

	if (!state->slot)
		return;
	lock(state);
	slot_clear(state->shared, state->slot - 1);
	byte = slot_byte(state->slot - 1, F_UNLCK);
	fcntl(state->fd, F_OFD_SETLK, &byte);
	state->slot = 0;
	unlock(state);
}

/* ---- memory ---- */

bool fake_memory_take(struct fake_state *state, uint32_t unit, uint64_t capacity, uint64_t bytes)
{
	struct shared *shared = state->shared;
	uint64_t *used = &shared->unit[unit].used;
	bool fits = false;

	lock(state);
	if (state->slot) {
		if (bytes > capacity || *used > capacity - bytes)
			reap(state);
		fits = bytes <= capacity && *used <= capacity - bytes;
	}
	if (fits) {
		shared->slot[state->slot - 1].used[unit] += bytes;
		*used += bytes;
	}
	unlock(state);
	return fits;
}

void fake_memory_give(struct fake_state *state, uint32_t unit, uint64_t bytes)
{
	struct shared *shared = state->shared;

	lock(state);
	if (state->slot) {
		shared->slot[state->slot - 1].used[unit] -= bytes;
		shared->unit[unit].used -= bytes;
	}
	unlock(state);
}

uint64_t fake_memory_used(struct fake_state *state, uint32_t unit)
{
	uint64_t used;

	lock(state);
	reap(state);
	used = state->shared->unit[unit].used;
	unlock(state);
	return used;
}

void fake_contexts_add(struct fake_state *state, uint32_t unit, int delta)
{
	lock(state);
	if (state->slot)
		state->shared->slot[state->slot - 1].contexts[unit] += (uint32_t)delta;
	unlock(state);
}

int fake_object_create(struct fake_state *state, uint32_t unit, uint64_t bytes,
		       uint32_t *ret_object, uint64_t *ret_generation)
{
	struct shared *shared = state->shared;
	int rc = -EAGAIN;

	lock(state);
	for (uint32_t o = 0; rc < 0 && state->slot && o < FAKE_OBJECTS_MAX; o++) {
		struct object *object = &shared->object[o];

		if (object->generation)
			continue;
		memset(object->holders, 0, sizeof(object->holders));
		bit_set(object->holders, state->slot - 1, true);
		object->unit = unit;
		object->bytes = bytes;
		object->generation = ++shared->generation;
		shared->slot[state->slot - 1].used[unit] -= bytes;
		*ret_object = o;
		*ret_generation = object->generation;
		rc = 0;
	}
	unlock(state);
	return rc;
}

bool fake_object_hold(struct fake_state *state, uint32_t object, uint64_t generation)
{
	bool held = false;

	lock(state);
	if (state->slot && object < FAKE_OBJECTS_MAX &&
	    state->shared->object[object].generation == generation) {
		bit_set(state->shared->object[object].holders, state->slot - 1, true);
		held = true;
	}
	unlock(state);
	return held;
}

void fake_object_release(struct fake_state *state, uint32_t object)
{
	lock(state);
	if (state->slot)
		object_drop(state->shared, object, state->slot - 1);
	unlock(state);
}

/* ---- how busy ---- */

static void samples_add(struct samples *samples, uint64_t from_ns, uint64_t length_ns)
{
	while (length_ns) {
		uint64_t period = from_ns / FAKE_SAMPLE_NS;
		uint64_t part = (period + 1) * FAKE_SAMPLE_NS - from_ns;

		if (part > length_ns)
			part = length_ns;
		if (period > samples->newest) {
			uint64_t first = samples->newest + 1;

			if (period - samples->newest > FAKE_SAMPLES)
				first = period - FAKE_SAMPLES + 1;
			for (uint64_t p = first; p <= period; p++)
				samples->busy_us[p % FAKE_SAMPLES] = 0;
			samples->newest = period;
		}
		samples->busy_us[period % FAKE_SAMPLES] += (uint32_t)(part / 1000);
		from_ns += part;
		length_ns -= part;
	}
}

/* Percent of the whole periods in [from_ns, to_ns) that were worked. */
static uint32_t samples_percent(const struct samples *samples, uint64_t from_ns, uint64_t to_ns)
{
	uint64_t first = (from_ns + FAKE_SAMPLE_NS - 1) / FAKE_SAMPLE_NS;
	uint64_t end = to_ns / FAKE_SAMPLE_NS; /* the running period is not whole yet */
	uint64_t busy_us = 0;

	if (end > FAKE_SAMPLES && first < end - FAKE_SAMPLES + 1)
		first = end - FAKE_SAMPLES + 1;
	if (first >= end)
		return 0;
	for (uint64_t p = first; p < end; p++) {
		if (p <= samples->newest && p + FAKE_SAMPLES > samples->newest)
			busy_us += samples->busy_us[p % FAKE_SAMPLES];
	}
	busy_us = (busy_us * 1000 * 100 + (end - first) * FAKE_SAMPLE_NS / 2) /
		  ((end - first) * FAKE_SAMPLE_NS);
	return busy_us > 100 ? 100 : (uint32_t)busy_us;
}

/* ---- time: the unit's clock is moved up to now by whoever looks ---- */

static bool seq_done(const struct queue *queue, uint64_t seq)
{
	return seq < queue->head || queue->op[seq % FAKE_QUEUE_OPS].end_ns;
}

/* What of a queue can run at this moment. */
struct running {
	struct op *op[WINDOW];
	uint32_t count;
};

static void op_complete(struct shared *shared, struct unit *unit, uint32_t index, struct op *op)
{
	struct queue *queue = &shared->queue[index];

	if (!op->start_ns)
		op->start_ns = unit->clock_ns;
	op->end_ns = unit->clock_ns;
	while (queue->head != queue->tail && queue->op[queue->head % FAKE_QUEUE_OPS].end_ns)
		queue->head++;
	if (queue->head == queue->tail)
		bit_set(unit->pending, index, false);
}

/*
 * Work of different streams runs side by side as long as it fits into the SMs, in the order in which
 * it was queued. Returns true when work without duration was completed on the way: then what can run
 * has changed.
 */
static bool choose(struct shared *shared, struct unit *unit, uint32_t index,
		   struct running *running)
{
	struct queue *queue = &shared->queue[index];
	uint32_t busy_streams[WINDOW], streams = 0;
	uint32_t sms = 0, scanned = 0;
	bool blocking_ahead = false, barrier_ahead = false;

	running->count = 0;
	for (uint64_t seq = queue->head; seq != queue->tail && scanned < WINDOW; seq++, scanned++) {
		struct op *op = &queue->op[seq % FAKE_QUEUE_OPS];
		bool free = op->flags & FAKE_OP_FREE;
		bool can = true;

		if (op->end_ns)
			continue;
		for (uint32_t i = 0; i < streams && can; i++)
			can = busy_streams[i] != op->stream;
		if (op->flags & FAKE_OP_AFTER)
			can = can && seq_done(queue, op->after);
		if (op->flags & FAKE_OP_BARRIER)
			can = can && !blocking_ahead;
		else if (!free)
			can = can && !barrier_ahead;
		if (can && op->left_ns == 0) {
			op_complete(shared, unit, index, op);
			return true;
		}
		if (can && (sms == 0 || sms + op->sms <= unit->sms)) {
			running->op[running->count++] = op;
			sms += op->sms;
			if (sms >= unit->sms)
				return false;
		}
		busy_streams[streams++] = op->stream;
		blocking_ahead |= !free;
		barrier_ahead |= op->flags & FAKE_OP_BARRIER;
	}
	return false;
}

static uint32_t next_pending(const struct unit *unit, uint32_t after)
{
	uint32_t words = FAKE_QUEUES_MAX / 64;
	uint32_t start =
		after % FAKE_QUEUES_MAX; /* `after` is queue + 1, so this is the next one */

	for (uint32_t i = 0; i <= words; i++) {
		uint32_t word = (start / 64 + i) % words;
		uint64_t bits = unit->pending[word];

		if (i == 0)
			bits &= ~0ull << (start % 64);
		else if (i == words)
			bits &= ~(~0ull << (start % 64));
		if (bits)
			return word * 64 + (uint32_t)__builtin_ctzll(bits) + 1;
	}
	return 0;
}

static void turn_to(struct unit *unit, uint32_t queue)
{
	if (unit->current != queue)
		unit->switch_left_ns = unit->switch_ns;
	unit->current = queue;
	unit->slice_left_ns = unit->slice_ns;
}

static void advance(struct shared *shared, struct unit *unit, uint64_t now_ns)
{
	if (unit->clock_ns == 0)
		unit->clock_ns = now_ns;
	for (;;) {
		uint32_t next = next_pending(unit, unit->current);
		struct running running;
		uint64_t step;

		if (!next) {
			if (unit->clock_ns < now_ns)
				unit->clock_ns = now_ns;
			return;
		}
		if (!unit->current || !bit_get(unit->pending, unit->current - 1)) {
			turn_to(unit, next);
		} else if (!unit->slice_left_ns) {
			if (next != unit->current)
				turn_to(unit, next);
			else
				unit->slice_left_ns = unit->slice_ns;
		}
		if (unit->switch_left_ns) {
			if (unit->clock_ns >= now_ns)
				return;
			step = now_ns - unit->clock_ns;
			if (step > unit->switch_left_ns)
				step = unit->switch_left_ns;
			unit->switch_left_ns -= step;
			unit->clock_ns += step;
			continue;
		}
		if (choose(shared, unit, unit->current - 1, &running))
			continue;
		if (unit->clock_ns >= now_ns)
			return;
		step = now_ns - unit->clock_ns;
		if (next_pending(unit, unit->current) != unit->current && unit->slice_ns &&
		    step > unit->slice_left_ns)
			step = unit->slice_left_ns;
		for (uint32_t i = 0; i < running.count; i++) {
			if (step > running.op[i]->left_ns)
				step = running.op[i]->left_ns;
		}
		if (!running.count) {
			/* Nothing can run: it waits for work beyond the window, which cannot be,
			 * or for nothing; give the time away rather than stand still. */
			unit->clock_ns = now_ns;
			return;
		}
		for (uint32_t i = 0; i < running.count; i++) {
			if (!running.op[i]->start_ns)
				running.op[i]->start_ns = unit->clock_ns;
			running.op[i]->left_ns -= step;
		}
		samples_add(&unit->samples, unit->clock_ns, step);
		samples_add(&shared->queue[unit->current - 1].samples, unit->clock_ns, step);
		unit->clock_ns += step;
		unit->slice_left_ns -= step < unit->slice_left_ns ? step : unit->slice_left_ns;
		for (uint32_t i = 0, index = unit->current - 1; i < running.count; i++) {
			if (!running.op[i]->left_ns)
				op_complete(shared, unit, index, running.op[i]);
		}
	}
}

int fake_queue_open(struct fake_state *state, uint32_t unit, uint32_t *ret_queue)
{
	struct shared *shared = state->shared;
	int rc = -EAGAIN;

	lock(state);
	reap(state);
	for (uint32_t q = 0; rc < 0 && state->slot && q < FAKE_QUEUES_MAX; q++) {
		struct queue *queue = &shared->queue[q];

		if (queue->owner)
			continue;
		queue->unit = unit;
		queue->drained = queue->head = queue->tail = 0;
		queue->samples = (struct samples){ 0 };
		queue->owner = state->slot;
		if (q >= shared->queues_high)
			shared->queues_high = q + 1;
		*ret_queue = q;
		rc = 0;
	}
	unlock(state);
	return rc;
}

void fake_queue_close(struct fake_state *state, uint32_t queue)
{
	lock(state);
	if (state->slot && state->shared->queue[queue].owner == state->slot)
		queue_clear(state->shared, queue);
	unlock(state);
}

int fake_queue_push(struct fake_state *state, uint32_t index, const struct fake_work *work,
		    uint64_t *ret_seq)
{
	struct shared *shared = state->shared;
	struct queue *queue = &shared->queue[index];
	struct unit *unit = &shared->unit[queue->unit];
	uint64_t now_ns;

	lock(state);
	now_ns = fake_clock_ns();
	advance(shared, unit, now_ns);
	if (queue->tail - queue->drained >= FAKE_QUEUE_OPS) {
		unlock(state);
		return -EAGAIN;
	}
	queue->op[queue->tail % FAKE_QUEUE_OPS] = (struct op){
		.left_ns = work->ns,
		.after = work->after,
		.stream = work->stream,
		.sms = work->sms,
		.flags = work->flags,
	};
	*ret_seq = queue->tail++;
	bit_set(unit->pending, index, true);
	/* What takes no time on an idle unit is complete at once. */
	advance(shared, unit, now_ns);
	unlock(state);
	return 0;
}

void fake_queue_drain(struct fake_state *state, uint32_t index, fake_drain_fn *fn, void *context)
{
	struct shared *shared = state->shared;
	struct queue *queue = &shared->queue[index];

	lock(state);
	advance(shared, &shared->unit[queue->unit], fake_clock_ns());
	while (queue->drained != queue->head) {
		const struct op *op = &queue->op[queue->drained % FAKE_QUEUE_OPS];

		fn(context, queue->drained, op->start_ns, op->end_ns);
		queue->drained++;
	}
	unlock(state);
}

bool fake_queue_done(struct fake_state *state, uint32_t index, uint64_t seq, uint64_t *ret_start_ns,
		     uint64_t *ret_end_ns)
{
	struct shared *shared = state->shared;
	struct queue *queue = &shared->queue[index];
	struct unit *unit = &shared->unit[queue->unit];
	const struct op *op = &queue->op[seq % FAKE_QUEUE_OPS];
	uint64_t now_ns;
	bool done;

	lock(state);
	now_ns = fake_clock_ns();
	advance(shared, unit, now_ns);
	done = op->end_ns != 0;
	if (done) {
		*ret_start_ns = op->start_ns;
		*ret_end_ns = op->end_ns;
	} else {
		/* Work of one stream runs in order, so at least the stream's own part lies ahead.
		 * If its owner is not at work now, a dead owner of that one must not delay us. */
		uint64_t ahead = 0;

		for (uint64_t s = queue->head; s <= seq; s++) {
			const struct op *other = &queue->op[s % FAKE_QUEUE_OPS];

			if (!other->end_ns && other->stream == op->stream)
				ahead += other->left_ns;
		}
		if (unit->current != index + 1)
			reap(state);
		*ret_end_ns = now_ns + ahead;
	}
	unlock(state);
	return done;
}

uint64_t fake_queue_tail(struct fake_state *state, uint32_t index)
{
	uint64_t tail;

	lock(state);
	tail = state->shared->queue[index].tail;
	unlock(state);
	return tail;
}

/* ---- what NVML asks ---- */

uint32_t fake_processes(struct fake_state *state, uint32_t unit, uint64_t since_ns,
			struct fake_process *processes, uint32_t room)
{
	struct shared *shared = state->shared;
	uint64_t now_ns;
	uint32_t count = 0;

	lock(state);
	reap(state);
	now_ns = fake_clock_ns();
	advance(shared, &shared->unit[unit], now_ns);
	for (uint32_t s = 0; s < shared->slots_high; s++) {
		const struct slot *slot = &shared->slot[s];
		uint64_t held = 0;
		uint32_t busy = 0;

		if (!slot->pid || !slot->contexts[unit])
			continue;
		if (count++ >= room)
			continue;
		for (uint32_t o = 0; o < FAKE_OBJECTS_MAX; o++) {
			const struct object *object = &shared->object[o];

			if (object->generation && object->unit == unit &&
			    bit_get(object->holders, s))
				held += object->bytes;
		}
		for (uint32_t q = 0; q < shared->queues_high; q++) {
			const struct queue *queue = &shared->queue[q];

			if (queue->owner == s + 1 && queue->unit == unit)
				busy += samples_percent(&queue->samples, since_ns, now_ns);
		}
		processes[count - 1] = (struct fake_process){
			.pid = (pid_t)slot->pid,
			.used_bytes = slot->used[unit] + held -
				      slot->contexts[unit] * shared->unit[unit].unlisted_bytes,
			.busy_percent = busy > 100 ? 100 : busy,
		};
	}
	unlock(state);
	return count;
}

uint32_t fake_unit_busy(struct fake_state *state, uint32_t unit)
{
	struct shared *shared = state->shared;
	uint64_t now_ns;
	uint32_t percent;

	lock(state);
	reap(state);
	now_ns = fake_clock_ns();
	advance(shared, &shared->unit[unit], now_ns);
	percent = samples_percent(
		&shared->unit[unit].samples,
		now_ns > SECOND_NS + FAKE_SAMPLE_NS ? now_ns - SECOND_NS - FAKE_SAMPLE_NS : 0,
		now_ns);
	unlock(state);
	return percent;
}
