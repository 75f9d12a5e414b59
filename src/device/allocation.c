/* SPDX-License-Identifier: Apache-2.0 */
#include "device/allocation.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "base/num.h"
#include "base/str.h"
#include "device/pod.h"

/* ---- encode ---------------------------------------------------------------------------------- */

/* "," + word + "," + mem + "," + cores + ":" without the word. */
#define GRANT_ROOM sizeof(",,-2147483648,-2147483648:")

char *vg_allocation_encode(const struct vg_allocation *allocation, const struct vg_class *class,
			   uint8_t class_index, struct vg_arena *arena)
{
	size_t room = allocation->container_count + 1;
	size_t used = 0;
	size_t grant = 0;
	char *text;

	for (size_t i = 0; i < allocation->grant_count; i++)
		if (allocation->grants[i].class_index == class_index)
			room += strlen(allocation->grants[i].uuid) + strlen(class->word) +
				GRANT_ROOM;
	text = vg_arena_new(arena, room);
	for (size_t container = 0; container < allocation->container_count; container++) {
		for (; grant < allocation->grant_count &&
		       allocation->grants[grant].container == container;
		     grant++) {
			const struct vg_grant *g = &allocation->grants[grant];

			if (g->class_index != class_index)
				continue;
			used += (size_t)snprintf(text + used, room - used, "%s,%s,%d,%d:", g->uuid,
						 class->word, g->mem_mib, g->cores);
		}
		text[used++] = ';';
	}
	text[used] = '\0';
	return text;
}

/* ---- decode ---------------------------------------------------------------------------------- */

/* What schedulers up to 2.9 appended for MIG: "GPU-…[1-0]", geometry and slot. */
static bool cut_mig_suffix(struct vg_span *uuid)
{
	size_t i = uuid->size;
	size_t geometry;
	size_t slot;

	if (!i || uuid->data[--i] != ']')
		return false;
	for (slot = 0; i && uuid->data[i - 1] >= '0' && uuid->data[i - 1] <= '9'; slot++)
		i--;
	if (!i || uuid->data[--i] != '-')
		return false;
	for (geometry = 0; i && uuid->data[i - 1] >= '0' && uuid->data[i - 1] <= '9'; geometry++)
		i--;
	if (!slot || !geometry || !i || uuid->data[--i] != '[')
		return false;
	uuid->size = i;
	return true;
}

/* What an annotation text is taken apart into, before it is known to be good. */
struct decoder {
	struct vg_arena *arena;
	struct vg_grant *grants;
	size_t count;
	uint8_t class_index;
};

static int decode_number(struct vg_span text, const char *what, int32_t *ret_value,
			 struct vg_err *err)
{
	int64_t value = 0;
	int r = vg_parse_i64(text, 0, INT32_MAX, &value, err);

	if (r < 0)
		return vg_err_wrap(err, -EINVAL, "%s", what);
	*ret_value = (int32_t)value;
	return 0;
}

static int decode_device(struct vg_span text, uint16_t container, struct decoder *decoder,
			 struct vg_err *err)
{
	struct vg_grant grant = { .container = container, .class_index = decoder->class_index };
	struct vg_span field[4];
	struct vg_span uuid;
	size_t count = 0;
	int r;

	for (struct vg_span rest = text; count < 4 && vg_cut(&rest, ',', &field[count]);)
		count++;
	if (count < 4)
		return vg_fail(err, EINVAL, "%zu fields instead of uuid,type,memory,cores", count);
	uuid = field[0];
	while (cut_mig_suffix(&uuid))
		;
	if (!uuid.size)
		return vg_fail(err, EINVAL, "no UUID");
	if (uuid.size > VG_LIMIT_UUID_BYTES)
		return vg_fail(err, EINVAL, "a UUID of %zu bytes; at most %u are accepted",
			       uuid.size, VG_LIMIT_UUID_BYTES);
	r = decode_number(field[2], "memory", &grant.mem_mib, err);
	if (r == 0)
		r = decode_number(field[3], "cores", &grant.cores, err);
	if (r < 0)
		return r;
	grant.uuid = vg_arena_strndup(decoder->arena, uuid.data, uuid.size);
	decoder->grants[decoder->count++] = grant;
	return 0;
}

