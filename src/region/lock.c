/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "region/internal.h"

_Static_assert(sizeof(pthread_mutex_t) <= sizeof(((struct vgpu_region_ext *)0)->mutex), "mutex");
_Static_assert(sizeof(sem_t) == sizeof(((struct vgpu_region *)0)->sem), "sem_t");

void region_fail(struct region_fault *fault, const char *format, ...)
{
	va_list args;

	if (!fault)
		return;
	va_start(args, format);
	vsnprintf(fault->text, sizeof(fault->text), format, args);
	va_end(args);
}

/* ---- record locks -------------------------------------------------------------------------- */

/* The descriptor may have been closed by the program (closefrom()) and reused for a file of its own. */
static bool descriptor_is_ours(const struct region *r)
{
	struct stat st;

	return r->fd >= 0 && fstat(r->fd, &st) == 0 && st.st_dev == r->device &&
	       st.st_ino == r->inode;
}

static int record(const struct region *r, int ofd, int posix, short type, long long offset,
		  struct flock *lock)
{
	int n;

	if (!descriptor_is_ours(r))
		return -EBADF;
	*lock = (struct flock){
		.l_type = type, .l_whence = SEEK_SET, .l_start = offset, .l_len = 1
	};
	do {
		n = fcntl(r->fd, r->ofd_locks ? ofd : posix, lock);
	} while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int region_record_lock(const struct region *r, long long offset, bool wait)
{
	struct flock lock;

	return wait ? record(r, F_OFD_SETLKW, F_SETLKW, F_WRLCK, offset, &lock)
		    : record(r, F_OFD_SETLK, F_SETLK, F_WRLCK, offset, &lock);
}

void region_record_unlock(const struct region *r, long long offset)
{
	struct flock lock;

	(void)record(r, F_OFD_SETLK, F_SETLK, F_UNLCK, offset, &lock);
}

bool region_record_held(const struct region *r, long long offset)
{
	struct flock lock;

	return record(r, F_OFD_GETLK, F_GETLK, F_WRLCK, offset, &lock) == 0 &&
	       lock.l_type != F_UNLCK;
}

/* ---- robust mutex -------------------------------------------------------------------------- */

static pthread_mutex_t *mutex_of(const struct region *r)
{
	return (pthread_mutex_t *)(void *)r->ext->mutex;
}

int region_mutex_init(struct vgpu_region_ext *ext)
{
	pthread_mutexattr_t attr;
	int e;

	e = pthread_mutexattr_init(&attr);
	if (e)
		return -e;
	e = pthread_mutexattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	if (!e)
		e = pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	if (!e)
		e = pthread_mutex_init((pthread_mutex_t *)(void *)ext->mutex, &attr);
	pthread_mutexattr_destroy(&attr);
	return -e;
}

int region_lock(struct region *r)
{
	int e = pthread_mutex_lock(mutex_of(r));

	if (e == EOWNERDEAD) {
		/* The holder died inside: whatever it was rebuilding is rebuilt from the slots. */
		pthread_mutex_consistent(mutex_of(r));
		if (LOAD(&r->ext->quiesce))
			STORE(&r->ext->quiesce, 0);
		region_rebuild_locked(r);
		return 0;
	}
	return -e;
}

void region_unlock(struct region *r)
{
	pthread_mutex_unlock(mutex_of(r));
}

/* ---- the semaphore of older readers -------------------------------------------------------- */

/*
 * Two layers. Our processes exclude each other with the robust mutex above, which the kernel opens
 * when its holder dies. Readers of layout 1.2 know only sem: it is taken on top, as the fast path; if
 * it does not come, the record locks tell whether owner_pid lives, and a dead owner's turn is ended for
 * it. It is never waited for without end: what it protects from us is a torn read of a count.
 */
enum { SEM_TRIES = 200, SEM_TRY_NS = 1000000 };

static sem_t *sem_of(const struct region *r)
{
	return (sem_t *)(void *)r->base->sem;
}

void region_sems_init(struct vgpu_region *base)
{
	sem_init((sem_t *)(void *)base->sem, 1, 1);
	sem_init((sem_t *)(void *)base->sem_postinit, 1, 1);
}

/* Whether the process that says it holds sem is one of ours and alive, or unknown to us. */
static bool owner_gone(const struct region *r, uint64_t owner)
{
	int count = LOAD(&r->base->slot_count);

	for (int i = 0; i < count && i < VGPU_REGION_SLOTS; i++)
		if ((uint64_t)(uint32_t)LOAD(&r->base->slot[i].pid) == owner)
			return !region_slot_alive(r, i);
	return region_start_time((int32_t)owner) == 0;
}

void region_sem_enter(struct region *r)
{
	for (int i = 0; i < SEM_TRIES; i++) {
		struct timespec nap = { 0, SEM_TRY_NS };
		uint64_t owner;

		if (sem_trywait(sem_of(r)) == 0)
			break;
		owner = LOAD(&r->base->owner_pid);
		/* Nobody's, half way through: a holder died between the two steps. */
		if (owner != 0 && owner_gone(r, owner))
			break; /* its turn becomes ours: the one post below ends both */
		nanosleep(&nap, NULL);
	}
	STORE(&r->base->owner_pid, (uint64_t)(uint32_t)r->pid);
}

void region_sem_leave(struct region *r)
{
	int value = 0;

	STORE(&r->base->owner_pid, 0);
	/* Binary: a turn that was taken over or timed out must not leave two. */
	if (sem_getvalue(sem_of(r), &value) == 0 && value < 1)
		sem_post(sem_of(r));
}
