/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/limits.h"
#include "yaml/yaml_tree.h"

#define TEXT_MAX ((size_t)80 << 20)

/* The tree as text with lines: scalars 1:word or 1:'word', lists [..], mappings {..}. */
static void show(const struct vg_yaml *node, struct vg_buf *out)
{
	vg_buf_addf(out, "%u:", node->line);
	switch (node->kind) {
	case VG_YAML_SCALAR:
		vg_buf_addf(out, node->quoted ? "'%s'" : "%s", node->scalar);
		return;
	case VG_YAML_SEQUENCE:
		vg_buf_adds(out, "[");
		for (size_t i = 0; i < node->item_count; i++) {
			vg_buf_adds(out, i ? " " : "");
			show(node->items[i], out);
		}
		vg_buf_adds(out, "]");
		return;
	case VG_YAML_MAPPING:
		vg_buf_adds(out, "{");
		for (size_t i = 0; i < node->item_count; i += 2) {
			vg_buf_adds(out, i ? " " : "");
			show(node->items[i], out);
			vg_buf_adds(out, "=");
			show(node->items[i + 1], out);
		}
		vg_buf_adds(out, "}");
		return;
	}
}

/* All documents of the text, or the message. */
static char *parsed(const char *text, size_t size, int *ret_code)
{
	struct vg_arena arena;
	struct vg_yaml **documents = NULL;
	size_t count = 0;
	struct vg_err err = { 0 };
	struct vg_buf out;

	vg_arena_init(&arena);
	vg_buf_init(&out, TEXT_MAX);
	*ret_code = vg_yaml_parse("f.yaml", text, size, &arena, &documents, &count, &err);
	if (*ret_code < 0) {
		assert_int_equal(*ret_code, err.code);
		assert_null(documents);
		vg_buf_adds(&out, err.msg);
	}
	for (size_t i = 0; i < count; i++) {
		vg_buf_adds(&out, i ? " | " : "");
		show(documents[i], &out);
	}
	vg_arena_release(&arena);
	return vg_buf_steal(&out, NULL);
}

static void check(const char *text, const char *want)
{
	int code;
	char *got = parsed(text, strlen(text), &code);

	assert_string_equal(got, want);
	free(got);
}

