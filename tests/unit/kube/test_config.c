/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/kube/kube_test.h"

#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/config_internal.h"

#define CLUSTER "clusters: [{name: c, cluster: {server: 'https://h:1'}}]\n"
#define USER    "users: [{name: u, user: {token: t}}]\n"
#define CONTEXT "contexts: [{name: x, context: {cluster: c, user: u}}]\ncurrent-context: x\n"

/* "-----BEGIN X-----\n", base64 */
#define PEM  "LS0tLS1CRUdJTiBYLS0tLS0K"
#define PEM2 "LS0tLS1CRUdJTiBZLS0tLS0K"

/* All members that are set, "name=value " each, in the order of the struct. */
static char *describe(const struct vg_kube_config *config)
{
	const struct {
		const char *name;
		const char *value;
	} rows[] = {
		{ "server", config->server },       { "ca_file", config->ca_file },
		{ "ca_data", config->ca_data },     { "cert_file", config->cert_file },
		{ "cert_data", config->cert_data }, { "key_file", config->key_file },
		{ "key_data", config->key_data },   { "token_file", config->token_file },
		{ "token", config->token },         { "server_name", config->server_name },
		{ "proxy", config->proxy },         { "source", config->source },
	};
	struct vg_buf text;

	vg_buf_init(&text, 1 << 16);
	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].value)
			vg_buf_addf(&text, "%s=%s ", rows[i].name, rows[i].value);
	if (config->insecure)
		vg_buf_adds(&text, "insecure ");
	return vg_buf_steal(&text, NULL);
}

