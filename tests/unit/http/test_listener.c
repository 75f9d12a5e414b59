/* SPDX-License-Identifier: Apache-2.0 */
/* TLS: what is accepted, who is let in, and how certificates are exchanged under load. */
#include "unit/http/pki.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "http/http.h"

#define GET "GET /hello HTTP/1.1\r\nHost: x\r\n\r\n"

static char folder[] = "/tmp/vgpu-http-XXXXXX";
static struct pki_pair *ca;
static struct pki_pair *other_ca;
static struct pki_pair *first;
static struct pki_pair *second;

static const char *path_of(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

static const char *write_file(const char *name, const char *text)
{
	const char *path = path_of(name);
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
	return path;
}

static void use_pair(const struct pki_pair *cert, const struct pki_pair *key)
{
	write_file("tls.crt", cert->cert_pem);
	write_file("tls.key", key->key_pem);
}

/* ---- handlers --------------------------------------------------------------------------------- */

static void on_hello(void *ctx, struct vg_http_request *request)
{
	(void)ctx;
	vg_http_reply_text(request, 200, "hello");
}

static _Atomic(struct vg_http_request *) kept;

static void on_keep(void *ctx, struct vg_http_request *request)
{
	(void)ctx;
	atomic_store(&kept, request);
}

static struct vg_http_request *wait_kept(void)
{
	for (int i = 0; i < 5000 && !atomic_load(&kept); i++)
		usleep(1000);
	assert_non_null(atomic_load(&kept));
	return atomic_exchange(&kept, NULL);
}

static const struct vg_http_route routes[] = {
	{ "GET", "/hello", 0, on_hello },
	{ "GET", "/keep", 0, on_keep },
};

static struct vg_http_listener *listen_with(const char *client_ca)
{
	struct vg_http_options options = { .name = "test",
					   .address = "127.0.0.1:0",
					   .tls_cert = path_of("tls.crt"),
					   .tls_key = path_of("tls.key"),
					   .tls_client_ca = client_ca,
					   .routes = routes,
					   .route_count = 2,
					   .threads = 2 };
	struct vg_http_listener *listener = NULL;
	struct vg_err err = { 0 };

	if (vg_http_listen(&options, &listener, &err) < 0)
		fail_msg("%s", err.msg);
	return listener;
}

static int setup(void **state)
{
	(void)state;
	assert_non_null(mkdtemp(folder));
	ca = pki_make("ca", NULL, NULL, 1, 0);
	other_ca = pki_make("other ca", NULL, NULL, 1, 0);
	first = pki_make("first", ca, GNUTLS_KP_TLS_WWW_SERVER, 11, 1999999999);
	second = pki_make("second", ca, GNUTLS_KP_TLS_WWW_SERVER, 22, 1888888888);
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "tls.crt", "tls.key", "ca.crt",
					     "empty",   "words",   "only.key" };

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		unlink(path_of(names[i]));
	assert_int_equal(rmdir(folder), 0);
	pki_free(ca);
	pki_free(other_ca);
	pki_free(first);
	pki_free(second);
	return 0;
}

/* ---- starting --------------------------------------------------------------------------------- */

