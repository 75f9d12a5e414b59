/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scores are computed in single precision, as everybody does who follows the published formula, so that
 * the same pairs of nodes and cards are ties. Each term is a product of whole numbers and one division:
 * nothing for a compiler to fuse, the same result on every machine.
 */
#include "scheduler/scheduler_internal.h"

static float share(int64_t used, int64_t total)
{
	return total ? (float)used / (float)total : 0.0f;
}

float vg_node_score(const struct vg_sums *sums, float ret_parts[3])
{
	float slots = share(sums->slots_used, sums->slots);
	float cores = share(sums->cores_used, sums->cores);
	float mem = share(sums->mem_used_mib, sums->mem_mib);

	if (ret_parts) {
		ret_parts[0] = slots;
		ret_parts[1] = cores;
		ret_parts[2] = mem;
	}
	if (!sums->slots || !sums->cores || !sums->mem_mib)
		return 0.0f;
	return 10.0f * (slots + cores + mem);
}

float vg_card_score(const struct vg_card *card, const struct vg_own_use *own,
		    const struct vg_want_plan *want, const struct vg_policy *policy)
{
	int64_t slots = (int64_t)card->slots_used + own->slots + 1;
	int64_t cores = (int64_t)card->cores_used + own->cores + want->cores;
	int64_t mem = (int64_t)card->mem_used_mib + own->mem_mib + vg_card_mem_needed(want, card);

	if (!card->slots || !card->cores || !card->mem_mib)
		return 0.0f;
	return 10.0f * (share(policy->weight_slot * slots, card->slots) +
			share(policy->weight_core * cores, card->cores) +
			share(policy->weight_mem * mem, card->mem_mib));
}
