/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include "kube/decoder_internal.h"

#define ROOM 12

static void test_peek(void **state)
{
	static const struct {
		const char *text;
		const char *namespace; /* NULL: no name in it */
		const char *name;
	} rows[] = {
		{ "{\"metadata\":{\"name\":\"p1\",\"namespace\":\"demo\",\"x\":\"yyy", "demo",
		  "p1" },
		{ "{\"metadata\":{\"namespace\":\"demo\",\"name\":\"p1\"", "demo", "p1" },
		{ "{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"name\":\"other\"}}", "", "n1" },
		{ " { \"kind\" : \"Pod\" , \"metadata\" : { \"name\" : \"p1\" , ", "", "p1" },
		/* Names of other things. */
		{ "{\"name\":\"no\",\"spec\":{\"name\":\"no\"},\"metadata\":{\"labels\":{\"name\":\"no\"},"
		  "\"name\":\"p1\"",
		  "", "p1" },
		{ "{\"x\":\"metadata\",\"metadata\":{\"a\":[\"name\",\"no\"],\"b\":\"name\",\"name\":\"p1\"",
		  "", "p1" },
		{ "{\"metadata\":{\"labels\":{\"name\":\"no\"}},\"spec\":{\"name\":\"no\"}}", NULL,
		  NULL },
		{ "{\"spec\":{\"metadata\":{\"name\":\"no\"}}}", NULL, NULL },
		/* Brackets in texts. */
		{ "{\"a\":\"}{\\\"\",\"metadata\":{\"name\":\"p1\"", "", "p1" },
		/* Broken off. */
		{ "", NULL, NULL },
		{ "{", NULL, NULL },
		{ "{\"metadata\":{\"name\":\"p1", NULL, NULL },
		{ "{\"metadata\":{\"name\":\"p\\", NULL, NULL },
		{ "{\"metadata\":{\"name\":", NULL, NULL },
		{ "}{\"metadata\":{\"name\":\"p1\"", NULL, NULL },
		/* Names that cannot be. */
		{ "{\"metadata\":{\"name\":\"p\\u0031\"", NULL, NULL },
		{ "{\"metadata\":{\"name\":\"12345678901\"", "", "12345678901" },
		{ "{\"metadata\":{\"name\":\"123456789012\"", NULL, NULL },
		{ "{\"metadata\":{\"name\":{\"name\":\"x\"}", NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t size = strlen(rows[i].text);
		char namespace[ROOM];
		char name[ROOM];
		/* Exactly as long as the text, so that a read past its end is seen. */
		char *copy = malloc(size ? size : 1);
		bool found;

		memcpy(copy, rows[i].text, size);
		found = vg_peek_name(copy, size, namespace, name, ROOM);
		free(copy);
		if (found != (rows[i].name != NULL))
			fail_msg("%s: %s", rows[i].text, found ? name : "nothing");
		if (!found)
			continue;
		assert_string_equal(name, rows[i].name);
		assert_string_equal(namespace, rows[i].namespace);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_peek) };

	return cmocka_run_group_tests_name("kube/peek", tests, NULL, NULL);
}
