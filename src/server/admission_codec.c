/* SPDX-License-Identifier: Apache-2.0 */
#include "server/admission_codec_internal.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/limits.h"

#define DEFAULT_API_VERSION "admission.k8s.io/v1"

/* ---- the review ------------------------------------------------------------------------------- */

/* "" when it is absent or no string. */
static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static const char *copy_of(const json_t *object, const char *key, struct vg_arena *arena)
{
	return vg_arena_strdup(arena, text_of(object, key));
}

static bool is_pod_creation(const json_t *request)
{
	const json_t *resource = json_object_get(request, "resource");

	return vg_streq(text_of(request, "operation"), "CREATE") &&
	       vg_streq(text_of(resource, "group"), "") &&
	       vg_streq(text_of(resource, "resource"), "pods") &&
	       vg_streq(text_of(request, "subResource"), "");
}

static int decode_request(const json_t *request, const struct vg_classes *classes,
			  struct vg_arena *arena, struct vg_review *review, struct vg_err *err)
{
	const json_t *object = json_object_get(request, "object");

	if (!json_is_object(request))
		return vg_fail(err, EINVAL, "AdmissionReview has no request");
	review->uid = copy_of(request, "uid", arena);
	review->namespace = copy_of(request, "namespace", arena);
	review->name = copy_of(request, "name", arena);
	review->dry_run = json_is_true(json_object_get(request, "dryRun"));
	if (!is_pod_creation(request))
		return 0;
	if (!json_is_object(object))
		return vg_fail(err, EINVAL, "AdmissionReview: request.object is no object");
	review->creates_pod = true;
	return vg_pod_decode(object, classes, arena, &review->pod, err);
}

int vg_review_decode(struct vg_span body, const struct vg_classes *classes, struct vg_arena *arena,
		     struct vg_review *review, struct vg_err *err)
{
	const char *kind;
	json_error_t error;
	json_t *root;
	int r;

	*review = (struct vg_review){ .api_version = DEFAULT_API_VERSION,
				      .kind = "AdmissionReview",
				      .uid = "",
				      .namespace = "",
				      .name = "" };
	if (!body.size)
		return vg_fail(err, EINVAL, "request body is empty");
	root = json_loadb(body.data, body.size, JSON_ALLOW_NUL, &error);
	if (!root)
		return vg_fail(err, EINVAL, "AdmissionReview: byte %d: %s", error.position,
			       error.text);
	kind = text_of(root, "kind");
	if (text_of(root, "apiVersion")[0])
		review->api_version = copy_of(root, "apiVersion", arena);
	if (!json_is_object(root) || (kind[0] && !vg_streq(kind, "AdmissionReview")) ||
	    !vg_starts_with(review->api_version, "admission.k8s.io/")) {
		r = vg_fail(err, EINVAL,
			    "not an AdmissionReview: apiVersion \"%.60s\", kind \"%.60s\"",
			    text_of(root, "apiVersion"), kind);
		review->api_version = DEFAULT_API_VERSION;
	} else {
		r = decode_request(json_object_get(root, "request"), classes, arena, review, err);
	}
	json_decref(root);
	return r;
}

/* ---- the reply -------------------------------------------------------------------------------- */

static void add_base64(struct vg_buf *buf, struct vg_span bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

	for (size_t i = 0; i < bytes.size; i += 3) {
		size_t left = bytes.size - i;
		unsigned group = (unsigned)(unsigned char)bytes.data[i] << 16;
		char text[4];

		if (left > 1)
			group |= (unsigned)(unsigned char)bytes.data[i + 1] << 8;
		if (left > 2)
			group |= (unsigned char)bytes.data[i + 2];
		for (int digit = 0; digit < 4; digit++)
			text[digit] = digits[group >> (18 - 6 * digit) & 63];
		if (left < 3)
			text[3] = '=';
		if (left < 2)
			text[2] = '=';
		vg_buf_add(buf, text, sizeof(text));
	}
}

void vg_review_encode(const struct vg_review *review, const struct vg_review_reply *reply,
		      struct vg_buf *buf)
{
	struct vg_out out;

	vg_out_init(&out, buf);
	vg_out_open(&out, '{');
	vg_out_member_text(&out, "kind", review->kind);
	vg_out_member_text(&out, "apiVersion", review->api_version);
	vg_out_key(&out, "response");
	vg_out_open(&out, '{');
	vg_out_member_text(&out, "uid", review->uid);
	vg_out_member_bool(&out, "allowed", reply->allowed);
	if (reply->patch.size) {
		vg_out_key(&out, "patch");
		vg_buf_adds(buf, "\"");
		add_base64(buf, reply->patch);
		vg_buf_adds(buf, "\"");
		out.comma = true;
		vg_out_member_text(&out, "patchType", "JSONPatch");
	}
	vg_out_key(&out, "status");
	vg_out_open(&out, '{');
	if (reply->reason)
		vg_out_member_text(&out, "reason", reply->reason);
	if (reply->message)
		vg_out_member_text(&out, "message", reply->message);
	vg_out_member_i64(&out, "code", reply->code);
	vg_out_close(&out, '}');
	vg_out_close(&out, '}');
	vg_out_close(&out, '}');
	vg_buf_adds(buf, "\n");
}

/* ---- patches ---------------------------------------------------------------------------------- */

void vg_patch_init(struct vg_patch *patch)
{
	*patch = (struct vg_patch){ 0 };
	vg_buf_init(&patch->json, VG_LIMIT_WEBHOOK_BODY_BYTES);
}

void vg_patch_release(struct vg_patch *patch)
{
	vg_buf_release(&patch->json);
}

void vg_patch_begin(struct vg_patch *patch, const char *op, const char *path)
{
	struct vg_out *out = &patch->out;

	if (patch->count++ == 0) {
		vg_out_init(out, &patch->json);
		vg_out_open(out, '[');
	}
	vg_out_open(out, '{');
	vg_out_member_text(out, "op", op);
	vg_out_member_text(out, "path", path);
	vg_out_key(out, "value");
}

void vg_patch_end(struct vg_patch *patch)
{
	vg_out_close(&patch->out, '}');
}

void vg_patch_text(struct vg_patch *patch, const char *op, const char *path, const char *value)
{
	vg_patch_begin(patch, op, path);
	vg_out_text(&patch->out, value);
	vg_patch_end(patch);
}

const char *vg_patch_escape(const char *key, struct vg_arena *arena)
{
	char *escaped = vg_arena_new(arena, 2 * strlen(key) + 1);
	char *to = escaped;

	for (; *key; key++) {
		if (*key == '~' || *key == '/') {
			*to++ = '~';
			*to++ = *key == '~' ? '0' : '1';
		} else {
			*to++ = *key;
		}
	}
	return escaped;
}

struct vg_span vg_patch_json(struct vg_patch *patch)
{
	if (!patch->count)
		return (struct vg_span){ "", 0 };
	vg_out_close(&patch->out, ']');
	return (struct vg_span){ patch->json.data, patch->json.used };
}