static void test_refused(void **state)
{
	struct {
		const char *cert;
		const char *key;
		const char *client_ca;
		const char *text;
	} rows[] = {
		{ "tls.crt", NULL, NULL, "test listener: TLS needs a certificate and its key" },
		{ NULL, "tls.key", NULL, "test listener: TLS needs a certificate and its key" },
		{ NULL, NULL, "ca.crt", "client certificates need TLS" },
		{ "absent", "tls.key", NULL, "absent: cannot be opened: No such file" },
		{ "tls.crt", "absent", NULL, "absent: cannot be opened: No such file" },
		{ "tls.crt", "tls.key", "absent", "absent: cannot be opened: No such file" },
		{ "empty", "tls.key", NULL, "empty: holds no PEM text" },
		{ "words", "tls.key", NULL, "words: holds no certificate" },
		{ "tls.key", "tls.key", NULL, "tls.key: holds no certificate" },
		{ "tls.crt", "words", NULL, "words" },
		{ "tls.crt", "only.key", NULL, "only.key is not the key of" },
		{ "tls.crt", "tls.key", "words", "words: holds no certificate" },
		{ "tls.crt", "tls.key", "tls.key", "tls.key: holds no certificate" },
	};

	(void)state;
	use_pair(first, first);
	write_file("ca.crt", ca->cert_pem);
	write_file("only.key", second->key_pem);
	write_file("empty", "");
	write_file("words", "no certificate here\n");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_http_options options = {
			.name = "test",
			.address = "127.0.0.1:0",
			.tls_cert = rows[i].cert ? path_of(rows[i].cert) : NULL,
			.tls_key = rows[i].key ? path_of(rows[i].key) : NULL,
			.tls_client_ca = rows[i].client_ca ? path_of(rows[i].client_ca) : NULL,
			.routes = routes,
			.route_count = 2,
			.threads = 1
		};
		struct vg_http_listener *listener = NULL;
		struct vg_err err = { 0 };

		assert_true(vg_http_listen(&options, &listener, &err) < 0);
		assert_null(listener);
		if (!strstr(err.msg, rows[i].text))
			fail_msg("row %zu: no \"%s\" in \"%s\"", i, rows[i].text, err.msg);
	}
}

/* ---- new certificates ------------------------------------------------------------------------- */

static void ask(uint16_t port, const struct pki_pair *own, uint8_t serial, int status,
		const char *body)
{
	static struct wire_reply reply;
	struct pki_client *client = pki_connect(port, own);

	assert_int_equal(client->serial, serial);
	pki_send(client, GET);
	pki_read(client, &reply);
	if (reply.status != status || (body && !strstr(reply.body, body)))
		fail_msg("%d %s, want %d %s", reply.status, reply.body, status, body);
	pki_close(client);
}

static void test_reload(void **state)
{
	static struct wire_reply reply;
	struct vg_http_listener *listener;
	struct vg_http_request *request;
	struct pki_client *idle;
	struct pki_client *busy;
	struct vg_err err = { 0 };
	uint16_t port;

	(void)state;
	use_pair(first, first);
	listener = listen_with(NULL);
	port = vg_http_port(listener);
	assert_int_equal(vg_http_tls_expires_unix_s(listener), 1999999999);
	idle = pki_connect(port, NULL);
	pki_send(idle, GET);
	pki_read(idle, &reply);
	assert_int_equal(reply.status, 200);
	assert_null(wire_header(&reply, "Connection"));
	busy = pki_connect(port, NULL);
	pki_send(busy, "GET /keep HTTP/1.1\r\nHost: x\r\n\r\n");
	request = wait_kept();

	use_pair(second, second);
	ask(port, NULL, 11, 200, "hello"); /* nothing happens by itself */
	if (vg_http_reload_tls(listener, &err) < 0)
		fail_msg("%s", err.msg);
	assert_int_equal(vg_http_tls_expires_unix_s(listener), 1888888888);
	for (int i = 0; i < 20; i++)
		ask(port, NULL, 22, 200, "hello");

	/* Who was connected is served, and then asked to come back. */
	assert_int_equal(idle->serial, 11);
	pki_send(idle, GET);
	pki_read(idle, &reply);
	assert_int_equal(reply.status, 200);
	assert_string_equal(wire_header(&reply, "Connection"), "close");
	vg_http_reply_text(request, 200, "kept");
	pki_read(busy, &reply);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "kept\n");
	pki_close(idle);
	pki_close(busy);
	vg_http_stop(listener, 1000);
}

