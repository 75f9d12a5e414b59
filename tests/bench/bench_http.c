/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon as kube-scheduler meets it: 5,000 node names in a filter call over loopback HTTP, 8 cards per
 * node, 20,000 running GPU pods. Prints latency and resident memory next to their bars. A percentile is the
 * median of those of several rounds, since on a shared machine one round in three meets a neighbour.
 *
 *	bench_http DAEMON CONFIG FOLDER [CALLS]
 *
 * FOLDER gets the saved cluster. Exit status 1 when a bar is missed, 2 when it could not be measured.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/num.h"

#define NODES      5000
#define CARDS      8
#define PODS       20000
#define CALLS      200
#define ROUNDS     9
#define BAR_MS     5.0
#define BAR_DECIDE 1.0
#define BAR_MIB    200.0

static uint32_t seed = 1;

/* The same cluster in every run. */
static uint32_t next_random(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static void add_node(struct vg_buf *out, int node)
{
	vg_buf_addf(out,
		    "%s{\"kind\":\"Node\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"gpu-node-%"
		    "05d\","
		    "\"uid\":\"n-%d\",\"annotations\":{\"hami.io/node-nvidia-register\":\"[",
		    node ? "," : "", node, node);
	for (int card = 0; card < CARDS; card++)
		vg_buf_addf(out,
			    "%s{\\\"id\\\":\\\"GPU-%05d-%d-0c5e-4a6f-9d57-7a0b1c2d3e4f\\\","
			    "\\\"index\\\":%d,\\\"count\\\":10,\\\"devmem\\\":81920,"
			    "\\\"devcore\\\":100,"
			    "\\\"type\\\":\\\"NVIDIA A100-SXM4-80GB\\\",\\\"numa\\\":%d,"
			    "\\\"mode\\\":\\\"hami-core\\\",\\\"health\\\":true}",
			    card ? "," : "", node, card, card, card / 4);
	vg_buf_addf(out, "]\"}},\"status\":{\"allocatable\":{\"nvidia.com/gpu\":\"%d\"}}}\n",
		    CARDS * 10);
}

/* Slices of 8, 16 or 24 GiB, four pods a node on average: never over a card. */
static void add_pod(struct vg_buf *out, int pod)
{
	int node = pod % NODES;
	int card = (pod / NODES) * 2;
	uint32_t size = 1 + next_random(3);

	vg_buf_addf(
		out,
		",{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"work-%05d\","
		"\"namespace\":\"default\",\"uid\":\"00000000-1111-2222-3333-%012d\","
		"\"annotations\":{"
		"\"hami.io/vgpu-node\":\"gpu-node-%05d\",\"hami.io/bind-phase\":\"success\","
		"\"hami.io/vgpu-devices-allocated\":"
		"\"GPU-%05d-%d-0c5e-4a6f-9d57-7a0b1c2d3e4f,NVIDIA,%u,%u:;\"}},\"spec\":{"
		"\"nodeName\":"
		"\"gpu-node-%05d\",\"containers\":[{\"name\":\"main\",\"resources\":{\"limits\":{"
		"\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"%u\"}}}]},\"status\":{\"phase\":"
		"\"Running\"}}\n",
		pod, pod, node, node, card, size * 8192, size * 10, node, size * 8192);
}

static int write_cluster(const char *path)
{
	struct vg_buf out;
	FILE *file = fopen(path, "we");
	int r = 0;

	if (!file)
		return -errno;
	vg_buf_init(&out, 64 << 20);
	vg_buf_adds(&out, "{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[");
	for (int i = 0; i < NODES; i++)
		add_node(&out, i);
	for (int i = 0; i < PODS; i++)
		add_pod(&out, i);
	vg_buf_adds(&out, "]}\n");
	if (fwrite(out.data, 1, out.used, file) != out.used)
		r = -EIO;
	if (fclose(file) != 0)
		r = -EIO;
	vg_buf_release(&out);
	return r;
}

/* ---- a plain HTTP/1.1 client on one kept connection --------------------------------------------- */

static uint16_t free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t size = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(fd, (struct sockaddr *)&address, size) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &size) < 0)
		return 0;
	close(fd);
	return ntohs(address.sin_port);
}

static int dial(uint16_t port)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

/* Sends the request and reads the whole reply into `reply`; the body starts at the returned text. */
static const char *call(int fd, const char *method, const char *path, const char *body, size_t size,
			struct vg_buf *reply)
{
	char head[256];
	const char *sent[2];
	size_t sizes[2];
	size_t need = 0;
	char *end;

