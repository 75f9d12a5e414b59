/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a list and its watches:
 *
 *	page ─▶ page ─▶ … ─▶ watch ─ ended by its time ─▶ watch ─▶ …
 *	 │ ▲                   │ ─ cut, silent, 429, 5xx ─ wait ─▶ watch, from the last version
 *	 │ │                   │ ─ the same five times in a row ─▶ first page
 *	 │ │                   └ ─ 410, an event that cannot be read ─ wait ─▶ first page
 *	 │ └─ wait ─ cut, silent, 429, 5xx: the same page again, if it is not the first
 *	 └ ─ 410, older than what was seen, no list at all ─ wait ─▶ first page
 *
 * The sink hears of a list that is given up (list_abort) and keeps what it knows; nothing that was seen
 * is replaced by an older state of it, whoever says so.
 */
#include "kube/list_watch_internal.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "kube/decoder_internal.h"
#include "kube/json_internal.h"
#include "kube/retry_internal.h"
#include "kube/versions_internal.h"

static const struct kind_row {
	const char *plural;
	const char *path;
	bool namespaced;
	bool optional;         /* we can do without when the API server forbids them */
	const char *forbidden; /* what to do then */
} kind_rows[VG_KIND_COUNT] = {
	[VG_KIND_NODE] = {
		"nodes", "/api/v1/nodes", false, false,
		"the ClusterRole must allow get, list and watch on nodes",
	},
	[VG_KIND_POD] = {
		"pods", "/api/v1/pods", true, false,
		"the ClusterRole must allow get, list and watch on pods in all namespaces",
	},
	[VG_KIND_QUOTA] = {
		"resourcequotas", "/api/v1/resourcequotas", true, true,
		"limits of namespaces on cards are not looked at until the ClusterRole allows get, list "
		"and watch on resourcequotas in all namespaces; everything else works",
	},
};

/* A watch that the server refuses so often in a row, without one event in between, gives way to a list. */
#define WATCH_TRIES 5

/* Once a watch has held so long, the troubles before it no longer make the next wait longer. */
#define HEALTHY_NS (10 * VG_NS_PER_S)

/* A watch that the server ends sooner, with nothing in it, was not wanted. */
#define QUICK_NS (VG_NS_PER_S / 2)

/* "namespace/name" */
#define KEY_BYTES (2 * (VG_LIMIT_NAME_BYTES + 1) + 1)

/* Why we ended an exchange from within on_data(). */
enum stop {
	STOP_NONE,
	STOP_RELIST,   /* the watch can no longer be gone on with */
	STOP_REWATCH,  /* the server ended the watch with an error that may pass */
	STOP_STALE,    /* the list is older than what was seen */
	STOP_TOO_LONG, /* the page is over its limit */
	STOP_GARBAGE,  /* the page is no list */
};

struct vg_list_watch {
	struct vg_list_watch_options o;
	const struct kind_row *row;
	struct vg_arena arena; /* of one object */
	struct vg_versions versions;
	struct vg_watch_decoder watch_decoder;
	struct vg_list_decoder list_decoder;
	struct vg_random random;

	struct vg_call *call;
	int64_t due_ns;   /* when to start the next exchange */
	uint32_t tries;   /* failures in a row: how long to wait */
	uint32_t relists; /* in a row, without a watch that held: likewise */
	enum stop stop;
	struct vg_err stop_err; /* its text */
	int32_t stop_retry_ms;  /* what an ERROR event asked for, or -1 */

	/* List. */
	bool listing;       /* list_begin() was called, list_end() not yet */
	bool page_begun;    /* the items of the page have begun */
	unsigned page_size; /* items */
	char *next_page;    /* the continue token; NULL = from the beginning */
	char *list_version; /* of the first page: that is where the watch begins */

	/* Watch. */
	char *version; /* the last that was seen; NULL = list first */
	uint64_t version_number;
	int64_t watch_started_ns;
	uint32_t watch_tries;  /* refusals in a row */
	uint64_t watch_events; /* that were news */

	/* Log. */
	bool forbidden;      /* an optional kind, and that was said */
	bool failure_logged; /* and not yet that it is over */
	uint32_t failures;   /* since it works no more */
	struct vg_log_gate failure_gate;
	struct vg_log_gate malformed_gate;
	struct vg_log_gate stale_gate;
};