static void test_broken_reload(void **state)
{
	struct vg_http_listener *listener;
	struct vg_err err = { 0 };
	uint16_t port;

	(void)state;
	use_pair(first, first);
	listener = listen_with(NULL);
	port = vg_http_port(listener);
	for (int i = 0; i < 3; i++) {
		use_pair(second, first); /* half of an update */
		assert_int_equal(vg_http_reload_tls(listener, &err), -EINVAL);
		assert_non_null(strstr(err.msg, "test listener keeps its certificate: "));
		assert_non_null(strstr(err.msg, "is not the key of"));
		ask(port, NULL, 11, 200, "hello");
	}
	use_pair(second, second);
	assert_int_equal(vg_http_reload_tls(listener, &err), 0);
	ask(port, NULL, 22, 200, "hello");
	vg_http_stop(listener, 1000);
}

/* Held connections keep their generations; without a bound each reload would add threads. */
static void test_reload_bound(void **state)
{
	struct pki_client *held[32];
	struct vg_http_listener *listener;
	struct vg_err err = { 0 };
	int count = 0;
	int r = 0;

	(void)state;
	use_pair(first, first);
	listener = listen_with(NULL);
	while (count < 32) {
		held[count++] = pki_connect(vg_http_port(listener), NULL);
		r = vg_http_reload_tls(listener, &err);
		if (r < 0)
			break;
	}
	assert_int_equal(r, -EBUSY);
	assert_non_null(strstr(err.msg, "still have open connections"));
	for (int i = 0; i < count; i++)
		pki_close(held[i]);
	for (int i = 0; i < 1000 && r < 0; i++) {
		r = vg_http_reload_tls(listener, &err);
		usleep(5000);
	}
	assert_int_equal(r, 0);
	ask(vg_http_port(listener), NULL, 11, 200, "hello");
	vg_http_stop(listener, 1000);
}

static atomic_bool asking;
static atomic_uint asked;

static void *ask_on(void *argument)
{
	struct wire_reply *reply = vg_new(sizeof(*reply));
	uint16_t port = *(uint16_t *)argument;
	struct pki_client *client = NULL;

	while (atomic_load(&asking)) {
		const char *connection;

		if (!client)
			client = pki_connect(port, NULL);
		pki_send(client, GET);
		pki_read(client, reply);
		assert_int_equal(reply->status, 200);
		atomic_fetch_add(&asked, 1);
		connection = wire_header(reply, "Connection");
		if (connection && strcmp(connection, "close") == 0) {
			pki_close(client);
			client = NULL;
		}
	}
	if (client)
		pki_close(client);
	free(reply);
	return NULL;
}

/* Not one request is lost. */
static void test_reload_under_load(void **state)
{
	struct vg_http_listener *listener;
	pthread_t threads[4];
	uint16_t port;

	(void)state;
	use_pair(first, first);
	listener = listen_with(NULL);
	port = vg_http_port(listener);
	atomic_store(&asking, true);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_on, &port), 0);
	for (int i = 0; i < 10; i++) {
		struct vg_err err = { 0 };
		unsigned before = atomic_load(&asked);
		int r;

		while (atomic_load(&asked) < before + 20)
			usleep(1000);
		use_pair(i % 2 ? first : second, i % 2 ? first : second);
		do {
			r = vg_http_reload_tls(listener, &err);
			usleep(1000);
		} while (r == -EBUSY);
		if (r < 0)
			fail_msg("%s", err.msg);
	}
	atomic_store(&asking, false);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	vg_http_stop(listener, 1000);
}

static unsigned open_files(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned count = 0;

	assert_non_null(dir);
	while (readdir(dir))
		count++;
	closedir(dir);
	return count;
}

static void test_nothing_left_open(void **state)
{
	unsigned before = open_files();

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct vg_http_listener *listener;

		use_pair(first, first);
		listener = listen_with(NULL);
		ask(vg_http_port(listener), NULL, 11, 200, "hello");
		assert_int_equal(vg_http_reload_tls(listener, NULL), 0);
		ask(vg_http_port(listener), NULL, 11, 200, "hello");
		vg_http_stop(listener, 1000);
	}
	assert_int_equal(open_files(), before);
}

