/* SPDX-License-Identifier: Apache-2.0 */
/* Requests over a real socket: what a well-behaved client gets, and what the others get. */
#include "unit/http/wire.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/mem.h"
#include "http/http.h"

#define BODY_MAX 1000
#define BIG_MAX  (8u << 20)

static struct vg_http_listener *listener;
static uint16_t port;

/* ---- handlers --------------------------------------------------------------------------------- */

/* "POST /echo?q text/plain 5:hello" */
static void on_echo(void *ctx, struct vg_http_request *request)
{
	char *text;

	(void)ctx;
	assert_int_equal(request->body[request->body_size], '\0');
	assert_true(request->received_ns <= vg_clock_mono_ns());
	text = vg_printf("%s %s?%s %s %zu:%s", request->method, request->path, request->query,
			 request->content_type, request->body_size, request->body);
	vg_http_reply(request, 200, "text/plain", text, strlen(text));
}

static void on_size(void *ctx, struct vg_http_request *request)
{
	char *text = vg_printf("%zu", request->body_size);

	(void)ctx;
	vg_http_reply(request, 200, "text/plain", text, strlen(text));
}

static void on_nothing(void *ctx, struct vg_http_request *request)
{
	(void)ctx;
	vg_http_reply(request, 200, "text/plain", NULL, 0);
}

static void *reply_later(void *argument)
{
	struct vg_http_request *request = argument;

	if (strcmp(request->query, "slow") == 0)
		usleep(20000);
	vg_http_reply_text(request, 201, "later");
	return NULL;
}

static void on_later(void *ctx, struct vg_http_request *request)
{
	pthread_t thread;

	(void)ctx;
	assert_int_equal(pthread_create(&thread, NULL, reply_later, request), 0);
	pthread_detach(thread);
}

/* Keeps the request until somebody asks for it. */
static _Atomic(struct vg_http_request *) kept;

static void on_keep(void *ctx, struct vg_http_request *request)
{
	(void)ctx;
	atomic_store(&kept, request);
}

/* Busy when the listener gives up on it, and not done afterwards. */
static atomic_bool drowsing;

static void on_drowse(void *ctx, struct vg_http_request *request)
{
	atomic_store(&drowsing, true);
	usleep(200000);
	on_keep(ctx, request);
}

static struct vg_http_request *wait_kept(void)
{
	for (int i = 0; i < 5000 && !atomic_load(&kept); i++)
		usleep(1000);
	assert_non_null(atomic_load(&kept));
	return atomic_exchange(&kept, NULL);
}

static const struct vg_http_route routes[] = {
	{ "POST", "/echo", BODY_MAX, on_echo },   { "GET", "/echo", 0, on_echo },
	{ "POST", "/size", BIG_MAX, on_size },    { "GET", "/nothing", 0, on_nothing },
	{ "POST", "/later", BODY_MAX, on_later }, { "POST", "/keep", BODY_MAX, on_keep },
	{ "GET", "/drowse", 0, on_drowse },
};

/* ---- what the observer heard ------------------------------------------------------------------ */

#define SEEN_MAX 4096

static pthread_mutex_t seen_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char path[16];
	unsigned status;
} seen[SEEN_MAX];
static unsigned seen_count;

static void on_seen(void *ctx, const char *path, unsigned status, int64_t took_ns)
{
	(void)ctx;
	assert_true(took_ns >= 0);
	pthread_mutex_lock(&seen_lock);
	assert_true(seen_count < SEEN_MAX);
	snprintf(seen[seen_count].path, sizeof(seen[0].path), "%s", path);
	seen[seen_count++].status = status;
	pthread_mutex_unlock(&seen_lock);
}

static unsigned count_seen(const char *path, unsigned status)
{
	unsigned count = 0;

	pthread_mutex_lock(&seen_lock);
	for (unsigned i = 0; i < seen_count; i++)
		if (strcmp(seen[i].path, path) == 0 && seen[i].status == status)
			count++;
	pthread_mutex_unlock(&seen_lock);
	return count;
}

