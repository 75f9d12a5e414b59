/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

static int64_t read_ns(clockid_t id)
{
	struct timespec now;

	clock_gettime(id, &now);
	return (int64_t)now.tv_sec * VG_NS_PER_S + now.tv_nsec;
}

int64_t vg_clock_mono_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

int64_t vg_clock_unix_s(void)
{
	return read_ns(CLOCK_REALTIME) / VG_NS_PER_S;
}
