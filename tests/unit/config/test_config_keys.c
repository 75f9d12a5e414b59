/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/num.h"
#include "base/str.h"
#include "config/config_internal.h"
#include "device/class.h"

static bool is_nested(enum config_type type)
{
	return type == CONFIG_MAP || type == CONFIG_LIST || type == CONFIG_MAP_OR_LIST;
}

/* What holds for every row, so that a mistake in the list is a failing test. */
static void test_rows(void **state)
{
	bool reached[CONFIG_BLOCK_COUNT] = { [CONFIG_BLOCK_file] = true };

	(void)state;
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		bool is_text = row->type == CONFIG_TEXT || row->type == CONFIG_RESOURCE ||
			       row->type == CONFIG_CHOICE;

		assert_ptr_equal(config_row_find(row->block, row->key), row); /* no key twice */
		assert_true(row->help[0]);
		assert_true(row->min <= row->max);
		assert_true((row->use == CONFIG_USE_CLASS) == (row->store != CONFIG_STORE_NONE));
		if (row->store == CONFIG_STORE_TEXT)
			assert_true(is_text);
		if (row->store == CONFIG_STORE_INT32)
			assert_true(row->type == CONFIG_INT && row->min >= INT32_MIN &&
				    row->max <= INT32_MAX);
		if (row->store == CONFIG_STORE_BOOL)
			assert_int_equal(row->type, CONFIG_BOOL);
		assert_true((row->type == CONFIG_CHOICE) == (row->words != NULL));
		if (row->type == CONFIG_INT || row->type == CONFIG_NUMBER)
			assert_true(row->max > row->min);
		if (is_nested(row->type)) {
			reached[row->inside] = true;
			reached[row->list_items] = true;
		}
	}
	for (size_t i = 0; i < CONFIG_BLOCK_COUNT; i++)
		assert_true(reached[i]);
}

/* The default column says what a freshly initialised class holds. */
static void test_defaults(void **state)
{
	struct vg_classes classes;
	size_t compared = 0;

	(void)state;
	vg_classes_init(&classes);
	for (size_t i = 0; i < config_row_count; i++) {
		const struct config_row *row = &config_rows[i];
		const char *member = (const char *)&classes.item[0] + row->offset;
		int64_t number;
		bool truth;

		switch (row->store) {
		case CONFIG_STORE_TEXT:
			assert_string_equal(*(char *const *)member, row->initial);
			compared++;
			break;
		case CONFIG_STORE_INT32:
			assert_int_equal(vg_parse_i64(VG_SPAN(row->initial), INT32_MIN, INT32_MAX,
						      &number, NULL),
					 0);
			assert_int_equal(*(const int32_t *)member, number);
			compared++;
			break;
		case CONFIG_STORE_BOOL:
			assert_int_equal(vg_parse_bool(VG_SPAN(row->initial), &truth, NULL), 0);
			assert_int_equal(*(const bool *)member, truth);
			compared++;
			break;
		case CONFIG_STORE_NONE:
			break;
		}
	}
	assert_int_equal(compared, 12);
	vg_classes_release(&classes);
}

static void test_guess(void **state)
{
	static const struct {
		enum config_block block;
		const char *key;
		const char *want; /* NULL: no guess */
		enum config_block want_block;
	} rows[] = {
		{ CONFIG_BLOCK_nvidia, "defaultMem", "defaultMemory", CONFIG_BLOCK_nvidia },
		{ CONFIG_BLOCK_nvidia, "defaultmemory", "defaultMemory", CONFIG_BLOCK_nvidia },
		{ CONFIG_BLOCK_nvidia, "defualtCores", "defaultCores", CONFIG_BLOCK_nvidia },
		{ CONFIG_BLOCK_nvidia, "gpuMemoryFactor", "memoryFactor", CONFIG_BLOCK_nvidia },
		{ CONFIG_BLOCK_nvidia, "disablecorelimit", "disableCoreLimit",
		  CONFIG_BLOCK_nvidia },
		{ CONFIG_BLOCK_nvidia, "resourceVCountName", "resourceCountName",
		  CONFIG_BLOCK_nvidia },
		{ CONFIG_BLOCK_nvidia, "sgpuTopologyAware", "sgpuTopologyAware",
		  CONFIG_BLOCK_metax },
		{ CONFIG_BLOCK_file, "nvidea", "nvidia", CONFIG_BLOCK_file },
		{ CONFIG_BLOCK_file, "NVIDIA", "nvidia", CONFIG_BLOCK_file },
		{ CONFIG_BLOCK_file, "vnpu", "vnpus", CONFIG_BLOCK_file },
		/* Three pairs exchanged, which letter by letter are six changes. */
		{ CONFIG_BLOCK_file, "acmrbicno", "cambricon", CONFIG_BLOCK_file },
		{ CONFIG_BLOCK_file, "deviceSplitCount", "deviceSplitCount", CONFIG_BLOCK_nvidia },
		{ CONFIG_BLOCK_nvidia, "nvidia", "nvidia", CONFIG_BLOCK_file },
		{ CONFIG_BLOCK_file, "x", NULL, CONFIG_BLOCK_file },
		{ CONFIG_BLOCK_file, "colour", NULL, CONFIG_BLOCK_file },
		{ CONFIG_BLOCK_nvidia, "nodeSelector", NULL, CONFIG_BLOCK_file },
	};
	char longest[300];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct config_row *row = config_row_guess(rows[i].block, rows[i].key);

		if (!rows[i].want) {
			if (row)
				fail_msg("%s is taken for %s", rows[i].key, row->key);
			continue;
		}
		if (!row)
			fail_msg("%s is not taken for %s", rows[i].key, rows[i].want);
		assert_string_equal(row->key, rows[i].want);
		assert_int_equal(row->block, rows[i].want_block);
	}
	memset(longest, 'a', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	assert_null(config_row_guess(CONFIG_BLOCK_nvidia, longest));
}

static void test_row_of_block(void **state)
{
	(void)state;
	assert_null(config_row_of_block(CONFIG_BLOCK_file));
	assert_string_equal(config_row_of_block(CONFIG_BLOCK_nvidia)->key, "nvidia");
	assert_string_equal(config_row_of_block(CONFIG_BLOCK_vnpus)->key, "vnpus");
	assert_string_equal(config_row_of_block(CONFIG_BLOCK_vnpu_template)->key, "templates");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_guess),
		cmocka_unit_test(test_row_of_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