	snprintf(head, sizeof(head),
		 "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
		 "Content-Length: %zu\r\n\r\n",
		 method, path, size);
	sent[0] = head;
	sizes[0] = strlen(head);
	sent[1] = body;
	sizes[1] = size;
	for (int i = 0; i < 2; i++) {
		for (size_t done = 0; done < sizes[i];) {
			ssize_t n = write(fd, sent[i] + done, sizes[i] - done);

			if (n <= 0)
				return NULL;
			done += (size_t)n;
		}
	}
	vg_buf_clear(reply);
	for (;;) {
		static char chunk[256 * 1024];
		ssize_t n = read(fd, chunk, sizeof(chunk));

		if (n <= 0 || vg_buf_add(reply, chunk, (size_t)n) < 0)
			return NULL;
		end = strstr(reply->data, "\r\n\r\n");
		if (end && !need) {
			char *length = strcasestr(reply->data, "\r\nContent-Length:");
			uint64_t value = 0;
			struct vg_span digits;

			if (!length || length > end)
				return NULL;
			length += strlen("\r\nContent-Length:");
			while (*length == ' ')
				length++;
			digits = (struct vg_span){ length, strcspn(length, "\r") };
			if (vg_parse_u64(digits, 0, 1u << 30, &value, NULL) < 0)
				return NULL;
			need = (size_t)(end + 4 - reply->data) + (size_t)value;
		}
		if (end && reply->used >= need)
			return end + 4;
	}
}

/* ---- the figures ------------------------------------------------------------------------------ */

static int by_value(const void *left, const void *right)
{
	double a = *(const double *)left;
	double b = *(const double *)right;

	return (a > b) - (a < b);
}

static double percentile(double *values, size_t count, double part)
{
	size_t index = (size_t)(part * (double)(count - 1) + 0.5);

	qsort(values, count, sizeof(*values), by_value);
	return values[index];
}

static void filter_body(struct vg_buf *body, int call_index, const char *limits,
			const char *annotations)
{
	vg_buf_clear(body);
	vg_buf_addf(body,
		    "{\"Pod\":{\"metadata\":{\"name\":\"new-%d\",\"namespace\":\"default\",\"uid\":"
		    "\"u-%d\",\"annotations\":{%s}},\"spec\":{\"containers\":[{\"name\":\"main\","
		    "\"resources\":{\"limits\":{%s}}}]},\"status\":{\"phase\":\"Pending\"}},"
		    "\"Nodes\":null,"
		    "\"NodeNames\":[",
		    call_index, call_index, annotations, limits);
	/* kube-scheduler starts at another node each time. */
	for (int i = 0; i < NODES; i++)
		vg_buf_addf(body, "%s\"gpu-node-%05d\"", i ? "," : "",
			    (i + call_index * 37) % NODES);
	vg_buf_adds(body, "]}");
}

/* One round of calls; false when a reply was not the expected one. */
static bool bench_round(int fd, const char *title, const char *limits, const char *annotations,
			const char *expect, double *took, size_t calls, int first,
			struct vg_buf *body, struct vg_buf *reply)
{
	for (size_t i = 0; i < calls; i++) {
		int64_t started;
		const char *text;

		filter_body(body, first + (int)i, limits, annotations);
		started = vg_clock_mono_ns();
		text = call(fd, "POST", "/filter", body->data, body->used, reply);
		took[i] = (double)(vg_clock_mono_ns() - started) / 1e6;
		if (!text || !strstr(text, expect)) {
			fprintf(stderr, "bench_http: %s: unexpected reply: %.300s\n", title,
				text ? text : "(none)");
			return false;
		}
	}
	return true;
}

static bool bench_case(int fd, const char *title, const char *limits, const char *annotations,
		       const char *expect, size_t calls)
{
	double *took = vg_new_array(calls, sizeof(*took));
	double p50[ROUNDS];
	double p99[ROUNDS];
	struct vg_buf body;
	struct vg_buf reply;
	bool good;

	vg_buf_init(&body, 16 << 20);
	vg_buf_init(&reply, 64 << 20);
	good = bench_round(fd, title, limits, annotations, expect, took, 20, 0, &body, &reply);
	for (int round = 0; round < ROUNDS && good; round++) {
		good = bench_round(fd, title, limits, annotations, expect, took, calls,
				   round * (int)calls, &body, &reply);
		p50[round] = percentile(took, calls, 0.50);
		p99[round] = percentile(took, calls, 0.99);
	}
	if (good) {
		double middle = percentile(p99, ROUNDS, 0.5);

		good = middle <= BAR_MS;
		printf("  %-44s p50 %7.3f ms   p99 %7.3f ms (best round %.3f)   bar %.1f ms   %s\n",
		       title, percentile(p50, ROUNDS, 0.5), middle, p99[0], BAR_MS,
		       good ? "ok" : "MISSED");
	}
	vg_buf_release(&body);
	vg_buf_release(&reply);
	free(took);
	return good;
}

