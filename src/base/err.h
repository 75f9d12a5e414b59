/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one error contract of the tree.
 *
 * A function that can fail returns 0 or a negative errno, and takes a `struct vg_err *` as its last
 * argument. The object lives on the caller's stack; it may be NULL when the caller needs the code
 * only. A failing function fills it once, where it knows what went wrong; callers on the way up add
 * what they were doing with vg_err_wrap(). The text names the thing, the cause and, where there is
 * one, the next step. Whoever handles the error logs it, once.
 */
#ifndef VGPU_BASE_ERR_H
#define VGPU_BASE_ERR_H

#include <stdarg.h>

#define VG_ERR_MSG_MAX 512

/* Starts as { 0 }. */
struct vg_err {
	int code; /* negative errno, 0 while nothing failed */
	char msg[VG_ERR_MSG_MAX];
};

/* Fills `err` (may be NULL) and returns -code. `code` is a positive errno. */
int vg_fail(struct vg_err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Puts "context: " in front of the message and returns the code that is there. `err` may be NULL:
 * then `code` is all there is, so it is passed in and handed back. */
int vg_err_wrap(struct vg_err *err, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