/* ---- objects ------------------------------------------------------------------------------------- */

static void heard(struct vg_list_watch *lw)
{
	lw->o.sink.ops->heard(lw->o.sink.ctx, lw->o.kind);
}

static void report_malformed(struct vg_list_watch *lw, const char *key, const char *why)
{
	uint32_t suppressed;

	vg_count(&lw->o.counters->malformed[lw->o.kind]);
	lw->o.sink.ops->malformed(lw->o.sink.ctx, lw->o.kind, key, why);
	if (vg_log_gate_pass(&lw->malformed_gate, vg_clock_mono_ns(), 0, &suppressed))
		vg_warn("kube", "an object cannot be read and is left out",
			VG_S("kind", lw->row->plural), VG_S("object", key), VG_S("error", why),
			VG_I("suppressed", suppressed));
}

/* "name" or "namespace/name"; false when the object has no name. */
static bool object_key(const struct vg_list_watch *lw, const char *namespace, const char *name,
		       char key[static KEY_BYTES])
{
	int length = lw->row->namespaced ? snprintf(key, KEY_BYTES, "%s/%s", namespace, name)
					 : snprintf(key, KEY_BYTES, "%s", name);

	return *name && (!lw->row->namespaced || *namespace) && length < (int)KEY_BYTES;
}

static int put_node(struct vg_list_watch *lw, const json_t *object, struct vg_err *err)
{
	struct vg_node_info node;
	int r = vg_node_decode(object, lw->o.classes, &lw->arena, &node, err);

	if (r == 0)
		lw->o.sink.ops->put_node(lw->o.sink.ctx, &node);
	return r;
}

static int put_pod(struct vg_list_watch *lw, const json_t *object, struct vg_err *err)
{
	struct vg_pod pod;
	int r = vg_pod_decode(object, lw->o.classes, &lw->arena, &pod, err);

	if (r == 0)
		lw->o.sink.ops->put_pod(lw->o.sink.ctx, &pod);
	return r;
}

static int put_quota(struct vg_list_watch *lw, const json_t *object, struct vg_err *err)
{
	struct vg_quota_info quota;
	int r = vg_quota_decode(object, lw->o.classes, &lw->arena, &quota, err);

	if (r == 0)
		lw->o.sink.ops->put_quota(lw->o.sink.ctx, &quota);
	return r;
}

static void put(struct vg_list_watch *lw, const json_t *object, const char *key)
{
	static int (*const puts[VG_KIND_COUNT])(struct vg_list_watch * lw, const json_t *object,
						struct vg_err *err) = {
		[VG_KIND_NODE] = put_node,
		[VG_KIND_POD] = put_pod,
		[VG_KIND_QUOTA] = put_quota,
	};
	struct vg_err err = { 0 };

	vg_arena_clear(&lw->arena);
	if (puts[lw->o.kind](lw, object, &err) < 0)
		report_malformed(lw, key, err.msg);
}

static void drop(struct vg_list_watch *lw, const json_t *object)
{
	const struct vg_sink_ops *ops = lw->o.sink.ops;
	const char *namespace = vg_json_meta(object, "namespace");
	const char *name = vg_json_meta(object, "name");

	switch (lw->o.kind) {
	case VG_KIND_NODE:
		ops->delete_node(lw->o.sink.ctx, name);
		break;
	case VG_KIND_POD:
		ops->delete_pod(lw->o.sink.ctx, namespace, name, vg_json_meta(object, "uid"));
		break;
	case VG_KIND_QUOTA:
		ops->delete_quota(lw->o.sink.ctx, namespace, name);
		break;
	case VG_KIND_COUNT:
		break;
	}
}

static void replace(char **text, const char *with)
{
	char *copy = with ? vg_strdup(with) : NULL;

	free(*text);
	*text = copy;
}

/* ---- what comes next ----------------------------------------------------------------------------- */

static void forget_list(struct vg_list_watch *lw)
{
	if (lw->listing)
		lw->o.sink.ops->list_abort(lw->o.sink.ctx, lw->o.kind);
	lw->listing = false;
	replace(&lw->next_page, NULL);
	replace(&lw->list_version, NULL);
}

