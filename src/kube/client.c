/* SPDX-License-Identifier: Apache-2.0 */
#include "kube/client_internal.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <curl/curl.h>
#include <jansson.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/credentials_internal.h"
#include "kube/json_internal.h"
#include "kube/retry_internal.h"
#include "vgpu/version.h"

/*
 * A peer that vanished without a word (its host lost power, a firewall forgot us) is noticed by TCP:
 * the first probe after 5 s of silence, one every 3 s, and the end 12 s after the last sign of life.
 */
#define KEEPALIVE_IDLE_S     5L
#define KEEPALIVE_INTERVAL_S 3L
#define KEEPALIVE_PROBES     3
#define PEER_SILENT_MS       12000

/* Easy handles kept for reuse, and connections: binds, two watches, a little room. */
#define POOL_MAX (VG_LIMIT_BIND_PARALLEL + 8)

#define RECEIVE_BYTES (128L << 10)

struct vg_call {
	struct vg_client *client;
	struct vg_call *next;
	struct vg_call *previous;
	struct vg_call_spec spec;
	CURL *easy;
	struct curl_slist *headers;
	struct vg_buf body;
	char error[CURL_ERROR_SIZE];
	const char *cause; /* our own reason to end it; NULL */
	int64_t started_ns;
	int64_t answered_ns; /* the status line was there; 0 before */
	int64_t heard_ns;    /* the last byte */
	int32_t retry_after_ms;
};

struct vg_client {
	const struct vg_kube_config *config;
	struct vg_credentials credentials;
	int32_t connect_ms;
	char *base_url; /* with the certificate's name as the host, if that is another */
	struct curl_slist *connect_to; /* "HOST:PORT:REAL-HOST:REAL-PORT"; NULL */
	CURLM *multi;
	struct vg_call *calls;
	CURL *idle[POOL_MAX];
	size_t idle_count;
	/* The connection that last proved to work, and when. */
	long alive_port;
	int64_t alive_ns;
};

/* A refused option is a mistake of ours or a libcurl without memory: nothing to go on with. */
static void option_failed(const char *option, CURLcode code)
{
	vg_error("kube", "libcurl refused an option", VG_S("option", option),
		 VG_S("error", curl_easy_strerror(code)));
	abort();
}

#define SETOPT(easy, option, ...)                                                                  \
	do {                                                                                       \
		CURLcode code_ = curl_easy_setopt(easy, option, __VA_ARGS__);                      \
		if (code_ != CURLE_OK)                                                             \
			option_failed(#option, code_);                                             \
	} while (0)

static int on_socket(void *ctx, curl_socket_t fd, curlsocktype purpose)
{
	unsigned int silent_ms = PEER_SILENT_MS;
	int probes = KEEPALIVE_PROBES;

	(void)ctx;
	(void)purpose;
	/* What the kernel does not know is not worth losing the connection for. */
	setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
	setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &silent_ms, sizeof(silent_ms));
	return CURL_SOCKOPT_OK;
}

static size_t on_header(char *data, size_t size, size_t count, void *ctx)
{
	static const char name[] = "retry-after:";
	struct vg_call *call = ctx;
	char value[128];

	size *= count;
	call->heard_ns = vg_clock_mono_ns();
	if (!call->answered_ns)
		call->answered_ns = call->heard_ns;
	if (size > 5 && memcmp(data, "HTTP/", 5) == 0)
		call->retry_after_ms = -1; /* a new answer, after 100 Continue */
	if (size >= sizeof(name) && size - sizeof(name) + 1 < sizeof(value) &&
	    strncasecmp(data, name, sizeof(name) - 1) == 0) {
		size_t length = size - (sizeof(name) - 1);

		memcpy(value, data + sizeof(name) - 1, length);
		value[length] = '\0';
		call->retry_after_ms = vg_retry_after_ms(value, vg_clock_unix_s());
	}
	return size;
}

static size_t on_body(char *data, size_t size, size_t count, void *ctx)
{
	struct vg_call *call = ctx;
	long status = 0;

	size *= count;
	call->heard_ns = vg_clock_mono_ns();
	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	if (status == 200 && call->spec.on_data)
		return call->spec.on_data(call->spec.ctx, data, size) ? size : 0;
	if (vg_buf_add(&call->body, data, size) < 0) {
		call->cause = "the answer is too long";
		return 0;
	}
	return size;
}

static void global_init(void)
{
	curl_global_init(CURL_GLOBAL_DEFAULT);
}

