/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first CUDA call, fork, and the end. Steps of a start, each allowed to fail without failing the
 * program's call:
 *
 *	read_environment -> region_open -> region_slot_claim -> identify (devices) -> ready
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "libvgpu/guest.h"
#include "region/text.h"
#include "vgpu/environment.h"

enum start_state { START_NEVER, START_RUNNING, START_REGION, START_READY, START_FAILED };

struct vg_state vg = { .region = { .fd = -1, .slot = REGION_NO_SLOT } };

static uint32_t region_state; /* START_NEVER, _RUNNING, _REGION or _FAILED */
static uint32_t device_state; /* START_NEVER, _RUNNING, _READY or _FAILED */
static uint32_t fork_handler;
static __thread unsigned int depth; /* > 0: inside a hook of ours */

/* ---- environment ------------------------------------------------------------------------------- */

static const char *variable(const char *name, int device)
{
	char text[64];

	if (device < 0)
		return getenv(name);
	snprintf(text, sizeof(text), "%s_%d", name, device);
	return getenv(text);
}

/*
 * The limit of a device from its own variable or the common one. A value that cannot be read is not
 * "no limit": nothing may be allocated, the region says so, and the log names the variable.
 */
static void read_memory(struct region_setup *setup, int device)
{
	const char *text = variable(VGPU_ENV_MEMORY_LIMIT, device);
	int own = device, e;
	uint64_t bytes = 0;

	if (!text || !*text) {
		text = variable(VGPU_ENV_MEMORY_LIMIT, -1);
		own = -1;
	}
	if (!text || !*text)
		return;
	setup->memory_set[device] = true;
	e = region_text_bytes(text, &bytes);
	if (e == 0) {
		setup->limit[device] = bytes;
		return;
	}
	setup->limit[device] = 1;
	setup->state[device] |= VGPU_DEVICE_LIMIT_INVALID;
	if (own >= 0 || device == 0)
		vg_log(VG_ERROR,
		       "%s%s%.*d='%.40s' is no size (digits, then K, M, G or T): no memory of the "
		       "device will be given until it is corrected",
		       VGPU_ENV_MEMORY_LIMIT, own >= 0 ? "_" : "", own >= 0 ? 1 : 0,
		       own >= 0 ? own : 0, text);
}

static void read_share(struct region_setup *setup, int device)
{
	const char *text = variable(VGPU_ENV_SM_LIMIT, device);
	int own = device;
	uint64_t percent = 0;

	if (!text || !*text) {
		text = variable(VGPU_ENV_SM_LIMIT, -1);
		own = -1;
	}
	if (!text || !*text)
		return;
	setup->sm_set[device] = true;
	if (region_text_percent(text, &percent) == 0) {
		setup->sm_limit[device] = percent > 100 ? 100 : percent;
		return;
	}
	setup->sm_limit[device] = 1;
	setup->state[device] |= VGPU_DEVICE_SM_INVALID;
	if (own >= 0 || device == 0)
		vg_log(VG_ERROR,
		       "%s%s%.*d='%.40s' is no percentage: the device's time is held to 1 %% until "
		       "it is corrected",
		       VGPU_ENV_SM_LIMIT, own >= 0 ? "_" : "", own >= 0 ? 1 : 0, own >= 0 ? own : 0,
		       text);
}

static bool is_true(const char *name)
{
	const char *text = getenv(name);

	return text && (strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0);
}

