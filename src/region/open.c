/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "region/internal.h"

enum { REGION_PATH = 512, REGION_MODE = 0666 };

static void set_base(struct region *r, void *memory)
{
	r->base = memory;
	r->ext = (struct vgpu_region_ext *)(void *)((char *)memory + VGPU_REGION_EXT_OFFSET);
}

/* ---- contents ------------------------------------------------------------------------------ */

enum contents {
	CONTENTS_EMPTY,
	CONTENTS_STALE,
	CONTENTS_OLD_BASE,
	CONTENTS_OURS,
	CONTENTS_FOREIGN
};

static bool all_zero(const void *bytes, size_t n)
{
	const unsigned char *at = bytes;

	for (size_t i = 0; i < n; i++)
		if (at[i])
			return false;
	return true;
}

/*
 * What a file of this size holds. Only reads; the file may be anything. STALE is a region that cannot
 * be in use by anybody: too short to be mapped.
 */
static enum contents classify(int fd, off_t size, struct region_fault *fault)
{
	struct {
		int32_t magic;
		uint32_t major, minor;
	} head = { 0 };
	struct {
		uint64_t magic;
		uint32_t version, bytes;
	} ext = { 0 };
	ssize_t n = pread(fd, &head, sizeof(head), 0);

	if (n < 0) {
		region_fail(fault, "cannot be read: %s", strerror(errno));
		return CONTENTS_FOREIGN;
	}
	if (all_zero(&head, sizeof(head))) {
		/* Created and never finished, or of another kind that starts with zeroes. */
		if (size == 0 || size == VGPU_REGION_BASE_BYTES + 1 ||
		    size == (off_t)VGPU_REGION_FILE_BYTES)
			return CONTENTS_EMPTY;
		region_fail(fault, "is no region (%lld bytes, no magic)", (long long)size);
		return CONTENTS_FOREIGN;
	}
	if (n < (ssize_t)sizeof(head) || head.magic != VGPU_REGION_MAGIC) {
		region_fail(fault, "is no region: it starts with other data");
		return CONTENTS_FOREIGN;
	}
	if (size < VGPU_REGION_BASE_BYTES)
		return CONTENTS_STALE;
	if (head.major != VGPU_REGION_MAJOR || head.minor != VGPU_REGION_MINOR) {
		region_fail(fault, "has layout %u.%u, this library writes %d.%d",
			    (unsigned int)head.major, (unsigned int)head.minor, VGPU_REGION_MAJOR,
			    VGPU_REGION_MINOR);
		return CONTENTS_FOREIGN;
	}
	if (pread(fd, &ext, sizeof(ext), VGPU_REGION_EXT_OFFSET) != (ssize_t)sizeof(ext) ||
	    ext.magic == 0)
		return CONTENTS_OLD_BASE;
	if (ext.magic != VGPU_REGION_EXT_MAGIC || ext.version != VGPU_REGION_EXT_VERSION ||
	    ext.bytes != sizeof(struct vgpu_region_ext)) {
		region_fail(fault, "has an extension of version %u, this library writes %d",
			    (unsigned int)ext.version, VGPU_REGION_EXT_VERSION);
		return CONTENTS_FOREIGN;
	}
	if (size < (off_t)VGPU_REGION_FILE_BYTES)
		return CONTENTS_STALE;
	return CONTENTS_OURS;
}

static void write_limits(struct region *r, const struct region_setup *setup, bool only_set)
{
	for (int d = 0; d < VGPU_REGION_DEVICES; d++) {
		uint32_t state = LOAD(&r->ext->device[d].state);

		if (!only_set || setup->memory_set[d]) {
			STORE(&r->base->limit[d], setup->limit[d]);
			state = (state & ~(uint32_t)VGPU_DEVICE_LIMIT_INVALID) |
				(setup->state[d] & VGPU_DEVICE_LIMIT_INVALID);
		}
		if (!only_set || setup->sm_set[d]) {
			STORE(&r->base->sm_limit[d], setup->sm_limit[d]);
			state = (state & ~(uint32_t)VGPU_DEVICE_SM_INVALID) |
				(setup->state[d] & VGPU_DEVICE_SM_INVALID);
		}
		STORE(&r->ext->device[d].state, state);
	}
	if (setup->seal)
		r->ext->flags |= VGPU_REGION_SEALED;
}