static void test_reload_without_tls(void **state)
{
	struct vg_http_options options = { .name = "plain",
					   .address = "127.0.0.1:0",
					   .routes = routes,
					   .route_count = 2,
					   .threads = 1 };
	struct vg_http_listener *listener;
	struct vg_err err = { 0 };

	(void)state;
	assert_int_equal(vg_http_listen(&options, &listener, &err), 0);
	assert_int_equal(vg_http_reload_tls(listener, &err), -EINVAL);
	assert_string_equal(err.msg, "plain listener: it has no certificate");
	assert_int_equal(vg_http_tls_expires_unix_s(listener), 0);
	vg_http_stop(listener, 1000);
}

/* ---- client certificates ---------------------------------------------------------------------- */

static void test_client_certificates(void **state)
{
	struct pki_pair *good = pki_make("good", ca, GNUTLS_KP_TLS_WWW_CLIENT, 1, 0);
	struct pki_pair *foreign = pki_make("foreign", other_ca, GNUTLS_KP_TLS_WWW_CLIENT, 1, 0);
	struct pki_pair *old = pki_make("old", ca, GNUTLS_KP_TLS_WWW_CLIENT, 1, time(NULL) - 60);
	struct vg_http_listener *listener;
	struct vg_err err = { 0 };
	uint16_t port;

	(void)state;
	use_pair(first, first);
	write_file("ca.crt", ca->cert_pem);
	listener = listen_with(path_of("ca.crt"));
	port = vg_http_port(listener);
	ask(port, good, 11, 200, "hello");
	ask(port, NULL, 11, 403, "this listener wants a client certificate and got none");
	ask(port, foreign, 11, 403, "the client certificate is not accepted");
	ask(port, old, 11, 403, "expired");
	/* A server's certificate is not a client's. */
	ask(port, second, 11, 403, "the client certificate is not accepted");

	/* The CA is exchanged with the rest. */
	write_file("ca.crt", other_ca->cert_pem);
	if (vg_http_reload_tls(listener, &err) < 0)
		fail_msg("%s", err.msg);
	ask(port, good, 11, 403, "the client certificate is not accepted");
	ask(port, foreign, 11, 200, "hello");
	vg_http_stop(listener, 1000);
	pki_free(good);
	pki_free(foreign);
	pki_free(old);
}

/* The check is made once per connection and holds for all of its requests. */
static void test_client_keeps_connection(void **state)
{
	static struct wire_reply reply;
	struct pki_pair *good = pki_make("good", ca, GNUTLS_KP_TLS_WWW_CLIENT, 1, 0);
	struct vg_http_listener *listener;
	struct pki_client *client;

	(void)state;
	use_pair(first, first);
	write_file("ca.crt", ca->cert_pem);
	listener = listen_with(path_of("ca.crt"));
	client = pki_connect(vg_http_port(listener), good);
	for (int i = 0; i < 5; i++) {
		pki_send(client, GET);
		pki_read(client, &reply);
		assert_int_equal(reply.status, 200);
	}
	pki_close(client);
	client = pki_connect(vg_http_port(listener), NULL);
	for (int i = 0; i < 5; i++) {
		pki_send(client, GET);
		pki_read(client, &reply);
		assert_int_equal(reply.status, 403);
	}
	pki_close(client);
	vg_http_stop(listener, 1000);
	pki_free(good);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_reload),
		cmocka_unit_test(test_broken_reload),
		cmocka_unit_test(test_reload_bound),
		cmocka_unit_test(test_reload_under_load),
		cmocka_unit_test(test_nothing_left_open),
		cmocka_unit_test(test_reload_without_tls),
		cmocka_unit_test(test_client_certificates),
		cmocka_unit_test(test_client_keeps_connection),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
