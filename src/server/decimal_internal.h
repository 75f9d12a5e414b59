/* SPDX-License-Identifier: Apache-2.0 */
/* Whole numbers as text. A scrape of a large cluster has a million of them, too many for printf(). */
#ifndef VGPU_SERVER_DECIMAL_INTERNAL_H
#define VGPU_SERVER_DECIMAL_INTERNAL_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

static inline void vg_buf_add_decimal(struct vg_buf *buf, int64_t value)
{
	char digits[20]; /* INT64_MIN has 19 digits and a sign */
	size_t at = sizeof(digits);
	/* The negation of INT64_MIN is no int64_t. */
	uint64_t left = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	do {
		digits[--at] = (char)('0' + left % 10);
		left /= 10;
	} while (left);
	if (value < 0)
		digits[--at] = '-';
	vg_buf_add(buf, digits + at, sizeof(digits) - at);
}

#endif