/*
 * tls-server-name: the URL carries the name that the certificate has, and libcurl is told which host
 * to connect to instead.
 */
static int set_base_url(struct vg_client *client, struct vg_err *err)
{
	const struct vg_kube_config *config = client->config;
	char *scheme = NULL;
	char *host = NULL;
	char *port = NULL;
	char *path = NULL;
	CURLU *url = curl_url();
	int r = 0;

	if (curl_url_set(url, CURLUPART_URL, config->server, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_HOST, &host, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_PATH, &path, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT) != CURLUE_OK) {
		r = vg_fail(err, EINVAL, "%s: server \"%s\" is no URL that can be used",
			    config->source, config->server);
	} else if (config->server_name) {
		size_t length = strlen(path);
		vg_autofree char *map =
			vg_printf("%s:%s:%s:%s", config->server_name, port, host, port);

		while (length && path[length - 1] == '/')
			path[--length] = '\0';
		client->base_url =
			vg_printf("%s://%s:%s%s", scheme, config->server_name, port, path);

		client->connect_to = curl_slist_append(NULL, map);
	} else {
		client->base_url = vg_strdup(config->server);
	}
	curl_free(scheme);
	curl_free(host);
	curl_free(port);
	curl_free(path);
	curl_url_cleanup(url);
	return r;
}

int vg_client_new(const struct vg_kube_config *config, int32_t connect_ms,
		  struct vg_client **ret_client, struct vg_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vg_client *client;
	int r;

	pthread_once(&once, global_init);
	client = vg_new(sizeof(*client));
	client->config = config;
	client->connect_ms = connect_ms;
	r = vg_credentials_init(&client->credentials, config, err);
	if (r == 0)
		r = set_base_url(client, err);
	if (r < 0) {
		vg_client_free(client);
		return r;
	}
	client->multi = curl_multi_init();
	if (!client->multi) {
		vg_client_free(client);
		return vg_fail(err, ENOMEM, "libcurl could not be started");
	}
	curl_multi_setopt(client->multi, CURLMOPT_MAXCONNECTS, (long)POOL_MAX);
	*ret_client = client;
	return 0;
}

void vg_client_free(struct vg_client *client)
{
	if (!client)
		return;
	for (struct vg_call *call = client->calls, *next; call; call = next) {
		next = call->next;
		vg_call_cancel(call);
	}
	for (size_t i = 0; i < client->idle_count; i++)
		curl_easy_cleanup(client->idle[i]);
	if (client->multi)
		curl_multi_cleanup(client->multi);
	vg_credentials_release(&client->credentials);
	free(client->base_url);
	curl_slist_free_all(client->connect_to);
	free(client);
}

static void add_header(struct vg_call *call, const char *line)
{
	struct curl_slist *longer = curl_slist_append(call->headers, line);

	if (!longer)
		option_failed("header", CURLE_OUT_OF_MEMORY);
	call->headers = longer;
}

/*
 * Certificates are handed over as memory, not as paths: libcurl compares them when it looks for a
 * connection to use again, and so never speaks through one that stands for an older certificate.
 */
static struct curl_blob as_blob(const struct vg_credential *credential)
{
	return (struct curl_blob){
		.data = credential->text,
		.len = credential->size,
		.flags = CURL_BLOB_COPY,
	};
}

