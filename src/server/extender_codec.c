/* SPDX-License-Identifier: Apache-2.0 */
#include "server/extender_codec_internal.h"

#include <errno.h>
#include <string.h>

#include <jansson.h>

#include "base/limits.h"
#include "server/json_in_internal.h"
#include "server/json_out_internal.h"

/* ---- objects inside the body ------------------------------------------------------------------ */

/* `what` for messages: "Pod". */
static int load(struct vg_span json, const char *what, json_t **ret_value, struct vg_err *err)
{
	json_error_t error;
	json_t *value = json_loadb(json.data, json.size, JSON_ALLOW_NUL, &error);

	if (!value)
		return vg_fail(err, EINVAL, "%s: byte %d: %s", what, error.position, error.text);
	*ret_value = value;
	return 0;
}

int vg_pod_json_decode(struct vg_span json, const struct vg_classes *classes,
		       struct vg_arena *arena, struct vg_pod *ret_pod, struct vg_err *err)
{
	json_t *value = NULL;
	int r = load(json, "Pod", &value, err);

	if (r < 0)
		return r;
	r = vg_pod_decode(value, classes, arena, ret_pod, err);
	json_decref(value);
	return r;
}

/* Takes the value of a member; null leaves the span without data. */
static int take(struct vg_in *in, struct vg_span *ret_json, struct vg_err *err)
{
	struct vg_span json;
	int r = vg_in_value(in, &json, err);

	if (r < 0)
		return r;
	*ret_json = json.data[0] == 'n' ? (struct vg_span){ 0 } : json;
	return 0;
}

/* ---- ExtenderArgs ----------------------------------------------------------------------------- */

/* At the value of NodeNames: a list, or null. */
static int take_names(struct vg_in *in, struct vg_arena *arena, struct vg_extender_args *args,
		      struct vg_err *err)
{
	const char *from;
	int r;

	if (vg_in_peek(in) == 'n') {
		args->node_names = NULL;
		args->node_name_count = 0;
		return take(in, &args->node_names_json, err);
	}
	from = in->at;
	r = vg_in_strings(in, VG_LIMIT_NODES, VG_LIMIT_NAME_BYTES, arena, &args->node_names,
			  &args->node_name_count, err);
	if (r < 0)
		return vg_err_wrap(err, r, "NodeNames");
	args->node_names_json = (struct vg_span){ from, (size_t)(in->at - from) };
	return 0;
}

static int split_args(struct vg_span body, struct vg_arena *arena, struct vg_span *pod,
		      struct vg_extender_args *args, struct vg_err *err)
{
	struct vg_in in;
	bool more = true;
	int r;

	vg_in_init(&in, body);
	if (vg_in_peek(&in) == '\0')
		return vg_fail(err, EINVAL, "the body is empty");
	r = vg_in_enter(&in, '{', err);
	for (bool first = true; r == 0; first = false) {
		struct vg_span other;
		const char *key = "";

		r = vg_in_next_member(&in, first, arena, &more, &key, err);
		if (r < 0 || !more)
			break;
		if (vg_strcaseeq(key, "Pod"))
			r = take(&in, pod, err);
		else if (vg_strcaseeq(key, "Nodes"))
			r = take(&in, &args->nodes_json, err);
		else if (vg_strcaseeq(key, "NodeNames"))
			r = take_names(&in, arena, args, err);
		else
			r = vg_in_value(&in, &other, err);
	}
	return r;
}

int vg_extender_args_decode(struct vg_span body, const struct vg_classes *classes,
			    struct vg_arena *arena, struct vg_extender_args *ret_args,
			    struct vg_err *err)
{
	struct vg_extender_args args = { 0 };
	struct vg_span pod = { 0 };
	int r;

	r = split_args(body, arena, &pod, &args, err);
	if (r < 0)
		return vg_err_wrap(err, r, "ExtenderArgs");
	if (!pod.data)
		return vg_fail(err, EINVAL, "extender args missing pod");
	r = vg_pod_json_decode(pod, classes, arena, &args.pod, err);
	if (r < 0)
		return vg_err_wrap(err, r, "ExtenderArgs");
	*ret_args = args;
	return 0;
}

