/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of one request, as libmicrohttpd tells it:
 *
 *	on_uri()        the request line is there     -> exchange
 *	on_access()     the headers are there         -> route or refusal
 *	on_access() …   a piece of the body           -> exchange->body, or thrown away when refused
 *	on_access()     the body is complete          -> handler(); waits if it does not answer at once
 *	vg_http_reply() from the handler, any thread  -> exchange->response
 *	on_access()     after a wait                  -> the response is queued
 *	on_completed()  the reply is sent, or failed  -> observer()
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "http/http_internal.h"

#define TEXT_PLAIN "text/plain; charset=utf-8"

/* ---- life and death --------------------------------------------------------------------------- */

static void unref(struct vg_http_exchange *exchange)
{
	if (atomic_fetch_sub_explicit(&exchange->references, 1, memory_order_acq_rel) != 1)
		return;
	if (exchange->response)
		MHD_destroy_response(exchange->response);
	vg_buf_release(&exchange->body);
	vg_arena_release(&exchange->request.arena);
	pthread_mutex_destroy(&exchange->lock);
	free(exchange);
}

void *vg_exchange_on_uri(void *cls, const char *uri, struct MHD_Connection *connection)
{
	struct generation *generation = cls;
	struct vg_http_listener *listener = generation->listener;
	struct vg_http_exchange *exchange = vg_new(sizeof(*exchange));
	const char *question = strchr(uri, '?');

	exchange->generation = generation;
	exchange->connection = connection;
	atomic_init(&exchange->references, 1);
	pthread_mutex_init(&exchange->lock, NULL);
	vg_arena_init(&exchange->request.arena);
	exchange->request.exchange = exchange;
	exchange->request.received_ns = vg_clock_mono_ns();
	exchange->request.query =
		question ? vg_arena_strdup(&exchange->request.arena, question + 1) : "";

	pthread_mutex_lock(&listener->lock);
	exchange->next = listener->exchanges;
	if (exchange->next)
		exchange->next->previous = exchange;
	listener->exchanges = exchange;
	listener->in_flight++;
	pthread_mutex_unlock(&listener->lock);
	return exchange;
}

void vg_exchange_on_completed(void *cls, struct MHD_Connection *connection, void **state,
			      enum MHD_RequestTerminationCode how)
{
	struct generation *generation = cls;
	struct vg_http_listener *listener = generation->listener;
	struct vg_http_exchange *exchange = *state;
	const char *path;
	unsigned status;
	int64_t took_ns;

	(void)connection;
	if (!exchange)
		return;
	*state = NULL;
	path = exchange->route ? exchange->route->path : "";
	status = exchange->status;
	took_ns = vg_clock_mono_ns() - exchange->request.received_ns;
	if (how != MHD_REQUEST_TERMINATED_COMPLETED_OK)
		vg_debug("http", "the client went away", VG_S("listener", listener->options.name),
			 VG_S("path", path), VG_I("status", status), VG_I("how", how));
	if (listener->options.observer)
		listener->options.observer(listener->options.ctx, path, status, took_ns);
	atomic_fetch_sub(&listener->body_bytes, exchange->body_charged);

	pthread_mutex_lock(&listener->lock);
	if (exchange->previous)
		exchange->previous->next = exchange->next;
	else
		listener->exchanges = exchange->next;
	if (exchange->next)
		exchange->next->previous = exchange->previous;
	if (--listener->in_flight == 0)
		pthread_cond_broadcast(&listener->idle);
	pthread_mutex_unlock(&listener->lock);
	unref(exchange);
}

/* ---- replies ---------------------------------------------------------------------------------- */

/* Takes the body over; NULL is an empty one. */
static struct MHD_Response *make_response(const char *content_type, char *body, size_t body_size)
{
	static char nothing[1];
	struct MHD_Response *response =
		body ? MHD_create_response_from_buffer(body_size, body, MHD_RESPMEM_MUST_FREE)
		     : MHD_create_response_from_buffer(0, nothing, MHD_RESPMEM_PERSISTENT);

	if (!response || MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
						 content_type) != MHD_YES) {
		vg_error("http", "out of memory for a reply");
		abort();
	}
	return response;
}

static struct MHD_Response *text_response(const char *text)
{
	char *line = vg_printf("%s\n", text);

	return make_response(TEXT_PLAIN, line, strlen(line));
}

/* In the connection's thread. */
static enum MHD_Result send_response(struct vg_http_exchange *exchange)
{
	struct generation *generation = exchange->generation;
	struct MHD_Response *response = exchange->response;
	enum MHD_Result result;

