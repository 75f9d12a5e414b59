/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/limits.h"
#include "kube/versions_internal.h"

enum action {
	PUT,
	DELETE,
	LIST_BEGIN,
	LISTED,
	LIST_END,
};

struct row {
	enum action action;
	const char *key;
	uint64_t version;
	bool accepted;
};

static void play(const char *name, const struct row *rows, size_t count)
{
	struct vg_versions versions;

	vg_versions_init(&versions);
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		bool accepted = true;

		switch (row->action) {
		case PUT:
			accepted = vg_versions_put(&versions, row->key, row->version);
			break;
		case DELETE:
			accepted = vg_versions_delete(&versions, row->key, row->version);
			break;
		case LIST_BEGIN:
			vg_versions_list_begin(&versions);
			break;
		case LISTED:
			accepted = vg_versions_listed(&versions, row->key, row->version);
			break;
		case LIST_END:
			vg_versions_list_end(&versions, row->version);
			break;
		}
		if (accepted != row->accepted)
			fail_msg("%s, step %zu (%s at %llu): %s", name, i,
				 row->key ? row->key : "list", (unsigned long long)row->version,
				 accepted ? "accepted" : "refused");
	}
	vg_versions_release(&versions);
}

#define PLAY(name, ...)                                                                            \
	do {                                                                                       \
		static const struct row rows[] = { __VA_ARGS__ };                                  \
		play(name, rows, COUNT(rows));                                                     \
	} while (0)

static void test_watch(void **state)
{
	(void)state;
	PLAY("rising", { PUT, "a", 5, true }, { PUT, "a", 6, true }, { PUT, "a", 9, true });
	PLAY("repeated", { PUT, "a", 5, true }, { PUT, "a", 5, true });
	PLAY("older", { PUT, "a", 5, true }, { PUT, "a", 4, false }, { PUT, "a", 5, true });
	PLAY("by object, not by stream", { PUT, "a", 9, true }, { PUT, "b", 5, true });
	PLAY("numbers, not texts", { PUT, "a", 9, true }, { PUT, "a", 10, true },
	     { PUT, "a", 9, false });
	PLAY("versions that are none", { PUT, "a", 5, true }, { PUT, "a", 0, true },
	     { PUT, "a", 4, true }, { DELETE, "a", 0, true }, { PUT, "a", 1, true });
}

static void test_delete(void **state)
{
	(void)state;
	PLAY("not revived", { PUT, "a", 5, true }, { DELETE, "a", 7, true }, { PUT, "a", 5, false },
	     { PUT, "a", 7, false });
	PLAY("created again", { PUT, "a", 5, true }, { DELETE, "a", 7, true },
	     { PUT, "a", 8, true }, { PUT, "a", 7, false });
	PLAY("late delete of the one before", { PUT, "a", 5, true }, { PUT, "a", 8, true },
	     { DELETE, "a", 7, false }, { PUT, "a", 8, true });
	PLAY("delete at the last version", { PUT, "a", 5, true }, { DELETE, "a", 5, true },
	     { PUT, "a", 5, false });
	PLAY("delete twice", { DELETE, "a", 7, true }, { DELETE, "a", 7, true },
	     { DELETE, "a", 6, false }, { PUT, "a", 6, false });
	PLAY("delete before create", { DELETE, "a", 7, true }, { PUT, "a", 5, false });
}

