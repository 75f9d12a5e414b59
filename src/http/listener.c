/* SPDX-License-Identifier: Apache-2.0 */
/* Listeners: start, new certificates, the end. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "http/http_internal.h"

/* Only what is current, and forward secret. */
#define TLS_PRIORITIES "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2:-RSA:%SERVER_PRECEDENCE"

/* Certificates that are replaced faster than connections end; each generation has threads. */
#define RETIRED_MAX 8

/* After the drain, for the replies of those that were told to give up. */
#define LAST_WORDS_MS 500

/* ---- libmicrohttpd's own words ---------------------------------------------------------------- */

/* What libmicrohttpd says while it starts in this thread is the cause of its failure. */
static _Thread_local char *start_words;
#define START_WORDS_BYTES 200

/* The one thing that an administrator has to hear of; the rest are clients that went away. */
#define OUT_OF_FILES  "Hit process or system resource limit"
#define WARN_EVERY_NS (60 * VG_NS_PER_S)

static bool may_warn(void)
{
	static _Atomic int64_t next_ns;
	int64_t now_ns = vg_clock_mono_ns();
	int64_t due_ns = atomic_load(&next_ns);

	return now_ns >= due_ns &&
	       atomic_compare_exchange_strong(&next_ns, &due_ns, now_ns + WARN_EVERY_NS);
}

__attribute__((format(printf, 2, 0))) static void on_log(void *cls, const char *format,
							 va_list args)
{
	char room[START_WORDS_BYTES];
	char *line = room;

	(void)cls;
	vsnprintf(room, sizeof(room), format, args);
	line[strcspn(line, "\n")] = '\0';
	if (start_words)
		memcpy(start_words, room, sizeof(room));
	if (vg_starts_with(line, OUT_OF_FILES) && may_warn())
		vg_warn("http", "connections have to wait: raise the limit of open files",
			VG_S("cause", line));
	else
		vg_debug("http", "libmicrohttpd", VG_S("says", line));
}

static void on_panic(void *cls, const char *file, unsigned line, const char *reason)
{
	(void)cls;
	vg_error("http", "libmicrohttpd gave up", VG_S("file", file), VG_I("line", line),
		 VG_S("reason", reason));
	abort();
}

static void set_panic(void)
{
	MHD_set_panic_func(on_panic, NULL);
}

/* ---- generations ------------------------------------------------------------------------------ */

static void on_connection(void *cls, struct MHD_Connection *connection, void **socket_context,
			  enum MHD_ConnectionNotificationCode what)
{
	struct generation *generation = cls;
	struct vg_http_listener *listener = generation->listener;
	bool started = what == MHD_CONNECTION_NOTIFY_STARTED;

	(void)connection;
	if (started) {
		*socket_context = vg_new(sizeof(struct peer));
	} else {
		free(*socket_context);
		*socket_context = NULL;
	}
	pthread_mutex_lock(&listener->lock);
	if (started)
		generation->connections++;
	else
		generation->connections--;
	pthread_mutex_unlock(&listener->lock);
}

/* Its threads are gone afterwards, and its connections closed. */
static void generation_free(struct generation *generation)
{
	if (!generation)
		return;
	if (generation->daemon) {
		/* Quiesced before, so that the socket is ours to close; the thread may use it until
		 * the daemon is stopped. */
		MHD_socket fd = MHD_quiesce_daemon(generation->daemon);

		MHD_stop_daemon(generation->daemon);
		if (fd != MHD_INVALID_SOCKET)
			close(fd);
	}
	vg_tls_files_release(&generation->tls);
	free(generation);
}

static int generation_start(struct vg_http_listener *listener, struct generation **ret_generation,
			    struct vg_err *err)
{
	const struct vg_http_options *options = &listener->options;
	struct generation *generation = vg_new(sizeof(*generation));
	char words[START_WORDS_BYTES] = "no cause given";
	/* Not epoll: the event loop of 0.9.75 sleeps on a batch of exactly 128 events (its array is
	 * full, so it asks for more before it looks), and 128 requests hang until the next event. */
	unsigned flags = MHD_USE_POLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
			 MHD_USE_ERROR_LOG | (options->tls_cert ? MHD_USE_TLS : 0);
	struct MHD_OptionItem items[8];
	size_t count = 0;
	int fd;
	int r;

