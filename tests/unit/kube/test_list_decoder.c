/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include <errno.h>
#include <stdio.h>

#include <jansson.h>

#include "base/file.h"
#include "base/mem.h"
#include "kube/decoder_internal.h"
#include "kube/json_internal.h"

#define PAGE_MAX (1u << 20)

struct record {
	struct vg_buf text; /* "<version" at the first item, "[item]" each, "!" for a cut one */
	size_t stop_after;  /* items; 0 = never */
	size_t items;
};

static bool on_begin(void *ctx, const json_t *head)
{
	struct record *record = ctx;

	vg_buf_addf(&record->text, "<%s", vg_json_meta(head, "resourceVersion"));
	return true;
}

static bool on_item(void *ctx, const char *text, size_t size, bool whole)
{
	struct record *record = ctx;

	vg_buf_addf(&record->text, "[%.*s]%s", (int)size, text, whole ? "" : "!");
	return ++record->items != record->stop_after;
}

static const struct vg_list_decoder_ops ops = { on_begin, on_item };

/* 0 and what was said, or the code. The head's version and token come last: ">version,token". */
static int decode(const char *data, size_t size, size_t item_max, size_t page_max, size_t cut,
		  size_t stop_after, char **ret_said)
{
	struct record record = { .stop_after = stop_after };
	struct vg_list_decoder decoder;
	const size_t ends[] = { cut, size };
	json_t *head = NULL;
	size_t at = 0;
	int r = 0;

	vg_buf_init(&record.text, 4 << 20);
	vg_list_decoder_init(&decoder, item_max, page_max, &ops, &record);
	for (size_t i = 0; i < COUNT(ends) && r == 0; i++) {
		size_t length = ends[i] - at;
		char *piece = vg_new(length + 1);

		memcpy(piece, data + at, length);
		piece = vg_grow(piece, length, 1);
		r = vg_list_decoder_feed(&decoder, piece, length, NULL);
		free(piece);
		at = ends[i];
	}
	if (r == 0)
		r = vg_list_decoder_end(&decoder, &head, NULL);
	if (r == 0)
		vg_buf_addf(&record.text, ">%s,%s", vg_json_meta(head, "resourceVersion"),
			    vg_json_meta(head, "continue"));
	json_decref(head);
	vg_list_decoder_release(&decoder);
	*ret_said = vg_buf_steal(&record.text, NULL);
	return r;
}

static void test_pages(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *said; /* NULL: does not matter */
	} rows[] = {
		{ "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t\"},\"items\":[1,2]}",
		  0, "<5[1][2]>5,t" },
		{ "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[]}", 0, "<5>5," },
		{ "{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":null}", 0, ">5," },
		{ "{\"metadata\":{\"resourceVersion\":\"5\"}}", 0, ">5," },
		/* The head behind the items. */
		{ "{\"items\":[{}],\"metadata\":{\"resourceVersion\":\"5\"}}", 0, "<[{}]>5," },
		{ "  { \"metadata\" : { \"resourceVersion\" : \"5\" } , \"items\" : [ {\"a\": [1]} ,\n"
		  "{\"b\":2}\t] } \n",
		  0, "<5[{\"a\": [1]} ][{\"b\":2}\t]>5," },
		/* Brackets, quotes and the key itself in texts. */
		{ "{\"items\":[{\"a\":\"]}\\\"],\"},\"\\\\\"],\"x\":\"\\\"items\\\":[\"}", 0,
		  "<[{\"a\":\"]}\\\"],\"}][\"\\\\\"]>," },
		/* "items" deeper down, as a value, and as part of a key is not it. */
		{ "{\"metadata\":{\"items\":[1]},\"x\":\"items\",\"items2\":[2],\"my\\\"items\":[3]}",
		  0, ">," },
		{ "{\"x\":{\"items\":[[1]]},\"items\":[[2]]}", 0, "<[[2]]>," },
		/* What is no list of items is left in the head. */
		{ "{\"items\":{\"a\":[1,2]}}", 0, ">," },
		{ "{\"items\":\"[\"}", 0, ">," },
		/* Empty items are for their reader to refuse. */
		{ "{\"items\":[,1]}", 0, "<[][1]>," },
		/* Not a page. */
		{ "", -EINVAL, NULL },
		{ "[]", -EINVAL, NULL },
		{ "null", -EINVAL, NULL },
		{ "{}}", -EINVAL, NULL },
		{ "{} x", -EINVAL, NULL },
		{ "{\"items\":[}]}", -EINVAL, NULL },
		{ "{\"items\":[1}", -EINVAL, NULL },
		{ "{\"items\":[1]]}", -EINVAL, NULL },
		{ "{\"items\":[1],\"items\":[2]}", -EINVAL, NULL },
		{ "{\"metadata\":{\"resourceVersion\":5,},\"items\":[]}", -EINVAL, NULL },
		{ "{\"metadata\":{},\"x\":tru,\"items\":[]}", -EINVAL, NULL },
		/* Cut short. */
		{ "{\"items\":[1,2", -EINVAL, NULL },
		{ "{\"items\":[1,2]", -EINVAL, NULL },
		{ "{\"items\":[\"1", -EINVAL, NULL },
		{ "{\"metadata\":{", -EINVAL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);

		for (size_t cut = 0; cut <= size; cut++) {
			char *said;
			int r = decode(rows[i].text, size, PAGE_MAX, PAGE_MAX, cut, 0, &said);

			if (r != rows[i].code || (rows[i].said && strcmp(said, rows[i].said) != 0))
				fail_msg("%s, cut at %zu: %d, %s", rows[i].text, cut, r, said);
			free(said);
		}
	}
}

