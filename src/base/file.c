/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"

int vg_read_file(const char *path, size_t max, char **ret_text, size_t *ret_size,
		 struct vg_err *err)
{
	vg_autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct vg_buf text;

	if (fd < 0)
		return vg_fail(err, errno, "%s: cannot be opened: %s", path, strerror(errno));
	vg_buf_init(&text, max);
	for (;;) {
		char chunk[64 * 1024];
		ssize_t got = read(fd, chunk, sizeof(chunk));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			int code = errno;

			vg_buf_release(&text);
			return vg_fail(err, code, "%s: cannot be read: %s", path, strerror(code));
		}
		if (got == 0)
			break;
		if (vg_buf_add(&text, chunk, (size_t)got) < 0) {
			vg_buf_release(&text);
			return vg_fail(err, EFBIG, "%s: is larger than %zu bytes", path, max);
		}
	}
	*ret_text = vg_buf_steal(&text, ret_size);
	return 0;
}
