/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How long a decision takes: 5,000 candidates of 8 cards each, the usage of 20,000 pods on them. Prints
 * p50 and p99 per case beside the bar, and fails when a bar is missed. The time of the processor is
 * printed as well: where it is much less than that of the clock, other programs had the machine.
 *
 *	bench_decide [DECISIONS]     per case, 2000 unless given
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"
#include "device/request.h"
#include "scheduler/decide.h"

#define NODES             5000
#define CARDS             8
#define LINKED_CARDS      16
#define PODS              20000
#define DECISIONS         2000
#define BAR_P99_NS        (1 * VG_NS_PER_MS)
#define LINKED_BAR_P99_NS (5 * VG_NS_PER_MS)

static const struct {
	const char *name;
	int32_t mem_mib;
} models[] = {
	{ "NVIDIA A100-SXM4-80GB", 81920 },
	{ "NVIDIA A100-PCIE-40GB", 40960 },
	{ "NVIDIA H100 80GB HBM3", 81559 },
	{ "NVIDIA H200", 143771 },
	{ "NVIDIA L40S", 46068 },
	{ "NVIDIA L4", 23034 },
	{ "NVIDIA A10", 23028 },
	{ "NVIDIA-Tesla T4", 15360 },
	{ "NVIDIA-Tesla V100-SXM2-32GB", 32768 },
	{ "NVIDIA-Tesla P4", 7680 },
};
#define MODELS (sizeof(models) / sizeof(models[0]))

static uint64_t seed = 0x9e3779b97f4a7c15;

static uint32_t draw(uint32_t below)
{
	seed ^= seed << 13;
	seed ^= seed >> 7;
	seed ^= seed << 17;
	return (uint32_t)((seed >> 16) % below);
}

/* ---- the cluster ------------------------------------------------------------------------------ */

enum usage {
	BUSY,   /* PODS pods anywhere */
	EMPTY,  /* no pod */
	FULL,   /* PODS pods anywhere, and one more on every card */
	LINKED, /* as BUSY, with 16 cards per node and pair scores */
	USAGE_COUNT,
};

struct cluster {
	struct vg_node *node[NODES];         /* as kube-scheduler might list them: in no order */
	const struct vg_node *sorted[NODES]; /* by name, backwards */
	int32_t most_free_mib;
};

/* Boards of four, linked within; everything else is a little different from pair to pair. */
static int32_t *make_links(size_t count)
{
	int32_t *links = vg_new_array(count * count, sizeof(*links));

	for (size_t i = 0; i < count; i++)
		for (size_t j = i + 1; j < count; j++)
			links[i * count + j] = links[j * count + i] =
				(i / 4 == j / 4 ? 400 : 10) + (int32_t)draw(20);
	return links;
}

static struct vg_node *make_node(size_t number, size_t cards)
{
	struct vg_node *node = vg_new(sizeof(*node));
	size_t model = draw(MODELS);

	node->name = vg_printf("gpu-node-%05zu.example.internal", number);
	node->card_count = (uint32_t)cards;
	node->cards = vg_new_array(cards, sizeof(*node->cards));
	if (cards == LINKED_CARDS)
		node->links = make_links(cards);
	for (size_t i = 0; i < cards; i++) {
		struct vg_card *card = &node->cards[i];

		card->uuid = vg_printf("GPU-%08x-%04x-%04x-%04x-%012x", draw(UINT32_MAX),
				       draw(65536), draw(65536), draw(65536), draw(UINT32_MAX));
		card->mem_mib = models[model].mem_mib;
		card->cores = 100;
		card->slots = 10;
		card->index = (int32_t)i;
		card->numa = (int16_t)(i / (cards / 2));
		card->model = (uint16_t)model;
		card->mode = VG_MODE_HAMI_CORE;
		card->healthy = draw(100) != 0;
		card->cordoned = draw(200) == 0;
	}
	return node;
}

static void use_card(struct vg_node *node, struct vg_card *card, int32_t mem_mib, int32_t cores)
{
	card->mem_used_mib += mem_mib;
	card->cores_used += cores;
	card->slots_used++;
	node->sums.mem_used_mib += mem_mib;
	node->sums.cores_used += cores;
	node->sums.slots_used++;
}

