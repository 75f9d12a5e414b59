/* SPDX-License-Identifier: Apache-2.0 */
#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *checked(void *memory, size_t size)
{
	if (!memory) {
		fprintf(stderr, "out of memory: %zu bytes could not be had\n", size);
		abort();
	}
	return memory;
}

void *vg_new(size_t size)
{
	return checked(calloc(1, size ? size : 1), size);
}

void *vg_new_array(size_t count, size_t size)
{
	/* calloc() itself checks the product. */
	return checked(calloc(count ? count : 1, size ? size : 1), size);
}

void *vg_grow(void *old, size_t count, size_t size)
{
	return checked(reallocarray(old, count ? count : 1, size ? size : 1), size);
}

char *vg_strdup(const char *text)
{
	return checked(strdup(text), strlen(text));
}

char *vg_strndup(const char *text, size_t max)
{
	return checked(strndup(text, max), max);
}

char *vg_printf(const char *format, ...)
{
	va_list args;
	char *text = NULL;
	int length;

	va_start(args, format);
	length = vasprintf(&text, format, args);
	va_end(args);
	return checked(length < 0 ? NULL : text, 0);
}
