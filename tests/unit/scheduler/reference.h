/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decision again, slow and obvious: written from docs/decision.md alone, to be compared with the real
 * one. It copies whole nodes, looks at every candidate, sorts everything, and shares nothing with
 * src/scheduler but the structs of its public headers.
 */
#ifndef TESTS_SCHEDULER_REFERENCE_H
#define TESTS_SCHEDULER_REFERENCE_H

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "scheduler/decide.h"

#define REF_CARDS  64
#define REF_GRANTS 256

struct ref_grant {
	size_t card; /* index into the node's cards */
	int32_t mem_mib;
	int32_t cores;
	uint16_t container;
	uint8_t class_index;
};

struct ref_verdict {
	enum vg_node_reason reason;
	bool curable;
	uint16_t container;
	size_t card_count;
	size_t counts[VG_CARD_REASON_COUNT];
	struct ref_grant grants[REF_GRANTS]; /* when it fits */
	size_t grant_count;
};

struct ref_pod {
	const struct vg_request *request;
	const struct vg_models *models;
	const struct vg_quota *quota; /* NULL: none */
};

/* ---- text ------------------------------------------------------------------------------------- */

static bool ref_contains(const char *text, struct vg_span word)
{
	char lower_text[256];
	char lower_word[256];
	size_t i;

	for (i = 0; text[i]; i++)
		lower_text[i] = (char)tolower((unsigned char)text[i]);
	lower_text[i] = '\0';
	for (i = 0; i < word.size; i++)
		lower_word[i] = (char)tolower((unsigned char)word.data[i]);
	lower_word[i] = '\0';
	return strstr(lower_text, lower_word);
}

static bool ref_type_ok(const struct ref_pod *pod, const char *model)
{
	bool used = !pod->request->use_type.count;

	for (size_t i = 0; i < pod->request->use_type.count; i++)
		used |= ref_contains(model, pod->request->use_type.item[i]);
	for (size_t i = 0; i < pod->request->nouse_type.count; i++)
		if (ref_contains(model, pod->request->nouse_type.item[i]))
			return false;
	return used;
}

static bool ref_listed(const struct vg_words *words, const char *uuid)
{
	for (size_t i = 0; i < words->count; i++)
		if (words->item[i].size == strlen(uuid) &&
		    memcmp(words->item[i].data, uuid, strlen(uuid)) == 0)
			return true;
	return false;
}

static bool ref_mode_ok(const struct ref_pod *pod, enum vg_card_mode mode)
{
	const char *text = pod->request->mode;

	if (!text)
		return true;
	switch (mode) {
	case VG_MODE_NONE:
		return true;
	case VG_MODE_HAMI_CORE:
		return strstr(text, "hami-core");
	case VG_MODE_MIG:
		return strstr(text, "mig");
	case VG_MODE_MPS:
		return strstr(text, "mps");
	default:
		return false;
	}
}

/* ---- one card --------------------------------------------------------------------------------- */

static int64_t ref_mem(const struct vg_want *want, const struct vg_card *card)
{
	int64_t part;

	if (want->mem_mib)
		return want->mem_mib;
	if (want->mem_percent == VG_MEM_PERCENT_UNSET || want->mem_percent == 0)
		return 0;
	part = (int64_t)card->mem_mib * want->mem_percent / 100;
	return part > 0 ? part : 1;
}

/* docs/decision.md, "Quotas": as if all cards of the container were like this one. */
static bool ref_quota_ok(const struct ref_pod *pod, const struct vg_want *want,
			 const struct vg_card *card)
{
	int64_t mem = want->count * ref_mem(want, card);
	int64_t cores = (int64_t)want->count * want->cores;
	struct vg_total hard;
	struct vg_total used;

	if (!pod->quota)
		return true;
	hard = pod->quota->hard[want->class_index];
	used = pod->quota->used[want->class_index];
	if (mem > 0 && hard.mem_mib != VG_QUOTA_NO_LIMIT && used.mem_mib + mem > hard.mem_mib)
		return false;
	return !cores || hard.cores == VG_QUOTA_NO_LIMIT || used.cores + cores <= hard.cores;
}