/* The observer runs behind the reply. */
static void wait_seen(const char *path, unsigned status, unsigned count)
{
	for (int i = 0; i < 5000 && count_seen(path, status) < count; i++)
		usleep(1000);
	assert_int_equal(count_seen(path, status), count);
}

static void forget_seen(void)
{
	usleep(20000);
	pthread_mutex_lock(&seen_lock);
	seen_count = 0;
	pthread_mutex_unlock(&seen_lock);
}

static int start(void **state)
{
	struct vg_http_options options = { .name = "test",
					   .address = "127.0.0.1:0",
					   .routes = routes,
					   .route_count = sizeof(routes) / sizeof(routes[0]),
					   .observer = on_seen,
					   .threads = 2 };
	struct vg_err err = { 0 };

	(void)state;
	if (vg_http_listen(&options, &listener, &err) < 0)
		fail_msg("%s", err.msg);
	port = vg_http_port(listener);
	return 0;
}

static int stop(void **state)
{
	(void)state;
	vg_http_stop(listener, 1000);
	listener = NULL;
	return 0;
}

/* ---- one request, one reply ------------------------------------------------------------------- */

struct row {
	const char *what;
	const char *request;
	int status;
	const char *body; /* all of it; NULL = any */
	const char *header;
	const char *value;
};

#define HOST "Host: x\r\n"

