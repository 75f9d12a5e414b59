/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hami.io/node-nvidia-score: [{"uuid":"GPU-0","score":{"GPU-1":50,"GPU-2":20}}, …].
 */
#include <errno.h>
#include <string.h>

#include "base/limits.h"
#include "base/map.h"
#include "device/json_internal.h"
#include "device/node.h"

/* A pair that nobody has said anything about. Scores of the annotation are small numbers. */
#define UNSAID INT32_MIN

static size_t find_card(const struct vg_card_info *cards, size_t count, const char *uuid)
{
	size_t i = 0;

	while (i < count && strcmp(cards[i].uuid, uuid) != 0)
		i++;
	return i;
}

static int read_row(const json_t *row, size_t place, const struct vg_card_info *cards, size_t count,
		    int32_t *links, struct vg_err *err)
{
	const char *uuid = "";
	json_t *scores = NULL;
	const char *other;
	json_t *value;
	size_t from;
	int r;

	if (!json_is_object(row))
		return vg_fail(err, EINVAL, "entry %zu is %s, not an object", place,
			       vg_json_kind(row));
	r = vg_json_word(row, "uuid", &uuid, err);
	if (r == 0)
		r = vg_json_object(row, "score", &scores, err);
	if (r < 0)
		return vg_err_wrap(err, r, "entry %zu", place);
	from = find_card(cards, count, uuid);
	json_object_foreach(scores, other, value)
	{
		size_t to = find_card(cards, count, other);

		if (!json_is_integer(value) || json_integer_value(value) < -VG_LINK_SCORE_MAX ||
		    json_integer_value(value) > VG_LINK_SCORE_MAX)
			return vg_fail(err, EINVAL,
				       "entry %zu: score of \"%.96s\" is not a number "
				       "from -%d to %d",
				       place, other, VG_LINK_SCORE_MAX, VG_LINK_SCORE_MAX);
		/* A card that is not registered (any more) is nobody's neighbour. */
		if (from < count && to < count && from != to)
			links[from * count + to] = (int32_t)json_integer_value(value);
	}
	return 0;
}

/* Makes the matrix symmetric; returns how many pairs were not said the same from both sides. */
static size_t settle(int32_t *links, size_t count)
{
	size_t odd = 0;

	for (size_t i = 0; i < count; i++) {
		links[i * count + i] = 0;
		for (size_t j = i + 1; j < count; j++) {
			int32_t there = links[i * count + j];
			int32_t back = links[j * count + i];
			int32_t score = there < back ? there : back;

			odd += there != back || there == UNSAID;
			/* Said once: believed. Said twice and differently: the worse one. */
			if (score == UNSAID)
				score = there > back ? there : back;
			if (score == UNSAID)
				score = 0;
			links[i * count + j] = links[j * count + i] = score;
		}
	}
	return odd;
}

int vg_links_decode(const char *text, const struct vg_card_info *cards, size_t count,
		    struct vg_arena *arena, int32_t **ret_links, size_t *ret_odd,
		    struct vg_err *err)
{
	json_error_t where;
	json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, &where);
	int32_t *links;
	json_t *row;
	size_t i;
	int r = 0;

	if (!root)
		return vg_fail(err, EINVAL, "is not JSON: %s at byte %d", where.text,
			       where.position);
	if (!json_is_array(root)) {
		r = vg_fail(err, EINVAL, "is %s, not an array", vg_json_kind(root));
		json_decref(root);
		return r;
	}
	links = vg_arena_new_array(arena, count * count, sizeof(*links));
	for (i = 0; i < count * count; i++)
		links[i] = UNSAID;
	json_array_foreach(root, i, row)
	{
		r = read_row(row, i, cards, count, links, err);
		if (r < 0)
			break;
	}
	json_decref(root);
	if (r < 0)
		return r;
	*ret_odd = settle(links, count);
	*ret_links = links;
	return 0;
}