/* The place in time where we stand is lost: everything is listed anew. */
static void list_anew(struct vg_list_watch *lw)
{
	forget_list(lw);
	replace(&lw->version, NULL);
	lw->watch_tries = 0;
}

static void wait_ms(struct vg_list_watch *lw, int32_t ms)
{
	lw->due_ns = vg_clock_mono_ns() + ms * VG_NS_PER_MS;
}

/* What to do about an HTTP status, for the log. */
static const char *advice(const struct vg_list_watch *lw, long status)
{
	switch (status) {
	case 401:
		return "the API server does not accept the credentials; they are read again before "
		       "each request";
	case 403:
		return lw->row->forbidden;
	case 404:
		return "is the server's URL that of an API server?";
	default:
		return "";
	}
}

/*
 * 403 for a kind that we can do without. Roles that were written for another scheduler may lack it for
 * ever: it is said once, and asked for again at the longest interval.
 */
static void do_without(struct vg_list_watch *lw, const char *error)
{
	int32_t ms = lw->o.timing.backoff_max_ms;

	lw->failures++;
	vg_count(&lw->o.counters->failures[lw->o.kind]);
	wait_ms(lw, ms + vg_random_up_to(&lw->random, ms / 4));
	lw->o.sink.ops->forbidden(lw->o.sink.ctx, lw->o.kind);
	if (lw->forbidden)
		return;
	lw->forbidden = true;
	lw->failure_logged = true;
	vg_warn("kube", "goes on without objects of a kind that it may not read",
		VG_S("kind", lw->row->plural), VG_S("error", error),
		VG_S("advice", lw->row->forbidden));
}

/* Sets when to try again, and says so: at once the first time, then seldom. */
static void failed(struct vg_list_watch *lw, const char *doing, long status, const char *error,
		   int32_t retry_after_ms)
{
	int32_t ms = vg_backoff_ms(lw->tries, lw->o.timing.backoff_min_ms,
				   lw->o.timing.backoff_max_ms, vg_random_next(&lw->random));
	uint32_t suppressed;

	if (status == 403 && lw->row->optional) {
		do_without(lw, error);
		return;
	}
	/* Some jitter on top, or all clients that were sent away come back in the same instant. */
	if (retry_after_ms > ms)
		ms = retry_after_ms + vg_random_up_to(&lw->random, retry_after_ms / 4);
	lw->tries++;
	lw->failures++;
	vg_count(&lw->o.counters->failures[lw->o.kind]);
	wait_ms(lw, ms);
	/* The same trouble at the same step is one topic. */
	if (!vg_log_gate_pass(&lw->failure_gate, vg_clock_mono_ns(),
			      (lw->version ? 100000 : 0) + lw->stop * 1000 + status, &suppressed))
		return;
	lw->failure_logged = true;
	vg_warn("kube", "cannot follow the cluster, will try again", VG_S("kind", lw->row->plural),
		VG_S("doing", doing), VG_S("error", error), VG_S("advice", advice(lw, status)),
		VG_I("retry_ms", ms), VG_I("failures", lw->failures),
		VG_I("suppressed", suppressed));
}

/* A list is done, or a watch brought news: the end of a trouble is told if its beginning was. */
static void works(struct vg_list_watch *lw)
{
	if (lw->failure_logged)
		vg_info("kube", "follows the cluster again", VG_S("kind", lw->row->plural),
			VG_I("failures", lw->failures));
	lw->forbidden = false;
	lw->failure_logged = false;
	lw->failures = 0;
}

/* ---- list ---------------------------------------------------------------------------------------- */

static bool stop_with(struct vg_list_watch *lw, enum stop stop, const char *why)
{
	lw->stop = stop;
	vg_copy(lw->stop_err.msg, sizeof(lw->stop_err.msg), why);
	return false;
}

static bool stale_list(struct vg_list_watch *lw, const char *what, const char *version)
{
	vg_count(&lw->o.counters->stale[lw->o.kind]);
	lw->stop = STOP_STALE;
	vg_fail(&lw->stop_err, ESTALE,
		"the list is older than what was seen before (%s at version %s, seen: %" PRIu64
		"); if the cluster's store was restored from a backup, restart this program",
		what, version,
		lw->version_number > lw->versions.floor ? lw->version_number : lw->versions.floor);
	return false;
}

