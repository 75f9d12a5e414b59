/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

int vg_fail(struct vg_err *err, int code, const char *format, ...)
{
	if (err) {
		va_list args;

		va_start(args, format);
		err->code = -code;
		vsnprintf(err->msg, sizeof(err->msg), format, args);
		va_end(args);
	}
	return -code;
}

int vg_err_wrap(struct vg_err *err, int code, const char *format, ...)
{
	char inner[VG_ERR_MSG_MAX];
	va_list args;
	size_t used;

	if (!err)
		return code;
	memcpy(inner, err->msg, sizeof(inner));
	va_start(args, format);
	vsnprintf(err->msg, sizeof(err->msg), format, args);
	va_end(args);
	used = strlen(err->msg);
	snprintf(err->msg + used, sizeof(err->msg) - used, ": %s", inner);
	err->code = code;
	return code;
}
