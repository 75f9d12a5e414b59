/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bind: from a reservation to the one write that makes it true. kubelet's Allocate names no pod, so at
 * most one pod per node may be between bind and allocate; the others stand in the node's queue, which
 * holds no thread and no lock: each has a ticket, and is called when its turn comes.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cluster/cluster_internal.h"

/* Whoever was told that it is his turn begins at once; if he never does, the next one is let in. */
#define GRANT_NS (5LL * 1000000000LL)

/* ---- turns ------------------------------------------------------------------------------------ */

bool vg_turn_taken(const struct cluster_node *node, int64_t now_ns,
		   const struct cluster_pod **ret_holder)
{
	for (const struct cluster_pod *pod = node->pods; pod; pod = pod->next) {
		/* Perhaps it is bound: then its Allocate is to come, and the watch will tell. */
		bool perhaps = !pod->unknown || now_ns < pod->since_ns + VG_BIND_TURN_NS;

		if ((pod->state == VG_STATE_BINDING && perhaps) ||
		    (pod->state == VG_STATE_BOUND && pod->allocating &&
		     now_ns < pod->deadline_ns)) {
			if (ret_holder)
				*ret_holder = pod;
			return true;
		}
	}
	return false;
}

static void ticket_unlink(struct ticket *ticket)
{
	struct cluster_node *node = ticket->node;
	struct ticket **link = &node->waiting;

	while (*link != ticket)
		link = &(*link)->next;
	*link = ticket->next;
	if (node->waiting_end == &ticket->next)
		node->waiting_end = link;
	ticket->pod->ticket = NULL;
	ticket->pod = NULL;
}

/* Takes the message over. */
static void ticket_due(struct vg_cluster *cluster, struct ticket *ticket, int code, char *message)
{
	struct ticket **end = &cluster->due;

	ticket_unlink(ticket);
	ticket->code = code;
	ticket->message = message;
	ticket->next = NULL;
	while (*end)
		end = &(*end)->next;
	*end = ticket;
}

void vg_turn_cancel(struct vg_cluster *cluster, struct ticket *ticket, int code, char *message)
{
	ticket_due(cluster, ticket, code, message);
}

void vg_turn_next(struct vg_cluster *cluster, struct cluster_node *node, int64_t now_ns)
{
	struct ticket *ticket = node->waiting;

	if (!ticket || node->granted || vg_turn_taken(node, now_ns, NULL))
		return;
	node->granted = ticket->pod;
	node->granted_until_ns = now_ns ? now_ns + GRANT_NS : 0;
	ticket->pod->granted_at = node;
	ticket_due(cluster, ticket, 0, NULL);
}

void vg_turn_expire(struct vg_cluster *cluster, struct cluster_node *node, int64_t now_ns)
{
	struct ticket *next;

	if (node->granted && node->granted_until_ns == 0) {
		node->granted_until_ns = now_ns + GRANT_NS;
	} else if (node->granted && node->granted_until_ns <= now_ns) {
		node->granted->granted_at = NULL;
		node->granted = NULL;
	}
	for (struct ticket *ticket = node->waiting; ticket; ticket = next) {
		const struct cluster_pod *holder = NULL;

		next = ticket->next;
		if (ticket->deadline_ns > now_ns)
			continue;
		vg_turn_taken(node, now_ns, &holder);
		ticket_due(cluster, ticket, -ETIMEDOUT,
			   vg_printf("node %s is still allocating cards to pod %s: waited %lld s, "
				     "kube-scheduler will try again",
				     node->name, holder ? holder->key : "(another one)",
				     (long long)(VG_BIND_WAIT_NS / 1000000000LL)));
	}
	vg_turn_next(cluster, node, now_ns);
}

/* True when the pod has to wait; it is then in the queue. */
static bool wait_for_turn(struct cluster_pod *pod, struct cluster_node *node,
			  const struct vg_bind_args *args)
{
	struct ticket *ticket;

	if (!vg_turn_taken(node, args->now_ns, NULL) && !node->waiting && !node->granted)
		return false;
	ticket = vg_new(sizeof(*ticket));
	*ticket = (struct ticket){
		.pod = pod,
		.node = node,
		.turn = args->turn,
		.turn_ctx = args->turn_ctx,
		.deadline_ns = args->now_ns + VG_BIND_WAIT_NS,
	};
	pod->ticket = ticket;
	*node->waiting_end = ticket;
	node->waiting_end = &ticket->next;
	return true;
}

/* ---- bind ------------------------------------------------------------------------------------- */

