/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One PATCH per pod, a merge patch with the UID in it, which the API server refuses for another pod of that
 * name. kube-scheduler looks again at a waiting pod whose annotations changed, in all versions.
 *
 * Nothing is repeated: a pod that was not reached waits as it would have without us.
 */
#include "kube/nudge_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "device/annotation.h"

struct nudge {
	struct nudge *next;
	struct vg_nudges *nudges;
	struct vg_call *call; /* once it is sent */
	char *path;
	char *uid;
};

struct vg_nudges {
	struct vg_client *client;
	struct vg_kube_counters *counters;
	int32_t answer_ms;
	struct nudge *in_flight; /* the client's thread only */
	unsigned in_flight_count;
	struct vg_log_gate gate;

	pthread_mutex_t lock;
	struct nudge *waiting;
	struct nudge **waiting_end;
	unsigned waiting_count;
	bool closed;
};

static void free_nudge(struct nudge *nudge)
{
	free(nudge->path);
	free(nudge->uid);
	free(nudge);
}

struct vg_nudges *vg_nudges_new(struct vg_client *client, struct vg_kube_counters *counters,
				int32_t answer_ms)
{
	struct vg_nudges *nudges = vg_new(sizeof(*nudges));

	nudges->client = client;
	nudges->counters = counters;
	nudges->answer_ms = answer_ms;
	nudges->waiting_end = &nudges->waiting;
	pthread_mutex_init(&nudges->lock, NULL);
	return nudges;
}

void vg_nudges_stop(struct vg_nudges *nudges)
{
	pthread_mutex_lock(&nudges->lock);
	nudges->closed = true;
	pthread_mutex_unlock(&nudges->lock);
	while (nudges->in_flight) {
		struct nudge *nudge = nudges->in_flight;

		nudges->in_flight = nudge->next;
		vg_call_cancel(nudge->call);
		free_nudge(nudge);
	}
	while (nudges->waiting) {
		struct nudge *nudge = nudges->waiting;

		nudges->waiting = nudge->next;
		free_nudge(nudge);
	}
}

void vg_nudges_free(struct vg_nudges *nudges)
{
	if (!nudges)
		return;
	vg_nudges_stop(nudges);
	pthread_mutex_destroy(&nudges->lock);
	free(nudges);
}

void vg_nudges_add(struct vg_nudges *nudges, const char *namespace, const char *name,
		   const char *uid)
{
	bool taken = false;

	pthread_mutex_lock(&nudges->lock);
	if (!nudges->closed && nudges->waiting_count < VG_LIMIT_NUDGE_QUEUE) {
		struct nudge *nudge = vg_new(sizeof(*nudge));

		nudge->nudges = nudges;
		nudge->path = vg_printf("/api/v1/namespaces/%s/pods/%s", namespace, name);
		nudge->uid = vg_strdup(uid);
		*nudges->waiting_end = nudge;
		nudges->waiting_end = &nudge->next;
		nudges->waiting_count++;
		taken = true;
	}
	pthread_mutex_unlock(&nudges->lock);
	if (taken)
		vg_client_wake(nudges->client);
}

static struct nudge *take_waiting(struct vg_nudges *nudges)
{
	struct nudge *nudge;

	pthread_mutex_lock(&nudges->lock);
	nudge = nudges->waiting;
	if (nudge) {
		nudges->waiting = nudge->next;
		if (!nudges->waiting)
			nudges->waiting_end = &nudges->waiting;
		nudges->waiting_count--;
	}
	pthread_mutex_unlock(&nudges->lock);
	return nudge;
}

static void on_end(void *ctx, const struct vg_reply *reply)
{
	struct nudge *nudge = ctx;
	struct vg_nudges *nudges = nudge->nudges;
	struct nudge **link = &nudges->in_flight;
	uint32_t suppressed;

	while (*link != nudge)
		link = &(*link)->next;
	*link = nudge->next;
	nudges->in_flight_count--;
	if (reply->status == 200) {
		vg_count(&nudges->counters->nudges);
	} else {
		vg_count(&nudges->counters->request_failures);
		/* Deleted, or another pod by now: nobody waits any more. */
		if (reply->status != 404 && reply->status != 409 &&
		    vg_log_gate_pass(&nudges->gate, vg_clock_mono_ns(), reply->status,
				     &suppressed)) {
			char why[VG_ERR_MSG_MAX];

			vg_reply_explain(reply, why, sizeof(why));
			vg_warn("kube",
				reply->status == 403
					? "waiting pods cannot be woken when cards are freed, and may wait for "
					  "minutes: the ClusterRole must allow patch on pods"
					: "a waiting pod could not be woken",
				VG_S("why", why), VG_I("suppressed", suppressed));
		}
	}
	free_nudge(nudge);
}

static void send(struct vg_nudges *nudges, struct nudge *nudge)
{
	char stamp[32];
	struct timespec now;
	json_t *patch;
	vg_autofree char *body = NULL;

	/* Different from the last one, or it would be no change. */
	clock_gettime(CLOCK_REALTIME, &now);
	snprintf(stamp, sizeof(stamp), "%lld",
		 (long long)now.tv_sec * 1000 + now.tv_nsec / VG_NS_PER_MS);
	patch = json_pack("{s:{s:s,s:{s:s}}}", "metadata", "uid", nudge->uid, "annotations",
			  vg_annotation_key[VG_ANNO_POD_NUDGED], stamp);
	body = json_dumps(patch, JSON_COMPACT);
	json_decref(patch);
	vg_count(&nudges->counters->requests);
	nudge->next = nudges->in_flight;
	nudges->in_flight = nudge;
	nudges->in_flight_count++;
	nudge->call = vg_client_start(nudges->client,
				      &(struct vg_call_spec){
					      .method = "PATCH",
					      .path = nudge->path,
					      .content_type = "application/merge-patch+json",
					      .body = body,
					      .body_size = strlen(body),
					      .answer_ms = nudges->answer_ms,
					      .idle_ms = nudges->answer_ms,
					      .total_ms = nudges->answer_ms,
					      .on_end = on_end,
					      .ctx = nudge,
				      });
}

void vg_nudges_run(struct vg_nudges *nudges)
{
	while (nudges->in_flight_count < VG_LIMIT_NUDGES_IN_FLIGHT) {
		struct nudge *nudge = take_waiting(nudges);

		if (!nudge)
			return;
		send(nudges, nudge);
	}
}
