/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vgpu-scheduler: everything the daemon is made of, in the order in which it starts.
 *
 *	device classes <- configuration file
 *	cluster        the view, its ledger and its reservations
 *	source         an API server, or a saved cluster: feeds the view, takes the binds
 *	server         the routes
 *	listeners      extender, webhook, metrics
 *
 * It stops in the reverse order, so that nothing is called that is gone already.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/num.h"
#include "cluster/cluster.h"
#include "cmd/scheduler_flags.h"
#include "config/config.h"
#include "http/http.h"
#include "kube/kube.h"
#include "server/server.h"
#include "snapshot/snapshot.h"
#include "vgpu/version.h"

#define COMPONENT "daemon"

enum {
	EXIT_OK = 0,
	EXIT_START = 1,
	EXIT_USAGE = 2,
};

/* How long a pod that fits now waits at the most until kube-scheduler hears of it. */
#define TICK_MS          200
#define DRAIN_MS         5000u
/* kube-scheduler filters one pod at a time, but binds many; a metrics scrape is one request. */
#define EXTENDER_THREADS 2u

enum listener {
	LISTEN_EXTENDER,
	LISTEN_WEBHOOK,
	LISTEN_METRICS,
	LISTEN_COUNT,
};

static const char *const listener_word[LISTEN_COUNT] = { "extender", "webhook", "metrics" };

struct daemon {
	struct scheduler_flags flags;
	struct vg_classes classes;
	struct vg_policy policy;
	int64_t reservation_ns;
	int64_t stale_ns;
	bool force_overwrite;

	struct vg_cluster *cluster;
	struct vg_kube *kube; /* one of these two */
	struct vg_snapshot *snapshot;
	struct vg_binder binder;
	struct vg_server *server;
	/* Written by the main thread only. The metrics listener reads them, from its first request to its
	 * last; the lock keeps it from one that is about to be freed. */
	pthread_mutex_t listeners_lock;
	struct vg_http_listener *listeners[LISTEN_COUNT];
	struct timespec tls_seen[2]; /* when certificate and key were changed last */
};

/* ---- flags and configuration ------------------------------------------------------------------ */

static int seconds_ns(const char *flag, const char *text, int64_t min, int64_t *ret_ns,
		      struct vg_err *err)
{
	int64_t seconds;
	int r = vg_parse_i64(VG_SPAN(text), min, 86400, &seconds, err);

	if (r < 0)
		return vg_err_wrap(err, r, "--%s", flag);
	*ret_ns = seconds * VG_NS_PER_S;
	return 0;
}

static int check_policies(const struct scheduler_flags *flags, struct vg_err *err)
{
	if (!vg_streq(flags->node_policy, "binpack") && !vg_streq(flags->node_policy, "spread"))
		return vg_fail(err, EINVAL,
			       "--node-scheduler-policy: \"%s\" is neither binpack nor spread",
			       flags->node_policy);
	if (!*flags->gpu_policy)
		return vg_fail(err, EINVAL,
			       "--gpu-scheduler-policy: is empty; write binpack or spread");
	return 0;
}

static int read_flags(struct daemon *daemon, int argc, char **argv, struct vg_err *err)
{
	struct scheduler_flags *flags = &daemon->flags;
	int level;
	int r = scheduler_flags_parse(argc, argv, flags, err);

	if (r < 0 || flags->help || flags->version)
		return r;
	level = vg_log_level_parse(flags->log_level);
	if (level < 0)
		return vg_fail(err, EINVAL,
			       "--log-level: \"%s\" is none of error, warn, info, debug",
			       flags->log_level);
	if (!vg_streq(flags->log_format, "text") && !vg_streq(flags->log_format, "json"))
		return vg_fail(err, EINVAL, "--log-format: \"%s\" is neither text nor json",
			       flags->log_format);
	vg_log_setup((enum vg_log_level)level, vg_streq(flags->log_format, "json"));
	if (!flags->config)
		return vg_fail(err, EINVAL,
			       "--config FILE is missing; config/device-config.yaml is a "
			       "file to start from, and --help lists all flags");
	if (flags->kubeconfig && flags->snapshot)
		return vg_fail(err, EINVAL, "--kubeconfig and --snapshot exclude each other");
	if (!flags->tls_cert != !flags->tls_key)
		return vg_fail(err, EINVAL, "--tls-cert and --tls-key belong together");
	if (flags->extender_ca && !flags->tls_cert)
		return vg_fail(err, EINVAL, "--extender-client-ca needs --tls-cert and --tls-key");
	r = check_policies(flags, err);
	if (r < 0)
		return r;
	r = vg_parse_bool(VG_SPAN(flags->force_overwrite), &daemon->force_overwrite, err);
	if (r < 0)
		return vg_err_wrap(err, r, "--force-overwrite-default-scheduler");
	r = seconds_ns("reservation-timeout", flags->reservation, 1, &daemon->reservation_ns, err);
	if (r < 0)
		return r;
	return seconds_ns("stale-after", flags->stale, 5, &daemon->stale_ns, err);
}

