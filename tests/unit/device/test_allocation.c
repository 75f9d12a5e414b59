/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include <errno.h>

#include "base/limits.h"
#include "device/allocation.h"
#include "device/pod.h"

/* "containers: container/uuid/mem/cores …" */
static const char *show(const struct vg_allocation *allocation, struct vg_arena *arena)
{
	char *text = vg_arena_printf(arena, "%zu:", allocation->container_count);

	for (size_t i = 0; i < allocation->grant_count; i++) {
		const struct vg_grant *grant = &allocation->grants[i];

		text = vg_arena_printf(arena, "%s %d/%s/%d/%d", text, grant->container, grant->uuid,
				       grant->mem_mib, grant->cores);
	}
	return text;
}

/* ---- decode ---------------------------------------------------------------------------------- */

static void test_decoded(void **state)
{
	static const struct {
		const char *text;
		const char *allocation;
	} rows[] = {
		{ "nvidia-device-0,NVIDIA,2000,1:;", "1: 0/nvidia-device-0/2000/1" },
		{ "UUID1,Type1,1000,30:UUID2,Type1,1000,30:;",
		  "1: 0/UUID1/1000/30 0/UUID2/1000/30" },
		{ "GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76,NVIDIA,500,"
		  "3:;GPU-ebe7c3f7-303d-558d-435e-99a160631fe4,NVIDIA,500,3:;",
		  "2: 0/GPU-8dcd427f-483b-b48f-d7e5-75fb19a52b76/500/3 "
		  "1/GPU-ebe7c3f7-303d-558d-435e-99a160631fe4/500/3" },
		{ ";GPU-a,NVIDIA,500,3:;", "2: 1/GPU-a/500/3" },
		{ "GPU-a,NVIDIA,5000,20:;GPU-a,NVIDIA,4000,20:;;",
		  "3: 0/GPU-a/5000/20 1/GPU-a/4000/20" },
		/* A ";" ends a container and begins none. */
		{ "", "0:" },
		{ ";", "1:" },
		{ ";;;", "3:" },
		{ "GPU-a,NVIDIA,1,2", "1: 0/GPU-a/1/2" },
		{ "GPU-a,NVIDIA,1,2:;GPU-b,NVIDIA,3,4", "2: 0/GPU-a/1/2 1/GPU-b/3/4" },
		/* Pieces that are no device are skipped, further fields not looked at. */
		{ "garbage", "1:" },
		{ "garbage:GPU-a,NVIDIA,1,2:::;", "1: 0/GPU-a/1/2" },
		{ "GPU-a,NVIDIA,1,2,x,y:;", "1: 0/GPU-a/1/2" },
		{ "GPU-a,,1,2:;", "1: 0/GPU-a/1/2" },
		{ "GPU-a,NVIDIA,0,0:;", "1: 0/GPU-a/0/0" },
		{ "GPU-a,NVIDIA,2147483647,2147483647:;", "1: 0/GPU-a/2147483647/2147483647" },
		/* The form of MIG up to 2.9, and what only looks like it. */
		{ "GPU-a[1-0],NVIDIA,1,2:;", "1: 0/GPU-a/1/2" },
		{ "GPU-a[12-34],NVIDIA,1,2:;", "1: 0/GPU-a/1/2" },
		{ "GPU-a[0-90],NVIDIA,1,2:;", "1: 0/GPU-a/1/2" },
		{ "GPU-a[09-0],NVIDIA,1,2:;", "1: 0/GPU-a/1/2" },
		{ "GPU-a[1-0][1-0],NVIDIA,1,2:;", "1: 0/GPU-a/1/2" },
		{ "GPU-a[1],NVIDIA,1,2:;", "1: 0/GPU-a[1]/1/2" },
		{ "GPU-a[1-],NVIDIA,1,2:;", "1: 0/GPU-a[1-]/1/2" },
		{ "GPU-a[-1],NVIDIA,1,2:;", "1: 0/GPU-a[-1]/1/2" },
		{ "GPU-a1-0],NVIDIA,1,2:;", "1: 0/GPU-a1-0]/1/2" },
		{ "1-0],NVIDIA,1,2:;", "1: 0/1-0]/1/2" },
		{ "],NVIDIA,1,2:;", "1: 0/]/1/2" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_allocation allocation = { 0 };
		struct vg_arena arena;
		struct vg_err err = { 0 };

		vg_arena_init(&arena);
		if (vg_allocation_decode(rows[i].text, 0, &arena, &allocation, &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
		assert_string_equal(show(&allocation, &arena), rows[i].allocation);
		vg_arena_release(&arena);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} rows[] = {
		{ "GPU-a,NVIDIA,1:;", "container 0, device 0: 3 fields instead of" },
		{ ";x,y:;", "container 1, device 0: 2 fields" },
		{ "x:GPU-a,NVIDIA,1,2:a,b,c:;", "container 0, device 2: 3 fields" },
		{ ",NVIDIA,1,2:;", "no UUID" },
		{ "[1-0],NVIDIA,1,2:;", "no UUID" },
		{ "GPU-a,NVIDIA,x,2:;", "memory: \"x\" is not a whole number" },
		{ "GPU-a,NVIDIA,,2:;", "memory: \"\" is not a whole number" },
		{ "GPU-a,NVIDIA,-1,2:;", "memory: -1 is outside" },
		{ "GPU-a,NVIDIA,2147483648,2:;", "memory: 2147483648 is outside" },
		{ "GPU-a,NVIDIA,1,-2:;", "cores: -2 is outside" },
		{ "GPU-a,NVIDIA,1,2 :;", "cores: \"2 \" is not a whole number" },
		{ "GPU-a,NVIDIA,1,99999999999999999999:;", "cores: 99999999999999999999 is" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_allocation allocation = { 0 };
		struct vg_arena arena;
		struct vg_err err = { 0 };
		const char *before;
		int r;

		vg_arena_init(&arena);
		assert_int_equal(
			vg_allocation_decode("GPU-z,NVIDIA,7,8:;", 0, &arena, &allocation, NULL),
			0);
		before = show(&allocation, &arena);
		r = vg_allocation_decode(rows[i].text, 1, &arena, &allocation, &err);
		assert_failed(r, -EINVAL, err, rows[i].why);
		assert_string_equal(show(&allocation, &arena), before);
		vg_arena_release(&arena);
	}
}

static char *repeat(const char *text, size_t count, struct vg_arena *arena)
{
	size_t size = strlen(text);
	char *all = vg_arena_new(arena, count * size + 1);

	for (size_t i = 0; i < count; i++)
		memcpy(all + i * size, text, size);
	return all;
}

static void test_limits(void **state)
{
	enum { CONTAINERS = VG_LIMIT_CONTAINERS_PER_POD, CARDS = VG_LIMIT_CARDS_PER_REQUEST };
	struct vg_allocation allocation = { 0 };
	struct vg_arena arena;
	struct vg_err err = { 0 };
	char *text;
	int r;

	(void)state;
	vg_arena_init(&arena);
	text = repeat("a,b,1,2:;", CONTAINERS, &arena);
	assert_int_equal(vg_allocation_decode(text, 0, &arena, &allocation, NULL), 0);
	assert_int_equal(allocation.grant_count, CONTAINERS);
	text = repeat("a,b,1,2:;", CONTAINERS + 1, &arena);
	r = vg_allocation_decode(text, 0, &arena, &allocation, &err);
	assert_failed(r, -EINVAL, err, "at most 64 containers");

	/* Plugins add a ";" each time they hand something out; that is no reason to lose the pod. */
	allocation = (struct vg_allocation){ 0 };
	text = vg_arena_printf(&arena, "a,b,1,2:;%s", repeat(";", 500, &arena));
	assert_int_equal(vg_allocation_decode(text, 0, &arena, &allocation, NULL), 0);
	assert_int_equal(allocation.container_count, CONTAINERS);
	assert_int_equal(allocation.grant_count, 1);

	allocation = (struct vg_allocation){ 0 };
	text = repeat("a,b,1,2:", CARDS, &arena);
	assert_int_equal(vg_allocation_decode(text, 0, &arena, &allocation, NULL), 0);
	assert_int_equal(allocation.grant_count, CARDS);
	text = repeat("a,b,1,2:", CARDS + 1, &arena);
	r = vg_allocation_decode(text, 0, &arena, &allocation, &err);
	assert_failed(r, -EINVAL, err, "at most 64 devices");

	text = vg_arena_printf(&arena, "%0*d,b,1,2:;", (int)VG_LIMIT_UUID_BYTES, 7);
	assert_int_equal(vg_allocation_decode(text, 0, &arena, &allocation, NULL), 0);
	text = vg_arena_printf(&arena, "%0*d,b,1,2:;", (int)VG_LIMIT_UUID_BYTES + 1, 7);
	r = vg_allocation_decode(text, 0, &arena, &allocation, &err);
	assert_failed(r, -EINVAL, err, "UUID of 97 bytes");
	text = repeat(";", VG_LIMIT_ANNOTATION_BYTES + 1, &arena);
	r = vg_allocation_decode(text, 0, &arena, &allocation, &err);
	assert_failed(r, -EINVAL, err, "at most 262144 are accepted");
	vg_arena_release(&arena);
}

/* Several classes, an annotation each: grants stay sorted by container, in order of decoding. */
static void test_several_classes(void **state)
{
	struct vg_allocation allocation = { 0 };
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	assert_int_equal(
		vg_allocation_decode(";a,N,1,1:;b,N,2,2:c,N,3,3:;", 0, &arena, &allocation, NULL),
		0);
	assert_int_equal(
		vg_allocation_decode("d,M,4,4:;e,M,5,5:;;f,M,6,6:;", 1, &arena, &allocation, NULL),
		0);
	assert_string_equal(show(&allocation, &arena),
			    "4: 0/d/4/4 1/a/1/1 1/e/5/5 2/b/2/2 2/c/3/3 3/f/6/6");
	assert_int_equal(allocation.grants[1].class_index, 0);
	assert_int_equal(allocation.grants[2].class_index, 1);
	assert_int_equal(vg_allocation_decode(";;;;;", 2, &arena, &allocation, NULL), 0);
	assert_string_equal(show(&allocation, &arena),
			    "5: 0/d/4/4 1/a/1/1 1/e/5/5 2/b/2/2 2/c/3/3 3/f/6/6");
	vg_arena_release(&arena);
}

/* ---- encode ---------------------------------------------------------------------------------- */

static void test_encoded(void **state)
{
	struct vg_grant grants[] = {
		{ .uuid = "GPU-a", .mem_mib = 3000, .cores = 30, .container = 1 },
		{ .uuid = "MLU-x", .mem_mib = 5, .cores = 6, .container = 1, .class_index = 1 },
		{ .uuid = "GPU-b", .mem_mib = INT32_MAX, .cores = 0, .container = 1 },
		{ .uuid = "GPU-c", .mem_mib = 1, .cores = 100, .container = 3 },
	};
	const struct vg_allocation allocation = { grants, COUNT(grants), 5 };
	const struct vg_allocation nothing = { NULL, 0, 2 };
	const struct vg_allocation none = { NULL, 0, 0 };
	struct world world;

	(void)state;
	world_init(&world);
	world_add_class(&world, "MLU", 1);
	assert_string_equal(
		vg_allocation_encode(&allocation, &world.classes.item[0], 0, &world.arena),
		";GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,2147483647,0:;;GPU-c,NVIDIA,1,100:;;");
	assert_string_equal(
		vg_allocation_encode(&allocation, &world.classes.item[1], 1, &world.arena),
		";MLU-x,MLU,5,6:;;;;");
	assert_string_equal(vg_allocation_encode(&nothing, &world.classes.item[0], 0, &world.arena),
			    ";;");
	assert_string_equal(vg_allocation_encode(&none, &world.classes.item[0], 0, &world.arena),
			    "");
	world_release(&world);
}

static struct vg_allocation random_allocation(uint64_t *seed, uint8_t classes,
					      struct vg_arena *arena)
{
	struct vg_allocation allocation = {
		.container_count = next_random(seed) % (VG_LIMIT_CONTAINERS_PER_POD + 1),
	};

	allocation.grants = vg_arena_new_array(arena, allocation.container_count * 4 + 1,
					       sizeof(*allocation.grants));
	for (size_t c = 0; c < allocation.container_count; c++)
		for (uint8_t class = 0; class < classes; class ++)
			for (size_t n = next_random(seed) % 3; n > 0; n--)
				allocation.grants[allocation.grant_count++] = (struct vg_grant){
					.uuid = vg_arena_printf(arena, "GPU-%u",
								next_random(seed) % 8),
					.mem_mib = (int32_t)next_random(seed),
					.cores = (int32_t)next_random(seed),
					.container = (uint16_t)c,
					.class_index = class,
				};
	return allocation;
}

/* decode(encode(x)) is x, with one class and with two. */
static void test_round_trip(void **state)
{
	uint64_t seed = 3;
	struct world world;

	(void)state;
	world_init(&world);
	world_add_class(&world, "MLU", 1);
	for (int round = 0; round < 2000; round++) {
		uint8_t classes = (uint8_t)(1 + round % 2);
		struct vg_allocation allocation = random_allocation(&seed, classes, &world.arena);
		struct vg_allocation again = { 0 };

		for (uint8_t class = 0; class < classes; class ++) {
			const char *text = vg_allocation_encode(
				&allocation, &world.classes.item[class], class, &world.arena);

			assert_int_equal(
				vg_allocation_decode(text, class, &world.arena, &again, NULL), 0);
		}
		assert_string_equal(show(&again, &world.arena), show(&allocation, &world.arena));
		for (size_t i = 0; i < again.grant_count; i++)
			assert_int_equal(again.grants[i].class_index,
					 allocation.grants[i].class_index);
		vg_arena_clear(&world.arena);
	}
	world_release(&world);
}

/* ---- charges --------------------------------------------------------------------------------- */

static const char *show_charges(const struct vg_charge *charges, size_t count,
				struct vg_arena *arena)
{
	char *text = vg_arena_strdup(arena, "");

	for (size_t i = 0; i < count; i++)
		text = vg_arena_printf(arena, "%s%s%s=%d/%d/%d", text, i ? " " : "",
				       charges[i].uuid, charges[i].mem_mib, charges[i].cores,
				       charges[i].slots);
	return text;
}

static void test_charges(void **state)
{
	/* kinds: i init, s sidecar, a app, one letter per container; "" = the spec is not known. */
	static const struct {
		const char *text;
		const char *kinds;
		const char *before; /* while init containers may still run */
		const char *after;
	} rows[] = {
		{ "", "", "", "" },
		{ ";;", "ia", "", "" },
		{ "A,N,2000,30:;", "a", "A=2000/30/1", "A=2000/30/1" },
		/* The published examples: init 6000/30 and app 4000/50 on one card; two apps. */
		{ "A,N,6000,30:;A,N,4000,50:;", "ia", "A=6000/50/1", "A=4000/50/1" },
		{ "A,N,100,10:;A,N,200,20:;", "aa", "A=300/30/2", "A=300/30/2" },
		/* Init containers run one after the other. */
		{ "A,N,5,50:;A,N,7,30:;A,N,2,10:;", "iia", "A=7/50/1", "A=2/10/1" },
		{ "A,N,5,50:;B,N,7,30:;;", "iia", "A=5/50/1 B=7/30/1", "" },
		/* A card that only an init container had is free once that has ended. */
		{ "A,N,5,50:;B,N,7,30:;", "ia", "A=5/50/1 B=7/30/1", "B=7/30/1" },
		/* Several grants of one container on one card are held together. */
		{ "A,N,5,50:A,N,6,10:;A,N,7,20:;", "ia", "A=11/60/2", "A=7/20/1" },
		{ "A,N,5,50:A,N,6,10:;", "a", "A=11/60/2", "A=11/60/2" },
		/* A sidecar goes on beside the init containers behind it, and beside the apps. */
		{ "A,N,3,10:;A,N,5,20:;A,N,4,15:;", "sia", "A=8/30/2", "A=7/25/2" },
		{ "A,N,5,20:;A,N,3,10:;A,N,4,15:;", "isa", "A=7/25/2", "A=7/25/2" },
		{ "A,N,9,20:;A,N,3,10:;A,N,4,15:;", "isa", "A=9/25/2", "A=7/25/2" },
		{ "A,N,3,10:;A,N,5,20:;B,N,4,15:;", "sia", "A=8/30/2 B=4/15/1",
		  "A=3/10/1 B=4/15/1" },
		{ "A,N,1,1:;A,N,2,2:;A,N,10,10:;;", "ssia", "A=13/13/3", "A=3/3/2" },
		{ "A,N,1,1:;A,N,10,10:;A,N,2,2:;;", "sisa", "A=11/11/2", "A=3/3/2" },
		/* Sorted by UUID, whatever the order of the containers. */
		{ "C,N,1,1:;A,N,2,2:B,N,3,3:;", "aa", "A=2/2/1 B=3/3/1 C=1/1/1",
		  "A=2/2/1 B=3/3/1 C=1/1/1" },
		/* What is not known of the spec counts as an app. */
		{ "A,N,6000,30:;A,N,4000,50:;", "", "A=10000/80/2", "A=10000/80/2" },
		{ "A,N,6000,30:;A,N,4000,50:;", "i", "A=6000/50/1", "A=4000/50/1" },
		{ ";;;A,N,1,2:;", "i", "A=1/2/1", "A=1/2/1" },
		/* Other people's numbers do not wrap around. */
		{ "A,N,2147483647,2147483647:A,N,1,1:;A,N,2147483647,1:;", "aa",
		  "A=2147483647/2147483647/3", "A=2147483647/2147483647/3" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		uint8_t kinds[8] = { 0 };
		size_t kind_count = strlen(rows[i].kinds);
		struct vg_allocation allocation = { 0 };
		struct vg_arena arena;

		for (size_t k = 0; k < kind_count; k++)
			kinds[k] = rows[i].kinds[k] == 'i'   ? VG_CONTAINER_INIT
				   : rows[i].kinds[k] == 's' ? VG_CONTAINER_SIDECAR
							     : VG_CONTAINER_APP;
		vg_arena_init(&arena);
		assert_int_equal(vg_allocation_decode(rows[i].text, 0, &arena, &allocation, NULL),
				 0);
		for (int done = 0; done < 2; done++) {
			struct vg_charge *charges = NULL;
			size_t count = vg_allocation_charges(&allocation, kind_count ? kinds : NULL,
							     kind_count, done, &arena, &charges);
			const char *got = show_charges(charges, count, &arena);
			const char *wanted = done ? rows[i].after : rows[i].before;

			if (strcmp(got, wanted) != 0)
				fail_msg("%s, %s, done %d: \"%s\", not \"%s\"", rows[i].text,
					 rows[i].kinds, done, got, wanted);
		}
		vg_arena_release(&arena);
	}
}

/* The obvious way to say the same: play the pod's life, and note the highest of each quantity. */
static struct vg_charge played(const struct vg_allocation *allocation, const uint8_t *kinds,
			       const char *uuid)
{
	struct vg_charge peak = { .uuid = uuid };
	struct vg_charge lasting = { .uuid = uuid };

	for (size_t c = 0; c <= allocation->container_count; c++) {
		struct vg_charge now = lasting;

		for (size_t i = 0; i < allocation->grant_count; i++) {
			const struct vg_grant *grant = &allocation->grants[i];

			if (grant->container != c || strcmp(grant->uuid, uuid) != 0)
				continue;
			now.mem_mib += grant->mem_mib;
			now.cores += grant->cores;
			now.slots++;
		}
		if (peak.mem_mib < now.mem_mib)
			peak.mem_mib = now.mem_mib;
		if (peak.cores < now.cores)
			peak.cores = now.cores;
		if (peak.slots < now.slots)
			peak.slots = now.slots;
		if (kinds[c] != VG_CONTAINER_INIT)
			lasting = now;
	}
	return peak;
}

static void test_charges_against_playing(void **state)
{
	uint64_t seed = 11;
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	for (int round = 0; round < 3000; round++) {
		struct vg_allocation allocation = random_allocation(&seed, 1, &arena);
		uint8_t kinds[VG_LIMIT_CONTAINERS_PER_POD + 1];
		size_t inits = allocation.container_count
				       ? next_random(&seed) % allocation.container_count
				       : 0;
		struct vg_charge *charges = NULL;
		size_t used = 0;
		size_t count;

		for (size_t i = 0; i < COUNT(kinds); i++)
			kinds[i] =
				i >= inits ? VG_CONTAINER_APP : (uint8_t)(next_random(&seed) % 2);
		for (size_t i = 0; i < allocation.grant_count; i++) {
			allocation.grants[i].mem_mib %= 100000;
			allocation.grants[i].cores %= 101;
		}
		count = vg_allocation_charges(&allocation, kinds, allocation.container_count, false,
					      &arena, &charges);
		for (int card = 0; card < 8; card++) {
			char uuid[16];
			struct vg_charge wanted;

			snprintf(uuid, sizeof(uuid), "GPU-%d", card);
			wanted = played(&allocation, kinds, uuid);
			if (!wanted.slots)
				continue;
			assert_true(used < count);
			assert_string_equal(charges[used].uuid, uuid);
			assert_int_equal(charges[used].mem_mib, wanted.mem_mib);
			assert_int_equal(charges[used].cores, wanted.cores);
			assert_int_equal(charges[used].slots, wanted.slots);
			used++;
		}
		assert_int_equal(used, count);
		vg_arena_clear(&arena);
	}
	vg_arena_release(&arena);
}

/* ---- totals ----------------------------------------------------------------------------------- */

static void test_totals(void **state)
{
	static const struct {
		const char *text;
		const char *kinds;
		struct vg_total before; /* while init containers run */
		struct vg_total after;
	} rows[] = {
		{ "", "", { 0, 0 }, { 0, 0 } },
		{ "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,2000,20:;", "a", { 5000, 50 }, { 5000, 50 } },
		{ "GPU-a,NVIDIA,6000,30:;GPU-a,NVIDIA,4000,50:;",
		  "ia",
		  { 6000, 50 },
		  { 4000, 50 } },
		/* On another card, which was charged for itself: the pod never holds both. */
		{ "GPU-b,NVIDIA,6000,30:;GPU-a,NVIDIA,4000,50:;",
		  "ia",
		  { 6000, 50 },
		  { 4000, 50 } },
		{ "GPU-a,NVIDIA,6000,30:;GPU-a,NVIDIA,4000,50:;GPU-b,NVIDIA,3000,1:;",
		  "iaa",
		  { 7000, 51 },
		  { 7000, 51 } },
		{ "GPU-a,NVIDIA,1000,10:;GPU-b,NVIDIA,6000,30:;GPU-a,NVIDIA,4000,5:;",
		  "sia",
		  { 7000, 40 },
		  { 5000, 15 } },
		{ "GPU-a,NVIDIA,6000,30:;GPU-b,NVIDIA,6000,30:;;", "iia", { 6000, 30 }, { 0, 0 } },
		/* Without a spec all are apps. */
		{ "GPU-a,NVIDIA,6000,30:;GPU-a,NVIDIA,4000,50:;",
		  "",
		  { 10000, 80 },
		  { 10000, 80 } },
		{ "GPU-a,NVIDIA,2147483647,100:GPU-b,NVIDIA,2147483647,100:;",
		  "a",
		  { 4294967294, 200 },
		  { 4294967294, 200 } },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t kind_count = strlen(rows[i].kinds);
		struct vg_allocation allocation = { 0 };
		uint8_t kinds[8] = { 0 };
		struct vg_arena arena;

		for (size_t k = 0; k < kind_count; k++)
			kinds[k] = rows[i].kinds[k] == 'i'   ? VG_CONTAINER_INIT
				   : rows[i].kinds[k] == 's' ? VG_CONTAINER_SIDECAR
							     : VG_CONTAINER_APP;
		vg_arena_init(&arena);
		assert_int_equal(vg_allocation_decode(rows[i].text, 3, &arena, &allocation, NULL),
				 0);
		/* A second class in the same list counts by itself. */
		assert_int_equal(
			vg_allocation_decode(";;;GPU-n,NPU,7,9:;", 15, &arena, &allocation, NULL),
			0);
		for (int done = 0; done < 2; done++) {
			const struct vg_total *wanted = done ? &rows[i].after : &rows[i].before;
			struct vg_total totals[VG_CLASSES_MAX];

			memset(totals, 0xff, sizeof(totals));
			vg_allocation_totals(&allocation, kind_count ? kinds : NULL, kind_count,
					     done, totals);
			if (totals[3].mem_mib != wanted->mem_mib ||
			    totals[3].cores != wanted->cores)
				fail_msg("%s, %s, done %d: %lld MiB, %lld percent", rows[i].text,
					 rows[i].kinds, done, (long long)totals[3].mem_mib,
					 (long long)totals[3].cores);
			assert_int_equal(totals[15].mem_mib, 7);
			assert_int_equal(totals[15].cores, 9);
			assert_int_equal(totals[0].mem_mib, 0);
		}
		vg_arena_release(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_decoded), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits),  cmocka_unit_test(test_several_classes),
		cmocka_unit_test(test_encoded), cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_charges), cmocka_unit_test(test_charges_against_playing),
		cmocka_unit_test(test_totals),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