static void test_list(void **state)
{
	(void)state;
	PLAY("what was not listed is forgotten", { PUT, "a", 5, true }, { PUT, "b", 6, true },
	     { LIST_BEGIN, NULL, 0, true }, { LISTED, "a", 5, true }, { LIST_END, NULL, 10, true },
	     /* b is gone: an event from before the list must not bring it back … */
	     { PUT, "b", 8, false }, { PUT, "b", 10, false },
	     /* … but one from after it must. */
	     { PUT, "b", 11, true });
	PLAY("unknown and before the list", { LIST_BEGIN, NULL, 0, true },
	     { LIST_END, NULL, 10, true }, { PUT, "c", 9, false }, { DELETE, "c", 9, false },
	     { PUT, "c", 11, true });
	PLAY("an old object that never changed", { LIST_BEGIN, NULL, 0, true },
	     { LISTED, "a", 3, true }, { LIST_END, NULL, 10, true }, { LIST_BEGIN, NULL, 0, true },
	     { LISTED, "a", 3, true }, { LIST_END, NULL, 20, true }, { PUT, "a", 3, true },
	     { PUT, "a", 2, false });
	PLAY("a list that is behind", { PUT, "a", 5, true }, { LIST_BEGIN, NULL, 0, true },
	     { LISTED, "a", 4, false });
	PLAY("a list that shows the dead", { PUT, "a", 5, true }, { DELETE, "a", 6, true },
	     { LIST_BEGIN, NULL, 0, true }, { LISTED, "a", 5, false });
	PLAY("a list broken off forgets nothing", { PUT, "a", 5, true }, { PUT, "b", 6, true },
	     { LIST_BEGIN, NULL, 0, true }, { LISTED, "a", 5, true }, { LIST_BEGIN, NULL, 0, true },
	     { LISTED, "b", 5, false }, { LISTED, "b", 6, true }, { LIST_END, NULL, 9, true },
	     { PUT, "a", 8, false });
	PLAY("the floor does not sink", { LIST_BEGIN, NULL, 0, true }, { LIST_END, NULL, 10, true },
	     { LIST_BEGIN, NULL, 0, true }, { LIST_END, NULL, 8, true }, { PUT, "a", 9, false });
	PLAY("lists without numbers keep the tombstones", { DELETE, "a", 7, true },
	     { LIST_BEGIN, NULL, 0, true }, { LIST_END, NULL, 0, true }, { PUT, "a", 6, false });
}

static void test_number(void **state)
{
	static const struct {
		const char *text;
		uint64_t number;
	} rows[] = {
		{ "1", 1 },        { "18446744073709551615", UINT64_MAX },
		{ "0", 0 },        { "", 0 },
		{ "12a", 0 },      { "-1", 0 },
		{ "a-1234-0", 0 }, { "18446744073709551616", 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(vg_version_number(rows[i].text), rows[i].number);
}

/* Tombstones are bounded: the oldest give way, the newest stay, and those revived take no room. */
static void test_tombstones(void **state)
{
	struct vg_versions versions;
	char key[32];

	(void)state;
	vg_versions_init(&versions);
	for (unsigned i = 0; i < VG_LIMIT_TOMBSTONES + 10; i++) {
		snprintf(key, sizeof(key), "pod-%u", i);
		assert_true(vg_versions_delete(&versions, key, 1000 + i));
	}
	assert_int_equal(versions.tombstone_count, VG_LIMIT_TOMBSTONES);
	assert_int_equal(versions.map.used, VG_LIMIT_TOMBSTONES);
	assert_false(vg_versions_put(&versions, "pod-10", 1010));
	assert_true(vg_versions_put(&versions, "pod-9", 1009));
	assert_true(vg_versions_put(&versions, "pod-20", 9999));
	assert_true(vg_versions_put(&versions, key, 9999));
	assert_int_equal(versions.tombstone_count, VG_LIMIT_TOMBSTONES - 2);
	for (unsigned i = 0; i < 2 * VG_LIMIT_TOMBSTONES; i++) {
		snprintf(key, sizeof(key), "later-%u", i);
		assert_true(vg_versions_delete(&versions, key, 20000 + i));
	}
	/* The living were not pushed out with the dead. */
	assert_false(vg_versions_put(&versions, "pod-20", 9998));
	vg_versions_release(&versions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_watch),      cmocka_unit_test(test_delete),
		cmocka_unit_test(test_list),       cmocka_unit_test(test_number),
		cmocka_unit_test(test_tombstones),
	};

	return cmocka_run_group_tests_name("kube/versions", tests, NULL, NULL);
}