static void run_pods(struct cluster *cluster, size_t pods)
{
	while (pods) {
		struct vg_node *node = cluster->node[draw(NODES)];
		struct vg_card *card = &node->cards[draw(node->card_count)];
		int32_t mem_mib = (int32_t)(draw(60) + 1) * card->mem_mib / 100;
		int32_t cores = (int32_t)draw(60);

		if (card->slots_used == card->slots ||
		    card->mem_used_mib + mem_mib > card->mem_mib ||
		    card->cores_used + cores > card->cores)
			continue;
		use_card(node, card, mem_mib, cores);
		pods--;
	}
}

static int by_name_backwards(const void *a, const void *b)
{
	const struct vg_node *const *left = a;
	const struct vg_node *const *right = b;

	return strcmp((*right)->name, (*left)->name);
}

static struct cluster *make_cluster(enum usage usage)
{
	struct cluster *cluster = vg_new(sizeof(*cluster));

	for (size_t i = 0; i < NODES; i++)
		cluster->node[i] = make_node(i, usage == LINKED ? LINKED_CARDS : CARDS);
	for (size_t i = NODES - 1; i > 0; i--) {
		size_t j = draw((uint32_t)i + 1);
		struct vg_node *swap = cluster->node[i];

		cluster->node[i] = cluster->node[j];
		cluster->node[j] = swap;
	}
	if (usage == FULL)
		for (size_t i = 0; i < NODES * CARDS; i++)
			use_card(cluster->node[i / CARDS],
				 &cluster->node[i / CARDS]->cards[i % CARDS],
				 (int32_t)draw(4000) + 100, (int32_t)draw(30));
	if (usage != EMPTY)
		run_pods(cluster, PODS);
	for (size_t i = 0; i < NODES; i++) {
		struct vg_node *node = cluster->node[i];

		for (size_t j = 0; j < node->card_count; j++) {
			int32_t free_mib =
				(int32_t)(node->cards[j].mem_mib - node->cards[j].mem_used_mib);

			node->sums.mem_mib += node->cards[j].mem_mib;
			node->sums.cores += node->cards[j].cores;
			node->sums.slots += node->cards[j].slots;
			if (free_mib > cluster->most_free_mib)
				cluster->most_free_mib = free_mib;
		}
		cluster->sorted[i] = node;
	}
	qsort(cluster->sorted, NODES, sizeof(cluster->sorted[0]), by_name_backwards);
	return cluster;
}

static void free_cluster(struct cluster *cluster)
{
	for (size_t i = 0; i < NODES; i++) {
		for (size_t j = 0; j < cluster->node[i]->card_count; j++)
			free((void *)(uintptr_t)cluster->node[i]->cards[j].uuid);
		free((void *)(uintptr_t)cluster->node[i]->links);
		free(cluster->node[i]->cards);
		free((void *)(uintptr_t)cluster->node[i]->name);
		free(cluster->node[i]);
	}
	free(cluster);
}

/* ---- the cases -------------------------------------------------------------------------------- */

enum outcome {
	FITS,
	FITS_NOWHERE,
};

#define TOO_MUCH (-1) /* more memory than any card has free */

struct bench_case {
	const char *name;
	enum outcome outcome;
	enum usage usage;
	bool sorted; /* candidates by name, backwards */
	bool numa_bind;
	enum vg_node_policy node;
	enum vg_card_key card;
	int32_t count;
	int32_t mem_mib;
	int32_t cores;
	size_t apps;          /* 0: one */
	int32_t last_mem_mib; /* of the last of several apps */
	bool no_bar;          /* printed for comparison */
	bool linked;          /* policy topology-aware */
	const char *use_type;
	const char *nouse_uuid;
};