static void test_captured(void **state)
{
	size_t size;
	char *whole;
	char *text;

	(void)state;
	assert_int_equal(vg_read_file(CAPTURED "nodes-page1.json", PAGE_MAX, &text, &size, NULL),
			 0);
	assert_int_equal(decode(text, size, PAGE_MAX, PAGE_MAX, 0, 0, &whole), 0);
	assert_ptr_equal(strstr(whole, "<388[{"), whole);
	assert_non_null(
		strstr(whole, "}\n  ]>388,eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6Mzg4LCJzdGFydCI6"));
	for (size_t cut = 0; cut <= size; cut++) {
		char *said;

		assert_int_equal(decode(text, size, PAGE_MAX, PAGE_MAX, cut, 0, &said), 0);
		assert_string_equal(said, whole);
		free(said);
	}
	free(whole);
	free(text);
}

static void test_limits(void **state)
{
	static const char text[] =
		"{\"items\":[{\"n\":1},{\"n\":\"22222222\"},{\"n\":3}],\"metadata\":{}}";
	const size_t size = sizeof(text) - 1;
	char *said;

	(void)state;
	/* One item that is too long comes cut, the others are whole. */
	for (size_t cut = 0; cut <= size; cut++) {
		assert_int_equal(decode(text, size, 7, PAGE_MAX, cut, 0, &said), 0);
		assert_string_equal(said, "<[{\"n\":1}][{\"n\":\"2]![{\"n\":3}]>,");
		free(said);
	}
	assert_int_equal(decode(text, size, PAGE_MAX, size, 0, 0, &said), 0);
	free(said);
	for (size_t max = 0; max < size; max++) {
		assert_int_equal(decode(text, size, PAGE_MAX, max, 0, 0, &said), -E2BIG);
		free(said);
	}
}

static void test_head_limit(void **state)
{
	const size_t size = 3u << 20;
	char *text = vg_new(size + 1);
	char *said;

	(void)state;
	memset(text, 'x', size);
	memcpy(text, "{\"a\":\"", 6);
	memcpy(text + size - 2, "\"}", 2);
	assert_int_equal(decode(text, size, PAGE_MAX, size, 0, 0, &said), -E2BIG);
	free(said);
	free(text);
}

static void test_stop(void **state)
{
	static const char text[] = "{\"items\":[1,2,3,4]}";
	char *said;

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		assert_int_equal(decode(text, sizeof(text) - 1, PAGE_MAX, PAGE_MAX,
					cut < sizeof(text) - 1 ? cut : 0, 2, &said),
				 -ECANCELED);
		assert_string_equal(said, "<[1][2]");
		free(said);
	}
}

/* A page that broke off leaves nothing behind for the next. */
static void test_clear(void **state)
{
	static const char text[] =
		"{\"metadata\":{\"resourceVersion\":\"5\"},\"items\":[{\"a\":\"\\\"\"},[2]]}";
	const size_t size = sizeof(text) - 1;

	(void)state;
	for (size_t cut = 0; cut <= size; cut++) {
		struct record record = { 0 };
		struct vg_list_decoder decoder;
		json_t *head;

		vg_buf_init(&record.text, 1 << 20);
		vg_list_decoder_init(&decoder, 10, PAGE_MAX, &ops, &record);
		assert_int_equal(vg_list_decoder_feed(&decoder, text, cut, NULL), 0);
		vg_list_decoder_clear(&decoder);
		vg_buf_clear(&record.text);
		assert_int_equal(vg_list_decoder_feed(&decoder, text, size, NULL), 0);
		assert_int_equal(vg_list_decoder_end(&decoder, &head, NULL), 0);
		assert_string_equal(record.text.data, "<5[{\"a\":\"\\\"\"}][[2]]");
		json_decref(head);
		vg_list_decoder_release(&decoder);
		vg_buf_release(&record.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pages),  cmocka_unit_test(test_captured),
		cmocka_unit_test(test_limits), cmocka_unit_test(test_head_limit),
		cmocka_unit_test(test_stop),   cmocka_unit_test(test_clear),
	};

	return cmocka_run_group_tests_name("kube/list_decoder", tests, NULL, NULL);
}
