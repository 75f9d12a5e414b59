/* SPDX-License-Identifier: Apache-2.0 */
/*
 * POST /webhook: the API server shows each pod before it exists. Pods that ask for cards are completed
 * (scheduler, defaults, environment) or, when they ask for what cannot be, denied with the reason. The
 * patch changes what has to change and nothing else. The reply is always HTTP 200; the verdict is inside.
 */
#include <string.h>

#include "base/log.h"
#include "device/quantity.h"
#include "server/admission_codec_internal.h"
#include "server/server_internal.h"

/* clang-format off */
#define WEBHOOK_STEPS \
	STEP(decode)  /* AdmissionReview of the API server     -> webhook->review          */ \
	STEP(scope)   /* is the pod ours?                      -> or allowed as it is      */ \
	STEP(check)   /* numbers, privileges, node             -> webhook->request, denial */ \
	STEP(quota)   /* what the pod's namespace may have     -> denial                   */ \
	STEP(mutate)  /* what each container and the pod lack  -> webhook->patch           */ \
	STEP(encode)  /* webhook->reply                        -> AdmissionReview          */
/* clang-format on */

/* The API server writes this name into pods that name no scheduler, before it asks us. */
#define DEFAULT_SCHEDULER "default-scheduler"

#define ENV_PRIORITY    "CUDA_TASK_PRIORITY"
#define ENV_CORE_POLICY "GPU_CORE_UTILIZATION_POLICY"
#define ENV_VISIBLE     "NVIDIA_VISIBLE_DEVICES"

struct webhook {
	struct vg_job job;
	struct vg_err err;
	struct vg_review review;
	struct vg_request request;
	struct vg_patch patch;
	struct vg_review_reply reply;
};

static struct webhook *webhook_of(struct vg_job *job)
{
	return (struct webhook *)job;
}

/* ---- verdicts --------------------------------------------------------------------------------- */

static enum vg_step_result allow(struct webhook *webhook, enum vg_result result,
				 const char *message)
{
	vg_server_count(webhook->job.server, result);
	webhook->reply =
		(struct vg_review_reply){ .allowed = true, .code = 200, .message = message };
	return VG_STEP_LAST;
}

/* A review that cannot be read: the API server's mistake, or somebody else's. */
static enum vg_step_result reject(struct webhook *webhook, const char *message)
{
	vg_server_count(webhook->job.server, VG_RESULT_webhook_error);
	vg_warn("server", "an admission review cannot be read",
		VG_S("namespace", webhook->review.namespace), VG_S("pod", webhook->review.name),
		VG_S("why", message));
	webhook->reply = (struct vg_review_reply){ .code = 400, .message = message };
	return VG_STEP_LAST;
}