static const struct bench_case cases[] = {
	{ "a  fits, binpack/binpack", FITS, .count = 1, .mem_mib = 8192, .cores = 30 },
	{ "a  fits, binpack/spread", FITS, .card = VG_KEY_SPREAD, .count = 1, .mem_mib = 8192,
	  .cores = 30 },
	{ "a  fits, spread/spread", FITS, .node = VG_NODE_SPREAD, .card = VG_KEY_SPREAD, .count = 1,
	  .mem_mib = 8192, .cores = 30 },
	{ "a  fits, spread/binpack", FITS, .node = VG_NODE_SPREAD, .count = 1, .mem_mib = 8192,
	  .cores = 30 },
	{ "a  fits, empty cluster, names falling", FITS, .usage = EMPTY, .sorted = true, .count = 1,
	  .mem_mib = 2048, .cores = 30 },
	{ "a  fits on empty cards only, binpack", FITS, .count = 1, .mem_mib = 20000,
	  .cores = 100 },
	{ "b  fits nowhere (memory), binpack", FITS_NOWHERE, .count = 1, .mem_mib = TOO_MUCH,
	  .cores = 30 },
	{ "b  fits nowhere (memory), spread", FITS_NOWHERE, .node = VG_NODE_SPREAD,
	  .card = VG_KEY_SPREAD, .count = 1, .mem_mib = TOO_MUCH, .cores = 30 },
	{ "b  fits nowhere, reasons mixed", FITS_NOWHERE, .usage = FULL, .count = 1,
	  .mem_mib = 20000, .cores = 100 },
	{ "d  8 cards, fits, binpack", FITS, .count = 8, .mem_mib = 1024, .cores = 10 },
	{ "d  8 cards, fits, spread", FITS, .node = VG_NODE_SPREAD, .card = VG_KEY_SPREAD,
	  .count = 8, .mem_mib = 1024, .cores = 10 },
	{ "d  8 cards, fits nowhere, reasons mixed", FITS_NOWHERE, .usage = FULL, .count = 8,
	  .mem_mib = 4096, .cores = 90 },
	{ "d  4 cards, numa-bind, fits", FITS, .numa_bind = true, .count = 4, .mem_mib = 4096,
	  .cores = 10 },
	{ "d  5 cards, numa-bind, fits nowhere", FITS_NOWHERE, .numa_bind = true, .count = 5,
	  .mem_mib = 1024, .cores = 10 },
	{ "e  use-gputype, fits", FITS, .count = 1, .mem_mib = 8192, .cores = 30,
	  .use_type = "H100,h200" },
	{ "e  use-gputype, fits nowhere", FITS_NOWHERE, .count = 1, .mem_mib = TOO_MUCH,
	  .cores = 30, .use_type = "H100,h200" },
	{ "e  use-gputype, no such model", FITS_NOWHERE, .count = 1, .mem_mib = 8192, .cores = 30,
	  .use_type = "GB300" },
	{ "f  8 of 16 linked cards, binpack", FITS, .usage = LINKED, .linked = true, .count = 8,
	  .mem_mib = 1024, .cores = 10 },
	{ "f  8 of 16 linked cards, spread", FITS, .usage = LINKED, .linked = true,
	  .node = VG_NODE_SPREAD, .card = VG_KEY_SPREAD, .count = 8, .mem_mib = 1024, .cores = 10 },
	{ "f  16 of 16 linked cards, fits nowhere", FITS_NOWHERE, .usage = LINKED, .linked = true,
	  .count = 16, .mem_mib = TOO_MUCH, .cores = 10 },
	{ "-  nouse-gpuuuid, fits nowhere", FITS_NOWHERE, .count = 1, .mem_mib = TOO_MUCH,
	  .cores = 30, .nouse_uuid = "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76", .no_bar = true },
	{ "-  second container fits nowhere", FITS_NOWHERE, .count = 1, .mem_mib = 1024,
	  .cores = 10, .apps = 2, .last_mem_mib = TOO_MUCH, .no_bar = true },
};
#define CASES (sizeof(cases) / sizeof(cases[0]))

static struct vg_words words_of(const char *list, struct vg_arena *arena)
{
	struct vg_words words = { 0 };
	struct vg_span rest = { list, list ? strlen(list) : 0 };

	words.item = vg_arena_new_array(arena, 8, sizeof(*words.item));
	while (vg_cut(&rest, ',', &words.item[words.count]))
		words.count++;
	return words;
}

static void make_request(const struct bench_case *bench, int32_t too_much, struct vg_arena *arena,
			 struct vg_request *request)
{
	size_t apps = bench->apps ? bench->apps : 1;

	*request = (struct vg_request){
		.namespace = "default",
		.name = "bench",
		.uid = "00000000-0000-0000-0000-000000000000",
		.wants = vg_arena_new_array(arena, apps, sizeof(*request->wants)),
		.want_count = apps,
		.container_count = apps,
		.kinds = vg_arena_new_array(arena, apps, 1),
		.use_type = words_of(bench->use_type, arena),
		.nouse_uuid = words_of(bench->nouse_uuid, arena),
		.numa_bind = bench->numa_bind,
	};
	request->policy = (struct vg_policy){ .node = bench->node,
					      .keys = { bench->card },
					      .key_count = 1,
					      .topology = bench->linked,
					      .weight_slot = 1,
					      .weight_core = 1,
					      .weight_mem = 1 };
	for (size_t i = 0; i < apps; i++) {
		int32_t mem_mib = i && i + 1 == apps ? bench->last_mem_mib : bench->mem_mib;

		request->kinds[i] = VG_CONTAINER_APP;
		request->wants[i] = (struct vg_want){
			.container = (uint16_t)i,
			.kind = VG_CONTAINER_APP,
			.count = bench->count,
			.mem_mib = mem_mib == TOO_MUCH ? too_much : mem_mib,
			.mem_percent = VG_MEM_PERCENT_UNSET,
			.cores = bench->cores,
		};
	}
}

