/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two things that tests ask of both fake libraries: a record of the calls that reached them
 * (VGPU_FAKE_CALLS) and calls that fail on purpose (VGPU_FAKE_FAIL). README.md has the formats.
 */
#ifndef FAKE_TRACE_H
#define FAKE_TRACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads the two variables, once per process. */
void fake_trace_setup(void);
/* The child of a fork() counts its calls from 0. */
void fake_trace_after_fork(void);

/* Whether this call is to fail; `ret_code` is then what it must return. Counts the call. */
bool fake_trace_fails(const char *symbol, int *ret_code);

bool fake_trace_on(void);

#define FAKE_LINE_MAX 1024u

struct fake_line {
	char text[FAKE_LINE_MAX];
	size_t used;
	bool first;
};

void fake_line_begin(struct fake_line *line, const char *symbol);
void fake_line_signed(struct fake_line *line, const char *name, long long value);
void fake_line_unsigned(struct fake_line *line, const char *name, unsigned long long value);
void fake_line_float(struct fake_line *line, const char *name, double value);
void fake_line_text(struct fake_line *line, const char *name, const char *value);
void fake_line_pointer(struct fake_line *line, const char *name, const volatile void *value);
/* Writes the line, ended by the result, in one write(). */
void fake_line_end(struct fake_line *line, int result);

/* More rows "type: function," from whoever includes this, for structures that are passed by value. */
#ifndef FAKE_ARG_TYPES
#define FAKE_ARG_TYPES
#endif

/*
 * One argument by its type. `const char *` is taken for text that the caller gave; `char *` for a
 * place that it wants filled.
 */
#define FAKE_ARG(line, arg)                                                                        \
	_Generic((arg),                                                                            \
		char: fake_line_signed,                                                            \
		int: fake_line_signed,                                                             \
		long: fake_line_signed,                                                            \
		long long: fake_line_signed,                                                       \
		unsigned char: fake_line_unsigned,                                                 \
		unsigned short: fake_line_unsigned,                                                \
		unsigned int: fake_line_unsigned,                                                  \
		unsigned long: fake_line_unsigned,                                                 \
		unsigned long long: fake_line_unsigned,                                            \
		float: fake_line_float,                                                            \
		const char *: fake_line_text,                                                      \
		FAKE_ARG_TYPES default: fake_line_pointer)(line, #arg, arg);

/* FAKE_EACH(line, a, b, c): FAKE_ARG for each, up to 14. */
#define FAKE_EACH(line, ...)                                                                       \
	__VA_OPT__(FAKE_PICK(__VA_ARGS__, E14, E13, E12, E11, E10, E9, E8, E7, E6, E5, E4, E3, E2, \
			     E1)(line, __VA_ARGS__))
#define FAKE_PICK(a, b, c, d, e, f, g, h, i, j, k, l, m, n, which, ...) FAKE_##which
#define FAKE_E1(line, x)                                                FAKE_ARG(line, x)
#define FAKE_E2(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E1(line, __VA_ARGS__)
#define FAKE_E3(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E2(line, __VA_ARGS__)
#define FAKE_E4(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E3(line, __VA_ARGS__)
#define FAKE_E5(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E4(line, __VA_ARGS__)
#define FAKE_E6(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E5(line, __VA_ARGS__)
#define FAKE_E7(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E6(line, __VA_ARGS__)
#define FAKE_E8(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E7(line, __VA_ARGS__)
#define FAKE_E9(line, x, ...)                                           FAKE_ARG(line, x) FAKE_E8(line, __VA_ARGS__)
#define FAKE_E10(line, x, ...)                                          FAKE_ARG(line, x) FAKE_E9(line, __VA_ARGS__)
#define FAKE_E11(line, x, ...)                                          FAKE_ARG(line, x) FAKE_E10(line, __VA_ARGS__)
#define FAKE_E12(line, x, ...)                                          FAKE_ARG(line, x) FAKE_E11(line, __VA_ARGS__)
#define FAKE_E13(line, x, ...)                                          FAKE_ARG(line, x) FAKE_E12(line, __VA_ARGS__)
#define FAKE_E14(line, x, ...)                                          FAKE_ARG(line, x) FAKE_E13(line, __VA_ARGS__)

#endif