/* The list's own version must not lie before anything that a watch or a list said. */
static bool check_list_version(struct vg_list_watch *lw, const char *version)
{
	uint64_t number = vg_version_number(version);

	if (!number || (number >= lw->versions.floor && number >= lw->version_number))
		return true;
	return stale_list(lw, "list", version);
}

static bool on_page_begin(void *ctx, const json_t *head)
{
	struct vg_list_watch *lw = ctx;
	const char *version = vg_json_meta(head, "resourceVersion");

	if (*version && !check_list_version(lw, version))
		return false;
	lw->page_begun = true;
	if (lw->listing)
		return true;
	lw->listing = true;
	vg_versions_list_begin(&lw->versions);
	lw->o.sink.ops->list_begin(lw->o.sink.ctx, lw->o.kind);
	return true;
}

static bool on_item(void *ctx, const char *text, size_t size, bool whole)
{
	struct vg_list_watch *lw = ctx;
	char namespace[VG_LIMIT_NAME_BYTES + 1];
	char name[VG_LIMIT_NAME_BYTES + 1];
	char key[KEY_BYTES];
	json_error_t error;
	const char *version;
	json_t *object;
	bool fresh;

	object = whole ? json_loadb(text, size, JSON_REJECT_DUPLICATES, &error) : NULL;
	if (!json_is_object(object)) {
		const char *why = !whole   ? "the object is too long"
				  : object ? "it is no object"
					   : error.text;

		/* The sink keeps what it knows under the name: what it is now cannot be told. */
		if (!vg_peek_name(text, size, namespace, name, sizeof(name)) ||
		    !object_key(lw, namespace, name, key))
			vg_copy(key, sizeof(key), "");
		report_malformed(lw, key, why);
		json_decref(object);
		return true;
	}
	if (!object_key(lw, vg_json_meta(object, "namespace"), vg_json_meta(object, "name"), key)) {
		json_decref(object);
		report_malformed(lw, "", "metadata.name or metadata.namespace is missing");
		return true;
	}
	version = vg_json_meta(object, "resourceVersion");
	fresh = vg_versions_listed(&lw->versions, key, vg_version_number(version));
	if (fresh)
		put(lw, object, key);
	else
		stale_list(lw, key, version);
	json_decref(object);
	return fresh;
}

static const struct vg_list_decoder_ops list_ops = { .begin = on_page_begin, .item = on_item };

static bool on_list_data(void *ctx, const char *data, size_t size)
{
	struct vg_list_watch *lw = ctx;
	struct vg_err err = { 0 };
	int r = vg_list_decoder_feed(&lw->list_decoder, data, size, &err);

	/* When an op said stop, it has said why. */
	if (r < 0 && r != -ECANCELED)
		stop_with(lw, r == -E2BIG ? STOP_TOO_LONG : STOP_GARBAGE, err.msg);
	return r == 0;
}

/* A page was received whole: 0, or what is wrong with it. */
static int take_page(struct vg_list_watch *lw, struct vg_err *err)
{
	const char *version;
	const char *next;
	json_t *head;
	int r;

	r = vg_list_decoder_end(&lw->list_decoder, &head, err);
	if (r < 0)
		return r;
	version = vg_json_meta(head, "resourceVersion");
	next = vg_json_meta(head, "continue");
	if (!*version) {
		r = vg_fail(err, EINVAL,
			    "the answer is no list: it has no metadata.resourceVersion");
	} else if (!check_list_version(lw, version)) {
		*err = lw->stop_err;
		r = -ESTALE;
	} else if (!lw->page_begun && !on_page_begin(lw, head)) {
		r = -ESTALE; /* "items": null; cannot fail after the check above */
	} else {
		if (!lw->list_version)
			replace(&lw->list_version, version);
		replace(&lw->next_page, *next ? next : NULL);
	}
	json_decref(head);
	return r;
}

static void finish_list(struct vg_list_watch *lw)
{
	uint64_t number = vg_version_number(lw->list_version);

	vg_versions_list_end(&lw->versions, number);
	lw->listing = false;
	lw->o.sink.ops->list_end(lw->o.sink.ctx, lw->o.kind);
	vg_count(&lw->o.counters->lists[lw->o.kind]);
	vg_debug("kube", "listed", VG_S("kind", lw->row->plural),
		 VG_S("version", lw->list_version));
	free(lw->version);
	lw->version = vg_steal(lw->list_version);
	if (number > lw->version_number)
		lw->version_number = number;
	works(lw);
}

