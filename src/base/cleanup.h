/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ownership beside the variable: `vg_autofree char *text = …` is freed at the end of its scope, and
 * vg_steal(text) hands it over to somebody else and leaves NULL behind.
 *
 * The four life-cycle verbs have one meaning each everywhere: x_init() makes storage that the caller
 * owns usable, x_release() gives back what it holds, x_clear() empties it for reuse, x_free() ends a
 * heap object; all but init accept NULL and half-built objects.
 */
#ifndef VGPU_BASE_CLEANUP_H
#define VGPU_BASE_CLEANUP_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define vg_cleanup(function) __attribute__((cleanup(function)))

/* Defines function_p(), which takes the address of a pointer, as the attribute wants it. */
#define VG_DEFINE_CLEANUP(type, function)                                                          \
	static inline void function##_p(type *object)                                              \
	{                                                                                          \
		if (*object)                                                                       \
			function(*object);                                                         \
	}

#define vg_steal(pointer)                                                                          \
	__extension__({                                                                            \
		__typeof__(pointer) *vg_from_ = &(pointer);                                        \
		__typeof__(pointer) vg_taken_ = *vg_from_;                                         \
		*vg_from_ = NULL;                                                                  \
		vg_taken_;                                                                         \
	})

static inline void vg_free_p(void *pointer)
{
	free(*(void **)pointer);
}
#define vg_autofree vg_cleanup(vg_free_p)

static inline void vg_close_p(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
#define vg_autoclose vg_cleanup(vg_close_p)

static inline void vg_fclose_p(FILE **file)
{
	if (*file)
		fclose(*file);
}
#define vg_autofclose vg_cleanup(vg_fclose_p)

#endif
