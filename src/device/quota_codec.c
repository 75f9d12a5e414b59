/* SPDX-License-Identifier: Apache-2.0 */
#include "device/quota.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "device/json_internal.h"
#include "device/quantity.h"

#define PREFIX        "limits."
#define BYTES_PER_MIB ((int64_t)1 << 20)
/* Of a value that is repeated in a message. */
#define SHOWN_BYTES   40

void vg_quota_unlimited(struct vg_total hard[VG_CLASSES_MAX])
{
	for (size_t i = 0; i < VG_CLASSES_MAX; i++)
		hard[i] = (struct vg_total){ VG_QUOTA_NO_LIMIT, VG_QUOTA_NO_LIMIT };
}

bool vg_quota_limits(const struct vg_total hard[VG_CLASSES_MAX])
{
	for (size_t i = 0; i < VG_CLASSES_MAX; i++)
		if (hard[i].mem_mib != VG_QUOTA_NO_LIMIT || hard[i].cores != VG_QUOTA_NO_LIMIT)
			return true;
	return false;
}

/* What is wrong with each limit goes into one text. */
__attribute__((format(printf, 2, 3))) static void complain(struct vg_buf *problems,
							   const char *format, ...)
{
	char why[VG_ERR_MSG_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(why, sizeof(why), format, args);
	va_end(args);
	vg_buf_addf(problems, "%s%s", problems->used ? "; " : "", why);
}

/* A limit of one resource, in its own unit; VG_QUOTA_NO_LIMIT when there is none that can be used. */
static int read_limit(const json_t *hard, const char *resource, struct vg_arena *arena,
		      struct vg_buf *problems, struct vg_quantity *ret_quantity, struct vg_err *err)
{
	struct vg_quantity quantity = { .value = VG_QUOTA_NO_LIMIT };
	const char *key = vg_arena_printf(arena, PREFIX "%s", resource);
	json_t *value = resource[0] ? json_object_get(hard, key) : NULL;
	const char *text;
	int r;

	*ret_quantity = quantity;
	if (!value || json_is_null(value))
		return 0;
	r = vg_json_quantity(value, key, arena, &text, err);
	if (r < 0)
		return vg_err_wrap(err, r, "spec.hard");
	r = vg_quantity_parse(VG_SPAN(text), &quantity, NULL);
	if (r == 0 && quantity.exact && quantity.value >= 0)
		*ret_quantity = quantity;
	else
		complain(problems, "%s \"%.*s\" %s, and is not looked at", key, SHOWN_BYTES, text,
			 r == -ERANGE      ? "is too large"
			 : r < 0           ? "is not a quantity"
			 : !quantity.exact ? "is not a whole number"
					   : "is negative");
	return 0;
}

/* As with the memory of a container: bytes are the mistake that people make. The limit stays what it is. */
static void hint_bytes(const struct vg_class *class, const struct vg_quantity *mem, int32_t factor,
		       struct vg_buf *problems)
{
	int64_t mib = mem->value / BYTES_PER_MIB;

	if (mem->large_suffix && mib > 0)
		complain(problems,
			 PREFIX "%s is a count of %d MiB each, not of bytes; if %lld bytes are "
				"meant, write %lld",
			 class->resource_mem, factor, (long long)mem->value,
			 (long long)(mib / factor));
}

static int decode_hard(const json_t *hard, const struct vg_classes *classes, struct vg_arena *arena,
		       struct vg_quota_info *quota, struct vg_buf *problems, struct vg_err *err)
{
	for (size_t i = 0; i < classes->count; i++) {
		const struct vg_class *class = &classes->item[i];
		int32_t factor = class->mem_factor > 1 ? class->mem_factor : 1;
		struct vg_quantity mem;
		struct vg_quantity cores;
		int r = read_limit(hard, class->resource_mem, arena, problems, &mem, err);

		if (r == 0)
			r = read_limit(hard, class->resource_cores, arena, problems, &cores, err);
		if (r < 0)
			return r;
		hint_bytes(class, &mem, factor, problems);
		/* Past what can be counted in MiB it limits nobody. */
		if (mem.value <= (VG_QUOTA_NO_LIMIT - 1) / factor)
			quota->hard[i].mem_mib = mem.value * factor;
		quota->hard[i].cores = cores.value;
	}
	return 0;
}

/* Which pods a quota is about cannot be told from what we keep of them, so it is about all. */
static int check_scopes(const json_t *spec, struct vg_buf *problems, struct vg_err *err)
{
	json_t *selector = NULL;
	json_t *scopes = NULL;
	int r = vg_json_array(spec, "spec.scopes", &scopes, err);

	if (r == 0)
		r = vg_json_object(spec, "spec.scopeSelector", &selector, err);
	if (r == 0 && (json_array_size(scopes) || json_object_size(selector)))
		complain(problems, "its scopes are not looked at: it counts for all pods of the "
				   "namespace");
	return r;
}

int vg_quota_decode(const struct json_t *object, const struct vg_classes *classes,
		    struct vg_arena *arena, struct vg_quota_info *ret_quota, struct vg_err *err)
{
	struct vg_buf problems;
	struct vg_quota_info quota;
	struct vg_json_meta meta;
	json_t *spec = NULL;
	json_t *hard = NULL;
	int r;

	r = vg_json_meta(object, "ResourceQuota", arena, &meta, err);
	if (r < 0)
		return r;
	if (!meta.name[0] || !meta.namespace[0])
		return vg_fail(err, EINVAL,
			       "not a ResourceQuota: metadata.name or metadata.namespace is "
			       "missing");
	quota = (struct vg_quota_info){
		.namespace = meta.namespace,
		.name = meta.name,
		.uid = meta.uid,
		.resource_version = meta.resource_version,
	};
	vg_quota_unlimited(quota.hard);
	vg_buf_init(&problems, VG_LIMIT_QUOTA_TEXT_BYTES);
	r = vg_json_object(object, "spec", &spec, err);
	if (r == 0)
		r = vg_json_object(spec, "spec.hard", &hard, err);
	if (r == 0)
		r = decode_hard(hard, classes, arena, &quota, &problems, err);
	/* Of no interest where it limits nothing of ours. */
	if (r == 0 && vg_quota_limits(quota.hard))
		r = check_scopes(spec, &problems, err);
	if (r < 0) {
		vg_err_wrap(err, r, "ResourceQuota %s/%s", meta.namespace, meta.name);
	} else {
		if (problems.used)
			quota.problem = vg_arena_strndup(arena, problems.data, problems.used);
		*ret_quota = quota;
	}
	vg_buf_release(&problems);
	return r;
}
