/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a bind:
 *
 *	POST ─ 2xx ──────────────────────────────────▶ done
 *	  │ ─ 429, 5xx, not sent ─ wait ─▶ POST
 *	  │ ─ 401 ─ read credentials again ─▶ POST
 *	  │ ─ 409, no answer ─▶ look at the pod ─ ours ─▶ done
 *	  │                       │ ─ not bound ─ wait ─▶ POST
 *	  │                       └ ─ another's, gone ──▶ error
 *	  └ ─ anything else, or the time is over ───────▶ error
 *
 * A Binding carries the pod's UID, so that a pod that was deleted and created again under its name
 * does not get what was decided for the old one. API servers before 1.23 ignore it, and so do those
 * from 1.25.0 and 1.26.0 on until the fix (kubernetes pull requests 105913 and 116550). Unless the
 * server is known to be newer than all of these, the pod is looked at before the POST, and its
 * resourceVersion goes with the UID: all but 1.20 to 1.22 refuse a Binding for another state, and for
 * these the gap between look and POST is what remains.
 */
#include "kube/bind_internal.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "kube/json_internal.h"
#include "kube/retry_internal.h"

/* How often the same answer is taken for a passing one. */
#define UNAUTHORIZED_TRIES 3
#define CONFLICT_TRIES     5

/* The first minor version of Kubernetes 1 of which every patch honours the UID. */
#define UID_HONOURED_MINOR 27

/* API servers are replaced by newer and older ones while we run. */
#define VERSION_AGAIN_NS (600 * VG_NS_PER_S)
#define VERSION_RETRY_NS (10 * VG_NS_PER_S)

/* A POST that could not be answered in time would only leave a doubt. */
#define POST_LEFT_NS (250 * VG_NS_PER_MS)

enum step {
	STEP_POST,
	STEP_LOOK, /* GET the pod: what became of the POST? */
};

struct bind_op {
	struct vg_binds *binds;
	struct bind_op *next;
	struct bind_op **link; /* the pointer that points here */
	struct vg_call *call;
	enum step step;
	bool looked; /* at the pod, before the first POST or after it */
	bool posted;
	bool maybe_bound; /* a POST may have taken effect */
	uint32_t tries;
	uint32_t unauthorized;
	uint32_t conflicts;
	int64_t due_ns;
	int64_t deadline_ns;
	struct vg_err last; /* what went wrong most recently; "" */

	char *namespace;
	char *name;
	char *uid;
	char *node;
	json_t *binding;
	vg_bind_done done;
	void *done_ctx;
};

struct op_list {
	struct bind_op *first;
	struct bind_op **end; /* where the next one goes */
};

struct vg_binds {
	struct vg_client *client;
	struct vg_kube_timing timing;
	struct vg_kube_counters *counters;
	struct vg_random random;

	/* The client's thread only: everything accepted, in order. */
	struct op_list ops;
	unsigned in_flight;
	struct vg_call *version_call;
	int64_t version_due_ns;
	bool uid_honoured; /* as far as is known */

	pthread_mutex_t lock;
	struct op_list incoming; /* not yet seen by the client's thread */
	unsigned count;          /* of both lists */
	bool closed;
};

static void list_init(struct op_list *list)
{
	list->first = NULL;
	list->end = &list->first;
}

static void list_add(struct op_list *list, struct bind_op *op)
{
	op->next = NULL;
	op->link = list->end;
	*list->end = op;
	list->end = &op->next;
}

static void list_remove(struct op_list *list, struct bind_op *op)
{
	*op->link = op->next;
	if (op->next)
		op->next->link = op->link;
	else
		list->end = op->link;
}

static void free_op(struct bind_op *op)
{
	json_decref(op->binding);
	free(op->namespace);
	free(op->name);
	free(op->uid);
	free(op->node);
	free(op);
}

/* ---- ends ---------------------------------------------------------------------------------------- */

static void finish(struct bind_op *op, int code, const char *message)
{
	struct vg_binds *binds = op->binds;
	vg_bind_done done = op->done;
	void *ctx = op->done_ctx;

	list_remove(&binds->ops, op);
	pthread_mutex_lock(&binds->lock);
	binds->count--;
	pthread_mutex_unlock(&binds->lock);
	free_op(op);
	done(ctx, code, message);
}

