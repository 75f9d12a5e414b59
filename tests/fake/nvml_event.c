/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events. An XID happens when its number is added to the xid= list of a card in the file that
 * VGPU_FAKE_DEVICES names; sets that are registered for it then receive it, once each.
 */
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "nvml_driver.h"

/* How often a waiter looks at the file. */
#define LOOK_NS 20000000l

struct nvmlEventSet_st {
	uint64_t types[FAKE_CARDS_MAX];
	uint32_t seen[FAKE_CARDS_MAX]; /* of the card's list of XIDs */
	bool waiting;
	struct nvmlEventSet_st *next;
};

static struct nvmlEventSet_st *sets;

static bool known(nvmlEventSet_t set)
{
	for (struct nvmlEventSet_st *at = sets; at; at = at->next) {
		if (at == set)
			return true;
	}
	return false;
}

FAKE_NVML(nvmlEventSetCreate, FAKE_INIT, (nvmlEventSet_t * set), (set))
{
	if (!set)
		return NVML_ERROR_INVALID_ARGUMENT;
	*set = vg_new(sizeof(**set));
	(*set)->next = sets;
	sets = *set;
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlEventSetFree, FAKE_INIT, (nvmlEventSet_t set), (set))
{
	struct nvmlEventSet_st **at = &sets;

	if (!known(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (set->waiting)
		return NVML_ERROR_IN_USE;
	while (*at != set)
		at = &(*at)->next;
	*at = set->next;
	free(set);
	return NVML_SUCCESS;
}

FAKE_NVML(nvmlDeviceRegisterEvents, FAKE_INIT,
	  (nvmlDevice_t device, unsigned long long types, nvmlEventSet_t set), (device, types, set))
{
	nvmlReturn_t rc = fake_nvml_check(device);

	if (rc != NVML_SUCCESS)
		return rc;
	if (!known(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	if (types & ~fake_nvml_card(device)->event_types)
		return NVML_ERROR_NOT_SUPPORTED;
	set->types[device->card] |= types;
	/* What happened before does not count. */
	set->seen[device->card] = fake_nvml_card(device)->xids;
	return NVML_SUCCESS;
}

static bool next_event(struct nvmlEventSet_st *set, nvmlEventData_t *data)
{
	for (uint32_t card = 0; card < nvml.machine.cards; card++) {
		const struct fake_card *now = &nvml.machine.card[card];

		if (!(set->types[card] & NVML_EVENT_XID_CRITICAL) || set->seen[card] >= now->xids)
			continue;
		*data = (nvmlEventData_t){
			.device = &nvml.device[card][0],
			.eventType = NVML_EVENT_XID_CRITICAL,
			.eventData = now->xid[set->seen[card]++],
			.gpuInstanceId = 0xffffffff,
			.computeInstanceId = 0xffffffff,
		};
		return true;
	}
	return false;
}

static nvmlReturn_t wait_event(nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms)
{
	uint64_t until_ns = fake_clock_ns() + (uint64_t)timeout_ms * 1000000;
	struct timespec nap = { 0, LOOK_NS };
	nvmlReturn_t rc = NVML_ERROR_TIMEOUT;

	if (!data || !known(set))
		return NVML_ERROR_INVALID_ARGUMENT;
	set->waiting = true;
	for (;;) {
		fake_nvml_reload();
		if (next_event(set, data)) {
			rc = NVML_SUCCESS;
			break;
		}
		if (fake_clock_ns() >= until_ns)
			break;
		pthread_mutex_unlock(&nvml.lock);
		nanosleep(&nap, NULL);
		pthread_mutex_lock(&nvml.lock);
		if (!nvml.inits) {
			rc = NVML_ERROR_UNINITIALIZED;
			break;
		}
	}
	set->waiting = false;
	return rc;
}

FAKE_NVML(nvmlEventSetWait_v2, FAKE_INIT,
	  (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms),
	  (set, data, timeout_ms))
{
	return wait_event(set, data, timeout_ms);
}

FAKE_NVML(nvmlEventSetWait, FAKE_INIT,
	  (nvmlEventSet_t set, nvmlEventData_t *data, unsigned int timeout_ms),
	  (set, data, timeout_ms))
{
	return wait_event(set, data, timeout_ms);
}
