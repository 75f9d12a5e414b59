/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/retry_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include <curl/curl.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/str.h"

int32_t vg_backoff_ms(uint32_t attempt, int32_t min_ms, int32_t max_ms, uint32_t random)
{
	int64_t wait = min_ms;

	for (uint32_t i = 0; i < attempt && wait < max_ms; i++)
		wait *= 2;
	if (wait > max_ms)
		wait = max_ms;
	return (int32_t)(wait - (int64_t)(random % (uint64_t)(wait / 2 + 1)));
}

int32_t vg_retry_after_ms(const char *text, int64_t now_unix_s)
{
	struct vg_span span = vg_trim(VG_SPAN(text));
	char date[64];
	int64_t seconds;
	time_t when;

	if (span.size == 0 || span.size >= sizeof(date))
		return -1;
	switch (vg_parse_i64(span, 0, VG_RETRY_AFTER_MAX_MS / 1000, &seconds, NULL)) {
	case 0:
		return (int32_t)(seconds * 1000);
	case -ERANGE:
		return span.data[0] == '-' ? -1 : VG_RETRY_AFTER_MAX_MS;
	default:
		break;
	}
	memcpy(date, span.data, span.size);
	date[span.size] = '\0';
	when = curl_getdate(date, NULL);
	if (when < 0)
		return -1;
	seconds = (int64_t)when - now_unix_s;
	if (seconds <= 0)
		return 0;
	return seconds >= VG_RETRY_AFTER_MAX_MS / 1000 ? VG_RETRY_AFTER_MAX_MS
						       : (int32_t)(seconds * 1000);
}

void vg_random_init(struct vg_random *random)
{
	if (getrandom(&random->state, sizeof(random->state), GRND_NONBLOCK) !=
	    sizeof(random->state))
		random->state = (uint64_t)vg_clock_mono_ns();
}

/* splitmix64: one addition and two multiplications, every state is good. */
uint32_t vg_random_next(struct vg_random *random)
{
	uint64_t z = random->state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return (uint32_t)((z ^ (z >> 31)) >> 32);
}

int32_t vg_random_up_to(struct vg_random *random, int32_t max)
{
	return max <= 0 ? 0 : (int32_t)(vg_random_next(random) % ((uint32_t)max + 1));
}