static void finish_failed(struct bind_op *op, int code, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void finish_failed(struct bind_op *op, int code, const char *format, ...)
{
	char cause[VG_ERR_MSG_MAX];
	struct vg_err err;
	va_list args;

	va_start(args, format);
	vsnprintf(cause, sizeof(cause), format, args);
	va_end(args);
	vg_fail(&err, code, "pod %s/%s cannot be bound to node %s: %s", op->namespace, op->name,
		op->node, cause);
	finish(op, -code, err.msg);
}

static void finish_late(struct bind_op *op)
{
	const char *doubt = op->maybe_bound ? "; it may be bound all the same" : "";

	if (op->last.msg[0])
		finish_failed(op, ETIMEDOUT, "no success in %d s, the last try: %s%s",
			      (int)(op->binds->timing.bind_ms / 1000), op->last.msg, doubt);
	else
		finish_failed(op, ETIMEDOUT, "still waiting for its turn after %d s",
			      (int)(op->binds->timing.bind_ms / 1000));
}

/* ---- answers ------------------------------------------------------------------------------------- */

/* Tries again after a while, or after what the server asked for. */
static void again(struct bind_op *op, enum step step, int32_t retry_after_ms)
{
	const struct vg_kube_timing *timing = &op->binds->timing;
	int32_t ms = vg_backoff_ms(op->tries++, timing->backoff_min_ms / 2, timing->backoff_max_ms,
				   vg_random_next(&op->binds->random));

	if (retry_after_ms > ms)
		ms = retry_after_ms;
	op->step = step;
	op->due_ns = vg_clock_mono_ns() + ms * VG_NS_PER_MS;
}

static void end_exchange(struct bind_op *op, const struct vg_reply *reply)
{
	op->call = NULL;
	op->binds->in_flight--;
	vg_reply_explain(reply, op->last.msg, sizeof(op->last.msg));
	if (reply->status < 200 || reply->status > 299)
		vg_count(&op->binds->counters->request_failures);
}

static void on_post_end(void *ctx, const struct vg_reply *reply)
{
	struct bind_op *op = ctx;

	end_exchange(op, reply);
	switch (reply->status) {
	case 200:
	case 201:
	case 202:
		/* The status line is enough: it is sent after the transaction. */
		finish(op, 0, "");
		return;
	case 0:
		op->maybe_bound = op->maybe_bound || reply->maybe_sent;
		again(op, reply->maybe_sent ? STEP_LOOK : STEP_POST, -1);
		return;
	case 401:
		if (++op->unauthorized >= UNAUTHORIZED_TRIES)
			finish_failed(op, EACCES, "%s", op->last.msg);
		else
			again(op, STEP_POST, -1);
		return;
	case 403:
		finish_failed(op, EACCES, "%s; the ClusterRole must allow create on pods/binding",
			      op->last.msg);
		return;
	case 404:
		finish_failed(op, ENOENT, "%s", op->last.msg);
		return;
	case 409:
		op->conflicts++;
		op->step = STEP_LOOK;
		op->due_ns = 0;
		return;
	default:
		break;
	}
	if (!vg_reply_is_passing(reply)) {
		finish_failed(op, EINVAL, "%s", op->last.msg);
		return;
	}
	/* A server error may come after the write; should it have, the next POST is a conflict. */
	op->maybe_bound = op->maybe_bound || reply->status >= 500;
	again(op, STEP_POST, reply->retry_after_ms);
}

static bool has_our_annotations(const struct bind_op *op, const json_t *pod)
{
	const json_t *there = json_object_get(json_object_get(pod, "metadata"), "annotations");
	json_t *ours = json_object_get(json_object_get(op->binding, "metadata"), "annotations");
	const char *key;
	json_t *value;

	json_object_foreach(
		ours, key, value) if (!json_equal(value, json_object_get(there, key))) return false;
	return true;
}

/* Makes the next POST fail if it would hit another state of the pod than this one. */
static void require_version(struct bind_op *op, const json_t *pod)
{
	json_t *version = json_object_get(json_object_get(pod, "metadata"), "resourceVersion");

	if (json_is_string(version))
		json_object_set(json_object_get(op->binding, "metadata"), "resourceVersion",
				version);
}

/* The pod is not bound: because it may not be, or because the POST did not get there. */
static void judge_unbound(struct bind_op *op, const json_t *pod, const char *conflict)
{
	const json_t *spec = json_object_get(pod, "spec");

	if (!op->binds->uid_honoured)
		require_version(op, pod);
	if (*vg_json_meta(pod, "deletionTimestamp")) {
		finish_failed(op, ENOENT, "the pod is being deleted");
	} else if (json_array_size(json_object_get(spec, "schedulingGates"))) {
		finish_failed(op, EBUSY, "the pod has scheduling gates");
	} else if (!op->posted) {
		op->step = STEP_POST;
	} else if (op->conflicts >= CONFLICT_TRIES) {
		finish_failed(op, EBUSY, "%s", conflict);
	} else {
		vg_copy(op->last.msg, sizeof(op->last.msg), conflict);
		again(op, STEP_POST, -1);
	}
}

static void judge_pod(struct bind_op *op, const json_t *pod, const char *conflict)
{
	const char *uid = vg_json_meta(pod, "uid");
	const char *node = vg_json_text(json_object_get(pod, "spec"), "nodeName");

	if (*op->uid && !vg_streq(uid, op->uid))
		finish_failed(op, ENOENT,
			      "the pod was deleted and created again: its uid is %s, not %s", uid,
			      op->uid);
	else if (!*node)
		judge_unbound(op, pod, conflict);
	else if (!vg_streq(node, op->node))
		finish_failed(op, EEXIST, "the pod is bound to node %s already", node);
	else if (!has_our_annotations(op, pod))
		finish_failed(op, EEXIST,
			      "the pod is bound to this node already, with another allocation");
	else
		finish(op, 0, "");
}

static void on_look_end(void *ctx, const struct vg_reply *reply)
{
	struct bind_op *op = ctx;
	struct vg_err before = op->last; /* the POST's end, which is why we looked */
	json_t *pod = NULL;

	end_exchange(op, reply);
	if (reply->complete && reply->status == 200) {
		pod = json_loadb(reply->body, reply->body_size, JSON_REJECT_DUPLICATES, NULL);
		if (json_is_object(pod)) {
			op->looked = true;
			judge_pod(op, pod, before.msg);
		} else {
			vg_copy(op->last.msg, sizeof(op->last.msg),
				"the API server's pod is not JSON");
			again(op, STEP_LOOK, -1);
		}
		json_decref(pod);
	} else if (reply->status == 404) {
		finish_failed(op, ENOENT, "%s", op->last.msg);
	} else if (reply->status == 403) {
		finish_failed(op, EACCES,
			      "%s; the ClusterRole must allow get on pods, or nobody can tell "
			      "whether a request without answer took effect",
			      op->last.msg);
	} else if (reply->status == 401 && ++op->unauthorized >= UNAUTHORIZED_TRIES) {
		finish_failed(op, EACCES, "%s", op->last.msg);
	} else {
		again(op, STEP_LOOK, reply->retry_after_ms);
	}
}

/* ---- requests ------------------------------------------------------------------------------------ */

static void start(struct bind_op *op, int64_t now_ns)
{
	struct vg_binds *binds = op->binds;
	int64_t left_ms = (op->deadline_ns - now_ns) / VG_NS_PER_MS + 1;
	int32_t answer_ms = binds->timing.bind_answer_ms;
	struct vg_call_spec spec = { .method = "GET", .on_end = on_look_end, .ctx = op };
	vg_autofree char *path = NULL;
	vg_autofree char *body = NULL;

	if (op->step == STEP_POST && *op->uid && !binds->uid_honoured && !op->looked)
		op->step = STEP_LOOK;
	path = vg_printf("/api/v1/namespaces/%s/pods/%s%s", op->namespace, op->name,
			 op->step == STEP_POST ? "/binding" : "");
	spec.path = path;
	spec.answer_ms = left_ms < answer_ms ? (int32_t)left_ms : answer_ms;
	spec.idle_ms = spec.answer_ms;
	spec.total_ms = (int32_t)left_ms;
	if (op->step == STEP_POST) {
		body = json_dumps(op->binding, JSON_COMPACT);
		spec.method = "POST";
		spec.content_type = "application/json";
		spec.body = body;
		spec.body_size = strlen(body);
		spec.on_end = on_post_end;
		op->posted = true;
		vg_count(&binds->counters->bind_posts);
	}
	vg_count(&binds->counters->requests);
	binds->in_flight++;
	op->call = vg_client_start(binds->client, &spec);
}

/* ---- version of the server ----------------------------------------------------------------------- */

/* "minor" is "27" or, where a vendor built it, "27+". */
static bool is_uid_honoured(const json_t *version)
{
	struct vg_span minor = VG_SPAN(vg_json_text(version, "minor"));
	uint64_t number;

	if (minor.size && minor.data[minor.size - 1] == '+')
		minor.size--;
	return vg_streq(vg_json_text(version, "major"), "1") &&
	       vg_parse_u64(minor, 0, UINT64_MAX, &number, NULL) == 0 &&
	       number >= UID_HONOURED_MINOR;
}

static void on_version_end(void *ctx, const struct vg_reply *reply)
{
	struct vg_binds *binds = ctx;
	json_t *version = NULL;

	binds->version_call = NULL;
	if (reply->complete && reply->status == 200)
		version = json_loadb(reply->body, reply->body_size, 0, NULL);
	else
		vg_count(&binds->counters->request_failures);
	binds->uid_honoured = is_uid_honoured(version);
	binds->version_due_ns =
		vg_clock_mono_ns() + (version ? VERSION_AGAIN_NS : VERSION_RETRY_NS);
	vg_debug("kube", "version of the API server",
		 VG_S("version", vg_json_text(version, "gitVersion")),
		 VG_S("binding_uid", binds->uid_honoured ? "honoured" : "looked at"));
	json_decref(version);
}

static void ask_version(struct vg_binds *binds)
{
	struct vg_call_spec spec = {
		.method = "GET",
		.path = "/version",
		.answer_ms = binds->timing.bind_answer_ms,
		.total_ms = binds->timing.bind_answer_ms,
		.on_end = on_version_end,
		.ctx = binds,
	};

	vg_count(&binds->counters->requests);
	binds->version_call = vg_client_start(binds->client, &spec);
}

/* ---- queue --------------------------------------------------------------------------------------- */

static void take_incoming(struct vg_binds *binds)
{
	pthread_mutex_lock(&binds->lock);
	if (binds->incoming.first) {
		binds->incoming.first->link = binds->ops.end;
		*binds->ops.end = binds->incoming.first;
		binds->ops.end = binds->incoming.end;
		list_init(&binds->incoming);
	}
	pthread_mutex_unlock(&binds->lock);
}

int64_t vg_binds_run(struct vg_binds *binds, int64_t now_ns)
{
	int64_t next_ns = INT64_MAX;
	struct bind_op *next;

	take_incoming(binds);
	/* At the start, and then before binds, so that an idle client is silent. */
	if (!binds->version_call && now_ns >= binds->version_due_ns &&
	    (binds->ops.first || !binds->version_due_ns))
		ask_version(binds);
	for (struct bind_op *op = binds->ops.first; op; op = next) {
		int64_t last_ns;
		int64_t due_ns;

		next = op->next;
		if (op->call)
			continue;
		last_ns = op->deadline_ns - (op->step == STEP_POST ? POST_LEFT_NS : 0);
		/* Waiting beyond the end helps nobody. */
		if (now_ns >= last_ns || op->due_ns >= last_ns) {
			finish_late(op);
			continue;
		}
		if (op->due_ns <= now_ns && binds->in_flight < VG_LIMIT_BIND_PARALLEL) {
			start(op, now_ns);
			continue;
		}
		due_ns = op->due_ns <= now_ns ? last_ns : op->due_ns;
		if (due_ns < next_ns)
			next_ns = due_ns;
	}
	return next_ns;
}

/* ---- callers ------------------------------------------------------------------------------------- */

/* Names become part of a path: lower-case words, digits, "-" and "." as Kubernetes has them. */
static bool is_name(const char *text)
{
	size_t size = strlen(text);

	if (size == 0 || size > VG_LIMIT_NAME_BYTES || text[0] == '.' || text[0] == '-')
		return false;
	return strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789-.") == size;
}

static int encode(struct bind_op *op, const struct vg_bind_call *call, struct vg_err *err)
{
	json_t *annotations = json_object();
	json_t *metadata;
	int r = 0;

	for (size_t i = 0; i < call->annotation_count && r == 0; i++)
		if (json_object_set_new(annotations, call->annotations[i].key,
					json_string(call->annotations[i].value)) < 0)
			r = vg_fail(err, EINVAL, "annotation %s is not UTF-8",
				    call->annotations[i].key);
	metadata = json_pack("{s:s, s:s, s:o}", "name", op->name, "namespace", op->namespace,
			     "annotations", annotations);
	if (*op->uid && json_object_set_new(metadata, "uid", json_string(op->uid)) < 0 && r == 0)
		r = vg_fail(err, EINVAL, "the uid is not UTF-8");
	op->binding = json_pack("{s:s, s:s, s:o, s:{s:s, s:s, s:s}}", "apiVersion", "v1", "kind",
				"Binding", "metadata", metadata, "target", "apiVersion", "v1",
				"kind", "Node", "name", op->node);
	return r;
}

static struct bind_op *new_op(struct vg_binds *binds, const struct vg_bind_call *call,
			      vg_bind_done done, void *done_ctx)
{
	struct bind_op *op = vg_new(sizeof(*op));

	op->binds = binds;
	op->namespace = vg_strdup(call->namespace);
	op->name = vg_strdup(call->name);
	op->uid = vg_strdup(call->uid ? call->uid : "");
	op->node = vg_strdup(call->node);
	op->done = done;
	op->done_ctx = done_ctx;
	op->deadline_ns = vg_clock_mono_ns() + binds->timing.bind_ms * VG_NS_PER_MS;
	return op;
}

static int enqueue(struct vg_binds *binds, struct bind_op *op, struct vg_err *err)
{
	int r = 0;

	pthread_mutex_lock(&binds->lock);
	if (binds->closed) {
		r = vg_fail(err, ECANCELED, "the program is stopping");
	} else if (binds->count >= VG_LIMIT_BIND_QUEUE) {
		r = vg_fail(err, EBUSY, "%u binds are waiting already, which is the limit",
			    VG_LIMIT_BIND_QUEUE);
	} else {
		binds->count++;
		list_add(&binds->incoming, op);
	}
	pthread_mutex_unlock(&binds->lock);
	return r;
}

void vg_binds_add(struct vg_binds *binds, const struct vg_bind_call *call, vg_bind_done done,
		  void *done_ctx)
{
	struct bind_op *op = new_op(binds, call, done, done_ctx);
	struct vg_err err = { 0 };
	int r;

	if (!is_name(op->namespace) || !is_name(op->name) || !is_name(op->node))
		r = vg_fail(&err, EINVAL, "pod, namespace or node has a name that cannot exist");
	else
		r = encode(op, call, &err);
	if (r == 0)
		r = enqueue(binds, op, &err);
	if (r < 0) {
		vg_err_wrap(&err, r, "pod %s/%s cannot be bound to node %s", op->namespace,
			    op->name, op->node);
		free_op(op);
		done(done_ctx, r, err.msg);
		return;
	}
	vg_client_wake(binds->client);
}

struct vg_binds *vg_binds_new(struct vg_client *client, const struct vg_kube_timing *timing,
			      struct vg_kube_counters *counters)
{
	struct vg_binds *binds = vg_new(sizeof(*binds));

	binds->client = client;
	binds->timing = *timing;
	binds->counters = counters;
	vg_random_init(&binds->random);
	pthread_mutex_init(&binds->lock, NULL);
	list_init(&binds->ops);
	list_init(&binds->incoming);
	return binds;
}

void vg_binds_stop(struct vg_binds *binds)
{
	pthread_mutex_lock(&binds->lock);
	binds->closed = true;
	pthread_mutex_unlock(&binds->lock);
	if (binds->version_call)
		vg_call_cancel(binds->version_call);
	binds->version_call = NULL;
	take_incoming(binds);
	while (binds->ops.first) {
		struct bind_op *op = binds->ops.first;
		bool sent = op->call || op->maybe_bound;

		if (op->call)
			vg_call_cancel(op->call);
		finish_failed(op, ECANCELED, "the program is stopping%s",
			      sent ? "; it may be bound all the same" : "");
	}
}

void vg_binds_free(struct vg_binds *binds)
{
	if (!binds)
		return;
	vg_binds_stop(binds);
	pthread_mutex_destroy(&binds->lock);
	free(binds);
}