	generation->listener = listener;
	if (options->tls_cert) {
		r = vg_tls_load(options->tls_cert, options->tls_key, options->tls_client_ca,
				&generation->tls, err);
		if (r < 0) {
			generation_free(generation);
			return r;
		}
		items[count++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_CERT, 0,
							  generation->tls.cert };
		items[count++] =
			(struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_KEY, 0, generation->tls.key };
		items[count++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_PRIORITIES, 0,
							  (void *)(uintptr_t)TLS_PRIORITIES };
	}
	if (generation->tls.client_ca)
		items[count++] = (struct MHD_OptionItem){ MHD_OPTION_HTTPS_MEM_TRUST, 0,
							  generation->tls.client_ca };
	if (options->threads > 1)
		items[count++] = (struct MHD_OptionItem){ MHD_OPTION_THREAD_POOL_SIZE,
							  (intptr_t)options->threads, NULL };
	items[count] = (struct MHD_OptionItem){ MHD_OPTION_END, 0, NULL };

	fd = fcntl(listener->fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0) {
		r = vg_fail(err, errno, "the listening socket cannot be shared: %s",
			    strerror(errno));
		generation_free(generation);
		return r;
	}
	start_words = words;
	generation->daemon = MHD_start_daemon(
		flags, 0, NULL, NULL, vg_exchange_on_access, generation, MHD_OPTION_EXTERNAL_LOGGER,
		on_log, NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		VG_LIMIT_HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT, VG_LIMIT_HTTP_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)VG_LIMIT_HTTP_HEADER_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, on_connection, generation,
		MHD_OPTION_NOTIFY_COMPLETED, vg_exchange_on_completed, generation,
		MHD_OPTION_URI_LOG_CALLBACK, vg_exchange_on_uri, generation, MHD_OPTION_ARRAY,
		items, MHD_OPTION_END);
	start_words = NULL;
	if (!generation->daemon) {
		/* Whether it closed the socket depends on how far it came. Closing a number that may
		 * be somebody else's by now would be worse than losing one. */
		generation_free(generation);
		return vg_fail(err, EIO, "the HTTP server does not start: %s", words);
	}
	*ret_generation = generation;
	return 0;
}

/* Those whose last connection ended. */
static void reap_retired(struct vg_http_listener *listener, size_t *ret_left)
{
	struct generation *dead = NULL;
	struct generation **link = &listener->retired;
	size_t left = 0;

	pthread_mutex_lock(&listener->lock);
	while (*link) {
		struct generation *generation = *link;

		if (generation->connections == 0) {
			*link = generation->next;
			generation->next = dead;
			dead = generation;
		} else {
			link = &generation->next;
			left++;
		}
	}
	pthread_mutex_unlock(&listener->lock);
	while (dead) {
		struct generation *next = dead->next;

		generation_free(dead);
		dead = next;
	}
	*ret_left = left;
}

/* ---- listeners -------------------------------------------------------------------------------- */

static void listener_free(struct vg_http_listener *listener)
{
	union {
		const char *in;
		char *out;
	} texts[] = { { listener->options.name },
		      { listener->options.address },
		      { listener->options.tls_cert },
		      { listener->options.tls_key },
		      { listener->options.tls_client_ca } };

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		free(texts[i].out);
	if (listener->fd >= 0)
		close(listener->fd);
	pthread_cond_destroy(&listener->idle);
	pthread_mutex_destroy(&listener->lock);
	pthread_mutex_destroy(&listener->reload_lock);
	free(listener);
}

static struct vg_http_listener *listener_new(const struct vg_http_options *options)
{
	struct vg_http_listener *listener = vg_new(sizeof(*listener));
	pthread_condattr_t monotonic;

	listener->options = *options;
	listener->options.name = vg_strdup(options->name);
	listener->options.address = vg_strdup(options->address);
	listener->options.tls_cert = options->tls_cert ? vg_strdup(options->tls_cert) : NULL;
	listener->options.tls_key = options->tls_key ? vg_strdup(options->tls_key) : NULL;
	listener->options.tls_client_ca =
		options->tls_client_ca ? vg_strdup(options->tls_client_ca) : NULL;
	if (!listener->options.bodies_max)
		listener->options.bodies_max = VG_LIMIT_HTTP_BODIES_BYTES;
	listener->fd = -1;
	pthread_mutex_init(&listener->lock, NULL);
	pthread_mutex_init(&listener->reload_lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&listener->idle, &monotonic);
	pthread_condattr_destroy(&monotonic);
	return listener;
}

