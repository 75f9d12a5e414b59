/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The choice of the best-linked cards: every k of 16, over pair scores of several shapes. Prints the
 * median and the worst of many choices next to the bar.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/limits.h"
#include "scheduler/scheduler_internal.h"

#define CARDS  16
#define ROUNDS 400
#define BAR_US 200.0

static int32_t links[CARDS * CARDS];
static uint32_t seed = 7;

static uint32_t next_random(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static void fill(int shape)
{
	for (int i = 0; i < CARDS; i++)
		for (int j = i + 1; j < CARDS; j++) {
			int32_t score = 0;

			switch (shape) {
			case 0: /* a switch: all alike */
				score = 1800;
				break;
			case 1: /* boards of four */
				score = i / 4 == j / 4 ? 400 : 20;
				break;
			case 2: /* anything */
				score = (int32_t)next_random(1800);
				break;
			default: /* anything, hardly different: little to cut off */
				score = 1000 + (int32_t)next_random(10);
			}
			links[i * CARDS + j] = links[j * CARDS + i] = score;
		}
}

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

int main(void)
{
	static const char *const shapes[] = { "all alike", "boards of 4", "random",
					      "random, close" };
	uint16_t among[CARDS];
	int missed = 0;

	for (uint16_t i = 0; i < CARDS; i++)
		among[i] = i;
	printf("best-linked k of %d cards, %d choices each: the worst k\n", CARDS, ROUNDS);
	for (int shape = 0; shape < 4; shape++) {
		double worst_p50 = 0, worst_p99 = 0;
		size_t worst_k = 0;

		for (size_t k = 1; k <= CARDS; k++) {
			struct vg_card_set set = { .count = CARDS,
						   .links = links,
						   .links_stride = CARDS };
			double took[ROUNDS];
			uint16_t picks[CARDS];

			for (int round = 0; round < ROUNDS; round++) {
				int64_t started;

				fill(shape);
				started = vg_clock_mono_ns();
				vg_pick_linked(&set, among, CARDS, k, picks);
				took[round] = (double)(vg_clock_mono_ns() - started) / 1e3;
			}
			qsort(took, ROUNDS, sizeof(*took), by_value);
			if (took[ROUNDS / 2] > worst_p50) {
				worst_p50 = took[ROUNDS / 2];
				worst_p99 = took[ROUNDS * 99 / 100];
				worst_k = k;
			}
		}
		missed += worst_p50 > BAR_US;
		printf("  %-16s k = %-2zu   p50 %7.1f us   p99 %7.1f us   bar %.0f us   %s\n",
		       shapes[shape], worst_k, worst_p50, worst_p99, BAR_US,
		       worst_p50 > BAR_US ? "MISSED" : "ok");
	}
	return missed ? 1 : 0;
}
