/* SPDX-License-Identifier: Apache-2.0 */
/* "ADDR:PORT" to a listening socket. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "http/http_internal.h"

#define HOST_BYTES 256

/* Splits at the last colon; an IPv6 address stands in brackets, so that its colons don't count. */
static int split(const char *address, char host[static HOST_BYTES], uint16_t *ret_port,
		 struct vg_err *err)
{
	static const char *const forms =
		"expected ADDR:PORT, [IPV6]:PORT or :PORT, such as 127.0.0.1:8080";
	const char *colon = strrchr(address, ':');
	struct vg_span name = { address, colon ? (size_t)(colon - address) : 0 };
	struct vg_err why = { 0 };
	uint64_t port;

	if (!colon)
		return vg_fail(err, EINVAL, "\"%s\" has no port; %s", address, forms);
	if (name.size && name.data[0] == '[') {
		if (name.size < 3 || name.data[name.size - 1] != ']')
			return vg_fail(err, EINVAL, "\"%s\" is no address; %s", address, forms);
		name = (struct vg_span){ name.data + 1, name.size - 2 };
	} else if (vg_span_has(name, ':')) {
		return vg_fail(err, EINVAL, "\"%s\" needs brackets around its IPv6 address; %s",
			       address, forms);
	}
	if (name.size >= HOST_BYTES)
		return vg_fail(err, EINVAL, "\"%.40s…\" is too long for an address", address);
	if (vg_parse_u64(VG_SPAN(colon + 1), 0, UINT16_MAX, &port, &why) < 0)
		return vg_fail(err, EINVAL, "the port of \"%s\": %s; %s", address, why.msg, forms);
	memcpy(host, name.data, name.size);
	host[name.size] = '\0';
	*ret_port = (uint16_t)port;
	return 0;
}

static const char *advice(int code)
{
	switch (code) {
	case EADDRINUSE:
		return ": stop what listens there, or choose another port";
	case EACCES:
		return ": ports below 1024 need root or CAP_NET_BIND_SERVICE";
	case EADDRNOTAVAIL:
		return ": this machine has no such address; use one of its own or :PORT for all";
	default:
		return "";
	}
}

/* Returns the socket or a negative errno. */
static int open_one(const struct addrinfo *info)
{
	vg_autoclose int fd =
		socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int on = 1;
	int off = 0;
	int result;

	if (fd < 0)
		return -errno;
	/* A restart must not wait for the connections of the process before. */
	if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0)
		return -errno;
	/* The wildcard takes IPv4 as well, whatever net.ipv6.bindv6only says. */
	if (info->ai_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0)
		return -errno;
	if (bind(fd, info->ai_addr, info->ai_addrlen) < 0)
		return -errno;
	if (listen(fd, (int)VG_LIMIT_HTTP_CONNECTIONS) < 0)
		return -errno;
	result = fd;
	fd = -1;
	return result;
}

static int port_of(int fd, uint16_t *ret_port, struct vg_err *err)
{
	union {
		struct sockaddr any;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	} bound = { 0 };
	socklen_t size = sizeof(bound);

	if (getsockname(fd, &bound.any, &size) < 0)
		return vg_fail(err, errno, "the listening socket has no name: %s", strerror(errno));
	*ret_port =
		ntohs(bound.any.sa_family == AF_INET6 ? bound.in6.sin6_port : bound.in.sin_port);
	return 0;
}

int vg_http_open_socket(const char *address, int *ret_fd, uint16_t *ret_port, struct vg_err *err)
{
	const struct addrinfo hints = { .ai_family = AF_UNSPEC,
					.ai_socktype = SOCK_STREAM,
					.ai_flags = AI_PASSIVE };
	struct addrinfo *found = NULL;
	char host[HOST_BYTES] = "";
	uint16_t port = 0;
	char service[8];
	vg_autoclose int fd = -1;
	int r;

	r = split(address, host, &port, err);
	if (r < 0)
		return r;
	snprintf(service, sizeof(service), "%u", (unsigned)port);
	if (host[0]) {
		r = getaddrinfo(host, service, &hints, &found);
		if (r != 0)
			return vg_fail(err, EINVAL, "cannot listen on %s: \"%s\" is no address: %s",
				       address, host, gai_strerror(r));
		for (const struct addrinfo *info = found; info; info = info->ai_next) {
			fd = open_one(info);
			if (fd >= 0)
				break;
		}
		freeaddrinfo(found);
	} else {
		struct sockaddr_in6 any6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
		struct sockaddr_in any4 = { .sin_family = AF_INET, .sin_port = htons(port) };

		fd = open_one(&(struct addrinfo){ .ai_family = AF_INET6,
						  .ai_addr = (struct sockaddr *)&any6,
						  .ai_addrlen = sizeof(any6) });
		/* A kernel without IPv6. */
		if (fd == -EAFNOSUPPORT || fd == -EADDRNOTAVAIL)
			fd = open_one(&(struct addrinfo){ .ai_family = AF_INET,
							  .ai_addr = (struct sockaddr *)&any4,
							  .ai_addrlen = sizeof(any4) });
	}
	if (fd < 0)
		return vg_fail(err, -fd, "cannot listen on %s: %s%s", address, strerror(-fd),
			       advice(-fd));
	r = port_of(fd, ret_port, err);
	if (r < 0)
		return r;
	*ret_fd = fd;
	fd = -1;
	return 0;
}