/* NULL: no such pod, -ENOENT in `err`. */
static struct cluster_pod *find_pod(struct vg_cluster *cluster, const struct vg_bind_args *args,
				    struct vg_err *err)
{
	struct cluster_pod *pod = vg_map_get(&cluster->pods, args->uid);

	if (!pod) {
		vg_fail(err, ENOENT,
			"pod %s/%s with UID %s is not known here: it was deleted or replaced, or "
			"the "
			"watch has not shown it yet; kube-scheduler will try again",
			args->namespace, args->name, args->uid);
		return NULL;
	}
	/* The UID alone would let a wrong name end a stranger's reservation. */
	if (!vg_streq(pod->namespace, args->namespace) || !vg_streq(pod->name, args->name)) {
		vg_fail(err, ENOENT, "UID %s belongs to pod %s, not to %s/%s", args->uid, pod->key,
			args->namespace, args->name);
		return NULL;
	}
	return pod;
}

/* The reservation was lost (a restart, a lapse) or is for another node: decides on this node alone. */
static int decide_again(struct vg_cluster *cluster, struct cluster_pod *pod,
			struct cluster_node *node, const struct vg_bind_args *args,
			struct vg_err *err)
{
	const struct vg_models models = { cluster->models, cluster->model_count };
	const struct vg_node *candidate = &node->view;
	struct vg_decide_args decide = {
		.models = &models,
		.request = pod->request,
		.candidates = &candidate,
		.candidate_count = 1,
	};
	struct vg_decision decision;
	struct vg_quota room;

	vg_ledger_drop(cluster, pod);
	pod->state = VG_STATE_PENDING;
	decide.quota = vg_quota_for(cluster, pod->namespace, pod, &room);
	vg_arena_clear(&cluster->scratch);
	vg_decide(&decide, &cluster->scratch, &decision);
	if (!decision.found) {
		struct vg_buf reasons;
		int r;

		vg_buf_init(&reasons, VG_ERR_MSG_MAX);
		vg_verdict_text(&decision.verdicts[0], &reasons);
		r = vg_fail(err, ENOSPC,
			    "pod %s has no reservation on node %s any more, and no longer fits "
			    "there: %s",
			    pod->key, node->name, reasons.data ? reasons.data : "");
		vg_buf_release(&reasons);
		return r;
	}
	cluster->stats.decided_at_bind++;
	vg_ledger_hold(cluster, pod, node, &decision.allocation, pod->request->kinds,
		       pod->request->container_count, false);
	pod->decided_unix_s = args->unix_s;
	return 0;
}

static void add_annotation(struct vg_bind_call *call, struct vg_key_value *list,
			   enum vg_annotation annotation, const char *value)
{
	list[call->annotation_count++] = (struct vg_key_value){
		.key = vg_annotation_key[annotation],
		.value = value,
	};
}

static bool holds_class(const struct vg_allocation *allocation, uint8_t class_index)
{
	for (size_t i = 0; i < allocation->grant_count; i++)
		if (allocation->grants[i].class_index == class_index)
			return true;
	return false;
}

static void fill_call(struct vg_cluster *cluster, const struct cluster_pod *pod,
		      const struct vg_bind_args *args, struct vg_arena *arena,
		      struct vg_bind_call *ret_call)
{
	const struct vg_classes *classes = cluster->options.classes;
	struct vg_key_value *list =
		vg_arena_new_array(arena, 4 + 2 * classes->count, sizeof(*list));
	struct vg_bind_call call = {
		.namespace = vg_arena_strdup(arena, pod->namespace),
		.name = vg_arena_strdup(arena, pod->name),
		.uid = vg_arena_strdup(arena, pod->uid),
		.node = vg_arena_strdup(arena, args->node),
		.annotations = list,
	};

	if (pod->allocation.grant_count) {
		add_annotation(&call, list, VG_ANNO_POD_NODE, call.node);
		add_annotation(&call, list, VG_ANNO_POD_TIME,
			       vg_arena_printf(arena, "%lld", (long long)pod->decided_unix_s));
		add_annotation(&call, list, VG_ANNO_POD_BIND_PHASE, "allocating");
		add_annotation(&call, list, VG_ANNO_POD_BIND_TIME,
			       vg_arena_printf(arena, "%lld", (long long)args->unix_s));
	}
	for (uint8_t i = 0; i < classes->count; i++) {
		const char *text;

		if (!holds_class(&pod->allocation, i))
			continue;
		text = vg_allocation_encode(&pod->allocation, &classes->item[i], i, arena);
		add_annotation(&call, list, classes->item[i].to_allocate, text);
		add_annotation(&call, list, classes->item[i].allocated, text);
	}
	*ret_call = call;
}