static enum vg_card_reason ref_check(const struct ref_pod *pod, const struct vg_want *want,
				     const struct vg_card *card)
{
	int64_t cores_free = (int64_t)card->cores - card->cores_used;
	bool nvidia = want->class_index == 0;

	if (!card->healthy)
		return VG_CARD_NOT_HEALTHY;
	if (card->cordoned)
		return VG_CARD_CORDONED;
	if (nvidia && !ref_type_ok(pod, pod->models->name[card->model]))
		return VG_CARD_TYPE_MISMATCH;
	if (nvidia && !ref_mode_ok(pod, (enum vg_card_mode)card->mode))
		return VG_CARD_TYPE_MISMATCH;
	if (nvidia && pod->request->use_uuid.count &&
	    !ref_listed(&pod->request->use_uuid, card->uuid))
		return VG_CARD_UUID_MISMATCH;
	if (nvidia && ref_listed(&pod->request->nouse_uuid, card->uuid))
		return VG_CARD_UUID_MISMATCH;
	if (card->slots_used >= card->slots)
		return VG_CARD_SLOTS_EXHAUSTED;
	if (pod->request->policy.mutex && card->slots_used > 0)
		return VG_CARD_MUTEX_CONFLICT;
	if (!ref_quota_ok(pod, want, card))
		return VG_CARD_QUOTA_NOT_FIT;
	if ((int64_t)card->mem_mib - card->mem_used_mib < ref_mem(want, card))
		return VG_CARD_MEMORY_SHORT;
	if (cores_free < want->cores)
		return VG_CARD_CORES_SHORT;
	if (want->cores == 100 && card->slots_used > 0)
		return VG_CARD_MUTEX_CONFLICT;
	if (want->cores == 0 && card->cores != 0 && cores_free == 0)
		return VG_CARD_CORES_EXHAUSTED;
	if (card->slots_used == 1 && card->cores_used >= 100)
		return VG_CARD_MUTEX_CONFLICT;
	if (card->mode == VG_MODE_MIG)
		return VG_CARD_MIG_INFEASIBLE;
	return VG_CARD_OK;
}

static float ref_card_score(const struct vg_policy *policy, const struct vg_want *want,
			    const struct vg_card *card)
{
	float slots;
	float cores;
	float mem;

	if (card->slots == 0 || card->cores == 0 || card->mem_mib == 0)
		return 0;
	slots = (float)(policy->weight_slot * (int64_t)(card->slots_used + 1));
	slots /= (float)card->slots;
	cores = (float)(policy->weight_core * (int64_t)(card->cores_used + want->cores));
	cores /= (float)card->cores;
	mem = (float)(policy->weight_mem * (card->mem_used_mib + ref_mem(want, card)));
	mem /= (float)card->mem_mib;
	return 10 * (slots + cores + mem);
}

/* ---- the order of preference ------------------------------------------------------------------ */

struct ref_offer {
	float score;
	int numa;
	size_t card;
};

/* docs/decision.md, "The order of preference". */
static bool ref_before(const struct vg_policy *policy, struct ref_offer a, struct ref_offer b)
{
	enum vg_card_key keys[VG_KEY_COUNT + 1];
	size_t count = 0;

	for (size_t i = 0; i < policy->key_count; i++)
		keys[count++] = policy->keys[i];
	if (count == 0 && !(policy->mutex && !policy->chain && !policy->topology))
		keys[count++] = VG_KEY_SPREAD;
	if (!policy->chain)
		keys[count++] = VG_KEY_NUMA;
	for (size_t i = 0; i < count; i++) {
		if (keys[i] == VG_KEY_NUMA && a.numa != b.numa)
			return a.numa > b.numa;
		if (keys[i] == VG_KEY_BINPACK && a.score != b.score)
			return a.score > b.score;
		if (keys[i] == VG_KEY_SPREAD && a.score != b.score)
			return a.score < b.score;
	}
	return a.card < b.card;
}

static void ref_sort(const struct vg_policy *policy, struct ref_offer *offers, size_t count)
{
	for (size_t pass = 0; pass < count; pass++)
		for (size_t i = 0; i + 1 < count; i++)
			if (ref_before(policy, offers[i + 1], offers[i])) {
				struct ref_offer swap = offers[i];

				offers[i] = offers[i + 1];
				offers[i + 1] = swap;
			}
}

/* ---- linked cards ----------------------------------------------------------------------------- */

