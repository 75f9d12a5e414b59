/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include <errno.h>

#include "base/limits.h"
#include "device/quota.h"

#define NONE VG_QUOTA_NO_LIMIT

static int decode(struct world *world, const char *text, struct vg_quota_info *ret_quota,
		  struct vg_err *err)
{
	json_t *object = json_from(text);
	int r = vg_quota_decode(object, &world->classes, &world->arena, ret_quota, err);

	json_decref(object);
	return r;
}

#define QUOTA(hard)                                                                                \
	"{'kind':'ResourceQuota','metadata':{'namespace':'ns','name':'q','uid':'u',"               \
	"'resourceVersion':'7'},'spec':{'hard':{" hard "}}}"

static void test_hard(void **state)
{
	static const struct {
		const char *hard;
		int64_t mem;   /* of NVIDIA */
		int64_t cores; /* of NVIDIA */
		int64_t mlu;   /* memory of a class whose unit is 256 MiB */
		const char *problem;
	} rows[] = {
		{ "", NONE, NONE, NONE, NULL },
		{ "'limits.nvidia.com/gpumem':'10000'", 10000, NONE, NONE, NULL },
		{ "'limits.nvidia.com/gpumem':10000", 10000, NONE, NONE, NULL },
		{ "'limits.nvidia.com/gpucores':'200'", NONE, 200, NONE, NULL },
		{ "'limits.nvidia.com/gpumem':'10k','limits.nvidia.com/gpucores':'0'", 10000, 0,
		  NONE, NULL },
		{ "'limits.nvidia.com/gpumem':'0'", 0, NONE, NONE, NULL },
		{ "'limits.nvidia.com/gpumem':null", NONE, NONE, NONE, NULL },
		/* Kubernetes' own. */
		{ "'requests.nvidia.com/gpumem':'5','requests.nvidia.com/gpu':'1','pods':'3',"
		  "'limits.cpu':'4','limits.nvidia.com/gpu':'2','nvidia.com/gpumem':'1'",
		  NONE, NONE, NONE, NULL },
		{ "'limits.mlu.com/mem':'10','limits.mlu.com/cores':'5'", NONE, NONE, 2560, NULL },
		{ "'limits.mlu.com/mem':'36028797018963968'", NONE, NONE, NONE, NULL },
		/* Whole numbers, however they are written. */
		{ "'limits.nvidia.com/gpumem':'2000m','limits.nvidia.com/gpucores':'1.0e2'", 2, 100,
		  NONE, NULL },
		/* What is none limits nothing; the rest counts. */
		{ "'limits.nvidia.com/gpumem':'1500m','limits.nvidia.com/gpucores':'50'", NONE, 50,
		  NONE,
		  "limits.nvidia.com/gpumem \"1500m\" is not a whole number, and is not looked "
		  "at" },
		{ "'limits.nvidia.com/gpumem':'-1'", NONE, NONE, NONE, "is negative" },
		{ "'limits.nvidia.com/gpumem':'ten'", NONE, NONE, NONE, "is not a quantity" },
		{ "'limits.nvidia.com/gpumem':'10E'", NONE, NONE, NONE, "is too large" },
		{ "'limits.nvidia.com/gpumem':'x','limits.nvidia.com/gpucores':'0.5'", NONE, NONE,
		  NONE,
		  "limits.nvidia.com/gpumem \"x\" is not a quantity, and is not looked at; "
		  "limits.nvidia.com/gpucores \"0.5\" is not a whole number" },
		/* Bytes. */
		{ "'limits.nvidia.com/gpumem':'10Gi'", 10737418240, NONE, NONE,
		  "limits.nvidia.com/gpumem is a count of 1 MiB each, not of bytes; if "
		  "10737418240 bytes are meant, write 10240" },
		{ "'limits.mlu.com/mem':'10Gi'", NONE, NONE, 10737418240 * 256, "write 40" },
	};
	struct world world;

	(void)state;
	world_init(&world);
	world_add_class(&world, "mlu", 256);
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = vg_printf(QUOTA("%s"), rows[i].hard);
		struct vg_quota_info quota;
		struct vg_err err = { 0 };

		if (decode(&world, text, &quota, &err) < 0)
			fail_msg("%s: %s", text, err.msg);
		assert_string_equal(quota.namespace, "ns");
		assert_string_equal(quota.name, "q");
		assert_string_equal(quota.uid, "u");
		assert_int_equal(quota.resource_version, 7);
		if (quota.hard[0].mem_mib != rows[i].mem || quota.hard[0].cores != rows[i].cores ||
		    quota.hard[1].mem_mib != rows[i].mlu)
			fail_msg("%s: %lld %lld %lld", text, (long long)quota.hard[0].mem_mib,
				 (long long)quota.hard[0].cores, (long long)quota.hard[1].mem_mib);
		assert_int_equal(quota.hard[2].mem_mib, NONE);
		assert_int_equal(quota.problem != NULL, rows[i].problem != NULL);
		if (rows[i].problem && !strstr(quota.problem, rows[i].problem))
			fail_msg("%s: %s", text, quota.problem);
		free(text);
	}
	world_release(&world);
}