static void test_trees(void **state)
{
	static const struct {
		const char *text;
		const char *want;
	} rows[] = {
		{ "", "" },
		{ "# only a comment\n", "" },
		{ "---\n---\n", "2: | 3:" },
		{ "{}", "1:{}" },
		{ "[]", "1:[]" },
		{ "a: 1\nb: two\n", "1:{1:a=1:1 2:b=2:two}" },
		{ "a:\n- x\n- - y\n  - z\n", "1:{1:a=2:[2:x 3:[3:y 4:z]]}" },
		{ "{a: [1, \"2\"], 'b': {}}", "1:{1:a=1:[1:1 1:'2'] 1:'b'=1:{}}" },
		{ "{\"a\": [true, null],\n \"b\": []}", "1:{1:'a'=1:[1:true 1:null] 2:'b'=2:[]}" },
		{ "a: |\n  line\n  more\nb: >-\n  folded\n  text\n",
		  "1:{1:a=1:'line\nmore\n' 4:b=4:'folded text'}" },
		{ "a:\nb: ~\n", "1:{1:a=1: 2:b=2:~}" },
		{ "one: 1\n---\ntwo: 2\n...\n", "1:{1:one=1:1} | 3:{3:two=3:2}" },
		{ "a: !!str 1\nb: !!int \"2\"\nc: ! 3\n", "1:{1:a=1:'1' 2:b=2:2 3:c=3:'3'}" },
		{ "a: &x {k: 1}\nb: *x\nc: [*x, *x]\n",
		  "1:{1:a=1:{1:k=1:1} 2:b=1:{1:k=1:1} 3:c=3:[1:{1:k=1:1} 1:{1:k=1:1}]}" },
		{ "a: &x 1\nb: &x 2\nc: *x\n", "1:{1:a=1:1 2:b=2:2 3:c=2:2}" },
		/* Merge keys: own entries first and winning, wherever "<<" stands; then in list order. */
		{ "a: &a {k: 1, l: 2}\nb:\n  <<: *a\n  l: 3\n",
		  "1:{1:a=1:{1:k=1:1 1:l=1:2} 2:b=3:{4:l=4:3 1:k=1:1}}" },
		{ "- &a {k: 1}\n- &b {k: 2, m: 3}\n- {<<: [*a, *b], n: 4}\n",
		  "1:[1:{1:k=1:1} 2:{2:k=2:2 2:m=2:3} 3:{3:n=3:4 1:k=1:1 2:m=2:3}]" },
		{ "\"<<\": 1\n", "1:{1:'<<'=1:1}" },
		{ "\xef\xbb\xbf"
		  "a: \xc3\xa4\n",
		  "1:{1:a=1:\xc3\xa4}" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(rows[i].text, rows[i].want);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text;
		const char *want;
	} rows[] = {
		{ "a: 1\nb: 2\na: 3\n", "f.yaml:3: key \"a\" is given twice, first on line 1" },
		{ "{1: a, \"1\": b}", "f.yaml:1: key \"1\" is given twice, first on line 1" },
		{ "a: 1\n[x]: 2\n", "f.yaml:2: a list or mapping cannot be a key" },
		{ "a: *x\n", "f.yaml:1: alias *x: no anchor of that name stands before it" },
		{ "a: &x\n- b\n- *x\n", "f.yaml:3: alias *x stands inside the node that it names" },
		{ "&x a: 1\n---\n*x : 2\n",
		  "f.yaml:3: alias *x: no anchor of that name stands before it" },
		{ "a: !!binary aGk=\n", "f.yaml:1: tag tag:yaml.org,2002:binary is not supported "
					"here; write the value without it" },
		{ "a: !mine {}\n",
		  "f.yaml:1: tag !mine is not supported here; write the value without it" },
		{ "a: !!seq {}\n", "f.yaml:1: tag tag:yaml.org,2002:seq is not supported here; "
				   "write the value without it" },
		{ "a: \"x\\0y\"\n", "f.yaml:1: a text holds a NUL byte" },
		{ "<<: 1\n",
		  "f.yaml:1: \"<<\" wants a mapping or a list of mappings, as in <<: *name" },
		{ "- &a {}\n- <<: [*a, 1]\n",
		  "f.yaml:2: \"<<\" merges mappings only, item 1 is none" },
		{ "- &a {}\n- <<: *a\n  <<: *a\n",
		  "f.yaml:3: \"<<\" is given twice; merge a list instead: <<: [*a, *b]" },
		{ "a: 1\n\tb: 2\n", "f.yaml:2: found a tab character that violates indentation, "
				    "while scanning a plain scalar (begun on line 1)" },
		{ "a: [1\nb: 2\n", "f.yaml:2: did not find expected ',' or ']', while parsing a "
				   "flow sequence (begun on line 1)" },
		{ "a: 1\nb: \xff\n", "f.yaml:2: is not UTF-8 text: invalid leading UTF-8 octet" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check(rows[i].text, rows[i].want);
}

/* A text whose piece is repeated. */
static char *repeated(const char *head, const char *piece, size_t times, const char *tail)
{
	struct vg_buf text;

	vg_buf_init(&text, TEXT_MAX);
	vg_buf_adds(&text, head);
	for (size_t i = 0; i < times; i++)
		vg_buf_adds(&text, piece);
	vg_buf_adds(&text, tail);
	assert_false(vg_buf_failed(&text));
	return vg_buf_steal(&text, NULL);
}

static void check_code(char *text, int want_code, const char *want_piece)
{
	int code;
	char *got = parsed(text, strlen(text), &code);

	assert_int_equal(code, want_code);
	if (!strstr(got, want_piece))
		fail_msg("\"%.200s\" lacks \"%s\"", got, want_piece);
	free(got);
	free(text);
}

static void test_limits(void **state)
{
	(void)state;
	check_code(repeated("", "[", VG_LIMIT_YAML_DEPTH, ""), -EINVAL, "did not find expected");
	check_code(repeated("", "[", VG_LIMIT_YAML_DEPTH + 1, ""), -EINVAL,
		   "f.yaml:1: nested deeper than 64 levels");
	check_code(repeated("", "- ", VG_LIMIT_YAML_DEPTH - 1, "x"), 0, "1:x");
	check_code(repeated("", "- ", VG_LIMIT_YAML_DEPTH, "x"), -EINVAL,
		   "nested deeper than 64 levels");
	/* Depth counts through aliases, though no text is nested that deep. */
	check_code(repeated("- &a [[[[[[[[[[x]]]]]]]]]]\n- ", "[", 52, "*a"), -EINVAL,
		   "did not find expected");
	check_code(repeated("- &a [[[[[[[[[[x]]]]]]]]]]\n- ", "[", 53, "*a"), -EINVAL,
		   "nested deeper than 64 levels");
	check_code(repeated("# ", "0123456789abcdef", VG_LIMIT_YAML_BYTES / 16, "\n"), -EFBIG,
		   "f.yaml: is larger than 67108864 bytes");
}

/* "Billion laughs": ten lines stand for 10^9 nodes, or for 10^9 bytes of text. */
static void test_aliases_are_counted(void **state)
{
	struct vg_buf text;

	(void)state;
	vg_buf_init(&text, TEXT_MAX);
	vg_buf_adds(&text, "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
	for (int i = 1; i < 9; i++)
		vg_buf_addf(
			&text,
			"a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n",
			i, i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
	check_code(vg_buf_steal(&text, NULL), -EINVAL,
		   "more than 8388608 nodes, aliases counted each time");

	vg_buf_adds(&text, "a: &a ");
	for (int i = 0; i < 1 << 16; i++)
		vg_buf_adds(&text, "0123456789abcdef");
	vg_buf_adds(&text, "\nb:\n");
	for (int i = 0; i < 65; i++)
		vg_buf_adds(&text, "- *a\n");
	check_code(vg_buf_steal(&text, NULL), -EINVAL,
		   "more than 67108864 bytes of text, aliases counted each time");
}

/* Above 16 keys duplicates are found through a table. */
static void test_large_mapping(void **state)
{
	struct vg_arena arena;
	struct vg_yaml **documents;
	size_t count;
	struct vg_buf text;
	char key[32];

	(void)state;
	vg_arena_init(&arena);
	vg_buf_init(&text, TEXT_MAX);
	for (int i = 0; i < 1000; i++)
		vg_buf_addf(&text, "key-%d: %d\n", i, i);
	assert_int_equal(vg_yaml_parse("f", text.data, text.used, &arena, &documents, &count, NULL),
			 0);
	assert_int_equal(count, 1);
	for (unsigned i = 0; i < 1000; i++) {
		const struct vg_yaml *value;

		snprintf(key, sizeof(key), "key-%u", i);
		value = vg_yaml_get(documents[0], key);
		assert_non_null(value);
		assert_int_equal(value->line, i + 1);
	}
	assert_null(vg_yaml_get(documents[0], "key-1000"));
	assert_null(vg_yaml_get(vg_yaml_get(documents[0], "key-1"), "x"));
	assert_null(vg_yaml_get(NULL, "x"));
	vg_buf_adds(&text, "key-500: again\n");
	check_code(vg_buf_steal(&text, NULL), -EINVAL,
		   "f.yaml:1001: key \"key-500\" is given twice, first on line 501");
	vg_arena_release(&arena);
}

static void test_file(void **state)
{
	struct vg_arena arena;
	struct vg_yaml **documents = NULL;
	size_t count = 0;
	struct vg_err err = { 0 };

	(void)state;
	vg_arena_init(&arena);
	assert_int_equal(
		vg_yaml_parse_file("/nonexistent/x.yaml", &arena, &documents, &count, &err),
		-ENOENT);
	assert_string_equal(err.msg,
			    "/nonexistent/x.yaml: cannot be opened: No such file or directory");
	assert_null(documents);
	vg_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trees),         cmocka_unit_test(test_errors),
		cmocka_unit_test(test_limits),        cmocka_unit_test(test_aliases_are_counted),
		cmocka_unit_test(test_large_mapping), cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