/* The value of a metric without labels other than those given, or -1. */
static double metric(const char *text, const char *name)
{
	const char *line = strstr(text, name);

	return line ? strtod(line + strlen(name), NULL) : -1;
}

static bool decision_quantile(int fd)
{
	struct vg_buf reply;
	const char *text;
	double total, within;
	bool good;

	vg_buf_init(&reply, 64 << 20);
	text = call(fd, "GET", "/metrics", "", 0, &reply);
	total = text ? metric(text, "kube_vgpu_decision_duration_seconds_count ") : -1;
	within = text ? metric(text, "kube_vgpu_decision_duration_seconds_bucket{le=\"0.001\"} ")
		      : -1;
	vg_buf_release(&reply);
	if (total <= 0 || within < 0) {
		printf("  decision: not measured (the daemon's histogram was not found)\n");
		return false;
	}
	good = within / total >= 0.99;
	printf("  %-44s %.2f %% of %.0f within 1 ms   bar 99 %%   %s\n",
	       "decision, by the daemon's own histogram", 100.0 * within / total, total,
	       good ? "ok" : "MISSED");
	return good;
}

static bool resident(pid_t pid)
{
	char path[64], line[256];
	double mib = -1;
	FILE *file;
	bool good;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	file = fopen(path, "re");
	while (file && fgets(line, sizeof(line), file))
		if (strncmp(line, "VmRSS:", 6) == 0)
			mib = strtod(line + 6, NULL) / 1024.0;
	if (file)
		fclose(file);
	good = mib > 0 && mib <= BAR_MIB;
	printf("  %-44s %.1f MiB   bar %.0f MiB   %s\n", "resident memory after the calls", mib,
	       BAR_MIB, good ? "ok" : "MISSED");
	return good;
}

static pid_t start(const char *daemon, const char *config, const char *cluster, uint16_t port)
{
	char listen[32];
	pid_t pid = fork();

	if (pid)
		return pid;
	snprintf(listen, sizeof(listen), "127.0.0.1:%u", port);
	execl(daemon, daemon, "--config", config, "--snapshot", cluster, "--extender-listen",
	      listen, "--metrics-listen", "off", "--log-level", "warn", (char *)NULL);
	_exit(127);
}

int main(int argc, char **argv)
{
	char path[4096];
	uint64_t calls = CALLS;
	uint16_t port = free_port();
	int fd = -1;
	pid_t pid;
	bool good = true;

	if (argc < 4) {
		fprintf(stderr, "Usage: bench_http DAEMON CONFIG FOLDER [CALLS]\n");
		return 2;
	}
	if (argc > 4 && vg_parse_u64(VG_SPAN(argv[4]), 100, 1000000, &calls, NULL) < 0)
		return 2;
	snprintf(path, sizeof(path), "%s/cluster.json", argv[3]);
	if (write_cluster(path) < 0) {
		fprintf(stderr, "bench_http: %s cannot be written\n", path);
		return 2;
	}
	printf("filter over HTTP: %d node names, %d cards each, %d GPU pods, %d rounds of %llu calls\n",
	       NODES, CARDS, PODS, ROUNDS, (unsigned long long)calls);
	pid = start(argv[1], argv[2], path, port);
	for (int i = 0; i < 600 && fd < 0; i++) {
		usleep(100 * 1000);
		fd = dial(port);
	}
	if (fd < 0) {
		fprintf(stderr, "bench_http: the daemon does not listen\n");
		kill(pid, SIGTERM);
		return 2;
	}
	good &= bench_case(fd, "a slice that fits, binpack",
			   "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"4096\",\"nvidia.com/"
			   "gpucores\":\"5\"",
			   "", "\"NodeNames\":[\"gpu-node-", (size_t)calls);
	good &= bench_case(fd, "a slice that fits, spread",
			   "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"4096\"",
			   "\"hami.io/node-scheduler-policy\":\"spread\"",
			   "\"NodeNames\":[\"gpu-node-", (size_t)calls);
	good &= bench_case(fd, "8 cards of one node, too much memory",
			   "\"nvidia.com/gpu\":\"8\",\"nvidia.com/gpumem\":\"80000\"", "",
			   "CardInsufficientMemory", (size_t)calls);
	good &= bench_case(fd, "fits nowhere: 5,000 reasons go back",
			   "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"90000\"", "",
			   "CardInsufficientMemory", (size_t)calls);
	good &= bench_case(fd, "model that nobody has",
			   "\"nvidia.com/gpu\":\"1\",\"nvidia.com/gpumem\":\"1000\"",
			   "\"nvidia.com/use-gputype\":\"H100\"", "CardTypeMismatch",
			   (size_t)calls);
	good &= decision_quantile(fd);
	good &= resident(pid);
	close(fd);
	kill(pid, SIGTERM);
	waitpid(pid, NULL, 0);
	return good ? 0 : 1;
}
