/* SPDX-License-Identifier: Apache-2.0 */
/* When to try again: back-off with jitter, and what servers say in Retry-After. */
#ifndef VGPU_KUBE_RETRY_INTERNAL_H
#define VGPU_KUBE_RETRY_INTERNAL_H

#include <stdint.h>

/* No server may send us away for longer than this. */
#define VG_RETRY_AFTER_MAX_MS 60000

/*
 * The wait before try number `attempt` (from 0): `min_ms` doubled each time up to `max_ms`, of which a
 * random part between a half and the whole is taken, so that clients that failed together do not come
 * back together. `random` is any 32 random bits.
 */
int32_t vg_backoff_ms(uint32_t attempt, int32_t min_ms, int32_t max_ms, uint32_t random);

/*
 * The value of a Retry-After header: seconds, or an HTTP date seen at `now_unix_s`. Capped at
 * VG_RETRY_AFTER_MAX_MS; a date in the past is 0. -1 for anything else.
 */
int32_t vg_retry_after_ms(const char *text, int64_t now_unix_s);

/* Random numbers for jitter, not for secrets. Starts from the kernel's. */
struct vg_random {
	uint64_t state;
};

void vg_random_init(struct vg_random *random);
uint32_t vg_random_next(struct vg_random *random);
/* 0 to max, max included. */
int32_t vg_random_up_to(struct vg_random *random, int32_t max);

#endif
