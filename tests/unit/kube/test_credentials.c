/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "kube/credentials_internal.h"

#define CERT "-----BEGIN CERTIFICATE-----\n"

static char folder[] = "/tmp/vgpu-test-XXXXXX";

static char *in_folder(const char *name)
{
	return vg_printf("%s/%s", folder, name);
}

/* A new file under the old name, as kubelet and Helm do it. */
static void replace_file(const char *path, const char *text)
{
	char *next = vg_printf("%s.next", path);
	FILE *file = fopen(next, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(rename(next, path), 0);
	free(next);
}

static const char *token(const struct vg_credentials *credentials)
{
	return credentials->item[VG_CREDENTIAL_TOKEN].text;
}

static void test_texts(void **state)
{
	struct vg_kube_config config = {
		.token = vg_strdup(" t\n"),
		.ca_data = vg_strdup(CERT),
		.source = vg_strdup("kc"),
	};
	struct vg_credentials credentials;

	(void)state;
	assert_int_equal(vg_credentials_init(&credentials, &config, NULL), 0);
	assert_string_equal(token(&credentials), "t");
	assert_int_equal(credentials.item[VG_CREDENTIAL_TOKEN].size, 1);
	assert_memory_equal(credentials.item[VG_CREDENTIAL_CA].text, CERT, sizeof(CERT) - 2);
	assert_null(credentials.item[VG_CREDENTIAL_CERT].text);
	assert_false(vg_credentials_refresh(&credentials));
	vg_credentials_expire(&credentials);
	assert_false(vg_credentials_refresh(&credentials));
	assert_string_equal(token(&credentials), "t");
	vg_credentials_release(&credentials);
	vg_kube_config_release(&config);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text; /* of the file; NULL: there is none */
		int code;
		const char *message;
	} rows[] = {
		{ NULL, -ENOENT, "the token cannot be read" },
		{ "", -EINVAL, "is empty" },
		{ " \n", -EINVAL, "is empty" },
		{ "two words", -EINVAL, "more than one word" },
		/* Would become a header of its own. */
		{ "a\r\nX-Remote-User: root", -EINVAL, "more than one word" },
		{ "t\xc3\xa9", -EINVAL, "more than one word" },
	};
	struct vg_kube_config config = { .token_file = in_folder("token") };

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_credentials credentials;
		struct vg_err err = { 0 };

		unlink(config.token_file);
		if (rows[i].text)
			replace_file(config.token_file, rows[i].text);
		assert_int_equal(vg_credentials_init(&credentials, &config, &err), rows[i].code);
		assert_non_null(strstr(err.msg, rows[i].message));
		assert_non_null(strstr(err.msg, config.token_file));
	}
	vg_kube_config_release(&config);
}

static void test_replaced(void **state)
{
	struct vg_kube_config config = {
		.token_file = in_folder("token"),
		.ca_file = in_folder("ca.crt"),
	};
	struct vg_credentials credentials;

	(void)state;
	replace_file(config.token_file, "one\n");
	replace_file(config.ca_file, CERT);
	assert_int_equal(vg_credentials_init(&credentials, &config, NULL), 0);
	assert_string_equal(token(&credentials), "one");
	assert_false(vg_credentials_refresh(&credentials));

	replace_file(config.token_file, "two\n");
	assert_true(vg_credentials_refresh(&credentials));
	assert_string_equal(token(&credentials), "two");
	assert_false(vg_credentials_refresh(&credentials));

	/* The same text in a new file is no news. */
	replace_file(config.token_file, "two\n");
	assert_false(vg_credentials_refresh(&credentials));

	/* Whatever is wrong with the new one, the old one stays, and the next good one is taken. */
	replace_file(config.token_file, "");
	assert_false(vg_credentials_refresh(&credentials));
	assert_string_equal(token(&credentials), "two");
	unlink(config.token_file);
	assert_false(vg_credentials_refresh(&credentials));
	assert_false(vg_credentials_refresh(&credentials));
	assert_string_equal(token(&credentials), "two");
	replace_file(config.token_file, "three");
	assert_true(vg_credentials_refresh(&credentials));
	assert_string_equal(token(&credentials), "three");

	replace_file(config.ca_file, CERT CERT);
	assert_true(vg_credentials_refresh(&credentials));
	assert_int_equal(credentials.item[VG_CREDENTIAL_CA].size, 2 * strlen(CERT));
	vg_credentials_release(&credentials);
	vg_kube_config_release(&config);
}

/* A file that was written in place within the clock's step looks as before; 401 tells that it is not. */
static void test_expire(void **state)
{
	struct vg_kube_config config = { .token_file = in_folder("token") };
	struct timespec times[2];
	struct vg_credentials credentials;
	struct stat before;
	int fd;

	(void)state;
	replace_file(config.token_file, "one");
	assert_int_equal(vg_credentials_init(&credentials, &config, NULL), 0);
	assert_int_equal(stat(config.token_file, &before), 0);
	fd = open(config.token_file, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(fd, "two", 3), 3);
	times[0] = before.st_atim;
	times[1] = before.st_mtim;
	assert_int_equal(futimens(fd, times), 0);
	close(fd);
	assert_false(vg_credentials_refresh(&credentials));
	assert_string_equal(token(&credentials), "one");
	vg_credentials_expire(&credentials);
	assert_true(vg_credentials_refresh(&credentials));
	assert_string_equal(token(&credentials), "two");
	vg_credentials_release(&credentials);
	vg_kube_config_release(&config);
}

static int setup(void **state)
{
	(void)state;
	vg_log_setup(VG_LOG_ERROR, false);
	return mkdtemp(folder) ? 0 : -1;
}

static int teardown(void **state)
{
	static const char *const names[] = { "token", "ca.crt" };

	(void)state;
	for (size_t i = 0; i < COUNT(names); i++) {
		char *path = in_folder(names[i]);

		unlink(path);
		free(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_texts),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_replaced),
		cmocka_unit_test(test_expire),
	};

	return cmocka_run_group_tests_name("kube/credentials", tests, setup, teardown);
}
