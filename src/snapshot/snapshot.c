/* SPDX-License-Identifier: Apache-2.0 */
#include "snapshot/snapshot.h"

#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "device/annotation.h"
#include "snapshot/saved_internal.h"

struct snapshot_pod {
	char *key; /* "namespace/name" */
	struct vg_pod *pod;
	/* Where the pod's texts live: that of all loaded pods, or its own when it was learned. */
	struct vg_arena *texts;
	struct vg_arena own;
	bool learned;
	struct snapshot_pod *next; /* among the learned ones, oldest first */
};

struct vg_snapshot {
	const struct vg_classes *classes;
	struct vg_sink sink;
	pthread_mutex_t lock; /* guards everything below, and the order of calls into the sink */
	struct vg_map pods;   /* key -> struct snapshot_pod */
	struct vg_arena loaded;
	struct snapshot_pod *learned;
	struct snapshot_pod **learned_end;
	size_t learned_count;
	uint64_t version; /* of the youngest object */
};

/* ---- pods ----------------------------------------------------------------------------------------- */

static struct snapshot_pod *find_pod(const struct vg_snapshot *snapshot, const char *namespace,
				     const char *name)
{
	vg_autofree char *key = vg_printf("%s/%s", namespace, name);

	return vg_map_get(&snapshot->pods, key);
}

static void pod_free(struct snapshot_pod *entry)
{
	if (!entry)
		return;
	vg_arena_release(&entry->own);
	free(entry->key);
	free(entry);
}

static struct snapshot_pod *pod_new(const struct vg_pod *pod)
{
	struct snapshot_pod *entry = vg_new(sizeof(*entry));

	entry->key = vg_printf("%s/%s", pod->namespace, pod->name);
	vg_arena_init(&entry->own);
	return entry;
}

static void unlink_learned(struct vg_snapshot *snapshot, struct snapshot_pod *entry)
{
	struct snapshot_pod **link = &snapshot->learned;

	while (*link != entry)
		link = &(*link)->next;
	*link = entry->next;
	if (!*link)
		snapshot->learned_end = link;
	snapshot->learned_count--;
}

/* Takes a pod out and tells the sink. */
static void forget_pod(struct vg_snapshot *snapshot, struct snapshot_pod *entry)
{
	vg_map_del(&snapshot->pods, entry->key);
	if (entry->learned)
		unlink_learned(snapshot, entry);
	snapshot->sink.ops->delete_pod(snapshot->sink.ctx, entry->pod->namespace, entry->pod->name,
				       entry->pod->uid);
	pod_free(entry);
}

static void feed_pod(struct vg_snapshot *snapshot, struct snapshot_pod *entry)
{
	entry->pod->resource_version = ++snapshot->version;
	snapshot->sink.ops->put_pod(snapshot->sink.ctx, entry->pod);
}

/* ---- loading -------------------------------------------------------------------------------------- */

/* "namespace/name (file:line)" */
static void tell_malformed(struct vg_snapshot *snapshot, const struct saved_object *object,
			   const json_t *json, const char *why)
{
	const json_t *metadata = json_object_get(json, "metadata");
	const char *namespace = json_string_value(json_object_get(metadata, "namespace"));
	const char *name = json_string_value(json_object_get(metadata, "name"));
	vg_autofree char *what = NULL;

	if (name)
		what = vg_printf("%s%s%s (%s)", namespace ? namespace : "", namespace ? "/" : "",
				 name, object->place);
	snapshot->sink.ops->malformed(snapshot->sink.ctx, object->kind, what ? what : object->place,
				      why);
}

static void load_node(struct vg_snapshot *snapshot, const struct saved_object *object,
		      const json_t *json, struct vg_arena *scratch)
{
	struct vg_node_info node = { 0 };
	struct vg_err err = { 0 };

	vg_arena_clear(scratch);
	if (vg_node_decode(json, snapshot->classes, scratch, &node, &err) < 0) {
		tell_malformed(snapshot, object, json, err.msg);
		return;
	}
	if (node.resource_version > snapshot->version)
		snapshot->version = node.resource_version;
	snapshot->sink.ops->put_node(snapshot->sink.ctx, &node);
}

static void load_pod(struct vg_snapshot *snapshot, const struct saved_object *object,
		     const json_t *json)
{
	struct vg_pod *pod = vg_arena_new(&snapshot->loaded, sizeof(*pod));
	struct snapshot_pod *entry;
	struct vg_err err = { 0 };

	if (vg_pod_decode(json, snapshot->classes, &snapshot->loaded, pod, &err) < 0) {
		tell_malformed(snapshot, object, json, err.msg);
		return;
	}
	entry = pod_new(pod);
	entry->pod = pod;
	entry->texts = &snapshot->loaded;
	if (pod->resource_version > snapshot->version)
		snapshot->version = pod->resource_version;
	/* The key goes with the entry: a pod that the file has twice is taken out first. */
	pod_free(vg_map_del(&snapshot->pods, entry->key));
	vg_map_put(&snapshot->pods, entry->key, entry);
	snapshot->sink.ops->put_pod(snapshot->sink.ctx, pod);
}

