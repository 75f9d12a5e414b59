/* SPDX-License-Identifier: Apache-2.0 */
/* The client's thread, and its life. */
#include "kube/kube.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "kube/bind_internal.h"
#include "kube/client_internal.h"
#include "kube/config_internal.h"
#include "kube/kube_internal.h"
#include "kube/list_watch_internal.h"
#include "kube/nudge_internal.h"

struct vg_kube {
	struct vg_kube_config config;
	struct vg_kube_counters counters;
	struct vg_client *client;
	struct vg_list_watch *list_watch[VG_KIND_COUNT];
	struct vg_binds *binds;
	struct vg_nudges *nudges;
	pthread_t thread;
	_Atomic bool stopping;
};

static const struct vg_kube_timing timing_defaults = {
	.connect_ms = 5000,
	.answer_ms = 15000,
	.idle_ms = 10000,
	.watch_ms = 30000,
	.watch_slack_ms = 5000,
	.backoff_min_ms = 200,
	.backoff_max_ms = 15000,
	.bind_ms = 20000,
	.bind_answer_ms = 8000,
};

static struct vg_kube_timing fill_timing(const struct vg_kube_timing *given)
{
	struct vg_kube_timing timing = *given;

#define FILL(member)                                                                               \
	if (timing.member <= 0)                                                                    \
		timing.member = timing_defaults.member;
	FILL(connect_ms)
	FILL(answer_ms)
	FILL(idle_ms)
	FILL(watch_ms)
	FILL(watch_slack_ms)
	FILL(backoff_min_ms)
	FILL(backoff_max_ms)
	FILL(bind_ms)
	FILL(bind_answer_ms)
#undef FILL
	return timing;
}

static void *run(void *ctx)
{
	struct vg_kube *kube = ctx;

	pthread_setname_np(pthread_self(), "kube");
	while (!atomic_load(&kube->stopping)) {
		int64_t now_ns = vg_clock_mono_ns();
		int64_t until_ns = vg_binds_run(kube->binds, now_ns);

		for (int kind = 0; kind < VG_KIND_COUNT; kind++) {
			int64_t due_ns = vg_list_watch_run(kube->list_watch[kind], now_ns);

			if (due_ns < until_ns)
				until_ns = due_ns;
		}
		vg_nudges_run(kube->nudges);
		vg_client_run(kube->client, until_ns);
	}
	/* Here, since the sink is called from this thread only. */
	for (int kind = 0; kind < VG_KIND_COUNT; kind++)
		vg_list_watch_free(kube->list_watch[kind]);
	vg_binds_stop(kube->binds);
	vg_nudges_stop(kube->nudges);
	return NULL;
}

static void kube_free(struct vg_kube *kube)
{
	vg_binds_free(kube->binds);
	vg_nudges_free(kube->nudges);
	vg_client_free(kube->client);
	vg_kube_config_release(&kube->config);
	free(kube);
}

/* Signals are for the program's main thread. */
static int start_thread(struct vg_kube *kube)
{
	sigset_t all;
	sigset_t before;
	int code;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	code = pthread_create(&kube->thread, NULL, run, kube);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return code;
}

int vg_kube_start(const struct vg_kube_options *options, struct vg_kube **ret_kube,
		  struct vg_err *err)
{
	struct vg_kube_timing timing = fill_timing(&options->timing);
	struct vg_kube *kube = vg_new(sizeof(*kube));
	int code;
	int r;

	vg_kube_config_copy(options->config, &kube->config);
	r = vg_client_new(&kube->config, timing.connect_ms, &kube->client, err);
	if (r < 0) {
		kube_free(kube);
		return r;
	}
	kube->binds = vg_binds_new(kube->client, &timing, &kube->counters);
	kube->nudges = vg_nudges_new(kube->client, &kube->counters, timing.answer_ms);
	for (int kind = 0; kind < VG_KIND_COUNT; kind++)
		kube->list_watch[kind] = vg_list_watch_new(&(struct vg_list_watch_options){
			.client = kube->client,
			.kind = (enum vg_kind)kind,
			.classes = options->classes,
			.sink = options->sink,
			.timing = timing,
			.counters = &kube->counters,
		});
	code = start_thread(kube);
	if (code) {
		for (int kind = 0; kind < VG_KIND_COUNT; kind++)
			vg_list_watch_free(kube->list_watch[kind]);
		kube_free(kube);
		return vg_fail(err, code, "the API server client's thread cannot be started: %s",
			       strerror(code));
	}
	vg_info("kube", "following the cluster", VG_S("server", kube->config.server),
		VG_S("credentials", kube->config.source));
	*ret_kube = kube;
	return 0;
}

void vg_kube_stop(struct vg_kube *kube)
{
	if (!kube)
		return;
	atomic_store(&kube->stopping, true);
	vg_client_wake(kube->client);
	pthread_join(kube->thread, NULL);
	kube_free(kube);
}

static uint64_t read_counter(const _Atomic uint64_t *counter)
{
	return atomic_load_explicit(counter, memory_order_relaxed);
}

void vg_kube_stats(const struct vg_kube *kube, struct vg_kube_stats *ret_stats)
{
	const struct vg_kube_counters *counters = &kube->counters;

	for (int kind = 0; kind < VG_KIND_COUNT; kind++) {
		ret_stats->lists[kind] = read_counter(&counters->lists[kind]);
		ret_stats->watch_restarts[kind] = read_counter(&counters->watch_restarts[kind]);
		ret_stats->failures[kind] = read_counter(&counters->failures[kind]);
		ret_stats->events[kind] = read_counter(&counters->events[kind]);
		ret_stats->malformed[kind] = read_counter(&counters->malformed[kind]);
		ret_stats->stale[kind] = read_counter(&counters->stale[kind]);
	}
	ret_stats->requests = read_counter(&counters->requests);
	ret_stats->request_failures = read_counter(&counters->request_failures);
	ret_stats->bind_posts = read_counter(&counters->bind_posts);
	ret_stats->nudges = read_counter(&counters->nudges);
}

static void bind(void *ctx, const struct vg_bind_call *call, vg_bind_done done, void *done_ctx)
{
	struct vg_kube *kube = ctx;

	vg_binds_add(kube->binds, call, done, done_ctx);
}

struct vg_binder vg_kube_binder(struct vg_kube *kube)
{
	return (struct vg_binder){ .bind = bind, .ctx = kube };
}

static void nudge(void *ctx, const char *namespace, const char *name, const char *uid)
{
	struct vg_kube *kube = ctx;

	vg_nudges_add(kube->nudges, namespace, name, uid);
}

struct vg_nudger vg_kube_nudger(struct vg_kube *kube)
{
	return (struct vg_nudger){ .nudge = nudge, .ctx = kube };
}
