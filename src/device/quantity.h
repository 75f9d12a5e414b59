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
	int64_t value; /* a fraction is rounded away from zero, as Quantity.Value() does */
	/* The text is a whole number, however it is written: "2", "2.0", "2000m", "0.5Ki". Other
	 * readers call "2.0" inexact because of how they hold it; what a user wrote is what counts. */
	bool exact;
	/* Written with a suffix that multiplies (k, M, …, Ki, Mi, …), which on a large count of MiB is
	 * nearly always meant as bytes: worth a hint in an error. */
	bool large_suffix;
};

/*
 * Exact for any number of digits: no floating point, nothing dropped. -EINVAL for text that is no
 * quantity, -ERANGE when the magnitude passes INT64_MAX (Kubernetes saturates there; here nobody asks
 * for 2^63 MiB on purpose).
 */
int vg_quantity_parse(struct vg_span text, struct vg_quantity *ret_quantity, struct vg_err *err);

#endif
