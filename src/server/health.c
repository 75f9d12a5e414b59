/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GET /healthz: the process serves. GET /readyz: its answers are worth having. A daemon that is cut off
 * from the API server is not ready, but restarting it would not help: it stays healthy.
 */
#include "base/clock.h"
#include "server/server_internal.h"

void vg_route_healthz(void *ctx, struct vg_http_request *request)
{
	(void)ctx;
	vg_http_reply_text(request, 200, "ok");
}

void vg_route_readyz(void *ctx, struct vg_http_request *request)
{
	struct vg_server *server = ctx;
	char reason[VG_READY_REASON_BYTES];

	if (vg_cluster_ready(server->options.cluster, vg_clock_mono_ns(), reason))
		vg_http_reply_text(request, 200, "ok");
	else
		vg_http_reply_text(request, 503, reason);
}
