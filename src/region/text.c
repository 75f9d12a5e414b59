/* SPDX-License-Identifier: Apache-2.0 */
#include "region/text.h"

#include <errno.h>
#include <stddef.h>

static const char *skip_blanks(const char *text)
{
	while (*text == ' ' || *text == '\t' || *text == '\n' || *text == '\r')
		text++;
	return text;
}

/* Digits at *text; moves *text behind them. */
static int take_digits(const char **text, uint64_t *ret_value)
{
	const char *at = *text;
	uint64_t value = 0;

	if (*at < '0' || *at > '9')
		return -EINVAL;
	for (; *at >= '0' && *at <= '9'; at++) {
		uint64_t digit = (uint64_t)(*at - '0');

		if (value > ((uint64_t)INT64_MAX - digit) / 10)
			return -ERANGE;
		value = value * 10 + digit;
	}
	*text = at;
	*ret_value = value;
	return 0;
}

static unsigned int shift_of(char suffix)
{
	switch (suffix) {
	case 'k':
	case 'K':
		return 10;
	case 'm':
	case 'M':
		return 20;
	case 'g':
	case 'G':
		return 30;
	case 't':
	case 'T':
		return 40;
	default:
		return 0;
	}
}

int region_text_bytes(const char *text, uint64_t *ret_bytes)
{
	const char *at = skip_blanks(text);
	unsigned int shift;
	uint64_t value;
	int r;

	r = take_digits(&at, &value);
	if (r < 0)
		return r;
	shift = shift_of(*at);
	if (shift)
		at++;
	if (*skip_blanks(at))
		return -EINVAL;
	if (value > (uint64_t)INT64_MAX >> shift)
		return -ERANGE;
	*ret_bytes = value << shift;
	return 0;
}

int region_text_percent(const char *text, uint64_t *ret_percent)
{
	const char *at = skip_blanks(text);
	uint64_t value;
	int r;

	r = take_digits(&at, &value);
	if (r < 0)
		return r;
	if (*skip_blanks(at))
		return -EINVAL;
	*ret_percent = value;
	return 0;
}
