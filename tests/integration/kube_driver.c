/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The API server client alone, for tests: everything that its sink is told comes out on standard
 * output, one JSON object per line, and what it shall do comes in on standard input:
 *
 *	bind ID NAMESPACE NAME UID NODE [KEY=VALUE…]     answered by {"bound": ID, "code": …, …}
 *	nudge NAMESPACE NAME UID                         answered by nothing
 *	stats                                            answered by {"stats": {…}}
 *	stop                                             also at the end of the input
 *
 *	usage: kube_driver --kubeconfig FILE [--timing MEMBER=MS]…
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/num.h"
#include "base/str.h"
#include "kube/kube.h"

#define WORDS_MAX 64

static const char *const kind_word[VG_KIND_COUNT] = {
	[VG_KIND_NODE] = "nodes",
	[VG_KIND_POD] = "pods",
	[VG_KIND_QUOTA] = "resourcequotas",
};

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER;

/* Takes the reference. */
static void say(json_t *line)
{
	char *text = json_dumps(line, JSON_COMPACT);

	if (!text) {
		fprintf(stderr, "kube_driver: a line cannot be encoded\n");
		exit(1);
	}
	pthread_mutex_lock(&output);
	puts(text);
	fflush(stdout);
	pthread_mutex_unlock(&output);
	free(text);
	json_decref(line);
}

static void on_list_begin(void *ctx, enum vg_kind kind)
{
	(void)ctx;
	say(json_pack("{s:s}", "list_begin", kind_word[kind]));
}

static void on_list_end(void *ctx, enum vg_kind kind)
{
	(void)ctx;
	say(json_pack("{s:s}", "list_end", kind_word[kind]));
}

static void on_list_abort(void *ctx, enum vg_kind kind)
{
	(void)ctx;
	say(json_pack("{s:s}", "list_abort", kind_word[kind]));
}

static void on_put_node(void *ctx, const struct vg_node_info *node)
{
	(void)ctx;
	say(json_pack("{s:s, s:s, s:s, s:I, s:I, s:I}", "put", "nodes", "key", node->name, "uid",
		      node->uid, "version", (json_int_t)node->resource_version, "cards",
		      (json_int_t)node->card_count, "allocatable", (json_int_t)node->allocatable));
}

static void on_put_pod(void *ctx, const struct vg_pod *pod)
{
	const char *allocated = pod->annotations.value[VG_ANNO_POD_ALLOCATED];
	vg_autofree char *key = vg_printf("%s/%s", pod->namespace, pod->name);

	(void)ctx;
	say(json_pack("{s:s, s:s, s:s, s:I, s:s, s:s?}", "put", "pods", "key", key, "uid", pod->uid,
		      "version", (json_int_t)pod->resource_version, "node", pod->node_name,
		      "allocated", allocated));
}

static void on_put_quota(void *ctx, const struct vg_quota_info *quota)
{
	vg_autofree char *key = vg_printf("%s/%s", quota->namespace, quota->name);

	(void)ctx;
	say(json_pack("{s:s, s:s, s:s, s:I, s:[I, I]}", "put", "resourcequotas", "key", key, "uid",
		      quota->uid, "version", (json_int_t)quota->resource_version, "hard",
		      (json_int_t)quota->hard[0].mem_mib, (json_int_t)quota->hard[0].cores));
}

static void on_delete_node(void *ctx, const char *name)
{
	(void)ctx;
	say(json_pack("{s:s, s:s}", "delete", "nodes", "key", name));
}

static void on_delete_pod(void *ctx, const char *namespace, const char *name, const char *uid)
{
	vg_autofree char *key = vg_printf("%s/%s", namespace, name);

	(void)ctx;
	say(json_pack("{s:s, s:s, s:s}", "delete", "pods", "key", key, "uid", uid));
}

static void on_delete_quota(void *ctx, const char *namespace, const char *name)
{
	vg_autofree char *key = vg_printf("%s/%s", namespace, name);

	(void)ctx;
	say(json_pack("{s:s, s:s}", "delete", "resourcequotas", "key", key));
}

static void on_forbidden(void *ctx, enum vg_kind kind)
{
	(void)ctx;
	say(json_pack("{s:s}", "forbidden", kind_word[kind]));
}

static void on_malformed(void *ctx, enum vg_kind kind, const char *what, const char *why)
{
	(void)ctx;
	say(json_pack("{s:s, s:s, s:s}", "malformed", kind_word[kind], "key", what, "why", why));
}

static void on_heard(void *ctx, enum vg_kind kind)
{
	(void)ctx;
	say(json_pack("{s:s}", "heard", kind_word[kind]));
}

static const struct vg_sink_ops sink_ops = {
	.list_begin = on_list_begin,
	.list_end = on_list_end,
	.list_abort = on_list_abort,
	.put_node = on_put_node,
	.put_pod = on_put_pod,
	.put_quota = on_put_quota,
	.delete_node = on_delete_node,
	.delete_pod = on_delete_pod,
	.delete_quota = on_delete_quota,
	.forbidden = on_forbidden,
	.malformed = on_malformed,
	.heard = on_heard,
};

static void on_bound(void *ctx, int code, const char *message)
{
	vg_autofree char *id = ctx;
	const char *word = code ? strerrorname_np(-code) : "";

	say(json_pack("{s:s, s:s, s:s}", "bound", id, "code", word ? word : "?", "message",
		      message));
}