static void test_accepted(void **state)
{
	static const struct {
		const char *path;
		const char *text;
		const char *config;
	} rows[] = {
		{ "kc", CLUSTER USER CONTEXT, "server=https://h:1 token=t source=kc " },
		/* JSON is YAML. */
		{ "kc",
		  "{\"current-context\":\"x\",\"contexts\":[{\"name\":\"x\",\"context\":{\"cluster\":\"c\"}}],"
		  "\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":\"http://h\"}}]}",
		  "server=http://h source=kc " },
		/* A path in the URL, slashes behind it, a name and a proxy of its own. */
		{ "kc",
		  "clusters: [{name: c, cluster: {server: 'https://h:1/k8s/c-1//', tls-server-name: api, "
		  "proxy-url: 'http://p:3128'}}]\n" USER CONTEXT,
		  "server=https://h:1/k8s/c-1 token=t server_name=api proxy=http://p:3128 source=kc " },
		/* The current context is the one that counts. */
		{ "kc",
		  "clusters: [{name: d, cluster: {server: 'https://no'}}, {name: c, cluster: {server: "
		  "'https://yes'}}]\nusers: [{name: v, user: {token: no}}, {name: u, user: {token: yes}}]\n"
		  "contexts: [{name: y, context: {cluster: d, user: v}}, {name: x, context: {cluster: c, "
		  "user: u}}]\ncurrent-context: x\n",
		  "server=https://yes token=yes source=kc " },
		/* Paths are relative to the file. */
		{ "/etc/kube/config",
		  "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: pki/ca.crt}}]\n"
		  "users: [{name: u, user: {client-certificate: /abs/c.pem, client-key: k.pem, tokenFile: "
		  "../token}}]\n" CONTEXT,
		  "server=https://h ca_file=/etc/kube/pki/ca.crt cert_file=/abs/c.pem "
		  "key_file=/etc/kube/k.pem token_file=/etc/kube/../token source=/etc/kube/config " },
		{ "kc",
		  "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n" USER
			  CONTEXT,
		  "server=https://h ca_file=ca.crt token=t source=kc " },
		{ "/kc",
		  "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: ca.crt}}]\n" USER
			  CONTEXT,
		  "server=https://h ca_file=/ca.crt token=t source=/kc " },
		/* Data goes before files. */
		{ "kc",
		  "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority: ca.crt, "
		  "certificate-authority-data: " PEM "}}]\n"
		  "users: [{name: u, user: {client-certificate: c, client-certificate-data: " PEM
		  ", client-key: k, client-key-data: " PEM2 "}}]\n" CONTEXT,
		  "server=https://h ca_data=-----BEGIN X-----\n cert_data=-----BEGIN X-----\n "
		  "key_data=-----BEGIN Y-----\n source=kc " },
		{ "kc",
		  "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: true}}]\n" USER
			  CONTEXT,
		  "server=https://h token=t source=kc insecure " },
		/* What kubectl leaves empty or null is absent. */
		{ "kc",
		  CLUSTER
		  "users: [{name: u, user: {token: t, username: '', exec: null, tokenFile: ~, as: ''}}]\n" CONTEXT,
		  "server=https://h:1 token=t source=kc " },
		/* No user: kubectl proxy. */
		{ "kc",
		  CLUSTER "contexts: [{name: x, context: {cluster: c}}]\ncurrent-context: x\n",
		  "server=https://h:1 source=kc " },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_kube_config config;
		struct vg_kube_config copy;
		struct vg_err err = { 0 };
		char *text;
		int r = vg_kube_config_parse(rows[i].path, rows[i].text, strlen(rows[i].text),
					     &config, &err);

		if (r < 0)
			fail_msg("row %zu: %s", i, err.msg);
		text = describe(&config);
		assert_string_equal(text, rows[i].config);
		free(text);
		vg_kube_config_copy(&config, &copy);
		vg_kube_config_release(&config);
		text = describe(&copy);
		assert_string_equal(text, rows[i].config);
		free(text);
		vg_kube_config_release(&copy);
	}
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		const char *message; /* how it begins, behind "kc:" */
	} rows[] = {
		{ "", " is not a kubeconfig" },
		{ "[]", " is not a kubeconfig" },
		{ CLUSTER USER CONTEXT "---\n" CLUSTER, " is not a kubeconfig" },
		{ CLUSTER USER, " current-context is not set" },
		{ CLUSTER USER "current-context: ''\n", " current-context is not set" },
		{ CLUSTER USER "current-context: x\n",
		  " contexts: there is no entry called \"x\"" },
		{ USER CONTEXT, " clusters: there is no entry called \"c\"" },
		{ CLUSTER CONTEXT, " users: there is no entry called \"u\"" },
		{ "clusters: {}\n" USER CONTEXT, "1: clusters: must be a list" },
		{ "clusters: [c]\n" USER CONTEXT, "1: clusters: every entry must be a mapping" },
		{ "clusters: [{name: c, cluster: x}]\n" USER CONTEXT,
		  "1: cluster: must be a mapping" },
		{ "clusters: [{name: c}]\n" USER CONTEXT, "1: cluster: must be a mapping" },
		{ CLUSTER USER "contexts: [{name: x, context: {user: u}}]\ncurrent-context: x\n",
		  "3: cluster: is missing" },
		{ "clusters: [{name: c, cluster: {}}]\n" USER CONTEXT, "1: server: is missing" },
		{ "clusters: [{name: c, cluster: {server: 'h:1'}}]\n" USER CONTEXT,
		  "1: server: must be" },
		{ "clusters: [{name: c, cluster: {server: 'ftp://h'}}]\n" USER CONTEXT,
		  "1: server: must be" },
		{ "clusters: [{name: c, cluster: {server: 'https://'}}]\n" USER CONTEXT,
		  "1: server: must be" },
		{ "clusters: [{name: c, cluster: {server: 'https://u:p@h'}}]\n" USER CONTEXT,
		  "1: server: must be" },
		{ "clusters: [{name: c, cluster: {server: 'https://h/?x=1'}}]\n" USER CONTEXT,
		  "1: server: must be" },
		{ "clusters: [{name: c, cluster: {server: [h]}}]\n" USER CONTEXT,
		  "1: server: must be a text" },
		{ "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: maybe}}]\n" USER
			  CONTEXT,
		  "1: insecure-skip-tls-verify: must be true or false" },
		{ "clusters: [{name: c, cluster: {server: 'https://h', insecure-skip-tls-verify: true, "
		  "certificate-authority: ca}}]\n" USER CONTEXT,
		  "1: insecure-skip-tls-verify: does not go together" },
		{ "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: '***'}}]\n" USER
			  CONTEXT,
		  "1: certificate-authority-data: is not base64" },
		/* "x" */
		{ "clusters: [{name: c, cluster: {server: 'https://h', certificate-authority-data: eA==}}]\n" USER
			  CONTEXT,
		  "1: certificate-authority-data: does not carry PEM" },
		{ CLUSTER "users:\n- name: u\n  user:\n    exec:\n      command: aws\n" CONTEXT,
		  "6: exec: credential plugins are not run; use" },
		{ CLUSTER "users: [{name: u, user: {auth-provider: {name: oidc}}}]\n" CONTEXT,
		  "2: auth-provider: auth providers are not supported; use" },
		{ CLUSTER "users: [{name: u, user: {username: me, password: x}}]\n" CONTEXT,
		  "2: username: passwords are not supported" },
		{ CLUSTER "users: [{name: u, user: {token: t, as: root}}]\n" CONTEXT,
		  "2: as: impersonation is not supported" },
		{ CLUSTER "users: [{name: u, user: {client-certificate: c}}]\n" CONTEXT,
		  "2: client-certificate: certificate and key must be given together" },
		{ CLUSTER "users: [{name: u, user: {client-key-data: " PEM "}}]\n" CONTEXT,
		  "2: client-certificate: certificate and key must be given together" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_kube_config config = { .server = (char *)(uintptr_t) "untouched" };
		struct vg_err err = { 0 };
		int r = vg_kube_config_parse("kc", rows[i].text, strlen(rows[i].text), &config,
					     &err);

		assert_true(r < 0);
		assert_int_equal(err.code, r);
		if (strncmp(err.msg, "kc:", 3) != 0 ||
		    !vg_starts_with(err.msg + 3, rows[i].message))
			fail_msg("row %zu: \"%s\", not \"kc:%s…\"", i, err.msg, rows[i].message);
		assert_string_equal(config.server, "untouched");
	}
}

