/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The texts of annotations. The first byte says which: r register annotation of a node, d device list
 * of a pod, w scoring weights, l comma lists and policies of a pod.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/mem.h"
#include "device/allocation.h"
#include "device/node.h"
#include "device/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_same_cards(const struct vg_card_info *a, const struct vg_card_info *b)
{
	check(strcmp(a->uuid, b->uuid) == 0 && strcmp(a->model, b->model) == 0);
	check(a->index == b->index && a->slots == b->slots && a->mem_mib == b->mem_mib);
	check(a->cores == b->cores && a->numa == b->numa && a->mode == b->mode);
	check(a->healthy == b->healthy && a->class_index == b->class_index);
}

static void fuzz_register(const char *text, struct vg_arena *arena)
{
	struct vg_card_info *cards = NULL;
	struct vg_card_info *again = NULL;
	struct vg_err err = { 0 };
	size_t count = 0;
	size_t count_again = 0;
	int r = vg_register_decode(text, 2, arena, &cards, &count, &err);

	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	if (r < 0)
		return;
	check(count <= VG_LIMIT_CARDS_PER_NODE);
	for (size_t i = 0; i < count; i++) {
		check(cards[i].uuid[0] && cards[i].slots >= 0 && cards[i].mem_mib >= 0);
		check(cards[i].cores >= 0 && cards[i].index >= 0 && cards[i].numa >= -1);
		check(!i || cards[i - 1].index <= cards[i].index);
		check(!i || strcmp(cards[i - 1].uuid, cards[i].uuid) != 0);
	}
	check(vg_register_decode(vg_register_encode(cards, count, arena), 2, arena, &again,
				 &count_again, NULL) == 0);
	check(count == count_again);
	for (size_t i = 0; i < count; i++)
		check_same_cards(&cards[i], &again[i]);
}

static void fuzz_devices(const char *text, const struct vg_class *class, struct vg_arena *arena)
{
	static const uint8_t kinds[] = { VG_CONTAINER_INIT, VG_CONTAINER_SIDECAR,
					 VG_CONTAINER_INIT };
	struct vg_allocation one = { 0 };
	struct vg_allocation two = { 0 };
	struct vg_charge *charges = NULL;
	struct vg_err err = { 0 };
	int r = vg_allocation_decode(text, 0, arena, &one, &err);

	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	if (r < 0) {
		check(!one.grants && !one.grant_count && !one.container_count);
		return;
	}
	check(one.container_count <= VG_LIMIT_CONTAINERS_PER_POD);
	check(vg_allocation_decode(vg_allocation_encode(&one, class, 0, arena), 0, arena, &two,
				   NULL) == 0);
	check(one.grant_count == two.grant_count && one.container_count == two.container_count);
	for (size_t i = 0; i < one.grant_count; i++) {
		check(strcmp(one.grants[i].uuid, two.grants[i].uuid) == 0);
		check(one.grants[i].mem_mib == two.grants[i].mem_mib);
		check(one.grants[i].cores == two.grants[i].cores);
		check(one.grants[i].container == two.grants[i].container);
		check(one.grants[i].container < one.container_count);
		check(!i || one.grants[i - 1].container <= one.grants[i].container);
	}
	for (int done = 0; done < 2; done++) {
		size_t count =
			vg_allocation_charges(&one, kinds, sizeof(kinds), done, arena, &charges);

		check(count <= one.grant_count);
		for (size_t i = 0; i < count; i++) {
			check(charges[i].slots >= 1);
			check(charges[i].mem_mib >= 0 && charges[i].cores >= 0);
			check(!i || strcmp(charges[i - 1].uuid, charges[i].uuid) < 0);
		}
	}
}

static void fuzz_weights(const char *text)
{
	struct vg_policy policy = { .weight_slot = -1, .weight_core = -1, .weight_mem = -1 };
	struct vg_err err = { 0 };
	int r = vg_weights_parse(text, &policy, &err);

	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	if (r < 0)
		check(policy.weight_slot == -1 && policy.weight_core == -1 &&
		      policy.weight_mem == -1);
	else
		check(policy.weight_slot >= 0 && policy.weight_core >= 0 &&
		      policy.weight_mem >= 0 &&
		      (policy.weight_slot || policy.weight_core || policy.weight_mem));
}

static void fuzz_lists(const char *text, const struct vg_classes *classes, struct vg_arena *arena)
{
	struct vg_resource gpu = { .name = "nvidia.com/gpu", .limit = "1" };
	struct vg_container container = {
		.name = "main",
		.kind = VG_CONTAINER_APP,
		.resources = &gpu,
		.resource_count = 1,
	};
	struct vg_pod pod = { .containers = &container, .container_count = 1 };
	struct vg_policy policy;
	struct vg_request request;

	vg_policy_parse(text, text, &policy);
	check(policy.key_count <= VG_KEY_COUNT);
	vg_uuid_listed(text, "GPU-0");
	for (int row = 0; row < VG_ANNO_COUNT; row++)
		if (row != VG_ANNO_POD_WEIGHTS)
			pod.annotations.value[row] = text;
	if (vg_request_parse(&pod, classes, &policy, arena, &request, NULL) < 0)
		return;
	check(request.want_count == 1 && request.use_type.count <= VG_LIMIT_WORDS_PER_LIST);
	for (size_t i = 0; i < request.use_uuid.count; i++) {
		struct vg_span word = request.use_uuid.item[i];

		check(word.size && word.data >= text &&
		      word.data + word.size <= text + strlen(text));
		check(vg_uuid_listed(text, vg_arena_strndup(arena, word.data, word.size)));
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_classes classes;
	struct vg_arena arena;
	char *text;

	if (!size)
		return 0;
	vg_arena_init(&arena);
	vg_classes_init(&classes);
	text = vg_strndup((const char *)data + 1, size - 1);
	switch (data[0]) {
	case 'r':
		fuzz_register(text, &arena);
		break;
	case 'd':
		fuzz_devices(text, &classes.item[0], &arena);
		break;
	case 'w':
		fuzz_weights(text);
		break;
	case 'l':
		fuzz_lists(text, &classes, &arena);
		break;
	default:
		break;
	}
	free(text);
	vg_classes_release(&classes);
	vg_arena_release(&arena);
	return 0;
}
