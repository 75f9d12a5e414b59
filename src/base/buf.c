/* SPDX-License-Identifier: Apache-2.0 */
#include "base/buf.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void vg_buf_init(struct vg_buf *buf, size_t max)
{
	*buf = (struct vg_buf){ .max = max };
}

void vg_buf_release(struct vg_buf *buf)
{
	if (!buf)
		return;
	free(buf->data);
	vg_buf_init(buf, buf->max);
}

void vg_buf_clear(struct vg_buf *buf)
{
	buf->used = 0;
	buf->over = false;
	if (buf->data)
		buf->data[0] = '\0';
}

static int reserve(struct vg_buf *buf, size_t size)
{
	if (size > buf->max || buf->used > buf->max - size) {
		buf->over = true;
		return -E2BIG;
	}
	if (buf->room < buf->used + size + 1) {
		size_t room = buf->room ? buf->room : 256;

		while (room < buf->used + size + 1)
			room *= 2;
		buf->data = vg_grow(buf->data, room, 1);
		buf->room = room;
	}
	return 0;
}

int vg_buf_add(struct vg_buf *buf, const void *data, size_t size)
{
	int r = reserve(buf, size);

	if (r < 0)
		return r;
	if (size)
		memcpy(buf->data + buf->used, data, size);
	buf->used += size;
	buf->data[buf->used] = '\0';
	return 0;
}

int vg_buf_adds(struct vg_buf *buf, const char *text)
{
	return vg_buf_add(buf, text, strlen(text));
}

int vg_buf_addf(struct vg_buf *buf, const char *format, ...)
{
	va_list args;
	va_list again;
	int length;
	int r;

	va_start(args, format);
	va_copy(again, args);
	length = vsnprintf(NULL, 0, format, args);
	va_end(args);
	r = length < 0 ? -EINVAL : reserve(buf, (size_t)length);
	if (r == 0) {
		vsnprintf(buf->data + buf->used, (size_t)length + 1, format, again);
		buf->used += (size_t)length;
	}
	va_end(again);
	return r;
}

bool vg_buf_failed(const struct vg_buf *buf)
{
	return buf->over;
}

void vg_buf_consume(struct vg_buf *buf, size_t size)
{
	if (size >= buf->used) {
		buf->used = 0;
	} else {
		memmove(buf->data, buf->data + size, buf->used - size);
		buf->used -= size;
	}
	if (buf->data)
		buf->data[buf->used] = '\0';
}

char *vg_buf_steal(struct vg_buf *buf, size_t *ret_size)
{
	char *data = buf->data ? buf->data : vg_strdup("");

	if (ret_size)
		*ret_size = buf->used;
	vg_buf_init(buf, buf->max);
	return data;
}
