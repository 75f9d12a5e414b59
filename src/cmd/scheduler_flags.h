/* SPDX-License-Identifier: Apache-2.0 */
#ifndef VGPU_CMD_SCHEDULER_FLAGS_H
#define VGPU_CMD_SCHEDULER_FLAGS_H

#include <stdio.h>

#include "base/err.h"

/* The text of each flag, its default, or NULL. A flag without argument is "true" when given. */
struct scheduler_flags {
#define GROUP(heading)
#define FLAG(name, text, argument, value, help) const char *name;
#include "cmd/scheduler_flags.def"
#undef FLAG
#undef GROUP
};

/* The texts point into argv. -EINVAL names the flag that is wrong. */
int scheduler_flags_parse(int argc, char **argv, struct scheduler_flags *ret_flags,
			  struct vg_err *err);
void scheduler_flags_help(FILE *to);

#endif