__attribute__((format(printf, 2, 3))) static enum vg_step_result deny(struct webhook *webhook,
								      const char *format, ...)
{
	char message[VG_ERR_MSG_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(message, sizeof(message), format, args);
	va_end(args);
	webhook->reply = (struct vg_review_reply){
		.code = 403,
		.reason = "Forbidden",
		.message = vg_arena_strdup(webhook->job.arena, message),
	};
	vg_server_count(webhook->job.server, VG_RESULT_webhook_denied);
	vg_info("server", "pod denied", VG_S("namespace", webhook->review.namespace),
		VG_S("pod", webhook->review.name), VG_S("why", webhook->reply.message));
	return VG_STEP_LAST;
}

/* ---- decode, scope ---------------------------------------------------------------------------- */

static enum vg_step_result step_decode(struct vg_job *job)
{
	struct webhook *webhook = webhook_of(job);
	const char *type = job->request->content_type;
	struct vg_span body = { job->request->body, job->request->body_size };
	struct vg_span media = { type, strcspn(type, ";") };
	int r = vg_review_decode(body, job->server->options.classes, job->arena, &webhook->review,
				 &webhook->err);

	if (!vg_span_eq(vg_trim(media), "application/json"))
		return reject(webhook, vg_arena_printf(job->arena,
						       "contentType=%.100s, expected "
						       "application/json",
						       type));
	return r < 0 ? reject(webhook, webhook->err.msg) : VG_STEP_NEXT;
}

/* Pods that name another scheduler are its business. */
static bool is_assigned_elsewhere(const struct vg_server_options *options,
				  const char *scheduler_name)
{
	if (!scheduler_name[0])
		return false;
	if (vg_streq(scheduler_name, DEFAULT_SCHEDULER) && options->force_overwrite)
		return false;
	return !options->scheduler_name[0] || !vg_streq(options->scheduler_name, scheduler_name);
}

static enum vg_step_result step_scope(struct vg_job *job)
{
	struct webhook *webhook = webhook_of(job);
	const struct vg_pod *pod = &webhook->review.pod;

	if (!webhook->review.creates_pod)
		return allow(webhook, VG_RESULT_webhook_allowed, NULL);
	if (pod->container_count == pod->init_count)
		return deny(webhook, "pod has no containers");
	if (is_assigned_elsewhere(&job->server->options, pod->scheduler_name))
		return allow(webhook, VG_RESULT_webhook_skipped,
			     "pod already has different scheduler assigned");
	return VG_STEP_NEXT;
}

/* ---- check ------------------------------------------------------------------------------------ */

/* More than 100 percent is a mistake that the user can still correct here; filter takes it as 100. */
static bool find_percent_over(const struct vg_pod *pod, const struct vg_class *class,
			      const char **ret_container, const char **ret_text)
{
	for (size_t i = 0; i < pod->container_count; i++) {
		const char *text =
			vg_container_resource(&pod->containers[i], class->resource_mem_percent);
		struct vg_quantity quantity;

		if (!text || vg_quantity_parse(VG_SPAN(text), &quantity, NULL) < 0 ||
		    quantity.value <= 100)
			continue;
		*ret_container = pod->containers[i].name;
		*ret_text = text;
		return true;
	}
	return false;
}

static enum vg_step_result step_check(struct vg_job *job)
{
	const struct vg_server_options *options = &job->server->options;
	struct webhook *webhook = webhook_of(job);
	const struct vg_pod *pod = &webhook->review.pod;

	if (vg_request_parse(pod, options->classes, &options->policy, job->arena, &webhook->request,
			     &webhook->err) < 0)
		return deny(webhook, "%s", webhook->err.msg);
	for (size_t i = 0; i < options->classes->count; i++) {
		const struct vg_class *class = &options->classes->item[i];
		const char *container = "";
		const char *text = "";

		if (find_percent_over(pod, class, &container, &text))
			return deny(webhook,
				    "invalid %s value %.40s in container %s: must be an integer "
				    "between 0 and 100",
				    class->resource_mem_percent, text, container);
	}
	if (!webhook->request.want_count)
		return VG_STEP_NEXT;
	for (size_t i = 0; i < pod->container_count; i++)
		if (pod->containers[i].privileged)
			return deny(webhook, "container %s is privileged", pod->containers[i].name);
	/* Such a pod never passes a scheduler: no cards would be chosen for it. */
	if (options->scheduler_name[0] && pod->node_name[0])
		return deny(webhook, "pod has node assigned");
	return VG_STEP_NEXT;
}

/* ---- quota ------------------------------------------------------------------------------------ */

/* Whether somebody who asks for whole cards, and names no share of their cores, means them alone. */
static bool wants_whole_cards(const struct vg_container *container, const struct vg_class *class)
{
	const char *percent = vg_container_resource(container, class->resource_mem_percent);
	struct vg_quantity quantity = { 0 };

	if (!class->resource_cores[0] || vg_container_resource(container, class->resource_cores))
		return false;
	if (percent)
		return vg_quantity_parse(VG_SPAN(percent), &quantity, NULL) == 0 &&
		       quantity.value == 100;
	return !vg_container_resource(container, class->resource_mem);
}

/*
 * What the pod will hold of the class, as far as the request tells: the memory of a percentage depends on
 * the card, and counts 0 here; filter knows it. Containers count as they do on the cards.
 */
static struct vg_total asked_total(const struct webhook *webhook, size_t class_index)
{
	const struct vg_class *class = &webhook->job.server->options.classes->item[class_index];
	struct vg_total staying = { 0 };
	struct vg_total peak = { 0 };

	for (size_t i = 0; i < webhook->request.want_count; i++) {
		const struct vg_want *want = &webhook->request.wants[i];
		const struct vg_container *container =
			&webhook->review.pod.containers[want->container];
		struct vg_total now = staying;

		if (want->class_index != class_index)
			continue;
		now.mem_mib += (int64_t)want->count * want->mem_mib;
		/* What the patch below makes of it. */
		now.cores += (int64_t)want->count *
			     (wants_whole_cards(container, class) ? 100 : want->cores);
		if (want->kind != VG_CONTAINER_INIT)
			staying = now;
		peak.mem_mib = now.mem_mib > peak.mem_mib ? now.mem_mib : peak.mem_mib;
		peak.cores = now.cores > peak.cores ? now.cores : peak.cores;
	}
	return peak;
}

static bool exceeds(int64_t asked, int64_t used, int64_t hard)
{
	return asked && hard != VG_QUOTA_NO_LIMIT && used + asked > hard;
}

static enum vg_step_result deny_quota(struct webhook *webhook, const struct vg_space_copy *space,
				      const char *resource, const char *quota, const char *unit,
				      int64_t used, int64_t hard, int64_t asked)
{
	return deny(
		webhook,
		"exceeding resource quota: %s of namespace %s limits limits.%s to %lld %s; %lld "
		"are used, and the pod asks for %lld",
		quota, space->namespace, resource, (long long)hard, unit, (long long)used,
		(long long)asked);
}

static enum vg_step_result step_quota(struct vg_job *job)
{
	const struct vg_classes *classes = job->server->options.classes;
	struct webhook *webhook = webhook_of(job);
	const struct vg_review *review = &webhook->review;
	/* The object may not have it yet. */
	const char *namespace = review->namespace[0] ? review->namespace : review->pod.namespace;
	struct vg_space_copy space;

	if (!webhook->request.want_count || !job->server->options.cluster ||
	    !vg_cluster_space(job->server->options.cluster, namespace, job->arena, &space))
		return VG_STEP_NEXT;
	for (size_t i = 0; i < classes->count; i++) {
		const struct vg_class *class = &classes->item[i];
		const struct vg_total asked = asked_total(webhook, i);
		const struct vg_total *used = &space.quota.used[i];
		const struct vg_total *hard = &space.quota.hard[i];

		if (exceeds(asked.mem_mib, used->mem_mib, hard->mem_mib))
			return deny_quota(webhook, &space, class->resource_mem, space.mem_by[i],
					  "MiB", used->mem_mib, hard->mem_mib, asked.mem_mib);
		if (exceeds(asked.cores, used->cores, hard->cores))
			return deny_quota(webhook, &space, class->resource_cores, space.cores_by[i],
					  "percent", used->cores, hard->cores, asked.cores);
	}
	return VG_STEP_NEXT;
}

/* ---- mutate ----------------------------------------------------------------------------------- */

/* One member of a container that is to get new entries. */
struct additions {
	struct vg_patch *patch;
	struct vg_arena *arena;
	const char *path; /* "/spec/containers/0" */
	const struct vg_container *container;

	struct {
		const char *name;
		const char *value;
	} limit[2 * VG_CLASSES_MAX], env[3 * VG_CLASSES_MAX];
	size_t limit_count;
	size_t env_count;
};

static void add_limit(struct additions *additions, const char *name, int64_t value)
{
	size_t i = additions->limit_count++;

	additions->limit[i].name = name;
	additions->limit[i].value = vg_arena_printf(additions->arena, "%lld", (long long)value);
}

/* A variable that the user set stays as it is. */
static void add_env(struct additions *additions, const char *name, const char *value)
{
	for (const char *const *have = additions->container->env_names; *have; have++)
		if (vg_streq(*have, name))
			return;
	for (size_t i = 0; i < additions->env_count; i++)
		if (vg_streq(additions->env[i].name, name))
			return;
	additions->env[additions->env_count].name = name;
	additions->env[additions->env_count++].value = value;
}

static void put_env(struct vg_out *out, const char *name, const char *value)
{
	vg_out_open(out, '{');
	vg_out_member_text(out, "name", name);
	vg_out_member_text(out, "value", value);
	vg_out_close(out, '}');
}

/* A variable that must have this value, whatever the user set. */
static void force_env(struct additions *additions, const char *name, const char *value)
{
	const char *const *have = additions->container->env_names;

	add_env(additions, name, value);
	for (size_t i = 0; have[i]; i++) {
		if (!vg_streq(have[i], name))
			continue;
		vg_patch_begin(additions->patch, "replace",
			       vg_arena_printf(additions->arena, "%s/env/%zu", additions->path, i));
		put_env(&additions->patch->out, name, value);
		vg_patch_end(additions->patch);
	}
}

static void put_limits(struct additions *additions)
{
	struct vg_out *out = &additions->patch->out;

	vg_out_open(out, '{');
	for (size_t i = 0; i < additions->limit_count; i++) {
		vg_out_key_text(out, additions->limit[i].name);
		vg_out_text(out, additions->limit[i].value);
	}
	vg_out_close(out, '}');
}

/* Missing parents are created together with their content. */
static void patch_limits(struct additions *additions)
{
	const struct vg_container *container = additions->container;
	struct vg_patch *patch = additions->patch;
	const char *limits =
		vg_arena_printf(additions->arena, "%s/resources/limits", additions->path);

	if (!additions->limit_count)
		return;
	if (!container->has_resources) {
		vg_patch_begin(patch, "add",
			       vg_arena_printf(additions->arena, "%s/resources", additions->path));
		vg_out_open(&patch->out, '{');
		vg_out_key(&patch->out, "limits");
		put_limits(additions);
		vg_out_close(&patch->out, '}');
		vg_patch_end(patch);
		return;
	}
	if (!container->has_limits) {
		vg_patch_begin(patch, "add", limits);
		put_limits(additions);
		vg_patch_end(patch);
		return;
	}
	for (size_t i = 0; i < additions->limit_count; i++) {
		const char *key = vg_patch_escape(additions->limit[i].name, additions->arena);

		vg_patch_text(patch, "add", vg_arena_printf(additions->arena, "%s/%s", limits, key),
			      additions->limit[i].value);
	}
}

static void patch_env(struct additions *additions)
{
	struct vg_patch *patch = additions->patch;
	const char *path = vg_arena_printf(additions->arena, "%s/env", additions->path);

	if (!additions->env_count)
		return;
	if (!additions->container->has_env) {
		vg_patch_begin(patch, "add", path);
		vg_out_open(&patch->out, '[');
		for (size_t i = 0; i < additions->env_count; i++)
			put_env(&patch->out, additions->env[i].name, additions->env[i].value);
		vg_out_close(&patch->out, ']');
		vg_patch_end(patch);
		return;
	}
	for (size_t i = 0; i < additions->env_count; i++) {
		vg_patch_begin(patch, "add", vg_arena_printf(additions->arena, "%s/-", path));
		put_env(&patch->out, additions->env[i].name, additions->env[i].value);
		vg_patch_end(patch);
	}
}

static void complete(struct additions *additions, const struct vg_class *class,
		     const struct vg_want *want)
{
	const struct vg_container *container = additions->container;
	const char *priority = vg_container_resource(container, class->resource_priority);
	bool policy = class->core_policy[0] && !vg_streq(class->core_policy, "default");

	if (!want) {
		if (class->overwrite_env)
			force_env(additions, ENV_VISIBLE, "none");
		return;
	}
	if (!vg_container_resource(container, class->resource_count))
		add_limit(additions, class->resource_count, want->count);
	if (wants_whole_cards(container, class))
		add_limit(additions, class->resource_cores, 100);
	if (priority)
		add_env(additions, ENV_PRIORITY, priority);
	if (policy)
		add_env(additions, ENV_CORE_POLICY, class->core_policy);
}

static const struct vg_want *find_want(const struct vg_request *request, size_t container,
				       size_t class)
{
	for (size_t i = 0; i < request->want_count; i++)
		if (request->wants[i].container == container &&
		    request->wants[i].class_index == class)
			return &request->wants[i];
	return NULL;
}

static void mutate_container(struct webhook *webhook, size_t index)
{
	const struct vg_classes *classes = webhook->job.server->options.classes;
	const struct vg_pod *pod = &webhook->review.pod;
	bool init = index < pod->init_count;
	struct additions *additions = vg_arena_new(webhook->job.arena, sizeof(*additions));

	additions->patch = &webhook->patch;
	additions->arena = webhook->job.arena;
	additions->container = &pod->containers[index];
	additions->path = vg_arena_printf(webhook->job.arena, "/spec/%s/%zu",
					  init ? "initContainers" : "containers",
					  init ? index : index - pod->init_count);
	for (size_t i = 0; i < classes->count; i++)
		complete(additions, &classes->item[i], find_want(&webhook->request, index, i));
	patch_limits(additions);
	patch_env(additions);
}

static void mutate_pod(struct webhook *webhook)
{
	const struct vg_server_options *options = &webhook->job.server->options;
	const struct vg_request *request = &webhook->request;
	const struct vg_pod *pod = &webhook->review.pod;
	const char *runtime_class = "";

	if (!request->want_count)
		return;
	for (size_t i = 0; i < request->want_count && !runtime_class[0]; i++)
		runtime_class = options->classes->item[request->wants[i].class_index].runtime_class;
	if (!pod->runtime_class[0] && runtime_class[0])
		vg_patch_text(&webhook->patch, "add", "/spec/runtimeClassName", runtime_class);
	if (options->scheduler_name[0] && !vg_streq(pod->scheduler_name, options->scheduler_name))
		vg_patch_text(&webhook->patch, pod->scheduler_name[0] ? "replace" : "add",
			      "/spec/schedulerName", options->scheduler_name);
}

static enum vg_step_result step_mutate(struct vg_job *job)
{
	struct webhook *webhook = webhook_of(job);
	const struct vg_pod *pod = &webhook->review.pod;

	for (size_t i = 0; i < pod->container_count; i++)
		mutate_container(webhook, i);
	mutate_pod(webhook);
	allow(webhook, webhook->patch.count ? VG_RESULT_webhook_patched : VG_RESULT_webhook_allowed,
	      NULL);
	webhook->reply.patch = vg_patch_json(&webhook->patch);
	if (webhook->patch.count)
		vg_info("server", "pod completed", VG_S("namespace", webhook->review.namespace),
			VG_S("pod", webhook->review.name), VG_I("operations", webhook->patch.count),
			VG_I("dry_run", webhook->review.dry_run));
	return VG_STEP_NEXT;
}

static enum vg_step_result step_encode(struct vg_job *job)
{
	struct webhook *webhook = webhook_of(job);

	vg_review_encode(&webhook->review, &webhook->reply, &job->reply);
	vg_patch_release(&webhook->patch);
	return VG_STEP_NEXT;
}

void vg_route_webhook(void *ctx, struct vg_http_request *request)
{
#define STEP(name) VG_STEP_ROW(name)
	static const struct vg_step steps[] = { WEBHOOK_STEPS };
#undef STEP
	struct webhook *webhook = vg_arena_new(&request->arena, sizeof(*webhook));

	vg_job_init(&webhook->job, ctx, request, "webhook", steps,
		    sizeof(steps) / sizeof(steps[0]));
	vg_patch_init(&webhook->patch);
	vg_job_run(&webhook->job);
}