static void set_tls(struct vg_call *call)
{
	const struct vg_credential *item = call->client->credentials.item;
	struct curl_blob ca = as_blob(&item[VG_CREDENTIAL_CA]);
	struct curl_blob cert = as_blob(&item[VG_CREDENTIAL_CERT]);
	struct curl_blob key = as_blob(&item[VG_CREDENTIAL_KEY]);
	bool verify = !call->client->config->insecure;

	SETOPT(call->easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (ca.data) {
		SETOPT(call->easy, CURLOPT_CAINFO_BLOB, &ca);
		/* A cluster with a CA of its own is not for the system's CAs to vouch for. */
		SETOPT(call->easy, CURLOPT_CAPATH, NULL);
	}
	if (cert.data)
		SETOPT(call->easy, CURLOPT_SSLCERT_BLOB, &cert);
	if (key.data)
		SETOPT(call->easy, CURLOPT_SSLKEY_BLOB, &key);
	SETOPT(call->easy, CURLOPT_SSL_VERIFYPEER, verify ? 1L : 0L);
	SETOPT(call->easy, CURLOPT_SSL_VERIFYHOST, verify ? 2L : 0L);
}

static void set_request(struct vg_call *call)
{
	const struct vg_call_spec *spec = &call->spec;
	const struct vg_credential *token = &call->client->credentials.item[VG_CREDENTIAL_TOKEN];
	vg_autofree char *url = vg_printf("%s%s", call->client->base_url, spec->path);

	SETOPT(call->easy, CURLOPT_URL, url);
	SETOPT(call->easy, CURLOPT_PATH_AS_IS, 1L);
	if (spec->body) {
		vg_autofree char *type = vg_printf("Content-Type: %s", spec->content_type);

		add_header(call, type);
		/* The body goes with the request, without asking first. */
		add_header(call, "Expect:");
		SETOPT(call->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)spec->body_size);
		SETOPT(call->easy, CURLOPT_COPYPOSTFIELDS, spec->body);
	}
	SETOPT(call->easy, CURLOPT_CUSTOMREQUEST, spec->method);
	add_header(call, "Accept: application/json");
	if (token->text) {
		char *line = vg_printf("Authorization: Bearer %s", token->text);

		add_header(call, line);
		explicit_bzero(line, strlen(line));
		free(line);
	}
	SETOPT(call->easy, CURLOPT_HTTPHEADER, call->headers);
	SETOPT(call->easy, CURLOPT_USERAGENT, "kube-vgpu/" VGPU_VERSION);
}

