/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AdmissionReview through the whole webhook. Whatever comes in, a review goes out; a patch can be applied
 * to the object that was sent, and the patched pod needs no second one.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "../unit/server/json_patch.h"
#include "base/log.h"
#include "base/mem.h"
#include "server/server_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *reply_body;

void vg_http_reply(struct vg_http_request *request, unsigned status, const char *content_type,
		   char *body, size_t body_size)
{
	(void)content_type;
	if (status != 200 || strlen(body) != body_size)
		abort();
	reply_body = body;
	vg_arena_release(&request->arena);
	free(request);
}

void vg_http_reply_text(struct vg_http_request *request, unsigned status, const char *text)
{
	(void)request;
	(void)status;
	(void)text;
	abort();
}

static void check(bool holds)
{
	if (!holds)
		abort();
}

/* The response member of the reply, and the reply to be given back. */
static json_t *ask(struct vg_server *server, const char *body, size_t size, json_t **ret_reply)
{
	struct vg_http_request *request = vg_new(sizeof(*request));
	char *copy;
	json_t *response;

	vg_arena_init(&request->arena);
	copy = vg_arena_new(&request->arena, size + 1);
	if (size)
		memcpy(copy, body, size);
	request->method = "POST";
	request->path = "/webhook";
	request->query = "";
	request->content_type = "application/json";
	request->body = copy;
	request->body_size = size;
	vg_route_webhook(server, request);
	*ret_reply = json_loads(reply_body, JSON_REJECT_DUPLICATES, NULL);
	free(reply_body);
	response = json_object_get(*ret_reply, "response");
	check(json_is_string(json_object_get(response, "uid")));
	check(json_is_boolean(json_object_get(response, "allowed")));
	check(json_is_integer(json_object_get(json_object_get(response, "status"), "code")));
	return response;
}

static void apply(json_t *object, const json_t *response)
{
	const char *base64 = json_string_value(json_object_get(response, "patch"));
	char *text;
	json_t *patch;

	if (!base64)
		return;
	check(json_is_true(json_object_get(response, "allowed")));
	text = patch_base64(base64);
	check(text != NULL);
	patch = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	check(patch_apply(object, patch));
	json_decref(patch);
	free(text);
}

static void set_text(char **text, const char *value)
{
	free(*text);
	*text = vg_strdup(value);
}

static void fuzz(const char *body, size_t size, struct vg_classes *classes)
{
	const struct vg_server_options options = { .classes = classes,
						   .scheduler_name = "vgpu-scheduler",
						   .force_overwrite = true };
	struct vg_server *server = vg_server_new(&options);
	json_t *first = NULL;
	json_t *second = NULL;
	json_t *response = ask(server, body, size, &first);
	json_t *review = json_loadb(body, size, JSON_ALLOW_NUL, NULL);
	json_t *object = json_object_get(json_object_get(review, "request"), "object");

	if (json_object_get(response, "patch")) {
		json_t *before;
		char *text;

		apply(object, response);
		before = json_deep_copy(object);
		text = json_dumps(review, 0);
		check(text != NULL);
		response = ask(server, text, strlen(text), &second);
		check(json_is_true(json_object_get(response, "allowed")));
		apply(object, response);
		check(json_equal(before, object));
		json_decref(before);
		free(text);
	}
	json_decref(review);
	json_decref(first);
	json_decref(second);
	vg_server_free(server);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_classes classes;

	vg_log_setup(VG_LOG_ERROR, false);
	vg_classes_init(&classes);
	fuzz((const char *)data, size, &classes);
	/* Everything that the webhook can do. */
	classes.item[0].default_count = 1;
	classes.item[0].overwrite_env = true;
	set_text(&classes.item[0].core_policy, "force");
	set_text(&classes.item[0].runtime_class, "nvidia");
	fuzz((const char *)data, size, &classes);
	vg_classes_release(&classes);
	return 0;
}
