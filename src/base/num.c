/* SPDX-License-Identifier: Apache-2.0 */
#include "base/num.h"

#include <errno.h>
#include <stddef.h>

/* What of a wrong value an error message repeats. */
#define SHOWN_MAX 64

static int shown(struct vg_span text)
{
	return (int)(text.size < SHOWN_MAX ? text.size : SHOWN_MAX);
}

static int parse_digits(struct vg_span text, uint64_t *ret_value)
{
	uint64_t value = 0;

	if (!text.size)
		return -EINVAL;
	for (size_t i = 0; i < text.size; i++) {
		char c = text.data[i];

		if (c < '0' || c > '9')
			return -EINVAL;
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
			return -ERANGE;
	}
	*ret_value = value;
	return 0;
}

int vg_parse_u64(struct vg_span text, uint64_t min, uint64_t max, uint64_t *ret_value,
		 struct vg_err *err)
{
	uint64_t value = 0;
	int r = parse_digits(text, &value);

	if (r == -EINVAL)
		return vg_fail(err, EINVAL, "\"%.*s\" is not a whole number", shown(text),
			       text.data);
	if (r < 0 || value < min || value > max)
		return vg_fail(err, ERANGE, "%.*s is outside %llu to %llu", shown(text), text.data,
			       (unsigned long long)min, (unsigned long long)max);
	*ret_value = value;
	return 0;
}

int vg_parse_i64(struct vg_span text, int64_t min, int64_t max, int64_t *ret_value,
		 struct vg_err *err)
{
	struct vg_span digits = text;
	bool negative = false;
	uint64_t magnitude = 0;
	int64_t value = 0;
	int r;

	if (digits.size && (digits.data[0] == '-' || digits.data[0] == '+')) {
		negative = digits.data[0] == '-';
		digits.data++;
		digits.size--;
	}
	r = parse_digits(digits, &magnitude);
	if (r == -EINVAL)
		return vg_fail(err, EINVAL, "\"%.*s\" is not a whole number", shown(text),
			       text.data);
	if (r == 0) {
		if (magnitude <= INT64_MAX)
			value = negative ? -(int64_t)magnitude : (int64_t)magnitude;
		else if (negative && magnitude == (uint64_t)INT64_MAX + 1)
			value = INT64_MIN;
		else
			r = -ERANGE;
	}
	if (r < 0 || value < min || value > max)
		return vg_fail(err, ERANGE, "%.*s is outside %lld to %lld", shown(text), text.data,
			       (long long)min, (long long)max);
	*ret_value = value;
	return 0;
}

int vg_parse_bool(struct vg_span text, bool *ret_value, struct vg_err *err)
{
	static const char *const yes[] = { "1", "t", "T", "TRUE", "true", "True" };
	static const char *const no[] = { "0", "f", "F", "FALSE", "false", "False" };

	for (size_t i = 0; i < sizeof(yes) / sizeof(yes[0]); i++) {
		if (vg_span_eq(text, yes[i])) {
			*ret_value = true;
			return 0;
		}
		if (vg_span_eq(text, no[i])) {
			*ret_value = false;
			return 0;
		}
	}
	return vg_fail(err, EINVAL, "\"%.*s\" is neither true nor false", shown(text), text.data);
}