static void on_list_end(void *ctx, const struct vg_reply *reply)
{
	struct vg_list_watch *lw = ctx;
	char text[VG_ERR_MSG_MAX];
	struct vg_err err = { 0 };

	lw->call = NULL;
	if (reply->complete && reply->status == 200) {
		if (take_page(lw, &err) == 0) {
			lw->due_ns = 0;
			lw->tries = 0;
			heard(lw);
			if (!lw->next_page)
				finish_list(lw);
			return;
		}
		forget_list(lw);
		failed(lw, "list", 0, err.msg, -1);
		return;
	}
	if (lw->stop == STOP_TOO_LONG && lw->page_size > 1) {
		lw->page_size /= 2;
		lw->tries = 0;
	}
	if (lw->stop != STOP_NONE)
		vg_copy(text, sizeof(text), lw->stop_err.msg);
	else
		vg_reply_explain(reply, text, sizeof(text));
	/*
	 * A page may be asked for again, since its token stands for one state of the cluster. The first
	 * page would show a new state, and the token of a later one may have grown too old.
	 */
	if (reply->status == 410 || lw->stop == STOP_STALE || !lw->next_page)
		forget_list(lw);
	failed(lw, "list", reply->status, text, reply->retry_after_ms);
}

/* Continue tokens are base64 today and opaque for ever. */
static void add_escaped(struct vg_buf *url, const char *text)
{
	for (const char *c = text; *c; c++) {
		if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		    (*c >= '0' && *c <= '9') || strchr("-._~", *c))
			vg_buf_add(url, c, 1);
		else
			vg_buf_addf(url, "%%%02X", (unsigned char)*c);
	}
}

static void start_list(struct vg_list_watch *lw)
{
	struct vg_call_spec spec = {
		.method = "GET",
		.answer_ms = lw->o.timing.answer_ms,
		.idle_ms = lw->o.timing.idle_ms,
		.on_data = on_list_data,
		.on_end = on_list_end,
		.ctx = lw,
	};
	struct vg_buf path;

	vg_buf_init(&path, VG_LIMIT_LIST_HEAD_BYTES * 4);
	vg_buf_addf(&path, "%s?limit=%u", lw->row->path, lw->page_size);
	if (lw->next_page) {
		vg_buf_adds(&path, "&continue=");
		add_escaped(&path, lw->next_page);
	}
	spec.path = path.data;
	lw->stop = STOP_NONE;
	lw->page_begun = false;
	vg_list_decoder_clear(&lw->list_decoder);
	lw->call = vg_client_start(lw->o.client, &spec);
	vg_buf_release(&path);
}

/* ---- watch --------------------------------------------------------------------------------------- */

/* The place to go on from: never before one that was reached already. */
static void advance(struct vg_list_watch *lw, const char *version)
{
	uint64_t number = vg_version_number(version);

	if (!*version || (number && number <= lw->version_number))
		return;
	replace(&lw->version, version);
	if (number)
		lw->version_number = number;
}

static bool on_error_event(struct vg_list_watch *lw, const json_t *status)
{
	json_int_t code = json_integer_value(json_object_get(status, "code"));
	json_int_t seconds = json_integer_value(
		json_object_get(json_object_get(status, "details"), "retryAfterSeconds"));
	const char *reason = vg_json_text(status, "reason");
	char text[VG_ERR_MSG_MAX];

	snprintf(text, sizeof(text), "the watch was ended with %" JSON_INTEGER_FORMAT " %s: %s",
		 code, reason, vg_json_text(status, "message"));
	if (code == 410 || vg_streq(reason, "Expired") || vg_streq(reason, "Gone"))
		return stop_with(lw, STOP_RELIST, text);
	if (seconds > 0)
		lw->stop_retry_ms = seconds >= VG_RETRY_AFTER_MAX_MS / 1000
					    ? VG_RETRY_AFTER_MAX_MS
					    : (int32_t)seconds * 1000;
	return stop_with(lw, STOP_REWATCH, text);
}

