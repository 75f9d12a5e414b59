/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes as a saved cluster; then every pod that was found is bound, twice: the second time must be told
 * apart as a repetition.
 */
#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/arena.h"
#include "snapshot/snapshot.h"

#define PODS_MAX 16

struct seen {
	struct vg_arena arena;
	struct vg_pod *pods[PODS_MAX];
	size_t pod_count;
	bool keeps; /* while the file is read */
	int open;   /* lists that were begun and not ended */
};

static void on_begin(void *ctx, enum vg_kind kind)
{
	struct seen *seen = ctx;

	(void)kind;
	assert(seen->open++ == 0);
}

static void on_end(void *ctx, enum vg_kind kind)
{
	struct seen *seen = ctx;

	(void)kind;
	assert(--seen->open == 0);
}

static void on_node(void *ctx, const struct vg_node_info *node)
{
	(void)ctx;
	assert(node->name && (node->cards || !node->card_count));
	for (size_t i = 0; i < node->card_count; i++)
		assert(node->cards[i].uuid[0]);
}

static void on_pod(void *ctx, const struct vg_pod *pod)
{
	struct seen *seen = ctx;

	assert(pod->namespace && pod->name && pod->uid && pod->node_name);
	if (seen->keeps && seen->pod_count < PODS_MAX)
		seen->pods[seen->pod_count++] = vg_pod_copy(pod, &seen->arena);
}

static void on_quota(void *ctx, const struct vg_quota_info *quota)
{
	(void)ctx;
	assert(quota->namespace[0] && quota->name[0]);
	for (size_t i = 0; i < VG_CLASSES_MAX; i++)
		assert(quota->hard[i].mem_mib >= 0 && quota->hard[i].cores >= 0);
}

static void on_malformed(void *ctx, enum vg_kind kind, const char *what, const char *why)
{
	(void)ctx;
	assert(kind < VG_KIND_COUNT && strncmp(why, "", 1) != 0);
	assert(strstr(what, "fuzz"));
}

static void on_delete_pod(void *ctx, const char *namespace, const char *name, const char *uid)
{
	(void)ctx;
	assert(namespace && name && uid);
}

static void on_done(void *ctx, int code, const char *message)
{
	assert((code == 0) == (message[0] == '\0'));
	*(int *)ctx = code;
}

static int bind_pod(struct vg_snapshot *snapshot, const struct vg_pod *pod, const char *node)
{
	static const struct vg_key_value annotations[] = {
		{ "hami.io/bind-phase", "allocating" },
		{ "hami.io/vgpu-devices-to-allocate", "GPU-1,NVIDIA,1,1:;" },
		{ "hami.io/vgpu-devices-allocated", "GPU-1,NVIDIA,1,1:;" },
	};
	const struct vg_bind_call call = {
		.namespace = pod->namespace,
		.name = pod->name,
		.uid = pod->uid,
		.node = node,
		.annotations = annotations,
		.annotation_count = 3,
	};
	struct vg_binder binder = vg_snapshot_binder(snapshot);
	int code = 1;

	binder.bind(binder.ctx, &call, on_done, &code);
	assert(code <= 0);
	return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct vg_sink_ops ops = {
		.list_begin = on_begin,
		.list_end = on_end,
		.put_node = on_node,
		.put_pod = on_pod,
		.put_quota = on_quota,
		.delete_pod = on_delete_pod,
		.malformed = on_malformed,
	};
	struct seen seen = { .keeps = true };
	struct vg_sink sink = { .ops = &ops, .ctx = &seen };
	struct vg_snapshot *snapshot = NULL;
	struct vg_classes classes;
	struct vg_err err = { 0 };

	vg_classes_init(&classes);
	vg_arena_init(&seen.arena);
	if (vg_snapshot_parse("fuzz", (const char *)data, size, &classes, sink, &snapshot, &err) <
	    0) {
		assert(strncmp(err.msg, "fuzz:", 5) == 0);
		assert(!seen.pod_count);
	}
	seen.keeps = false;
	for (size_t i = 0; i < seen.pod_count; i++) {
		vg_snapshot_learn(snapshot, seen.pods[i]);
		if (bind_pod(snapshot, seen.pods[i], "a") == 0) {
			assert(bind_pod(snapshot, seen.pods[i], "a") == 0);
			assert(bind_pod(snapshot, seen.pods[i], "b") == -EEXIST);
		}
	}
	vg_snapshot_free(snapshot);
	vg_arena_release(&seen.arena);
	vg_classes_release(&classes);
	return 0;
}
