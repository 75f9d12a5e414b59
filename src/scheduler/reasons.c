/* SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "scheduler/decide.h"

const char *const vg_card_reason_word[VG_CARD_REASON_COUNT] = {
#define CARD(name, word, help) [VG_CARD_##name] = (word),
#define NODE(name, text, help)
#include "scheduler/reasons.def"
#undef CARD
#undef NODE
};

const char *const vg_card_reason_help[VG_CARD_REASON_COUNT] = {
#define CARD(name, word, help) [VG_CARD_##name] = (help),
#define NODE(name, text, help)
#include "scheduler/reasons.def"
#undef CARD
#undef NODE
};

const char *const vg_node_reason_text[VG_NODE_REASON_COUNT] = {
#define CARD(name, word, help)
#define NODE(name, text, help) [VG_NODE_##name] = (text),
#include "scheduler/reasons.def"
#undef CARD
#undef NODE
};

const char *const vg_node_reason_help[VG_NODE_REASON_COUNT] = {
#define CARD(name, word, help)
#define NODE(name, text, help) [VG_NODE_##name] = (help),
#include "scheduler/reasons.def"
#undef CARD
#undef NODE
};

const char *const vg_check_name[VG_CHECK_COUNT] = {
#define CHECK(name, reason, offered, taken, needed, help) [VG_CHECK_##name] = #name,
#include "scheduler/checks.def"
#undef CHECK
};

const char *const vg_check_help[VG_CHECK_COUNT] = {
#define CHECK(name, reason, offered, taken, needed, help) [VG_CHECK_##name] = (help),
#include "scheduler/checks.def"
#undef CHECK
};

/* "65535/65535 " and the longest word. */
#define ENTRY_BYTES 64

void vg_verdict_text(const struct vg_verdict *verdict, struct vg_buf *buf)
{
	char entries[VG_CARD_REASON_COUNT][ENTRY_BYTES];
	size_t count = 0;

	if (verdict->reason != VG_NODE_CARDS) {
		vg_buf_adds(buf, vg_node_reason_text[verdict->reason]);
		return;
	}
	for (size_t i = 0; i < VG_CARD_REASON_COUNT; i++) {
		char entry[ENTRY_BYTES];
		size_t at = count;

		if (!verdict->counts[i])
			continue;
		snprintf(entry, sizeof(entry), "%u/%u %s", verdict->counts[i], verdict->card_count,
			 vg_card_reason_word[i]);
		/* Sorted as text, so that the same verdict is the same text everywhere: "10/16"
		 * comes before "2/16". */
		for (; at > 0 && strcmp(entry, entries[at - 1]) < 0; at--)
			memcpy(entries[at], entries[at - 1], ENTRY_BYTES);
		memcpy(entries[at], entry, ENTRY_BYTES);
		count++;
	}
	for (size_t i = 0; i < count; i++)
		vg_buf_addf(buf, "%s%s", i ? ", " : "", entries[i]);
}

bool vg_verdict_curable(const struct vg_verdict *verdict)
{
	switch ((enum vg_node_reason)verdict->reason) {
	case VG_NODE_CARDS:
		return verdict->curable;
	case VG_NODE_NOT_TRIED:
		return true;
	case VG_NODE_FITS:
	case VG_NODE_UNREGISTERED:
	case VG_NODE_TOO_FEW_CARDS:
	case VG_NODE_NO_CLASS:
	case VG_NODE_REASON_COUNT:
		break;
	}
	return false;
}
