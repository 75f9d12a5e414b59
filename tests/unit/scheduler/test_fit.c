/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a pod fits on a node: the checks of a card, the containers of a pod, and what tracing tells. */
#include "unit/scheduler/cases.h"

/* ---- checks: each rule at its boundary -------------------------------------------------------- */

static const struct decide_case checks[] = {
	/* Health and cordon. */
	{ .name = "an unhealthy card",
	  .nodes = { "n1 | a sick | b" },
	  .pod = "app gpu=1 mem=500",
	  .node = "n1",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "only unhealthy cards: nobody to evict",
	  .nodes = { "n1 | a sick used=16000,100,10" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "-1/1 CardNotHealth" } },
	{ .name = "a cordoned card",
	  .nodes = { "n1 | a cordoned" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "-1/1 CardCordoned" } },

	/* Slots. */
	{ .name = "the last slot",
	  .nodes = { "n1 | a slots=3 used=100,0,2" },
	  .pod = "app gpu=1 mem=500",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;" },
	{ .name = "no slot",
	  .nodes = { "n1 | a slots=3 used=100,0,3" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "+1/1 CardTimeSlicingExhausted" } },
	{ .name = "a card for nobody",
	  .nodes = { "n1 | a slots=0" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "-1/1 CardTimeSlicingExhausted" } },

	/* Quota of the namespace. */
	{ .name = "exactly full",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=6000",
	  .quota = "mem=4000/10000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,6000,0:;" },
	{ .name = "one MiB over",
	  .nodes = { "n1 | a | b sick" },
	  .pod = "app gpu=1 mem=6001",
	  .quota = "mem=4000/10000",
	  .verdicts = { "+1/2 CardNotHealth, 1/2 ResourceQuotaNotFit" } },
	{ .name = "all cards of the container count",
	  .nodes = { "n1 | a | b", "n2 | c" },
	  .pod = "app gpu=2 mem=3000",
	  .quota = "mem=4000/10000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,3000,0:b,NVIDIA,3000,0:;" },
	{ .name = "and they are all too much",
	  .nodes = { "n1 | a | b" },
	  .pod = "app gpu=2 mem=3001",
	  .quota = "mem=4000/10000",
	  .verdicts = { "+2/2 ResourceQuotaNotFit" } },
	{ .name = "alone over the limit: nobody to evict",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=10001",
	  .quota = "mem=4000/10000",
	  .verdicts = { "-1/1 ResourceQuotaNotFit" } },
	{ .name = "an explicit 0 blocks everything",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=1",
	  .quota = "mem=0/0",
	  .verdicts = { "-1/1 ResourceQuotaNotFit" } },
	{ .name = "cores",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=500 cores=31",
	  .quota = "cores=70/100",
	  .verdicts = { "+1/1 ResourceQuotaNotFit" } },
	{ .name = "cores of several cards",
	  .nodes = { "n1 | a | b" },
	  .pod = "app gpu=2 mem=500 cores=15",
	  .quota = "cores=70/100",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,15:b,NVIDIA,500,15:;" },
	{ .name = "who takes no cores does not mind that others have too many",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=500",
	  .quota = "cores=200/100",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;" },
	{ .name = "a limit that was lowered below what is used",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=1",
	  .quota = "mem=20000/10000",
	  .verdicts = { "+1/1 ResourceQuotaNotFit" } },
	{ .name = "a percentage is of the card",
	  .nodes = { "n1 | a mem=8000 | b mem=16000" },
	  .pod = "app gpu=1 percent=50",
	  .quota = "mem=0/4000",
	  .gpu_policy = "binpack",
	  .node = "n1",
	  .allocation = "a,NVIDIA,4000,0:;" },
	{ .name = "a whole card by default",
	  .nodes = { "n1 | a mem=8000 | b mem=16000" },
	  .pod = "app gpu=1",
	  .quota = "mem=0/7999",
	  .verdicts = { "-2/2 ResourceQuotaNotFit" } },
	{ .name = "a limit of another class",
	  .nodes = { "n1 | a | n class=1" },
	  .pod = "app gpu=1 mem=500 npu=1 npumem=500",
	  .quota = "npumem=0/499 mem=0/500",
	  .verdicts = { "-1/1 ResourceQuotaNotFit" } },
	{ .name = "classes do not share a limit",
	  .nodes = { "n1 | a | n class=1" },
	  .pod = "app gpu=1 mem=500 npu=1 npumem=500",
	  .quota = "npumem=0/500 mem=0/500",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;",
	  .npu_allocation = "n,NPU,500,0:;" },
	{ .name = "two app containers add up",
	  .nodes = { "n1 | a | b" },
	  .pod = "app gpu=1 mem=6000 | app gpu=1 mem=4001",
	  .quota = "mem=0/10000",
	  .verdicts = { "-2/2 ResourceQuotaNotFit" } },
	{ .name = "two init containers do not",
	  .nodes = { "n1 | a | b" },
	  .pod = "init gpu=1 mem=7000 | init gpu=1 mem=7000 | app gpu=1 mem=3000",
	  .quota = "mem=3000/10000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,7000,0:;a,NVIDIA,7000,0:;a,NVIDIA,3000,0:;" },
	{ .name = "an init container that is too large by itself",
	  .nodes = { "n1 | a" },
	  .pod = "init gpu=1 mem=7001 | app gpu=1 mem=3000",
	  .quota = "mem=3000/10000",
	  .verdicts = { "+1/1 ResourceQuotaNotFit" } },
	/* Elsewhere the first apps of such a pod are taken for init containers, and do not add up. */
	{ .name = "apps behind an init container add up all the same",
	  .nodes = { "n1 | a | b" },
	  .pod = "init gpu=1 mem=1000 | app gpu=1 mem=6000 | app gpu=1 mem=4001",
	  .quota = "mem=0/10000",
	  .verdicts = { "-2/2 ResourceQuotaNotFit" } },
	{ .name = "a sidecar stays beside the init container behind it",
	  .nodes = { "n1 | a" },
	  .pod = "sidecar gpu=1 mem=3000 | init gpu=1 mem=7001 | app gpu=1 mem=1000",
	  .quota = "mem=0/10000",
	  .verdicts = { "-1/1 ResourceQuotaNotFit" } },
	{ .name = "and beside the app",
	  .nodes = { "n1 | a" },
	  .pod = "sidecar gpu=1 mem=3000 | init gpu=1 mem=7000 | app gpu=1 mem=7000",
	  .quota = "mem=0/10000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,3000,0:;a,NVIDIA,7000,0:;a,NVIDIA,7000,0:;" },

	/* Memory. */
	{ .name = "the last MiB",
	  .nodes = { "n1 | a used=15000,0,1" },
	  .pod = "app gpu=1 mem=1000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,1000,0:;" },
	{ .name = "one MiB too few",
	  .nodes = { "n1 | a used=15001,0,1" },
	  .pod = "app gpu=1 mem=1000",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },
	{ .name = "more than the card has: eviction does not help",
	  .nodes = { "n1 | a used=15001,0,1" },
	  .pod = "app gpu=1 mem=16001",
	  .verdicts = { "-1/1 CardInsufficientMemory" } },
	{ .name = "more given out than there is",
	  .nodes = { "n1 | a used=20000,0,1" },
	  .pod = "app gpu=1 mem=1",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },
	{ .name = "a percentage of each card",
	  .nodes = { "n1 | a mem=16000 | b mem=81920" },
	  .pod = "app gpu=2 percent=50",
	  .gpu_policy = "spread",
	  .node = "n1",
	  .allocation = "a,NVIDIA,8000,0:b,NVIDIA,40960,0:;" },
	{ .name = "a percentage rounds down",
	  .nodes = { "n1 | a mem=15999" },
	  .pod = "app gpu=1 percent=33",
	  .node = "n1",
	  .allocation = "a,NVIDIA,5279,0:;" },
	{ .name = "a percentage of a large card (2^31 / 100 and more)",
	  .nodes = { "n1 | a mem=2147483647" },
	  .pod = "app gpu=1 percent=99",
	  .node = "n1",
	  .allocation = "a,NVIDIA,2126008810,0:;" },
	{ .name = "a percentage is never 0 MiB, which would mean no limit",
	  .nodes = { "n1 | a mem=50" },
	  .pod = "app gpu=1 percent=1",
	  .node = "n1",
	  .allocation = "a,NVIDIA,1,0:;" },
	{ .name = "a percentage of a card without memory",
	  .nodes = { "n1 | a mem=0" },
	  .pod = "app gpu=1 percent=50",
	  .verdicts = { "-1/1 CardInsufficientMemory" } },
	{ .name = "nothing but the card: all of its memory",
	  .nodes = { "n1 | a used=100,0,1 | b" },
	  .pod = "app gpu=1",
	  .node = "n1",
	  .allocation = "b,NVIDIA,16000,0:;" },

	/* Cores. */
	{ .name = "the last percent",
	  .nodes = { "n1 | a used=0,70,1" },
	  .pod = "app gpu=1 mem=500 cores=30",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,30:;" },
	{ .name = "one percent too few",
	  .nodes = { "n1 | a used=0,71,1" },
	  .pod = "app gpu=1 mem=500 cores=30",
	  .verdicts = { "+1/1 CardInsufficientCore" } },
	{ .name = "more cores than a scaled card has",
	  .nodes = { "n1 | a cores=50" },
	  .pod = "app gpu=1 mem=500 cores=51",
	  .verdicts = { "-1/1 CardInsufficientCore" } },
	{ .name = "no cores asked for, and none left",
	  .nodes = { "n1 | a used=0,100,2" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "+1/1 CardComputeUnitsExhausted" } },
	{ .name = "no cores asked for, one left",
	  .nodes = { "n1 | a used=0,99,2" },
	  .pod = "app gpu=1 mem=500",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;" },
	{ .name = "no cores asked for, of a card that counts none",
	  .nodes = { "n1 | a cores=0" },
	  .pod = "app gpu=1 mem=500",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;" },
	{ .name = "no cores asked for, more given out than there are",
	  .nodes = { "n1 | a used=0,101,2" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "+1/1 CardInsufficientCore" } },

	/* A card of one's own by 100 cores. */
	{ .name = "100 cores on a card in use, whose user has no cores",
	  .nodes = { "n1 | a used=500,0,1" },
	  .pod = "app gpu=1 mem=500 cores=100",
	  .verdicts = { "+1/1 ExclusiveDeviceAllocateConflict" } },
	{ .name = "100 cores on a card in use, whose user has cores",
	  .nodes = { "n1 | a used=500,10,1" },
	  .pod = "app gpu=1 mem=500 cores=100",
	  .verdicts = { "+1/1 CardInsufficientCore" } },
	{ .name = "100 cores on a card in use, with scaled cores",
	  .nodes = { "n1 | a cores=200 used=500,10,1" },
	  .pod = "app gpu=1 mem=500 cores=100",
	  .verdicts = { "+1/1 ExclusiveDeviceAllocateConflict" } },
	{ .name = "99 cores on the same card",
	  .nodes = { "n1 | a cores=200 used=500,10,1" },
	  .pod = "app gpu=1 mem=500 cores=99",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,99:;" },
	{ .name = "beside somebody who has a scaled card to himself",
	  .nodes = { "n1 | a cores=200 used=500,100,1" },
	  .pod = "app gpu=1 mem=500 cores=30",
	  .verdicts = { "+1/1 ExclusiveDeviceAllocateConflict" } },
	{ .name = "the same without cores",
	  .nodes = { "n1 | a cores=200 used=500,100,1" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "+1/1 ExclusiveDeviceAllocateConflict" } },
	{ .name = "beside two who have 100 cores together",
	  .nodes = { "n1 | a cores=200 used=500,100,2" },
	  .pod = "app gpu=1 mem=500 cores=30",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,30:;" },
	{ .name = "beside somebody who has a plain card to himself",
	  .nodes = { "n1 | a used=500,100,1" },
	  .pod = "app gpu=1 mem=500 cores=30",
	  .verdicts = { "+1/1 CardInsufficientCore" } },
	{ .name = "the same without cores, in HAMi's word",
	  .nodes = { "n1 | a used=500,100,1" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "+1/1 CardComputeUnitsExhausted" } },
	{ .name = "memory is looked at before exclusivity",
	  .nodes = { "n1 | a used=16000,0,1" },
	  .pod = "app gpu=1 mem=500 cores=100",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },

	/* Policy mutex. */
	{ .name = "mutex: a card that nobody is on",
	  .nodes = { "n1 | a used=100,0,1 | b" },
	  .pod = "app gpu=1 mem=500",
	  .gpu_policy = "mutex",
	  .node = "n1",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "mutex: all in use, and looked at before memory",
	  .nodes = { "n1 | a used=100,0,1 | b used=16000,0,1" },
	  .pod = "app gpu=1 mem=500",
	  .gpu_policy = "mutex",
	  .verdicts = { "+2/2 ExclusiveDeviceAllocateConflict" } },
	{ .name = "mutex in a chain",
	  .nodes = { "n1 | a used=100,0,1 | b" },
	  .pod = "app gpu=1 mem=500",
	  .gpu_policy = "binpack, mutex",
	  .node = "n1",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "mutex: the pod's own containers do not share either",
	  .nodes = { "n1 | a | b" },
	  .pod = "app gpu=1 mem=500 | app gpu=1 mem=500",
	  .gpu_policy = "mutex",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;b,NVIDIA,500,0:;" },

	/* MIG cards are of no use to a request for a slice until their profiles are known. */
	{ .name = "a card divided by MIG",
	  .nodes = { "n1 | a mode=mig | b" },
	  .pod = "app gpu=1 mem=500",
	  .node = "n1",
	  .allocation = "b,NVIDIA,500,0:;" },
	{ .name = "only MIG cards",
	  .nodes = { "n1 | a mode=mig" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "-1/1 CardMigTopologyInfeasible" } },
	{ .name = "an MPS card is a card like others",
	  .nodes = { "n1 | a mode=mps" },
	  .pod = "app gpu=1 mem=500 cores=20",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,20:;" },

	/* The order of the checks, and what is counted. */
	{ .name = "the first check that fails is counted",
	  .nodes = { "n1 | a sick cordoned used=16000,100,10 | b cordoned used=16000,100,10"
		     " | c used=16000,100,10 | d used=16000,100,9 | e used=0,100,9" },
	  .pod = "app gpu=1 mem=500 cores=10",
	  .verdicts = { "+1/5 CardCordoned, 1/5 CardInsufficientCore, "
			"1/5 CardInsufficientMemory, 1/5 CardNotHealth, "
			"1/5 CardTimeSlicingExhausted" } },
	{ .name = "cards that would do, but too few",
	  .nodes = { "n1 | a | b | c used=16000,0,1 | d sick" },
	  .pod = "app gpu=3 mem=500",
	  .verdicts = { "+1/4 CardInsufficientMemory, 1/4 CardNotHealth, "
			"2/4 AllocatedCardsInsufficientRequest" } },
	{ .name = "too few even if they were empty",
	  .nodes = { "n1 | a | b used=16000,0,1 | c sick | d sick" },
	  .pod = "app gpu=3 mem=500",
	  .verdicts = { "-1/4 AllocatedCardsInsufficientRequest, 1/4 CardInsufficientMemory, "
			"2/4 CardNotHealth" } },
	{ .name = "one curable card is enough for one card",
	  .nodes = { "n1 | a sick | b sick | c used=16000,0,1" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "+1/3 CardInsufficientMemory, 2/3 CardNotHealth" } },
	{ .name = "what fails first could be cured, what comes behind could not",
	  .nodes = { "n1 | a mode=mig used=16000,0,1" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "-1/1 CardInsufficientMemory" } },
};

static void test_checks(void **state)
{
	(void)state;
	RUN_CASES(checks);
}

/* ---- containers ------------------------------------------------------------------------------- */

static const struct decide_case containers[] = {
	{ .name = "a container without a card keeps its place",
	  .nodes = { "n1 | a" },
	  .pod = "app | app gpu=1 mem=500 cores=30 | app",
	  .node = "n1",
	  .allocation = ";a,NVIDIA,500,30:;;" },
	{ .name = "several cards of one container are different cards",
	  .nodes = { "n1 | a | b | c" },
	  .pod = "app gpu=3 mem=500",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:b,NVIDIA,500,0:c,NVIDIA,500,0:;" },
	{ .name = "apps add up on one card",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=8000 cores=50 | app gpu=1 mem=8000 cores=50",
	  .node = "n1",
	  .allocation = "a,NVIDIA,8000,50:;a,NVIDIA,8000,50:;" },
	{ .name = "apps that do not fit beside each other",
	  .nodes = { "n1 | a" },
	  .pod = "app gpu=1 mem=8000 | app gpu=1 mem=8001",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },
	{ .name = "apps share slots",
	  .nodes = { "n1 | a slots=2 | b slots=1 used=1,0,1" },
	  .pod = "app gpu=1 mem=1 | app gpu=1 mem=1 | app gpu=1 mem=1",
	  .verdicts = { "+2/2 CardTimeSlicingExhausted" } },
	{ .name = "an app of the pod has the scaled card to itself",
	  .nodes = { "n1 | a cores=200 | b cores=200" },
	  .pod = "app gpu=1 mem=500 cores=100 | app gpu=1 mem=500 cores=30",
	  .gpu_policy = "binpack",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,100:;b,NVIDIA,500,30:;" },
	{ .name = "binpack over the pod's own apps",
	  .nodes = { "n1 | a | b" },
	  .pod = "app gpu=1 mem=500 | app gpu=1 mem=500",
	  .gpu_policy = "binpack",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;a,NVIDIA,500,0:;" },
	{ .name = "spread over the pod's own apps",
	  .nodes = { "n1 | a | b" },
	  .pod = "app gpu=1 mem=500 | app gpu=1 mem=500",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;b,NVIDIA,500,0:;" },

	/* Init containers run one after the other and before the apps. */
	{ .name = "init containers do not add up",
	  .nodes = { "n1 | a" },
	  .pod = "init gpu=1 mem=16000 cores=100 | init gpu=1 mem=12000 | app gpu=1 mem=16000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,16000,100:;a,NVIDIA,12000,0:;a,NVIDIA,16000,0:;" },
	{ .name = "an init container does not fit beside others' pods",
	  .nodes = { "n1 | a used=1,0,1" },
	  .pod = "init gpu=1 mem=16000 | app gpu=1 mem=500",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },
	{ .name = "a card only in an init container",
	  .nodes = { "n1 | a" },
	  .pod = "init gpu=1 mem=500 | app",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;;" },
	{ .name = "an init container takes no slot from the apps",
	  .nodes = { "n1 | a slots=1" },
	  .pod = "init gpu=1 mem=500 | app gpu=1 mem=500",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;a,NVIDIA,500,0:;" },

	/* Sidecars stay beside everything that starts after them. */
	{ .name = "a sidecar adds up with the apps",
	  .nodes = { "n1 | a" },
	  .pod = "sidecar gpu=1 mem=8000 | app gpu=1 mem=8001",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },
	{ .name = "a sidecar runs beside later init containers",
	  .nodes = { "n1 | a" },
	  .pod = "sidecar gpu=1 mem=8000 | init gpu=1 mem=8001 | app gpu=1 mem=1",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },
	{ .name = "and not beside earlier ones",
	  .nodes = { "n1 | a" },
	  .pod = "init gpu=1 mem=16000 | sidecar gpu=1 mem=8000 | app gpu=1 mem=8000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,16000,0:;a,NVIDIA,8000,0:;a,NVIDIA,8000,0:;" },
	{ .name = "an exclusive init container avoids the sidecar's card",
	  .nodes = { "n1 | a | b used=4000,0,0" },
	  .pod = "sidecar gpu=1 mem=1000 | init gpu=1 mem=1000 cores=100 | app gpu=1 mem=1000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,1000,0:;b,NVIDIA,1000,100:;a,NVIDIA,1000,0:;" },

	/* Several classes. */
	{ .name = "two classes in one container",
	  .nodes = { "n1 | a | x class=1 model=3 mem=4000" },
	  .pod = "app gpu=1 mem=500 npu=1 npumem=4000",
	  .node = "n1",
	  .allocation = "a,NVIDIA,500,0:;",
	  .npu_allocation = "x,NPU,4000,0:;" },
	{ .name = "one class too few",
	  .nodes = { "n1 | a", "n2 | a | x class=1 model=3 mem=4000 used=1,0,1" },
	  .pod = "app gpu=1 mem=500 npu=1 npumem=4000",
	  .verdicts = { "-Device type not found", "+1/1 CardInsufficientMemory" } },
	{ .name = "only cards of the class count",
	  .nodes = { "n1 | a used=16000,0,1 | x class=1 model=3 | y class=1 model=3" },
	  .pod = "app gpu=1 mem=500",
	  .verdicts = { "+1/1 CardInsufficientMemory" } },
	{ .name = "cards behind those of another class",
	  .nodes = { "n1 | a | b | x class=1 model=3 used=8000,0,1 | y class=1 model=3" },
	  .pod = "app npu=1 npumem=100",
	  .gpu_policy = "binpack",
	  .node = "n1",
	  .allocation = ";",
	  .npu_allocation = "x,NPU,100,0:;" },
};

static void test_containers(void **state)
{
	(void)state;
	RUN_CASES(containers);
}

/* The verdict names the container that did not fit. */
static void test_container_of_verdict(void **state)
{
	static const struct decide_case c = { .name = "third container",
					      .nodes = { "n1 | a" },
					      .pod = "init gpu=1 mem=500 | app | "
						     "app gpu=1 mem=9000 | app gpu=1 mem=9000" };
	struct case_cluster cluster;
	struct vg_decision decision;
	struct vg_classes classes;
	struct vg_request request;
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	case_classes(&classes);
	case_cluster(&c, &arena, &cluster);
	case_request(&c, &classes, &arena, &request);
	vg_decide(&(struct vg_decide_args){ .models = &case_model_list,
					    .request = &request,
					    .candidates = cluster.candidates,
					    .candidate_count = 1 },
		  &arena, &decision);
	assert_false(decision.found);
	assert_int_equal(decision.verdicts[0].container, 3);
	assert_int_equal(decision.verdicts[0].card_count, 1);
	vg_classes_release(&classes);
	vg_arena_release(&arena);
}

/* ---- tracing ---------------------------------------------------------------------------------- */

struct log {
	struct vg_buf buf;
	bool checks; /* every check, and not only the outcome */
};

static void log_card(void *ctx, const struct vg_card_trace *trace)
{
	struct log *log = ctx;

	vg_buf_addf(&log->buf, "%u.%u card %u: %s%s %.3f\n", trace->candidate, trace->container,
		    trace->card,
		    trace->reason == VG_CARD_OK ? "ok" : vg_card_reason_word[trace->reason],
		    trace->chosen ? " chosen" : "", (double)trace->score);
	for (size_t i = 0; i < VG_CHECK_COUNT && log->checks; i++) {
		const struct vg_check *check = &trace->checks[i];

		if (check->total == VG_QUOTA_NO_LIMIT) {
			assert_true(check->passed);
			continue;
		}

		assert_int_equal(check->id, i);
		assert_int_equal(check->passed, check->have >= check->need);
		vg_buf_addf(&log->buf, "  %s %s %lld/%lld of %lld%s%s\n", vg_check_name[i],
			    check->passed ? "ok" : "fails", (long long)check->have,
			    (long long)check->need, (long long)check->total,
			    check->passed ? "" : " ",
			    check->passed ? "" : vg_card_reason_word[check->reason]);
	}
}

static void log_node(void *ctx, const struct vg_node_trace *trace)
{
	struct log *log = ctx;
	struct vg_buf *buf = &log->buf;

	vg_buf_addf(buf, "%u node: %.3f = %.3f %.3f %.3f \"", trace->candidate,
		    (double)trace->score, (double)trace->score_slots, (double)trace->score_cores,
		    (double)trace->score_mem);
	vg_verdict_text(trace->verdict, buf);
	vg_buf_adds(buf, "\"\n");
}

static void trace_case(const struct decide_case *c, bool every_check, const char *expected)
{
	struct log log = { .checks = every_check };
	struct vg_trace trace = { &log, log_card, log_node };
	struct case_cluster cluster;
	struct vg_decision decision;
	struct vg_classes classes;
	struct vg_request request;
	struct vg_quota quota;
	struct vg_arena arena;

	vg_arena_init(&arena);
	vg_buf_init(&log.buf, 1 << 16);
	if (c->quota)
		case_quota(c->quota, &quota);
	case_classes(&classes);
	case_cluster(c, &arena, &cluster);
	case_request(c, &classes, &arena, &request);
	vg_decide(&(struct vg_decide_args){ .models = &case_model_list,
					    .request = &request,
					    .candidates = cluster.candidates,
					    .candidate_count = cluster.count,
					    .quota = c->quota ? &quota : NULL,
					    .trace = &trace },
		  &arena, &decision);
	case_expect_text(c->name, "trace", log.buf.data, expected);
	case_expect_text(c->name, "node",
			 decision.found ? cluster.candidates[decision.candidate]->name : NULL,
			 c->node);
	vg_buf_release(&log.buf);
	vg_classes_release(&classes);
	vg_arena_release(&arena);
}

static void test_trace_checks(void **state)
{
	static const struct decide_case c = {
		.name = "every check, also those behind the first that fails",
		.nodes = { "n1 | a sick mode=mps used=12000,40,3" },
		.pod = "app gpu=1 mem=5000 cores=30",
		.mode = "hami-core",
		.nouse_uuid = "a",
	};

	(void)state;
	trace_case(&c, true,
		   "0.0 card 0: CardNotHealth 21.625\n"
		   "  health fails 0/1 of 0 CardNotHealth\n"
		   "  cordon ok 1/1 of 1\n"
		   "  type ok 1/1 of 1\n"
		   "  mode fails 0/1 of 0 CardTypeMismatch\n"
		   "  uuid fails 0/1 of 0 CardUuidMismatch\n"
		   "  slots ok 7/1 of 10\n"
		   "  mutex ok 1/0 of 1\n"
		   "  memory fails 4000/5000 of 16000 CardInsufficientMemory\n"
		   "  cores ok 60/30 of 100\n"
		   "  exclusive ok 1/0 of 1\n"
		   "  share ok 60/0 of 100\n"
		   "  held ok 1/1 of 1\n"
		   "  mig ok 1/1 of 1\n"
		   "0 node: 14.500 = 0.300 0.400 0.750 \"1/1 CardNotHealth\"\n");
}

static void test_trace_quota(void **state)
{
	static const struct decide_case c = {
		.name = "the second container sees what the first one takes of the quota",
		.nodes = { "n1 | a" },
		.pod = "app gpu=1 mem=2000 cores=10 | app gpu=1 mem=5001 cores=10",
		.quota = "mem=3000/10000",
	};

	(void)state;
	/* 10000, less 2000 of the first container, less 3000 of others. */
	trace_case(&c, true,
		   "0.0 card 0: ok chosen 3.250\n"
		   "  health ok 1/1 of 1\n"
		   "  cordon ok 1/1 of 1\n"
		   "  type ok 1/1 of 1\n"
		   "  mode ok 1/1 of 1\n"
		   "  uuid ok 1/1 of 1\n"
		   "  slots ok 10/1 of 10\n"
		   "  mutex ok 1/0 of 1\n"
		   "  quota_mem ok 7000/2000 of 10000\n"
		   "  memory ok 16000/2000 of 16000\n"
		   "  cores ok 100/10 of 100\n"
		   "  exclusive ok 1/0 of 1\n"
		   "  share ok 100/0 of 100\n"
		   "  held ok 1/1 of 1\n"
		   "  mig ok 1/1 of 1\n"
		   "0.1 card 0: ResourceQuotaNotFit 8.376\n"
		   "  health ok 1/1 of 1\n"
		   "  cordon ok 1/1 of 1\n"
		   "  type ok 1/1 of 1\n"
		   "  mode ok 1/1 of 1\n"
		   "  uuid ok 1/1 of 1\n"
		   "  slots ok 9/1 of 10\n"
		   "  mutex ok 1/0 of 1\n"
		   "  quota_mem fails 5000/5001 of 8000 ResourceQuotaNotFit\n"
		   "  memory ok 14000/5001 of 16000\n"
		   "  cores ok 90/10 of 100\n"
		   "  exclusive ok 1/0 of 1\n"
		   "  share ok 90/0 of 100\n"
		   "  held ok 1/1 of 1\n"
		   "  mig ok 1/1 of 1\n"
		   "0 node: 0.000 = 0.000 0.000 0.000 \"1/1 ResourceQuotaNotFit\"\n");
}

static void test_trace_order(void **state)
{
	static const struct decide_case c = {
		.name = "candidates, containers, cards; a node is left at the first failure",
		.nodes = { "n1 | a | b used=8000,50,5", "", "n2 | c used=4000,0,1 | d sick",
			   "n3 | e" },
		.pod = "app gpu=1 mem=4000 | app gpu=2 mem=4000",
		.gpu_policy = "binpack",
		.node = "n1",
	};

	(void)state;
	trace_case(&c, false,
		   "0.0 card 0: ok 3.500\n"
		   "0.0 card 1: ok chosen 18.500\n"
		   "0.1 card 0: ok chosen 3.500\n"
		   "0.1 card 1: ok chosen 22.000\n"
		   "0 node: 7.500 = 0.250 0.250 0.250 \"\"\n"
		   "1 node: 0.000 = 0.000 0.000 0.000 \"node unregistered\"\n"
		   "2.0 card 0: ok chosen 7.000\n"
		   "2.0 card 1: CardNotHealth 3.500\n"
		   "2.1 card 0: AllocatedCardsInsufficientRequest 10.500\n"
		   "2.1 card 1: CardNotHealth 3.500\n"
		   "2 node: 1.750 = 0.050 0.000 0.125 "
		   "\"1/2 AllocatedCardsInsufficientRequest, 1/2 CardNotHealth\"\n"
		   "3.0 card 0: ok chosen 3.500\n"
		   "3 node: 0.000 = 0.000 0.000 0.000 \"NodeInsufficientDevice\"\n");
}

static void test_trace_of_second_class(void **state)
{
	static const struct decide_case c = {
		.name = "cards are numbered as in the node",
		.nodes = { "n1 | a | x class=1 model=3 | y class=1 model=3 used=8000,0,1" },
		.pod = "app npu=1 npumem=8000",
		.node = "n1",
	};

	(void)state;
	trace_case(&c, false,
		   "0.0 card 1: ok chosen 6.000\n"
		   "0.0 card 2: ok 12.000\n"
		   "0 node: 2.000 = 0.033 0.000 0.167 \"\"\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_checks),
		cmocka_unit_test(test_containers),
		cmocka_unit_test(test_container_of_verdict),
		cmocka_unit_test(test_trace_checks),
		cmocka_unit_test(test_trace_quota),
		cmocka_unit_test(test_trace_order),
		cmocka_unit_test(test_trace_of_second_class),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
