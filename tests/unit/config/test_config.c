/* SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/file.h"
#include "base/str.h"
#include "config/config.h"

#define DATA     "tests/data/config"
#define TEXT_MAX ((size_t)64 << 10)

static void take(void *ctx, bool is_error, const char *line)
{
	vg_buf_addf(ctx, "%s: %s\n", is_error ? "error" : "warning", line);
}

/* The class as text, to compare with. */
static void show(const struct vg_class *class, struct vg_buf *out)
{
	vg_buf_addf(out, "count=%s mem=%s percent=%s cores=%s priority=%s ", class->resource_count,
		    class->resource_mem, class->resource_mem_percent, class->resource_cores,
		    class->resource_priority);
	vg_buf_addf(out, "defaults=%d,%d,%d factor=%d env=%d policy=%s runtime=%s",
		    class->default_count, class->default_mem_mib, class->default_cores,
		    class->mem_factor, class->overwrite_env, class->core_policy,
		    class->runtime_class);
}

#define NAMES                                                                                      \
	"count=nvidia.com/gpu mem=nvidia.com/gpumem percent=nvidia.com/gpumem-percentage "         \
	"cores=nvidia.com/gpucores priority=nvidia.com/priority "

static void test_values(void **state)
{
	static const struct {
		const char *text;
		const char *class;
		const char *complaints;
	} rows[] = {
		{ "nvidia: {}", NAMES "defaults=0,0,0 factor=1 env=0 policy= runtime=", "" },
		{ "", NAMES "defaults=0,0,0 factor=1 env=0 policy= runtime=",
		  "warning: c.yaml:1: holds no keys; the defaults count\n" },
		{ "nvidia:\n", NAMES "defaults=0,0,0 factor=1 env=0 policy= runtime=", "" },
		{ "nvidia: {defaultMemory: , resourceCountName: ~, memoryFactor: null}",
		  NAMES "defaults=0,0,0 factor=1 env=0 policy= runtime=", "" },
		{ "nvidia: {defaultGPUNum: 1, defaultMemory: 0x400, defaultCores: 1e1}",
		  NAMES "defaults=1,1024,10 factor=1 env=0 policy= runtime=", "" },
		{ "nvidia: {memoryFactor: 0}",
		  NAMES "defaults=0,0,0 factor=1 env=0 policy= runtime=", "" },
		{ "nvidia: {overwriteEnv: on, gpuCorePolicy: disable, runtimeClassName: 5}",
		  NAMES "defaults=0,0,0 factor=1 env=1 policy=disable runtime=5", "" },
		{ "nvidia: {gpuCorePolicy: \"\", resourcePriorityName: \"\"}",
		  "count=nvidia.com/gpu mem=nvidia.com/gpumem percent=nvidia.com/gpumem-percentage "
		  "cores=nvidia.com/gpucores priority= defaults=0,0,0 factor=1 env=0 policy= "
		  "runtime=",
		  "" },
		{ "nvidia: {resourceCountName: gpu}\n--- \nx: y",
		  "count=gpu mem=nvidia.com/gpumem percent=nvidia.com/gpumem-percentage "
		  "cores=nvidia.com/gpucores priority=nvidia.com/priority "
		  "defaults=0,0,0 factor=1 env=0 policy= runtime=",
		  "warning: c.yaml:3: a second document begins here, ignored\n" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_classes classes;
		struct vg_buf complaints;
		struct vg_buf class;
		struct vg_err err = { 0 };

		vg_classes_init(&classes);
		vg_buf_init(&complaints, TEXT_MAX);
		vg_buf_init(&class, TEXT_MAX);
		if (vg_config_parse("c.yaml", rows[i].text, strlen(rows[i].text), &classes, take,
				    &complaints, &err) < 0)
			fail_msg("row %zu: %s", i, err.msg);
		show(&classes.item[0], &class);
		assert_string_equal(class.data, rows[i].class);
		assert_string_equal(complaints.data ? complaints.data : "", rows[i].complaints);
		vg_buf_release(&complaints);
		vg_buf_release(&class);
		vg_classes_release(&classes);
	}
}

static void test_errors(void **state)
{
	static const struct {
		const char *text;
		const char *complaints;
		const char *message;
	} rows[] = {
		{ "nvidia: {a: b",
		  "error: c.yaml:2: did not find expected ',' or '}', "
		  "while parsing a flow mapping (begun on line 1)\n",
		  "c.yaml:2: did not find expected ',' or '}', while parsing a flow mapping (begun "
		  "on line 1)" },
		{ "nvidia: {}\nnvidia: {}",
		  "error: c.yaml:2: key \"nvidia\" is given twice, first on line 1\n",
		  "c.yaml:2: key \"nvidia\" is given twice, first on line 1" },
		{ "- nvidia", "error: c.yaml:1: must be a block of keys, is a list\n",
		  "c.yaml:1: must be a block of keys, is a list" },
		{ "nvidia", "error: c.yaml:1: must be a block of keys, is one value\n",
		  "c.yaml:1: must be a block of keys, is one value" },
		{ "nvidia:\n  defaultCores: 200\n  defaultMemory: -1\n",
		  "error: c.yaml:2: nvidia.defaultCores: 200 is outside 0 to 100\n"
		  "error: c.yaml:3: nvidia.defaultMemory: -1 is outside 0 to 2147483647\n",
		  "c.yaml:2: nvidia.defaultCores: 200 is outside 0 to 100 (and 1 more)" },
		{ "nvidia:\n  defaultMemory: 1e99\n",
		  "error: c.yaml:2: nvidia.defaultMemory: 1e99 is outside 0 to 2147483647\n",
		  "c.yaml:2: nvidia.defaultMemory: 1e99 is outside 0 to 2147483647" },
		{ "nvidia:\n  resourceMemoryName: nvidia.com/gpu\n",
		  "error: c.yaml:2: nvidia.resourceMemoryName: \"nvidia.com/gpu\" is the name of "
		  "resourceCountName already\n",
		  "c.yaml:2: nvidia.resourceMemoryName: \"nvidia.com/gpu\" is the name of "
		  "resourceCountName already" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct vg_classes classes;
		struct vg_buf complaints;
		struct vg_err err = { 0 };

		vg_classes_init(&classes);
		vg_buf_init(&complaints, TEXT_MAX);
		assert_int_equal(vg_config_parse("c.yaml", rows[i].text, strlen(rows[i].text),
						 &classes, take, &complaints, &err),
				 -EINVAL);
		assert_string_equal(complaints.data, rows[i].complaints);
		assert_string_equal(err.msg, strchr(complaints.data, '\n')[1]
						     ? "c.yaml: 2 errors in the configuration"
						     : "c.yaml: 1 error in the configuration");
		/* Without anybody to complain to, the error itself says what is wrong. */
		assert_int_equal(vg_config_parse("c.yaml", rows[i].text, strlen(rows[i].text),
						 &classes, NULL, NULL, &err),
				 -EINVAL);
		assert_string_equal(err.msg, rows[i].message);
		assert_int_equal(vg_config_parse("c.yaml", rows[i].text, strlen(rows[i].text),
						 &classes, NULL, NULL, NULL),
				 -EINVAL);
		vg_buf_release(&complaints);
		vg_classes_release(&classes);
	}
}

static void check_example(const char *path, bool *ret_silent)
{
	vg_autofree char *want = NULL;
	char wanted[512];
	struct vg_classes classes;
	struct vg_buf complaints;
	struct vg_err err = { 0 };
	bool has_error;
	int r;

	snprintf(wanted, sizeof(wanted), "%.*s.complaints", (int)(strlen(path) - 5), path);
	if (vg_read_file(wanted, TEXT_MAX, &want, NULL, NULL) < 0)
		want = NULL;
	vg_classes_init(&classes);
	vg_buf_init(&complaints, TEXT_MAX);
	r = vg_config_load(path, &classes, take, &complaints, &err);
	if (want)
		assert_string_equal(complaints.data, want);
	else if (complaints.used)
		fail_msg("%s should be taken without a complaint:\n%s", path, complaints.data);
	has_error = want && strstr(want, "error: ");
	assert_int_equal(r, has_error ? -EINVAL : 0);
	*ret_silent = !want;
	vg_buf_release(&complaints);
	vg_classes_release(&classes);
}

/* Each X.yaml of the examples: taken with exactly the complaints of X.complaints, or with none. */
static void test_examples(void **state)
{
	DIR *folder = opendir(DATA);
	const struct dirent *entry;
	unsigned silent = 0;
	unsigned loud = 0;

	(void)state;
	assert_non_null(folder);
	while ((entry = readdir(folder))) {
		char path[512];
		bool is_silent;

		if (!vg_ends_with(entry->d_name, ".yaml"))
			continue;
		snprintf(path, sizeof(path), DATA "/%s", entry->d_name);
		check_example(path, &is_silent);
		silent += is_silent;
		loud += !is_silent;
	}
	closedir(folder);
	assert_true(silent >= 2);
	assert_true(loud >= 2);
}

static void check_loaded(const char *path, const char *want)
{
	struct vg_classes classes;
	struct vg_buf class;
	struct vg_err err = { 0 };

	vg_classes_init(&classes);
	vg_buf_init(&class, TEXT_MAX);
	if (vg_config_load(path, &classes, NULL, NULL, &err) < 0)
		fail_msg("%s", err.msg);
	show(&classes.item[0], &class);
	assert_string_equal(class.data, want);
	vg_buf_release(&class);
	vg_classes_release(&classes);
}

static void test_loaded(void **state)
{
	bool silent;

	(void)state;
	/* Our own file: nothing to complain about either. */
	check_example("config/device-config.yaml", &silent);
	assert_true(silent);
	check_loaded("config/device-config.yaml",
		     NAMES "defaults=1,0,0 factor=1 env=0 policy=default runtime=");
	check_loaded(DATA "/every-vendor.yaml",
		     NAMES "defaults=1,0,0 factor=1 env=0 policy=default runtime=");
	check_loaded(DATA "/renamed-resources.yaml",
		     "count=example.com/vgpu mem=example.com/vgpu-memory percent= "
		     "cores=example.com/vgpu-cores priority=example.com/vgpu-priority "
		     "defaults=2,4000,30 factor=1024 env=1 policy=force runtime=nvidia");
}

static void test_unreadable(void **state)
{
	struct vg_classes classes;
	struct vg_buf complaints;
	struct vg_err err = { 0 };

	(void)state;
	vg_classes_init(&classes);
	vg_buf_init(&complaints, TEXT_MAX);
	assert_int_equal(vg_config_load("/nonexistent/c.yaml", &classes, take, &complaints, &err),
			 -ENOENT);
	assert_string_equal(err.msg,
			    "/nonexistent/c.yaml: cannot be opened: No such file or directory");
	assert_int_equal(complaints.used, 0);
	vg_classes_release(&classes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_values),     cmocka_unit_test(test_errors),
		cmocka_unit_test(test_examples),   cmocka_unit_test(test_loaded),
		cmocka_unit_test(test_unreadable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