static void test_replies(void **state)
{
	static const struct row rows[] = {
		{ "get", "GET /echo HTTP/1.1\r\n" HOST "\r\n", 200,
		  "GET /echo?  0:", "Content-Type", "text/plain" },
		{ "query", "GET /echo?node=a,b%2Cc&limit=3 HTTP/1.1\r\n" HOST "\r\n", 200,
		  "GET /echo?node=a,b%2Cc&limit=3  0:", NULL, NULL },
		{ "head", "HEAD /echo HTTP/1.1\r\n" HOST "\r\n", 200, "", "Content-Length", "15" },
		{ "http 1.0", "GET /echo HTTP/1.0\r\n\r\n", 200, "GET /echo?  0:", NULL, NULL },
		{ "post",
		  "POST /echo HTTP/1.1\r\n" HOST
		  "Content-Type: application/json\r\nContent-Length: 5\r\n\r\nhello",
		  200, "POST /echo? application/json 5:hello", NULL, NULL },
		{ "chunks",
		  "POST /echo HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
		  200, "POST /echo?  5:hello", NULL, NULL },
		{ "no body", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 0\r\n\r\n", 200,
		  "POST /echo?  0:", NULL, NULL },
		{ "empty reply", "GET /nothing HTTP/1.1\r\n" HOST "\r\n", 200, "", "Content-Length",
		  "0" },
		{ "later", "POST /later HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx", 201,
		  "later\n", "Content-Type", "text/plain; charset=utf-8" },

		{ "no such path", "GET /nope HTTP/1.1\r\n" HOST "\r\n", 404,
		  "there is no /nope on this listener (test)\n", NULL, NULL },
		{ "no such path, with a body",
		  "POST /nope HTTP/1.1\r\n" HOST "Content-Length: 5\r\n\r\nhello", 404,
		  "there is no /nope on this listener (test)\n", "Connection", NULL },
		{ "wrong method", "DELETE /echo HTTP/1.1\r\n" HOST "\r\n", 405,
		  "/echo answers POST, GET, HEAD, not DELETE\n", "Allow", "POST, GET, HEAD" },
		{ "get for post", "GET /later HTTP/1.1\r\n" HOST "\r\n", 405,
		  "/later answers POST, not GET\n", "Allow", "POST" },
		{ "body for get", "GET /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx", 413,
		  "the body of /echo may have 0 bytes; this one has 1\n", NULL, NULL },
		{ "long body that waits to be asked for",
		  "POST /echo HTTP/1.1\r\n" HOST
		  "Content-Length: 1001\r\nExpect: 100-continue\r\n\r\n",
		  413, "the body of /echo may have 1000 bytes; this one has 1001\n", NULL, NULL },
		{ "body beyond all measure",
		  "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 99999999999\r\n\r\n", 413,
		  "the body of /echo may have 1000 bytes; this one has 99999999999\n", "Connection",
		  "close" },

		{ "length that is no number",
		  "POST /echo HTTP/1.1\r\n" HOST "Content-Length: five\r\n\r\nhello", 400, NULL,
		  NULL, NULL },
		{ "negative length", "POST /echo HTTP/1.1\r\n" HOST "Content-Length: -1\r\n\r\n",
		  400, NULL, NULL, NULL },
		{ "chunk that is no number",
		  "POST /echo HTTP/1.1\r\n" HOST
		  "Transfer-Encoding: chunked\r\n\r\nzz\r\nhello\r\n",
		  400, NULL, NULL, NULL },
		{ "no request at all", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 0,
		  NULL, NULL, NULL },
		{ "no HTTP", "hello\r\n\r\n", 0, NULL, NULL, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct row *row = &rows[i];
		static struct wire_reply reply;
		size_t size = strlen(row->request);
		const char *value;

		/* A TLS hello, as a client sends it that took this port for another. */
		if (row->request[0] == '\x16')
			size = 15;
		wire_ask(port, row->request, size, &reply);
		if (reply.status != row->status)
			fail_msg("%s: %d, want %d: %s%s", row->what, reply.status, row->status,
				 reply.head, reply.body);
		if (row->body && strcmp(reply.body, row->body) != 0)
			fail_msg("%s: \"%s\", want \"%s\"", row->what, reply.body, row->body);
		if (!row->header)
			continue;
		value = wire_header(&reply, row->header);
		if (!value != !row->value || (value && strcmp(value, row->value) != 0))
			fail_msg("%s: %s is \"%s\", want \"%s\"", row->what, row->header, value,
				 row->value);
	}
}

/* A body over the limit is read to its end, so that the answer arrives and the connection stays. */
static void test_long_body(void **state)
{
	static struct wire_reply reply;
	char *body = vg_new(2u << 20);
	int fd = wire_connect(port);

	(void)state;
	memset(body, 'x', 2u << 20);
	for (int round = 0; round < 2; round++) {
		char head[128];

		snprintf(head, sizeof(head),
			 "POST /echo HTTP/1.1\r\n" HOST "Content-Length: %u\r\n\r\n", 2u << 20);
		wire_send(fd, head, strlen(head));
		wire_send(fd, body, 2u << 20);
		wire_read(fd, &reply);
		assert_int_equal(reply.status, 413);
		assert_string_equal(
			reply.body,
			"the body of /echo may have 1000 bytes; this one has 2097152\n");
	}
	close(fd);

	/* The same without a length in front. */
	fd = wire_connect(port);
	wire_text(fd,
		  "POST /echo HTTP/1.1\r\n" HOST "Transfer-Encoding: chunked\r\n\r\n200000\r\n");
	wire_send(fd, body, 2u << 20);
	wire_send(fd, "\r\n0\r\n\r\n", 7);
	wire_read(fd, &reply);
	assert_int_equal(reply.status, 413);
	assert_string_equal(reply.body, "the body of /echo may have 1000 bytes\n");
	close(fd);
	free(body);
}

static void test_large_body(void **state)
{
	static struct wire_reply reply;
	size_t size = BIG_MAX;
	char *body = vg_new(size);
	char head[128];
	int fd = wire_connect(port);

	(void)state;
	memset(body, 'x', size);
	snprintf(head, sizeof(head), "POST /size HTTP/1.1\r\n" HOST "Content-Length: %zu\r\n\r\n",
		 size);
	wire_send(fd, head, strlen(head));
	wire_send(fd, body, size);
	wire_read(fd, &reply);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "8388608");
	close(fd);
	free(body);
}