static void print_complaint(void *ctx, bool is_error, const char *line)
{
	(void)ctx;
	fprintf(stderr, "%s%s\n", line, is_error ? "" : " (warning)");
}

/* ---- source ----------------------------------------------------------------------------------- */

static int start_kube(struct daemon *daemon, struct vg_err *err)
{
	struct vg_kube_config config = { 0 };
	struct vg_kube_options options = {
		.config = &config,
		.classes = &daemon->classes,
		.sink = vg_cluster_sink(daemon->cluster),
	};
	int r;

	if (daemon->flags.kubeconfig)
		r = vg_kube_config_load(daemon->flags.kubeconfig, &config, err);
	else
		r = vg_kube_config_in_cluster(&config, err);
	if (r < 0)
		return r;
	r = vg_kube_start(&options, &daemon->kube, err);
	if (r == 0) {
		daemon->binder = vg_kube_binder(daemon->kube);
		vg_info(COMPONENT, "reading the cluster", VG_S("server", config.server),
			VG_S("source", config.source));
	}
	vg_kube_config_release(&config);
	return r;
}

static int start_source(struct daemon *daemon, struct vg_err *err)
{
	const char *snapshot = daemon->flags.snapshot;
	int r;

	if (!snapshot)
		return start_kube(daemon, err);
	r = vg_snapshot_load(snapshot, &daemon->classes, vg_cluster_sink(daemon->cluster),
			     &daemon->snapshot, err);
	if (r < 0)
		return r;
	daemon->binder = vg_snapshot_binder(daemon->snapshot);
	vg_info(COMPONENT, "using a saved cluster", VG_S("file", snapshot));
	return 0;
}

/* ---- server ----------------------------------------------------------------------------------- */

static void learn(void *ctx, const struct vg_pod *pod)
{
	vg_snapshot_learn(ctx, pod);
}

static void api_stats(void *ctx, struct vg_server_api_stats *ret_stats)
{
	const struct daemon *daemon = ctx;
	struct vg_kube_stats from = { 0 };

	if (daemon->kube)
		vg_kube_stats(daemon->kube, &from);
	for (int kind = 0; kind < VG_KIND_COUNT; kind++) {
		ret_stats->lists[kind] = from.lists[kind];
		ret_stats->watch_restarts[kind] = from.watch_restarts[kind];
		ret_stats->events[kind] = from.events[kind];
	}
	ret_stats->requests = from.requests;
	ret_stats->request_failures = from.request_failures;
	ret_stats->bind_posts = from.bind_posts;
}

static size_t certificates(void *ctx, struct vg_server_certificate *ret_list)
{
	struct daemon *daemon = ctx;
	size_t count = 0;

	pthread_mutex_lock(&daemon->listeners_lock);
	for (int i = 0; i < LISTEN_COUNT; i++) {
		int64_t expires = 0;

		if (daemon->listeners[i])
			expires = vg_http_tls_expires_unix_s(daemon->listeners[i]);
		if (expires)
			ret_list[count++] =
				(struct vg_server_certificate){ listener_word[i], expires };
	}
	pthread_mutex_unlock(&daemon->listeners_lock);
	return count;
}

static void start_server(struct daemon *daemon)
{
	const struct vg_server_options options = {
		.cluster = daemon->cluster,
		.binder = daemon->binder,
		.classes = &daemon->classes,
		.policy = daemon->policy,
		.ranked = daemon->flags.ranked != NULL,
		.scheduler_name = daemon->flags.scheduler_name,
		.force_overwrite = daemon->force_overwrite,
		.learn = daemon->snapshot ? learn : NULL,
		.learn_ctx = daemon->snapshot,
		.api_stats = daemon->kube ? api_stats : NULL,
		.certificates = certificates,
		.metrics_ctx = daemon,
	};

	daemon->server = vg_server_new(&options);
}

/* ---- listeners -------------------------------------------------------------------------------- */

/* Returns who was there before. */
static struct vg_http_listener *put_listener(struct daemon *daemon, enum listener which,
					     struct vg_http_listener *listener)
{
	struct vg_http_listener *before;

