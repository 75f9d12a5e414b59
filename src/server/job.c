/* SPDX-License-Identifier: Apache-2.0 */
#include "server/job_internal.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/log.h"
#include "server/json_out_internal.h"

void vg_job_init(struct vg_job *job, struct vg_server *server, struct vg_http_request *request,
		 const char *route, const struct vg_step *steps, size_t step_count)
{
	*job = (struct vg_job){
		.server = server,
		.request = request,
		.arena = &request->arena,
		.route = route,
		.steps = steps,
		.step_count = step_count,
		.content_type = "application/json",
	};
	vg_buf_init(&job->reply, VG_LIMIT_REPLY_BYTES);
}

static void send_reply(struct vg_job *job)
{
	char *body;
	size_t size;

	if (vg_buf_failed(&job->reply)) {
		vg_error("server", "a reply is too large", VG_S("route", job->route),
			 VG_I("limit_bytes", VG_LIMIT_REPLY_BYTES));
		vg_buf_release(&job->reply);
		vg_http_reply_text(job->request, 500, "the reply would be too large");
		return;
	}
	body = vg_buf_steal(&job->reply, &size);
	vg_http_reply(job->request, job->status ? job->status : 200, job->content_type, body, size);
}

enum vg_step_result vg_job_fail(struct vg_job *job, unsigned status, const char *format, ...)
{
	char text[VG_ERR_MSG_MAX];
	struct vg_out out;
	va_list args;

	va_start(args, format);
	vsnprintf(text, sizeof(text), format, args);
	va_end(args);
	vg_buf_clear(&job->reply);
	vg_out_init(&out, &job->reply);
	vg_out_open(&out, '{');
	vg_out_member_text(&out, "error", text);
	vg_out_close(&out, '}');
	vg_buf_adds(&job->reply, "\n");
	job->status = status;
	return VG_STEP_SEND;
}

void vg_job_run(struct vg_job *job)
{
	static const char *const then[] = { [VG_STEP_NEXT] = "next",
					    [VG_STEP_LAST] = "last",
					    [VG_STEP_SEND] = "send",
					    [VG_STEP_WAIT] = "wait" };

	while (job->next < job->step_count) {
		const struct vg_step *step = &job->steps[job->next++];
		const char *route = job->route;
		int64_t began_ns = vg_log_enabled(VG_LOG_DEBUG) ? vg_clock_mono_ns() : 0;
		enum vg_step_result result = step->run(job);

		vg_debug("server", "step", VG_S("route", route), VG_S("step", step->name),
			 VG_S("then", then[result]),
			 VG_I("us", (vg_clock_mono_ns() - began_ns) / 1000));
		if (result == VG_STEP_WAIT)
			return;
		if (result == VG_STEP_LAST)
			job->next = job->step_count - 1;
		if (result == VG_STEP_SEND)
			job->next = job->step_count;
	}
	send_reply(job);
}
