/* SPDX-License-Identifier: Apache-2.0 */
/* The region is a contract with processes that we don't build: every offset, as numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "vgpu/region.h"

#define BASE(field) offsetof(struct vgpu_region, field)
#define SLOT(field) offsetof(struct vgpu_region_slot, field)

static void test_layout_1_2(void **state)
{
	static const struct {
		const char *what;
		size_t is, must;
	} table[] = {
		{ "region", sizeof(struct vgpu_region), 2008952 },
		{ "magic", BASE(magic), 0 },
		{ "major", BASE(major), 4 },
		{ "minor", BASE(minor), 8 },
		{ "sm_init", BASE(sm_init), 12 },
		{ "owner_pid", BASE(owner_pid), 16 },
		{ "sem", BASE(sem), 24 },
		{ "device_count", BASE(device_count), 56 },
		{ "uuid", BASE(uuid), 64 },
		{ "limit", BASE(limit), 1600 },
		{ "sm_limit", BASE(sm_limit), 1728 },
		{ "slot", BASE(slot), 1856 },
		{ "slot_count", BASE(slot_count), 2008896 },
		{ "utilization_switch", BASE(utilization_switch), 2008900 },
		{ "recent_kernel", BASE(recent_kernel), 2008904 },
		{ "priority", BASE(priority), 2008908 },
		{ "last_kernel_time", BASE(last_kernel_time), 2008912 },
		{ "sem_postinit", BASE(sem_postinit), 2008920 },
		{ "slot size", sizeof(struct vgpu_region_slot), 1960 },
		{ "slot pid", SLOT(pid), 0 },
		{ "slot host_pid", SLOT(host_pid), 4 },
		{ "slot used", SLOT(used), 8 },
		{ "slot monitor_used", SLOT(monitor_used), 1032 },
		{ "slot util", SLOT(util), 1160 },
		{ "slot status", SLOT(status), 1928 },
		{ "slot sequence", SLOT(sequence), 1936 },
		{ "memory size", sizeof(struct vgpu_region_memory), 64 },
		{ "memory context", offsetof(struct vgpu_region_memory, context), 0 },
		{ "memory module", offsetof(struct vgpu_region_memory, module), 8 },
		{ "memory data", offsetof(struct vgpu_region_memory, data), 16 },
		{ "memory offset", offsetof(struct vgpu_region_memory, offset), 24 },
		{ "memory total", offsetof(struct vgpu_region_memory, total), 32 },
		{ "util size", sizeof(struct vgpu_region_util), 48 },
		{ "util sm", offsetof(struct vgpu_region_util, sm), 16 },
	};

	(void)state;
	assert_int_equal(VGPU_REGION_MAGIC, 19920718);
	assert_int_equal(VGPU_REGION_BASE_BYTES, sizeof(struct vgpu_region));
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].is != table[i].must)
			fail_msg("%s: %zu, must be %zu", table[i].what, table[i].is, table[i].must);
}

/* Ours: other versions of our own programs read it. */
static void test_extension(void **state)
{
	static const struct {
		const char *what;
		size_t is, must;
	} table[] = {
		{ "ext offset", VGPU_REGION_EXT_OFFSET, 2011136 },
		{ "ext size", sizeof(struct vgpu_region_ext), 86400 },
		{ "mutex", offsetof(struct vgpu_region_ext, mutex), 64 },
		{ "message", offsetof(struct vgpu_region_ext, message), 128 },
		{ "device", offsetof(struct vgpu_region_ext, device), 384 },
		{ "slot", offsetof(struct vgpu_region_ext, slot), 384 + 16 * 1280 },
		{ "device size", sizeof(struct vgpu_region_device), 1280 },
		{ "device used", offsetof(struct vgpu_region_device, used), 0 },
		{ "device physical", offsetof(struct vgpu_region_device, physical), 64 },
		{ "device budget_ns", offsetof(struct vgpu_region_device, budget_ns), 128 },
		{ "device busy_count", offsetof(struct vgpu_region_device, busy_count), 192 },
		{ "slot ext size", sizeof(struct vgpu_region_slot_ext), 64 },
	};

	(void)state;
	assert_true(VGPU_REGION_EXT_OFFSET % 4096 == 0);
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++)
		if (table[i].is != table[i].must)
			fail_msg("%s: %zu, must be %zu", table[i].what, table[i].is, table[i].must);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_layout_1_2),
		cmocka_unit_test(test_extension),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