static void load_quota(struct vg_snapshot *snapshot, const struct saved_object *object,
		       const json_t *json, struct vg_arena *scratch)
{
	struct vg_quota_info quota = { 0 };
	struct vg_err err = { 0 };

	vg_arena_clear(scratch);
	if (vg_quota_decode(json, snapshot->classes, scratch, &quota, &err) < 0) {
		tell_malformed(snapshot, object, json, err.msg);
		return;
	}
	if (quota.resource_version > snapshot->version)
		snapshot->version = quota.resource_version;
	snapshot->sink.ops->put_quota(snapshot->sink.ctx, &quota);
}

static void load_kind(struct vg_snapshot *snapshot, const struct saved *saved, enum vg_kind kind)
{
	vg_cleanup(vg_arena_release) struct vg_arena scratch;

	vg_arena_init(&scratch);
	snapshot->sink.ops->list_begin(snapshot->sink.ctx, kind);
	for (size_t i = 0; i < saved->object_count; i++) {
		const struct saved_object *object = &saved->objects[i];
		json_t *json;

		if (object->kind != kind)
			continue;
		if (object->problem) {
			tell_malformed(snapshot, object, NULL, object->problem);
			continue;
		}
		json = saved_json(object);
		if (kind == VG_KIND_NODE)
			load_node(snapshot, object, json, &scratch);
		else if (kind == VG_KIND_QUOTA)
			load_quota(snapshot, object, json, &scratch);
		else
			load_pod(snapshot, object, json);
		json_decref(json);
	}
	snapshot->sink.ops->list_end(snapshot->sink.ctx, kind);
}

int vg_snapshot_parse(const char *name, const char *text, size_t size,
		      const struct vg_classes *classes, struct vg_sink sink,
		      struct vg_snapshot **ret_snapshot, struct vg_err *err)
{
	vg_cleanup(saved_release) struct saved saved = { 0 };
	struct vg_snapshot *snapshot;
	int r;

	r = saved_read(name, text, size, &saved, err);
	if (r < 0)
		return r;
	snapshot = vg_new(sizeof(*snapshot));
	snapshot->classes = classes;
	snapshot->sink = sink;
	snapshot->learned_end = &snapshot->learned;
	pthread_mutex_init(&snapshot->lock, NULL);
	vg_map_init(&snapshot->pods);
	vg_arena_init(&snapshot->loaded);
	load_kind(snapshot, &saved, VG_KIND_NODE);
	load_kind(snapshot, &saved, VG_KIND_POD);
	load_kind(snapshot, &saved, VG_KIND_QUOTA);
	vg_debug("snapshot", "loaded", VG_S("file", name),
		 VG_I("nodes", saved.counts[VG_KIND_NODE]), VG_I("pods", saved.counts[VG_KIND_POD]),
		 VG_I("quotas", saved.counts[VG_KIND_QUOTA]),
		 VG_I("passed_over", saved.passed_over));
	*ret_snapshot = snapshot;
	return 0;
}

int vg_snapshot_load(const char *path, const struct vg_classes *classes, struct vg_sink sink,
		     struct vg_snapshot **ret_snapshot, struct vg_err *err)
{
	vg_autofree char *text = NULL;
	size_t size;
	int r;

	r = vg_read_file(path, VG_LIMIT_SNAPSHOT_BYTES, &text, &size, err);
	if (r < 0)
		return r;
	r = vg_snapshot_parse(path, text, size, classes, sink, ret_snapshot, err);
	/* The tree of a large file took many times what is kept of it: 395 MiB resident after 5,000 nodes
	 * and 20,000 pods without this, 21 MiB with it. */
	malloc_trim(0);
	return r;
}

void vg_snapshot_free(struct vg_snapshot *snapshot)
{
	struct snapshot_pod *entry;
	size_t cursor = 0;

	if (!snapshot)
		return;
	while ((entry = vg_map_next(&snapshot->pods, &cursor)))
		pod_free(entry);
	vg_map_release(&snapshot->pods);
	vg_arena_release(&snapshot->loaded);
	pthread_mutex_destroy(&snapshot->lock);
	free(snapshot);
}

/* ---- learning ------------------------------------------------------------------------------------- */

/* Makes room for one more learned pod; false when all of them are bound. */
static bool make_room(struct vg_snapshot *snapshot)
{
	struct snapshot_pod *entry = snapshot->learned;

	if (snapshot->learned_count < VG_LIMIT_SNAPSHOT_LEARNED)
		return true;
	while (entry && entry->pod->node_name[0])
		entry = entry->next;
	if (!entry)
		return false;
	forget_pod(snapshot, entry);
	return true;
}