bool vg_extender_args_like(struct vg_span body)
{
	struct vg_arena arena;
	struct vg_in in;
	bool found = false;
	bool more = true;

	vg_arena_init(&arena);
	vg_in_init(&in, body);
	if (vg_in_enter(&in, '{', NULL) == 0) {
		for (bool first = true; !found; first = false) {
			struct vg_span value;
			const char *key = "";

			if (vg_in_next_member(&in, first, &arena, &more, &key, NULL) < 0 || !more)
				break;
			found = vg_strcaseeq(key, "Pod");
			if (vg_in_value(&in, &value, NULL) < 0)
				break;
		}
	}
	vg_arena_release(&arena);
	return found;
}

/* ---- NodeList --------------------------------------------------------------------------------- */

static int load_node(struct vg_span json, const struct vg_classes *classes, struct vg_arena *arena,
		     struct vg_node_info *ret_node, struct vg_err *err)
{
	json_t *value = NULL;
	int r = load(json, "Node", &value, err);

	if (r < 0)
		return r;
	r = vg_node_decode(value, classes, arena, ret_node, err);
	json_decref(value);
	return r;
}

static int find_items(struct vg_in *in, struct vg_arena *arena, struct vg_span *ret_items,
		      struct vg_err *err)
{
	bool more = true;
	int r = vg_in_enter(in, '{', err);

	for (bool first = true; r == 0; first = false) {
		struct vg_span other;
		const char *key = "";

		r = vg_in_next_member(in, first, arena, &more, &key, err);
		if (r < 0 || !more)
			break;
		r = vg_strcaseeq(key, "items") ? take(in, ret_items, err)
					       : vg_in_value(in, &other, err);
	}
	return r;
}

static int split_items(struct vg_span items, struct vg_arena *arena, struct vg_span **ret_list,
		       size_t *ret_count, struct vg_err *err)
{
	struct vg_span *list = NULL;
	struct vg_span item;
	struct vg_in in;
	size_t count = 0;
	size_t room = 0;
	bool more = true;
	int r;

	vg_in_init(&in, items);
	r = vg_in_enter(&in, '[', err);
	while (r == 0) {
		r = vg_in_next_item(&in, count == 0, &more, err);
		if (r < 0 || !more)
			break;
		if (count == VG_LIMIT_NODES)
			return vg_fail(err, E2BIG, "more than %u nodes", VG_LIMIT_NODES);
		r = vg_in_value(&in, &item, err);
		if (r < 0)
			break;
		if (count == room) {
			struct vg_span *larger;

			room = room ? room * 2 : 64;
			larger = vg_arena_new_array(arena, room, sizeof(*larger));
			if (count)
				memcpy(larger, list, count * sizeof(*list));
			list = larger;
		}
		list[count++] = item;
	}
	if (r < 0)
		return r;
	*ret_list = list;
	*ret_count = count;
	return 0;
}

int vg_extender_nodes_decode(struct vg_span nodes_json, const struct vg_classes *classes,
			     struct vg_arena *arena, struct vg_node_info **ret_nodes,
			     struct vg_span **ret_json, size_t *ret_count, struct vg_err *err)
{
	struct vg_span items = { 0 };
	struct vg_span *list = NULL;
	struct vg_node_info *nodes;
	size_t count = 0;
	struct vg_in in;
	int r;

	vg_in_init(&in, nodes_json);
	r = find_items(&in, arena, &items, err);
	if (r == 0 && items.data)
		r = split_items(items, arena, &list, &count, err);
	if (r < 0)
		return vg_err_wrap(err, r, "ExtenderArgs: Nodes");
	nodes = vg_arena_new_array(arena, count, sizeof(*nodes));
	for (size_t i = 0; i < count; i++) {
		r = load_node(list[i], classes, arena, &nodes[i], err);
		if (r < 0)
			return vg_err_wrap(err, r, "ExtenderArgs: Nodes.items[%zu]", i);
	}
	*ret_nodes = nodes;
	*ret_json = list;
	*ret_count = count;
	return 0;
}

/* ---- ExtenderFilterResult --------------------------------------------------------------------- */

/*
 * Thousands of nodes have few different reasons. Each is made and escaped once; a slot is taken over by
 * the next reason of the same hash.
 */
#define REASON_SLOTS 64

struct reason {
	const struct vg_verdict *verdict;
	struct vg_span json;
};

struct reasons {
	struct reason slot[REASON_SLOTS];
	struct reason last; /* neighbours are often alike */
	struct vg_arena *arena;
};

