/* SPDX-License-Identifier: Apache-2.0 */
/* Which node, among those that fit. */
#include "unit/scheduler/cases.h"

static const struct decide_case nodes[] = {
	{ .name = "binpack takes the fullest node",
	  .nodes = { "n1 | a used=1000,10,1", "n2 | b used=8000,40,3", "n3 | c" },
	  .pod = "app gpu=1 mem=2000 cores=10",
	  .node = "n2",
	  .allocation = "b,NVIDIA,2000,10:;" },
	{ .name = "spread takes the emptiest node",
	  .nodes = { "n1 | a used=1000,10,1", "n2 | b used=8000,40,3", "n3 | c" },
	  .pod = "app gpu=1 mem=2000 cores=10",
	  .node_policy = "spread",
	  .node = "n3",
	  .allocation = "c,NVIDIA,2000,10:;" },
	{ .name = "the score is of the whole node, before this pod",
	  .nodes = { "n1 | a used=12000,80,5 | b", "n2 | c used=8000,50,3 | d used=8000,50,3" },
	  .pod = "app gpu=1 mem=2000 cores=10",
	  .node = "n2",
	  .allocation = "c,NVIDIA,2000,10:;" },
	{ .name = "the fullest node is full: the next one",
	  .nodes = { "n1 | a used=1000,10,1", "n2 | b used=15000,95,3", "n3 | c used=9000,50,2" },
	  .pod = "app gpu=1 mem=2000 cores=10",
	  .node = "n3",
	  .allocation = "c,NVIDIA,2000,10:;",
	  .verdicts = { NULL, "+1/1 CardInsufficientMemory" } },
	{ .name = "equal scores: the first name",
	  .nodes = { "n3 | c", "n1 | a", "n2 | b" },
	  .pod = "app gpu=1 mem=2000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,2000,0:;" },
	{ .name = "equal scores with spread: the first name",
	  .nodes = { "n3 | c", "n10 | a", "n2 | b" },
	  .pod = "app gpu=1 mem=2000",
	  .node_policy = "spread",
	  .node = "n10",
	  .allocation = "a,NVIDIA,2000,0:;" },
	{ .name = "a node with a total of 0 has score 0",
	  .nodes = { "n1 | a cores=0 used=15000,0,9", "n2 | b used=100,0,1" },
	  .pod = "app gpu=1 mem=500",
	  .node = "n2",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "nothing known, nothing registered, and a node that fits",
	  .nodes = { "", "n1", "n2 | b" },
	  .pod = "app gpu=1 mem=500",
	  .node = "n2",
	  .allocation = "b,NVIDIA,500,0:;",
	  .verdicts = { "-node unregistered", "-node unregistered", "-" } },
	{ .name = "nothing fits",
	  .nodes = { "", "n1 | a sick", "n2 | b used=15900,0,1", "n3 | c class=1 model=3" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "-node unregistered", "-1/1 CardNotHealth", "+1/1 CardInsufficientMemory",
			"-Device type not found" } },
	{ .name = "the example of docs/decision.md",
	  .nodes = { "node-a | GPU-a0 mem=81920 used=40960,50,2 | GPU-a1 mem=81920 used=20480,20,1",
		     "node-b | GPU-b0 mem=15360 model=1 used=10000,20,1 | GPU-b1 mem=15360 model=1",
		     "node-c | GPU-c0 mem=81920 sick | GPU-c1 mem=81920 used=77824,60,3" },
	  .pod = "app | app gpu=1 mem=8192 cores=30",
	  .node = "node-a",
	  .allocation = ";GPU-a1,NVIDIA,8192,30:;",
	  .verdicts = { "-", "-", "+1/2 CardInsufficientMemory, 1/2 CardNotHealth" } },
	{ .name = "more cards than the node has",
	  .nodes = { "n1 | a | b" },
	  .pod = "app gpu=3 mem=500",
	  .verdicts = { "-NodeInsufficientDevice" } },
};

static void test_nodes(void **state)
{
	(void)state;
	RUN_CASES(nodes);
}

/* ---- what is looked at ------------------------------------------------------------------------ */

#define MANY 1000

struct many {
	struct vg_node node[MANY];
	struct vg_card card[MANY];
	const struct vg_node *candidates[MANY];
	struct vg_want want;
	uint8_t kind;
	struct vg_request request;
	struct vg_arena names;
	struct vg_arena arena;
};

static struct many *make_many(void)
{
	struct many *many = vg_new(sizeof(*many));