static int by_time(const void *a, const void *b)
{
	const int64_t *left = a;
	const int64_t *right = b;

	return (*left > *right) - (*left < *right);
}

static int64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return now.tv_sec * VG_NS_PER_S + now.tv_nsec;
}

/* The p-th percentile of `count` times, in microseconds. Sorts them. */
static double percentile(int64_t *times, size_t count, size_t p)
{
	qsort(times, count, sizeof(*times), by_time);
	return (double)times[count * p / 100] / 1e3;
}

/* Returns false when the bar was missed or the outcome is not what the case is about. */
static bool run_case(const struct bench_case *bench, struct cluster *cluster, size_t decisions)
{
	const struct vg_node **list = vg_new_array(NODES, sizeof(*list));
	int64_t *clock = vg_new_array(decisions, sizeof(*clock));
	int64_t *cpu = vg_new_array(decisions, sizeof(*cpu));
	const char *names[MODELS];
	struct vg_models model_list = { names, MODELS };
	struct vg_arena request_arena;
	struct vg_arena arena;
	struct vg_request request;
	int64_t bar_ns = bench->linked ? LINKED_BAR_P99_NS : BAR_P99_NS;
	bool as_meant = true;
	bool missed;
	double p99;

	for (size_t i = 0; i < MODELS; i++)
		names[i] = models[i].name;
	vg_arena_init(&request_arena);
	vg_arena_init(&arena);
	make_request(bench, cluster->most_free_mib + 1, &request_arena, &request);
	for (size_t i = 0; i < decisions; i++) {
		size_t start = draw(NODES);
		struct vg_decision decision;

		/* kube-scheduler starts its list somewhere else each time. */
		for (size_t j = 0; j < NODES; j++)
			list[j] = bench->sorted ? cluster->sorted[j]
						: cluster->node[(start + j) % NODES];
		vg_arena_clear(&arena);
		cpu[i] = cpu_ns();
		clock[i] = vg_clock_mono_ns();
		vg_decide(&(struct vg_decide_args){ .models = &model_list,
						    .request = &request,
						    .candidates = list,
						    .candidate_count = NODES },
			  &arena, &decision);
		clock[i] = vg_clock_mono_ns() - clock[i];
		cpu[i] = cpu_ns() - cpu[i];
		as_meant &= decision.found == (bench->outcome == FITS);
	}
	p99 = percentile(clock, decisions, 99);
	missed = !bench->no_bar && p99 > (double)bar_ns / 1e3;
	printf("%-40s p50 %7.1f us  p99 %7.1f us  (cpu %7.1f, %7.1f)", bench->name,
	       percentile(clock, decisions, 50), p99, percentile(cpu, decisions, 50),
	       percentile(cpu, decisions, 99));
	if (!bench->no_bar)
		printf("  bar %lld us  %s", (long long)bar_ns / 1000, missed ? "MISSED" : "ok");
	printf("%s\n", as_meant ? "" : "  NOT THE CASE THAT WAS MEANT");
	vg_arena_release(&arena);
	vg_arena_release(&request_arena);
	free(cpu);
	free(clock);
	free(list);
	return as_meant && !missed;
}

int main(int argc, char **argv)
{
	struct vg_err err = { 0 };
	uint64_t decisions = DECISIONS;
	struct cluster *cluster[USAGE_COUNT];
	bool ok = true;

	if (argc > 1 && vg_parse_u64(VG_SPAN(argv[1]), 1, 1000000, &decisions, &err) < 0) {
		fprintf(stderr, "bench_decide: decisions: %s\n", err.msg);
		return 2;
	}
	for (size_t i = 0; i < USAGE_COUNT; i++)
		cluster[i] = make_cluster((enum usage)i);
	printf("decision: %d candidates x %d cards, %d pods, %zu decisions per case\n", NODES,
	       CARDS, PODS, (size_t)decisions);
	for (size_t i = 0; i < CASES; i++)
		ok &= run_case(&cases[i], cluster[cases[i].usage], decisions);
	for (size_t i = 0; i < USAGE_COUNT; i++)
		free_cluster(cluster[i]);
	return ok ? 0 : 1;
}
