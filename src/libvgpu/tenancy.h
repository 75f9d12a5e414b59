/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who else was on the card. The device divides its time among the processes that have work, in slices
 * of some milliseconds, so the interval between two events of ours holds the slices of other tenants,
 * and charging it whole would take from both what each has paid for. NVML's figures per process are no
 * help: measured here, they attribute whole sampling periods to one process.
 *
 * So the processes of all containers on a node tell each other when they had work on a card: rows of
 * a file in a folder that the node mounts into its containers (/tmp/vgpulock, which HAMi's device
 * plugin mounts as well). What a row says only changes how an interval is divided. Tenants can lie in
 * it: claiming work that is not there gives time to the others; hiding work, or damaging the file,
 * leads back to whole intervals, which never exceed anybody's limit. It is read and written with
 * pread() and pwrite(), never mapped: no tenant can hurt another process through it.
 */
#ifndef VGPU_LIBVGPU_TENANCY_H
#define VGPU_LIBVGPU_TENANCY_H

#include <stdbool.h>
#include <stdint.h>

#include "vgpu/region.h"

enum {
	VG_TENANT_ROWS = 64,
	VG_TENANT_INTERVALS = 28,
	VG_TENANT_STALE_MS = 2000,
	VG_TENANT_WHOLE = 65536,
	VG_TENANT_LAG_NS = 4000000,
};

/* One process with work on one card. */
struct vg_tenant {
	uint64_t magic;
	uint64_t process;    /* random; 0: free */
	uint64_t container;  /* same for all processes of a region */
	uint64_t updated_ns; /* CLOCK_MONOTONIC, like all times here */
	uint64_t open_ns;    /* work under way since, 0: none */
	uint64_t until_ns;   /* and expected until */
	uint32_t count;
	uint32_t reserved;
	struct vgpu_region_interval busy[VG_TENANT_INTERVALS]; /* newest last */
	uint64_t padding;
};

_Static_assert(sizeof(struct vg_tenant) == 512, "a row is one write");

/*
 * Pure. Which part of [start, end] was ours, in parts of VG_TENANT_WHOLE: at every moment the processes
 * with work have equal shares, and ours are those of `container`. The caller's own process counts for
 * the whole interval. Rows may hold anything.
 */
uint32_t vg_tenant_part(const struct vg_tenant *rows, int count, uint64_t process,
			uint64_t container, uint64_t start_ns, uint64_t end_ns, uint64_t now_ns);

/* Pure. Notes that a process was busy; joins what touches. */
void vg_tenant_note(struct vg_tenant *row, uint64_t start_ns, uint64_t end_ns);

/* The rows of one card. Not thread-safe: the caller owns the meter of the device's work. */
struct vg_tenancy {
	int fd; /* -1: none, alone */
	bool tried;
	int row;
	uint64_t published_ns;
	bool others; /* somebody else was seen lately */
	struct vg_tenant own;
	struct vg_tenant rows[VG_TENANT_ROWS]; /* what was read last: too much for a stack */
};

void vg_tenancy_open(struct vg_tenancy *t, const char *uuid, uint64_t container, uint64_t now_ns);
/* Work is under way until about until_ns (0: none). */
void vg_tenancy_working(struct vg_tenancy *t, uint64_t since_ns, uint64_t until_ns,
			uint64_t now_ns);
/* An interval of ours has been measured: tells the others. */
void vg_tenancy_publish(struct vg_tenancy *t, uint64_t start_ns, uint64_t end_ns, uint64_t now_ns);
/* Its part that was ours. Best asked VG_TENANT_LAG_NS later, when the others have told theirs. */
uint32_t vg_tenancy_part(struct vg_tenancy *t, uint64_t start_ns, uint64_t end_ns, uint64_t now_ns);
/* In a forked child. */
void vg_tenancy_abandon(struct vg_tenancy *t);

#endif