static bool same_verdict(const struct vg_verdict *a, const struct vg_verdict *b)
{
	return a && memcmp(a, b, sizeof(*a)) == 0;
}

static struct vg_span make_reason(struct vg_arena *arena, const struct vg_verdict *verdict)
{
	struct vg_span made;
	struct vg_buf text;
	struct vg_buf json;
	struct vg_out out;

	vg_buf_init(&text, VG_LIMIT_REASON_BYTES);
	/* Each byte may become an escape of six. */
	vg_buf_init(&json, (size_t)VG_LIMIT_REASON_BYTES * 6 + 2);
	vg_verdict_text(verdict, &text);
	vg_out_init(&out, &json);
	vg_out_text(&out, text.data ? text.data : "");
	made = (struct vg_span){ vg_arena_strndup(arena, json.data, json.used), json.used };
	vg_buf_release(&text);
	vg_buf_release(&json);
	return made;
}

static struct vg_span reason_json(struct reasons *reasons, const struct vg_verdict *verdict)
{
	struct reason *slot;

	if (same_verdict(reasons->last.verdict, verdict))
		return reasons->last.json;
	slot = &reasons->slot[vg_hash((const char *)verdict, sizeof(*verdict)) % REASON_SLOTS];
	if (!same_verdict(slot->verdict, verdict))
		*slot = (struct reason){ verdict, make_reason(reasons->arena, verdict) };
	reasons->last = *slot;
	return slot->json;
}

static bool failed(const struct vg_verdict *verdict)
{
	return verdict->reason != VG_NODE_FITS && verdict->reason != VG_NODE_NOT_TRIED;
}

static bool hopeless(const struct vg_extender_result *result, size_t i)
{
	return !result->verdicts || !vg_verdict_curable(&result->verdicts[i]);
}

/* A map of node name to reason, or null when it would be empty. Returns how many are in it. */
static size_t encode_failed(struct vg_out *out, const struct vg_extender_result *result,
			    struct reasons *reasons, bool hopeless_only)
{
	size_t count = 0;

	for (size_t i = 0; i < result->name_count; i++) {
		const struct vg_verdict *verdict = result->verdicts ? &result->verdicts[i] : NULL;

		if ((verdict && !failed(verdict)) || (hopeless_only && !hopeless(result, i)))
			continue;
		if (count++ == 0)
			vg_out_open(out, '{');
		vg_out_key_text(out, result->names[i]);
		if (verdict)
			vg_out_raw(out, reason_json(reasons, verdict));
		else
			vg_out_text(out, result->reason);
	}
	if (count)
		vg_out_close(out, '}');
	else
		vg_out_null(out);
	return count;
}

static size_t count_hopeless(const struct vg_extender_result *result)
{
	size_t count = 0;

	for (size_t i = 0; i < result->name_count; i++)
		if ((!result->verdicts || failed(&result->verdicts[i])) && hopeless(result, i))
			count++;
	return count;
}

/* Both maps. Mostly they are the same, or the second is empty: then it is not made once more. */
static void encode_both(struct vg_out *out, const struct vg_extender_result *result,
			struct vg_arena *arena)
{
	struct reasons reasons = { .arena = arena };
	size_t start;
	size_t size;
	size_t count;

	vg_out_key(out, "FailedNodes");
	start = out->buf->used;
	count = encode_failed(out, result, &reasons, false);
	size = out->buf->used - start;
	vg_out_key(out, "FailedAndUnresolvableNodes");
	if (count && count == count_hopeless(result) && !vg_buf_failed(out->buf)) {
		/* The buffer may move while it grows. */
		const char *same = vg_arena_strndup(arena, out->buf->data + start, size);

		vg_out_raw(out, (struct vg_span){ same, size });
	} else {
		encode_failed(out, result, &reasons, true);
	}
}

static void encode_nodes(struct vg_out *out, const struct vg_extender_result *result)
{
	vg_out_key(out, "Nodes");
	if (result->node_json.data) {
		vg_out_raw(out, VG_SPAN("{\"metadata\":{},\"items\":["));
		out->comma = false;
		vg_out_raw(out, result->node_json);
		vg_buf_adds(out->buf, "]}");
	} else if (result->nodes_json.data) {
		vg_out_raw(out, result->nodes_json);
	} else {
		vg_out_null(out);
	}
}

