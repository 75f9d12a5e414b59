/* SPDX-License-Identifier: Apache-2.0 */
/* Limits as environment variables hold them: any text. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "region/text.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	uint64_t value = 0;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (region_text_bytes(text, &value) == 0 && value > INT64_MAX)
		abort();
	if (region_text_percent(text, &value) == 0 && value > INT64_MAX)
		abort();
	free(text);
	return 0;
}
