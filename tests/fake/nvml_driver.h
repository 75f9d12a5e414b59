/* SPDX-License-Identifier: Apache-2.0 */
/* Inside the fake libnvidia-ml.so.1. */
#ifndef FAKE_NVML_DRIVER_H
#define FAKE_NVML_DRIVER_H

#include <pthread.h>
#include <stdbool.h>

#include "machine.h"
#include "nvml_more_abi.h"
#include "state.h"
#include "trace.h"

#define FAKE_API __attribute__((visibility("default")))

#define VG_NVML(symbol, class, params) FAKE_API nvmlReturn_t symbol params;
#include "libvgpu/nvml_symbols.def"
#undef VG_NVML

/* A card, or one MIG instance of it. */
struct nvmlDevice_st {
	uint32_t card, mig; /* mig: 0, or number + 1 */
};

struct nvmlGpuInstance_st {
	uint32_t card, mig;
};

struct nvmlComputeInstance_st {
	uint32_t card, mig;
};

struct fake_nvml {
	pthread_mutex_t lock;
	uint32_t inits;
	struct fake_machine machine;
	struct fake_state *state;
	struct nvmlDevice_st device[FAKE_CARDS_MAX][FAKE_MIG_MAX + 1];
	struct nvmlGpuInstance_st gpu_instance[FAKE_CARDS_MAX][FAKE_MIG_MAX + 1];
	struct nvmlComputeInstance_st compute_instance[FAKE_CARDS_MAX][FAKE_MIG_MAX + 1];
};

extern struct fake_nvml nvml;

#define FAKE_ANY  0
#define FAKE_INIT 1

/* Takes the lock and reads the description of the host again if its file has changed. */
nvmlReturn_t fake_nvml_enter(const char *symbol, int need);
void fake_nvml_leave(void);
/* For those who wait inside a call. */
void fake_nvml_reload(void);

#define FAKE_NVML(symbol, need, params, names)                                                     \
	FAKE_API nvmlReturn_t symbol params;                                                       \
	static nvmlReturn_t body_##symbol params;                                                  \
	FAKE_API nvmlReturn_t symbol params                                                        \
	{                                                                                          \
		nvmlReturn_t rc = fake_nvml_enter(#symbol, need);                                  \
                                                                                                   \
		if (rc == NVML_SUCCESS)                                                            \
			rc = body_##symbol names;                                                  \
		if (fake_trace_on()) {                                                             \
			struct fake_line line;                                                     \
                                                                                                   \
			fake_line_begin(&line, #symbol);                                           \
			FAKE_NAMES(names)                                                          \
			fake_line_end(&line, rc);                                                  \
		}                                                                                  \
		fake_nvml_leave();                                                                 \
		return rc;                                                                         \
	}                                                                                          \
	static nvmlReturn_t body_##symbol params
#define FAKE_NAMES(names)    FAKE_NAMES_OPEN names
#define FAKE_NAMES_OPEN(...) FAKE_EACH(&line __VA_OPT__(, ) __VA_ARGS__)

/* NVML_SUCCESS, or what a call on this handle must return. A lost card answers nothing. */
nvmlReturn_t fake_nvml_check(nvmlDevice_t device);

static inline const struct fake_card *fake_nvml_card(nvmlDevice_t device)
{
	return &nvml.machine.card[device->card];
}

static inline const struct fake_mig *fake_nvml_mig(nvmlDevice_t device)
{
	return device->mig ? &fake_nvml_card(device)->mig[device->mig - 1] : NULL;
}

static inline uint32_t fake_nvml_unit(nvmlDevice_t device)
{
	return fake_unit_of(device->card, device->mig);
}

/* "00000000:06:00.0" */
void fake_nvml_bus_id(const struct fake_card *card, char *id, size_t room);

#endif
