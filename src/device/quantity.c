/* SPDX-License-Identifier: Apache-2.0 */
#include "device/quantity.h"

#include <errno.h>
#include <stddef.h>

/* What of a wrong value an error message repeats. */
#define SHOWN_MAX 64

/* Exponents beyond this only say "huge" or "tiny"; no text is long enough to bring it back. */
#define EXPONENT_MAX ((int64_t)1 << 40)

/* The number as written: digits × 10^exponent × 2^shift. At most one of the two is not 0. */
struct number {
	struct vg_span text; /* the digits and at most one point */
	bool negative;
	bool large_suffix;
	int64_t exponent;
	unsigned shift;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static struct vg_span skip(struct vg_span text, size_t count)
{
	return (struct vg_span){ text.data + count, text.size - count };
}

/* Cuts digits with at most one point off the front; false when there is no digit. */
static bool cut_digits(struct vg_span *rest, struct vg_span *ret_digits)
{
	size_t size = 0;
	size_t points = 0;

	while (size < rest->size && (is_digit(rest->data[size]) || rest->data[size] == '.')) {
		if (rest->data[size] == '.' && ++points > 1)
			return false;
		size++;
	}
	if (size == points)
		return false;
	*ret_digits = (struct vg_span){ rest->data, size };
	*rest = skip(*rest, size);
	return true;
}

/* "e3", "E-3": an exponent must be a whole number; false for other text. */
static bool parse_exponent(struct vg_span text, int64_t *ret_exponent)
{
	bool negative = false;
	int64_t value = 0;

	text = skip(text, 1);
	if (text.size && (text.data[0] == '-' || text.data[0] == '+')) {
		negative = text.data[0] == '-';
		text = skip(text, 1);
	}
	if (!text.size)
		return false;
	for (size_t i = 0; i < text.size; i++) {
		if (!is_digit(text.data[i]))
			return false;
		value = value * 10 + (text.data[i] - '0');
		if (value > EXPONENT_MAX)
			value = EXPONENT_MAX;
	}
	*ret_exponent = negative ? -value : value;
	return true;
}

static bool parse_suffix(struct vg_span text, struct number *number)
{
	static const struct {
		char text[3];
		int exponent;
		unsigned shift;
	} suffixes[] = {
		{ "", 0, 0 },    { "n", -9, 0 },  { "u", -6, 0 },  { "m", -3, 0 },
		{ "k", 3, 0 },   { "M", 6, 0 },   { "G", 9, 0 },   { "T", 12, 0 },
		{ "P", 15, 0 },  { "E", 18, 0 },  { "Ki", 0, 10 }, { "Mi", 0, 20 },
		{ "Gi", 0, 30 }, { "Ti", 0, 40 }, { "Pi", 0, 50 }, { "Ei", 0, 60 },
	};

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		if (vg_span_eq(text, suffixes[i].text)) {
			number->exponent = suffixes[i].exponent;
			number->shift = suffixes[i].shift;
			number->large_suffix = suffixes[i].exponent > 0 || suffixes[i].shift;
			return true;
		}
	}
	return (text.data[0] == 'e' || text.data[0] == 'E') &&
	       parse_exponent(text, &number->exponent);
}

static bool parse_number(struct vg_span text, struct number *ret_number)
{
	struct number number = { 0 };

	if (text.size && (text.data[0] == '-' || text.data[0] == '+')) {
		number.negative = text.data[0] == '-';
		text = skip(text, 1);
	}
	if (!cut_digits(&text, &number.text) || !parse_suffix(text, &number))
		return false;
	*ret_number = number;
	return true;
}

/* number × 10^exponent: the point moves. False when the whole part does not fit. */
static bool evaluate_decimal(const struct number *number, uint64_t *ret_value, bool *ret_exact)
{
	uint64_t value = 0;
	bool exact = true;
	int64_t whole = 0; /* digits before the moved point */

	while ((size_t)whole < number->text.size && number->text.data[whole] != '.')
		whole++;
	whole += number->exponent;
	for (size_t i = 0; i < number->text.size; i++) {
		char c = number->text.data[i];

		if (c == '.')
			continue;
		if (whole-- <= 0) {
			exact = exact && c == '0';
			continue;
		}
		if (__builtin_mul_overflow(value, (uint64_t)10, &value) ||
		    __builtin_add_overflow(value, (uint64_t)(c - '0'), &value))
			return false;
	}
	/* The digits that the text left out are zeros. */
	while (whole-- > 0 && value)
		if (__builtin_mul_overflow(value, (uint64_t)10, &value))
			return false;
	*ret_value = value;
	*ret_exact = exact;
	return true;
}

/*
 * number × 2^shift. The fraction is multiplied as on paper, from its last digit to its first: what
 * falls off at the right end is the fraction of the product, what is carried out at the left end is
 * its whole part. The carry stays below 2 × 10 × 2^60.
 */
static bool evaluate_binary(const struct number *number, uint64_t *ret_value, bool *ret_exact)
{
	unsigned __int128 carry = 0;
	uint64_t whole = 0;
	bool exact = true;
	size_t point = 0;

	for (; point < number->text.size && number->text.data[point] != '.'; point++)
		if (__builtin_mul_overflow(whole, (uint64_t)10, &whole) ||
		    __builtin_add_overflow(whole, (uint64_t)(number->text.data[point] - '0'),
					   &whole))
			return false;
	for (size_t i = number->text.size; i > point + 1; i--) {
		carry += (unsigned __int128)(number->text.data[i - 1] - '0') << number->shift;
		exact = exact && carry % 10 == 0;
		carry /= 10;
	}
	if (__builtin_mul_overflow(whole, (uint64_t)1 << number->shift, &whole) ||
	    __builtin_add_overflow(whole, (uint64_t)carry, &whole))
		return false;
	*ret_value = whole;
	*ret_exact = exact;
	return true;
}

int vg_quantity_parse(struct vg_span text, struct vg_quantity *ret_quantity, struct vg_err *err)
{
	int shown = (int)(text.size < SHOWN_MAX ? text.size : SHOWN_MAX);
	struct number number = { 0 };
	uint64_t magnitude = 0;
	bool exact = true;
	bool fits;

	if (!parse_number(text, &number))
		return vg_fail(err, EINVAL, "\"%.*s\" is not a quantity", shown, text.data);
	fits = number.shift ? evaluate_binary(&number, &magnitude, &exact)
			    : evaluate_decimal(&number, &magnitude, &exact);
	if (fits && !exact)
		magnitude++;
	if (!fits || magnitude > INT64_MAX)
		return vg_fail(err, ERANGE, "%.*s is too large", shown, text.data);
	*ret_quantity = (struct vg_quantity){
		.value = number.negative ? -(int64_t)magnitude : (int64_t)magnitude,
		.exact = exact,
		.large_suffix = number.large_suffix,
	};
	return 0;
}
