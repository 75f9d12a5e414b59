/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/base/base_test.h"

#include "base/str.h"

/* All pieces, each in brackets. */
static void join_cut(const char *text, char separator, char *out, size_t room)
{
	struct vg_span rest = VG_SPAN(text);
	struct vg_span piece;
	size_t used = 0;

	out[0] = '\0';
	while (vg_cut(&rest, separator, &piece))
		used += (size_t)snprintf(out + used, room - used, "[%.*s]", (int)piece.size,
					 piece.data);
}

static void test_cut(void **state)
{
	static const struct {
		const char *text;
		const char *pieces;
	} rows[] = {
		{ "", "[]" },           { ",", "[][]" },
		{ "a", "[a]" },         { "a,", "[a][]" },
		{ ",a", "[][a]" },      { "a,b", "[a][b]" },
		{ "a,,b", "[a][][b]" }, { " a , b ", "[ a ][ b ]" },
		{ "a;b", "[a;b]" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char out[64];

		join_cut(rows[i].text, ',', out, sizeof(out));
		assert_string_equal(out, rows[i].pieces);
	}
}

/* Nothing is left is said by data == NULL, and asking again stays false. */
static void test_cut_ends(void **state)
{
	struct vg_span rest = VG_SPAN("a,b");
	struct vg_span piece = { NULL, 0 };

	(void)state;
	assert_true(vg_cut(&rest, ',', &piece));
	assert_non_null(rest.data);
	assert_true(vg_cut(&rest, ',', &piece));
	assert_null(rest.data);
	assert_false(vg_cut(&rest, ',', &piece));
	assert_false(vg_cut(&rest, ',', &piece));
	assert_true(vg_span_eq(piece, "b"));
}

static void test_trim(void **state)
{
	static const struct {
		const char *text;
		const char *trimmed;
	} rows[] = {
		{ "", "" },           { " ", "" },    { " \t\r\n\v\f", "" }, { "a", "a" },
		{ "  a b\t", "a b" }, { "\na", "a" }, { "a\n", "a" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_true(vg_span_eq(vg_trim(VG_SPAN(rows[i].text)), rows[i].trimmed));
}

static void test_compare(void **state)
{
	(void)state;
	assert_true(vg_streq("a", "a"));
	assert_false(vg_streq("a", "b"));
	assert_false(vg_streq("a", "aa"));
	assert_false(vg_streq("a", "A"));
	assert_true(vg_streq(NULL, NULL));
	assert_false(vg_streq("", NULL));
	assert_false(vg_streq(NULL, ""));
	assert_true(vg_strcaseeq("Ab", "aB"));
	assert_false(vg_strcaseeq("Ab", "aBc"));
	assert_false(vg_strcaseeq("a", NULL));
	assert_true(vg_strcaseeq(NULL, NULL));
	assert_true(vg_span_eq((struct vg_span){ "abc", 2 }, "ab"));
	assert_false(vg_span_eq((struct vg_span){ "abc", 2 }, "abc"));
	assert_true(vg_span_eq((struct vg_span){ NULL, 0 }, ""));
	assert_true(vg_span_has(VG_SPAN("a:b"), ':'));
	assert_false(vg_span_has((struct vg_span){ "a:b", 1 }, ':'));
	assert_false(vg_span_has((struct vg_span){ NULL, 0 }, ':'));
	assert_true(vg_starts_with("nvidia.com/gpu", "nvidia.com/"));
	assert_false(vg_starts_with("nvidia", "nvidia.com/"));
	assert_true(vg_starts_with("x", ""));
	assert_true(vg_ends_with("lock,ns,pod", ",ns,pod"));
	assert_false(vg_ends_with("pod", ",ns,pod"));
	assert_false(vg_ends_with("lock,ns,other", ",ns,pod"));
	assert_true(vg_ends_with("x", ""));
}

static void test_contains(void **state)
{
	static const struct {
		const char *hay;
		const char *needle;
		bool found;
	} rows[] = {
		{ "NVIDIA A100-SXM4-80GB", "a100", true },
		{ "NVIDIA A100-SXM4-80GB", "nvidia", true },
		{ "NVIDIA A100-SXM4-80GB", "80gb", true },
		{ "NVIDIA A100-SXM4-80GB", "80gbx", false },
		{ "NVIDIA A100-SXM4-80GB", "h100", false },
		{ "A", "A100", false },
		{ "", "a", false },
		{ "", "", true },
		{ "a", "", true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(vg_contains_nocase(rows[i].hay, VG_SPAN(rows[i].needle)),
				 rows[i].found);
}

static void test_copy(void **state)
{
	char room[4];

	(void)state;
	assert_true(vg_copy(room, sizeof(room), "abc"));
	assert_string_equal(room, "abc");
	assert_false(vg_copy(room, sizeof(room), "wxyz"));
	assert_string_equal(room, "wxy");
	assert_true(vg_copy(room, sizeof(room), ""));
	assert_string_equal(room, "");
	assert_false(vg_copy(room, 1, "a"));
	assert_string_equal(room, "");
}

/* Every byte and the length count, wherever the eight-byte steps end; and so does the seed. */
static void test_hash(void **state)
{
	char text[40] = { 0 };

	(void)state;
	for (size_t size = 0; size < sizeof(text); size++) {
		unsigned long long hash = vg_hash(text, size);

		assert_true(hash == vg_hash(text, size));
		assert_true(hash == vg_hash_seeded(text, size, 0));
		assert_false(hash == vg_hash_seeded(text, size, 1));
		assert_false(hash == vg_hash(text, size + 1));
		for (size_t i = 0; i < size; i++) {
			text[i] = 1;
			assert_false(hash == vg_hash(text, size));
			text[i] = 0;
		}
	}
}

/* A table of 2^12 slots filled with names that people give to nodes: no slot gets many. */
static void test_hash_spreads(void **state)
{
	static unsigned char slots[4096];
	unsigned char fullest = 0;

	(void)state;
	for (int i = 0; i < 4096; i++) {
		char name[32];
		size_t slot;

		snprintf(name, sizeof(name), "gpu-node-%05d", i);
		slot = vg_hash(name, strlen(name)) & 4095;
		slots[slot]++;
		fullest = slots[slot] > fullest ? slots[slot] : fullest;
	}
	assert_in_range(fullest, 1, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cut),      cmocka_unit_test(test_cut_ends),
		cmocka_unit_test(test_trim),     cmocka_unit_test(test_compare),
		cmocka_unit_test(test_contains), cmocka_unit_test(test_copy),
		cmocka_unit_test(test_hash),     cmocka_unit_test(test_hash_spreads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
