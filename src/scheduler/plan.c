/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything about a request that does not depend on the node is worked out here, once per decision:
 * text never meets the loop over the cards, but for the pods that name UUIDs.
 */
#include "scheduler/scheduler_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- annotations ------------------------------------------------------------------------------ */

static bool contains_any(const char *model, const struct vg_words *words)
{
	for (size_t i = 0; i < words->count; i++)
		if (vg_contains_nocase(model, words->item[i]))
			return true;
	return false;
}

static const bool *all_models(const struct vg_models *models, struct vg_arena *arena)
{
	bool *ok = vg_arena_new_array(arena, models->count, sizeof(*ok));

	memset(ok, true, models->count);
	return ok;
}

static const bool *models_by_type(const struct vg_request *request, const struct vg_models *models,
				  struct vg_arena *arena)
{
	bool *ok = vg_arena_new_array(arena, models->count, sizeof(*ok));

	for (size_t i = 0; i < models->count; i++)
		ok[i] = (!request->use_type.count ||
			 contains_any(models->name[i], &request->use_type)) &&
			!contains_any(models->name[i], &request->nouse_type);
	return ok;
}

static bool mode_admitted(const char *text, enum vg_card_mode mode)
{
	if (!text || mode == VG_MODE_NONE)
		return true;
	/* A mode that we have no word for cannot be asked for. */
	return mode != VG_MODE_OTHER && strstr(text, vg_card_mode_word[mode]);
}

/* Orders a text that is not terminated against one that is. Two UUIDs differ within a few bytes. */
static int span_cmp(struct vg_span span, const char *text)
{
	size_t i = 0;

	while (i < span.size && span.data[i] == text[i])
		i++;
	if (i == span.size)
		return text[i] ? -1 : 0;
	return (unsigned char)span.data[i] < (unsigned char)text[i] ? -1 : 1;
}

static int span_cmp_span(const void *a, const void *b)
{
	const struct vg_span *left = a;
	const struct vg_span *right = b;
	size_t common = left->size < right->size ? left->size : right->size;
	int order = memcmp(left->data, right->data, common);

	return order ? order : (left->size > right->size) - (left->size < right->size);
}

static struct vg_uuid_set uuid_set(const struct vg_words *words, struct vg_arena *arena)
{
	struct vg_uuid_set set = { .count = words->count };

	if (!set.count)
		return set;
	set.item = vg_arena_new_array(arena, set.count, sizeof(*set.item));
	memcpy(set.item, words->item, set.count * sizeof(*set.item));
	qsort(set.item, set.count, sizeof(*set.item), span_cmp_span);
	return set;
}

static bool uuid_set_has(const struct vg_uuid_set *set, const char *uuid)
{
	size_t low = 0;
	size_t high = set->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = span_cmp(set->item[middle], uuid);

		if (order == 0)
			return true;
		if (order < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

bool vg_plan_uuid_ok(const struct vg_want_plan *want, const char *uuid)
{
	return (!want->use_uuid.count || uuid_set_has(&want->use_uuid, uuid)) &&
	       !uuid_set_has(&want->nouse_uuid, uuid);
}

/* ---- device classes --------------------------------------------------------------------------- */

/* What the annotations of the request mean for one class of cards. */
struct constraints {
	const bool *model_ok;
	bool mode_ok[VG_MODE_COUNT];
	struct vg_uuid_set use_uuid;
	struct vg_uuid_set nouse_uuid;
	const struct vg_choice *choice;
};

/* The nvidia.com/ annotations. */
static void nvidia_constrain(struct constraints *constraints, const struct vg_request *request,
			     const struct vg_models *models, struct vg_arena *arena)
{
	if (request->use_type.count || request->nouse_type.count)
		constraints->model_ok = models_by_type(request, models, arena);
	for (size_t mode = 0; mode < VG_MODE_COUNT; mode++)
		constraints->mode_ok[mode] = mode_admitted(request->mode, (enum vg_card_mode)mode);
	constraints->use_uuid = uuid_set(&request->use_uuid, arena);
	constraints->nouse_uuid = uuid_set(&request->nouse_uuid, arena);
	if (request->policy.topology)
		constraints->choice =
			request->numa_bind ? &vg_choice_linked_one_numa_node : &vg_choice_linked;
	else if (request->numa_bind)
		constraints->choice = &vg_choice_one_numa_node;
}

/* Rules of a class beyond the checks that all cards share. A class without a row has none. */
static const struct class_rules {
	void (*constrain)(struct constraints *constraints, const struct vg_request *request,
			  const struct vg_models *models, struct vg_arena *arena);
} class_rules[VG_CLASSES_MAX] = {
	[0] = { .constrain = nvidia_constrain },
};

/* ---- the plan --------------------------------------------------------------------------------- */

static struct vg_order order_of(const struct vg_policy *policy)
{
	/* Cards that pass policy mutex are equally empty, whatever else they are. */
	bool mutex_alone = policy->mutex && !policy->topology && !policy->chain;
	struct vg_order order = { .numa = !policy->chain };

	for (size_t i = 0; i < policy->key_count; i++) {
		if (policy->keys[i] == VG_KEY_NUMA) {
			order.numa = true;
			order.numa_first = !order.score;
		} else if (!order.score) {
			order.score = true;
			order.emptiest_first = policy->keys[i] == VG_KEY_SPREAD;
		}
	}
	if (!policy->key_count && !mutex_alone) {
		order.score = true;
		order.emptiest_first = true;
	}
	return order;
}

void vg_plan_init(struct vg_plan *plan, const struct vg_request *request,
		  const struct vg_models *models, struct vg_arena *arena)
{
	const bool *any_model = all_models(models, arena);
	struct constraints of_class[VG_CLASSES_MAX];

	for (size_t i = 0; i < VG_CLASSES_MAX; i++) {
		of_class[i] = (struct constraints){ .model_ok = any_model,
						    .choice = &vg_choice_in_order };
		memset(of_class[i].mode_ok, true, sizeof(of_class[i].mode_ok));
		if (class_rules[i].constrain)
			class_rules[i].constrain(&of_class[i], request, models, arena);
	}

	plan->policy = &request->policy;
	plan->order = order_of(&request->policy);
	plan->want_count = request->want_count;
	plan->wants = vg_arena_new_array(arena, request->want_count, sizeof(*plan->wants));
	for (size_t i = 0; i < request->want_count; i++) {
		const struct vg_want *want = &request->wants[i];
		const struct constraints *constraints;
		struct vg_want_plan *to = &plan->wants[i];

		assert(want->class_index < VG_CLASSES_MAX);
		constraints = &of_class[want->class_index];
		*to = (struct vg_want_plan){
			.container = want->container,
			.class_index = want->class_index,
			.stays = want->kind != VG_CONTAINER_INIT,
			.count = want->count,
			.mem_mib = want->mem_mib,
			.cores = want->cores,
			.mutex = request->policy.mutex,
			.whole = want->cores == VG_CORES_WHOLE,
			.uuid_lists = constraints->use_uuid.count || constraints->nouse_uuid.count,
			.model_ok = constraints->model_ok,
			.use_uuid = constraints->use_uuid,
			.nouse_uuid = constraints->nouse_uuid,
			.choice = constraints->choice,
		};
		if (!want->mem_mib && want->mem_percent != VG_MEM_PERCENT_UNSET)
			to->mem_percent = want->mem_percent;
		memcpy(to->mode_ok, constraints->mode_ok, sizeof(to->mode_ok));
	}
}