static void read_environment(struct region_setup *setup)
{
	const char *text;
	uint64_t priority;

	memset(setup, 0, sizeof(*setup));
	for (int d = 0; d < VGPU_REGION_DEVICES; d++) {
		setup->sm_limit[d] = 100;
		read_memory(setup, d);
		read_share(setup, d);
	}
	setup->priority = 1;
	text = getenv(VGPU_ENV_PRIORITY);
	if (text && *text) {
		if (region_text_percent(text, &priority) == 0 && priority <= INT32_MAX)
			setup->priority = (int32_t)priority;
		else
			vg_log(VG_ERROR, "%s='%.40s' is no number: priority 1 applies",
			       VGPU_ENV_PRIORITY, text);
	}
	text = getenv(VGPU_ENV_UTILIZATION_POLICY);
	vg.policy = VG_POLICY_DEFAULT;
	if (text && strcasecmp(text, "force") == 0)
		vg.policy = VG_POLICY_FORCE;
	else if (text && strcasecmp(text, "disable") == 0)
		vg.policy = VG_POLICY_DISABLE;
	else if (text && *text && strcasecmp(text, "default") != 0)
		vg_log(VG_ERROR, "%s='%.40s' is not default, force or disable: default applies",
		       VGPU_ENV_UTILIZATION_POLICY, text);
	vg.oversubscribe = is_true(VGPU_ENV_OVERSUBSCRIBE);
	vg.charge_host = is_true(VGPU_ENV_CHARGE_HOST);
}

/* ---- fork and end ------------------------------------------------------------------------------ */

/* In the child of a fork(): a process of its own, that has not started yet. */
static void forked(void)
{
	region_abandon(&vg.region);
	memset(&vg, 0, sizeof(vg));
	vg.region.fd = -1;
	vg.region.slot = REGION_NO_SLOT;
	vg_table_reset();
	vg_pools_reset();
	vg_contexts_reset();
	vg_limiter_reset();
	__atomic_store_n(&device_state, START_NEVER, __ATOMIC_RELEASE);
	__atomic_store_n(&region_state, START_NEVER, __ATOMIC_RELEASE);
	depth = 0;
}

/* At a normal end the slot is given back at once; every other end is seen by the next who looks. */
__attribute__((destructor)) static void ended(void)
{
	if (__atomic_load_n(&region_state, __ATOMIC_ACQUIRE) == START_REGION &&
	    vg.region.pid == (int32_t)getpid())
		region_slot_release(&vg.region);
}

/* ---- start ---------------------------------------------------------------------------------------- */

/* True for the one thread that runs the step; the others wait until it is through. */
static bool begin(uint32_t *state)
{
	uint32_t now = START_NEVER;

	if (__atomic_compare_exchange_n(state, &now, START_RUNNING, false, __ATOMIC_ACQUIRE,
					__ATOMIC_ACQUIRE))
		return true;
	while (now == START_RUNNING) {
		struct timespec nap = { 0, 50000 };

		nanosleep(&nap, NULL);
		now = __atomic_load_n(state, __ATOMIC_ACQUIRE);
	}
	return false;
}

static void start_region(bool with_slot)
{
	struct region_fault fault = { "" };
	struct region_setup setup;
	const char *path = getenv(VGPU_ENV_REGION);
	uint32_t no = 0;
	int e;

	read_environment(&setup);
	if (!path || !*path)
		path = VGPU_REGION_DEFAULT_PATH;
	e = region_open(&vg.region, path, &setup, &fault);
	if (e < 0) {
		vg_log(VG_ERROR, "no shared region, no limits: %s", fault.text);
		__atomic_store_n(&region_state, START_FAILED, __ATOMIC_RELEASE);
		return;
	}
	if (e > 0)
		vg_log(VG_ERROR, "shared region: %s", fault.text);
	for (int d = 0; d < VGPU_REGION_DEVICES; d++)
		if (setup.memory_set[d] && setup.limit[d] != region_limit(&vg.region, d))
			vg_log(VG_WARNING,
			       "device %d: the region's memory limit of %llu bytes stands, the "
			       "environment says %llu",
			       d, (unsigned long long)region_limit(&vg.region, d),
			       (unsigned long long)setup.limit[d]);
	if (with_slot)
		region_slot_claim(&vg.region);
	if (__atomic_compare_exchange_n(&fork_handler, &no, 1u, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED))
		(void)pthread_atfork(NULL, NULL, forked);
	__atomic_store_n(&region_state, START_REGION, __ATOMIC_RELEASE);
}

