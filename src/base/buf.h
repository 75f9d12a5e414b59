/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A byte buffer that grows up to a stated maximum. Going past the maximum is remembered, not
 * silently cut: check vg_buf_failed() once at the end.
 */
#ifndef VGPU_BASE_BUF_H
#define VGPU_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>

struct vg_buf {
	char *data; /* always followed by a NUL once something was added; NULL before */
	size_t used;
	size_t room;
	size_t max; /* bytes */
	bool over;
};

void vg_buf_init(struct vg_buf *buf, size_t max);
void vg_buf_release(struct vg_buf *buf);
/* Empties it and forgets a failure; keeps the memory. */
void vg_buf_clear(struct vg_buf *buf);
/* 0, or -E2BIG when it would pass the maximum: then nothing was added. */
int vg_buf_add(struct vg_buf *buf, const void *data, size_t size);
int vg_buf_adds(struct vg_buf *buf, const char *text);
int vg_buf_addf(struct vg_buf *buf, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Whether any addition failed since the last clear. */
bool vg_buf_failed(const struct vg_buf *buf);
/* Drops `size` bytes from the front. */
void vg_buf_consume(struct vg_buf *buf, size_t size);
/* Hands the text over (never NULL, free with free()) and leaves the buffer empty. */
char *vg_buf_steal(struct vg_buf *buf, size_t *ret_size);

#endif
