/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The steps of a route, and the one loop that runs them.
 *
 * A route file begins with the table of its steps, in the order in which a request passes them. Each is
 * a function of the same name with a prefix; the loop logs their names at debug level. A step that has
 * to wait for somebody else returns VG_STEP_WAIT, and whoever it waited for calls vg_job_run() to go on.
 */
#ifndef VGPU_SERVER_JOB_INTERNAL_H
#define VGPU_SERVER_JOB_INTERNAL_H

#include <stddef.h>

#include "base/arena.h"
#include "base/buf.h"
#include "http/http.h"

struct vg_server;
struct vg_job;

enum vg_step_result {
	VG_STEP_NEXT,
	VG_STEP_LAST, /* skip to the last step, which encodes what was found */
	VG_STEP_SEND, /* the reply is complete: skip everything */
	VG_STEP_WAIT, /* the job may be running elsewhere already: it must not be touched any more */
};

struct vg_step {
	const char *name;
	enum vg_step_result (*run)(struct vg_job *job);
};

/* The first member of each route's own struct, which lives in the request's arena. */
struct vg_job {
	struct vg_server *server;
	struct vg_http_request *request; /* gone, with the arena, when the reply is sent */
	struct vg_arena *arena;          /* of the request */
	const char *route;
	const struct vg_step *steps;
	size_t step_count;
	size_t next; /* index of the step to run */

	struct vg_buf reply; /* filled by the last step */
	unsigned status;     /* 0 = 200 */
	const char *content_type;
};

/* For tables: #define X_STEPS STEP(decode) STEP(encode), with functions step_decode(), … */
#define VG_STEP_ROW(name) { #name, step_##name },

/*
 * A job of `size` bytes, the route's own struct. Runs its steps to the end or to the first wait; the end
 * sends the reply.
 */
void vg_job_init(struct vg_job *job, struct vg_server *server, struct vg_http_request *request,
		 const char *route, const struct vg_step *steps, size_t step_count);
void vg_job_run(struct vg_job *job);

/* For the routes that people use: {"error":"…"} with this HTTP status. Returns VG_STEP_SEND. */
enum vg_step_result vg_job_fail(struct vg_job *job, unsigned status, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

#endif
