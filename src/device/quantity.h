/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kubernetes quantities ("2", "500m", "16Gi", "1e3").
 *
 * Source: apimachinery pkg/api/resource, grammar in the comment of type Quantity: optional sign,
 * digits with an optional fraction, and a suffix n u m k M G T P E, Ki Mi Gi Ti Pi Ei, or an exponent.
 */
#ifndef VGPU_DEVICE_QUANTITY_H
#define VGPU_DEVICE_QUANTITY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

struct vg_quantity {
	int64_t value; /* rounded up, away from zero in neither direction: ceil(), as Quantity.Value() */
	bool exact; /* the value is a whole number that fits an int64 */
	/* Written with a binary suffix (Ki, Mi, …), which on a count of MiB is nearly always meant as
	 * bytes: worth a hint in an error. */
	bool binary_suffix;
};

/* -EINVAL for text that is no quantity, -ERANGE when it does not fit (the value saturates in
 * Kubernetes; here nobody asks for 2^63 MiB on purpose). */
int vg_quantity_parse(struct vg_span text, struct vg_quantity *ret_quantity, struct vg_err *err);

#endif