static void uuid_text(const CUuuid *uuid, const char *prefix, char *to, size_t size)
{
	const unsigned char *b = uuid->bytes;

	snprintf(to, size,
		 "%s-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x", prefix,
		 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12],
		 b[13], b[14], b[15]);
}

/* Index in the region of a card's UUID, or -1. */
static int index_by_uuid(const CUuuid *uuid)
{
	static const char *const prefixes[] = { "GPU", "MIG" };
	char text[VGPU_REGION_UUID];

	for (size_t p = 0; p < 2; p++) {
		uuid_text(uuid, prefixes[p], text, sizeof(text));
		for (int d = 0; d < VGPU_REGION_DEVICES; d++)
			if (strncmp(vg.region.base->uuid[d], text, VGPU_REGION_UUID) == 0)
				return d;
	}
	return -1;
}

static bool get_uuid(CUdevice device, CUuuid *ret)
{
	CUresult rc = vg_cuda.cuDeviceGetUuid_v2 ? vg_cuda.cuDeviceGetUuid_v2(ret, device)
						 : REAL(cuDeviceGetUuid, ret, device);

	return rc == CUDA_SUCCESS;
}

/*
 * Which device of the region each CUDA ordinal is. Both programs and the driver may reorder and hide
 * devices (CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER), so identity is the UUID. The list of UUIDs comes
 * from NVML once per container; a device that NVML does not list (a MIG slice, no NVML at all) keeps its
 * ordinal as index.
 */
static void identify(int count)
{
	CUuuid uuid;
	bool listed = false;

	for (int i = 0; i < count; i++) {
		vg.index[i] = (int8_t)(i < VGPU_REGION_DEVICES ? i : VGPU_REGION_DEVICES - 1);
		if (!get_uuid(i, &uuid))
			continue;
		if (index_by_uuid(&uuid) < 0 && !listed) {
			listed = true;
			vg_nvml_identify();
		}
		if (index_by_uuid(&uuid) >= 0)
			vg.index[i] = (int8_t)index_by_uuid(&uuid);
	}
	for (int i = 0; i < count; i++) {
		struct vgpu_region_device *device = &vg.region.ext->device[vg.index[i]];
		size_t bytes = 0;
		uint64_t limit = region_limit(&vg.region, vg.index[i]);

		if (REAL(cuDeviceTotalMem_v2, &bytes, i) != CUDA_SUCCESS)
			continue;
		vg.physical[vg.index[i]] = bytes;
		__atomic_store_n(&device->physical, bytes, __ATOMIC_RELAXED);
		if (limit > bytes) {
			__atomic_fetch_or(&device->state, VGPU_DEVICE_LIMIT_OVER_CARD,
					  __ATOMIC_RELAXED);
			vg_log(VG_WARNING,
			       "device %d: the limit of %llu bytes is more than the card's %zu",
			       vg.index[i], (unsigned long long)limit, bytes);
		}
	}
}

static void start_devices(void)
{
	int count = 0;

	/* Fails until the program's cuInit: then this was no start. */
	if (REAL(cuDeviceGetCount, &count) != CUDA_SUCCESS) {
		__atomic_store_n(&device_state, START_NEVER, __ATOMIC_RELEASE);
		return;
	}
	if (count > VG_ORDINALS)
		count = VG_ORDINALS;
	if (vg.region.slot == REGION_NO_SLOT)
		region_slot_claim(&vg.region);
	identify(count);
	vg.single_device = count == 1;
	vg.ordinals = count;
	vg_limiter_reset();
	__atomic_store_n(&device_state, START_READY, __ATOMIC_RELEASE);
	vg_log(VG_INFO, "started: %d devices, slot %d, limit of device 0 %llu bytes, share %llu %%",
	       count, vg.region.slot, (unsigned long long)vg.region.base->limit[0],
	       (unsigned long long)vg.region.base->sm_limit[0]);
}

static void ensure_region(bool with_slot)
{
	if (__atomic_load_n(&region_state, __ATOMIC_ACQUIRE) != START_REGION &&
	    begin(&region_state)) {
		depth++; /* our own calls pass straight through */
		start_region(with_slot);
		depth--;
	}
}

