/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/arena.h"
#include "yaml/yaml_tree.h"

/* What sigs.k8s.io/yaml makes of the same text, except where a comment says so. */
static void test_values(void **state)
{
	static const struct {
		const char *text;
		const char *want;
	} rows[] = {
		{ "", "null" },
		{ "~", "null" },
		{ "null", "null" },
		{ "NULL", "null" },
		{ "nil", "\"nil\"" },
		{ "''", "\"\"" },
		{ "true", "true" },
		{ "True", "true" },
		{ "tRUE", "\"tRUE\"" },
		{ "yes", "true" },
		{ "On", "true" },
		{ "y", "true" },
		{ "no", "false" },
		{ "OFF", "false" },
		{ "n", "false" },
		{ "\"yes\"", "\"yes\"" },
		{ "0", "0" },
		{ "-0", "0" },
		{ "42", "42" },
		{ "+7", "7" },
		{ "-7", "-7" },
		{ "010", "8" },
		{ "089", "89" },
		{ "0x10", "16" },
		{ "-0xfF", "-255" },
		{ "0o10", "8" },
		{ "0b101", "5" },
		{ "0b102", "\"0b102\"" },
		{ "0x", "\"0x\"" },
		{ "0xg", "\"0xg\"" },
		{ "1_000", "1000" },
		{ "1__0_", "10" },
		{ "_1", "\"_1\"" },
		{ "'010'", "\"010\"" },
		{ "9223372036854775807", "9223372036854775807" },
		{ "-9223372036854775808", "-9223372036854775808" },
		{ "9223372036854775808", "9.2233720368547758e18" },
		{ "0x10000000000000000", "1.8446744073709552e19" },
		{ "123456789012345678901234567890", "1.2345678901234568e29" },
		{ "1e3", "1000" },
		{ "1E+3", "1000" },
		{ "25e-1", "2.5" },
		{ "1.5", "1.5" },
		{ "2.0", "2" },
		{ ".5", "0.5" },
		{ "5.", "5" },
		{ "-.5", "-0.5" },
		{ ".", "\".\"" },
		{ "+", "\"+\"" },
		{ "1e", "\"1e\"" },
		{ "1e+", "\"1e+\"" },
		{ "e3", "\"e3\"" },
		{ "1.2.3", "\"1.2.3\"" },
		{ "1e999", "\"1e999\"" },
		{ ".inf", "\".inf\"" }, /* sigs.k8s.io/yaml: an error */
		{ ".nan", "\".nan\"" }, /* sigs.k8s.io/yaml: an error */
		{ "16Gi", "\"16Gi\"" },
		{ "500m", "\"500m\"" },
		{ "12:30:45", "\"12:30:45\"" },
		{ "2026-01-02", "\"2026-01-02\"" },
		{ "2026-01-02T03:04:05Z", "\"2026-01-02T03:04:05Z\"" },
		{ "!!str 1", "\"1\"" },
		{ "[1, a, {}]", "[1,\"a\",{}]" },
		{ "{b: 1, a: [yes], \"1\": ~}", "{\"b\":1,\"a\":[true],\"1\":null}" },
		/* sigs.k8s.io/yaml makes the key "true" of it. */
		{ "{y: 1}", "{\"y\":1}" },
		{ "{a: &x [1], b: *x}", "{\"a\":[1],\"b\":[1]}" },
		{ "- &a {k: 1e3}\n- <<: *a\n", "[{\"k\":1000},{\"k\":1000}]" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_arena arena;
		struct vg_yaml **documents;
		size_t count;
		json_t *json;
		char *got;

		vg_arena_init(&arena);
		/* A document of its own, so that the empty text is one as well. */
		assert_int_equal(vg_yaml_parse("f", rows[i].text, strlen(rows[i].text), &arena,
					       &documents, &count, NULL),
				 0);
		json = count ? vg_yaml_to_json(documents[0]) : json_null();
		got = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);
		assert_string_equal(got, rows[i].want);
		free(got);
		json_decref(json);
		vg_arena_release(&arena);
	}
}

static void test_resolve(void **state)
{
	char digits[256];
	struct vg_yaml node = { .kind = VG_YAML_SCALAR, .scalar = digits };
	struct vg_yaml_value value;

	(void)state;
	/* 127 characters are a number, 128 are not. */
	memset(digits, '1', sizeof(digits));
	digits[127] = '\0';
	value = vg_yaml_resolve(&node);
	assert_int_equal(value.type, VG_YAML_FLOAT);
	assert_true(value.real > 1.1e126 && value.real < 1.2e126);
	digits[127] = '1';
	digits[128] = '\0';
	assert_int_equal(vg_yaml_resolve(&node).type, VG_YAML_STRING);

	node.scalar = "0x10";
	value = vg_yaml_resolve(&node);
	assert_int_equal(value.type, VG_YAML_INT);
	assert_int_equal(value.integer, 16);
	assert_true(value.real == 16.0);
	node.quoted = true;
	assert_int_equal(vg_yaml_resolve(&node).type, VG_YAML_STRING);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_resolve),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