static void do_bind(struct vg_binder binder, char **words, size_t count)
{
	struct vg_key_value annotations[WORDS_MAX];
	struct vg_bind_call call = {
		.namespace = words[2],
		.name = words[3],
		.uid = words[4],
		.node = words[5],
		.annotations = annotations,
	};

	for (size_t i = 6; i < count; i++) {
		char *equals = strchr(words[i], '=');

		if (!equals)
			continue;
		*equals = '\0';
		annotations[call.annotation_count].key = words[i];
		annotations[call.annotation_count++].value = equals + 1;
	}
	binder.bind(binder.ctx, &call, on_bound, vg_strdup(words[1]));
}

static json_t *per_kind(const uint64_t counts[VG_KIND_COUNT])
{
	json_t *object = json_object();

	for (int kind = 0; kind < VG_KIND_COUNT; kind++)
		json_object_set_new(object, kind_word[kind],
				    json_integer((json_int_t)counts[kind]));
	return object;
}

static void do_stats(const struct vg_kube *kube)
{
	struct vg_kube_stats stats;

	vg_kube_stats(kube, &stats);
	say(json_pack("{s:{s:o, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I, s:I}}", "stats", "lists",
		      per_kind(stats.lists), "watch_restarts", per_kind(stats.watch_restarts),
		      "failures", per_kind(stats.failures), "events", per_kind(stats.events),
		      "malformed", per_kind(stats.malformed), "stale", per_kind(stats.stale),
		      "requests", (json_int_t)stats.requests, "request_failures",
		      (json_int_t)stats.request_failures, "bind_posts",
		      (json_int_t)stats.bind_posts, "nudges", (json_int_t)stats.nudges));
}

static size_t split(char *line, char *words[WORDS_MAX])
{
	size_t count = 0;

	while (*line && count < WORDS_MAX) {
		size_t length = strcspn(line, " \n");

		if (length)
			words[count++] = line;
		line += length;
		if (*line)
			*line++ = '\0';
	}
	return count;
}

static bool set_timing(struct vg_kube_timing *timing, const char *text)
{
	struct vg_span rest = VG_SPAN(text);
	struct vg_span name;
	int64_t ms;

	vg_cut(&rest, '=', &name);
	if (!rest.data || vg_parse_i64(rest, 1, INT32_MAX, &ms, NULL) < 0)
		return false;
#define MEMBER(member)                                                                             \
	if (vg_span_eq(name, #member)) {                                                           \
		timing->member = (int32_t)ms;                                                      \
		return true;                                                                       \
	}
	MEMBER(connect_ms)
	MEMBER(answer_ms)
	MEMBER(idle_ms)
	MEMBER(watch_ms)
	MEMBER(watch_slack_ms)
	MEMBER(backoff_min_ms)
	MEMBER(backoff_max_ms)
	MEMBER(bind_ms)
	MEMBER(bind_answer_ms)
#undef MEMBER
	return false;
}

static void serve(struct vg_kube *kube)
{
	char *line = NULL;
	size_t room = 0;

	while (getline(&line, &room, stdin) > 0) {
		char *words[WORDS_MAX];
		size_t count = split(line, words);

		if (count >= 6 && vg_streq(words[0], "bind"))
			do_bind(vg_kube_binder(kube), words, count);
		else if (count == 4 && vg_streq(words[0], "nudge"))
			vg_kube_nudger(kube).nudge(kube, words[1], words[2], words[3]);
		else if (count == 1 && vg_streq(words[0], "stats"))
			do_stats(kube);
		else if (count == 1 && vg_streq(words[0], "stop"))
			break;
		else if (count)
			fprintf(stderr, "kube_driver: unknown command \"%s\"\n", words[0]);
	}
	free(line);
}

int main(int argc, char **argv)
{
	struct vg_kube_options options = { .sink = { .ops = &sink_ops } };
	struct vg_kube_config config = { 0 };
	const char *kubeconfig = NULL;
	struct vg_classes classes;
	struct vg_err err = { 0 };
	struct vg_kube *kube;
	int r;

	for (int i = 1; i + 1 < argc; i += 2) {
		if (vg_streq(argv[i], "--kubeconfig")) {
			kubeconfig = argv[i + 1];
		} else if (!vg_streq(argv[i], "--timing") ||
			   !set_timing(&options.timing, argv[i + 1])) {
			fprintf(stderr, "kube_driver: %s %s: not understood\n", argv[i],
				argv[i + 1]);
			return 2;
		}
	}
	vg_log_setup(VG_LOG_DEBUG, false);
	r = kubeconfig ? vg_kube_config_load(kubeconfig, &config, &err)
		       : vg_kube_config_in_cluster(&config, &err);
	vg_classes_init(&classes);
	options.config = &config;
	options.classes = &classes;
	if (r == 0)
		r = vg_kube_start(&options, &kube, &err);
	vg_kube_config_release(&config);
	if (r < 0) {
		say(json_pack("{s:s}", "error", err.msg));
	} else {
		serve(kube);
		vg_kube_stop(kube);
		say(json_pack("{s:b}", "stopped", 1));
	}
	vg_classes_release(&classes);
	return r < 0;
}
