/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random clusters and pods: the same decision as the reference, whatever the order of the candidates and
 * however many of them are looked at; and no card is ever given more than it has, at no moment of the
 * pod's life.
 *
 *	test_property [CASES [SEED]]     a failure prints the seed of its case: run it with CASES 1
 */
#include "unit/scheduler/cases.h"

#include "unit/scheduler/reference.h"

#define CASES_DEFAULT 50000
#define NODES_MAX     8
#define CARDS_MAX     16
#define LINKED_MAX    9

static uint64_t cases = CASES_DEFAULT;
static uint64_t first_seed = 1;

/* ---- random things ---------------------------------------------------------------------------- */

static uint64_t random_state;

static uint32_t draw(uint32_t below)
{
	/* splitmix64 */
	uint64_t z = (random_state += 0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (uint32_t)((z ^ (z >> 31)) % below);
}

#define PICK(...)                                                                                  \
	((const int32_t[]){                                                                        \
		__VA_ARGS__ }[draw(sizeof((const int32_t[]){ __VA_ARGS__ }) / sizeof(int32_t))])

static const char *pick_text(const char *const *texts, uint32_t count)
{
	return texts[draw(count)];
}
#define PICK_TEXT(...)                                                                             \
	pick_text((const char *const[]){ __VA_ARGS__ },                                            \
		  sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

struct world {
	struct vg_node node[NODES_MAX];
	struct vg_card card[NODES_MAX][CARDS_MAX];
	char name[NODES_MAX][16];
	char uuid[NODES_MAX][CARDS_MAX][16];
	int32_t links[NODES_MAX][LINKED_MAX * LINKED_MAX];
	const struct vg_node *candidates[NODES_MAX];
	size_t count;
	struct vg_request request;
	struct vg_quota quota;
	bool limited;
	struct vg_want wants[16];
	uint8_t kinds[8];
};

static void draw_card(struct world *world, size_t node, size_t index, uint8_t class_index)
{
	struct vg_card *card = &world->card[node][index];
	uint32_t fullness = draw(3);

	/* A few UUIDs in the whole cluster, so that lists of them hit. */
	snprintf(world->uuid[node][index], sizeof(world->uuid[node][index]), "GPU-%u%zu", draw(3),
		 index);
	*card = (struct vg_card){
		.uuid = world->uuid[node][index],
		.mem_mib =
			draw(20) ? PICK(8000, 16000, 16000, 81920) : PICK(0, 50, 1000, INT32_MAX),
		.cores = draw(20) ? PICK(100, 100, 200) : PICK(0, 50),
		.slots = draw(20) ? PICK(1, 2, 10, 10) : 0,
		.index = (int32_t)index,
		.numa = (int16_t)PICK(-1, 0, 0, 1, 1, 2),
		.model = (uint16_t)(class_index ? 3 : draw(3)),
		.class_index = class_index,
		.mode = (uint8_t)(draw(4) ? VG_MODE_HAMI_CORE
					  : PICK(VG_MODE_NONE, VG_MODE_MPS, VG_MODE_MIG,
						 VG_MODE_OTHER)),
		.healthy = draw(12) != 0,
		.cordoned = draw(15) == 0,
	};
	if (fullness == 0)
		return;
	/* Sometimes more than there is. */
	card->mem_used_mib = draw(12) ? (int32_t)draw((uint32_t)card->mem_mib + 1) : card->mem_mib;
	card->cores_used = PICK(0, 0, 10, 30, 50, 100, card->cores, card->cores + 1);
	card->slots_used = PICK(0, 1, 1, 2, 5, card->slots);
}

static void draw_node(struct world *world, size_t i)
{
	struct vg_node *node = &world->node[i];
	size_t cards = draw(10) ? 1 + draw(8) : draw(CARDS_MAX + 1);
	size_t of_second_class = draw(3) == 0 ? draw(4) : 0;
	bool like_the_one_before = i > 0 && draw(4) == 0;

	*node = (struct vg_node){ .name = world->name[i], .cards = world->card[i] };
	snprintf(world->name[i], sizeof(world->name[i]), "n%02u", draw(3) * 10 + (uint32_t)i);
	for (size_t j = 0; j < cards; j++) {
		/* Equal nodes and equal cards make ties. */
		if (like_the_one_before && j < world->node[i - 1].card_count)
			world->card[i][j] = world->card[i - 1][j];
		else if (j > 0 && draw(3) == 0 &&
			 (j + of_second_class >= cards) == world->card[i][j - 1].class_index)
			world->card[i][j] = world->card[i][j - 1];
		else
			draw_card(world, i, j, j + of_second_class >= cards);
		snprintf(world->uuid[i][j], sizeof(world->uuid[i][j]), "GPU-%u%zu", draw(3), j);
		world->card[i][j].uuid = world->uuid[i][j];
	}
	/* A copy of a shorter row may have left the second class in the middle. */
	for (size_t j = 1; j < cards; j++)
		if (world->card[i][j].class_index < world->card[i][j - 1].class_index)
			world->card[i][j].class_index = world->card[i][j - 1].class_index;
	node->card_count = (uint32_t)cards;
	for (size_t j = 0; j < cards; j++) {
		const struct vg_card *card = &world->card[i][j];

		node->sums.mem_mib += card->mem_mib;
		node->sums.mem_used_mib += card->mem_used_mib;
		node->sums.cores += card->cores;
		node->sums.cores_used += card->cores_used;
		node->sums.slots += card->slots;
		node->sums.slots_used += card->slots_used;
	}
}

/* Few different scores make many ties; many cards would make the slow search too slow. */
static void draw_links(struct world *world, size_t i)
{
	struct vg_node *node = &world->node[i];
	size_t count = node->card_count;
	int32_t *links = world->links[i];
	uint32_t shape = draw(3);

	if (count > LINKED_MAX || draw(3) == 0)
		return;
	for (size_t a = 0; a < count; a++) {
		links[a * count + a] = 0;
		for (size_t b = a + 1; b < count; b++) {
			int32_t score = shape == 0   ? (a / 4 == b / 4) * 300
					: shape == 1 ? (int32_t)draw(3) - 1
						     : (int32_t)draw(1000);

			links[a * count + b] = links[b * count + a] = score;
		}
	}
	node->links = links;
}

static struct vg_words draw_words(const char *list, struct vg_arena *arena)
{
	struct vg_words words = { 0 };
	struct vg_span rest = { list, list ? strlen(list) : 0 };
	struct vg_span piece;

	words.item = vg_arena_new_array(arena, 8, sizeof(*words.item));
	while (vg_cut(&rest, ',', &piece))
		words.item[words.count++] = piece;
	return words;
}

static void draw_wants(struct world *world)
{
	struct vg_request *request = &world->request;
	size_t containers = 1 + draw(draw(3) ? 2 : 5);
	size_t inits = draw(3) ? 0 : draw((uint32_t)containers + 1);

	request->wants = world->wants;
	request->kinds = world->kinds;
	request->container_count = containers;
	while (!request->want_count)
		for (size_t i = 0; i < containers; i++) {
			world->kinds[i] = i >= inits     ? VG_CONTAINER_APP
					  : draw(2) == 0 ? VG_CONTAINER_SIDECAR
							 : VG_CONTAINER_INIT;
			for (uint8_t class = 0; class < 2; class ++) {
				bool percent = draw(3) == 0;

				if (draw(class ? 6 : 4) >= (class ? 1 : 3))
					continue;
				world->wants[request->want_count++] = (struct vg_want){
					.container = (uint16_t)i,
					.class_index = class,
					.kind = world->kinds[i],
					.count = draw(3) ? 1 : PICK(2, 3, 4, 8),
					.mem_mib =
						percent ? 0
							: PICK(0, 1, 500, 500, 4000, 8000, 40000),
					.mem_percent = percent ? PICK(1, 10, 33, 50, 100)
							       : VG_MEM_PERCENT_UNSET,
					.cores = PICK(0, 0, 10, 30, 50, 100),
				};
			}
		}
}

static void draw_request(struct world *world, struct vg_arena *arena)
{
	struct vg_request *request = &world->request;

	*request = (struct vg_request){ .namespace = "ns", .name = "pod", .uid = "uid" };
	draw_wants(world);
	vg_policy_parse(PICK_TEXT("binpack", "spread"),
			PICK_TEXT("binpack", "spread", "mutex", "topology-aware", "numa",
				  "numa,binpack", "binpack,numa", "spread,numa", "numa,spread",
				  "mutex,binpack", "topology-aware,mutex", "spread,binpack"),
			&request->policy);
	if (draw(3) == 0) {
		request->policy.weight_slot = PICK(0, 1, 3);
		request->policy.weight_core = PICK(0, 2, INT32_MAX);
		request->policy.weight_mem = PICK(0, 1, 5);
	}
	if (draw(8) == 0)
		request->use_type = draw_words(PICK_TEXT("A100", "t4,h100", "80gb", "none"), arena);
	if (draw(8) == 0)
		request->nouse_type = draw_words(PICK_TEXT("A100", "t4,h100", "none"), arena);
	if (draw(12) == 0)
		request->use_uuid = draw_words(
			PICK_TEXT("GPU-00,GPU-11,GPU-22,GPU-03,GPU-14", "GPU-2,GPU-01,GPU-010",
				  "GPU-14,GPU-13,GPU-12,GPU-11,GPU-10,GPU-00,GPU-01"),
			arena);
	if (draw(5) == 0)
		request->nouse_uuid = draw_words(PICK_TEXT("GPU-00", "GPU-12,GPU-01,GPU-1"), arena);
	if (draw(8) == 0)
		request->mode =
			PICK_TEXT("hami-core", "mps", "mig,hami-core", "mps, hami-core", "");
	request->numa_bind = draw(4) == 0;
}

static void draw_quota(struct world *world)
{
	struct vg_quota *quota = &world->quota;

	vg_quota_unlimited(quota->hard);
	world->limited = draw(4) == 0;
	for (size_t class = 0; class < 2; class ++) {
		quota->used[class].mem_mib = PICK(0, 0, 500, 8000, 40000);
		quota->used[class].cores = PICK(0, 0, 10, 100);
		if (draw(3))
			quota->hard[class].mem_mib = PICK(0, 500, 8500, 16000, 48000, 400000);
		if (draw(3) == 0)
			quota->hard[class].cores = PICK(0, 10, 60, 110, 200, 1000);
	}
}

static void draw_world(struct world *world, struct vg_arena *arena)
{
	*world = (struct world){ .count = draw(NODES_MAX + 1) };
	for (size_t i = 0; i < world->count; i++) {
		draw_node(world, i);
		draw_links(world, i);
		world->candidates[i] = draw(15) ? &world->node[i] : NULL;
	}
	draw_request(world, arena);
	draw_quota(world);
}

/* ---- what must hold --------------------------------------------------------------------------- */

static uint64_t case_seed;

#define EXPECT(condition)                                                                          \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("seed %llu: %s", (unsigned long long)case_seed, #condition);      \
	} while (0)

static void decide(const struct world *world, const struct vg_node *const *candidates,
		   bool evaluate_all, struct vg_arena *arena, struct vg_decision *ret_decision)
{
	vg_decide(&(struct vg_decide_args){ .models = &case_model_list,
					    .request = &world->request,
					    .quota = world->limited ? &world->quota : NULL,
					    .candidates = candidates,
					    .candidate_count = world->count,
					    .evaluate_all = evaluate_all },
		  arena, ret_decision);
}

static void expect_verdict(const struct vg_verdict *verdict, const struct ref_verdict *reference)
{
	EXPECT(verdict->reason == reference->reason);
	if (verdict->reason != VG_NODE_CARDS)
		return;
	EXPECT(verdict->container == reference->container);
	EXPECT(verdict->card_count == reference->card_count);
	EXPECT(verdict->curable == reference->curable);
	for (size_t i = 0; i < VG_CARD_REASON_COUNT; i++)
		EXPECT(verdict->counts[i] == reference->counts[i]);
}

static void expect_grants(const struct vg_allocation *allocation, const struct vg_node *node,
			  const struct ref_verdict *reference)
{
	EXPECT(allocation->grant_count == reference->grant_count);
	for (size_t i = 0; i < allocation->grant_count; i++) {
		const struct vg_grant *grant = &allocation->grants[i];
		const struct ref_grant *other = &reference->grants[i];

		EXPECT(grant->uuid == node->cards[other->card].uuid);
		EXPECT(grant->mem_mib == other->mem_mib);
		EXPECT(grant->cores == other->cores);
		EXPECT(grant->container == other->container);
		EXPECT(grant->class_index == other->class_index);
	}
}

/* `used` is what the pod holds of each card: MiB, percent, slots. */
static void expect_room(const struct vg_node *node, const int64_t (*used)[3])
{
	for (size_t i = 0; i < node->card_count; i++) {
		const struct vg_card *card = &node->cards[i];

		if (!used[i][2])
			continue;
		EXPECT(card->mem_used_mib + used[i][0] <= card->mem_mib);
		EXPECT(card->cores_used + used[i][1] <= card->cores);
		EXPECT(card->slots_used + used[i][2] <= card->slots);
	}
}

/* Lives the pod's life on the node: init containers one after the other beside the sidecars that started
 * before them, then all apps. */
static void expect_life(const struct world *world, const struct vg_node *node,
			const struct ref_verdict *fit)
{
	int64_t staying[CARDS_MAX][3] = { 0 };

	for (size_t container = 0; container < world->request.container_count; container++) {
		int64_t now[CARDS_MAX][3];

		memcpy(now, staying, sizeof(now));
		for (size_t i = 0; i < fit->grant_count; i++) {
			const struct ref_grant *grant = &fit->grants[i];

			if (grant->container != container)
				continue;
			now[grant->card][0] += grant->mem_mib;
			now[grant->card][1] += grant->cores;
			now[grant->card][2]++;
		}
		expect_room(node, (const int64_t(*)[3])now);
		if (world->kinds[container] != VG_CONTAINER_INIT)
			memcpy(staying, now, sizeof(now));
	}
}

/* The charge that the ledger will make of the allocation fits as well. */
static void expect_charges(const struct world *world, const struct vg_node *node,
			   const struct vg_allocation *allocation, struct vg_arena *arena)
{
	struct vg_charge *charges;
	size_t count = vg_allocation_charges(
		allocation, world->kinds, world->request.container_count, false, arena, &charges);

	EXPECT(count > 0);
	for (size_t i = 0; i < count; i++) {
		const struct vg_card *card = node->cards;

		while (strcmp(card->uuid, charges[i].uuid) != 0)
			card++;
		EXPECT((int64_t)card->mem_used_mib + charges[i].mem_mib <= card->mem_mib);
		EXPECT(card->cores_used + charges[i].cores <= card->cores);
		EXPECT(card->slots_used + charges[i].slots <= card->slots);
	}
}

/* Each container has as many cards as it asks for, and all of them different ones. */
static void expect_distinct(const struct world *world, const struct vg_allocation *allocation)
{
	size_t grant = 0;

	for (size_t i = 0; i < world->request.want_count; i++) {
		const struct vg_want *want = &world->wants[i];
		size_t first = grant;

		for (int32_t j = 0; j < want->count; j++, grant++) {
			EXPECT(grant < allocation->grant_count);
			EXPECT(allocation->grants[grant].container == want->container);
			for (size_t k = first; k < grant; k++)
				EXPECT(allocation->grants[k].uuid !=
				       allocation->grants[grant].uuid);
		}
	}
	EXPECT(grant == allocation->grant_count);
	EXPECT(allocation->container_count == world->request.container_count);
}

static void shuffle(const struct vg_node **candidates, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = draw((uint32_t)i);
		const struct vg_node *swap = candidates[i - 1];

		candidates[i - 1] = candidates[j];
		candidates[j] = swap;
	}
}