static void report_stale(struct vg_list_watch *lw, const char *key, const char *version)
{
	uint32_t suppressed;

	vg_count(&lw->o.counters->stale[lw->o.kind]);
	if (vg_log_gate_pass(&lw->stale_gate, vg_clock_mono_ns(), 0, &suppressed))
		vg_warn("kube", "an event is older than what was seen before and is left out",
			VG_S("kind", lw->row->plural), VG_S("object", key),
			VG_S("version", version), VG_I("suppressed", suppressed));
}

static bool on_event(void *ctx, enum vg_event_type type, const json_t *object)
{
	struct vg_list_watch *lw = ctx;
	const char *version = vg_json_meta(object, "resourceVersion");
	uint64_t number = vg_version_number(version);
	char key[KEY_BYTES];

	vg_count(&lw->o.counters->events[lw->o.kind]);
	if (type == VG_EVENT_ERROR)
		return on_error_event(lw, object);
	lw->watch_tries = 0;
	if (type == VG_EVENT_BOOKMARK || type == VG_EVENT_OTHER) {
		/* A bookmark from the past comes from a server that is behind. */
		if (!number || number >= lw->version_number)
			lw->watch_events++;
		advance(lw, version);
		return true;
	}
	if (!object_key(lw, vg_json_meta(object, "namespace"), vg_json_meta(object, "name"), key)) {
		report_malformed(lw, "", "metadata.name or metadata.namespace is missing");
		return stop_with(lw, STOP_RELIST, "an event does not say which object it is about");
	}
	if (type == VG_EVENT_DELETED ? !vg_versions_delete(&lw->versions, key, number)
				     : !vg_versions_put(&lw->versions, key, number)) {
		report_stale(lw, key, version);
		return true;
	}
	lw->watch_events++;
	if (type == VG_EVENT_DELETED)
		drop(lw, object);
	else
		put(lw, object, key);
	advance(lw, version);
	return true;
}

static bool on_unreadable(void *ctx, const char *why)
{
	struct vg_list_watch *lw = ctx;
	char text[VG_ERR_MSG_MAX];

	report_malformed(lw, "", why);
	snprintf(text, sizeof(text), "an event cannot be read: %s", why);
	return stop_with(lw, STOP_RELIST, text);
}

static const struct vg_watch_decoder_ops watch_ops = {
	.event = on_event,
	.unreadable = on_unreadable,
};

static bool on_watch_data(void *ctx, const char *data, size_t size)
{
	struct vg_list_watch *lw = ctx;
	uint64_t before = lw->watch_events;
	bool more = vg_watch_decoder_feed(&lw->watch_decoder, data, size);

	if (lw->watch_events != before) {
		lw->tries = 0;
		works(lw);
		heard(lw);
	}
	return more;
}

/* Waits before a list that replaces a watch: hardly the first time, then ever longer. */
static void relist(struct vg_list_watch *lw, const char *why)
{
	int32_t ms = vg_random_up_to(&lw->random, lw->o.timing.backoff_min_ms);

	if (lw->relists)
		ms = vg_backoff_ms(lw->relists, lw->o.timing.backoff_min_ms,
				   lw->o.timing.backoff_max_ms, vg_random_next(&lw->random));
	lw->relists++;
	list_anew(lw);
	wait_ms(lw, ms);
	vg_info("kube", "lists again", VG_S("kind", lw->row->plural), VG_S("reason", why),
		VG_I("wait_ms", ms));
}

/* The server ended the watch as it was asked to. */
static void watch_is_over(struct vg_list_watch *lw, int64_t lasted_ns)
{
	if (lasted_ns < QUICK_NS && !lw->watch_events) {
		/* Not in a tight loop with a server that ends every watch at once. */
		failed(lw, "watch", 0, "the server ends the watch at once", -1);
		return;
	}
	lw->tries = 0;
	works(lw);
	heard(lw);
	wait_ms(lw, vg_random_up_to(&lw->random, lw->o.timing.backoff_min_ms / 4));
}