static uint64_t random_id(void)
{
	uint64_t id = 0;

	/* By number: the wrapper is younger than the libc that we promise to run on. */
	if (syscall(SYS_getrandom, &id, sizeof(id), 0) != (long)sizeof(id)) {
		struct timespec now;

		clock_gettime(CLOCK_MONOTONIC, &now);
		id = (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec ^ (uint64_t)getpid() << 16;
	}
	return id | 1;
}

static int init_ext(struct region *r)
{
	int e;

	memset(r->ext, 0, sizeof(*r->ext));
	e = region_mutex_init(r->ext);
	if (e < 0)
		return e;
	r->ext->id = random_id();
	r->ext->version = VGPU_REGION_EXT_VERSION;
	r->ext->bytes = sizeof(*r->ext);
	STORE(&r->ext->magic, VGPU_REGION_EXT_MAGIC);
	return 0;
}

static int init_all(struct region *r, const struct region_setup *setup)
{
	int e;

	memset(r->base, 0, sizeof(*r->base));
	e = init_ext(r);
	if (e < 0)
		return e;
	region_sems_init(r->base);
	r->base->major = VGPU_REGION_MAJOR;
	r->base->minor = VGPU_REGION_MINOR;
	r->base->utilization_switch = 1;
	r->base->recent_kernel = 2;
	r->base->priority = setup->priority;
	r->base->last_kernel_time = (uint64_t)time(NULL);
	write_limits(r, setup, false);
	/* Last: whoever sees the magic may read the rest. */
	STORE(&r->base->magic, VGPU_REGION_MAGIC);
	return 0;
}

/*
 * A finished region: its limits stand as long as somebody lives in it, or if the node wrote them. A
 * region that nobody uses any more may be left over from another container: what the environment says
 * explicitly is then newer.
 */
static void adopt(struct region *r, const struct region_setup *setup)
{
	/* One living process is enough to know: hundreds may be starting at this moment. */
	if (region_some_alive(r))
		return;
	(void)region_reclaim(r);
	if (!(r->ext->flags & VGPU_REGION_SEALED))
		write_limits(r, setup, true);
}

/* ---- the file ------------------------------------------------------------------------------ */

static int open_file(const char *path, bool *ret_created, struct region_fault *fault)
{
	int fd;

	*ret_created = false;
	for (int i = 0; i < 3; i++) {
		fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
		if (fd >= 0 || errno != ENOENT)
			break;
		fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, REGION_MODE);
		if (fd >= 0) {
			/* Every user of the container takes part, whatever this process's umask. */
			(void)fchmod(fd, REGION_MODE);
			*ret_created = true;
			break;
		}
		if (errno != EEXIST)
			break;
	}
	if (fd < 0) {
		int e = errno;

		region_fail(fault, "cannot be opened: %s",
			    e == ELOOP ? "it is a symbolic link" : strerror(e));
		return -e;
	}
	return fd;
}

/* Moves the descriptor out of the range that programs close in loops, where it can be. */
static int move_high(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, 900);

	if (high < 0)
		return fd;
	close(fd);
	return high;
}

