/* SPDX-License-Identifier: Apache-2.0 */
#include "libvgpu/tenancy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vgpu/environment.h"

static const uint64_t MAGIC = 0x76677074656e6132ull; /* "vgptena2" */

enum {
	POINTS = 96, /* ends of intervals looked at in one question */
	PUBLISH_NS = 1000000,
	NAME = 192,
};

/* ---- pure part ---------------------------------------------------------------------------------- */

static bool plausible(const struct vg_tenant *row, uint64_t now_ns)
{
	return row->magic == MAGIC && row->process && row->count <= VG_TENANT_INTERVALS &&
	       row->updated_ns <= now_ns + VG_TENANT_STALE_MS * 1000000ull &&
	       now_ns - row->updated_ns + VG_TENANT_STALE_MS * 1000000ull <
		       2 * VG_TENANT_STALE_MS * 1000000ull;
}

/* Until when the work under way counts: its word, but not for ever. */
static uint64_t open_end(const struct vg_tenant *row, uint64_t now_ns)
{
	return row->until_ns < now_ns ? row->until_ns : now_ns;
}

static bool works_at(const struct vg_tenant *row, uint64_t from, uint64_t to, uint64_t now_ns)
{
	if (row->open_ns && row->open_ns <= from && open_end(row, now_ns) >= to)
		return true;
	for (uint32_t i = row->count; i > 0; i--)
		if (row->busy[i - 1].start_ns <= from && row->busy[i - 1].end_ns >= to)
			return true;
	return false;
}

struct points {
	uint64_t at[POINTS];
	int count;
};

static void add_point(struct points *p, uint64_t at, uint64_t start, uint64_t end)
{
	int i;

	if (at <= start || at >= end || p->count == POINTS)
		return;
	for (i = p->count; i > 0 && p->at[i - 1] > at; i--)
		p->at[i] = p->at[i - 1];
	p->at[i] = at;
	p->count++;
}

uint32_t vg_tenant_part(const struct vg_tenant *rows, int count, uint64_t process,
			uint64_t container, uint64_t start_ns, uint64_t end_ns, uint64_t now_ns)
{
	struct points points = { .count = 0 };
	const struct vg_tenant *near[VG_TENANT_ROWS];
	uint64_t from = start_ns, whole;
	double ours_ns = 0;
	int others = 0;

	if (end_ns <= start_ns)
		return VG_TENANT_WHOLE;
	whole = end_ns - start_ns;
	for (int r = 0; r < count && r < VG_TENANT_ROWS; r++) {
		const struct vg_tenant *row = &rows[r];

		if (row->process == process || !plausible(row, now_ns))
			continue;
		near[others++] = row;
		for (uint32_t i = 0; i < row->count; i++) {
			add_point(&points, row->busy[i].start_ns, start_ns, end_ns);
			add_point(&points, row->busy[i].end_ns, start_ns, end_ns);
		}
		if (row->open_ns) {
			add_point(&points, row->open_ns, start_ns, end_ns);
			add_point(&points, open_end(row, now_ns), start_ns, end_ns);
		}
	}
	if (!others)
		return VG_TENANT_WHOLE;
	for (int i = 0; i <= points.count; i++) {
		uint64_t to = i < points.count ? points.at[i] : end_ns;
		unsigned int ours = 1, theirs = 0;

		if (to == from)
			continue;
		for (int r = 0; r < others; r++) {
			if (!works_at(near[r], from, to, now_ns))
				continue;
			if (near[r]->container == container)
				ours++;
			else
				theirs++;
		}
		ours_ns += (double)(to - from) * ours / (ours + theirs);
		from = to;
	}
	return (uint32_t)(ours_ns * VG_TENANT_WHOLE / (double)whole + 0.5);
}

void vg_tenant_note(struct vg_tenant *row, uint64_t start_ns, uint64_t end_ns)
{
	uint32_t n = row->count;

	if (end_ns <= start_ns)
		return;
	if (n && start_ns <= row->busy[n - 1].end_ns && end_ns >= row->busy[n - 1].start_ns) {
		if (start_ns < row->busy[n - 1].start_ns)
			row->busy[n - 1].start_ns = start_ns;
		if (end_ns > row->busy[n - 1].end_ns)
			row->busy[n - 1].end_ns = end_ns;
		return;
	}
	if (n == VG_TENANT_INTERVALS) {
		memmove(&row->busy[0], &row->busy[1], (n - 1) * sizeof(row->busy[0]));
		n--;
	}
	row->busy[n] = (struct vgpu_region_interval){ start_ns, end_ns };
	row->count = n + 1;
}