/* curl and Go hold a body back until they are asked for it. */
static void test_expect(void **state)
{
	static struct wire_reply reply;
	static const char head[] =
		"POST /echo HTTP/1.1\r\n" HOST "Content-Length: 5\r\nExpect: 100-continue\r\n\r\n";
	int fd = wire_connect(port);

	(void)state;
	for (int round = 0; round < 3; round++) {
		wire_send(fd, head, sizeof(head) - 1);
		wire_read(fd, &reply);
		assert_int_equal(reply.status, 100);
		wire_send(fd, "hello", 5);
		wire_read(fd, &reply);
		assert_int_equal(reply.status, 200);
		assert_string_equal(reply.body, "POST /echo?  5:hello");
	}
	close(fd);
}

static void test_keep_alive(void **state)
{
	static struct wire_reply reply;
	static const char both[] = "POST /later HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx"
				   "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\ny";
	int fd = wire_connect(port);

	(void)state;
	for (int round = 0; round < 50; round++) {
		wire_send(fd, both, sizeof(both) - 1);
		wire_read(fd, &reply);
		assert_int_equal(reply.status, 201);
		wire_read(fd, &reply);
		assert_int_equal(reply.status, 200);
		assert_string_equal(reply.body, "POST /echo?  1:y");
	}
	close(fd);
}

/* A header that does not fit is answered by the library; the listener lives on. */
static void test_long_header(void **state)
{
	static struct wire_reply reply;
	size_t size = VG_LIMIT_HTTP_HEADER_BYTES * 2;
	char *request = vg_new(size + 1);
	int used = snprintf(request, size, "GET /echo HTTP/1.1\r\n" HOST "X: ");

	(void)state;
	memset(request + used, 'x', size - (size_t)used);
	wire_ask(port, request, size, &reply);
	assert_in_range(reply.status, 400, 499);
	memset(request, 'x', size);
	memcpy(request, "GET /", 5);
	wire_ask(port, request, size, &reply);
	assert_in_range(reply.status, 400, 499);
	free(request);
	wire_ask(port, "GET /echo HTTP/1.0\r\n\r\n", 22, &reply);
	assert_int_equal(reply.status, 200);
}

/* ---- many at once ----------------------------------------------------------------------------- */

static void *ask_often(void *argument)
{
	struct wire_reply *reply = vg_new(sizeof(*reply));
	unsigned number = *(unsigned *)argument;

	for (unsigned i = 0; i < 40; i++) {
		const char *query = (i + number) % 4 == 0 ? "slow" : "";
		char request[128];

		snprintf(request, sizeof(request),
			 "POST /%s?%s HTTP/1.1\r\n" HOST "Content-Length: 3\r\n\r\nabc",
			 i % 2 ? "later" : "echo", query);
		wire_ask(port, request, strlen(request), reply);
		assert_int_equal(reply->status, i % 2 ? 201 : 200);
	}
	free(reply);
	return NULL;
}

static void test_many(void **state)
{
	pthread_t threads[8];
	unsigned numbers[8];

	(void)state;
	forget_seen();
	for (unsigned i = 0; i < 8; i++) {
		numbers[i] = i;
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, &numbers[i]), 0);
	}
	for (unsigned i = 0; i < 8; i++)
		pthread_join(threads[i], NULL);
	wait_seen("/later", 201, 8 * 20);
	wait_seen("/echo", 200, 8 * 20);
}

/* More connections than the limit wait their turn; none is lost. */
static void test_connection_limit(void **state)
{
	enum { MORE = VG_LIMIT_HTTP_CONNECTIONS + 20 };
	static int fds[MORE];
	static struct wire_reply reply;

	(void)state;
	for (int i = 0; i < MORE; i++)
		fds[i] = wire_connect(port);
	wire_text(fds[0], "GET /echo HTTP/1.1\r\n" HOST "\r\n");
	wire_read(fds[0], &reply);
	assert_int_equal(reply.status, 200);
	for (int i = 0; i < MORE - 1; i++)
		close(fds[i]);
	wire_text(fds[MORE - 1], "GET /echo HTTP/1.1\r\n" HOST "\r\n");
	wire_read(fds[MORE - 1], &reply);
	assert_int_equal(reply.status, 200);
	close(fds[MORE - 1]);
}