	vg_arena_init(&many->names);
	vg_arena_init(&many->arena);
	for (size_t i = 0; i < MANY; i++) {
		struct vg_card *card = &many->card[i];
		struct vg_node *node = &many->node[i];

		*card = (struct vg_card){ .uuid = "GPU-x",
					  .mem_mib = 16000,
					  .mem_used_mib = (int32_t)i,
					  .cores = 100,
					  .slots = 10,
					  .healthy = true };
		node->name = vg_arena_printf(&many->names, "n%04zu", i);
		node->cards = card;
		node->card_count = 1;
		node->sums = (struct vg_sums){ .mem_mib = 16000,
					       .mem_used_mib = card->mem_used_mib,
					       .cores = 100,
					       .slots = 10 };
		many->candidates[i] = node;
	}
	many->kind = VG_CONTAINER_APP;
	many->want = (struct vg_want){ .kind = VG_CONTAINER_APP,
				       .count = 1,
				       .mem_mib = 100,
				       .mem_percent = VG_MEM_PERCENT_UNSET };
	many->request = (struct vg_request){
		.wants = &many->want, .want_count = 1, .container_count = 1, .kinds = &many->kind
	};
	return many;
}

static void free_many(struct many *many)
{
	vg_arena_release(&many->names);
	vg_arena_release(&many->arena);
	free(many);
}

static struct vg_decision decide_many(struct many *many, size_t count, bool evaluate_all)
{
	struct vg_decision decision;

	vg_decide(&(struct vg_decide_args){ .models = &case_model_list,
					    .request = &many->request,
					    .candidates = many->candidates,
					    .candidate_count = count,
					    .evaluate_all = evaluate_all },
		  &many->arena, &decision);
	return decision;
}

/* The candidates rise and fall in score: either way few of them are looked at. */
static void test_few_are_tried(void **state)
{
	static const enum vg_node_policy policies[] = { VG_NODE_BINPACK, VG_NODE_SPREAD };
	struct many *many = make_many();

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct vg_decision decision;
		size_t tried = 0;

		many->request.policy.node = policies[i];
		decision = decide_many(many, MANY, false);
		assert_true(decision.found);
		assert_int_equal(decision.candidate, i == 0 ? MANY - 1 : 0);
		for (size_t j = 0; j < MANY; j++) {
			if (decision.verdicts[j].reason == VG_NODE_NOT_TRIED) {
				assert_true(vg_verdict_curable(&decision.verdicts[j]));
				continue;
			}
			assert_int_equal(decision.verdicts[j].reason, VG_NODE_FITS);
			tried++;
		}
		assert_int_equal(tried, decision.fit_count);
		assert_in_range(tried, 1, 20);
	}
	free_many(many);
}

static void test_evaluate_all(void **state)
{
	struct many *many = make_many();
	struct vg_decision decision = decide_many(many, MANY, true);

	(void)state;
	assert_true(decision.found);
	assert_int_equal(decision.candidate, MANY - 1);
	assert_int_equal(decision.fit_count, MANY);
	for (size_t i = 0; i < MANY; i++)
		assert_int_equal(decision.verdicts[i].reason, VG_NODE_FITS);
	free_many(many);
}

/* Every number of candidates is walked completely: the one that fits is always found. */
static void test_every_count(void **state)
{
	struct many *many = make_many();

	(void)state;
	for (size_t i = 0; i < MANY; i++)
		many->card[i].healthy = false;
	for (size_t count = 1; count <= 200; count++) {
		for (size_t good = 0; good < count; good++) {
			struct vg_decision decision;

			vg_arena_clear(&many->arena);
			many->card[good].healthy = true;
			decision = decide_many(many, count, false);
			many->card[good].healthy = false;
			assert_true(decision.found);
			assert_int_equal(decision.candidate, good);
			assert_int_equal(decision.fit_count, 1);
		}
	}
	free_many(many);
}

static void test_no_candidates(void **state)
{
	struct many *many = make_many();
	struct vg_decision decision = decide_many(many, 0, false);

	(void)state;
	assert_false(decision.found);
	assert_int_equal(decision.allocation.grant_count, 0);
	assert_int_equal(decision.allocation.container_count, 1);
	free_many(many);
}

/* One node asked about twice is one node. */
static void test_same_candidate_twice(void **state)
{
	struct many *many = make_many();
	struct vg_decision decision;

	(void)state;
	many->candidates[0] = &many->node[5];
	many->candidates[1] = &many->node[5];
	many->candidates[2] = &many->node[3];
	decision = decide_many(many, 3, true);
	assert_int_equal(decision.candidate, 0);
	assert_int_equal(decision.fit_count, 3);
	decision = decide_many(many, 3, false);
	assert_ptr_equal(many->candidates[decision.candidate], &many->node[5]);
	free_many(many);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nodes),         cmocka_unit_test(test_few_are_tried),
		cmocka_unit_test(test_evaluate_all),  cmocka_unit_test(test_every_count),
		cmocka_unit_test(test_no_candidates), cmocka_unit_test(test_same_candidate_twice),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