static void set_transport(struct vg_call *call)
{
	const struct vg_client *client = call->client;

	SETOPT(call->easy, CURLOPT_NOSIGNAL, 1L);
	SETOPT(call->easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_2TLS);
	/* A second stream of a connection that is being made costs less than a second connection. */
	SETOPT(call->easy, CURLOPT_PIPEWAIT, 1L);
	SETOPT(call->easy, CURLOPT_CONNECTTIMEOUT_MS, (long)client->connect_ms);
	SETOPT(call->easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	SETOPT(call->easy, CURLOPT_TCP_KEEPALIVE, 1L);
	SETOPT(call->easy, CURLOPT_TCP_KEEPIDLE, KEEPALIVE_IDLE_S);
	SETOPT(call->easy, CURLOPT_TCP_KEEPINTVL, KEEPALIVE_INTERVAL_S);
	SETOPT(call->easy, CURLOPT_SOCKOPTFUNCTION, on_socket);
	/* A wish: libcurl refuses it for a handle that already has a buffer, from an earlier request. */
	(void)curl_easy_setopt(call->easy, CURLOPT_BUFFERSIZE, RECEIVE_BYTES);
	SETOPT(call->easy, CURLOPT_ERRORBUFFER, call->error);
	SETOPT(call->easy, CURLOPT_HEADERFUNCTION, on_header);
	SETOPT(call->easy, CURLOPT_HEADERDATA, call);
	SETOPT(call->easy, CURLOPT_WRITEFUNCTION, on_body);
	SETOPT(call->easy, CURLOPT_WRITEDATA, call);
	SETOPT(call->easy, CURLOPT_PRIVATE, call);
	if (client->config->proxy)
		SETOPT(call->easy, CURLOPT_PROXY, client->config->proxy);
}

struct vg_call *vg_client_start(struct vg_client *client, const struct vg_call_spec *spec)
{
	struct vg_call *call = vg_new(sizeof(*call));

	vg_credentials_refresh(&client->credentials);
	call->client = client;
	call->spec = *spec;
	call->retry_after_ms = -1;
	call->started_ns = vg_clock_mono_ns();
	call->heard_ns = call->started_ns;
	vg_buf_init(&call->body, VG_LIMIT_API_REPLY_BYTES);
	call->easy = client->idle_count ? client->idle[--client->idle_count] : curl_easy_init();
	if (!call->easy)
		option_failed("easy handle", CURLE_OUT_OF_MEMORY);
	set_transport(call);
	set_tls(call);
	set_request(call);
	if (client->connect_to)
		SETOPT(call->easy, CURLOPT_CONNECT_TO, client->connect_to);
	/* Copied by libcurl; the caller's may be gone when on_end() comes. */
	call->spec.path = NULL;
	call->spec.body = NULL;
	call->spec.content_type = NULL;

	call->next = client->calls;
	if (call->next)
		call->next->previous = call;
	client->calls = call;
	curl_multi_add_handle(client->multi, call->easy);
	return call;
}

/* Takes the call out of the client's hands; what is left is the struct and the body. */
static void detach(struct vg_call *call, bool ended)
{
	struct vg_client *client = call->client;

	curl_multi_remove_handle(client->multi, call->easy);
	if (client->calls == call)
		client->calls = call->next;
	else
		call->previous->next = call->next;
	if (call->next)
		call->next->previous = call->previous;
	/* A handle that was taken out half-way keeps buffers that reset does not know of. */
	if (ended && client->idle_count < POOL_MAX) {
		curl_easy_reset(call->easy);
		client->idle[client->idle_count++] = call->easy;
	} else {
		curl_easy_cleanup(call->easy);
	}
	call->easy = NULL;
	for (struct curl_slist *header = call->headers; header; header = header->next)
		explicit_bzero(header->data, strlen(header->data));
	curl_slist_free_all(call->headers);
	call->headers = NULL;
}

static void free_call(struct vg_call *call)
{
	vg_buf_release(&call->body);
	free(call);
}

void vg_call_cancel(struct vg_call *call)
{
	detach(call, false);
	free_call(call);
}

/*
 * Which connection a call is on: its local port, 0 before it has one. (CURLINFO_ACTIVESOCKET and
 * CURLINFO_CONN_ID would say it better, but not of a transfer that is still running, or not before
 * libcurl 8.2.)
 */
static long port_of(struct vg_call *call)
{
	long port = 0;

	curl_easy_getinfo(call->easy, CURLINFO_LOCAL_PORT, &port);
	return port > 0 ? port : 0;
}

/* Whether the request may have left this machine, as far as that can be known. */
static bool maybe_sent(struct vg_call *call, CURLcode code)
{
	curl_off_t pretransfer_us = 0;

	switch (code) {
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_CONNECT:
	case CURLE_SSL_CONNECT_ERROR:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_PEER_FAILED_VERIFICATION:
		return false;
	default:
		curl_easy_getinfo(call->easy, CURLINFO_PRETRANSFER_TIME_T, &pretransfer_us);
		return pretransfer_us > 0;
	}
}

/* `ended`: libcurl said so, with this code; otherwise it is we who end it. */
static void finish(struct vg_call *call, bool ended, CURLcode code)
{
	struct vg_client *client = call->client;
	struct vg_reply reply = {
		.complete = code == CURLE_OK,
		.retry_after_ms = call->retry_after_ms,
	};

	curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &reply.status);
	/* 1xx is not an answer yet. */
	if (reply.status < 200)
		reply.status = 0;
	reply.maybe_sent = reply.status != 0 || maybe_sent(call, code);
	if (reply.complete) {
		client->alive_port = port_of(call);
		client->alive_ns = call->heard_ns;
	}
	detach(call, ended);
	reply.cause = reply.complete   ? ""
		      : call->cause    ? call->cause
		      : call->error[0] ? call->error
				       : curl_easy_strerror(code);
	reply.body = call->body.data ? call->body.data : "";
	reply.body_size = call->body.used;
	/* A certificate or token that was replaced in the meantime counts from the next request on;
	 * one whose file was replaced without looking different is read again now. */
	if (reply.status == 401)
		vg_credentials_expire(&client->credentials);
	call->spec.on_end(call->spec.ctx, &reply);
	free_call(call);
}

static bool end_finished(struct vg_client *client)
{
	bool ended = false;
	int left;

	for (;;) {
		const CURLMsg *message = curl_multi_info_read(client->multi, &left);
		struct vg_call *call = NULL;
		CURLcode code;

		if (!message)
			return ended;
		if (message->msg != CURLMSG_DONE)
			continue;
		code = message->data.result;
		curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &call);
		finish(call, true, code);
		ended = true;
	}
}

static int64_t deadline(int64_t since_ns, int32_t after_ms)
{
	return after_ms > 0 ? since_ns + after_ms * VG_NS_PER_MS : INT64_MAX;
}

/* When the call's connection counts as dead. */
static int64_t silence_deadline(const struct vg_call *call)
{
	return call->answered_ns ? deadline(call->heard_ns, call->spec.idle_ms)
				 : deadline(call->started_ns, call->spec.answer_ms);
}

static int64_t call_deadline(const struct vg_call *call)
{
	int64_t silence = silence_deadline(call);
	int64_t total = deadline(call->started_ns, call->spec.total_ms);

	return silence < total ? silence : total;
}