	exchange->response = NULL;
	/* Asks the client to come back on a new connection, to a listener that stays. */
	if (atomic_load(&generation->retired) || atomic_load(&generation->listener->stopping))
		(void)MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	result = MHD_queue_response(exchange->connection, exchange->status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result send_refusal(struct vg_http_exchange *exchange)
{
	exchange->status = exchange->refusal;
	exchange->response = text_response(exchange->refusal_text);
	if (exchange->allow)
		(void)MHD_add_response_header(exchange->response, MHD_HTTP_HEADER_ALLOW,
					      exchange->allow);
	return send_response(exchange);
}

/* The first answer counts: a handler that was given up on may still come with its own. */
static void answer(struct vg_http_exchange *exchange, unsigned status,
		   struct MHD_Response *response)
{
	if (exchange->status) {
		MHD_destroy_response(response);
		return;
	}
	exchange->status = status;
	exchange->response = response;
	if (exchange->suspended) {
		exchange->suspended = false;
		MHD_resume_connection(exchange->connection);
	}
}

static void reply(struct vg_http_exchange *exchange, unsigned status, struct MHD_Response *response)
{
	pthread_mutex_lock(&exchange->lock);
	answer(exchange, status, response);
	pthread_mutex_unlock(&exchange->lock);
	unref(exchange);
}

void vg_http_reply(struct vg_http_request *request, unsigned status, const char *content_type,
		   char *body, size_t body_size)
{
	reply(request->exchange, status, make_response(content_type, body, body_size));
}

void vg_http_reply_text(struct vg_http_request *request, unsigned status, const char *text)
{
	reply(request->exchange, status, text_response(text));
}

void vg_exchange_abandon(struct vg_http_exchange *exchange)
{
	pthread_mutex_lock(&exchange->lock);
	if (exchange->suspended)
		answer(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
		       text_response("the daemon is stopping"));
	pthread_mutex_unlock(&exchange->lock);
}

/* ---- the headers ------------------------------------------------------------------------------ */

__attribute__((format(printf, 3, 4))) static void refuse(struct vg_http_exchange *exchange,
							 unsigned status, const char *format, ...)
{
	char text[VG_ERR_MSG_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	exchange->refusal = status;
	exchange->refusal_text = vg_arena_strdup(&exchange->request.arena, text);
	atomic_fetch_sub(&exchange->generation->listener->body_bytes, exchange->body_charged);
	exchange->body_charged = 0;
	vg_buf_release(&exchange->body);
}

static bool method_fits(const struct vg_http_route *route, const char *method)
{
	return vg_streq(route->method, method) ||
	       (vg_streq(route->method, "GET") && vg_streq(method, "HEAD"));
}

static void find_route(struct vg_http_exchange *exchange)
{
	const struct vg_http_options *options = &exchange->generation->listener->options;
	struct vg_http_request *request = &exchange->request;
	const char *allow = NULL;

	for (size_t i = 0; i < options->route_count; i++) {
		const struct vg_http_route *route = &options->routes[i];

		if (!vg_streq(route->path, request->path))
			continue;
		if (method_fits(route, request->method)) {
			exchange->route = route;
			return;
		}
		allow = vg_arena_printf(&request->arena, "%s%s%s%s", allow ? allow : "",
					allow ? ", " : "", route->method,
					vg_streq(route->method, "GET") ? ", HEAD" : "");
	}
	exchange->allow = allow;
	if (allow)
		refuse(exchange, MHD_HTTP_METHOD_NOT_ALLOWED, "%.100s answers %s, not %.20s",
		       request->path, allow, request->method);
	else
		refuse(exchange, MHD_HTTP_NOT_FOUND, "there is no %.100s on this listener (%s)",
		       request->path, options->name);
}

static int verify_peer(struct vg_http_exchange *exchange, struct vg_err *err)
{
	const union MHD_ConnectionInfo *info;
	struct peer *peer;
	int r;

	if (!exchange->generation->tls.client_ca)
		return 0;
	info = MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	peer = info ? info->socket_context : NULL;
	if (peer && peer->verified)
		return 0;
	info = MHD_get_connection_info(exchange->connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	if (!info || !info->tls_session)
		return vg_fail(err, EACCES, "this listener wants TLS with a client certificate");
	r = vg_tls_verify_client(info->tls_session, err);
	if (r == 0 && peer)
		peer->verified = true;
	return r;
}

static const char *header(const struct vg_http_exchange *exchange, const char *name)
{
	return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
}

/* Decides from the headers alone. */
static enum MHD_Result begin(struct vg_http_exchange *exchange, const char *url, const char *method)
{
	struct vg_http_request *request = &exchange->request;
	const char *length_text = header(exchange, MHD_HTTP_HEADER_CONTENT_LENGTH);
	const char *content_type = header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE);
	struct vg_err err = { 0 };
	uint64_t length = 0;

	exchange->begun = true;
	request->method = vg_arena_strdup(&request->arena, method);
	request->path = vg_arena_strdup(&request->arena, url);
	request->content_type = vg_arena_strdup(&request->arena, content_type ? content_type : "");
	/* libmicrohttpd has answered lengths that are no number with 400. */
	if (length_text && vg_parse_u64(VG_SPAN(length_text), 0, UINT64_MAX, &length, NULL) < 0)
		length = UINT64_MAX;

	if (verify_peer(exchange, &err) < 0)
		refuse(exchange, MHD_HTTP_FORBIDDEN, "%s", err.msg);
	else
		find_route(exchange);
	if (!exchange->refusal && length > exchange->route->body_max)
		refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE,
		       "the body of %s may have %zu bytes; this one has %llu",
		       exchange->route->path, exchange->route->body_max,
		       (unsigned long long)length);
	if (exchange->route)
		vg_buf_init(&exchange->body, exchange->route->body_max);

	/* Nothing of the body is wanted: say so before it is sent. Otherwise it is read to its end
	 * first, because closing a connection with unread bytes can destroy the answer. */
	if (exchange->refusal &&
	    (header(exchange, MHD_HTTP_HEADER_EXPECT) || length > VG_LIMIT_HTTP_DISCARD_BYTES))
		return send_refusal(exchange);
	return MHD_YES;
}

/* ---- the body --------------------------------------------------------------------------------- */

static enum MHD_Result take_piece(struct vg_http_exchange *exchange, const char *piece, size_t size)
{
	struct vg_http_listener *listener = exchange->generation->listener;
	int64_t late_ns = exchange->request.received_ns + VG_LIMIT_HTTP_RECEIVE_S * VG_NS_PER_S;

	if (vg_clock_mono_ns() > late_ns) {
		vg_debug("http", "a body took too long to arrive",
			 VG_S("listener", listener->options.name),
			 VG_I("limit_s", VG_LIMIT_HTTP_RECEIVE_S));
		return MHD_NO;
	}
	if (!exchange->refusal && size > exchange->route->body_max - exchange->body.used)
		refuse(exchange, MHD_HTTP_CONTENT_TOO_LARGE, "the body of %s may have %zu bytes",
		       exchange->route->path, exchange->route->body_max);
	if (!exchange->refusal) {
		exchange->body_charged += size;
		if (atomic_fetch_add(&listener->body_bytes, size) + size >
		    listener->options.bodies_max)
			refuse(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
			       "the requests in flight have %zu bytes already; try again",
			       listener->options.bodies_max);
	}
	if (exchange->refusal) {
		exchange->discarded += size;
		return exchange->discarded > VG_LIMIT_HTTP_DISCARD_BYTES ? MHD_NO : MHD_YES;
	}
	(void)vg_buf_add(&exchange->body, piece, size);
	return MHD_YES;
}

/* ---- the handler ------------------------------------------------------------------------------ */

static enum MHD_Result hand_over(struct vg_http_exchange *exchange)
{
	struct vg_http_listener *listener = exchange->generation->listener;
	enum MHD_Result result = MHD_YES;

	exchange->handed_over = true;
	if (exchange->refusal)
		return send_refusal(exchange);
	exchange->request.body = exchange->body.data ? exchange->body.data : "";
	exchange->request.body_size = exchange->body.used;
	atomic_fetch_add(&exchange->references, 1);
	exchange->route->handler(listener->options.ctx, &exchange->request);

	pthread_mutex_lock(&exchange->lock);
	if (!exchange->response) {
		if (atomic_load(&listener->ending)) {
			answer(exchange, MHD_HTTP_SERVICE_UNAVAILABLE,
			       text_response("the daemon is stopping"));
		} else {
			exchange->suspended = true;
			MHD_suspend_connection(exchange->connection);
		}
	}
	if (exchange->response)
		result = send_response(exchange);
	pthread_mutex_unlock(&exchange->lock);
	return result;
}

enum MHD_Result vg_exchange_on_access(void *cls, struct MHD_Connection *connection, const char *url,
				      const char *method, const char *version, const char *upload,
				      size_t *upload_size, void **state)
{
	struct vg_http_exchange *exchange = *state;
	enum MHD_Result result = MHD_YES;
	size_t size = *upload_size;

	(void)cls;
	(void)connection;
	(void)version;
	if (!exchange->begun)
		return begin(exchange, url, method);
	if (size > 0) {
		*upload_size = 0;
		return take_piece(exchange, upload, size);
	}
	if (!exchange->handed_over)
		return hand_over(exchange);
	pthread_mutex_lock(&exchange->lock);
	if (exchange->response)
		result = send_response(exchange);
	pthread_mutex_unlock(&exchange->lock);
	return result;
}