static bool ready_slow(void)
{
	if (!vg_cuda_available(false))
		return false;
	ensure_region(true);
	if (__atomic_load_n(&region_state, __ATOMIC_ACQUIRE) != START_REGION)
		return false;
	if (begin(&device_state)) {
		depth++;
		start_devices();
		depth--;
	}
	return __atomic_load_n(&device_state, __ATOMIC_ACQUIRE) == START_READY;
}

bool vg_enter(void)
{
	if (UNLIKELY(depth))
		return false;
	if (UNLIKELY(__atomic_load_n(&device_state, __ATOMIC_ACQUIRE) != START_READY) &&
	    !ready_slow())
		return false;
	depth++;
	return true;
}

void vg_leave(void)
{
	depth--;
}

bool vg_enter_nvml(void)
{
	if (UNLIKELY(depth) || !vg_nvml_available(false))
		return false;
	ensure_region(false);
	if (__atomic_load_n(&region_state, __ATOMIC_ACQUIRE) != START_REGION)
		return false;
	depth++;
	return true;
}

void vg_driver_started(void)
{
	if (vg_enter())
		vg_leave();
}

/* ---- small questions of every hook ------------------------------------------------------------- */

static uint32_t context_epoch = 1;

static __thread struct {
	struct vg_where where;
	uint32_t epoch;
} last;

void vg_forget_contexts(void)
{
	__atomic_fetch_add(&context_epoch, 1u, __ATOMIC_RELEASE);
}

bool vg_current(struct vg_where *where)
{
	uint32_t epoch = __atomic_load_n(&context_epoch, __ATOMIC_ACQUIRE);
	CUcontext context = NULL;

	if (REAL(cuCtxGetCurrent, &context) != CUDA_SUCCESS || !context)
		return false;
	if (LIKELY(last.where.context == context && last.epoch == epoch)) {
		*where = last.where;
		return true;
	}
	where->context = context;
	if (REAL(cuCtxGetDevice, &where->device) != CUDA_SUCCESS)
		return false;
	where->index = vg_index_of(where->device);
	if (where->index < 0)
		return false;
	last.where = *where;
	last.epoch = epoch;
	return true;
}

void vg_gate(void)
{
	struct vgpu_region_slot *slot;

	if (LIKELY(!vg_suspended()))
		return;
	slot = &vg.region.base->slot[vg.region.slot];
	__atomic_store_n(&slot->status, VGPU_SLOT_SUSPENDED, __ATOMIC_RELEASE);
	while (vg_suspended()) {
		struct timespec nap = { 0, 10000000 };

		nanosleep(&nap, NULL);
	}
	__atomic_store_n(&slot->status, VGPU_SLOT_RUNNING, __ATOMIC_RELEASE);
}

void vg_container_view(int index, uint64_t *total, uint64_t *free_bytes, uint64_t *used)
{
	uint64_t limit = region_limit(&vg.region, index), now, rest;

	if (!limit)
		return;
	now = region_used(&vg.region, index);
	if (limit < *total || vg.oversubscribe)
		*total = limit;
	rest = now < *total ? *total - now : 0;
	if (rest < *free_bytes || vg.oversubscribe)
		*free_bytes = rest;
	if (used)
		*used = *total - rest;
}

int vg_reserve(int index, enum region_kind kind, uint64_t bytes, const char *what)
{
	if (LIKELY(region_reserve(&vg.region, index, kind, bytes) == 0))
		return 0;
	/* Pools keep what their program has freed: correct their charges, then decide. */
	if (vg_pools_refresh() && region_reserve(&vg.region, index, kind, bytes) == 0)
		return 0;
	vg_log(VG_ERROR,
	       "device %d: %s of %llu bytes refused: %llu of %llu in use by the container", index,
	       what, (unsigned long long)bytes, (unsigned long long)region_used(&vg.region, index),
	       (unsigned long long)region_limit(&vg.region, index));
	return -ENOMEM;
}
