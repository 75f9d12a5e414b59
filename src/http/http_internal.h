/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of this folder share.
 *
 *	listener   a bound socket, its routes, its limits; lives from vg_http_listen() to vg_http_stop()
 *	generation one libmicrohttpd daemon with one certificate. libmicrohttpd cannot exchange the
 *	           certificate of a running daemon, so a new certificate starts a second daemon on the
 *	           same socket; the first accepts nothing more and lives until its last connection ends
 *	exchange   one request and its reply
 */
#ifndef VGPU_HTTP_HTTP_INTERNAL_H
#define VGPU_HTTP_HTTP_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <microhttpd.h>

#include "base/buf.h"
#include "base/err.h"
#include "http/http.h"

/* ---- address.c -------------------------------------------------------------------------------- */

/*
 * Opens a listening socket on "ADDR:PORT", "[V6]:PORT" or ":PORT" (every address of the machine). The
 * errors name the address and what to do.
 */
int vg_http_open_socket(const char *address, int *ret_fd, uint16_t *ret_port, struct vg_err *err);

/* ---- tls.c ------------------------------------------------------------------------------------ */

/* PEM texts that were found to belong together. */
struct vg_tls_files {
	char *cert;
	char *key;
	char *client_ca; /* NULL: clients are not asked for a certificate */
	int64_t expires_unix_s;
};

int vg_tls_load(const char *cert_path, const char *key_path, const char *client_ca_path,
		struct vg_tls_files *ret_files, struct vg_err *err);
void vg_tls_files_release(struct vg_tls_files *files);
/* Whether the peer of a finished handshake showed a certificate of the client CA that is good for a
 * client. -EACCES with the reason in words. */
int vg_tls_verify_client(void *session, struct vg_err *err);

/* ---- listener.c ------------------------------------------------------------------------------- */

struct generation {
	struct vg_http_listener *listener;
	struct MHD_Daemon *daemon;
	struct vg_tls_files tls;
	size_t connections;  /* under listener->lock */
	atomic_bool retired; /* replies ask the client to come back on a new connection */
	struct generation *next;
};

struct vg_http_listener {
	struct vg_http_options options; /* its texts are owned */
	int fd;
	uint16_t port;
	pthread_mutex_t reload_lock; /* one reload at a time */

	pthread_mutex_t lock;
	pthread_cond_t idle;                /* in_flight fell to 0 */
	struct generation *current;         /* NULL once stopping */
	struct generation *retired;         /* newest first */
	struct vg_http_exchange *exchanges; /* whose request began and whose end is not there yet */
	size_t in_flight;

	atomic_size_t body_bytes; /* of all requests that are being received or handled */
	atomic_bool stopping;     /* the drain began */
	atomic_bool ending;       /* the drain is over: nobody may wait any more */
};

/* One accepted connection. */
struct peer {
	bool verified; /* its certificate was checked, once per connection */
};

/* ---- exchange.c ------------------------------------------------------------------------------- */

struct vg_http_exchange {
	struct vg_http_request request;
	struct generation *generation;
	struct MHD_Connection *connection;
	const struct vg_http_route *route; /* NULL: refused */
	unsigned refusal;                  /* status of a request that no handler gets; 0 = none */
	const char *refusal_text;          /* in the arena */
	const char *allow;                 /* the Allow header of a 405, in the arena */
	struct vg_buf body;
	size_t body_charged; /* counted in listener->body_bytes */
	size_t discarded;    /* bytes of a refused body */
	bool begun;          /* the headers were looked at */
	bool handed_over;    /* the handler has it */

	/* The connection holds one reference, and the handler one from its call to its reply. */
	atomic_uint references;
	pthread_mutex_t lock;
	bool suspended;
	unsigned status; /* 0: not answered yet */
	struct MHD_Response *response;

	struct vg_http_exchange *next; /* under listener->lock */
	struct vg_http_exchange *previous;
};

/* libmicrohttpd's callbacks; `cls` is the generation. */
void *vg_exchange_on_uri(void *cls, const char *uri, struct MHD_Connection *connection);
enum MHD_Result vg_exchange_on_access(void *cls, struct MHD_Connection *connection, const char *url,
				      const char *method, const char *version, const char *upload,
				      size_t *upload_size, void **exchange);
void vg_exchange_on_completed(void *cls, struct MHD_Connection *connection, void **exchange,
			      enum MHD_RequestTerminationCode how);

/* Answers for a handler that is not done when the listener ends; its own reply is dropped later. */
void vg_exchange_abandon(struct vg_http_exchange *exchange);

#endif
