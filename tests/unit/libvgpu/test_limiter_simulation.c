/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limiter's arithmetic on a simulated device: one queue, kernels of fixed length, a host thread
 * that launches as fast as it may. Virtual time: 12 simulated seconds per case, no GPU, no waiting.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <cmocka.h>

#include "libvgpu/limiter_budget.h"

enum { EVENTS = 4096, SECONDS = 12, WARMUP = 2 };

/* A batch on its way: settles when the device has passed its second event. */
struct pending {
	struct vg_batch batch;
	uint64_t start_ns, end_ns; /* device time of its events */
};

struct simulation {
	struct vgpu_region_device device;
	uint64_t now_ns;  /* host */
	uint64_t free_ns; /* when the device's queue is empty */
	uint64_t work_ns; /* done by the device */
	uint64_t second_work[SECONDS + 2];
	struct pending pending[EVENTS];
	unsigned int head, tail;
	struct vg_batch open;
	uint64_t open_start_ns;
	bool has_open;
};

static struct simulation sim;

/* Puts an event into the queue; it costs the device a microsecond. */
static uint64_t record(struct simulation *s)
{
	if (s->free_ns < s->now_ns)
		s->free_ns = s->now_ns;
	s->free_ns += 1000;
	return s->free_ns;
}

static void close_batch(struct simulation *s)
{
	struct pending *p = &s->pending[s->tail++ % EVENTS];

	p->batch = s->open;
	p->start_ns = s->open_start_ns;
	p->end_ns = record(s);
	s->now_ns += 700;
	s->has_open = false;
}

static void poll(struct simulation *s)
{
	while (s->head != s->tail && s->pending[s->head % EVENTS].end_ns <= s->now_ns) {
		struct pending *p = &s->pending[s->head++ % EVENTS];
		uint64_t charged = p->batch.estimate_ns;
		uint64_t work =
			vg_batch_settle(&p->batch, p->end_ns - p->start_ns, VG_PART_WHOLE, false);
		uint64_t fresh = vg_busy_add(&s->device, p->start_ns, p->end_ns);

		work = work < fresh ? work : fresh;
		vg_budget_take(&s->device, (int64_t)work - (int64_t)charged);
	}
}

static void launch(struct simulation *s, struct vg_estimate *estimate, uint64_t kernel_ns,
		   uint32_t percent)
{
	uint64_t charge;

	vg_budget_refill(&s->device, s->now_ns, percent);
	poll(s);
	while (!vg_budget_open(&s->device)) {
		uint64_t wait;

		if (s->has_open)
			close_batch(s);
		do {
			wait = vg_budget_wait(&s->device, percent);
			if (wait > 5000000)
				wait = 5000000;
			s->now_ns += wait + 60000; /* a wake-up is late */
			vg_budget_refill(&s->device, s->now_ns, percent);
			poll(s);
		} while (vg_budget_wait(&s->device, percent) > 1);
	}
	estimate->launches++;
	charge = vg_estimate_ns(estimate);
	vg_budget_take(&s->device, (int64_t)charge);
	if (vg_estimate_wants_solo(estimate) && s->has_open)
		close_batch(s);
	if (!s->has_open) {
		vg_batch_open(&s->open, s->now_ns);
		s->open.solo = vg_estimate_wants_solo(estimate);
		s->open_start_ns = record(s);
		s->now_ns += 700;
		s->has_open = true;
	}
	s->now_ns += 2500;
	if (s->free_ns < s->now_ns)
		s->free_ns = s->now_ns;
	s->free_ns += kernel_ns;
	s->work_ns += kernel_ns;
	if (s->free_ns / 1000000000u < SECONDS + 2)
		s->second_work[s->free_ns / 1000000000u] += kernel_ns;
	vg_batch_launched(&s->open, estimate, charge, s->now_ns);
	if (vg_batch_full(&s->open))
		close_batch(s);
}

struct result {
	double share, deviation;
};

static struct result run(uint64_t kernel_ns, uint32_t percent, uint64_t pause_ns)
{
	struct vg_estimate estimate = { .key = 1 };
	double sum = 0, squares = 0;
	struct result r;

	memset(&sim, 0, sizeof(sim));
	sim.now_ns = 1;
	while (sim.now_ns < (uint64_t)SECONDS * 1000000000u) {
		launch(&sim, &estimate, kernel_ns, percent);
		sim.now_ns += pause_ns;
		/* A real queue is bounded: about a thousand launches ahead. */
		if (sim.free_ns > sim.now_ns + 1024 * kernel_ns)
			sim.now_ns = sim.free_ns - 1024 * kernel_ns;
	}
	for (int i = WARMUP; i < SECONDS; i++) {
		double share = (double)sim.second_work[i] / 1e7;

		sum += share;
		squares += share * share;
	}
	r.share = sum / (SECONDS - WARMUP);
	r.deviation = sqrt(fmax(0, squares / (SECONDS - WARMUP) - r.share * r.share));
	return r;
}

static void test_shares(void **state)
{
	static const struct {
		const char *name;
		uint64_t kernel_ns;
	} workload[] = {
		{ "kernels of 0.09 ms", 90000 },
		{ "kernels of 25 ms", 25000000 },
		{ "graph of 20 kernels", 1800000 },
		{ "small grids, 0.34 ms", 340000 },
	};
	static const uint32_t percents[] = { 10, 25, 50, 75 };
	double error = 0, worst = 0;

	(void)state;
	for (size_t w = 0; w < 4; w++) {
		for (size_t p = 0; p < 4; p++) {
			struct result r = run(workload[w].kernel_ns, percents[p], 0);
			double off = fabs(r.share - percents[p]);

			print_message("%-22s %2u %%: %6.2f, deviation of seconds %.2f\n",
				      workload[w].name, percents[p], r.share, r.deviation);
			error += off / 16;
			worst = off > worst ? off : worst;
			assert_true(off <= 1.0);
			assert_true(r.deviation <= (workload[w].kernel_ns > 10000000 ? 3.0 : 1.0));
		}
	}
	print_message("mean error %.2f, worst %.2f\n", error, worst);
	assert_true(error <= 0.5);
}

/* A host that is slower than its share must not be slowed down. */
static void test_slow_host_is_left_alone(void **state)
{
	struct result r;

	(void)state;
	/* 20 us of work every 82.5 us: 24.2 % by itself. */
	r = run(20000, 50, 80000);
	print_message("slow host: %.2f\n", r.share);
	assert_true(fabs(r.share - 24.2) <= 0.5);
	r = run(20000, 10, 80000);
	print_message("slow host over its share: %.2f\n", r.share);
	assert_true(fabs(r.share - 10) <= 1.5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_shares),
		cmocka_unit_test(test_slow_host_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
