/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/device/device_test.h"

#include "device/annotation.h"

/* Keys are a contract with other programs: the words themselves, not what our list says. */
static void test_wire_keys(void **state)
{
	static const struct {
		const char *key;
		enum vg_annotation row;
	} rows[] = {
		{ "hami.io/vgpu-node", VG_ANNO_POD_NODE },
		{ "hami.io/vgpu-time", VG_ANNO_POD_TIME },
		{ "hami.io/bind-phase", VG_ANNO_POD_BIND_PHASE },
		{ "hami.io/bind-time", VG_ANNO_POD_BIND_TIME },
		{ "hami.io/vgpu-devices-to-allocate", VG_ANNO_POD_TO_ALLOCATE },
		{ "hami.io/vgpu-devices-allocated", VG_ANNO_POD_ALLOCATED },
		{ "hami.io/vgpu-mig-allocations", VG_ANNO_POD_MIG },
		{ "hami.io/node-scheduler-policy", VG_ANNO_POD_NODE_POLICY },
		{ "hami.io/gpu-scheduler-policy", VG_ANNO_POD_GPU_POLICY },
		{ "hami.io/device-scoring-weights", VG_ANNO_POD_WEIGHTS },
		{ "nvidia.com/use-gputype", VG_ANNO_POD_USE_TYPE },
		{ "nvidia.com/nouse-gputype", VG_ANNO_POD_NOUSE_TYPE },
		{ "nvidia.com/use-gpuuuid", VG_ANNO_POD_USE_UUID },
		{ "nvidia.com/nouse-gpuuuid", VG_ANNO_POD_NOUSE_UUID },
		{ "nvidia.com/use-gpuuid", VG_ANNO_POD_USE_UUID },
		{ "nvidia.com/nouse-gpuuid", VG_ANNO_POD_NOUSE_UUID },
		{ "nvidia.com/vgpu-mode", VG_ANNO_POD_MODE },
		{ "nvidia.com/numa-bind", VG_ANNO_POD_NUMA_BIND },
		{ "hami.io/node-nvidia-register", VG_ANNO_NODE_REGISTER },
		{ "hami.io/node-nvidia-score", VG_ANNO_NODE_SCORE },
		{ "hami.io/node-handshake", VG_ANNO_NODE_HANDSHAKE },
		{ "hami.io/device-cordon", VG_ANNO_NODE_CORDON },
		{ "hami.io/mutex.lock", VG_ANNO_NODE_LOCK },
		{ "hami.io/vgpu-nod", VG_ANNO_COUNT },
		{ "hami.io/vgpu-node2", VG_ANNO_COUNT },
		{ "HAMI.IO/vgpu-node", VG_ANNO_COUNT },
		{ "", VG_ANNO_COUNT },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (vg_annotation_find(rows[i].key) != rows[i].row)
			fail_msg("%s is not found under its row", rows[i].key);
}

static void test_every_row_finds_itself(void **state)
{
	(void)state;
	for (int row = 0; row < VG_ANNO_COUNT; row++) {
		assert_non_null(vg_annotation_key[row]);
		assert_int_equal(vg_annotation_find(vg_annotation_key[row]), row);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_wire_keys),
		cmocka_unit_test(test_every_row_finds_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
