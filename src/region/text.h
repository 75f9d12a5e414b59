/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as people and plugins write them. Pure. */
#ifndef VGPU_REGION_TEXT_H
#define VGPU_REGION_TEXT_H

#include <stdint.h>

/*
 * A size: decimal digits, then nothing or one of K, M, G, T (either case; powers of 1024), with
 * surrounding blanks allowed. No sign, fraction, hexadecimal or "GiB": a text that means something else
 * to its writer than to us must not become a limit. "0" is a size: no limit.
 * 0, or -EINVAL for text that is no size, or -ERANGE past 2^63 - 1; *ret_bytes only on success.
 */
int region_text_bytes(const char *text, uint64_t *ret_bytes);

/* A percentage: decimal digits, nothing else. Values over 100 are returned as they are. */
int region_text_percent(const char *text, uint64_t *ret_percent);

#endif
