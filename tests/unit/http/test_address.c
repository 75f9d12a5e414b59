/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/http/wire.h"

#include <errno.h>

#include "http/http_internal.h"

struct row {
	const char *address;
	int code;
	const char *text; /* stands in the error */
};

static void test_forms(void **state)
{
	static const struct row rows[] = {
		{ "127.0.0.1:0", 0, NULL },
		{ ":0", 0, NULL },
		{ "localhost:0", 0, NULL },
		{ "", -EINVAL, "\"\" has no port" },
		{ "127.0.0.1", -EINVAL, "has no port" },
		{ "127.0.0.1:", -EINVAL, "the port of \"127.0.0.1:\"" },
		{ "127.0.0.1:http", -EINVAL, "the port of" },
		{ "127.0.0.1:65536", -EINVAL, "the port of" },
		{ "127.0.0.1:-1", -EINVAL, "the port of" },
		{ "::1:8080", -EINVAL, "needs brackets" },
		{ "[::1:8080", -EINVAL, "is no address" },
		{ "[]:8080", -EINVAL, "is no address" },
		{ "not a name:1", -EINVAL, "is no address" },
		{ "192.0.2.1:0", -EADDRNOTAVAIL, "this machine has no such address" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_err err = { 0 };
		uint16_t port = 0;
		int fd = -1;
		int r = vg_http_open_socket(rows[i].address, &fd, &port, &err);

		if (r != rows[i].code)
			fail_msg("%s: %d, want %d (%s)", rows[i].address, r, rows[i].code, err.msg);
		if (r == 0) {
			assert_true(port > 0);
			close(fd);
		} else {
			assert_int_equal(fd, -1);
			if (!strstr(err.msg, rows[i].text))
				fail_msg("%s: no \"%s\" in \"%s\"", rows[i].address, rows[i].text,
					 err.msg);
		}
	}
}

static void test_in_use(void **state)
{
	struct vg_err err = { 0 };
	char address[32];
	uint16_t port;
	int first;
	int second = -1;

	(void)state;
	assert_int_equal(vg_http_open_socket("127.0.0.1:0", &first, &port, &err), 0);
	snprintf(address, sizeof(address), "127.0.0.1:%u", port);
	assert_int_equal(vg_http_open_socket(address, &second, &port, &err), -EADDRINUSE);
	assert_non_null(strstr(err.msg, address));
	assert_non_null(strstr(err.msg, "choose another port"));
	close(first);
}

static void test_wildcard_takes_ipv4(void **state)
{
	uint16_t port;
	int fd;
	int client;

	(void)state;
	assert_int_equal(vg_http_open_socket(":0", &fd, &port, NULL), 0);
	client = wire_connect(port);
	close(client);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_in_use),
		cmocka_unit_test(test_wildcard_takes_ipv4),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
