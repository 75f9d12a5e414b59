/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "libvgpu/guest.h"

enum { FLOAT = 0x20, BYTE = 0x01, BC1 = 0x91, BC7 = 0x9d };

static void test_sizes(void **state)
{
	static const struct {
		const char *what;
		CUDA_ARRAY3D_DESCRIPTOR shape;
		unsigned int levels;
		uint64_t kib;
	} table[] = {
		/* What left an H200's memory for these, measured. */
		{ "100 x 100 float4", { 100, 100, 0, FLOAT, 4, 0 }, 1, 256 },
		{ "301 x 301 float4", { 301, 301, 0, FLOAT, 4, 0 }, 1, 2048 },
		{ "904 x 904 float4", { 904, 904, 0, FLOAT, 4, 0 }, 1, 16384 },
		{ "2713 x 2713 float4", { 2713, 2713, 0, FLOAT, 4, 0 }, 1, 118 * 1024 },
		{ "1024 x 1024 float4, all levels", { 1024, 1024, 0, FLOAT, 4, 0 }, 11, 22 * 1024 },
		/* Computed. */
		{ "2048 x 2048 float4", { 2048, 2048, 0, FLOAT, 4, 0 }, 1, 64 * 1024 },
		{ "256 x 256 x 64 float4", { 256, 256, 64, FLOAT, 4, 0 }, 1, 64 * 1024 },
		{ "one row", { 16384, 0, 0, BYTE, 1, 0 }, 1, 128 },
		{ "BC1 is half a byte per texel", { 4096, 4096, 0, BC1, 4, 0 }, 1, 8 * 1024 },
		{ "BC7 is a byte per texel", { 4096, 4096, 0, BC7, 4, 0 }, 1, 16 * 1024 },
		{ "sparse has no memory", { 4096, 4096, 0, FLOAT, 4, CUDA_ARRAY3D_SPARSE }, 1, 0 },
		{ "no width", { 0, 4096, 0, FLOAT, 4, 0 }, 1, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		uint64_t bytes = vg_array_bytes(&table[i].shape, table[i].levels);

		if (bytes != table[i].kib * 1024)
			fail_msg("%s: %llu KiB, not %llu", table[i].what,
				 (unsigned long long)bytes / 1024,
				 (unsigned long long)table[i].kib);
	}
}

/* Absurd shapes are absurdly large, never small by overflow. */
static void test_overflow(void **state)
{
	static const size_t sizes[] = { SIZE_MAX, SIZE_MAX / 2, SIZE_MAX / 4, SIZE_MAX / 16,
					(size_t)1 << 40 };

	(void)state;
	for (size_t i = 0; i < 5; i++) {
		CUDA_ARRAY3D_DESCRIPTOR shape = { sizes[i], sizes[i], sizes[i], FLOAT, 4, 0 };

		assert_true(vg_array_bytes(&shape, 1) >= (uint64_t)1 << 60);
		assert_true(vg_array_bytes(&shape, UINT32_MAX) >= (uint64_t)1 << 60);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_overflow),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
