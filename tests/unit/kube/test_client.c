/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include <errno.h>

#include "base/mem.h"
#include "kube/client_internal.h"

static void test_explain(void **state)
{
	static const struct {
		struct vg_reply reply;
		const char *text;
	} rows[] = {
		{ { .status = 409,
		    .complete = true,
		    .body = "{\"kind\":\"Status\",\"message\":\"pod p is already assigned\",\"code\":409}" },
		  "HTTP 409: pod p is already assigned" },
		{ { .status = 503, .complete = true, .body = "<html>\r\n\tno\x7f" },
		  "HTTP 503: <html>   no " },
		{ { .status = 500, .complete = true, .body = "" }, "HTTP 500" },
		{ { .status = 500, .complete = true, .body = "{\"message\":5}" },
		  "HTTP 500: {\"message\":5}" },
		{ { .body = "", .cause = "Connection refused" }, "no answer: Connection refused" },
		{ { .status = 200, .body = "", .cause = "reset" }, "HTTP 200, cut short: reset" },
	};
	char small[8];

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_reply reply = rows[i].reply;
		char text[512];

		reply.body_size = strlen(reply.body);
		vg_reply_explain(&reply, text, sizeof(text));
		assert_string_equal(text, rows[i].text);
	}
	vg_reply_explain(&rows[4].reply, small, sizeof(small));
	assert_string_equal(small, "no answ");
}

static void test_passing(void **state)
{
	static const struct {
		long status;
		bool complete;
		bool passing;
	} rows[] = {
		{ 0, false, true },   { 200, true, false }, { 200, false, true },
		{ 400, true, false }, { 401, true, false }, { 403, true, false },
		{ 404, true, false }, { 409, true, false }, { 410, true, false },
		{ 422, true, false }, { 429, true, true },  { 500, true, true },
		{ 503, true, true },  { 504, true, true },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_reply reply = { .status = rows[i].status, .complete = rows[i].complete };

		assert_int_equal(vg_reply_is_passing(&reply), rows[i].passing);
	}
}

static void test_new(void **state)
{
	static const struct {
		const char *server;
		const char *server_name;
		const char *token_file;
		int code;
	} rows[] = {
		{ "https://127.0.0.1:1", NULL, NULL, 0 },
		{ "https://[::1]:1/path", "kubernetes", NULL, 0 },
		{ "https://h:99999", NULL, NULL, -EINVAL },
		{ "https://h", NULL, "/nonexistent/token", -ENOENT },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_kube_config config = {
			.server = vg_strdup(rows[i].server),
			.server_name = rows[i].server_name ? vg_strdup(rows[i].server_name) : NULL,
			.token_file = rows[i].token_file ? vg_strdup(rows[i].token_file) : NULL,
			.source = vg_strdup("test"),
		};
		struct vg_client *client = NULL;
		struct vg_err err = { 0 };
		int r = vg_client_new(&config, 1000, &client, &err);

		assert_int_equal(r, rows[i].code);
		assert_int_equal(client != NULL, r == 0);
		if (r < 0)
			assert_true(err.msg[0] != '\0');
		vg_client_free(client);
		vg_kube_config_release(&config);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_explain),
		cmocka_unit_test(test_passing),
		cmocka_unit_test(test_new),
	};

	return cmocka_run_group_tests_name("kube/client", tests, NULL, NULL);
}
