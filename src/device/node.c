/* SPDX-License-Identifier: Apache-2.0 */
#include "device/node.h"

#include <string.h>

#include "base/str.h"

const char *const vg_card_mode_word[VG_MODE_COUNT] = {
	[VG_MODE_NONE] = "",   [VG_MODE_HAMI_CORE] = "hami-core", [VG_MODE_MIG] = "mig",
	[VG_MODE_MPS] = "mps", [VG_MODE_OTHER] = "other",
};

bool vg_uuid_listed(const char *list, const char *uuid)
{
	struct vg_span rest;
	struct vg_span piece;

	if (!list)
		return false;
	rest = VG_SPAN(list);
	while (vg_cut(&rest, ',', &piece)) {
		piece = vg_trim(piece);
		if (piece.size && vg_span_eq(piece, uuid))
			return true;
	}
	return false;
}