/* When the last byte came through the connection, whoever it was for; 0 if that is long ago. */
static int64_t connection_heard_ns(struct vg_client *client, long port)
{
	int64_t heard_ns = client->alive_port == port ? client->alive_ns : 0;

	for (struct vg_call *call = client->calls; call; call = call->next)
		if (call->answered_ns && call->heard_ns > heard_ns && port_of(call) == port)
			heard_ns = call->heard_ns;
	return heard_ns;
}

/*
 * An HTTP/2 connection is shared: when one exchange gets no answer, the question is whether the server
 * is slow with it or the connection is dead, in which case whatever is sent next would be lost as
 * well. If nothing at all came through it in half the time that the exchange waited, all its exchanges
 * end now and it is not used again; otherwise only this one ends.
 */
static void condemn_connection(struct vg_client *client, struct vg_call *silent, int64_t now_ns)
{
	int64_t waited_ns = now_ns - (silent->answered_ns ? silent->heard_ns : silent->started_ns);
	long port = port_of(silent);

	silent->cause = silent->answered_ns ? "the answer stopped half-way" : "no answer in time";
	if (!port || connection_heard_ns(client, port) > now_ns - waited_ns / 2)
		return;
	for (struct vg_call *call = client->calls; call; call = call->next) {
		if (port_of(call) != port)
			continue;
		SETOPT(call->easy, CURLOPT_FORBID_REUSE, 1L);
		if (!call->cause)
			call->cause = "its connection stopped answering";
	}
}

static struct vg_call *find_condemned(const struct vg_client *client)
{
	struct vg_call *call = client->calls;

	/* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): the list lets go of a call before it is freed. */
	while (call && !call->cause)
		call = call->next;
	return call;
}

static bool end_overdue(struct vg_client *client)
{
	int64_t now = vg_clock_mono_ns();
	struct vg_call *call;
	bool ended = false;

	for (call = client->calls; call; call = call->next) {
		if (call->cause || now < call_deadline(call))
			continue;
		if (now >= silence_deadline(call))
			condemn_connection(client, call, now);
		else
			call->cause = "it took too long";
	}
	/* on_end() may start and cancel calls: look from the start again after each. */
	while ((call = find_condemned(client))) {
		finish(call, false, CURLE_OPERATION_TIMEDOUT);
		ended = true;
	}
	return ended;
}

void vg_client_run(struct vg_client *client, int64_t until_ns)
{
	int64_t now;
	int running;
	bool ended;

	curl_multi_perform(client->multi, &running);
	ended = end_finished(client);
	ended = end_overdue(client) || ended;
	if (ended)
		return;
	for (const struct vg_call *call = client->calls; call; call = call->next)
		if (call_deadline(call) < until_ns)
			until_ns = call_deadline(call);
	now = vg_clock_mono_ns();
	if (until_ns <= now)
		return;
	until_ns = (until_ns - now + VG_NS_PER_MS - 1) / VG_NS_PER_MS;
	curl_multi_poll(client->multi, NULL, 0, until_ns > 60000 ? 60000 : (int)until_ns, NULL);
}

void vg_client_wake(struct vg_client *client)
{
	curl_multi_wakeup(client->multi);
}

/* A body that is no Status object, fit to stand in a message. */
static void add_snippet(struct vg_buf *text, const char *body, size_t size)
{
	for (size_t i = 0; i < size && i < 200; i++) {
		unsigned char byte = (unsigned char)body[i];
		char c = byte < 0x20 || byte == 0x7f ? ' ' : body[i];

		vg_buf_add(text, &c, 1);
	}
}

void vg_reply_explain(const struct vg_reply *reply, char *text, size_t room)
{
	const char *message = NULL;
	struct vg_buf line;
	json_t *status = NULL;

	vg_buf_init(&line, 8192);
	if (reply->status) {
		vg_buf_addf(&line, "HTTP %ld", reply->status);
		status = json_loadb(reply->body, reply->body_size, 0, NULL);
		message = vg_json_text(status, "message");
		if (*message) {
			vg_buf_addf(&line, ": %s", message);
		} else if (reply->body_size) {
			vg_buf_adds(&line, ": ");
			add_snippet(&line, reply->body, reply->body_size);
		}
	}
	if (!reply->complete)
		vg_buf_addf(&line, "%s: %s", reply->status ? ", cut short" : "no answer",
			    reply->cause);
	vg_copy(text, room, line.data ? line.data : "");
	json_decref(status);
	vg_buf_release(&line);
}

bool vg_reply_is_passing(const struct vg_reply *reply)
{
	return !reply->complete || reply->status == 429 || reply->status >= 500;
}