	pthread_mutex_lock(&daemon->listeners_lock);
	before = daemon->listeners[which];
	daemon->listeners[which] = listener;
	pthread_mutex_unlock(&daemon->listeners_lock);
	return before;
}

static int start_listener(struct daemon *daemon, enum listener which, const char *address,
			  enum vg_server_listener routes, bool tls, struct vg_err *err)
{
	struct vg_http_options options = {
		.name = listener_word[which],
		.address = address,
		.tls_cert = tls ? daemon->flags.tls_cert : NULL,
		.tls_key = tls ? daemon->flags.tls_key : NULL,
		.tls_client_ca = which == LISTEN_EXTENDER ? daemon->flags.extender_ca : NULL,
		.ctx = daemon->server,
		.observer = vg_server_observe,
		.threads = which == LISTEN_EXTENDER ? EXTENDER_THREADS : 1,
	};
	struct vg_http_listener *listener;
	int r;

	options.routes = vg_server_routes(daemon->server, routes, &options.route_count);
	r = vg_http_listen(&options, &listener, err);
	if (r < 0)
		return vg_err_wrap(err, r, "--%s-listen", listener_word[which]);
	put_listener(daemon, which, listener);
	vg_info(COMPONENT, "listening", VG_S("for", listener_word[which]), VG_S("address", address),
		VG_I("port", vg_http_port(listener)),
		VG_S("tls", options.tls_client_ca ? "mutual"
			    : options.tls_cert    ? "yes"
						  : "no"));
	return 0;
}

static int start_listeners(struct daemon *daemon, struct vg_err *err)
{
	const struct scheduler_flags *flags = &daemon->flags;
	int r;

	r = start_listener(daemon, LISTEN_EXTENDER, flags->extender_listen,
			   daemon->snapshot ? VG_SERVER_ALL : VG_SERVER_EXTENDER,
			   flags->extender_ca != NULL, err);
	if (r == 0 && flags->tls_cert)
		r = start_listener(daemon, LISTEN_WEBHOOK, flags->webhook_listen, VG_SERVER_WEBHOOK,
				   true, err);
	else if (r == 0 && !daemon->snapshot)
		vg_warn(COMPONENT, "no webhook: --tls-cert and --tls-key are not given");
	if (r == 0 && !vg_streq(flags->metrics_listen, "off"))
		r = start_listener(daemon, LISTEN_METRICS, flags->metrics_listen, VG_SERVER_METRICS,
				   false, err);
	return r;
}

static bool file_changed(const char *path, struct timespec *seen)
{
	struct stat status;
	bool changed;

	/* Gone for a moment while somebody renames: the next look decides. */
	if (stat(path, &status) < 0)
		return false;
	changed = status.st_mtim.tv_sec != seen->tv_sec || status.st_mtim.tv_nsec != seen->tv_nsec;
	*seen = status.st_mtim;
	return changed;
}

static void reload_certificates(struct daemon *daemon)
{
	for (int i = 0; i < LISTEN_COUNT; i++) {
		struct vg_err err = { 0 };

		if (!daemon->listeners[i] || !vg_http_tls_expires_unix_s(daemon->listeners[i]))
			continue;
		if (vg_http_reload_tls(daemon->listeners[i], &err) < 0)
			vg_error(COMPONENT, "the new certificate cannot be used; the old one stays",
				 VG_S("listener", listener_word[i]), VG_S("why", err.msg));
		else
			vg_info(COMPONENT, "certificate read again",
				VG_S("listener", listener_word[i]));
	}
}

static void watch_certificates(struct daemon *daemon)
{
	bool changed;

	if (!daemon->flags.tls_cert)
		return;
	changed = file_changed(daemon->flags.tls_cert, &daemon->tls_seen[0]);
	changed |= file_changed(daemon->flags.tls_key, &daemon->tls_seen[1]);
	if (changed)
		reload_certificates(daemon);
}

/* ---- what time brings ------------------------------------------------------------------------- */

/* Pods that were refused and would fit now: kube-scheduler is made to try them again. */
static void wake_waiting(struct daemon *daemon, int64_t now_ns)
{
	struct vg_wake *list;
	struct vg_arena arena;
	size_t count;

	if (!daemon->kube)
		return;
	vg_arena_init(&arena);
	count = vg_cluster_wake(daemon->cluster, now_ns, &arena, &list);
	for (size_t i = 0; i < count; i++) {
		struct vg_nudger nudger = vg_kube_nudger(daemon->kube);

		vg_info(COMPONENT, "something was freed that a waiting pod fits on",
			VG_S("namespace", list[i].namespace), VG_S("pod", list[i].name));
		nudger.nudge(nudger.ctx, list[i].namespace, list[i].name, list[i].uid);
	}
	vg_arena_release(&arena);
}

