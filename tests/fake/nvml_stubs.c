/* SPDX-License-Identifier: Apache-2.0 */
/* The functions that the fake has in name only, so that a program finds every name it looks for. */
#include "nvml_driver.h"

static nvmlReturn_t unsupported(const char *symbol)
{
	nvmlReturn_t rc = fake_nvml_enter(symbol, FAKE_INIT);

	if (rc == NVML_SUCCESS)
		rc = NVML_ERROR_NOT_SUPPORTED;
	if (fake_trace_on()) {
		struct fake_line line;

		fake_line_begin(&line, symbol);
		fake_line_end(&line, rc);
	}
	fake_nvml_leave();
	return rc;
}

/* Their parameters don't matter to a function that reads none. */
#define FAKE_STUB(symbol)                                                                          \
	FAKE_API nvmlReturn_t stub_of_##symbol(void) __asm__(#symbol);                             \
	FAKE_API nvmlReturn_t stub_of_##symbol(void)                                               \
	{                                                                                          \
		return unsupported(#symbol);                                                       \
	}
#include "nvml_stubs.def"
