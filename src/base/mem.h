/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for the daemons. Every input is bounded before anything is allocated for it (base/limits.h),
 * so running out of memory is not a condition that a request can provoke: the process says so and
 * aborts, and Kubernetes starts it again. libvgpu.so never uses this file.
 */
#ifndef VGPU_BASE_MEM_H
#define VGPU_BASE_MEM_H

#include <stddef.h>

/* Zeroed memory for one object of `size` bytes. Never NULL. Free with free(). */
void *vg_new(size_t size) __attribute__((malloc, returns_nonnull));
/* Zeroed memory for `count` objects; aborts on multiplication overflow. Never NULL. */
void *vg_new_array(size_t count, size_t size) __attribute__((malloc, returns_nonnull));
/* realloc() for `count` objects; new bytes are not zeroed. `count` 0 counts as 1. */
void *vg_grow(void *old, size_t count, size_t size) __attribute__((returns_nonnull));
char *vg_strdup(const char *text) __attribute__((malloc, returns_nonnull));
char *vg_strndup(const char *text, size_t max) __attribute__((malloc, returns_nonnull));
/* printf into new memory. */
char *vg_printf(const char *format, ...)
	__attribute__((format(printf, 1, 2), malloc, returns_nonnull));

#endif