static void on_watch_end(void *ctx, const struct vg_reply *reply)
{
	struct vg_list_watch *lw = ctx;
	bool by_its_time = reply->complete && reply->status == 200;
	int64_t lasted_ns = vg_clock_mono_ns() - lw->watch_started_ns;
	char text[VG_ERR_MSG_MAX];

	lw->call = NULL;
	if (lasted_ns > HEALTHY_NS && (by_its_time || lw->watch_events))
		lw->relists = 0;
	if (by_its_time) {
		lw->watch_tries = 0;
		watch_is_over(lw, lasted_ns);
		return;
	}
	vg_count(&lw->o.counters->watch_restarts[lw->o.kind]);
	if (lw->stop == STOP_NONE)
		vg_reply_explain(reply, text, sizeof(text));
	else
		vg_copy(text, sizeof(text), lw->stop_err.msg);
	/* 400: the server cannot read the version. */
	if (lw->stop == STOP_RELIST || reply->status == 410 || reply->status == 400) {
		relist(lw, text);
		return;
	}
	/*
	 * The server answers, but not to this watch: perhaps it cannot go on from there. Being busy, or
	 * a stream that was cut, says nothing of the kind.
	 */
	if ((lw->stop == STOP_REWATCH || (reply->complete && reply->status != 429)) &&
	    ++lw->watch_tries >= WATCH_TRIES)
		list_anew(lw);
	failed(lw, "watch", reply->status, text,
	       lw->stop == STOP_REWATCH ? lw->stop_retry_ms : reply->retry_after_ms);
}

static void start_watch(struct vg_list_watch *lw)
{
	const struct vg_kube_timing *timing = &lw->o.timing;
	/* Spread, so that not all watches of all replicas end together. */
	int32_t seconds =
		timing->watch_ms / 1000 + vg_random_up_to(&lw->random, timing->watch_ms / 2000);
	struct vg_call_spec spec = {
		.method = "GET",
		.answer_ms = timing->answer_ms,
		.on_data = on_watch_data,
		.on_end = on_watch_end,
		.ctx = lw,
	};
	struct vg_buf path;

	if (seconds < 1)
		seconds = 1;
	/* With or without events and bookmarks: by then the server has to have said something. */
	spec.idle_ms = seconds * 1000 + timing->watch_slack_ms;
	spec.total_ms = seconds * 1000 + 2 * timing->watch_slack_ms;
	vg_buf_init(&path, 64 << 10);
	vg_buf_addf(&path, "%s?watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=",
		    lw->row->path, (int)seconds);
	add_escaped(&path, lw->version);
	spec.path = path.data;
	lw->stop = STOP_NONE;
	lw->stop_retry_ms = -1;
	lw->watch_events = 0;
	lw->watch_started_ns = vg_clock_mono_ns();
	vg_watch_decoder_clear(&lw->watch_decoder);
	lw->call = vg_client_start(lw->o.client, &spec);
	vg_buf_release(&path);
}

/* ---- life ---------------------------------------------------------------------------------------- */

struct vg_list_watch *vg_list_watch_new(const struct vg_list_watch_options *options)
{
	struct vg_list_watch *lw = vg_new(sizeof(*lw));

	lw->o = *options;
	lw->row = &kind_rows[options->kind];
	lw->page_size = VG_LIMIT_LIST_PAGE;
	vg_arena_init(&lw->arena);
	vg_versions_init(&lw->versions);
	vg_watch_decoder_init(&lw->watch_decoder, VG_LIMIT_WATCH_LINE_BYTES, &watch_ops, lw);
	vg_list_decoder_init(&lw->list_decoder, VG_LIMIT_WATCH_LINE_BYTES, VG_LIMIT_LIST_PAGE_BYTES,
			     &list_ops, lw);
	vg_random_init(&lw->random);
	return lw;
}

void vg_list_watch_free(struct vg_list_watch *lw)
{
	if (!lw)
		return;
	if (lw->call)
		vg_call_cancel(lw->call);
	list_anew(lw);
	vg_watch_decoder_release(&lw->watch_decoder);
	vg_list_decoder_release(&lw->list_decoder);
	vg_versions_release(&lw->versions);
	vg_arena_release(&lw->arena);
	free(lw);
}

int64_t vg_list_watch_run(struct vg_list_watch *lw, int64_t now_ns)
{
	if (lw->call)
		return INT64_MAX;
	if (now_ns < lw->due_ns)
		return lw->due_ns;
	if (lw->version)
		start_watch(lw);
	else
		start_list(lw);
	return INT64_MAX;
}
