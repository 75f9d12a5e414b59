/* SPDX-License-Identifier: Apache-2.0 */
/* Where the API server is and how to convince it: kubeconfig files and mounted service accounts. */
#include "kube/config_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "yaml/yaml_tree.h"

#define SERVICE_ACCOUNT_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

#define config_cleanup vg_cleanup(vg_kube_config_release)
#define arena_cleanup  vg_cleanup(vg_arena_release)

/* Every text of the configuration, so that copying and giving back cannot miss one. */
#define CONFIG_TEXTS(X)                                                                            \
	X(server)                                                                                  \
	X(ca_file)                                                                                 \
	X(ca_data)                                                                                 \
	X(cert_file)                                                                               \
	X(cert_data)                                                                               \
	X(key_file)                                                                                \
	X(key_data)                                                                                \
	X(token_file)                                                                              \
	X(token)                                                                                   \
	X(server_name)                                                                             \
	X(proxy)                                                                                   \
	X(source)

void vg_kube_config_release(struct vg_kube_config *config)
{
	if (!config)
		return;
	/* Keys and tokens do not stay behind in freed memory. */
	if (config->key_data)
		explicit_bzero(config->key_data, strlen(config->key_data));
	if (config->token)
		explicit_bzero(config->token, strlen(config->token));
#define X(member) free(config->member);
	CONFIG_TEXTS(X)
#undef X
	*config = (struct vg_kube_config){ 0 };
}

void vg_kube_config_copy(const struct vg_kube_config *from, struct vg_kube_config *ret_config)
{
	struct vg_kube_config copy = { .insecure = from->insecure };

#define X(member) copy.member = from->member ? vg_strdup(from->member) : NULL;
	CONFIG_TEXTS(X)
#undef X
	*ret_config = copy;
}