static int64_t ref_links(const struct vg_node *node, const size_t *cards, size_t count)
{
	int64_t sum = 0;

	for (size_t i = 0; node->links && i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			sum += node->links[cards[i] * node->card_count + cards[j]];
	return sum;
}

/*
 * docs/decision.md, "Linked cards": every set of `need` cards of the list, in the order of the list; the
 * first of the best ones. One card: the one whose links to all others of the list are the least.
 */
static int64_t ref_best_linked(const struct vg_node *node, const size_t *list, size_t count,
			       size_t need, size_t *ret_cards)
{
	int64_t best = INT64_MIN;

	if (need == 1) {
		for (size_t i = 0; i < count; i++) {
			int64_t loss = 0;

			for (size_t j = 0; j < count; j++) {
				size_t pair[2] = { list[i], list[j] };

				loss += ref_links(node, pair, 2);
			}
			if (i == 0 || -loss > best) {
				best = -loss;
				ret_cards[0] = list[i];
			}
		}
		return 0;
	}
	for (uint32_t set = 1u << count; set-- > 0;) {
		size_t cards[REF_CARDS];
		size_t size = 0;

		for (size_t i = 0; i < count; i++)
			if (set >> (count - 1 - i) & 1)
				cards[size++] = list[i];
		if (size == need && ref_links(node, cards, size) > best) {
			best = ref_links(node, cards, size);
			memcpy(ret_cards, cards, size * sizeof(*cards));
		}
	}
	return best;
}

/* ---- one container ---------------------------------------------------------------------------- */

/* The `need` best offers of these. Returns how well they are linked. */
static int64_t ref_take(const struct vg_node *node, bool linked, const struct ref_offer *offers,
			size_t count, size_t need, size_t *cards)
{
	size_t list[REF_CARDS];

	for (size_t i = 0; i < count; i++)
		list[i] = offers[i].card;
	if (linked)
		return ref_best_linked(node, list, count, need, cards);
	memcpy(cards, list, need * sizeof(*list));
	return 0;
}

/* The best `need` cards of the node, or of one NUMA node; the number of cards that were written. */
static size_t ref_choose(const struct vg_policy *policy, const struct vg_node *node, bool linked,
			 const struct ref_offer *offers, size_t count, size_t need, bool numa_bind,
			 size_t *cards)
{
	struct ref_offer best = { 0 };
	int64_t best_links = 0;
	bool found = false;

	if (count < need)
		return 0;
	/* A single card is of one NUMA node wherever it is. */
	if (!numa_bind || (linked && need == 1)) {
		ref_take(node, linked, offers, count, need, cards);
		return need;
	}
	for (int numa = -3; numa < 10; numa++) {
		struct ref_offer group = { .numa = numa };
		struct ref_offer mine[REF_CARDS];
		size_t trial[REF_CARDS];
		size_t size = 0;
		int64_t links;

		for (size_t i = 0; i < count; i++)
			if (offers[i].numa == numa) {
				if (size == 0)
					group.card = offers[i].card;
				if (size < need)
					group.score += offers[i].score;
				mine[size++] = offers[i];
			}
		if (size < need)
			continue;
		links = ref_take(node, linked, mine, size, need, trial);
		if (found && (links < best_links ||
			      (links == best_links && !ref_before(policy, group, best))))
			continue;
		best = group;
		best_links = links;
		found = true;
		memcpy(cards, trial, need * sizeof(*trial));
	}
	return found ? need : 0;
}

/* Fills the verdict of a want that does not fit. */
static void ref_blame(const struct ref_pod *pod, const struct vg_want *want,
		      const struct vg_node *node, bool numa_bind, struct ref_verdict *verdict)
{
	struct vg_quota free_quota = { 0 };
	struct ref_pod alone = *pod;
	size_t passed_of_numa[16] = { 0 };
	size_t possible_of_numa[16] = { 0 };
	size_t closest = 0;

	/* The pod's own containers were taken off the limits. */
	if (pod->quota) {
		memcpy(free_quota.hard, pod->quota->hard, sizeof(free_quota.hard));
		alone.quota = &free_quota;
	}

	verdict->reason = VG_NODE_CARDS;
	for (size_t i = 0; i < node->card_count; i++) {
		struct vg_card empty = node->cards[i];
		enum vg_card_reason reason = ref_check(pod, want, &empty);
		/* NUMA ids of the tests are -1 to 14. Without numa-bind all cards are in one. */
		size_t numa = numa_bind ? (size_t)(empty.numa + 1) : 0;

		if (empty.class_index != want->class_index)
			continue;
		if (reason == VG_CARD_OK)
			passed_of_numa[numa]++;
		else
			verdict->counts[reason]++;
		empty.mem_used_mib = 0;
		empty.cores_used = 0;
		empty.slots_used = 0;
		if (ref_check(&alone, want, &empty) == VG_CARD_OK)
			possible_of_numa[numa]++;
	}
	for (size_t i = 0; i < 16; i++) {
		if (passed_of_numa[i] >= passed_of_numa[closest])
			closest = i;
		if (possible_of_numa[i] >= (size_t)want->count)
			verdict->curable = true;
	}
	for (size_t i = 0; i < 16; i++)
		verdict->counts[i == closest ? VG_CARD_TOO_FEW : VG_CARD_NUMA_NOT_FIT] +=
			passed_of_numa[i];
}

/* `node` is as the container finds it. Adds the grants. */
static bool ref_fit_want(const struct ref_pod *pod, const struct vg_want *want,
			 const struct vg_node *node, struct ref_verdict *verdict)
{
	const struct vg_policy *policy = &pod->request->policy;
	bool numa_bind = pod->request->numa_bind && want->class_index == 0;
	bool linked = policy->topology && want->class_index == 0 && node->links;
	struct ref_offer offers[REF_CARDS];
	size_t cards[REF_CARDS];
	size_t of_class = 0;
	size_t count = 0;
	size_t chosen;

	for (size_t i = 0; i < node->card_count; i++) {
		const struct vg_card *card = &node->cards[i];

		if (card->class_index != want->class_index)
			continue;
		of_class++;
		if (ref_check(pod, want, card) == VG_CARD_OK)
			offers[count++] = (struct ref_offer){ ref_card_score(policy, want, card),
							      card->numa, i };
	}
	verdict->container = want->container;
	verdict->card_count = of_class;
	if ((size_t)want->count > of_class) {
		verdict->reason = of_class ? VG_NODE_TOO_FEW_CARDS : VG_NODE_NO_CLASS;
		return false;
	}
	ref_sort(policy, offers, count);
	chosen = ref_choose(policy, node, linked, offers, count, (size_t)want->count, numa_bind,
			    cards);
	if (!chosen) {
		ref_blame(pod, want, node, numa_bind, verdict);
		return false;
	}
	for (size_t i = 0; i < chosen; i++)
		verdict->grants[verdict->grant_count++] =
			(struct ref_grant){ cards[i],
					    (int32_t)ref_mem(want, &node->cards[cards[i]]),
					    want->cores, want->container, want->class_index };
	return true;
}

/* ---- one node --------------------------------------------------------------------------------- */

static bool ref_fit_node(const struct ref_pod *pod, const struct vg_node *node,
			 struct ref_verdict *verdict)
{
	struct vg_card cards[REF_CARDS];
	struct vg_quota quota = { 0 };
	struct ref_pod pod_now = *pod;
	struct vg_node now;

	*verdict = (struct ref_verdict){ .reason = VG_NODE_UNREGISTERED };
	if (!node || !node->card_count)
		return false;
	memcpy(cards, node->cards, node->card_count * sizeof(cards[0]));
	now = *node;
	now.cards = cards;
	if (pod->quota) {
		quota = *pod->quota;
		pod_now.quota = &quota;
	}
	for (size_t i = 0; i < pod->request->want_count; i++) {
		const struct vg_want *want = &pod->request->wants[i];
		size_t before = verdict->grant_count;

		if (!ref_fit_want(&pod_now, want, &now, verdict))
			return false;
		if (want->kind == VG_CONTAINER_INIT)
			continue;
		for (size_t j = before; j < verdict->grant_count; j++) {
			struct vg_card *card = &cards[verdict->grants[j].card];

			card->mem_used_mib += verdict->grants[j].mem_mib;
			card->cores_used += verdict->grants[j].cores;
			card->slots_used++;
			if (quota.hard[want->class_index].mem_mib != VG_QUOTA_NO_LIMIT)
				quota.hard[want->class_index].mem_mib -= verdict->grants[j].mem_mib;
			if (quota.hard[want->class_index].cores != VG_QUOTA_NO_LIMIT)
				quota.hard[want->class_index].cores -= verdict->grants[j].cores;
		}
	}
	verdict->reason = VG_NODE_FITS;
	return true;
}

static float ref_node_score(const struct vg_node *node)
{
	int64_t total[3] = { 0 };
	int64_t used[3] = { 0 };

	for (size_t i = 0; i < node->card_count; i++) {
		total[0] += node->cards[i].slots;
		used[0] += node->cards[i].slots_used;
		total[1] += node->cards[i].cores;
		used[1] += node->cards[i].cores_used;
		total[2] += node->cards[i].mem_mib;
		used[2] += node->cards[i].mem_used_mib;
	}
	if (!total[0] || !total[1] || !total[2])
		return 0;
	return 10 * ((float)used[0] / (float)total[0] + (float)used[1] / (float)total[1] +
		     (float)used[2] / (float)total[2]);
}

/* ---- all nodes -------------------------------------------------------------------------------- */

/* The index of the best candidate, or -1; a verdict for each. */
static int ref_decide(const struct ref_pod *pod, const struct vg_node *const *candidates,
		      size_t count, struct ref_verdict *verdicts)
{
	bool spread = pod->request->policy.node == VG_NODE_SPREAD;
	int best = -1;

	for (size_t i = 0; i < count; i++) {
		const struct vg_node *node = candidates[i];
		const struct vg_node *other = best >= 0 ? candidates[best] : NULL;

		if (!ref_fit_node(pod, node, &verdicts[i]))
			continue;
		if (!other ||
		    (spread ? ref_node_score(node) < ref_node_score(other)
			    : ref_node_score(node) > ref_node_score(other)) ||
		    (ref_node_score(node) == ref_node_score(other) &&
		     strcmp(node->name, other->name) < 0))
			best = (int)i;
	}
	return best;
}

#endif