int vg_http_listen(const struct vg_http_options *options, struct vg_http_listener **ret_listener,
		   struct vg_err *err)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vg_http_listener *listener;
	int r;

	pthread_once(&once, set_panic);
	if (!options->tls_cert != !options->tls_key)
		return vg_fail(err, EINVAL, "%s listener: TLS needs a certificate and its key",
			       options->name);
	if (options->tls_client_ca && !options->tls_cert)
		return vg_fail(err, EINVAL,
			       "%s listener: client certificates need TLS, that is a certificate "
			       "and a key of the listener's own",
			       options->name);
	listener = listener_new(options);
	r = vg_http_open_socket(options->address, &listener->fd, &listener->port, err);
	if (r == 0)
		r = generation_start(listener, &listener->current, err);
	if (r < 0) {
		listener_free(listener);
		return vg_err_wrap(err, r, "%s listener", options->name);
	}
	vg_info("http", "listening", VG_S("listener", options->name),
		VG_S("address", options->address), VG_I("port", listener->port),
		VG_S("tls", !options->tls_cert       ? "no"
			    : options->tls_client_ca ? "mutual"
						     : "yes"));
	*ret_listener = listener;
	return 0;
}

uint16_t vg_http_port(const struct vg_http_listener *listener)
{
	return listener->port;
}

int64_t vg_http_tls_expires_unix_s(struct vg_http_listener *listener)
{
	int64_t expires = 0;

	pthread_mutex_lock(&listener->lock);
	if (listener->current)
		expires = listener->current->tls.expires_unix_s;
	pthread_mutex_unlock(&listener->lock);
	return expires;
}

static int reload(struct vg_http_listener *listener, struct vg_err *err)
{
	struct generation *fresh = NULL;
	struct generation *old;
	size_t left;
	int r;

	reap_retired(listener, &left);
	if (left >= RETIRED_MAX)
		return vg_fail(err, EBUSY,
			       "%zu earlier certificates still have open connections; try again in "
			       "%u s",
			       left, VG_LIMIT_HTTP_IDLE_S);
	r = generation_start(listener, &fresh, err);
	if (r < 0)
		return r;
	pthread_mutex_lock(&listener->lock);
	old = listener->current;
	listener->current = fresh;
	old->next = listener->retired;
	listener->retired = old;
	pthread_mutex_unlock(&listener->lock);
	atomic_store(&old->retired, true);
	/* From here on new connections reach the fresh generation only. */
	(void)MHD_quiesce_daemon(old->daemon);
	reap_retired(listener, &left);
	return 0;
}

int vg_http_reload_tls(struct vg_http_listener *listener, struct vg_err *err)
{
	int r;

	if (!listener->options.tls_cert)
		return vg_fail(err, EINVAL, "%s listener: it has no certificate",
			       listener->options.name);
	pthread_mutex_lock(&listener->reload_lock);
	r = reload(listener, err);
	pthread_mutex_unlock(&listener->reload_lock);
	if (r < 0)
		return vg_err_wrap(err, r, "%s listener keeps its certificate",
				   listener->options.name);
	return 0;
}

/* Waits until nothing is in flight. */
static void drain(struct vg_http_listener *listener, unsigned wait_ms)
{
	int64_t until_ns = vg_clock_mono_ns() + wait_ms * VG_NS_PER_MS;
	struct timespec until = { .tv_sec = until_ns / VG_NS_PER_S,
				  .tv_nsec = until_ns % VG_NS_PER_S };

	pthread_mutex_lock(&listener->lock);
	while (listener->in_flight > 0 &&
	       pthread_cond_timedwait(&listener->idle, &listener->lock, &until) == 0)
		;
	pthread_mutex_unlock(&listener->lock);
}

void vg_http_stop(struct vg_http_listener *listener, unsigned drain_ms)
{
	struct generation *generations;
	size_t left;

	if (!listener)
		return;
	atomic_store(&listener->stopping, true);
	pthread_mutex_lock(&listener->lock);
	generations = listener->current;
	generations->next = listener->retired;
	listener->current = NULL;
	listener->retired = NULL;
	pthread_mutex_unlock(&listener->lock);
	(void)MHD_quiesce_daemon(generations->daemon);
	drain(listener, drain_ms);

	atomic_store(&listener->ending, true);
	pthread_mutex_lock(&listener->lock);
	left = listener->in_flight;
	for (struct vg_http_exchange *exchange = listener->exchanges; exchange;
	     exchange = exchange->next)
		vg_exchange_abandon(exchange);
	pthread_mutex_unlock(&listener->lock);
	if (left) {
		vg_warn("http", "stopping with requests in flight",
			VG_S("listener", listener->options.name), VG_I("requests", left),
			VG_I("waited_ms", drain_ms));
		drain(listener, LAST_WORDS_MS);
	}
	while (generations) {
		struct generation *next = generations->next;

		generation_free(generations);
		generations = next;
	}
	listener_free(listener);
}
