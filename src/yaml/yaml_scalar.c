/* SPDX-License-Identifier: Apache-2.0 */
/* What a plain scalar means: the table in yaml_tree.h. */
#include "yaml/yaml_tree.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

/* Longer texts are no numbers that anybody wrote on purpose. */
#define NUMBER_TEXT_MAX 127

static bool is_one_of(const char *text, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(text, words[i]) == 0)
			return true;
	return false;
}

#define IS_ONE_OF(text, words) is_one_of(text, words, sizeof(words) / sizeof((words)[0]))

static const char *const null_words[] = { "", "~", "null", "Null", "NULL" };
static const char *const true_words[] = { "true", "True", "TRUE", "yes", "Yes", "YES",
					  "y",    "Y",    "on",   "On",  "ON" };
static const char *const false_words[] = { "false", "False", "FALSE", "no",  "No", "NO",
					   "n",     "N",     "off",   "Off", "OFF" };

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static int digit_value(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return 16;
}

/* The sign and the base of [sign] (digits | 0x… | 0o… | 0b… | 0…); returns the digits. */
static const char *integer_digits(const char *text, bool *ret_negative, int *ret_base)
{
	*ret_negative = *text == '-';
	*ret_base = 10;
	if (*text == '-' || *text == '+')
		text++;
	if (text[0] != '0' || !text[1])
		return text;
	switch (text[1]) {
	case 'x':
	case 'X':
		*ret_base = 16;
		return text + 2;
	case 'o':
	case 'O':
		*ret_base = 8;
		return text + 2;
	case 'b':
	case 'B':
		*ret_base = 2;
		return text + 2;
	default:
		*ret_base = 8;
		return text + 1;
	}
}

static bool parse_integer(const char *text, struct vg_yaml_value *value)
{
	bool negative;
	bool fits = true;
	int base;
	uint64_t magnitude = 0;
	double real = 0;

	text = integer_digits(text, &negative, &base);
	if (!*text)
		return false;
	for (; *text; text++) {
		int digit = digit_value(*text);

		if (digit >= base)
			return false;
		real = real * base + digit;
		if (__builtin_mul_overflow(magnitude, (uint64_t)base, &magnitude) ||
		    __builtin_add_overflow(magnitude, (uint64_t)digit, &magnitude))
			fits = false;
	}
	if (fits && magnitude <= INT64_MAX)
		value->integer = negative ? -(int64_t)magnitude : (int64_t)magnitude;
	else if (fits && negative && magnitude == (uint64_t)INT64_MAX + 1)
		value->integer = INT64_MIN;
	else
		fits = false;
	/* Decimal digits are left to strtod(), which rounds once, not at every digit. */
	if (!fits && base == 10)
		return false;
	value->type = fits ? VG_YAML_INT : VG_YAML_FLOAT;
	value->real = negative ? -real : real;
	return true;
}

/* [sign] digits [. digits] [e [sign] digits], with a digit before or behind the point. */
static bool looks_like_float(const char *text)
{
	size_t digits = 0;

	if (*text == '-' || *text == '+')
		text++;
	for (; is_digit(*text); text++)
		digits++;
	if (*text == '.')
		for (text++; is_digit(*text); text++)
			digits++;
	if (!digits)
		return false;
	if (*text == 'e' || *text == 'E') {
		text++;
		if (*text == '-' || *text == '+')
			text++;
		if (!is_digit(*text))
			return false;
		while (is_digit(*text))
			text++;
	}
	return !*text;
}

static struct vg_yaml_value resolve_number(const char *scalar)
{
	struct vg_yaml_value value = { .type = VG_YAML_STRING };
	char text[NUMBER_TEXT_MAX + 1];
	size_t used = 0;

	for (const char *c = scalar; *c; c++) {
		if (*c == '_')
			continue;
		if (used == NUMBER_TEXT_MAX)
			return value;
		text[used++] = *c;
	}
	text[used] = '\0';
	if (parse_integer(text, &value))
		return value;
	if (looks_like_float(text)) {
		/* No program of ours calls setlocale(), so the decimal point is a point. */
		value.real = strtod(text, NULL);
		if (isfinite(value.real))
			value.type = VG_YAML_FLOAT;
	}
	return value;
}

struct vg_yaml_value vg_yaml_resolve(const struct vg_yaml *scalar)
{
	const char *text = scalar->scalar;

	if (scalar->quoted)
		return (struct vg_yaml_value){ .type = VG_YAML_STRING };
	if (IS_ONE_OF(text, null_words))
		return (struct vg_yaml_value){ .type = VG_YAML_NULL };
	if (IS_ONE_OF(text, true_words))
		return (struct vg_yaml_value){ .type = VG_YAML_BOOL, .truth = true };
	if (IS_ONE_OF(text, false_words))
		return (struct vg_yaml_value){ .type = VG_YAML_BOOL, .truth = false };
	if (is_digit(*text) || *text == '-' || *text == '+' || *text == '.')
		return resolve_number(text);
	return (struct vg_yaml_value){ .type = VG_YAML_STRING };
}
