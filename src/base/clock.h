/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Time, always passed in: whoever decides anything by time takes the value, so that a test can choose
 * it. Only the edges (src/cmd, event loops) read a clock.
 */
#ifndef VGPU_BASE_CLOCK_H
#define VGPU_BASE_CLOCK_H

#include <stdint.h>

#define VG_NS_PER_MS 1000000LL
#define VG_NS_PER_S  1000000000LL

/* ns since an unspecified start; never goes back. */
int64_t vg_clock_mono_ns(void);
/* s since 1970-01-01 UTC. */
int64_t vg_clock_unix_s(void);

#endif
