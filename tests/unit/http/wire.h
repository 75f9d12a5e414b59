/* SPDX-License-Identifier: Apache-2.0 */
/* A client that sends exactly the bytes it is told to, for the tests of this folder. */
#ifndef VGPU_TESTS_HTTP_WIRE_H
#define VGPU_TESTS_HTTP_WIRE_H

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <cmocka.h>

struct wire_reply {
	int status;         /* 0: the connection was closed without one */
	char head[4096];    /* status line and headers */
	char body[1 << 17]; /* cut there */
	size_t body_size;
};

static inline int wire_connect(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct timeval limit = { .tv_sec = 20 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	return fd;
}

static inline void wire_send(int fd, const char *data, size_t size)
{
	while (size > 0) {
		ssize_t sent = send(fd, data, size, MSG_NOSIGNAL);

		if (sent <= 0)
			return; /* the peer has seen enough: its answer tells why */
		data += sent;
		size -= (size_t)sent;
	}
}

static inline void wire_text(int fd, const char *text)
{
	wire_send(fd, text, strlen(text));
}

static inline const char *wire_header(const struct wire_reply *reply, const char *name)
{
	static _Thread_local char value[256];
	size_t length = strlen(name);

	for (const char *line = strstr(reply->head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, length) == 0 && line[length] == ':') {
			size_t size = strcspn(line + length + 2, "\r");

			snprintf(value, sizeof(value), "%.*s", (int)size, line + length + 2);
			return value;
		}
	}
	return NULL;
}

/* Reads one reply by its Content-Length; `get` gives bytes as recv() does. */
static inline void wire_read_by(ssize_t (*get)(void *ctx, void *data, size_t size), void *ctx,
				bool head_only, struct wire_reply *reply)
{
	size_t used = 0;
	size_t want = 0;
	const char *length;

	memset(reply, 0, sizeof(*reply));
	while (used < sizeof(reply->head) - 1) {
		if (get(ctx, reply->head + used, 1) != 1)
			return;
		used++;
		if (used >= 4 && memcmp(reply->head + used - 4, "\r\n\r\n", 4) == 0)
			break;
	}
	assert_int_equal(sscanf(reply->head, "HTTP/1.%*d %d", &reply->status), 1);
	length = wire_header(reply, "Content-Length");
	if (reply->status == 100 || head_only)
		return;
	assert_non_null(length);
	assert_int_equal(sscanf(length, "%zu", &want), 1);
	while (reply->body_size < want) {
		char piece[4096];
		size_t left = want - reply->body_size;
		ssize_t got = get(ctx, piece, left < sizeof(piece) ? left : sizeof(piece));

		assert_true(got > 0);
		for (ssize_t i = 0; i < got; i++, reply->body_size++)
			if (reply->body_size < sizeof(reply->body) - 1)
				reply->body[reply->body_size] = piece[i];
	}
}

static inline ssize_t wire_get(void *ctx, void *data, size_t size)
{
	return recv(*(int *)ctx, data, size, 0);
}

static inline void wire_read(int fd, struct wire_reply *reply)
{
	wire_read_by(wire_get, &fd, false, reply);
}

/* Whether the server closed the connection: nothing more comes. */
static inline bool wire_at_end(int fd)
{
	char byte;

	return recv(fd, &byte, 1, 0) <= 0;
}

/* One request on a connection of its own. */
static inline void wire_ask(uint16_t port, const char *request, size_t size,
			    struct wire_reply *reply)
{
	int fd = wire_connect(port);

	wire_send(fd, request, size);
	wire_read_by(wire_get, &fd, strncmp(request, "HEAD ", 5) == 0, reply);
	close(fd);
}

#endif