static int base64_value(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

char *vg_base64_decode(const char *text, size_t *ret_size)
{
	vg_autofree char *out = vg_new(strlen(text) / 4 * 3 + 4);
	size_t used = 0;
	unsigned digits = 0;
	unsigned padding = 0;
	uint32_t bits = 0;

	for (const char *c = text; *c; c++) {
		int value;

		if (*c == ' ' || *c == '\t' || *c == '\n' || *c == '\r')
			continue;
		if (*c == '=') {
			padding++;
			continue;
		}
		value = base64_value(*c);
		if (value < 0 || padding)
			return NULL;
		bits = bits << 6 | (uint32_t)value;
		if (++digits % 4 == 0) {
			out[used++] = (char)(bits >> 16 & 0xff);
			out[used++] = (char)(bits >> 8 & 0xff);
			out[used++] = (char)(bits & 0xff);
		}
	}
	/* A group of two digits carries one byte, of three digits two; one digit carries nothing. */
	if (digits % 4 == 1 || padding != (4 - digits % 4) % 4)
		return NULL;
	if (digits % 4 == 2) {
		out[used++] = (char)(bits >> 4 & 0xff);
	} else if (digits % 4 == 3) {
		out[used++] = (char)(bits >> 10 & 0xff);
		out[used++] = (char)(bits >> 2 & 0xff);
	}
	out[used] = '\0';
	*ret_size = used;
	return vg_steal(out);
}

/* ---- kubeconfig ---------------------------------------------------------------------------------- */

struct reader {
	const char *path;
	struct vg_err *err;
};

static int wrong(const struct reader *in, const struct vg_yaml *at, const char *key,
		 const char *why)
{
	vg_fail(in->err, EINVAL, "%s:%u: %s: %s", in->path, at->line, key, why);
	return -EINVAL;
}

/* Writers of kubeconfigs leave what is not set empty or null. */
static bool is_empty(const struct vg_yaml *value)
{
	return value->kind == VG_YAML_SCALAR &&
	       (value->scalar[0] == '\0' || (!value->quoted && (vg_streq(value->scalar, "null") ||
								vg_streq(value->scalar, "~"))));
}

/* The text of a key; NULL when it is absent, null or empty. */
static int get_text(const struct reader *in, const struct vg_yaml *map, const char *key,
		    const char **ret_text)
{
	const struct vg_yaml *value = vg_yaml_get(map, key);

	*ret_text = NULL;
	if (!value)
		return 0;
	if (value->kind != VG_YAML_SCALAR)
		return wrong(in, value, key, "must be a text");
	if (is_empty(value))
		return 0;
	*ret_text = value->scalar;
	return 0;
}

static int copy_text(const struct reader *in, const struct vg_yaml *map, const char *key,
		     char **ret_text)
{
	const char *text;
	int r = get_text(in, map, key, &text);

	if (r == 0)
		*ret_text = text ? vg_strdup(text) : NULL;
	return r;
}

/* A path, relative to the folder of the kubeconfig. */
static int copy_path(const struct reader *in, const struct vg_yaml *map, const char *key,
		     char **ret_path)
{
	const char *slash = strrchr(in->path, '/');
	const char *text;
	int r = get_text(in, map, key, &text);

	if (r < 0)
		return r;
	if (!text)
		*ret_path = NULL;
	else if (text[0] == '/' || !slash)
		*ret_path = vg_strdup(text);
	else
		*ret_path = vg_printf("%.*s/%s", (int)(slash - in->path), in->path, text);
	return 0;
}

/* A base64 text that carries PEM. */
static int copy_data(const struct reader *in, const struct vg_yaml *map, const char *key,
		     char **ret_data)
{
	const char *text;
	size_t size;
	int r = get_text(in, map, key, &text);

	if (r < 0)
		return r;
	*ret_data = NULL;
	if (!text)
		return 0;
	*ret_data = vg_base64_decode(text, &size);
	if (!*ret_data)
		return wrong(in, vg_yaml_get(map, key), key, "is not base64");
	if (strlen(*ret_data) != size || !strstr(*ret_data, "-----BEGIN ")) {
		free(vg_steal(*ret_data));
		return wrong(in, vg_yaml_get(map, key), key, "does not carry PEM");
	}
	return 0;
}

static int copy_bool(const struct reader *in, const struct vg_yaml *map, const char *key,
		     bool *ret_value)
{
	const char *text;
	int r = get_text(in, map, key, &text);

	if (r < 0)
		return r;
	*ret_value = false;
	if (text && vg_parse_bool(VG_SPAN(text), ret_value, NULL) < 0)
		return wrong(in, vg_yaml_get(map, key), key, "must be true or false");
	return 0;
}

/* The entry called `name` of a list such as "clusters"; its part `member`. */
static int find_named(const struct reader *in, const struct vg_yaml *root, const char *list_key,
		      const char *name, const char *member, const struct vg_yaml **ret_map)
{
	const struct vg_yaml *list = vg_yaml_get(root, list_key);

	if (list && list->kind != VG_YAML_SEQUENCE)
		return wrong(in, list, list_key, "must be a list");
	for (size_t i = 0; list && i < list->item_count; i++) {
		const struct vg_yaml *entry = list->items[i];
		const struct vg_yaml *map;
		const char *entry_name;
		int r;

		if (entry->kind != VG_YAML_MAPPING)
			return wrong(in, entry, list_key, "every entry must be a mapping");
		r = get_text(in, entry, "name", &entry_name);
		if (r < 0)
			return r;
		if (!vg_streq(entry_name, name))
			continue;
		map = vg_yaml_get(entry, member);
		if (!map || map->kind != VG_YAML_MAPPING)
			return wrong(in, entry, member, "must be a mapping");
		*ret_map = map;
		return 0;
	}
	vg_fail(in->err, ENOENT, "%s: %s: there is no entry called \"%s\"", in->path, list_key,
		name);
	return -ENOENT;
}

static bool is_url(const char *text)
{
	const char *host = vg_starts_with(text, "https://")  ? text + strlen("https://")
			   : vg_starts_with(text, "http://") ? text + strlen("http://")
							     : NULL;

	return host && *host && *host != '/' && !strpbrk(host, " ?#@\r\n\t");
}

static int read_cluster(const struct reader *in, const struct vg_yaml *map,
			struct vg_kube_config *config)
{
	size_t length;
	int r;

	if ((r = copy_text(in, map, "server", &config->server)) < 0 ||
	    (r = copy_text(in, map, "tls-server-name", &config->server_name)) < 0 ||
	    (r = copy_text(in, map, "proxy-url", &config->proxy)) < 0 ||
	    (r = copy_data(in, map, "certificate-authority-data", &config->ca_data)) < 0 ||
	    (r = copy_bool(in, map, "insecure-skip-tls-verify", &config->insecure)) < 0)
		return r;
	if (!config->ca_data &&
	    (r = copy_path(in, map, "certificate-authority", &config->ca_file)) < 0)
		return r;
	if (!config->server)
		return wrong(in, map, "server", "is missing");
	if (!is_url(config->server))
		return wrong(in, map, "server", "must be http://host:port or https://host:port");
	length = strlen(config->server);
	while (config->server[length - 1] == '/')
		config->server[--length] = '\0';
	if (config->insecure && (config->ca_data || config->ca_file))
		return wrong(in, map, "insecure-skip-tls-verify",
			     "does not go together with a certificate authority");
	return 0;
}

/* Ways of authentication that need a program, a password or a disguise, and what to do instead. */
static int refuse_unsupported(const struct reader *in, const struct vg_yaml *map)
{
	static const struct {
		const char *key;
		const char *advice;
	} rows[] = {
		{ "exec", "credential plugins are not run; use a service account's token (kubectl "
			  "create token) or a client certificate" },
		{ "auth-provider",
		  "auth providers are not supported; use a service account's token "
		  "(kubectl create token) or a client certificate" },
		{ "username", "passwords are not supported; use a token or a client certificate" },
		{ "password", "passwords are not supported; use a token or a client certificate" },
		{ "as",
		  "impersonation is not supported; use the credentials of the account itself" },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct vg_yaml *value = vg_yaml_get(map, rows[i].key);

		if (value && !is_empty(value))
			return wrong(in, value, rows[i].key, rows[i].advice);
	}
	return 0;
}

static int read_user(const struct reader *in, const struct vg_yaml *map,
		     struct vg_kube_config *config)
{
	int r;

	if ((r = refuse_unsupported(in, map)) < 0 ||
	    (r = copy_text(in, map, "token", &config->token)) < 0 ||
	    (r = copy_path(in, map, "tokenFile", &config->token_file)) < 0 ||
	    (r = copy_data(in, map, "client-certificate-data", &config->cert_data)) < 0 ||
	    (r = copy_data(in, map, "client-key-data", &config->key_data)) < 0)
		return r;
	if (!config->cert_data &&
	    (r = copy_path(in, map, "client-certificate", &config->cert_file)) < 0)
		return r;
	if (!config->key_data && (r = copy_path(in, map, "client-key", &config->key_file)) < 0)
		return r;
	if ((config->cert_data || config->cert_file) != (config->key_data || config->key_file))
		return wrong(in, map, "client-certificate",
			     "certificate and key must be given together");
	return 0;
}

int vg_kube_config_parse(const char *path, const char *text, size_t size,
			 struct vg_kube_config *ret_config, struct vg_err *err)
{
	const struct reader in = { .path = path, .err = err };
	config_cleanup struct vg_kube_config config = { 0 };
	arena_cleanup struct vg_arena arena;
	const struct vg_yaml *context = NULL;
	const struct vg_yaml *cluster = NULL;
	const struct vg_yaml *user = NULL;
	struct vg_yaml **documents;
	const struct vg_yaml *root;
	const char *context_name;
	const char *cluster_name;
	const char *user_name;
	size_t count;
	int r;

	vg_arena_init(&arena);
	r = vg_yaml_parse(path, text, size, &arena, &documents, &count, err);
	if (r < 0)
		return r;
	if (count != 1 || documents[0]->kind != VG_YAML_MAPPING)
		return vg_fail(err, EINVAL, "%s: is not a kubeconfig: one YAML mapping is expected",
			       path);
	root = documents[0];
	r = get_text(&in, root, "current-context", &context_name);
	if (r < 0)
		return r;
	if (!context_name)
		return vg_fail(err, EINVAL,
			       "%s: current-context is not set; choose one with: kubectl config "
			       "use-context NAME",
			       path);
	if ((r = find_named(&in, root, "contexts", context_name, "context", &context)) < 0 ||
	    (r = get_text(&in, context, "cluster", &cluster_name)) < 0 ||
	    (r = get_text(&in, context, "user", &user_name)) < 0)
		return r;
	if (!cluster_name)
		return wrong(&in, context, "cluster", "is missing");
	if ((r = find_named(&in, root, "clusters", cluster_name, "cluster", &cluster)) < 0 ||
	    (r = read_cluster(&in, cluster, &config)) < 0)
		return r;
	/* No user is fine: kubectl proxy and test servers ask for nothing. */
	if (user_name && ((r = find_named(&in, root, "users", user_name, "user", &user)) < 0 ||
			  (r = read_user(&in, user, &config)) < 0))
		return r;
	config.source = vg_strdup(path);
	*ret_config = config;
	config = (struct vg_kube_config){ 0 };
	return 0;
}

int vg_kube_config_load(const char *path, struct vg_kube_config *ret_config, struct vg_err *err)
{
	vg_autofree char *text = NULL;
	size_t size;
	int r;

	r = vg_read_file(path, VG_LIMIT_KUBECONFIG_BYTES, &text, &size, err);
	if (r < 0)
		return r;
	r = vg_kube_config_parse(path, text, size, ret_config, err);
	explicit_bzero(text, size);
	return r;
}

/* ---- service account ----------------------------------------------------------------------------- */

int vg_kube_config_mounted(const char *folder, const char *host, const char *port,
			   struct vg_kube_config *ret_config, struct vg_err *err)
{
	config_cleanup struct vg_kube_config config = { 0 };
	uint64_t number;

	if (vg_parse_u64(VG_SPAN(port), 1, 65535, &number, err) < 0)
		return vg_err_wrap(err, -EINVAL, "KUBERNETES_SERVICE_PORT");
	/* An IPv6 address stands in brackets in a URL. */
	config.server = strchr(host, ':') ? vg_printf("https://[%s]:%s", host, port)
					  : vg_printf("https://%s:%s", host, port);
	if (!is_url(config.server))
		return vg_fail(err, EINVAL, "KUBERNETES_SERVICE_HOST: \"%s\" is no host", host);
	config.token_file = vg_printf("%s/token", folder);
	config.ca_file = vg_printf("%s/ca.crt", folder);
	if (access(config.token_file, R_OK) < 0)
		return vg_fail(err, errno,
			       "%s: cannot be read: %s; is automountServiceAccountToken off?",
			       config.token_file, strerror(errno));
	config.source = vg_strdup("in-cluster service account");
	*ret_config = config;
	config = (struct vg_kube_config){ 0 };
	return 0;
}

int vg_kube_config_in_cluster(struct vg_kube_config *ret_config, struct vg_err *err)
{
	const char *host = getenv("KUBERNETES_SERVICE_HOST");
	const char *port = getenv("KUBERNETES_SERVICE_PORT");

	if (!host || !*host || !port || !*port)
		return vg_fail(
			err, ENOENT,
			"KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is "
			"not a pod of a cluster; use --kubeconfig FILE or --snapshot FILE");
	return vg_kube_config_mounted(SERVICE_ACCOUNT_FOLDER, host, port, ret_config, err);
}
