/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names of the driver: cuGetProcAddress(), and the functions that the fake has in name only. The
 * list (cuda_entries.def) has every cu* function that the libcuda.so.1 of CUDA 13.0 exports; one that
 * the fake does not simulate answers CUDA_ERROR_NOT_SUPPORTED.
 */
#include <string.h>

#include "cuda_driver.h"

#define NONE 0
#define PTDS 1
#define PTSZ 2

static CUresult unsupported(const char *symbol)
{
	CUresult rc = fake_enter(symbol, FAKE_INIT);

	if (rc == CUDA_SUCCESS)
		rc = CUDA_ERROR_NOT_SUPPORTED;
	if (fake_trace_on()) {
		struct fake_line line;

		fake_line_begin(&line, symbol);
		fake_line_end(&line, rc);
	}
	fake_leave();
	return rc;
}

/* Their parameters don't matter to a function that reads none; they carry the driver's name for the
 * assembler only, so that the compiler does not compare them with the real declarations. */
#define FAKE_ENTRY(symbol, base, version, flavour)
#define FAKE_STUB(symbol, base, version, flavour)                                                  \
	FAKE_API CUresult stub_of_##symbol(void) __asm__(#symbol);                                 \
	FAKE_API CUresult stub_of_##symbol(void)                                                   \
	{                                                                                          \
		return unsupported(#symbol);                                                       \
	}
#include "cuda_entries.def"
#undef FAKE_ENTRY
#undef FAKE_STUB

#define FAKE_ENTRY(symbol, base, version, flavour)                                                 \
	extern const char address_of_##symbol[] __asm__(#symbol);
#define FAKE_STUB FAKE_ENTRY
#include "cuda_entries.def"
#undef FAKE_ENTRY
#undef FAKE_STUB

/* Rows of one base stand together, oldest first. */
static const struct {
	const char *base;
	int version;
	int flavour;
	const char *address;
} entries[] = {
#define FAKE_ENTRY(symbol, base, version, flavour) { #base, version, flavour, address_of_##symbol },
#define FAKE_STUB                                  FAKE_ENTRY
#include "cuda_entries.def"
#undef FAKE_ENTRY
#undef FAKE_STUB
};

/* CUDA_SUCCESS: the question was one; the answer is in `ret_status`. As measured: a major version that
 * the driver has not heard of and unknown flags are no question; both flags together are the second. */
static CUresult lookup(const char *name, void **pfn, int version, cuuint64_t flags, int *ret_status)
{
	const char *found = NULL, *per_thread = NULL;
	bool known = false, has_per_thread = false;

	if (!name || !pfn || flags > 3 || version / 1000 > fake_cuda_version() / 1000)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < sizeof(entries) / sizeof(entries[0]); i++) {
		bool in_reach =
			entries[i].version <= version && entries[i].version <= fake_cuda_version();

		if (strcmp(entries[i].base, name) != 0)
			continue;
		known = true;
		if (entries[i].flavour != NONE) {
			has_per_thread = true;
			if (in_reach)
				per_thread = entries[i].address;
		} else if (in_reach) {
			found = entries[i].address;
		}
	}
	/* What takes no stream has one form for both; what has two is not replaced by the other. */
	if ((flags & CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM) && has_per_thread)
		found = per_thread;
	*pfn = (void *)(uintptr_t)found;
	*ret_status = found   ? CU_GET_PROC_ADDRESS_SUCCESS
		      : known ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
			      : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuGetProcAddress, FAKE_ANY,
	  (const char *symbol, void **pfn, int version, cuuint64_t flags),
	  (symbol, pfn, version, flags))
{
	int status;
	CUresult rc = lookup(symbol, pfn, version, flags, &status);

	return rc == CUDA_SUCCESS && status ? CUDA_ERROR_NOT_FOUND : rc;
}

FAKE_CUDA(cuGetProcAddress_v2, FAKE_ANY,
	  (const char *symbol, void **pfn, int version, cuuint64_t flags,
	   CUdriverProcAddressQueryResult *status),
	  (symbol, pfn, version, flags, status))
{
	int found;
	CUresult rc = lookup(symbol, pfn, version, flags, &found);

	/* Who can be told why gets no error. */
	if (rc == CUDA_SUCCESS && status)
		*status = found;
	else if (rc == CUDA_SUCCESS && found)
		rc = CUDA_ERROR_NOT_FOUND;
	return rc;
}

/* Private tables of the maker's own libraries, by a number of 16 bytes: the fake has none. */
FAKE_CUDA(cuGetExportTable, FAKE_ANY, (const void **table, const CUuuid *id), (table, id))
{
	if (!table || !id)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_ERROR_INVALID_VALUE;
}