static void test_scopes(void **state)
{
	static const char *const rows[][2] = {
		{ "'limits.nvidia.com/gpumem':'5'},'scopes':['NotTerminating']", "scopes" },
		{ "'limits.nvidia.com/gpumem':'5'},'scopeSelector':{'matchExpressions':[]}",
		  "scopes" },
		{ "'limits.nvidia.com/gpumem':'5'},'scopes':[],'scopeSelector':null", NULL },
		/* Nothing of ours in it. */
		{ "'pods':'5'},'scopes':['BestEffort']", NULL },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		char *text = vg_printf("{'metadata':{'namespace':'ns','name':'q'},'spec':{'hard':{"
				       "%s}}",
				       rows[i][0]);
		struct vg_quota_info quota;

		assert_int_equal(decode(&world, text, &quota, NULL), 0);
		assert_int_equal(quota.problem != NULL, rows[i][1] != NULL);
		if (rows[i][1])
			assert_non_null(strstr(quota.problem, rows[i][1]));
		free(text);
	}
	world_release(&world);
}

static void test_refused(void **state)
{
	static const struct {
		const char *text;
		int code;
		const char *part;
	} rows[] = {
		{ "[]", -EINVAL, "an array instead of an object" },
		{ "{'kind':'Pod','metadata':{'namespace':'ns','name':'q'}}", -EINVAL,
		  "kind is \"Pod\"" },
		{ "{'kind':'ResourceQuota'}", -EINVAL, "metadata is missing" },
		{ "{'metadata':{'name':'q'}}", -EINVAL, "metadata.namespace is" },
		{ "{'metadata':{'namespace':'ns'}}", -EINVAL, "metadata.name or" },
		{ "{'metadata':{'namespace':'ns','name':'q'},'spec':[]}", -EINVAL,
		  "ResourceQuota ns/q: spec is an array" },
		{ "{'metadata':{'namespace':'ns','name':'q'},'spec':{'hard':3}}", -EINVAL,
		  "spec.hard is a number" },
		{ QUOTA("'limits.nvidia.com/gpumem':true"), -EINVAL,
		  "spec.hard: limits.nvidia.com/gpumem is a boolean, not a quantity" },
		{ "{'metadata':{'namespace':'ns','name':'q'},'spec':{'scopes':1,'hard':{"
		  "'limits.nvidia.com/gpumem':1}}}",
		  -EINVAL, "spec.scopes is a number" },
	};
	struct world world;

	(void)state;
	world_init(&world);
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct vg_quota_info quota = { .name = "untouched" };
		struct vg_err err = { 0 };

		assert_failed(decode(&world, rows[i].text, &quota, &err), rows[i].code, err,
			      rows[i].part);
		assert_string_equal(quota.name, "untouched");
		assert_int_equal(decode(&world, rows[i].text, &quota, NULL), rows[i].code);
	}
	world_release(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hard),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
