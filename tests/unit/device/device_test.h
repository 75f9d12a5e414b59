/* SPDX-License-Identifier: Apache-2.0 */
/* What the unit tests of this folder share. Included first, for the order that cmocka wants. */
#ifndef VGPU_TESTS_UNIT_DEVICE_TEST_H
#define VGPU_TESTS_UNIT_DEVICE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/mem.h"
#include "device/class.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* From the root of the repository, where tests are run. */
#define CAPTURED "tests/data/captured-1.20.2/"

/* A small generator of our own: the same numbers on every machine. */
static inline uint32_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

/* Tests write JSON with single quotes. */
static inline json_t *json_from(const char *text)
{
	char *copy = vg_strdup(text);
	json_error_t error;
	json_t *value;

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	value = json_loads(copy, 0, &error);
	if (!value)
		fail_msg("%s at %d in: %s", error.text, error.position, copy);
	free(copy);
	return value;
}

static inline json_t *json_from_file(const char *path)
{
	json_error_t error;
	json_t *value = json_load_file(path, 0, &error);

	if (!value)
		fail_msg("%s: %s", path, error.text);
	return value;
}

/* An arena and the classes of a daemon, for the time of one test. */
struct world {
	struct vg_arena arena;
	struct vg_classes classes;
};

static inline void world_init(struct world *world)
{
	vg_arena_init(&world->arena);
	vg_classes_init(&world->classes);
}

static inline void world_release(struct world *world)
{
	vg_classes_release(&world->classes);
	vg_arena_release(&world->arena);
}

/* A second class without code of its own, as a row of a configuration would make it. */
static inline void world_add_class(struct world *world, const char *word, int32_t mem_factor)
{
	world->classes.item[world->classes.count++] = (struct vg_class){
		.word = vg_strdup(word),
		.resource_count = vg_printf("%s.com/count", word),
		.resource_mem = vg_printf("%s.com/mem", word),
		.resource_mem_percent = vg_strdup(""),
		.resource_cores = vg_printf("%s.com/cores", word),
		.resource_priority = vg_strdup(""),
		.mem_factor = mem_factor,
		.core_policy = vg_strdup(""),
		.runtime_class = vg_strdup(""),
		.to_allocate = VG_ANNO_COUNT,
		.allocated = VG_ANNO_COUNT,
	};
}

/* A failing call says so in its code and in the error object alike, with the expected text in it. */
#define assert_failed(r, code_, err_, part)                                                        \
	do {                                                                                       \
		assert_int_equal((r), (code_));                                                    \
		assert_int_equal((err_).code, (code_));                                            \
		if (!strstr((err_).msg, (part)))                                                   \
			fail_msg("\"%s\" is not in \"%s\"", (part), (err_).msg);                   \
	} while (0)

#endif