struct tally {
	size_t found;
	size_t fits_nowhere;
	size_t reasons[VG_CARD_REASON_COUNT];
	size_t curable;
	size_t hopeless;
};

static void run_world(struct world *world, struct vg_arena *arena, struct tally *tally)
{
	struct ref_pod pod = { &world->request, &case_model_list,
			       world->limited ? &world->quota : NULL };
	const struct vg_node *shuffled[NODES_MAX];
	struct ref_verdict reference[NODES_MAX];
	struct vg_decision decision;
	size_t fits = 0;
	int best = ref_decide(&pod, world->candidates, world->count, reference);

	decide(world, world->candidates, true, arena, &decision);
	EXPECT(decision.found == (best >= 0));
	for (size_t i = 0; i < world->count; i++) {
		expect_verdict(&decision.verdicts[i], &reference[i]);
		fits += reference[i].reason == VG_NODE_FITS;
		if (reference[i].reason != VG_NODE_CARDS)
			continue;
		for (size_t j = 0; j < VG_CARD_REASON_COUNT; j++)
			tally->reasons[j] += reference[i].counts[j];
		tally->curable += reference[i].curable;
		tally->hopeless += !reference[i].curable;
	}
	EXPECT(decision.fit_count == fits);
	tally->found += decision.found;
	tally->fits_nowhere += !decision.found;

	memcpy(shuffled, world->candidates, sizeof(shuffled));
	for (size_t round = 0; round < 3; round++) {
		if (decision.found) {
			const struct vg_node *node = world->candidates[best];

			EXPECT(decision.score == ref_node_score(node));
			EXPECT((round ? shuffled : world->candidates)[decision.candidate] == node);
			expect_grants(&decision.allocation, node, &reference[best]);
			expect_distinct(world, &decision.allocation);
			expect_life(world, node, &reference[best]);
			if (world->limited)
				case_check_totals("the pod", &world->quota, &world->request,
						  &decision.allocation);
			expect_charges(world, node, &decision.allocation, arena);
		}
		EXPECT(decision.found == (best >= 0));
		shuffle(shuffled, world->count);
		decide(world, shuffled, false, arena, &decision);
		for (size_t i = 0; i < world->count; i++)
			EXPECT(best >= 0 || decision.verdicts[i].reason != VG_NODE_NOT_TRIED);
	}
}