static int start(struct region *r, const struct region_setup *setup, struct region_fault *fault)
{
	struct stat st;
	enum contents contents;
	void *memory;
	int e;

	if (fstat(r->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		region_fail(fault, "is not a regular file");
		return -EINVAL;
	}
	r->device = st.st_dev;
	r->inode = st.st_ino;
	r->ofd_locks = true;
	e = region_record_lock(r, VGPU_REGION_LOCK_START, true);
	if (e == -EINVAL) {
		r->ofd_locks = false;
		e = region_record_lock(r, VGPU_REGION_LOCK_START, true);
	}
	if (e < 0) {
		region_fail(fault, "cannot be locked: %s", strerror(-e));
		return e;
	}
	/* Its size under the lock: another process may just have finished it. */
	if (fstat(r->fd, &st) < 0) {
		e = -errno;
		goto out;
	}
	contents = classify(r->fd, st.st_size, fault);
	if (contents == CONTENTS_FOREIGN) {
		e = -EMEDIUMTYPE;
		goto out;
	}
	/* Blocks, not holes: a full disk must fail here, not as SIGBUS in somebody's program. */
	if (st.st_size < (off_t)VGPU_REGION_FILE_BYTES ||
	    (uint64_t)st.st_blocks * 512 < VGPU_REGION_FILE_BYTES)
		e = -posix_fallocate(r->fd, 0, (off_t)VGPU_REGION_FILE_BYTES);
	if (e < 0) {
		region_fail(fault, "cannot hold %zu bytes: %s", VGPU_REGION_FILE_BYTES,
			    strerror(-e));
		goto out;
	}
	memory = mmap(NULL, VGPU_REGION_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (memory == MAP_FAILED) {
		e = -errno;
		region_fail(fault, "cannot be mapped: %s", strerror(errno));
		goto out;
	}
	set_base(r, memory);
	switch (contents) {
	case CONTENTS_OURS:
		adopt(r, setup);
		break;
	case CONTENTS_OLD_BASE:
		e = init_ext(r);
		if (e == 0) {
			region_rebuild_locked(r);
			adopt(r, setup);
		}
		break;
	case CONTENTS_EMPTY:
	case CONTENTS_STALE:
	case CONTENTS_FOREIGN:
		e = init_all(r, setup);
		break;
	}
	if (e < 0) {
		munmap(memory, VGPU_REGION_FILE_BYTES);
		r->base = NULL;
	}
out:
	region_record_unlock(r, VGPU_REGION_LOCK_START);
	return e;
}

int region_open_only(struct region *r, const char *path, const struct region_setup *setup,
		     struct region_fault *fault)
{
	bool created;
	int e;

	*r = (struct region){ .fd = -1, .slot = REGION_NO_SLOT, .pid = (int32_t)getpid() };
	r->fd = open_file(path, &created, fault);
	if (r->fd < 0) {
		e = r->fd;
		r->fd = -1;
		return e;
	}
	r->fd = move_high(r->fd);
	e = start(r, setup, fault);
	if (e < 0) {
		close(r->fd);
		r->fd = -1;
		if (created) /* an empty file of ours would only confuse the next opener */
			(void)unlink(path);
	}
	return e;
}

static uint64_t hash_of(const char *text)
{
	uint64_t h = 14695981039346656037ull;

	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * 1099511628211ull;
	return h;
}

int region_open(struct region *r, const char *path, const struct region_setup *setup,
		struct region_fault *fault)
{
	struct region_fault first = { "" }, other = { "" };
	char name[REGION_PATH];
	void *memory;
	int e;

	if (region_open_only(r, path, setup, &first) == 0)
		return 0;
	e = snprintf(name, sizeof(name), "%s.vgpu", path);
	if (e > 0 && e < (int)sizeof(name) && region_open_only(r, name, setup, &other) == 0)
		goto elsewhere;
	snprintf(name, sizeof(name), "/tmp/.vgpu-region-%016llx",
		 (unsigned long long)hash_of(path));
	if (region_open_only(r, name, setup, &other) == 0)
		goto elsewhere;

	memory = mmap(NULL, VGPU_REGION_FILE_BYTES, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED) {
		region_fail(fault, "%s: %s", path, first.text);
		return -errno;
	}
	*r = (struct region){ .fd = -1, .slot = REGION_NO_SLOT, .pid = (int32_t)getpid() };
	set_base(r, memory);
	e = init_all(r, setup);
	if (e < 0) {
		munmap(memory, VGPU_REGION_FILE_BYTES);
		return e;
	}
	region_fail(fault, "%.100s %.80s; limits hold for this process only", path, first.text);
	snprintf(r->ext->message, sizeof(r->ext->message), "%s", fault ? fault->text : first.text);
	return 1;

elsewhere:
	region_fail(fault, "%.80s %.70s; using %.80s", path, first.text, name);
	snprintf(r->ext->message, sizeof(r->ext->message), "%.120s %.120s", path, first.text);
	return 1;
}

int region_attach(struct region *r, const char *path, struct region_fault *fault)
{
	struct stat st;
	void *memory;
	int e = -EINVAL;

	*r = (struct region){ .fd = -1, .slot = REGION_NO_SLOT, .ofd_locks = true };
	r->fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (r->fd < 0) {
		region_fail(fault, "%s cannot be opened: %s", path, strerror(errno));
		return -errno;
	}
	r->pid = (int32_t)getpid();
	if (fstat(r->fd, &st) == 0 && S_ISREG(st.st_mode) &&
	    classify(r->fd, st.st_size, fault) == CONTENTS_OURS) {
		r->device = st.st_dev;
		r->inode = st.st_ino;
		memory = mmap(NULL, VGPU_REGION_FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			      r->fd, 0);
		if (memory != MAP_FAILED) {
			set_base(r, memory);
			return 0;
		}
		e = -errno;
	}
	region_fail(fault, "%s is not a complete region", path);
	close(r->fd);
	r->fd = -1;
	return e;
}

void region_close(struct region *r)
{
	if (!r->base)
		return;
	region_slot_release(r);
	region_abandon(r);
}

void region_abandon(struct region *r)
{
	if (r->base)
		munmap(r->base, VGPU_REGION_FILE_BYTES);
	if (r->fd >= 0)
		close(r->fd);
	*r = (struct region){ .fd = -1, .slot = REGION_NO_SLOT };
}
