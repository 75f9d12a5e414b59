/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The routes of vgpu-scheduler: JSON in, the cluster and the decision behind, JSON out. One file per
 * route; each begins with the table of its steps.
 *
 *	kube-scheduler  POST /filter    filter.c  -> vg_cluster_place()      decides and reserves
 *	                POST /prioritize prioritize.c -> vg_cluster_rank()   scores, in ranked mode
 *	                POST /bind      bind.c    -> vg_cluster_bind_begin() -> binder -> …_end()
 *	API server      POST /webhook   webhook.c -> a JSON patch, or a denial
 *	people          POST /explain   explain.c -> the same decision with every check, no effect
 *	                GET  /state     state.c   -> nodes, cards, ledger, reservations
 *	Prometheus      GET  /metrics   metrics.c
 *	kubelet         GET  /healthz /readyz     health.c
 */
#ifndef VGPU_SERVER_SERVER_H
#define VGPU_SERVER_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cluster/cluster.h"
#include "device/class.h"
#include "device/request.h"
#include "device/sink.h"
#include "http/http.h"

struct vg_server;

/* Counters of the API server client, for metrics; each rises for the life of the process. */
struct vg_server_api_stats {
	uint64_t lists[VG_KIND_COUNT];
	uint64_t watch_restarts[VG_KIND_COUNT];
	uint64_t events[VG_KIND_COUNT];
	uint64_t requests; /* other than list and watch */
	uint64_t request_failures;
	uint64_t bind_posts;
};

/* A certificate that a listener shows. */
struct vg_server_certificate {
	const char *listener; /* a literal */
	int64_t expires_unix_s;
};

#define VG_SERVER_CERTIFICATES_MAX 4

/* Everything that is pointed to lives as long as the server. */
struct vg_server_options {
	struct vg_cluster *cluster;
	struct vg_binder binder;
	const struct vg_classes *classes;
	struct vg_policy policy; /* the daemon's own, overridden by pods */

	/* Filter answers with every node that fits and reserves nothing; kube-scheduler chooses, with
	 * /prioritize as one voice among its own, and the cards are chosen at bind. */
	bool ranked;

	/* Webhook: what it writes into spec.schedulerName, "" = nothing. */
	const char *scheduler_name;
	/* Webhook: pods that are assigned to "default-scheduler" are taken as well. */
	bool force_overwrite;

	/* Makes a pod known that came with a filter request, where nobody else does: a snapshot has no API
	 * server that knows it. NULL otherwise. */
	void (*learn)(void *ctx, const struct vg_pod *pod);
	void *learn_ctx;

	/* For metrics; may be NULL. The second fills up to VG_SERVER_CERTIFICATES_MAX and returns how
	 * many. Called from a listener's thread. */
	void (*api_stats)(void *ctx, struct vg_server_api_stats *ret_stats);
	size_t (*certificates)(void *ctx, struct vg_server_certificate *ret_list);
	void *metrics_ctx;
};

struct vg_server *vg_server_new(const struct vg_server_options *options);
/* After the listeners were stopped and the cluster and the binder were freed: until then a bind that
 * waits may still come to its end. NULL is fine. */
void vg_server_free(struct vg_server *server);

enum vg_server_listener {
	VG_SERVER_EXTENDER = 1, /* for kube-scheduler alone */
	VG_SERVER_WEBHOOK = 2,  /* for the API server */
	VG_SERVER_METRICS = 4,  /* for Prometheus, probes and people */
	VG_SERVER_ALL = 7,      /* one listener for everything: a snapshot on a laptop */
};

/* The routes that such a listener serves; their ctx is the server. Lives as long as the server. */
const struct vg_http_route *vg_server_routes(struct vg_server *server,
					     enum vg_server_listener listener, size_t *ret_count);
/* A vg_http_observer with the server as ctx: counts and times the requests. */
void vg_server_observe(void *server, const char *path, unsigned status, int64_t took_ns);

#endif