static void test_base64(void **state)
{
	static const struct {
		const char *text;
		const char *data; /* NULL: refused */
		size_t size;
	} rows[] = {
		{ "", "", 0 },
		{ "Zg==", "f", 1 },
		{ "YWI=", "ab", 2 },
		{ "Zm9v", "foo", 3 },
		{ "Zm9vYg==", "foob", 4 },
		{ "Zm9v\nYmFy\r\n \t", "foobar", 6 },
		{ "AAAA", "\0\0\0", 3 },
		{ "/+8=", "\xff\xef", 2 },
		{ "Z", NULL, 0 },
		{ "Zg", NULL, 0 },
		{ "Zg=", NULL, 0 },
		{ "Zg===", NULL, 0 },
		{ "Zm9v=", NULL, 0 },
		{ "Zg==Zg==", NULL, 0 },
		{ "=", NULL, 0 },
		{ "Zm9-", NULL, 0 },
		{ "Zm9v!", NULL, 0 },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++) {
		size_t size = 99;
		char *data = vg_base64_decode(rows[i].text, &size);

		if (!rows[i].data) {
			assert_null(data);
			assert_int_equal(size, 99);
			continue;
		}
		assert_non_null(data);
		assert_int_equal(size, rows[i].size);
		assert_memory_equal(data, rows[i].data, size + 1);
		free(data);
	}
}

static void write_file(const char *folder, const char *name, const char *text)
{
	char *path = vg_printf("%s/%s", folder, name);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
	free(path);
}

static void test_mounted(void **state)
{
	static const struct {
		const char *host;
		const char *port;
		const char *server; /* NULL: refused */
	} rows[] = {
		{ "10.0.0.1", "443", "https://10.0.0.1:443" },
		{ "fd00::1", "6443", "https://[fd00::1]:6443" },
		{ "kubernetes.default.svc", "443", "https://kubernetes.default.svc:443" },
		{ "10.0.0.1", "0", NULL },
		{ "10.0.0.1", "65536", NULL },
		{ "10.0.0.1", "https", NULL },
		{ "10.0.0.1/x?", "443", NULL },
	};
	char folder[] = "/tmp/vgpu-test-XXXXXX";
	struct vg_kube_config config;
	struct vg_err err = { 0 };
	char *path;

	(void)state;
	assert_non_null(mkdtemp(folder));
	assert_int_equal(vg_kube_config_mounted(folder, "h", "1", &config, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "/token: cannot be read"));
	write_file(folder, "token", "t");
	for (size_t i = 0; i < COUNT(rows); i++) {
		int r = vg_kube_config_mounted(folder, rows[i].host, rows[i].port, &config, &err);

		assert_int_equal(r < 0, rows[i].server == NULL);
		if (r < 0)
			continue;
		assert_string_equal(config.server, rows[i].server);
		assert_true(vg_ends_with(config.token_file, "/token"));
		assert_true(vg_starts_with(config.token_file, folder));
		assert_true(vg_ends_with(config.ca_file, "/ca.crt"));
		assert_false(config.insecure);
		vg_kube_config_release(&config);
	}
	path = vg_printf("%s/token", folder);
	unlink(path);
	free(path);
	rmdir(folder);
}

static void test_in_cluster(void **state)
{
	struct vg_kube_config config;
	struct vg_err err = { 0 };

	(void)state;
	unsetenv("KUBERNETES_SERVICE_HOST");
	assert_int_equal(vg_kube_config_in_cluster(&config, &err), -ENOENT);
	assert_non_null(strstr(err.msg, "--kubeconfig"));
}

static void test_file(void **state)
{
	char folder[] = "/tmp/vgpu-test-XXXXXX";
	struct vg_kube_config config;
	struct vg_err err = { 0 };
	char *path;

	(void)state;
	assert_non_null(mkdtemp(folder));
	path = vg_printf("%s/config", folder);
	assert_int_equal(vg_kube_config_load(path, &config, &err), -ENOENT);
	assert_non_null(strstr(err.msg, path));
	write_file(folder, "config", CLUSTER USER CONTEXT);
	assert_int_equal(vg_kube_config_load(path, &config, &err), 0);
	assert_string_equal(config.source, path);
	vg_kube_config_release(&config);
	unlink(path);
	rmdir(folder);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted),   cmocka_unit_test(test_refused),
		cmocka_unit_test(test_base64),     cmocka_unit_test(test_mounted),
		cmocka_unit_test(test_in_cluster), cmocka_unit_test(test_file),
	};

	return cmocka_run_group_tests_name("kube/config", tests, NULL, NULL);
}
