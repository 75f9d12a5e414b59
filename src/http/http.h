/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The HTTP edge, on libmicrohttpd: listeners, TLS, limits, replies that may come later and from any
 * thread. Knows nothing of what the routes do.
 */
#ifndef VGPU_HTTP_HTTP_H
#define VGPU_HTTP_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/err.h"

struct vg_http_request {
	const char *method;
	const char *path;         /* without the query */
	const char *query;        /* the text behind "?", still encoded; "" when absent */
	const char *content_type; /* "" when absent */
	const char *body;         /* NUL-terminated behind its last byte */
	size_t body_size;
	int64_t received_ns;               /* monotonic: the first byte of the request was there */
	struct vg_arena arena;             /* for the handler; freed after the reply is sent */
	struct vg_http_exchange *exchange; /* private to src/http */
};

/*
 * Must lead to exactly one vg_http_reply() for the request, now or later, from any thread. The request
 * lives until then.
 */
typedef void (*vg_http_handler)(void *ctx, struct vg_http_request *request);

struct vg_http_route {
	const char *method; /* "GET" also answers HEAD */
	const char *path;
	size_t body_max; /* bytes; a longer body gets 413 with the limit in its text */
	vg_http_handler handler;
};

/*
 * Called for every finished request, for metrics: `path` is a route's, or "" when none matched. `status`
 * is 0 when the client went away before there was a reply. In the connection's thread.
 */
typedef void (*vg_http_observer)(void *ctx, const char *path, unsigned status, int64_t took_ns);

struct vg_http_options {
	const char *name;     /* for logs: "extender" */
	const char *address;  /* "127.0.0.1:8080", "[::1]:8080", ":9395"; port 0 picks one */
	const char *tls_cert; /* PEM files; both or neither */
	const char *tls_key;
	const char *
		tls_client_ca; /* PEM file: clients must show a certificate of it. NULL = none asked */
	const struct vg_http_route *routes; /* lives as long as the listener */
	size_t route_count;
	void *ctx;                 /* for the handlers */
	vg_http_observer observer; /* may be NULL; gets ctx */
	unsigned threads;          /* polling threads, at least 1 */
	size_t bodies_max; /* bytes of all bodies in memory at a time; 0 = VG_LIMIT_HTTP_BODIES_BYTES */
};

struct vg_http_listener;

/*
 * Starts listening. Errors name the address, the cause and what to do. Requests that match no route are
 * answered here: 404, 405 with Allow, 413, 400.
 */
int vg_http_listen(const struct vg_http_options *options, struct vg_http_listener **ret_listener,
		   struct vg_err *err);
/* The port in use. */
uint16_t vg_http_port(const struct vg_http_listener *listener);
/* No new connections; waits up to `drain_ms` for requests in flight, then answers the rest with 503 and
 * ends. Handlers that have not replied yet may still do so afterwards, into the void. NULL is fine. */
void vg_http_stop(struct vg_http_listener *listener, unsigned drain_ms);
/*
 * Reads certificate, key and client CA again; a broken set is an error and the old one stays in use.
 * Requests in flight end as they began; open connections are closed behind their next reply, so that
 * clients come back and see the new certificate. Not beside vg_http_stop().
 */
int vg_http_reload_tls(struct vg_http_listener *listener, struct vg_err *err);
/* When the certificate in use expires; 0 without TLS. */
int64_t vg_http_tls_expires_unix_s(struct vg_http_listener *listener);

/* Ends the exchange. `body` comes from malloc() and is taken over; content type must be a literal. */
void vg_http_reply(struct vg_http_request *request, unsigned status, const char *content_type,
		   char *body, size_t body_size);
/* The same with a copy of a short text, "text/plain". */
void vg_http_reply_text(struct vg_http_request *request, unsigned status, const char *text);

#endif
