/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include <errno.h>

#include "base/limits.h"
#include "device/node.h"

/* The cards as one line: uuid index slots mem cores numa mode health model. */
static const char *show(const struct vg_card_info *cards, size_t count, struct vg_arena *arena)
{
	char *text = vg_arena_strdup(arena, "");

	for (size_t i = 0; i < count; i++) {
		const struct vg_card_info *card = &cards[i];

		text = vg_arena_printf(
			arena, "%s%s%s %d %d %d %d %d %s %s %s", text, i ? " | " : "", card->uuid,
			card->index, card->slots, card->mem_mib, card->cores, card->numa,
			card->mode == VG_MODE_NONE ? "-" : vg_card_mode_word[card->mode],
			card->healthy ? "healthy" : "ill", card->model[0] ? card->model : "-");
	}
	return text;
}

/* JSON rows write ' for ". */
static const char *quoted(const char *text, struct vg_arena *arena)
{
	char *copy = vg_arena_strdup(arena, text);

	for (char *c = copy; *c; c++)
		if (*c == '\'')
			*c = '"';
	return copy;
}

static void test_accepted(void **state)
{
	static const struct {
		const char *text;
		const char *cards;
	} rows[] = {
		/* JSON. */
		{ "[]", "" },
		{ " [ ] ", "" },
		{ "[{'id':'GPU-0','count':5,'devmem':8192,'devcore':100,'type':'NVIDIA-Tesla P4',"
		  "'numa':0,'health':true,'index':0}]",
		  "GPU-0 0 5 8192 100 0 - healthy NVIDIA-Tesla P4" },
		{ "[{'id':'GPU-0'}]", "GPU-0 0 0 0 0 0 - ill -" },
		{ "[{'id':'GPU-0','numa':null,'type':null,'health':null}]",
		  "GPU-0 0 0 0 0 0 - ill -" },
		{ "[{'id':'GPU-0','mode':'hami-core'},{'id':'GPU-1','mode':'mig'},{'id':'GPU-2',"
		  "'mode':'mps'},{'id':'GPU-3','mode':'vfio'},{'id':'GPU-4','mode':''}]",
		  "GPU-0 0 0 0 0 0 hami-core ill - | GPU-1 0 0 0 0 0 mig ill - | GPU-2 0 0 0 0 0 "
		  "mps ill - | GPU-3 0 0 0 0 0 other ill - | GPU-4 0 0 0 0 0 - ill -" },
		{ "[{'id':'GPU-0','devmem':2147483647,'devcore':2147483647,'count':2147483647,"
		  "'index':2147483647,'numa':32767}]",
		  "GPU-0 2147483647 2147483647 2147483647 2147483647 32767 - ill -" },
		{ "[{'id':'!~'}]", "!~ 0 0 0 0 0 - ill -" },
		{ "[{'id':'GPU-0','numa':-1}]", "GPU-0 0 0 0 0 -1 - ill -" },
		{ "[{'id':'GPU-0','custominfo':{'x':[1]},'migProfiles':[{'name':'1g.5gb',"
		  "'memoryMB':4864,'core':15,'placements':[{'start':6,'size':1}]}]}]",
		  "GPU-0 0 0 0 0 0 - ill -" },
		/* Sorted by index, then UUID. */
		{ "[{'id':'GPU-b','index':1},{'id':'GPU-c'},{'id':'GPU-a','index':1}]",
		  "GPU-c 0 0 0 0 0 - ill - | GPU-a 1 0 0 0 0 - ill - | GPU-b 1 0 0 0 0 - ill -" },
		/* The comma form, with seven and with nine fields. */
		{ "GPU-ebe7c3f7-303d-558d-435e-99a160631fe4,10,7680,100,NVIDIA-Tesla P4,0,true,1,"
		  "hami-core:",
		  "GPU-ebe7c3f7-303d-558d-435e-99a160631fe4 1 10 7680 100 0 hami-core healthy "
		  "NVIDIA-Tesla P4" },
		{ "GPU-0,5,8192,100,A100,1,false:", "GPU-0 0 5 8192 100 1 hami-core ill A100" },
		{ "GPU-0,5,8192,100,A100,1,T,3,:", "GPU-0 3 5 8192 100 1 - healthy A100" },
		{ "GPU-1,5,8192,100,A100,1,true,1,mig:GPU-0,5,8192,100,A100,1,1,0,mps:",
		  "GPU-0 0 5 8192 100 1 mps healthy A100 | GPU-1 1 5 8192 100 1 mig healthy A100" },
		{ ":", "" },
		{ "::", "" },
		{ " : \n", "" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_card_info *cards = NULL;
		struct vg_arena arena;
		struct vg_err err = { 0 };
		size_t count = 99;

		vg_arena_init(&arena);
		if (vg_register_decode(quoted(rows[i].text, &arena), 0, &arena, &cards, &count,
				       &err) < 0)
			fail_msg("%s: %s", rows[i].text, err.msg);
		assert_string_equal(show(cards, count, &arena), rows[i].cards);
		vg_arena_release(&arena);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		const char *why;
	} rows[] = {
		{ "", "empty" },
		{ " \n", "empty" },
		{ "[", "not JSON" },
		{ "[{'id':'a'}", "not JSON" },
		{ "[] []", "not JSON" },
		{ "[{'id':'a','id':'b'}]", "not JSON: duplicate" },
		{ "[{'id':'a','devmem':99999999999999999999}]", "not JSON: too big integer" },
		{ "{'id':'a'}", "an object instead of an array of cards" },
		{ "null", "neither a JSON array nor" },
		{ "garbage", "neither a JSON array nor" },
		{ "[null]", "card 0 is null, not an object" },
		{ "[{'id':'a'},7]", "card 1 is a number, not an object" },
		{ "[[]]", "card 0 is an array, not an object" },
		{ "[{}]", "card 0: id is missing" },
		{ "[{'id':''}]", "card 0: id is missing" },
		{ "[{'id':null}]", "card 0: id is missing" },
		{ "[{'id':7}]", "card 0: id is a number, not a string" },
		{ "[{'id':'GPU,0'}]", "card 0 (GPU,0): id holds byte 0x2c" },
		{ "[{'id':'GPU:0'}]", "id holds byte 0x3a" },
		{ "[{'id':'GPU;0'}]", "id holds byte 0x3b" },
		{ "[{'id':'GPU[0]'}]", "id holds byte 0x5b" },
		{ "[{'id':'GPU 0'}]", "id holds byte 0x20" },
		{ "[{'id':'GPU\xc3\xa9'}]", "id holds byte 0xc3" },
		{ "[{'id':'a'},{'id':'b','index':1},{'id':'a','index':2}]",
		  "card a is listed twice" },
		{ "[{'id':'GPU-0','devmem':'81920'}]",
		  "card 0 (GPU-0): devmem is a string, not a whole number" },
		{ "[{'id':'GPU-0','devmem':81920.5}]", "devmem is 81920.5, not a whole number" },
		{ "[{'id':'GPU-0','devmem':2147483648}]",
		  "devmem is 2147483648, outside 0 to 2147483647" },
		{ "[{'id':'GPU-0','devmem':-1}]", "devmem is -1, outside" },
		{ "[{'id':'GPU-0','devcore':-1}]", "devcore is -1, outside" },
		{ "[{'id':'GPU-0','count':-1}]", "count is -1, outside" },
		{ "[{'id':'GPU-0','count':2147483648}]", "count is 2147483648, outside" },
		{ "[{'id':'GPU-0','index':-1}]", "index is -1, outside" },
		{ "[{'id':'GPU-0','numa':-2}]", "numa is -2, outside -1 to 32767" },
		{ "[{'id':'GPU-0','numa':32768}]", "numa is 32768, outside" },
		{ "[{'id':'GPU-0','health':'true'}]", "health is a string, not a boolean" },
		{ "[{'id':'GPU-0','health':1}]", "health is a number, not a boolean" },
		{ "[{'id':'GPU-0','mode':1}]", "mode is a number, not a string" },
		{ "[{'id':'GPU-0','type':{}}]", "type is an object, not a string" },
		{ "a,1,1,1,t,0,true", "neither a JSON array nor" },
		{ "x:", "card 0: 1 fields instead of 7 or 9" },
		{ "a,1,1,1,t,0:", "6 fields instead of 7 or 9" },
		{ "a,1,1,1,t,0,true,1:", "8 fields instead" },
		{ "a,1,1,1,t,0,true,1,mig,x:", "10 fields instead" },
		{ ",1,1,1,t,0,true:", "card 0: id is missing" },
		{ "a,x,1,1,t,0,true:", "card 0: count: \"x\" is not a whole number" },
		{ "a,1,,1,t,0,true:", "memory: \"\" is not a whole number" },
		{ "a,1,1,1.5,t,0,true:", "cores: \"1.5\" is not a whole number" },
		{ "a,1,1,1,t,zero,true:", "numa: \"zero\" is not a whole number" },
		{ "a,1,1,1,t,0,healthy:", "\"healthy\" is neither true nor false" },
		{ "a,1,1,1,t,0,true,-1,mig:", "index: -1 is outside" },
		{ "a,1,2147483648,1,t,0,true:", "memory: 2147483648 is outside" },
		{ "a,1,1,1,t,0,true:a,1,1,1,t,0,true:", "card a is listed twice" },
		{ "a,1,1,1,\xff,0,true:", "type is not UTF-8" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_card_info *cards = NULL;
		struct vg_arena arena;
		struct vg_err err = { 0 };
		size_t count = 99;
		int r;

		vg_arena_init(&arena);
		r = vg_register_decode(quoted(rows[i].text, &arena), 0, &arena, &cards, &count,
				       &err);
		if (r != -EINVAL || !strstr(err.msg, rows[i].why))
			fail_msg("%s: %d \"%s\", not \"%s\"", rows[i].text, r, err.msg,
				 rows[i].why);
		assert_null(cards);
		assert_int_equal(count, 99);
		vg_arena_release(&arena);
	}
}

/* A list of `count` cards with UUIDs of `uuid_size` bytes. */
static char *many_cards(size_t count, int uuid_size, bool json, struct vg_arena *arena)
{
	char *text = vg_arena_strdup(arena, json ? "[" : "");

	for (size_t i = 0; i < count; i++)
		text = vg_arena_printf(arena, "%s%s%s%0*zu%s", text, json && i ? "," : "",
				       json ? "{\"id\":\"" : "", uuid_size, i,
				       json ? "\"}" : ",1,1,1,t,0,true:");
	return vg_arena_printf(arena, "%s%s", text, json ? "]" : "");
}

static void test_limits(void **state)
{
	static const struct {
		size_t count;
		int uuid_size;
		int code;
		const char *why;
	} rows[] = {
		{ VG_LIMIT_CARDS_PER_NODE, 8, 0, "" },
		{ VG_LIMIT_CARDS_PER_NODE + 1, 8, -E2BIG, "65 cards; at most 64" },
		{ 3, VG_LIMIT_UUID_BYTES, 0, "" },
		{ 3, VG_LIMIT_UUID_BYTES + 1, -E2BIG, "id has 97 bytes; at most 96" },
		{ 3, VG_LIMIT_ANNOTATION_BYTES, -E2BIG, "bytes; at most 262144 are accepted" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		for (int json = 0; json < 2; json++) {
			struct vg_card_info *cards = NULL;
			struct vg_arena arena;
			struct vg_err err = { 0 };
			size_t count = 0;
			int r;

			vg_arena_init(&arena);
			r = vg_register_decode(
				many_cards(rows[i].count, rows[i].uuid_size, json, &arena), 0,
				&arena, &cards, &count, &err);
			assert_failed(r, rows[i].code, err, rows[i].why);
			assert_int_equal(count, r < 0 ? 0 : rows[i].count);
			vg_arena_release(&arena);
		}
	}
}

static void test_long_model(void **state)
{
	(void)state;
	for (int json = 0; json < 2; json++) {
		for (int over = 0; over < 2; over++) {
			struct vg_card_info *cards = NULL;
			struct vg_err err = { 0 };
			struct vg_arena arena;
			size_t count;
			char *text;
			int r;

			vg_arena_init(&arena);
			text = vg_arena_printf(&arena, "%s%0*d%s",
					       json ? "[{\"id\":\"a\",\"type\":\"" : "a,1,1,1,",
					       (int)VG_LIMIT_MODEL_BYTES + over, 7,
					       json ? "\"}]" : ",0,true:");
			r = vg_register_decode(text, 0, &arena, &cards, &count, &err);
			assert_failed(r, over ? -E2BIG : 0, err, over ? "type has 97 bytes" : "");
			vg_arena_release(&arena);
		}
	}
}

static void test_class_index(void **state)
{
	struct vg_card_info *cards = NULL;
	struct vg_arena arena;
	size_t count = 0;

	(void)state;
	vg_arena_init(&arena);
	assert_int_equal(vg_register_decode("[{\"id\":\"a\"}]", 3, &arena, &cards, &count, NULL),
			 0);
	assert_int_equal(cards[0].class_index, 3);
	assert_int_equal(vg_register_decode("a,1,1,1,t,0,true:", 4, &arena, &cards, &count, NULL),
			 0);
	assert_int_equal(cards[0].class_index, 4);
	assert_int_equal(vg_register_decode("[null]", 4, &arena, &cards, &count, NULL), -EINVAL);
	vg_arena_release(&arena);
}

/* The text is a contract with other readers, so its bytes are. */
static void test_encoded_bytes(void **state)
{
	const struct vg_card_info cards[] = {
		{ .uuid = "GPU-0",
		  .model = "NVIDIA A100-SXM4-80GB",
		  .index = 0,
		  .slots = 10,
		  .mem_mib = 81920,
		  .cores = 100,
		  .numa = 1,
		  .mode = VG_MODE_HAMI_CORE,
		  .healthy = true },
		{ .uuid = "GPU-1",
		  .model = "a \"b\" \\",
		  .index = 1,
		  .slots = 1,
		  .mem_mib = 2,
		  .cores = 3,
		  .numa = -1 },
	};
	struct vg_arena arena;

	(void)state;
	vg_arena_init(&arena);
	assert_string_equal(vg_register_encode(cards, 0, &arena), "[]");
	assert_string_equal(
		vg_register_encode(cards, COUNT(cards), &arena),
		"[{\"id\":\"GPU-0\",\"index\":0,\"count\":10,\"devmem\":81920,\"devcore\":100,"
		"\"type\":\"NVIDIA A100-SXM4-80GB\",\"numa\":1,\"mode\":\"hami-core\","
		"\"health\":true},{\"id\":\"GPU-1\",\"index\":1,\"count\":1,\"devmem\":2,"
		"\"devcore\":3,\"type\":\"a \\\"b\\\" \\\\\",\"numa\":-1,\"health\":false}]");
	vg_arena_release(&arena);
}

/* Random cards come back from their text as they were. */
static void test_round_trip(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct vg_card_info cards[VG_LIMIT_CARDS_PER_NODE];
		struct vg_card_info *again = NULL;
		struct vg_arena arena;
		size_t count = next_random(&seed) % (VG_LIMIT_CARDS_PER_NODE + 1);
		size_t got = 99;

		vg_arena_init(&arena);
		for (size_t i = 0; i < count; i++)
			cards[i] = (struct vg_card_info){
				.uuid = vg_arena_printf(&arena, "GPU-%u-%zu", next_random(&seed),
							i),
				.model = vg_arena_printf(&arena, "M\"%u,:;é", next_random(&seed)),
				.index = (int32_t)i,
				.slots = (int32_t)next_random(&seed),
				.mem_mib = (int32_t)next_random(&seed),
				.cores = (int32_t)next_random(&seed),
				.numa = (int32_t)(next_random(&seed) % 32769) - 1,
				.mode = (enum vg_card_mode)(next_random(&seed) % VG_MODE_COUNT),
				.healthy = next_random(&seed) % 2,
			};
		assert_int_equal(vg_register_decode(vg_register_encode(cards, count, &arena), 0,
						    &arena, &again, &got, NULL),
				 0);
		assert_int_equal(got, count);
		assert_string_equal(show(again, got, &arena), show(cards, count, &arena));
		vg_arena_release(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),    cmocka_unit_test(test_refused),
		cmocka_unit_test(test_limits),      cmocka_unit_test(test_long_model),
		cmocka_unit_test(test_class_index), cmocka_unit_test(test_encoded_bytes),
		cmocka_unit_test(test_round_trip),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
