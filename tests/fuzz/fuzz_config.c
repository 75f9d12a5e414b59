/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a device configuration: complaints or not, never a crash; what is taken is usable. */
#include <assert.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/limits.h"
#include "config/config.h"

struct seen {
	unsigned errors;
};

static void take(void *ctx, bool is_error, const char *line)
{
	struct seen *seen = ctx;

	/* "name:line: …" */
	assert(strncmp(line, "fuzz:", 5) == 0);
	seen->errors += is_error;
}

static void check_class(const struct vg_class *class)
{
	assert(class->mem_factor >= 1);
	assert(class->default_cores >= 0 && class->default_cores <= 100);
	assert(class->default_mem_mib >= 0);
	assert(class->default_count >= 0 &&
	       class->default_count <= (int32_t)VG_LIMIT_CARDS_PER_REQUEST);
	assert(class->resource_count && class->resource_mem && class->core_policy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct vg_classes classes;
	struct seen seen = { 0 };
	struct vg_err err = { 0 };
	int r;

	vg_classes_init(&classes);
	r = vg_config_parse("fuzz", (const char *)data, size, &classes, take, &seen, &err);
	assert((r < 0) == (seen.errors > 0));
	assert(r == err.code);
	if (r == 0)
		check_class(&classes.item[0]);
	vg_classes_release(&classes);
	return 0;
}
