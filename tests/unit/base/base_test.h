/* SPDX-License-Identifier: Apache-2.0 */
/* What every unit test of this folder includes, in the order that cmocka wants. */
#ifndef VGPU_TESTS_UNIT_BASE_TEST_H
#define VGPU_TESTS_UNIT_BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* A small generator of our own: the same numbers on every machine. */
static inline uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

#endif
