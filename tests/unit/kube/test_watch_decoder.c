/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include <jansson.h>

#include "base/file.h"
#include "base/mem.h"
#include "kube/decoder_internal.h"
#include "kube/json_internal.h"

/* What the decoder said, as one text: "A name@version" per event, "? why" for what is unreadable. */
struct record {
	struct vg_buf text;
	size_t stop_after; /* events; 0 = never */
	size_t events;
};

static bool on_event(void *ctx, enum vg_event_type type, const json_t *object)
{
	static const char letter[VG_EVENT_TYPE_COUNT] = {
		[VG_EVENT_ADDED] = 'A',    [VG_EVENT_MODIFIED] = 'M', [VG_EVENT_DELETED] = 'D',
		[VG_EVENT_BOOKMARK] = 'B', [VG_EVENT_ERROR] = 'E',    [VG_EVENT_OTHER] = 'O',
	};
	struct record *record = ctx;

	vg_buf_addf(&record->text, "%c %s@%s\n", letter[type], vg_json_meta(object, "name"),
		    vg_json_meta(object, "resourceVersion"));
	return ++record->events != record->stop_after;
}

static bool on_unreadable(void *ctx, const char *why)
{
	struct record *record = ctx;

	vg_buf_addf(&record->text, "? %s\n", why);
	return true;
}

static const struct vg_watch_decoder_ops ops = { on_event, on_unreadable };

/* Feeds `size` bytes in pieces that end at `cuts`, the last piece to the end. */
static char *decode(const char *data, size_t size, size_t max, const size_t *cuts, size_t cut_count,
		    size_t stop_after, bool *ret_more)
{
	struct record record = { .stop_after = stop_after };
	struct vg_watch_decoder decoder;
	size_t at = 0;
	bool more = true;

	vg_buf_init(&record.text, 1 << 20);
	vg_watch_decoder_init(&decoder, max, &ops, &record);
	for (size_t i = 0; i <= cut_count && more; i++) {
		size_t end = i < cut_count ? cuts[i] : size;
		/* A copy of exact size, so that a read past its end is seen. */
		char *piece = vg_new(end - at + 1);

		memcpy(piece, data + at, end - at);
		piece = vg_grow(piece, end - at, 1);
		more = vg_watch_decoder_feed(&decoder, piece, end - at);
		free(piece);
		at = end;
	}
	vg_watch_decoder_release(&decoder);
	if (ret_more)
		*ret_more = more;
	return vg_buf_steal(&record.text, NULL);
}

static void test_lines(void **state)
{
#define OBJECT(name, version)                                                                      \
	"\"object\":{\"metadata\":{\"name\":\"" name "\",\"resourceVersion\":\"" version "\"}}"
	static const struct {
		const char *text;
		const char *said;
	} rows[] = {
		{ "", "" },
		{ "\n\r\n \n", "" },
		{ "{\"type\":\"ADDED\"," OBJECT("a", "1") "}\n", "A a@1\n" },
		{ "{\"type\":\"ADDED\"," OBJECT("a", "1") "}\r\n", "A a@1\n" },
		{ "{" OBJECT("a", "1") ",\"type\":\"MODIFIED\"}\n{\"type\":\"DELETED\"," OBJECT(
			  "a", "2") "}\n",
		  "M a@1\nD a@2\n" },
		{ "{\"type\":\"BOOKMARK\"," OBJECT("", "7") "}\n", "B @7\n" },
		{ "{\"type\":\"ERROR\",\"object\":{\"code\":410}}\n", "E @\n" },
		{ "{\"type\":\"RENAMED\"," OBJECT("a", "1") "}\n", "O a@1\n" },
		{ "{\"type\":\"added\"," OBJECT("a", "1") "}\n", "O a@1\n" },
		/* The end has not come: the server will send it again. */
		{ "{\"type\":\"ADDED\"," OBJECT("a", "1") "}", "" },
		{ "{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ADD", "A @\n" },
		{ "{\"type\":\"ADDED\"}\n", "? not an event: type or object is missing\n" },
		{ "{\"object\":{}}\n", "? not an event: type or object is missing\n" },
		{ "{\"type\":\"ADDED\",\"object\":[]}\n",
		  "? not an event: type or object is missing\n" },
		{ "{\"type\":5,\"object\":{}}\n", "? not an event: type or object is missing\n" },
		{ "{\"type\":\"ADDED\",\"type\":\"DELETED\",\"object\":{}}\n",
		  "? duplicate object key near '\"type\"'\n" },
		/* A line that cannot be read does not spoil the next. */
		{ "5\n{\"type\":\"ADDED\"," OBJECT("a", "1") "}\n",
		  "? '[' or '{' expected near '5'\nA a@1\n" },
		{ "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"\xff\"}}}\n",
		  "? unable to decode byte 0xff near '\"'\n" },
		{ "{\"type\":\"ADDED\"," OBJECT("\xf0\x9f\x8d\x8c\xc3\xa9", "1") "}\n",
		  "A \xf0\x9f\x8d\x8c\xc3\xa9@1\n" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);
		char *said = decode(rows[i].text, size, 1 << 20, NULL, 0, 0, NULL);

		assert_string_equal(said, rows[i].said);
		free(said);
		/* The same, wherever it is cut in two. */
		for (size_t cut = 0; cut <= size; cut++) {
			said = decode(rows[i].text, size, 1 << 20, &cut, 1, 0, NULL);
			assert_string_equal(said, rows[i].said);
			free(said);
		}
	}
}

