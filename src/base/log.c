/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/str.h"

/* One line; what is longer is cut, so that a huge object cannot fill a disk. A value is cut at the end
 * of a character and still closed, so that the line stays valid in both formats. */
#define LINE_MAX_BYTES 4096
/* Kept free for what ends a value and the line: "}\n and the NUL. */
#define LINE_TAIL      8
/* The longest form of one character: \u0001, or four bytes of UTF-8. */
#define ESCAPED_MAX    6
/* The punctuation of a field and the digits of a number. */
#define FIELD_MAX      32

static const char *const level_words[VG_LOG_LEVEL_COUNT] = { "error", "warn", "info", "debug" };

static enum vg_log_level log_level = VG_LOG_INFO;
static bool log_json;

void vg_log_setup(enum vg_log_level level, bool json)
{
	log_level = level;
	log_json = json;
}

int vg_log_level_parse(const char *word)
{
	for (int i = 0; i < VG_LOG_LEVEL_COUNT; i++)
		if (vg_streq(word, level_words[i]))
			return i;
	return -1;
}

bool vg_log_enabled(enum vg_log_level level)
{
	return level <= log_level;
}

static bool has_room(const struct vg_buf *line, size_t size)
{
	return line->used + size + LINE_TAIL <= line->max;
}

/* In double quotes, escaped so that the same form is valid in both formats. */
static void add_quoted(struct vg_buf *line, const char *text)
{
	vg_buf_adds(line, "\"");
	for (const char *c = text; *c; c++) {
		unsigned char byte = (unsigned char)*c;
		bool continues = (byte & 0xc0) == 0x80;

		if (!has_room(line, continues ? 1 : ESCAPED_MAX))
			break;
		if (byte == '"' || byte == '\\')
			vg_buf_addf(line, "\\%c", byte);
		else if (byte == '\n')
			vg_buf_adds(line, "\\n");
		else if (byte < 0x20 || byte == 0x7f)
			vg_buf_addf(line, "\\u%04x", byte);
		else
			vg_buf_add(line, c, 1);
	}
	vg_buf_adds(line, "\"");
}

static void add_field(struct vg_buf *line, const struct vg_field *field)
{
	if (!has_room(line, strlen(field->key) + FIELD_MAX))
		return;
	vg_buf_addf(line, log_json ? ",\"%s\":" : " %s=", field->key);
	if (field->text)
		add_quoted(line, field->text);
	else
		vg_buf_addf(line, "%lld", (long long)field->number);
}

void vg_log(enum vg_log_level level, const char *component, const char *message,
	    const struct vg_field *fields)
{
	struct vg_buf line;
	struct timespec now;
	struct tm utc;
	char stamp[64];
	ssize_t written;

	vg_buf_init(&line, LINE_MAX_BYTES);
	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	if (log_json) {
		vg_buf_addf(&line, "{\"time\":\"%s.%03ldZ\",\"level\":\"%s\",\"component\":\"%s\",",
			    stamp, now.tv_nsec / 1000000, level_words[level], component);
		vg_buf_adds(&line, "\"message\":");
		add_quoted(&line, message);
	} else {
		vg_buf_addf(&line, "%s.%03ldZ %-5s %s ", stamp, now.tv_nsec / 1000000,
			    level_words[level], component);
		vg_buf_adds(&line, message);
	}
	for (; fields && fields->key; fields++)
		add_field(&line, fields);
	vg_buf_adds(&line, log_json ? "}\n" : "\n");
	/* Nothing useful can be done about a log that cannot be written. */
	written = write(STDERR_FILENO, line.data, line.used);
	(void)written;
	vg_buf_release(&line);
}
