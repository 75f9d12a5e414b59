/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HTTP exchanges with one API server, many at a time, on one thread: a libcurl multi handle, the
 * credentials, and deadlines. Knows nothing of nodes and pods.
 *
 * Everything but vg_client_wake() belongs to the thread that runs the client.
 */
#ifndef VGPU_KUBE_CLIENT_INTERNAL_H
#define VGPU_KUBE_CLIENT_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kube/kube.h"

struct vg_client;
struct vg_call;

/* How an exchange ended. Texts are valid during on_end() only. */
struct vg_reply {
	long status;      /* HTTP status; 0 when no answer came */
	bool complete;    /* the answer's body was received to its end */
	bool maybe_sent;  /* the server may have acted on the request */
	const char *body; /* NUL-terminated; empty when on_data() took it */
	size_t body_size;
	int32_t retry_after_ms; /* what the server asked for, or -1 */
	const char *cause;      /* why it is not complete: "Connection refused"; "" otherwise */
};

struct vg_call_spec {
	const char *method;       /* "GET", "POST", "PATCH" */
	const char *path;         /* "/api/v1/nodes?limit=1"; copied */
	const char *content_type; /* NULL without body */
	const char *body;         /* copied */
	size_t body_size;
	int32_t answer_ms; /* until the first byte of the answer; 0 = no limit */
	int32_t idle_ms;   /* silence in the middle of an answer; 0 = no limit */
	int32_t total_ms;  /* 0 = no limit */
	/*
	 * Gets the body of an answer with status 200 piece by piece; false ends the exchange. NULL
	 * collects the body, up to VG_LIMIT_API_REPLY_BYTES. Must not start or cancel calls.
	 */
	bool (*on_data)(void *ctx, const char *data, size_t size);
	/* Once, unless the call was cancelled. May start and cancel calls. */
	void (*on_end)(void *ctx, const struct vg_reply *reply);
	void *ctx;
};

/* `config` must outlive the client. */
int vg_client_new(const struct vg_kube_config *config, int32_t connect_ms,
		  struct vg_client **ret_client, struct vg_err *err);
/* Cancels what is in flight. */
void vg_client_free(struct vg_client *client);

/* The call belongs to the client and ends with on_end() or vg_call_cancel(). */
struct vg_call *vg_client_start(struct vg_client *client, const struct vg_call_spec *spec);
void vg_call_cancel(struct vg_call *call);

/* Moves all exchanges on; waits until something happens, vg_client_wake(), or `until_ns`. */
void vg_client_run(struct vg_client *client, int64_t until_ns);
/* From any thread: the current or next vg_client_run() returns at once. */
void vg_client_wake(struct vg_client *client);

/*
 * "HTTP 409: pods "a" is already assigned to node "n"", from the Status object of the body or from what
 * else is there; "no answer: Connection refused".
 */
void vg_reply_explain(const struct vg_reply *reply, char *text, size_t room);
/* Whether the same request may succeed later: no answer, 429 and 5xx. */
bool vg_reply_is_passing(const struct vg_reply *reply);

#endif