static void on_nap(void *ctx, struct vg_http_request *request)
{
	(void)ctx;
	usleep(50000);
	vg_http_reply_text(request, 200, "");
}

/*
 * Many connections become ready while the one thread is busy. libmicrohttpd's epoll loop hangs when
 * they are exactly 128 (see generation_start()).
 */
static void test_all_at_once(void **state)
{
	static const unsigned counts[] = { 127, 128, 129, 256 };
	static const struct vg_http_route nap_routes[] = { { "GET", "/nap", 0, on_nap },
							   { "GET", "/nothing", 0, on_nothing } };
	static const char nap[] = "GET /nap HTTP/1.1\r\n" HOST "\r\n";
	static const char ask[] = "GET /nothing HTTP/1.1\r\n" HOST "\r\n";
	struct vg_http_options options = { .name = "nap",
					   .address = "127.0.0.1:0",
					   .routes = nap_routes,
					   .route_count = 2,
					   .threads = 1 };
	static struct wire_reply reply;
	struct vg_http_listener *napping;
	int fds[256];
	int sleeper;

	(void)state;
	assert_int_equal(vg_http_listen(&options, &napping, NULL), 0);
	sleeper = wire_connect(vg_http_port(napping));
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		for (unsigned n = 0; n < counts[i]; n++) {
			fds[n] = wire_connect(vg_http_port(napping));
			wire_text(fds[n], ask);
			wire_read(fds[n], &reply);
			assert_int_equal(reply.status, 200);
		}
		wire_text(sleeper, nap);
		usleep(10000);
		for (unsigned n = 0; n < counts[i]; n++)
			wire_text(fds[n], ask);
		for (unsigned n = 0; n < counts[i]; n++) {
			wire_read(fds[n], &reply);
			assert_int_equal(reply.status, 200);
			close(fds[n]);
		}
		wire_read(sleeper, &reply);
		assert_int_equal(reply.status, 200);
	}
	close(sleeper);
	vg_http_stop(napping, 1000);
}

/* All bodies of a listener together are bounded, and what is gone is given back. */
static void test_bodies_limit(void **state)
{
	struct vg_http_options options = { .name = "tight",
					   .address = "127.0.0.1:0",
					   .routes = routes,
					   .route_count = sizeof(routes) / sizeof(routes[0]),
					   .threads = 1,
					   .bodies_max = 4000 };
	static const char head[] = "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1000\r\n\r\n";
	static struct wire_reply reply;
	struct vg_http_listener *tight;
	char part[1000];
	int fds[5];

	(void)state;
	memset(part, 'x', sizeof(part));
	assert_int_equal(vg_http_listen(&options, &tight, NULL), 0);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			fds[i] = wire_connect(vg_http_port(tight));
			wire_text(fds[i], head);
			wire_send(fds[i], part, 900);
		}
		usleep(50000);
		fds[4] = wire_connect(vg_http_port(tight));
		wire_text(fds[4], head);
		wire_send(fds[4], part, 1000);
		wire_read(fds[4], &reply);
		assert_int_equal(reply.status, 503);
		assert_string_equal(reply.body,
				    "the requests in flight have 4000 bytes already; try again\n");
		/* The others are not hurt. */
		wire_send(fds[0], part, 100);
		wire_read(fds[0], &reply);
		assert_int_equal(reply.status, 200);
		for (int i = 0; i < 5; i++)
			close(fds[i]);
		usleep(50000);
	}
	vg_http_stop(tight, 1000);
}

/* ---- those who do not wait -------------------------------------------------------------------- */

