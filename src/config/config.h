/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The device configuration file: HAMi's device-config YAML, unchanged. Every key is one row of
 * config_keys.def; unknown keys warn, wrong types and ranges are errors "file:line: key: reason".
 */
#ifndef VGPU_CONFIG_CONFIG_H
#define VGPU_CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "device/class.h"

/* Gets every complaint as one line "file:line: key: reason", warnings and errors alike. */
typedef void (*vg_config_complaint)(void *ctx, bool is_error, const char *line);

/*
 * Reads the file into the classes (initialised by the caller; keys that are absent keep their value).
 * All complaints are reported, not only the first; -EINVAL when any of them was an error, and the
 * classes are then not to be used.
 */
int vg_config_load(const char *path, struct vg_classes *classes, vg_config_complaint complaint,
		   void *ctx, struct vg_err *err);
/* The same from memory. */
int vg_config_parse(const char *name, const char *text, size_t size, struct vg_classes *classes,
		    vg_config_complaint complaint, void *ctx, struct vg_err *err);

#endif