static int decode_container(struct vg_span text, size_t container, struct decoder *decoder,
			    struct vg_err *err)
{
	size_t before = decoder->count;
	struct vg_span piece;

	for (size_t device = 0; vg_cut(&text, ':', &piece); device++) {
		int r = 0;

		if (!vg_span_has(piece, ','))
			continue;
		if (container >= VG_LIMIT_CONTAINERS_PER_POD)
			r = vg_fail(err, EINVAL, "a pod has at most %u containers",
				    VG_LIMIT_CONTAINERS_PER_POD);
		else if (decoder->count - before >= VG_LIMIT_CARDS_PER_REQUEST)
			r = vg_fail(err, EINVAL, "a container has at most %u devices",
				    VG_LIMIT_CARDS_PER_REQUEST);
		if (r == 0)
			r = decode_device(piece, (uint16_t)container, decoder, err);
		if (r < 0)
			return vg_err_wrap(err, r, "container %zu, device %zu", container, device);
	}
	return 0;
}

static size_t count_commas(const char *text)
{
	size_t count = 0;

	for (; (text = strchr(text, ',')); text++)
		count++;
	return count;
}

/* Both are sorted by container; what was there first stays first within a container. */
static struct vg_grant *merge(const struct vg_allocation *old, const struct decoder *new)
{
	struct vg_grant *merged =
		vg_arena_new_array(new->arena, old->grant_count + new->count, sizeof(*merged));
	size_t i = 0;
	size_t j = 0;

	for (size_t k = 0; k < old->grant_count + new->count; k++) {
		bool take_old =
			j == new->count || (i < old->grant_count &&
					    old->grants[i].container <= new->grants[j].container);

		merged[k] = take_old ? old->grants[i++] : new->grants[j++];
	}
	return merged;
}

int vg_allocation_decode(const char *text, uint8_t class_index, struct vg_arena *arena,
			 struct vg_allocation *allocation, struct vg_err *err)
{
	struct decoder decoder = { .arena = arena, .class_index = class_index };
	struct vg_span rest = VG_SPAN(text);
	struct vg_span piece;
	size_t containers = 0;
	size_t commas;

	if (rest.size > VG_LIMIT_ANNOTATION_BYTES)
		return vg_fail(err, EINVAL, "%zu bytes; at most %u are accepted", rest.size,
			       VG_LIMIT_ANNOTATION_BYTES);
	commas = count_commas(text);
	/* A device has three commas at least. */
	decoder.grants = vg_arena_new_array(arena, commas / 3, sizeof(*decoder.grants));
	while (vg_cut(&rest, ';', &piece)) {
		int r;

		/* What stands behind the last ";" is a container only if it holds something. */
		if (!rest.data && !piece.size)
			break;
		r = decode_container(piece, containers, &decoder, err);
		if (r < 0)
			return r;
		containers++;
	}
	/* Plugins that erase what they have handed out add a ";" each time; beyond the limit there is
	 * nothing but such empty segments. */
	if (containers > VG_LIMIT_CONTAINERS_PER_POD)
		containers = VG_LIMIT_CONTAINERS_PER_POD;
	if (!allocation->grant_count) {
		allocation->grants = decoder.grants;
	} else if (decoder.count) {
		allocation->grants = merge(allocation, &decoder);
	}
	allocation->grant_count += decoder.count;
	if (allocation->container_count < containers)
		allocation->container_count = containers;
	return 0;
}

/* ---- charges --------------------------------------------------------------------------------- */

/* Sums in 64 bits: the texts are other people's, and a list of 4096 grants can pass 32. */
struct amount {
	int64_t mem_mib;
	int64_t cores;
	int64_t slots;
};

static void add(struct amount *amount, const struct vg_grant *grant)
{
	amount->mem_mib += grant->mem_mib;
	amount->cores += grant->cores;
	amount->slots++;
}

static int64_t larger(int64_t a, int64_t b)
{
	return a > b ? a : b;
}

static int32_t clamp(int64_t value)
{
	return value > INT32_MAX ? INT32_MAX : (int32_t)value;
}

static void raise_to(struct amount *amount, const struct amount *other)
{
	amount->mem_mib = larger(amount->mem_mib, other->mem_mib);
	amount->cores = larger(amount->cores, other->cores);
	amount->slots = larger(amount->slots, other->slots);
}

