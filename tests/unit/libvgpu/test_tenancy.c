/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "libvgpu/tenancy.h"

enum { US = 7, THEM = 8 };

static struct vg_tenant row(uint64_t process, uint64_t container, uint64_t start, uint64_t end)
{
	struct vg_tenant t = { .magic = 0x76677074656e6132ull,
			       .process = process,
			       .container = container,
			       .updated_ns = 10000 };

	vg_tenant_note(&t, start, end);
	return t;
}

static void test_part(void **state)
{
	const uint32_t all = VG_TENANT_WHOLE;
	struct vg_tenant rows[4] = { 0 };

	(void)state;
	/* Ours is [1000, 2000], looked at at 10000. */
#define PART(n) vg_tenant_part(rows, (n), 1, US, 1000, 2000, 10000)
	assert_int_equal(PART(0), all);
	rows[0] = row(1, US, 1000, 2000); /* our own row */
	assert_int_equal(PART(1), all);
	rows[1] = row(2, THEM, 0, 3000); /* all the time */
	assert_int_equal(PART(2), all / 2);
	rows[1] = row(2, THEM, 1500, 3000); /* half of it */
	assert_int_equal(PART(2), all * 3 / 4);
	rows[2] = row(3, THEM + 1, 1500, 3000); /* and a third tenant then */
	assert_in_range(PART(3), all * 2 / 3 - 1, all * 2 / 3 + 1);
	rows[2] = row(3, US, 1500, 3000); /* a process of ours: two of three slices are */
	assert_in_range(PART(3), all * 5 / 6 - 1, all * 5 / 6 + 1);
	rows[1] = row(2, THEM, 3000, 4000); /* elsewhere */
	assert_int_equal(PART(2), all);
	/* Under way since 1200, expected until 1400 or for ever. */
	rows[1] = row(2, THEM, 0, 0);
	rows[1].open_ns = 1200;
	rows[1].until_ns = 1400;
	assert_in_range(PART(2), all * 9 / 10 - 1, all * 9 / 10 + 1);
	rows[1].until_ns = UINT64_MAX;
	assert_in_range(PART(2), all * 6 / 10 - 1, all * 6 / 10 + 1);
}

/* Whatever a row says, the answer stays between nothing and all, and sense is not read into nonsense. */
static void test_rows_may_lie(void **state)
{
	static struct vg_tenant rows[VG_TENANT_ROWS];
	uint32_t r = 3;

	(void)state;
	rows[0] = row(2, THEM, 1000, 2000);
	rows[0].magic = 1;
	assert_int_equal(vg_tenant_part(rows, 1, 1, US, 1000, 2000, 10000), VG_TENANT_WHOLE);
	rows[0] = row(2, THEM, 1000, 2000);
	rows[0].updated_ns = 10000 + 3000000000ull; /* from the future */
	assert_int_equal(vg_tenant_part(rows, 1, 1, US, 1000, 2000, 10000), VG_TENANT_WHOLE);
	rows[0].updated_ns = 10000;
	assert_int_equal(vg_tenant_part(rows, 1, 1, US, 9000000000, 9000001000, 9000002000),
			 VG_TENANT_WHOLE); /* long silent */
	for (int i = 0; i < 200; i++) {
		unsigned char *bytes = (unsigned char *)rows;

		for (size_t k = 0; k < sizeof(rows); k++) {
			r = r * 1664525u + 1013904223u;
			bytes[k] = (unsigned char)(r >> 24);
		}
		for (int k = 0; k < VG_TENANT_ROWS; k++) {
			rows[k].magic = 0x76677074656e6132ull;
			rows[k].updated_ns = 10000;
			rows[k].count = rows[k].count % (VG_TENANT_INTERVALS + 4);
		}
		assert_in_range(vg_tenant_part(rows, VG_TENANT_ROWS, 1, US, 1000, 2000, 10000), 0,
				VG_TENANT_WHOLE);
	}
}

static void test_two_containers_through_a_file(void **state)
{
	char folder[] = "/tmp/vgpu-tenants-XXXXXX", name[96];
	static struct vg_tenancy a, b;

	(void)state;
	assert_non_null(mkdtemp(folder));
	setenv("VGPU_TENANT_FOLDER", folder, 1);
	vg_tenancy_open(&a, "GPU-1", 111, 5);
	vg_tenancy_open(&b, "GPU-1", 222, 6);
	assert_true(a.fd >= 0 && b.fd >= 0);
	assert_int_not_equal(a.row, b.row);
	vg_tenancy_publish(&a, 1000, 2000, 3000);
	assert_int_equal(vg_tenancy_part(&a, 1000, 2000, 3000), VG_TENANT_WHOLE);
	assert_false(a.others);
	vg_tenancy_publish(&b, 1500, 2500, 3000);
	assert_int_equal(vg_tenancy_part(&a, 1000, 2000, 3000), VG_TENANT_WHOLE * 3 / 4);
	assert_int_equal(vg_tenancy_part(&b, 1500, 2500, 3000), VG_TENANT_WHOLE * 3 / 4);
	assert_true(a.others);
	/* The dead leave their row to the next. */
	vg_tenancy_abandon(&a);
	vg_tenancy_open(&a, "GPU-1", 333, 7);
	assert_int_equal(a.row, 0);
	vg_tenancy_abandon(&a);
	vg_tenancy_abandon(&b);
	/* No folder, a link in its place: alone, and nothing is made. */
	snprintf(name, sizeof(name), "%s/vgpu-GPU-1.tenants", folder);
	unlink(name);
	assert_int_equal(symlink("/tmp/vgpu-tenants-target", name), 0);
	vg_tenancy_open(&a, "GPU-1", 111, 5);
	assert_int_equal(a.fd, -1);
	assert_int_equal(vg_tenancy_part(&a, 1000, 2000, 3000), VG_TENANT_WHOLE);
	assert_int_equal(access("/tmp/vgpu-tenants-target", F_OK), -1);
	vg_tenancy_open(&a, "../../etc/passwd", 111, 5);
	assert_int_equal(a.fd, -1);
	unlink(name);
	rmdir(folder);
	vg_tenancy_open(&a, "GPU-1", 111, 5);
	assert_int_equal(a.fd, -1);
	assert_int_equal(access(folder, F_OK), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_rows_may_lie),
		cmocka_unit_test(test_two_containers_through_a_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
