/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated host is made of: the cards, their sizes, how they are joined. It comes from
 * VGPU_FAKE_DEVICES (README.md has the grammar) and holds no counters: those are in state.h.
 */
#ifndef FAKE_MACHINE_H
#define FAKE_MACHINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

#define FAKE_CARDS_MAX 16u
/* NVIDIA cards split into at most seven instances. */
#define FAKE_MIG_MAX   7u
/* Memory and time are kept per unit: a whole card, or one MIG instance of a card. */
#define FAKE_UNITS_MAX (FAKE_CARDS_MAX * (FAKE_MIG_MAX + 1u))
#define FAKE_LINKS_MAX 18u
#define FAKE_XID_MAX   32u
#define FAKE_UUID_SIZE 64u
#define FAKE_NAME_SIZE 96u

/* Where an NVLink ends. Values 0 … FAKE_CARDS_MAX-1 are cards. */
#define FAKE_LINK_NONE   (-1)
#define FAKE_LINK_SWITCH (-2)

struct fake_mig {
	char profile[16]; /* "1g.18gb" */
	char uuid[FAKE_UUID_SIZE];
	uint64_t mem_bytes;
	uint32_t slices; /* the digit before "g" */
	uint32_t sms;
	uint32_t gpu_instance;
	uint32_t placement; /* first memory slice */
};

struct fake_card {
	char name[FAKE_NAME_SIZE];
	char uuid[FAKE_UUID_SIZE];
	char serial[32];
	uint32_t pci_domain, pci_bus, pci_device;
	uint32_t pci_id; /* device id << 16 | vendor id */
	uint64_t mem_bytes;
	uint64_t reserved_bytes; /* taken by firmware and ECC, never free */
	uint32_t sms;
	uint32_t threads_per_sm;
	uint32_t cc_major, cc_minor;
	int numa; /* -1: the host does not say */
	int links[FAKE_LINKS_MAX];
	uint32_t ancestor[FAKE_CARDS_MAX]; /* nvmlGpuTopologyLevel_t to each other card */
	bool mig_capable;
	bool mig_enabled;
	uint32_t migs;
	struct fake_mig mig[FAKE_MIG_MAX];
	uint64_t event_types;
	uint32_t xids;
	uint64_t xid[FAKE_XID_MAX]; /* in the order they happened; the list only grows */
	uint32_t power_mw;
	uint32_t power_limit_mw;
	uint32_t temperature_c;
	bool lost;               /* fell off the bus */
	bool no_memory_info;     /* unified memory: NVML does not say */
	bool no_process_samples; /* NVML does not say which process used the card */

	/* How the simulation behaves on this card. */
	uint64_t context_bytes; /* what a context takes */
	uint64_t
		unlisted_bytes; /* what it takes besides, without NVML naming it under the process */
	uint64_t kernel_ns;     /* a kernel whose name says nothing */
	uint64_t event_ns;      /* an event record */
	uint64_t switch_ns;     /* from one process to another */
	uint64_t slice_ns;      /* a process's turn while others wait too */
	uint64_t copy_bytes_per_us;
};

/* Which process ids NVML's lists name. */
enum fake_pids {
	FAKE_PIDS_OWN,    /* as the process sees itself */
	FAKE_PIDS_OFFSET, /* another PID namespace: pid_offset is added */
	FAKE_PIDS_NONE,   /* the lists are empty */
};

struct fake_machine {
	char driver_version[32];
	char nvml_version[32];
	int cuda_version; /* 13000 */
	enum fake_pids pids;
	uint32_t pid_offset;
	uint32_t cards;
	struct fake_card card[FAKE_CARDS_MAX];
};

/*
 * Reads a description: one directive per line or per ';'. Fills `machine` only on success. -EINVAL
 * with the line and the word at fault.
 */
int fake_machine_parse(struct fake_machine *machine, const char *text, struct vg_err *err);

/* From VGPU_FAKE_DEVICES: a description, or the path of a file with one; one H200 when unset. */
int fake_machine_load(struct fake_machine *machine, struct vg_err *err);

/* The unit of a whole card (mig = 0) or of its instance number mig-1. */
static inline uint32_t fake_unit_of(uint32_t card, uint32_t mig)
{
	return card * (FAKE_MIG_MAX + 1u) + mig;
}

/* What programs can take of a unit. */
uint64_t fake_unit_capacity(const struct fake_machine *machine, uint32_t unit);
uint32_t fake_unit_sms(const struct fake_machine *machine, uint32_t unit);

static inline const struct fake_card *fake_unit_card(const struct fake_machine *machine,
						     uint32_t unit)
{
	return &machine->card[unit / (FAKE_MIG_MAX + 1u)];
}

#endif
