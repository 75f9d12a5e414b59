/* SPDX-License-Identifier: Apache-2.0 */
#include "trace.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/num.h"
#include "base/str.h"

#define FAILURES_MAX 32u

/* "symbol:nth:code", and "nth+" for that call and all after it */
struct failure {
	struct vg_span symbol;
	uint64_t nth;
	bool onwards;
	int code;
	uint64_t calls;
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int calls_fd = -1;
static struct failure failures[FAILURES_MAX];
static unsigned failure_count;
static pthread_mutex_t failure_lock = PTHREAD_MUTEX_INITIALIZER;

static bool parse_failure(struct vg_span item, struct failure *ret)
{
	struct failure failure = { 0 };
	struct vg_span nth, code;
	int64_t value;

	if (!vg_cut(&item, ':', &failure.symbol) || !vg_cut(&item, ':', &nth) ||
	    !vg_cut(&item, ':', &code) || item.data || !nth.size)
		return false;
	if (nth.data[nth.size - 1] == '+') {
		failure.onwards = true;
		nth.size--;
	}
	if (vg_parse_u64(nth, 1, UINT64_MAX, &failure.nth, NULL) < 0 ||
	    vg_parse_i64(code, INT32_MIN, INT32_MAX, &value, NULL) < 0)
		return false;
	failure.code = (int)value;
	*ret = failure;
	return true;
}

static void setup(void)
{
	const char *calls = getenv("VGPU_FAKE_CALLS");
	const char *fail = getenv("VGPU_FAKE_FAIL");

	if (calls && *calls)
		calls_fd = open(calls, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
	if (fail && *fail) {
		/* Kept for the life of the process: the table points into it. */
		static char copy[4096];
		struct vg_span rest, item;

		vg_copy(copy, sizeof(copy), fail);
		rest = VG_SPAN(copy);
		while (vg_cut(&rest, ',', &item)) {
			if (failure_count < FAILURES_MAX &&
			    parse_failure(item, &failures[failure_count]))
				failure_count++;
			else
				fprintf(stderr, "fake: VGPU_FAKE_FAIL: not symbol:nth:code: %.*s\n",
					(int)item.size, item.data);
		}
	}
}

void fake_trace_setup(void)
{
	pthread_once(&once, setup);
}

void fake_trace_after_fork(void)
{
	for (unsigned i = 0; i < failure_count; i++)
		failures[i].calls = 0;
}

bool fake_trace_fails(const char *symbol, int *ret_code)
{
	bool fails = false;

	if (!failure_count)
		return false;
	pthread_mutex_lock(&failure_lock);
	/* Every rule counts every call of its symbol; the first that applies decides. */
	for (unsigned i = 0; i < failure_count; i++) {
		struct failure *failure = &failures[i];

		if (!vg_span_eq(failure->symbol, symbol))
			continue;
		failure->calls++;
		if (fails || failure->calls < failure->nth ||
		    (failure->calls > failure->nth && !failure->onwards))
			continue;
		fails = true;
		*ret_code = failure->code;
	}
	pthread_mutex_unlock(&failure_lock);
	return fails;
}

bool fake_trace_on(void)
{
	return calls_fd >= 0;
}

/* Arguments leave this much for the result, which a line never loses. */
#define TAIL_ROOM 32u

static void __attribute__((format(printf, 2, 3)))
add(struct fake_line *line, const char *format, ...)
{
	size_t room = sizeof(line->text) - TAIL_ROOM - line->used;
	va_list args;
	int length;

	va_start(args, format);
	length = vsnprintf(line->text + line->used, room, format, args);
	va_end(args);
	if (length > 0)
		line->used += (size_t)length < room ? (size_t)length : room - 1;
}

static void name_of(struct fake_line *line, const char *name)
{
	add(line, "%s%s=", line->first ? "" : ", ", name);
	line->first = false;
}

void fake_line_begin(struct fake_line *line, const char *symbol)
{
	line->used = 0;
	line->first = true;
	add(line, "%d %ld %s(", (int)getpid(), (long)syscall(SYS_gettid), symbol);
}

void fake_line_signed(struct fake_line *line, const char *name, long long value)
{
	name_of(line, name);
	add(line, "%lld", value);
}

void fake_line_unsigned(struct fake_line *line, const char *name, unsigned long long value)
{
	name_of(line, name);
	/* Addresses are easier to compare in hexadecimal, sizes in decimal. */
	if (value >> 40)
		add(line, "0x%llx", value);
	else
		add(line, "%llu", value);
}

void fake_line_float(struct fake_line *line, const char *name, double value)
{
	name_of(line, name);
	add(line, "%g", value);
}

void fake_line_text(struct fake_line *line, const char *name, const char *value)
{
	name_of(line, name);
	if (value)
		add(line, "\"%.*s\"", 200, value);
	else
		add(line, "NULL");
}

void fake_line_pointer(struct fake_line *line, const char *name, const volatile void *value)
{
	name_of(line, name);
	if (value)
		add(line, "0x%llx", (unsigned long long)(uintptr_t)value);
	else
		add(line, "NULL");
}

void fake_line_end(struct fake_line *line, int result)
{
	ssize_t ignored;

	line->used += (size_t)snprintf(line->text + line->used, TAIL_ROOM, ") = %d\n", result);
	ignored = write(calls_fd, line->text, line->used);
	(void)ignored;
}