static void encode_node_names(struct vg_out *out, const struct vg_extender_result *result)
{
	vg_out_key(out, "NodeNames");
	if (result->node_name) {
		vg_out_open(out, '[');
		vg_out_text(out, result->node_name);
		vg_out_close(out, ']');
	} else if (result->name_fitting) {
		vg_out_open(out, '[');
		for (size_t i = 0; i < result->name_count; i++)
			if (result->verdicts[i].reason == VG_NODE_FITS)
				vg_out_text(out, result->names[i]);
		vg_out_close(out, ']');
	} else if (result->node_names_json.data) {
		vg_out_raw(out, result->node_names_json);
	} else {
		vg_out_null(out);
	}
}

void vg_extender_result_encode(const struct vg_extender_result *result, struct vg_arena *arena,
			       struct vg_buf *buf)
{
	struct vg_out out;

	vg_out_init(&out, buf);
	vg_out_open(&out, '{');
	encode_nodes(&out, result);
	encode_node_names(&out, result);
	encode_both(&out, result, arena);
	vg_out_member_text(&out, "Error", result->error ? result->error : "");
	vg_out_close(&out, '}');
}

/* ---- HostPriorityList ------------------------------------------------------------------------- */

void vg_host_priorities_encode(const char *const *names, const int *scores, size_t count,
			       struct vg_buf *buf)
{
	struct vg_out out;

	vg_out_init(&out, buf);
	vg_out_open(&out, '[');
	for (size_t i = 0; i < count; i++) {
		vg_out_open(&out, '{');
		vg_out_member_text(&out, "Host", names[i]);
		vg_out_member_i64(&out, "Score", scores[i]);
		vg_out_close(&out, '}');
	}
	vg_out_close(&out, ']');
}

/* ---- ExtenderBindingArgs ---------------------------------------------------------------------- */

static int decode_binding(struct vg_span body, struct vg_arena *arena, struct vg_binding_args *args,
			  struct vg_err *err)
{
	const struct {
		const char *key;
		const char **text;
		size_t max;
	} members[] = {
		{ "PodName", &args->name, VG_LIMIT_NAME_BYTES },
		{ "PodNamespace", &args->namespace, VG_LIMIT_NAME_BYTES },
		{ "PodUID", &args->uid, VG_LIMIT_NAME_BYTES },
		{ "Node", &args->node, VG_LIMIT_NAME_BYTES },
	};
	const size_t count = sizeof(members) / sizeof(members[0]);
	struct vg_in in;
	bool more = true;
	int r;

	vg_in_init(&in, body);
	if (vg_in_peek(&in) == '\0')
		return vg_fail(err, EINVAL, "the body is empty");
	r = vg_in_enter(&in, '{', err);
	for (bool first = true; r == 0; first = false) {
		struct vg_span other;
		const char *key = "";
		size_t i = 0;

		r = vg_in_next_member(&in, first, arena, &more, &key, err);
		if (r < 0 || !more)
			break;
		while (i < count && !vg_strcaseeq(key, members[i].key))
			i++;
		if (i == count || vg_in_peek(&in) == 'n')
			r = vg_in_value(&in, &other, err);
		else
			r = vg_in_string(&in, arena, members[i].text, err);
		if (r < 0 && i < count)
			r = vg_err_wrap(err, r, "%s", members[i].key);
	}
	for (size_t i = 0; r == 0 && i < count; i++) {
		const char *text = *members[i].text;

		if (!text || !text[0])
			r = vg_fail(err, EINVAL, "%s is missing", members[i].key);
		else if (strlen(text) > members[i].max)
			r = vg_fail(err, E2BIG, "%s has more than %zu bytes", members[i].key,
				    members[i].max);
	}
	return r;
}

int vg_binding_args_decode(struct vg_span body, struct vg_arena *arena,
			   struct vg_binding_args *ret_args, struct vg_err *err)
{
	struct vg_binding_args args = { 0 };
	int r = decode_binding(body, arena, &args, err);

	if (r < 0)
		return vg_err_wrap(err, r, "ExtenderBindingArgs");
	*ret_args = args;
	return 0;
}

void vg_binding_result_encode(const char *error, struct vg_buf *buf)
{
	struct vg_out out;

	vg_out_init(&out, buf);
	vg_out_open(&out, '{');
	vg_out_member_text(&out, "Error", error);
	vg_out_close(&out, '}');
}
