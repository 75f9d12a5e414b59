/* SPDX-License-Identifier: Apache-2.0 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libvgpu/guest.h"
#include "region/text.h"
#include "vgpu/environment.h"

static int wanted = -1;

static int level(void)
{
	int now = __atomic_load_n(&wanted, __ATOMIC_RELAXED);
	const char *text;
	uint64_t value;

	if (now >= 0)
		return now;
	text = getenv(VGPU_ENV_LOG_LEVEL);
	now = text && region_text_bytes(text, &value) == 0 ? (value > 4 ? 4 : (int)value) : 0;
	__atomic_store_n(&wanted, now, __ATOMIC_RELAXED);
	return now;
}

void vg_log(enum vg_level at, const char *format, ...)
{
	static const char *const names[] = { "", "error", "warning", "info", "debug" };
	char line[512];
	va_list args;
	int n, m;

	if ((int)at > level())
		return;
	n = snprintf(line, sizeof(line), "vgpu %s pid=%d: ", names[at], (int)getpid());
	va_start(args, format);
	m = vsnprintf(line + n, sizeof(line) - (size_t)n - 1, format, args);
	va_end(args);
	if (m < 0)
		return;
	n += m;
	if (n > (int)sizeof(line) - 2)
		n = (int)sizeof(line) - 2;
	line[n++] = '\n';
	/* One write, so that lines of many processes stay whole. */
	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		return;
}