static void test_client_gone(void **state)
{
	struct vg_http_request *request;
	int fd = wire_connect(port);

	(void)state;
	forget_seen();
	wire_text(fd, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
	request = wait_kept();
	close(fd);
	assert_string_equal(request->body, "x");
	vg_http_reply_text(request, 200, "anybody there?");
	wait_seen("/keep", 200, 1);
}

static void test_client_stops_in_the_middle(void **state)
{
	int fd = wire_connect(port);

	(void)state;
	forget_seen();
	wire_text(fd, "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 9\r\n\r\nx");
	usleep(20000);
	close(fd);
	wait_seen("/echo", 0, 1);
}

/* ---- the end ---------------------------------------------------------------------------------- */

static void *stop_now(void *argument)
{
	vg_http_stop(listener, *(unsigned *)argument);
	return NULL;
}

/* Who is being served is served to the end; nobody new gets in. */
static void test_stop_drains(void **state)
{
	static struct wire_reply reply;
	struct vg_http_request *request;
	unsigned drain_ms = 20000;
	pthread_t thread;
	int fd;

	start(state);
	fd = wire_connect(port);
	wire_text(fd, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
	request = wait_kept();
	assert_int_equal(pthread_create(&thread, NULL, stop_now, &drain_ms), 0);
	usleep(50000);
	vg_http_reply_text(request, 200, "served");
	wire_read(fd, &reply);
	assert_int_equal(reply.status, 200);
	assert_string_equal(reply.body, "served\n");
	assert_string_equal(wire_header(&reply, "Connection"), "close");
	assert_true(wire_at_end(fd));
	pthread_join(thread, NULL);
	close(fd);
}

/* A handler that is too slow: the client hears so, and the late reply hurts nobody. */
static void test_stop_gives_up(void **state)
{
	static struct wire_reply reply;
	struct vg_http_request *request;
	int64_t began_ns;
	int fd;

	start(state);
	fd = wire_connect(port);
	wire_text(fd, "POST /keep HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
	request = wait_kept();
	began_ns = vg_clock_mono_ns();
	vg_http_stop(listener, 50);
	assert_true(vg_clock_mono_ns() - began_ns >= 50 * VG_NS_PER_MS);
	wire_read(fd, &reply);
	assert_int_equal(reply.status, 503);
	assert_string_equal(reply.body, "the daemon is stopping\n");
	assert_string_equal(request->body, "x");
	assert_string_equal(request->path, "/keep");
	vg_http_reply_text(request, 200, "too late");
	close(fd);
}

static void test_stop_while_busy(void **state)
{
	static struct wire_reply reply;
	int fd;

	start(state);
	fd = wire_connect(port);
	wire_text(fd, "GET /drowse HTTP/1.1\r\n" HOST "\r\n");
	while (!atomic_load(&drowsing))
		usleep(1000);
	vg_http_stop(listener, 10);
	wire_read(fd, &reply);
	assert_int_equal(reply.status, 503);
	vg_http_reply_text(wait_kept(), 200, "too late");
	close(fd);
}

static void test_stop_null(void **state)
{
	(void)state;
	vg_http_stop(NULL, 0);
}

int main(void)
{
	const struct CMUnitTest serving[] = {
		cmocka_unit_test(test_replies),
		cmocka_unit_test(test_long_body),
		cmocka_unit_test(test_large_body),
		cmocka_unit_test(test_expect),
		cmocka_unit_test(test_keep_alive),
		cmocka_unit_test(test_long_header),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_connection_limit),
		cmocka_unit_test(test_all_at_once),
		cmocka_unit_test(test_bodies_limit),
		cmocka_unit_test(test_client_gone),
		cmocka_unit_test(test_client_stops_in_the_middle),
	};
	const struct CMUnitTest ending[] = {
		cmocka_unit_test(test_stop_drains),
		cmocka_unit_test(test_stop_gives_up),
		cmocka_unit_test(test_stop_while_busy),
		cmocka_unit_test(test_stop_null),
	};
	int failed = cmocka_run_group_tests_name("serving", serving, start, stop);

	return failed + cmocka_run_group_tests_name("ending", ending, NULL, NULL);
}
