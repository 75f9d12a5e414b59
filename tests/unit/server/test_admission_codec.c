/* SPDX-License-Identifier: Apache-2.0 */
/* The envelope of the webhook's reply; what it decides is in test_webhook.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/admission_codec_internal.h"

/* RFC 4648, section 10, and the two digits that differ between its alphabets. */
static void test_base64(void **state)
{
	static const struct {
		const char *bytes;
		const char *text;
	} rows[] = {
		{ "f", "Zg==" },
		{ "fo", "Zm8=" },
		{ "foo", "Zm9v" },
		{ "foob", "Zm9vYg==" },
		{ "fooba", "Zm9vYmE=" },
		{ "foobar", "Zm9vYmFy" },
		{ "\xff\xef\xbe", "/+++" },
	};
	const struct vg_review review = { .api_version = "v", .kind = "k", .uid = "u" };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vg_review_reply reply = { .allowed = true,
						       .code = 200,
						       .patch = VG_SPAN(rows[i].bytes) };
		struct vg_buf buf;
		char want[256];

		vg_buf_init(&buf, 1024);
		vg_review_encode(&review, &reply, &buf);
		snprintf(
			want, sizeof(want),
			"{\"kind\":\"k\",\"apiVersion\":\"v\",\"response\":{\"uid\":\"u\",\"allowed\":"
			"true,\"patch\":\"%s\",\"patchType\":\"JSONPatch\",\"status\":{\"code\":200}}}\n",
			rows[i].text);
		assert_string_equal(buf.data, want);
		vg_buf_release(&buf);
	}
}

static void test_patch(void **state)
{
	struct vg_arena arena;
	struct vg_patch patch;

	(void)state;
	vg_arena_init(&arena);
	vg_patch_init(&patch);
	assert_int_equal(vg_patch_json(&patch).size, 0);
	assert_string_equal(vg_patch_escape("a~b/c~1", &arena), "a~0b~1c~01");
	assert_string_equal(vg_patch_escape("", &arena), "");
	vg_patch_text(&patch, "add", "/a", "x\"y");
	vg_patch_begin(&patch, "replace", "/b/0");
	vg_out_open(&patch.out, '[');
	vg_out_close(&patch.out, ']');
	vg_patch_end(&patch);
	assert_int_equal(patch.count, 2);
	assert_true(vg_span_eq(vg_patch_json(&patch),
			       "[{\"op\":\"add\",\"path\":\"/a\",\"value\":\"x\\\"y\"},"
			       "{\"op\":\"replace\",\"path\":\"/b/0\",\"value\":[]}]"));
	vg_patch_release(&patch);
	vg_arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_base64),
		cmocka_unit_test(test_patch),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
