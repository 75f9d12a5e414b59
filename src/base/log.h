/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One line per event on standard error: time, level, component, message, then key=value fields; or
 * the same as one JSON object per line. A failure is logged once, by whoever knows what it was for;
 * folders below the edges log nothing above debug, and device/, scheduler/ and region/ nothing at all.
 *
 *	vg_info("kube", "watch restarted", VG_S("kind", "pods"), VG_I("after_ms", 250));
 */
#ifndef VGPU_BASE_LOG_H
#define VGPU_BASE_LOG_H

#include <stdbool.h>
#include <stdint.h>

enum vg_log_level {
	VG_LOG_ERROR,
	VG_LOG_WARN,
	VG_LOG_INFO,
	VG_LOG_DEBUG,
	VG_LOG_LEVEL_COUNT,
};

struct vg_field {
	const char *key;  /* NULL ends a list */
	const char *text; /* NULL: the number counts */
	int64_t number;
};

static inline struct vg_field vg_text_field(const char *key, const char *text)
{
	return (struct vg_field){ .key = key, .text = text ? text : "" };
}

/* NULL is shown as "". */
#define VG_S(name, value) vg_text_field((name), (value))
#define VG_I(name, value) ((struct vg_field){ .key = (name), .number = (int64_t)(value) })

/* Before any thread is started. The default is info, text. */
void vg_log_setup(enum vg_log_level level, bool json);
/* -1 when the word is none of error, warn, info, debug. */
int vg_log_level_parse(const char *word);
bool vg_log_enabled(enum vg_log_level level);

/* Thread-safe: a line is one write(). User text is quoted and escaped. */
void vg_log(enum vg_log_level level, const char *component, const char *message,
	    const struct vg_field *fields);

#define vg_log_fields_(level, component, message, ...)                                             \
	do {                                                                                       \
		if (vg_log_enabled(level))                                                         \
			vg_log(level, component, message,                                          \
			       (const struct vg_field[]){ __VA_ARGS__ __VA_OPT__(, ){ 0 } });      \
	} while (0)

#define vg_error(component, message, ...)                                                          \
	vg_log_fields_(VG_LOG_ERROR, component, message, __VA_ARGS__)
#define vg_warn(component, message, ...)                                                           \
	vg_log_fields_(VG_LOG_WARN, component, message, __VA_ARGS__)
#define vg_info(component, message, ...)                                                           \
	vg_log_fields_(VG_LOG_INFO, component, message, __VA_ARGS__)
#define vg_debug(component, message, ...)                                                          \
	vg_log_fields_(VG_LOG_DEBUG, component, message, __VA_ARGS__)

#endif