static void test_captured(void **state)
{
	static const char said[] =
		"A p1@195\nA train2@383\nM train2@385\nM train2@387\nD train2@388\n";
	size_t *every;
	size_t size;
	char *text;
	char *got;

	(void)state;
	assert_int_equal(vg_read_file(CAPTURED "watch-pods.jsonl", 1 << 20, &text, &size, NULL), 0);
	got = decode(text, size, 1 << 20, NULL, 0, 0, NULL);
	assert_string_equal(got, said);
	free(got);
	for (size_t cut = 0; cut <= size; cut++) {
		got = decode(text, size, 1 << 20, &cut, 1, 0, NULL);
		assert_string_equal(got, said);
		free(got);
	}
	/* Byte by byte. */
	every = vg_new_array(size, sizeof(*every));
	for (size_t i = 0; i < size; i++)
		every[i] = i;
	got = decode(text, size, 1 << 20, every, size, 0, NULL);
	assert_string_equal(got, said);
	free(got);
	free(every);
	free(text);
}

static void test_too_long(void **state)
{
	static const char text[] = "{\"type\":\"ADDED\"," OBJECT(
		"a", "1") "}\n"
			  "{\"type\":\"ADDED\"," OBJECT(
				  "aaaaaaaaaaaaaaaa", "2") "}\n"
							   "{\"type\":\"ADDED\"," OBJECT("b",
											 "3") "}\n";
	const size_t size = sizeof(text) - 1;
	/* Exactly the length of the first and the last line. */
	const size_t max = strcspn(text, "\n");

	(void)state;
	for (size_t cut = 0; cut <= size; cut++) {
		char *said = decode(text, size, max, &cut, 1, 0, NULL);

		assert_string_equal(said, "A a@1\n? the line is too long\nA b@3\n");
		free(said);
	}
}

/* An op that says stop is not called again for what was fed with it. */
static void test_stop(void **state)
{
	static const char text[] = "{\"type\":\"ADDED\",\"object\":{}}\n{\"type\":\"ERROR\","
				   "\"object\":{}}\n{\"type\":\"ADDED\",\"object\":{}}\n";
	bool more;
	char *said;

	(void)state;
	said = decode(text, sizeof(text) - 1, 1 << 20, NULL, 0, 2, &more);
	assert_string_equal(said, "A @\nE @\n");
	assert_false(more);
	free(said);
	said = decode(text, sizeof(text) - 1, 1 << 20, NULL, 0, 0, &more);
	assert_true(more);
	free(said);
}

/* A new stream begins at the beginning of a line, wherever the last one broke off. */
static void test_clear(void **state)
{
	static const char line[] = "{\"type\":\"ADDED\",\"object\":{}}\n";
	struct vg_watch_decoder decoder;

	(void)state;
	for (size_t cut = 0; cut < sizeof(line) - 1; cut++) {
		struct record record = { 0 };

		vg_buf_init(&record.text, 1 << 20);
		vg_watch_decoder_init(&decoder, sizeof(line) - 2, &ops, &record);
		assert_true(vg_watch_decoder_feed(&decoder, line, cut));
		vg_watch_decoder_clear(&decoder);
		assert_true(vg_watch_decoder_feed(&decoder, line, sizeof(line) - 1));
		assert_string_equal(record.text.data, "A @\n");
		vg_watch_decoder_release(&decoder);
		vg_buf_release(&record.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),    cmocka_unit_test(test_captured),
		cmocka_unit_test(test_too_long), cmocka_unit_test(test_stop),
		cmocka_unit_test(test_clear),
	};

	return cmocka_run_group_tests_name("kube/watch_decoder", tests, NULL, NULL);
}
