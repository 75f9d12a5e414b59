/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include "device/pod.h"

static void test_limit_before_request(void **state)
{
	struct vg_resource resources[] = {
		{ "nvidia.com/gpu", "1", "2" },
		{ "nvidia.com/gpumem", NULL, "8192" },
		{ "nvidia.com/gpucores", "30", NULL },
		{ "", "9", "9" },
	};
	const struct vg_container container = { .resources = resources,
						.resource_count = COUNT(resources) };
	const struct vg_container empty = { 0 };

	(void)state;
	assert_string_equal(vg_container_resource(&container, "nvidia.com/gpu"), "1");
	assert_string_equal(vg_container_resource(&container, "nvidia.com/gpumem"), "8192");
	assert_string_equal(vg_container_resource(&container, "nvidia.com/gpucores"), "30");
	assert_null(vg_container_resource(&container, "nvidia.com/gpum"));
	assert_null(vg_container_resource(&container, ""));
	assert_null(vg_container_resource(&empty, "nvidia.com/gpu"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_limit_before_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
