/* SPDX-License-Identifier: Apache-2.0 */
/* What the pod's annotations leave of the cards: models, modes, UUIDs. */
#include "unit/scheduler/cases.h"

/* Model 0 is "NVIDIA A100-SXM4-80GB", 1 "NVIDIA-Tesla T4", 2 "NVIDIA H100 80GB HBM3". */
#define MODELS   "n1 | a model=0 | b model=1 | c model=2"
#define UUIDS    "n1 | GPU-aa | GPU-ab | GPU-b | GPU-B"
#define MODES    "n1 | h | m mode=mps | g mode=mig | n mode= | o mode=other"
#define ONE_CARD "app gpu=1 mem=500"

static const struct decide_case types[] = {
	{ .name = "use-gputype",
	  .nodes = { MODELS },
	  .pod = ONE_CARD,
	  .use_type = "T4",
	  .node = "n1",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "case does not count, blanks and empty words neither",
	  .nodes = { MODELS },
	  .pod = ONE_CARD,
	  .use_type = " , tesla t4 ,,",
	  .node = "n1",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "any of several",
	  .nodes = { MODELS },
	  .pod = "app gpu=2 mem=500",
	  .use_type = "h100,A100",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:c,NVIDIA,500,0:;" },
	{ .name = "no such model: nobody to evict",
	  .nodes = { "n1 | a used=16000,0,9 | b model=1" },
	  .pod = ONE_CARD,
	  .use_type = "B200",
	  .verdicts = { "-2/2 CardTypeMismatch" } },
	{ .name = "a blank list constrains nothing",
	  .nodes = { MODELS },
	  .pod = ONE_CARD,
	  .use_type = "  ",
	  .nouse_type = ",",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;" },
	{ .name = "nouse-gputype",
	  .nodes = { MODELS },
	  .pod = ONE_CARD,
	  .nouse_type = "80gb",
	  .node = "n1",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "nouse beats use",
	  .nodes = { MODELS },
	  .pod = "app gpu=2 mem=500",
	  .use_type = "NVIDIA",
	  .nouse_type = "H100",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:b,NVIDIA,500,0:;" },
	{ .name = "the lists are about cards of the first class",
	  .nodes = { "n1 | a | x class=1 model=3" },
	  .pod = "app npu=1 npumem=100",
	  .use_type = "A100",
	  .nouse_type = "ACME",
	  .use_uuid = "a",
	  .mode = "mig",
	  .node = "n1",
	  .allocation = ";",
	  .npu_allocation = "x,NPU,100,0:;" },
};

static const struct decide_case uuids[] = {
	{ .name = "use-gpuuuid",
	  .nodes = { UUIDS },
	  .pod = ONE_CARD,
	  .use_uuid = "GPU-b",
	  .node = "n1",
	  .allocation = "GPU-b,NVIDIA,500,0:;" },
	{ .name = "the whole UUID, and case counts",
	  .nodes = { UUIDS },
	  .pod = ONE_CARD,
	  .use_uuid = "GPU-a,GPU-abc,gpu-b,GPU-",
	  .verdicts = { "-4/4 CardUuidMismatch" } },
	{ .name = "several, in any order, with blanks",
	  .nodes = { UUIDS },
	  .pod = "app gpu=3 mem=500",
	  .use_uuid = "GPU-z, GPU-b ,GPU-aa,,GPU-0,GPU-B",
	  .node = "n1",
	  .allocation = "GPU-aa,NVIDIA,500,0:GPU-b,NVIDIA,500,0:GPU-B,NVIDIA,500,0:;" },
	{ .name = "a blank list constrains nothing",
	  .nodes = { UUIDS },
	  .pod = ONE_CARD,
	  .use_uuid = "",
	  .node = "n1",
	  .allocation = "GPU-aa,NVIDIA,500,0:;" },
	{ .name = "nouse-gpuuuid",
	  .nodes = { UUIDS },
	  .pod = "app gpu=2 mem=500",
	  .nouse_uuid = "GPU-B,GPU-aa",
	  .node = "n1",
	  .allocation = "GPU-ab,NVIDIA,500,0:GPU-b,NVIDIA,500,0:;" },
	{ .name = "nouse beats use",
	  .nodes = { UUIDS },
	  .pod = ONE_CARD,
	  .use_uuid = "GPU-aa,GPU-b",
	  .nouse_uuid = "GPU-aa",
	  .node = "n1",
	  .allocation = "GPU-b,NVIDIA,500,0:;" },
};

static const struct decide_case modes[] = {
	{ .name = "no annotation: any mode, and MIG cards have no profiles",
	  .nodes = { MODES },
	  .pod = "app gpu=5 mem=500",
	  .verdicts = { "-1/5 CardMigTopologyInfeasible, "
			"4/5 AllocatedCardsInsufficientRequest" } },
	{ .name = "hami-core: these, and cards without a mode",
	  .nodes = { MODES },
	  .pod = "app gpu=3 mem=500",
	  .mode = "hami-core",
	  .verdicts = { "-2/5 AllocatedCardsInsufficientRequest, 3/5 CardTypeMismatch" } },
	{ .name = "the text may contain several",
	  .nodes = { MODES },
	  .pod = "app gpu=4 mem=500",
	  .mode = "mps,hami-core",
	  .verdicts = { "-2/5 CardTypeMismatch, 3/5 AllocatedCardsInsufficientRequest" } },
	{ .name = "mps",
	  .nodes = { "n1 | h | m mode=mps" },
	  .pod = ONE_CARD,
	  .mode = "mps",
	  .node = "n1",
	  .allocation = "m,NVIDIA,500,0:;" },
	{ .name = "mig",
	  .nodes = { MODES },
	  .pod = "app gpu=2 mem=500",
	  .mode = "mig",
	  .verdicts = { "-1/5 AllocatedCardsInsufficientRequest, "
			"1/5 CardMigTopologyInfeasible, 3/5 CardTypeMismatch" } },
	{ .name = "a mode that we do not know cannot be asked for",
	  .nodes = { "n1 | o mode=other" },
	  .pod = ONE_CARD,
	  .mode = "other",
	  .verdicts = { "-1/1 CardTypeMismatch" } },
};

static void test_types(void **state)
{
	(void)state;
	RUN_CASES(types);
}

static void test_uuids(void **state)
{
	(void)state;
	RUN_CASES(uuids);
}

static void test_modes(void **state)
{
	(void)state;
	RUN_CASES(modes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_types),
		cmocka_unit_test(test_uuids),
		cmocka_unit_test(test_modes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
