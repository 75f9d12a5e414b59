/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "region/internal.h"

/*
 * Field 22 of /proc/PID/stat, 0 if there is no such process or it is a zombie. The name in field 2 may
 * hold blanks and brackets, so fields are counted from the last bracket.
 */
uint64_t region_start_time(int32_t pid)
{
	char path[32], text[512];
	const char *at = NULL;
	uint64_t value = 0;
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return 0;
	text[n] = '\0';
	for (char *p = text; *p; p++)
		if (*p == ')')
			at = p;
	if (!at || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X' || at[2] == 'x')
		return 0;
	at += 2;
	for (int field = 3; field < 22; field++) {
		while (*at && *at != ' ')
			at++;
		if (!*at)
			return 0;
		at++;
	}
	for (; *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	return value;
}

uint64_t region_pid_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/pid", &st) == 0 ? (uint64_t)st.st_ino : 0;
}

bool region_slot_alive(const struct region *r, int slot)
{
	const struct vgpu_region_slot_ext *ext = &r->ext->slot[slot];
	int32_t pid = LOAD(&r->base->slot[slot].pid);
	uint64_t start;

	if (pid == 0)
		return false;
	if (slot == r->slot)
		return true;
	if (r->fd >= 0 && region_record_held(r, VGPU_REGION_LOCK_SLOT + slot))
		return true;
	/*
	 * No lock: dead, unless its program closed our descriptor. A pid of another namespace says
	 * nothing here, so there the lock alone decides. A slot without a start time was written by
	 * another library.
	 */
	if (LOAD(&ext->pid_namespace) != 0 && LOAD(&ext->pid_namespace) != region_pid_namespace())
		return false;
	start = region_start_time(pid);
	return start != 0 && (LOAD(&ext->start_time) == 0 || LOAD(&ext->start_time) == start);
}

static int bounded_count(const struct region *r)
{
	int count = LOAD(&r->base->slot_count);

	if (count < 0)
		return 0;
	return count > VGPU_REGION_SLOTS ? VGPU_REGION_SLOTS : count;
}

bool region_some_alive(const struct region *r)
{
	/* The newest first: they are the most likely to live. */
	for (int i = bounded_count(r) - 1; i >= 0; i--)
		if (LOAD(&r->base->slot[i].pid) != 0 && region_slot_alive(r, i))
			return true;
	return false;
}

/* Readers skip status 0, so it goes first and pid, which frees the slot, last. */
static void clear_slot(struct region *r, int i)
{
	struct vgpu_region_slot *slot = &r->base->slot[i];
	struct vgpu_region_slot_ext *ext = &r->ext->slot[i];

	STORE(&slot->status, VGPU_SLOT_FREE);
	memset(slot->used, 0, sizeof(slot->used));
	memset(slot->monitor_used, 0, sizeof(slot->monitor_used));
	memset(slot->util, 0, sizeof(slot->util));
	slot->host_pid = 0;
	slot->sequence = 0;
	ext->start_time = 0;
	ext->pid_namespace = 0;
	ext->suspend = 0;
	STORE(&ext->inflight, 0);
	STORE(&slot->pid, 0);
}

int region_reclaim_locked(struct region *r)
{
	bool torn = LOAD(&r->ext->doubtful) != 0;
	int taken = 0, count = bounded_count(r);

	for (int i = 0; i < count; i++) {
		struct vgpu_region_slot *slot = &r->base->slot[i];

		if (LOAD(&slot->pid) == 0 && LOAD(&slot->status) == VGPU_SLOT_FREE)
			continue;
		if (i == r->slot || region_slot_alive(r, i))
			continue;
		if (torn || LOAD(&r->ext->slot[i].inflight)) {
			torn = true; /* subtracting would guess; rebuilding won't */
		} else {
			for (int d = 0; d < VGPU_REGION_DEVICES; d++) {
				uint64_t total = LOAD(&slot->used[d].total);

				if (total)
					SUB(&r->ext->device[d].used, total);
			}
		}
		clear_slot(r, i);
		taken++;
	}
	if (torn) /* somebody died half way through an entry: the sums may be off by it */
		region_rebuild_locked(r);
	if (taken)
		r->ext->reclaimed += (uint64_t)taken;
	return taken;
}

int region_reclaim(struct region *r)
{
	int n;

	if (region_lock(r) < 0)
		return 0;
	n = region_reclaim_locked(r);
	region_unlock(r);
	return n;
}

static int find_free(struct region *r)
{
	int count = bounded_count(r);

	for (int i = 0; i < count; i++)
		if (LOAD(&r->base->slot[i].pid) == 0)
			return i;
	return count < VGPU_REGION_SLOTS ? count : REGION_NO_SLOT;
}

void region_slot_claim(struct region *r)
{
	int i;

	r->pid = (int32_t)getpid();
	r->slot = REGION_NO_SLOT;
	if (region_lock(r) < 0)
		return;
	region_sem_enter(r);
	i = find_free(r);
	/* Dead slots cost nothing but their place, until places or bytes run out. */
	if (i == REGION_NO_SLOT || i >= VGPU_REGION_SLOTS / 2) {
		region_reclaim_locked(r);
		i = find_free(r);
	}
	if (i != REGION_NO_SLOT) {
		struct vgpu_region_slot *slot = &r->base->slot[i];
		struct vgpu_region_slot_ext *ext = &r->ext->slot[i];

		clear_slot(r, i);
		ext->start_time = region_start_time(r->pid);
		ext->pid_namespace = region_pid_namespace();
		ext->generation++;
		if (r->fd >= 0)
			(void)region_record_lock(r, VGPU_REGION_LOCK_SLOT + i, false);
		r->slot = i;
		STORE(&slot->pid, r->pid);
		STORE(&slot->status, VGPU_SLOT_RUNNING);
		if (i >= LOAD(&r->base->slot_count))
			STORE(&r->base->slot_count, i + 1);
	}
	region_sem_leave(r);
	region_unlock(r);
}

void region_slot_release(struct region *r)
{
	int i = r->slot;

	if (i == REGION_NO_SLOT || region_lock(r) < 0)
		return;
	region_sem_enter(r);
	for (int d = 0; d < VGPU_REGION_DEVICES; d++) {
		uint64_t total = LOAD(&r->base->slot[i].used[d].total);

		if (total)
			SUB(&r->ext->device[d].used, total);
	}
	r->slot = REGION_NO_SLOT;
	clear_slot(r, i);
	if (r->fd >= 0)
		region_record_unlock(r, VGPU_REGION_LOCK_SLOT + i);
	region_sem_leave(r);
	region_unlock(r);
}

void region_slot_refresh(struct region *r)
{
	if (r->fd >= 0 && r->slot != REGION_NO_SLOT)
		(void)region_record_lock(r, VGPU_REGION_LOCK_SLOT + r->slot, false);
}

void region_suspend(struct region *r, bool stop)
{
	for (int i = 0; i < bounded_count(r); i++)
		if (LOAD(&r->base->slot[i].pid) != 0)
			STORE(&r->ext->slot[i].suspend, stop ? 1u : 0u);
}

void region_suspended(const struct region *r, int *ret_alive, int *ret_suspended)
{
	int alive = 0, suspended = 0;

	for (int i = 0; i < bounded_count(r); i++) {
		if (!region_slot_alive(r, i))
			continue;
		alive++;
		suspended += LOAD(&r->base->slot[i].status) == VGPU_SLOT_SUSPENDED;
	}
	*ret_alive = alive;
	*ret_suspended = suspended;
}
