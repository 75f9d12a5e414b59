/* SPDX-License-Identifier: Apache-2.0 */
/* Small string helpers that the C library lacks or does badly. None allocates. */
#ifndef VGPU_BASE_STR_H
#define VGPU_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>

/* A piece of somebody else's text; not NUL-terminated. */
struct vg_span {
	const char *data;
	size_t size;
};

#define VG_SPAN(text) ((struct vg_span){ (text), strlen(text) })

/* Both may be NULL; NULL equals NULL only. */
bool vg_streq(const char *a, const char *b);
/* Without regard to ASCII case. */
bool vg_strcaseeq(const char *a, const char *b);
bool vg_span_eq(struct vg_span span, const char *text);
bool vg_span_has(struct vg_span span, char c);
bool vg_starts_with(const char *text, const char *prefix);
bool vg_ends_with(const char *text, const char *suffix);
/* Whether `needle` stands in `hay`, without regard to ASCII case. An empty needle does. */
bool vg_contains_nocase(const char *hay, struct vg_span needle);

/* Without ASCII white space at both ends. */
struct vg_span vg_trim(struct vg_span span);

/*
 * Cuts the next piece off `rest` at `separator`. Empty pieces count: "a,,b" gives "a", "", "b", and
 * "" gives one empty piece. Start with *rest = the text; returns false when nothing is left, which is
 * marked by rest->data == NULL.
 */
bool vg_cut(struct vg_span *rest, char separator, struct vg_span *ret_piece);

/* Copies as much as fits, always NUL-terminated; returns false when it was cut short. */
bool vg_copy(char *target, size_t room, const char *text);

/*
 * 64 bits for hash tables, eight bytes a step: names of nodes are hashed 5,000 at a time on the path of a
 * decision. The same on every run and machine of one byte order, but not meant to be stored or sent.
 */
unsigned long long vg_hash(const char *text, size_t size);
/* With a secret seed, where somebody else chooses the texts and could make them collide. */
unsigned long long vg_hash_seeded(const char *text, size_t size, unsigned long long seed);

#endif
