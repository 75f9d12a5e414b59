/* SPDX-License-Identifier: Apache-2.0 */
/* Whose object is it? From the beginning of one that was too long to be kept. */
#include "kube/decoder_internal.h"

#include <string.h>

#include "base/str.h"

struct scan {
	const char *at;
	const char *end;
};

/* The string that begins at the quote; false when its end is not there. The span is still escaped. */
static bool scan_string(struct scan *scan, struct vg_span *ret_text)
{
	const char *from = ++scan->at;

	for (; scan->at < scan->end; scan->at++) {
		if (*scan->at == '\\') {
			scan->at++;
		} else if (*scan->at == '"') {
			*ret_text = (struct vg_span){ from, (size_t)(scan->at - from) };
			scan->at++;
			return true;
		}
	}
	return false;
}

static bool keep(struct vg_span text, char *target, size_t room)
{
	/* Names of Kubernetes need no escapes. */
	if (text.size >= room || vg_span_has(text, '\\'))
		return false;
	memcpy(target, text.data, text.size);
	target[text.size] = '\0';
	return true;
}

bool vg_peek_name(const char *text, size_t size, char *namespace, char *name, size_t room)
{
	struct scan scan = { text, text + size };
	struct vg_span key = { NULL, 0 };
	bool in_metadata = false;
	bool is_value = false;
	unsigned depth = 0;

	namespace[0] = '\0';
	name[0] = '\0';
	while (scan.at < scan.end) {
		char c = *scan.at;

		if (c == '"') {
			struct vg_span string;

			if (!scan_string(&scan, &string))
				break;
			if (!is_value)
				key = string;
			else if (in_metadata && depth == 2 && vg_span_eq(key, "name"))
				keep(string, name, room);
			else if (in_metadata && depth == 2 && vg_span_eq(key, "namespace"))
				keep(string, namespace, room);
			continue;
		}
		if (c == '{' || c == '[') {
			if (depth == 1 && is_value && vg_span_eq(key, "metadata"))
				in_metadata = true;
			depth++;
			is_value = false;
		} else if (c == '}' || c == ']') {
			/* metadata has ended: the name was in there, or is nowhere. */
			if (depth == 0 || (in_metadata && depth == 2))
				break;
			depth--;
		} else if (c == ':') {
			is_value = true;
		} else if (c == ',') {
			is_value = false;
		}
		scan.at++;
	}
	return name[0] != '\0';
}