static int compare_grants(const void *a, const void *b)
{
	const struct vg_grant *left = *(const struct vg_grant *const *)a;
	const struct vg_grant *right = *(const struct vg_grant *const *)b;
	int order = strcmp(left->uuid, right->uuid);

	return order ? order : (int)left->container - (int)right->container;
}

static uint8_t kind_of(const uint8_t *kinds, size_t kind_count, uint16_t container)
{
	return kinds && container < kind_count ? kinds[container] : VG_CONTAINER_APP;
}

/* The pod's life, container by container. Grants come sorted by container. */
struct life {
	struct amount lasting; /* apps, and sidecars as far as they have started */
	struct amount peak;    /* the highest while init containers run */
	struct amount present; /* the container that the last grant belongs to */
	uint16_t container;
	uint8_t kind;
};

static void end_container(struct life *life, bool init_done)
{
	struct amount now = life->lasting;

	now.mem_mib += life->present.mem_mib;
	now.cores += life->present.cores;
	now.slots += life->present.slots;
	if (life->kind != VG_CONTAINER_INIT)
		life->lasting = now;
	else if (!init_done)
		raise_to(&life->peak, &now);
	life->present = (struct amount){ 0 };
}

static void live(struct life *life, const struct vg_grant *grant, const uint8_t *kinds,
		 size_t kind_count, bool init_done)
{
	if (grant->container != life->container)
		end_container(life, init_done);
	life->container = grant->container;
	life->kind = kind_of(kinds, kind_count, grant->container);
	add(&life->present, grant);
}

static struct amount end_life(struct life *life, bool init_done)
{
	end_container(life, init_done);
	raise_to(&life->peak, &life->lasting);
	return life->peak;
}

/* The amount of one card from its grants, sorted by container. */
static struct amount amount_of(const struct vg_grant *const *grants, size_t count,
			       const uint8_t *kinds, size_t kind_count, bool init_done)
{
	struct life life = { 0 };

	for (size_t i = 0; i < count; i++)
		live(&life, grants[i], kinds, kind_count, init_done);
	return end_life(&life, init_done);
}

void vg_allocation_totals(const struct vg_allocation *allocation, const uint8_t *kinds,
			  size_t kind_count, bool init_done, struct vg_total *ret_totals)
{
	struct life lives[VG_CLASSES_MAX] = { 0 };

	for (size_t i = 0; i < allocation->grant_count; i++) {
		const struct vg_grant *grant = &allocation->grants[i];

		live(&lives[grant->class_index], grant, kinds, kind_count, init_done);
	}
	for (size_t i = 0; i < VG_CLASSES_MAX; i++) {
		struct amount amount = end_life(&lives[i], init_done);

		ret_totals[i] = (struct vg_total){ amount.mem_mib, amount.cores };
	}
}

size_t vg_allocation_charges(const struct vg_allocation *allocation, const uint8_t *kinds,
			     size_t kind_count, bool init_done, struct vg_arena *arena,
			     struct vg_charge **ret_charges)
{
	size_t grant_count = allocation->grant_count;
	const struct vg_grant **sorted = vg_arena_new_array(arena, grant_count, sizeof(*sorted));
	struct vg_charge *charges = vg_arena_new_array(arena, grant_count, sizeof(*charges));
	size_t count = 0;

	for (size_t i = 0; i < grant_count; i++)
		sorted[i] = &allocation->grants[i];
	if (grant_count > 1)
		qsort(sorted, grant_count, sizeof(*sorted), compare_grants);
	for (size_t first = 0, end; first < grant_count; first = end) {
		struct amount amount;

		end = first + 1;
		while (end < grant_count && vg_streq(sorted[end]->uuid, sorted[first]->uuid))
			end++;
		amount = amount_of(sorted + first, end - first, kinds, kind_count, init_done);
		/* Init containers that have ended hold nothing. */
		if (!amount.slots)
			continue;
		charges[count++] = (struct vg_charge){
			.uuid = sorted[first]->uuid,
			.mem_mib = clamp(amount.mem_mib),
			.cores = clamp(amount.cores),
			.slots = clamp(amount.slots),
		};
	}
	*ret_charges = charges;
	return count;
}