/* ---- the file -------------------------------------------------------------------------------------- */

/* A row is held by a record lock, so that the rows of the dead are free at once. */
static bool take_row(struct vg_tenancy *t)
{
	for (int i = 0; i < VG_TENANT_ROWS; i++) {
		struct flock lock = { .l_type = F_WRLCK,
				      .l_whence = SEEK_SET,
				      .l_start = (off_t)i * (off_t)sizeof(struct vg_tenant),
				      .l_len = 1 };

		if (fcntl(t->fd, F_OFD_SETLK, &lock) == 0 ||
		    (errno == EINVAL && fcntl(t->fd, F_SETLK, &lock) == 0)) {
			t->row = i;
			return true;
		}
	}
	return false;
}

void vg_tenancy_open(struct vg_tenancy *t, const char *uuid, uint64_t container, uint64_t now_ns)
{
	const char *folder = getenv(VGPU_ENV_TENANT_FOLDER);
	char name[NAME];
	struct stat st;
	int n;

	t->tried = true;
	t->fd = -1;
	if (!uuid[0] || strchr(uuid, '/'))
		return;
	/* Only where the node has made the folder: it means nothing inside one container. */
	n = snprintf(name, sizeof(name), "%s/vgpu-%.64s.tenants",
		     folder && *folder ? folder : VGPU_TENANT_DEFAULT_FOLDER, uuid);
	if (n < 0 || n >= (int)sizeof(name))
		return;
	t->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0666);
	if (t->fd < 0)
		return;
	if (fstat(t->fd, &st) < 0 || !S_ISREG(st.st_mode) || !take_row(t)) {
		close(t->fd);
		t->fd = -1;
		return;
	}
	(void)fchmod(t->fd, 0666);
	memset(&t->own, 0, sizeof(t->own));
	t->own.magic = MAGIC;
	t->own.container = container;
	t->own.process = (container ^ ((uint64_t)getpid() << 32) ^ now_ns) | 1;
}

static void publish(struct vg_tenancy *t, uint64_t now_ns)
{
	t->own.updated_ns = now_ns;
	t->published_ns = now_ns;
	if (pwrite(t->fd, &t->own, sizeof(t->own), (off_t)t->row * (off_t)sizeof(t->own)) < 0) {
		close(t->fd); /* a full disk: alone, then */
		t->fd = -1;
	}
}

void vg_tenancy_working(struct vg_tenancy *t, uint64_t since_ns, uint64_t until_ns, uint64_t now_ns)
{
	bool change;

	if (t->fd < 0)
		return;
	change = t->own.open_ns != since_ns || until_ns > t->own.until_ns;
	t->own.open_ns = since_ns;
	t->own.until_ns = until_ns;
	if (change && (now_ns - t->published_ns > PUBLISH_NS || !since_ns))
		publish(t, now_ns);
}

void vg_tenancy_publish(struct vg_tenancy *t, uint64_t start_ns, uint64_t end_ns, uint64_t now_ns)
{
	if (t->fd < 0)
		return;
	vg_tenant_note(&t->own, start_ns, end_ns);
	publish(t, now_ns);
}

uint32_t vg_tenancy_part(struct vg_tenancy *t, uint64_t start_ns, uint64_t end_ns, uint64_t now_ns)
{
	ssize_t n;
	int rows;

	if (t->fd < 0)
		return VG_TENANT_WHOLE;
	n = pread(t->fd, t->rows, sizeof(t->rows), 0);
	if (n < (ssize_t)sizeof(t->rows[0]))
		return VG_TENANT_WHOLE;
	rows = (int)((size_t)n / sizeof(t->rows[0]));
	t->others = false;
	for (int i = 0; i < rows && !t->others; i++)
		t->others = t->rows[i].process != t->own.process && plausible(&t->rows[i], now_ns);
	return vg_tenant_part(t->rows, rows, t->own.process, t->own.container, start_ns, end_ns,
			      now_ns);
}

void vg_tenancy_abandon(struct vg_tenancy *t)
{
	if (t->tried && t->fd >= 0)
		close(t->fd);
	memset(t, 0, sizeof(*t));
	t->fd = -1;
}
