/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server as a cluster source and as the place where decisions go: one thread with a libcurl
 * multi handle lists and watches nodes, pods and resource quotas, and posts bindings.
 */
#ifndef VGPU_KUBE_KUBE_H
#define VGPU_KUBE_KUBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "device/class.h"
#include "device/sink.h"

/* How to reach and convince an API server. All texts owned; files are re-read when they change. */
struct vg_kube_config {
	char *server;    /* "https://10.0.0.1:443", possibly with a path; no "/" at the end */
	char *ca_file;   /* PEM; NULL with ca_data or when the system's CAs count */
	char *ca_data;   /* PEM text */
	char *cert_file; /* client certificate */
	char *cert_data;
	char *key_file;
	char *key_data;
	char *token_file;
	char *token;       /* used while there is no token_file */
	char *server_name; /* the name in the server's certificate when it is not the URL's; or NULL */
	char *proxy;       /* URL of a proxy; NULL: what the environment says */
	bool insecure;     /* insecure-skip-tls-verify of the kubeconfig */
	char *source; /* for messages: the kubeconfig's path, or "in-cluster service account" */
};

/* The current context of a kubeconfig. Unsupported ways (exec, auth-provider) are named in the error. */
int vg_kube_config_load(const char *path, struct vg_kube_config *ret_config, struct vg_err *err);
/* The pod's service account (KUBERNETES_SERVICE_HOST, …_PORT and the mounted token and CA). */
int vg_kube_config_in_cluster(struct vg_kube_config *ret_config, struct vg_err *err);
void vg_kube_config_release(struct vg_kube_config *config);

/* All in ms; 0 takes the default, which is what daemons want. Tests shorten them. */
struct vg_kube_timing {
	int32_t connect_ms;     /* TCP and TLS: 5 s */
	int32_t answer_ms;      /* from the request to the first byte of the answer: 15 s */
	int32_t idle_ms;        /* silence inside an answer: 10 s */
	int32_t watch_ms;       /* the server is asked to end a watch after this, and up to a half
				 * more: 30 s, in whole seconds */
	int32_t watch_slack_ms; /* a watch that has not ended so long after that is dead: 5 s */
	int32_t backoff_min_ms; /* 200 ms */
	int32_t backoff_max_ms; /* 15 s */
	int32_t bind_ms; /* a bind with all its repeats, its time in the queue included: 20 s */
	int32_t bind_answer_ms; /* one request of a bind: 8 s */
};

struct vg_kube_options {
	const struct vg_kube_config *config; /* copied */
	const struct vg_classes *classes;    /* lives as long as the client */
	/*
	 * Called from the client's thread only. What malformed() says about an object is its key where
	 * it is known: "name" of a node, "namespace/name" of a pod or quota.
	 */
	struct vg_sink sink;
	struct vg_kube_timing timing;
};

/* Counters for metrics; each read is atomic. */
struct vg_kube_stats {
	uint64_t lists[VG_KIND_COUNT]; /* lists that were completed */
	uint64_t
		watch_restarts[VG_KIND_COUNT]; /* watches that ended otherwise than by their time */
	uint64_t failures[VG_KIND_COUNT];      /* lists and watches that failed */
	uint64_t events[VG_KIND_COUNT];        /* of watches, bookmarks included */
	uint64_t malformed[VG_KIND_COUNT];     /* objects and events that could not be read */
	uint64_t stale[VG_KIND_COUNT];         /* dropped: older than what was seen before */
	uint64_t requests;                     /* API calls other than list and watch */
	uint64_t request_failures; /* of these: no answer, or another answer than success */
	uint64_t bind_posts;
	uint64_t nudges; /* pods that were touched */
};

struct vg_kube;

/* Starts the thread. What can go wrong later is retried with jittered back-off and logged. */
int vg_kube_start(const struct vg_kube_options *options, struct vg_kube **ret_kube,
		  struct vg_err *err);
/*
 * Ends the thread; binds in flight end with -ECANCELED, a list in progress with list_abort(). The
 * binder must not be called any more. NULL is fine.
 */
void vg_kube_stop(struct vg_kube *kube);
void vg_kube_stats(const struct vg_kube *kube, struct vg_kube_stats *ret_stats);

/*
 * Posts Bindings; asynchronous, from any thread, safe to repeat: an answer that was lost is made up
 * for by looking at the pod. Codes beyond those of the contract: -EINVAL (names that are none, or the
 * API server calls the Binding invalid), -EACCES (401, 403), -EBUSY (the queue is full, or the pod may
 * not be bound now, such as while it is gated), -ETIMEDOUT (nothing helped in bind_ms), -ECANCELED
 * (stopped). done() comes from the client's thread, or from bind() itself.
 */
struct vg_binder vg_kube_binder(struct vg_kube *kube);
/* Patches the annotation kube-vgpu.io/nudged of the pod, if it is still the one of that UID. What cannot be
 * sent is dropped: the next chance comes with the next card that is freed. */
struct vg_nudger vg_kube_nudger(struct vg_kube *kube);

#endif
