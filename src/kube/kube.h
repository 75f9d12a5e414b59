/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server as a cluster source and as the place where decisions go: one thread with a libcurl
 * multi handle lists and watches nodes and pods, and posts bindings.
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
	char *server;    /* "https://10.0.0.1:443" */
	char *ca_file;   /* PEM; NULL with ca_data or when the system's CAs count */
	char *ca_data;   /* PEM text */
	char *cert_file; /* client certificate */
	char *cert_data;
	char *key_file;
	char *key_data;
	char *token_file;
	char *token;   /* used when there is no token_file */
	bool insecure; /* insecure-skip-tls-verify of the kubeconfig */
	char *source;  /* for messages: the kubeconfig's path, or "in-cluster service account" */
};

/* The current context of a kubeconfig. Unsupported ways (exec, auth-provider) are named in the error. */
int vg_kube_config_load(const char *path, struct vg_kube_config *ret_config, struct vg_err *err);
/* The pod's service account (KUBERNETES_SERVICE_HOST, …_PORT and the mounted token and CA). */
int vg_kube_config_in_cluster(struct vg_kube_config *ret_config, struct vg_err *err);
void vg_kube_config_release(struct vg_kube_config *config);

struct vg_kube_options {
	const struct vg_kube_config *config; /* copied */
	const struct vg_classes *classes;    /* lives as long as the client */
	struct vg_sink sink;                 /* called from the client's thread only */
};

/* Counters for metrics; each read is atomic. */
struct vg_kube_stats {
	uint64_t lists[VG_KIND_COUNT];
	uint64_t watch_restarts[VG_KIND_COUNT];
	uint64_t events[VG_KIND_COUNT];
	uint64_t malformed[VG_KIND_COUNT];
	uint64_t requests; /* API calls other than list and watch */
	uint64_t request_failures;
	uint64_t bind_posts;
};

struct vg_kube;

/* Starts the thread. What can go wrong later is retried with jittered back-off and logged. */
int vg_kube_start(const struct vg_kube_options *options, struct vg_kube **ret_kube,
		  struct vg_err *err);
/* Ends the thread; binds in flight end with -ECANCELED. NULL is fine. */
void vg_kube_stop(struct vg_kube *kube);
void vg_kube_stats(const struct vg_kube *kube, struct vg_kube_stats *ret_stats);
/* Posts Bindings; asynchronous, from any thread. */
struct vg_binder vg_kube_binder(struct vg_kube *kube);

#endif
