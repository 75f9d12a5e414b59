/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include "device/node.h"

static void test_uuid_listed(void **state)
{
	static const struct {
		const char *list;
		const char *uuid;
		bool listed;
	} rows[] = {
		{ NULL, "GPU-a", false },
		{ "", "GPU-a", false },
		{ "GPU-a", "GPU-a", true },
		{ "GPU-a,GPU-b", "GPU-a", true },
		{ "GPU-a,GPU-b", "GPU-b", true },
		{ " GPU-a , GPU-b ", "GPU-b", true },
		{ ",,GPU-b,", "GPU-b", true },
		{ "GPU-ab", "GPU-a", false },
		{ "GPU-a", "GPU-ab", false },
		{ "gpu-a", "GPU-a", false },
		{ ",", "", false },
		{ "GPU-a,,", "", false },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (vg_uuid_listed(rows[i].list, rows[i].uuid) != rows[i].listed)
			fail_msg("\"%s\" in \"%s\"", rows[i].uuid,
				 rows[i].list ? rows[i].list : "NULL");
}

static void test_mode_words(void **state)
{
	(void)state;
	for (int mode = 0; mode < VG_MODE_COUNT; mode++)
		assert_non_null(vg_card_mode_word[mode]);
	assert_string_equal(vg_card_mode_word[VG_MODE_NONE], "");
	assert_string_equal(vg_card_mode_word[VG_MODE_HAMI_CORE], "hami-core");
	assert_string_equal(vg_card_mode_word[VG_MODE_MIG], "mig");
	assert_string_equal(vg_card_mode_word[VG_MODE_MPS], "mps");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_uuid_listed),
		cmocka_unit_test(test_mode_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