static void learn(struct vg_snapshot *snapshot, const struct vg_pod *pod)
{
	struct snapshot_pod *entry = find_pod(snapshot, pod->namespace, pod->name);

	if (entry && vg_streq(entry->pod->uid, pod->uid))
		return;
	if (entry)
		forget_pod(snapshot, entry);
	if (!make_room(snapshot)) {
		vg_debug("snapshot", "a pod is not kept: all learned ones are bound",
			 VG_S("pod", pod->name), VG_I("limit", VG_LIMIT_SNAPSHOT_LEARNED));
		return;
	}
	entry = pod_new(pod);
	entry->texts = &entry->own;
	entry->pod = vg_pod_copy(pod, entry->texts);
	entry->learned = true;
	*snapshot->learned_end = entry;
	snapshot->learned_end = &entry->next;
	snapshot->learned_count++;
	vg_map_put(&snapshot->pods, entry->key, entry);
	feed_pod(snapshot, entry);
}

void vg_snapshot_learn(struct vg_snapshot *snapshot, const struct vg_pod *pod)
{
	pthread_mutex_lock(&snapshot->lock);
	learn(snapshot, pod);
	pthread_mutex_unlock(&snapshot->lock);
}

/* ---- binding -------------------------------------------------------------------------------------- */

static const char *called_annotation(const struct vg_bind_call *call, enum vg_annotation which)
{
	for (size_t i = 0; i < call->annotation_count; i++)
		if (vg_streq(call->annotations[i].key, vg_annotation_key[which]))
			return call->annotations[i].value;
	return NULL;
}

static bool same_allocation(const struct vg_snapshot *snapshot, const struct vg_pod *pod,
			    const struct vg_bind_call *call)
{
	for (size_t i = 0; i < snapshot->classes->count; i++) {
		enum vg_annotation which = snapshot->classes->item[i].allocated;

		if (!vg_streq(pod->annotations.value[which], called_annotation(call, which)))
			return false;
	}
	return true;
}

static void write_binding(struct snapshot_pod *entry, const struct vg_bind_call *call)
{
	struct vg_pod *pod = entry->pod;

	for (size_t i = 0; i < call->annotation_count; i++) {
		enum vg_annotation which = vg_annotation_find(call->annotations[i].key);

		if (which != VG_ANNO_COUNT)
			pod->annotations.value[which] =
				vg_arena_strdup(entry->texts, call->annotations[i].value);
	}
	pod->node_name = vg_arena_strdup(entry->texts, call->node);
}

/* "a,b,c,d:;;e,f,g,h:;" becomes ";;;": every container has been handed its devices. */
static const char *nothing_left(struct vg_arena *arena, const char *list)
{
	size_t containers = 0;
	char *text;

	for (; *list; list++)
		containers += *list == ';';
	text = vg_arena_new(arena, containers + 1);
	memset(text, ';', containers);
	return text;
}

/* What the node agent and kubelet do once a pod is bound. */
static void play_agent(const struct vg_snapshot *snapshot, struct snapshot_pod *entry)
{
	struct vg_pod *pod = entry->pod;

	for (size_t i = 0; i < snapshot->classes->count; i++) {
		const char **left = &pod->annotations.value[snapshot->classes->item[i].to_allocate];

		if (*left)
			*left = nothing_left(entry->texts, *left);
	}
	if (pod->annotations.value[VG_ANNO_POD_BIND_PHASE])
		pod->annotations.value[VG_ANNO_POD_BIND_PHASE] = "success";
	pod->phase = VG_POD_RUNNING;
}

static int bind_pod(struct vg_snapshot *snapshot, const struct vg_bind_call *call,
		    struct vg_err *err)
{
	struct snapshot_pod *entry = find_pod(snapshot, call->namespace, call->name);
	struct vg_pod *pod;

	if (!entry)
		return vg_fail(err, ENOENT, "pods \"%s\" not found in namespace %s", call->name,
			       call->namespace);
	pod = entry->pod;
	if (call->uid[0] && !vg_streq(pod->uid, call->uid))
		return vg_fail(err, ENOENT, "pod %s has UID %s, not %s", entry->key, pod->uid,
			       call->uid);
	if (pod->node_name[0] && vg_streq(pod->node_name, call->node) &&
	    same_allocation(snapshot, pod, call))
		return 0;
	if (pod->node_name[0])
		return vg_fail(err, EEXIST, "pod %s is already assigned to node \"%s\"%s",
			       entry->key, pod->node_name,
			       vg_streq(pod->node_name, call->node) ? ", with other devices" : "");
	if (pod->terminating)
		return vg_fail(err, EBUSY, "pod %s is being deleted, cannot be assigned to a node",
			       entry->key);
	write_binding(entry, call);
	feed_pod(snapshot, entry);
	play_agent(snapshot, entry);
	feed_pod(snapshot, entry);
	return 0;
}

static void bind_call(void *ctx, const struct vg_bind_call *call, vg_bind_done done, void *done_ctx)
{
	struct vg_snapshot *snapshot = ctx;
	struct vg_err err = { 0 };
	int r;

	pthread_mutex_lock(&snapshot->lock);
	r = bind_pod(snapshot, call, &err);
	pthread_mutex_unlock(&snapshot->lock);
	done(done_ctx, r, err.msg);
}

struct vg_binder vg_snapshot_binder(struct vg_snapshot *snapshot)
{
	return (struct vg_binder){ .bind = bind_call, .ctx = snapshot };
}
