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

/*
 * Gets every complaint as one line "file:line: key: reason", warnings and errors alike, in the order of
 * the file. May be NULL.
 */
typedef void (*vg_config_complaint)(void *ctx, bool is_error, const char *line);

/*
 * Reads the file into class 0 (initialised by the caller; keys that are absent or have no value keep
 * what is there). All complaints are reported, not only the first; -EINVAL when any of them was an error:
 * `err` then says how many (and the first one, when nobody takes complaints), and the classes are not to be
 * used. A file that cannot be read is no complaint: only `err` says so.
 */
int vg_config_load(const char *path, struct vg_classes *classes, vg_config_complaint complaint,
		   void *ctx, struct vg_err *err);
/* The same from memory. */
int vg_config_parse(const char *name, const char *text, size_t size, struct vg_classes *classes,
		    vg_config_complaint complaint, void *ctx, struct vg_err *err);

#endif