static void test_like_the_reference(void **state)
{
	struct tally tally = { 0 };
	struct vg_arena arena;
	struct world world;

	(void)state;
	vg_arena_init(&arena);
	for (uint64_t i = 0; i < cases; i++) {
		vg_arena_clear(&arena);
		case_seed = first_seed + i;
		random_state = case_seed * 0x2545f4914f6cdd1d;
		draw_world(&world, &arena);
		run_world(&world, &arena, &tally);
	}
	vg_arena_release(&arena);
	print_message("%zu pods found a node, %zu did not\n", tally.found, tally.fits_nowhere);
	print_message("nodes: %zu curable, %zu not\n", tally.curable, tally.hopeless);
	for (size_t i = 0; i < VG_CARD_REASON_COUNT; i++)
		print_message("%9zu %s\n", tally.reasons[i], vg_card_reason_word[i]);
	if (cases < CASES_DEFAULT)
		return;
	/* The cases are worth their name only if they reach every rule. */
	assert_true(tally.found > cases / 10);
	assert_true(tally.fits_nowhere > cases / 10);
	assert_true(tally.curable > cases / 10);
	assert_true(tally.hopeless > cases / 10);
	for (size_t i = 0; i < VG_CARD_REASON_COUNT; i++)
		if (i != VG_CARD_CUSTOM_RULE)
			assert_true(tally.reasons[i] > 100);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_like_the_reference),
	};
	struct vg_err err = { 0 };

	if ((argc > 1 && vg_parse_u64(VG_SPAN(argv[1]), 1, UINT64_MAX, &cases, &err) < 0) ||
	    (argc > 2 && vg_parse_u64(VG_SPAN(argv[2]), 0, UINT64_MAX, &first_seed, &err) < 0)) {
		fprintf(stderr, "test_property [CASES [SEED]]: %s\n", err.msg);
		return 2;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
