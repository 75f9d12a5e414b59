/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers from text: the whole text, decimal, in range, or an error that says what was wrong. */
#ifndef VGPU_BASE_NUM_H
#define VGPU_BASE_NUM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/str.h"

/* An optional sign and decimal digits, nothing else. -EINVAL for other text, -ERANGE outside. */
int vg_parse_i64(struct vg_span text, int64_t min, int64_t max, int64_t *ret_value,
		 struct vg_err *err);
/* Decimal digits only. */
int vg_parse_u64(struct vg_span text, uint64_t min, uint64_t max, uint64_t *ret_value,
		 struct vg_err *err);
/*
 * The words that Go's strconv.ParseBool takes, since annotations are written for Go programs:
 * 1 t T TRUE true True, and 0 f F FALSE false False.
 */
int vg_parse_bool(struct vg_span text, bool *ret_value, struct vg_err *err);

#endif
