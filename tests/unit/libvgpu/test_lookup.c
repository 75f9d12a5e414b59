/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every way to a function, preloaded over the fake driver. Ours is recognised by the object that an
 * address lies in.
 */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "libvgpu/cuda_abi.h"
#include "libvgpu/nvml_abi.h"

typedef CUresult (*lookup4)(const char *, void **, int, cuuint64_t);
typedef CUresult (*lookup5)(const char *, void **, int, cuuint64_t, int *);

enum { CALL, ENFORCE, ACCOUNT, VIRTUALISE, GATE };
enum { NONE = 0, LEGACY = 1, PTSZ = 2 };

static const struct row {
	const char *symbol, *base;
	int version, flavour, class;
} rows[] = {
#define VG_CUDA(symbol, base, version, flavour, class, params)                                     \
	{ #symbol, #base, version, flavour, class },
#include "libvgpu/cuda_symbols.def"
#undef VG_CUDA
};

enum { ROWS = sizeof(rows) / sizeof(rows[0]) };

static const char *object_of(void *address)
{
	Dl_info info;
	const char *slash;

	if (!address || !dladdr(address, &info))
		return "nothing";
	slash = strrchr(info.dli_fname, '/');
	return slash ? slash + 1 : info.dli_fname;
}

static int is_ours(void *address)
{
	return strcmp(object_of(address), "libvgpu.so") == 0;
}

static const char *symbol_of(void *address)
{
	Dl_info info;

	return address && dladdr(address, &info) && info.dli_sname ? info.dli_sname : "?";
}

static void *driver;

static int setup(void **state)
{
	(void)state;
	/* Before the driver is there, the default scope has none of its functions. */
	assert_null(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2"));
	assert_non_null(dlerror());
	driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	assert_non_null(driver);
	return 0;
}

static void test_dlsym(void **state)
{
	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		void *p = dlsym(driver, rows[i].symbol);

		if (is_ours(p) != (rows[i].class != CALL))
			fail_msg("dlsym(driver, %s) is in %s", rows[i].symbol, object_of(p));
		if (strcmp(symbol_of(p), rows[i].symbol) != 0)
			fail_msg("dlsym(driver, %s) is %s", rows[i].symbol, symbol_of(p));
	}
	assert_true(is_ours(dlsym(RTLD_DEFAULT, "cuMemAlloc_v2")));
	assert_true(is_ours(dlsym(RTLD_NEXT, "cuMemAlloc_v2")));
	assert_null(dlsym(driver, "cuNoSuchFunction"));
	assert_null(dlsym(driver, "nvmlNoSuchFunction"));
	assert_string_equal(object_of(dlsym(driver, "cuMemcpyHtoD_v2")), "libcuda.so.1");
}

static void test_lookup_of_lookups(void **state)
{
	static const char *const versions[] = { "GLIBC_2.2.5", "GLIBC_2.17", "GLIBC_2.34" };
	void *libc = dlopen("libc.so.6", RTLD_NOW);

	(void)state;
	assert_true(is_ours(dlsym(RTLD_DEFAULT, "dlsym")));
	assert_true(is_ours(dlsym(RTLD_DEFAULT, "dlvsym")));
	assert_true(is_ours(dlsym(libc, "dlsym")));
	for (size_t i = 0; i < 3; i++) {
		void *p = dlvsym(RTLD_DEFAULT, "dlsym", versions[i]);

		assert_true(!p || is_ours(p));
		p = dlvsym(libc, "dlvsym", versions[i]);
		assert_true(!p || is_ours(p));
	}
	assert_non_null(dlvsym(libc, "dlsym", "GLIBC_2.34"));
	/* The same name elsewhere is not ours to replace. */
	assert_string_equal(object_of(dlsym(libc, "open")), "libc.so.6");
	/* Twice the same question, twice the same answer. */
	assert_ptr_equal(dlsym(RTLD_NEXT, "open"), dlsym(RTLD_NEXT, "open"));
	assert_non_null(dlsym(RTLD_NEXT, "open"));
	assert_null(dlsym(RTLD_DEFAULT, "curl_easy_init"));
	assert_null(dlsym(RTLD_DEFAULT, "cudnnCreate"));
}

static void test_proc_address(void **state)
{
	lookup5 get = (lookup5)dlsym(driver, "cuGetProcAddress_v2");
	lookup4 get_old = (lookup4)dlsym(driver, "cuGetProcAddress");

	(void)state;
	for (size_t i = 0; i < ROWS; i++) {
		void *p = NULL, *old = NULL;
		int status = -1;

		assert_int_equal(get(rows[i].base, &p, rows[i].version, (cuuint64_t)rows[i].flavour,
				     &status),
				 CUDA_SUCCESS);
		assert_int_equal(status, CU_GET_PROC_ADDRESS_SUCCESS);
		if (strcmp(symbol_of(p), rows[i].symbol) != 0 ||
		    is_ours(p) != (rows[i].class != CALL))
			fail_msg("%s@%d is %s in %s", rows[i].base, rows[i].version, symbol_of(p),
				 object_of(p));
		assert_int_equal(
			get_old(rows[i].base, &old, rows[i].version, (cuuint64_t)rows[i].flavour),
			CUDA_SUCCESS);
		assert_ptr_equal(p, old);
	}
}

/*
 * The 439 requests of libcudart 13: never a function of another generation or flavour than the driver
 * would have given.
 */
static void test_requests_of_the_runtime(void **state)
{
	static const struct {
		const char *base;
		int version, flags;
	} requests[] = {
#define REQUEST(base, version, flags) { #base, version, flags },
#include "unit/libvgpu/cudart13_requests.def"
#undef REQUEST
	};
	lookup5 get = (lookup5)dlsym(driver, "cuGetProcAddress_v2");
	size_t ours = 0, known = 0;

	(void)state;
	assert_int_equal(sizeof(requests) / sizeof(requests[0]), 439);
	for (size_t i = 0; i < 439; i++) {
		const struct row *best = NULL;
		void *p = NULL;
		CUresult rc = get(requests[i].base, &p, requests[i].version,
				  (cuuint64_t)requests[i].flags, NULL);

		if (rc != CUDA_SUCCESS || !p)
			continue; /* graphics interoperation: the driver may not have it */
		known++;
		/* The driver's choice: the newest generation that is not newer than asked for. */
		for (size_t k = 0; k < ROWS; k++) {
			bool thread = rows[k].flavour == PTSZ;

			if (strcmp(rows[k].base, requests[i].base) != 0 ||
			    rows[k].version > requests[i].version)
				continue;
			if (rows[k].flavour != NONE && thread != (requests[i].flags == 2))
				continue;
			if (!best || rows[k].version >= best->version)
				best = &rows[k];
		}
		if (!is_ours(p))
			continue;
		ours++;
		if (!best || strcmp(symbol_of(p), best->symbol) != 0)
			fail_msg("%s@%d/%d is our %s", requests[i].base, requests[i].version,
				 requests[i].flags, symbol_of(p));
	}
	print_message("%zu of 439 answered, %zu of them by us\n", known, ours);
	assert_true(known > 400);
	assert_in_range(ours, 50, 100);
}

/* cuGetProcAddress asked for itself gives the arity that the version has. */
static void test_itself(void **state)
{
	lookup5 get = (lookup5)dlsym(driver, "cuGetProcAddress_v2");
	void *p;

	(void)state;
	assert_int_equal(get("cuGetProcAddress", &p, 11030, 0, NULL), CUDA_SUCCESS);
	assert_string_equal(symbol_of(p), "cuGetProcAddress");
	assert_true(is_ours(p));
	assert_int_equal(((lookup4)p)("cuMemAlloc", &p, 3020, 0), CUDA_SUCCESS);
	assert_true(is_ours(p));
	assert_int_equal(get("cuGetProcAddress", &p, 12000, 0, NULL), CUDA_SUCCESS);
	assert_string_equal(symbol_of(p), "cuGetProcAddress_v2");
	assert_int_equal(get("cuNoSuchFunction", &p, 12000, 0, NULL), CUDA_ERROR_NOT_FOUND);
	assert_int_equal(get("", &p, 0, 0, NULL), CUDA_ERROR_NOT_FOUND);
}

static void test_nvml(void **state)
{
	void *nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);

	(void)state;
	assert_non_null(nvml);
	assert_true(is_ours(dlsym(nvml, "nvmlDeviceGetMemoryInfo")));
	assert_true(is_ours(dlsym(nvml, "nvmlDeviceGetMemoryInfo_v2")));
	assert_true(is_ours(dlsym(nvml, "nvmlDeviceGetComputeRunningProcesses_v3")));
	assert_false(is_ours(dlsym(nvml, "nvmlDeviceGetName")));
	assert_false(is_ours(dlsym(nvml, "nvmlInit_v2")));
	assert_null(dlsym(nvml, "cuMemAlloc_v2"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dlsym),        cmocka_unit_test(test_lookup_of_lookups),
		cmocka_unit_test(test_proc_address), cmocka_unit_test(test_requests_of_the_runtime),
		cmocka_unit_test(test_itself),       cmocka_unit_test(test_nvml),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