/* ---- the whole -------------------------------------------------------------------------------- */

static int start(struct daemon *daemon, struct vg_err *err)
{
	struct vg_cluster_options options = {
		.classes = &daemon->classes,
		.reservation_ns = daemon->reservation_ns,
		/* Nothing more comes from a file, and nobody acknowledges an allocation there. */
		.stale_ns = daemon->flags.snapshot ? 0 : daemon->stale_ns,
		.bind_queue = !daemon->flags.snapshot,
	};
	int r;

	vg_policy_parse(daemon->flags.node_policy, daemon->flags.gpu_policy, &daemon->policy);
	options.policy = daemon->policy;
	if (daemon->flags.tls_cert) {
		file_changed(daemon->flags.tls_cert, &daemon->tls_seen[0]);
		file_changed(daemon->flags.tls_key, &daemon->tls_seen[1]);
	}
	daemon->cluster = vg_cluster_new(&options);
	r = start_source(daemon, err);
	if (r < 0)
		return r;
	start_server(daemon);
	return start_listeners(daemon, err);
}

static void stop(struct daemon *daemon)
{
	for (int i = 0; i < LISTEN_COUNT; i++)
		vg_http_stop(put_listener(daemon, (enum listener)i, NULL), DRAIN_MS);
	vg_kube_stop(daemon->kube);
	vg_cluster_free(daemon->cluster);
	vg_snapshot_free(daemon->snapshot);
	vg_server_free(daemon->server);
	vg_classes_release(&daemon->classes);
}

/* What lapses with time, who fits now, and files that changed. Returns when asked to end. */
static void run(struct daemon *daemon, const sigset_t *signals)
{
	const struct timespec tick = { .tv_nsec = TICK_MS * VG_NS_PER_MS };
	bool was_ready = false;

	for (;;) {
		char reason[VG_READY_REASON_BYTES];
		int got = sigtimedwait(signals, NULL, &tick);
		int64_t now_ns = vg_clock_mono_ns();
		bool ready;

		if (got == SIGTERM || got == SIGINT) {
			vg_info(COMPONENT, "ending",
				VG_S("signal", got == SIGTERM ? "TERM" : "INT"));
			return;
		}
		if (got == SIGHUP)
			reload_certificates(daemon);
		watch_certificates(daemon);
		vg_cluster_tick(daemon->cluster, now_ns);
		wake_waiting(daemon, now_ns);
		ready = vg_cluster_ready(daemon->cluster, now_ns, reason);
		if (ready && !was_ready)
			vg_info(COMPONENT, "ready");
		else if (!ready && was_ready)
			vg_warn(COMPONENT, "not ready any more", VG_S("why", reason));
		was_ready = ready;
	}
}

/* A socket that got the number of a closed standard stream would be written log lines to. */
static void open_standard_streams(void)
{
	int fd;

	do {
		fd = open("/dev/null", O_RDWR);
	} while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	struct daemon daemon = { .listeners_lock = PTHREAD_MUTEX_INITIALIZER };
	struct vg_err err = { 0 };
	sigset_t signals;
	int r;

	open_standard_streams();
	r = read_flags(&daemon, argc, argv, &err);
	if (r < 0) {
		fprintf(stderr, "vgpu-scheduler: %s\n", err.msg);
		return EXIT_USAGE;
	}
	if (daemon.flags.help) {
		scheduler_flags_help(stdout);
		return EXIT_OK;
	}
	if (daemon.flags.version) {
		printf("vgpu-scheduler %s\n", VGPU_VERSION);
		return EXIT_OK;
	}
	vg_classes_init(&daemon.classes);
	r = vg_config_load(daemon.flags.config, &daemon.classes, print_complaint, NULL, &err);
	if (r < 0) {
		fprintf(stderr, "vgpu-scheduler: %s\n", err.msg);
		vg_classes_release(&daemon.classes);
		return EXIT_USAGE;
	}
	if (daemon.flags.check_config) {
		printf("%s: valid\n", daemon.flags.config);
		vg_classes_release(&daemon.classes);
		return EXIT_OK;
	}

	/* Every thread that is started from here on leaves these signals to run(). */
	sigemptyset(&signals);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);

	r = start(&daemon, &err);
	if (r < 0)
		vg_error(COMPONENT, "cannot start", VG_S("why", err.msg));
	else
		run(&daemon, &signals);
	stop(&daemon);
	return r < 0 ? EXIT_START : EXIT_OK;
}
