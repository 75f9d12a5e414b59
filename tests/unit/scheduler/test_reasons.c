/* SPDX-License-Identifier: Apache-2.0 */
/* The texts of verdicts, and which of them eviction could cure. */
#include "unit/scheduler/cases.h"

#include "base/limits.h"

static void test_texts(void **state)
{
	static const struct {
		struct vg_verdict verdict;
		const char *text;
	} rows[] = {
		{ { .reason = VG_NODE_FITS }, "" },
		{ { .reason = VG_NODE_NOT_TRIED }, "not tried" },
		{ { .reason = VG_NODE_UNREGISTERED }, "node unregistered" },
		{ { .reason = VG_NODE_TOO_FEW_CARDS, .card_count = 2 }, "NodeInsufficientDevice" },
		{ { .reason = VG_NODE_NO_CLASS }, "Device type not found" },
		{ { .reason = VG_NODE_CARDS,
		    .card_count = 8,
		    .counts = { [VG_CARD_NOT_HEALTHY] = 1, [VG_CARD_MEMORY_SHORT] = 7 } },
		  "1/8 CardNotHealth, 7/8 CardInsufficientMemory" },
		{ { .reason = VG_NODE_CARDS,
		    .card_count = 2,
		    .counts = { [VG_CARD_NOT_HEALTHY] = 1, [VG_CARD_MEMORY_SHORT] = 1 } },
		  "1/2 CardInsufficientMemory, 1/2 CardNotHealth" },
		/* Sorted as text, not as numbers. */
		{ { .reason = VG_NODE_CARDS,
		    .card_count = 16,
		    .counts = { [VG_CARD_NOT_HEALTHY] = 2,
				[VG_CARD_UUID_MISMATCH] = 10,
				[VG_CARD_TOO_FEW] = 4 } },
		  "10/16 CardUuidMismatch, 2/16 CardNotHealth, "
		  "4/16 AllocatedCardsInsufficientRequest" },
	};
	struct vg_buf buf;

	(void)state;
	vg_buf_init(&buf, 4096);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		vg_buf_clear(&buf);
		vg_buf_adds(&buf, "> ");
		vg_verdict_text(&rows[i].verdict, &buf);
		assert_string_equal(buf.data + 2, rows[i].text);
	}
	vg_buf_release(&buf);
}

/* The longest that a verdict can be: every reason, five digits each. */
static void test_longest_text(void **state)
{
	struct vg_verdict verdict = { .reason = VG_NODE_CARDS, .card_count = UINT16_MAX };
	struct vg_buf buf;
	size_t commas = 0;

	(void)state;
	for (size_t i = 0; i < VG_CARD_REASON_COUNT; i++)
		verdict.counts[i] = UINT16_MAX;
	vg_buf_init(&buf, 4096);
	vg_verdict_text(&verdict, &buf);
	for (size_t i = 0; i < buf.used; i++)
		commas += buf.data[i] == ',';
	assert_int_equal(commas, VG_CARD_REASON_COUNT - 1);
	for (size_t i = 0; i < VG_CARD_REASON_COUNT; i++)
		assert_non_null(strstr(buf.data, vg_card_reason_word[i]));
	vg_buf_release(&buf);
}

static void test_curable(void **state)
{
	static const struct {
		struct vg_verdict verdict;
		bool curable;
	} rows[] = {
		{ { .reason = VG_NODE_FITS }, false },
		{ { .reason = VG_NODE_NOT_TRIED }, true },
		{ { .reason = VG_NODE_UNREGISTERED }, false },
		{ { .reason = VG_NODE_TOO_FEW_CARDS }, false },
		{ { .reason = VG_NODE_NO_CLASS }, false },
		{ { .reason = VG_NODE_CARDS, .curable = true }, true },
		{ { .reason = VG_NODE_CARDS, .curable = false }, false },
	};

	(void)state;
	assert_int_equal(sizeof(rows) / sizeof(rows[0]), VG_NODE_REASON_COUNT + 1);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(vg_verdict_curable(&rows[i].verdict), rows[i].curable);
}

/* HAMi's words, which dashboards look for, and a help text behind each. */
static void test_words(void **state)
{
	static const char *const words[] = {
		"CardNotHealth",
		"CardCordoned",
		"CardTypeMismatch",
		"NumaNotFit",
		"CardUuidMismatch",
		"CardTimeSlicingExhausted",
		"ExclusiveDeviceAllocateConflict",
		"ResourceQuotaNotFit",
		"CardInsufficientMemory",
		"CardInsufficientCore",
		"CardComputeUnitsExhausted",
		"CardMigTopologyInfeasible",
		"CardNotFoundCustomFilterRule",
		"AllocatedCardsInsufficientRequest",
	};

	(void)state;
	assert_int_equal(sizeof(words) / sizeof(words[0]), VG_CARD_REASON_COUNT);
	for (size_t i = 0; i < VG_CARD_REASON_COUNT; i++) {
		assert_string_equal(vg_card_reason_word[i], words[i]);
		assert_true(strlen(vg_card_reason_help[i]) > 20);
	}
	for (size_t i = 0; i < VG_NODE_REASON_COUNT; i++) {
		assert_non_null(vg_node_reason_text[i]);
		assert_true(strlen(vg_node_reason_help[i]) > 10);
	}
	for (size_t i = 0; i < VG_CHECK_COUNT; i++) {
		assert_true(strlen(vg_check_name[i]) > 1);
		assert_true(strlen(vg_check_help[i]) > 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_longest_text),
		cmocka_unit_test(test_curable),
		cmocka_unit_test(test_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
