/* SPDX-License-Identifier: Apache-2.0 */
/* Quantities: any text; and what must hold between texts that mean related numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/quantity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static int parse(const char *text, size_t size, struct vg_quantity *ret_quantity)
{
	struct vg_err err = { 0 };
	int r = vg_quantity_parse((struct vg_span){ text, size }, ret_quantity, &err);

	check(r == 0 ? err.code == 0 : err.code == r && err.msg[0]);
	return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_quantity quantity = { 0 };
	struct vg_quantity other = { 0 };
	bool has_sign;
	char *text;
	int r;

	if (size > 4096)
		return 0;
	/* No byte behind the text may be read, so none is there. */
	text = malloc(size + 1);
	check(text);
	if (size)
		memcpy(text + 1, data, size);
	r = parse(text + 1, size, &quantity);
	has_sign = size && (text[1] == '-' || text[1] == '+');

	/* With the opposite sign, the opposite number. */
	if (!has_sign) {
		text[0] = '-';
		check(parse(text, size + 1, &other) == r);
		check(r < 0 || (other.value == -quantity.value && other.exact == quantity.exact));
	}
	/* A leading zero changes nothing; nothing else turns text into a quantity with it but ".". */
	if (!has_sign && size && text[1] != '.' && r == 0) {
		text[0] = '0';
		check(parse(text, size + 1, &other) == 0);
		check(other.value == quantity.value && other.exact == quantity.exact &&
		      other.large_suffix == quantity.large_suffix);
	}
	free(text);
	return 0;
}