static int bind_begin(struct vg_cluster *cluster, struct cluster_pod *pod,
		      const struct vg_bind_args *args, bool my_turn, struct vg_arena *arena,
		      enum vg_bind_outcome *ret_outcome, struct vg_bind_call *ret_call,
		      struct vg_err *err)
{
	struct cluster_node *node = vg_map_get(&cluster->nodes, args->node);
	bool reserved_here = pod->state == VG_STATE_RESERVED && pod->node == node;
	bool wants;

	if (pod->state == VG_STATE_BINDING && pod->unknown && pod->node && pod->node != node)
		return vg_fail(
			err, EBUSY,
			"it is not known yet whether pod %s was bound to node %s: the API server did "
			"not answer; kube-scheduler will try again",
			pod->key, pod->node->name);
	/* The same again: the API server takes it once, and says so. */
	if (pod->state == VG_STATE_BINDING && pod->unknown)
		reserved_here = my_turn = true;
	else if (pod->state == VG_STATE_BINDING || pod->ticket)
		return vg_fail(err, EBUSY, "pod %s is being bound already", pod->key);
	if (pod->state == VG_STATE_BOUND) {
		if (pod->node && pod->node != node)
			return vg_fail(err, EEXIST, "pod %s is bound to node %s already", pod->key,
				       pod->node->name);
		*ret_outcome = VG_BIND_DONE;
		return 0;
	}
	if (!reserved_here && !pod->request)
		return vg_fail(err, EINVAL, "%s",
			       pod->request_error
				       ? pod->request_error
				       : "the pod was not seen yet, and its reservation is "
					 "for another node; kube-scheduler will try again");
	wants = reserved_here || pod->request->want_count > 0;
	if (!node && wants)
		return vg_fail(err, ENOENT, "node %s is not known here", args->node);
	if (wants && cluster->options.bind_queue && !my_turn && wait_for_turn(pod, node, args)) {
		*ret_outcome = VG_BIND_WAITING;
		return 0;
	}
	if (wants && !reserved_here) {
		struct cluster_node *before = pod->node;
		int r;

		if (before && before != node)
			vg_nudge_freed(cluster, before);
		r = decide_again(cluster, pod, node, args, err);

		if (before && before != node)
			vg_ledger_node_settle(cluster, before);
		if (r < 0)
			return r;
	}
	pod->state = VG_STATE_BINDING;
	pod->unknown = false;
	pod->since_ns = args->now_ns;
	pod->deadline_ns = 0;
	fill_call(cluster, pod, args, arena, ret_call);
	*ret_outcome = VG_BIND_POST;
	return 0;
}

int vg_cluster_bind_begin(struct vg_cluster *cluster, const struct vg_bind_args *args,
			  struct vg_arena *arena, enum vg_bind_outcome *ret_outcome,
			  struct vg_bind_call *ret_call, struct vg_err *err)
{
	struct cluster_pod *pod;
	int r = -ENOENT;

	vg_cluster_lock(cluster);
	pod = find_pod(cluster, args, err);
	if (pod) {
		struct cluster_node *granted_at = pod->granted_at;
		bool my_turn = granted_at && vg_streq(granted_at->name, args->node);

		if (granted_at) {
			granted_at->granted = NULL;
			pod->granted_at = NULL;
		}
		r = bind_begin(cluster, pod, args, my_turn, arena, ret_outcome, ret_call, err);
		/* Whoever did not use his turn leaves it to the next one. */
		if (granted_at)
			vg_turn_next(cluster, granted_at, args->now_ns);
	}
	vg_cluster_unlock(cluster);
	return r;
}

void vg_cluster_bind_end(struct vg_cluster *cluster, const char *uid, int code, int64_t now_ns)
{
	struct cluster_pod *pod;

	vg_cluster_lock(cluster);
	pod = vg_map_get(&cluster->pods, uid);
	/* The watch may have been faster: then the pod is bound, or gone, already. */
	if (pod && pod->state == VG_STATE_BINDING) {
		pod->since_ns = now_ns;
		if (code == 0) {
			pod->state = VG_STATE_BOUND;
			pod->allocating = pod->node != NULL;
			pod->deadline_ns = now_ns + VG_BIND_TURN_NS;
		} else if (code == -ETIMEDOUT || code == -ECANCELED) {
			/* Its cards stay taken, and for as long as its Allocate may come, nobody else is
			 * let in. */
			pod->unknown = true;
			pod->deadline_ns = now_ns + cluster->options.reservation_ns;
		} else {
			vg_ledger_unreserve(cluster, pod);
		}
	}
	vg_cluster_unlock(cluster);
}
