/* SPDX-License-Identifier: Apache-2.0 */
/* Whole files, bounded. */
#ifndef VGPU_BASE_FILE_H
#define VGPU_BASE_FILE_H

#include <stddef.h>

#include "base/err.h"

/*
 * Reads a file of at most `max` bytes; longer is -EFBIG. The text is NUL-terminated behind its last
 * byte and comes from malloc(). Errors name the path.
 */
int vg_read_file(const char *path, size_t max, char **ret_text, size_t *ret_size,
		 struct vg_err *err);

#endif
