/* SPDX-License-Identifier: Apache-2.0 */
/* Which cards a process sees, in which order, and what they say of themselves. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "base/str.h"
#include "cuda_driver.h"

/* ---- CUDA_VISIBLE_DEVICES ---- */

static void add_device(uint32_t card, uint32_t mig)
{
	if (fake.devices == FAKE_CARDS_MAX)
		return;
	fake.device[fake.devices++] = (struct fake_device){
		.unit = fake_unit_of(card, mig),
		.card = card,
		.mig = mig,
	};
}

/* CUDA numbers the fastest card first, unless it is told to go by bus address; NVML always goes by
 * bus address, which is the order in which the machine lists its cards. */
static void order_cards(uint32_t *order)
{
	const char *setting = getenv("CUDA_DEVICE_ORDER");
	bool by_bus = setting && strcmp(setting, "PCI_BUS_ID") == 0;

	for (uint32_t i = 0; i < fake.machine.cards; i++) {
		uint32_t at = i;

		while (!by_bus && at > 0 &&
		       fake.machine.card[order[at - 1]].sms < fake.machine.card[i].sms) {
			order[at] = order[at - 1];
			at--;
		}
		order[at] = i;
	}
}

/* A MIG card shows CUDA one instance at most, and none while there are other cards. */
static void all_visible(const uint32_t *order)
{
	for (uint32_t i = 0; i < fake.machine.cards; i++) {
		if (!fake.machine.card[order[i]].mig_enabled)
			add_device(order[i], 0);
	}
	for (uint32_t i = 0; i < fake.machine.cards && !fake.devices; i++) {
		if (fake.machine.card[order[i]].migs)
			add_device(order[i], 1);
	}
}

static bool has_prefix(const char *text, struct vg_span prefix)
{
	return prefix.size >= 5 && strlen(text) >= prefix.size &&
	       strncasecmp(text, prefix.data, prefix.size) == 0;
}

static bool visible_item(const uint32_t *order, struct vg_span item)
{
	uint64_t index;

	if (vg_parse_u64(item, 0, UINT32_MAX, &index, NULL) == 0) {
		if (index >= fake.machine.cards || fake.machine.card[order[index]].mig_enabled)
			return false;
		add_device(order[index], 0);
		return true;
	}
	for (uint32_t i = 0; i < fake.machine.cards; i++) {
		const struct fake_card *card = &fake.machine.card[i];

		for (uint32_t m = 0; m < card->migs; m++) {
			if (has_prefix(card->mig[m].uuid, item)) {
				add_device(i, m + 1);
				return true;
			}
		}
		if (!card->mig_enabled && has_prefix(card->uuid, item)) {
			add_device(i, 0);
			return true;
		}
	}
	return false;
}

void fake_devices_choose(void)
{
	const char *setting = getenv("CUDA_VISIBLE_DEVICES");
	uint32_t order[FAKE_CARDS_MAX] = { 0 };
	struct vg_span rest, item;

	order_cards(order);
	if (!setting) {
		all_visible(order);
		return;
	}
	rest = VG_SPAN(setting);
	while (vg_cut(&rest, ',', &item)) {
		/* The first name that says nothing ends the list. */
		if (!visible_item(order, vg_trim(item)))
			return;
		for (uint32_t i = 0; i + 1 < fake.devices; i++) {
			if (fake.device[i].unit == fake.device[fake.devices - 1].unit) {
				fake.devices = 0; /* named twice: nothing is visible */
				return;
			}
		}
		/* Only one instance of a MIG card can be used. */
		if (fake.device[fake.devices - 1].mig)
			return;
	}
}

struct fake_device *fake_device(CUdevice ordinal)
{
	return ordinal >= 0 && (uint32_t)ordinal < fake.devices ? &fake.device[ordinal] : NULL;
}

/* ---- what they say ---- */

static const struct fake_card *card_of(const struct fake_device *device)
{
	return &fake.machine.card[device->card];
}

static const struct fake_mig *mig_of(const struct fake_device *device)
{
	return device->mig ? &card_of(device)->mig[device->mig - 1] : NULL;
}

FAKE_CUDA(cuDeviceGetCount, FAKE_INIT, (int *count), (count))
{
	if (!count)
		return CUDA_ERROR_INVALID_VALUE;
	*count = (int)fake.devices;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGet, FAKE_INIT, (CUdevice * device, int ordinal), (device, ordinal))
{
	if (!device)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*device = ordinal;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetName, FAKE_INIT, (char *name, int length, CUdevice ordinal),
	  (name, length, ordinal))
{
	struct fake_device *device = fake_device(ordinal);
	const struct fake_mig *mig;

	if (!name || length <= 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	mig = mig_of(device);
	snprintf(name, (size_t)length, "%s%s%s", card_of(device)->name, mig ? " MIG " : "",
		 mig ? mig->profile : "");
	return CUDA_SUCCESS;
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* "GPU-90706cfe-6140-…" to sixteen bytes */
static void uuid_bytes(const char *text, CUuuid *ret)
{
	unsigned int digits = 0;

	memset(ret, 0, sizeof(*ret));
	for (text = strchr(text, '-'); text && *text && digits < 32; text++) {
		int value = hex_value(*text);

		if (value < 0)
			continue;
		ret->bytes[digits / 2] = (unsigned char)(ret->bytes[digits / 2] << 4 | value);
		digits++;
	}
}

/* The first form knows nothing of MIG and names the card. */
FAKE_CUDA(cuDeviceGetUuid, FAKE_INIT, (CUuuid * uuid, CUdevice ordinal), (uuid, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	uuid_bytes(card_of(device)->uuid, uuid);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetUuid_v2, FAKE_INIT, (CUuuid * uuid, CUdevice ordinal), (uuid, ordinal))
{
	struct fake_device *device = fake_device(ordinal);
	const struct fake_mig *mig;

	if (!uuid)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	mig = mig_of(device);
	uuid_bytes(mig ? mig->uuid : card_of(device)->uuid, uuid);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceTotalMem_v2, FAKE_INIT, (size_t * bytes, CUdevice ordinal), (bytes, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*bytes = fake_unit_capacity(&fake.machine, device->unit);
	return CUDA_SUCCESS;
}

/* Counted in 32 bits: a card of 4 GiB and more answers the most that can be said. */
FAKE_CUDA(cuDeviceTotalMem, FAKE_INIT, (unsigned int *bytes, CUdevice ordinal), (bytes, ordinal))
{
	struct fake_device *device = fake_device(ordinal);
	uint64_t capacity;

	if (!bytes)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	capacity = fake_unit_capacity(&fake.machine, device->unit);
	*bytes = capacity > UINT32_MAX ? UINT32_MAX : (unsigned int)capacity;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceComputeCapability, FAKE_INIT, (int *major, int *minor, CUdevice ordinal),
	  (major, minor, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!major || !minor)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*major = (int)card_of(device)->cc_major;
	*minor = (int)card_of(device)->cc_minor;
	return CUDA_SUCCESS;
}

/* The constants of the ABI that the answers below go by; CUDA 13.0 ends at 145. */
#define ATTRIBUTE_END 146

static int attribute_value(const struct fake_device *device, CUdevice_attribute attribute)
{
	const struct fake_card *card = card_of(device);

	switch (attribute) {
	case 1: /* threads per block */
	case 2: /* block x */
	case 3: /* block y */
		return 1024;
	case 4: /* block z */
		return 64;
	case 5: /* grid x */
		return 2147483647;
	case 6: /* grid y */
	case 7: /* grid z */
		return 65535;
	case 8: /* shared memory per block */
		return 49152;
	case 9: /* constant memory */
		return 65536;
	case 10: /* warp */
		return 32;
	case 11: /* pitch */
		return 2147483647;
	case 12: /* registers per block */
		return 65536;
	case 13: /* clock, kHz */
		return 1980000;
	case 14: /* texture alignment */
		return 512;
	case 15:  /* overlap */
	case 19:  /* can map host memory */
	case 31:  /* concurrent kernels */
	case 32:  /* ECC */
	case 41:  /* unified addressing */
	case 78:  /* stream priorities */
	case 79:  /* global L1 */
	case 80:  /* local L1 */
	case 83:  /* managed memory */
	case 89:  /* concurrent managed access */
	case 90:  /* compute preemption */
	case 91:  /* host pointer for registered memory */
	case 92:  /* stream memory operations */
	case 93:  /* 64-bit stream memory operations */
	case 94:  /* wait value NOR */
	case 95:  /* cooperative launch */
	case 96:  /* cooperative multi-device launch */
	case 99:  /* host register */
	case 102: /* virtual memory management */
	case 103: /* POSIX file descriptors */
	case 115: /* memory pools */
	case 116: /* GPUDirect RDMA */
		return 1;
	case 16:
		return (int)fake_unit_sms(&fake.machine, device->unit);
	case 33:
		return (int)card->pci_bus;
	case 34:
		return (int)card->pci_device;
	case 36: /* memory clock, kHz */
		return 3201000;
	case 37: /* bus width */
		return 6144;
	case 38: /* L2 */
		return 62914560;
	case 39: /* threads per SM */
		return (int)card->threads_per_sm;
	case 40: /* copy engines */
		return 3;
	case 50:
		return (int)card->pci_domain;
	case 51: /* pitch alignment of textures */
		return 32;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		return (int)card->cc_major;
	case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		return (int)card->cc_minor;
	case 81: /* shared memory per SM */
		return 233472;
	case 82: /* registers per SM */
		return 65536;
	case 97: /* opt-in shared memory per block */
		return 232448;
	case 106: /* blocks per SM */
		return 32;
	case 119: /* pool handle types: file descriptors */
		return 1;
	default:
		return 0;
	}
}

FAKE_CUDA(cuDeviceGetAttribute, FAKE_INIT,
	  (int *value, CUdevice_attribute attribute, CUdevice ordinal), (value, attribute, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!value || attribute <= 0 || attribute >= ATTRIBUTE_END)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*value = attribute_value(device, attribute);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetProperties, FAKE_INIT, (CUdevprop * prop, CUdevice ordinal), (prop, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!prop)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	*prop = (CUdevprop){
		.maxThreadsPerBlock = attribute_value(device, 1),
		.maxThreadsDim = { 1024, 1024, 64 },
		.maxGridSize = { 2147483647, 65535, 65535 },
		.sharedMemPerBlock = attribute_value(device, 8),
		.totalConstantMemory = attribute_value(device, 9),
		.SIMDWidth = attribute_value(device, 10),
		.memPitch = attribute_value(device, 11),
		.regsPerBlock = attribute_value(device, 12),
		.clockRate = attribute_value(device, 13),
		.textureAlign = attribute_value(device, 14),
	};
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetPCIBusId, FAKE_INIT, (char *id, int length, CUdevice ordinal),
	  (id, length, ordinal))
{
	struct fake_device *device = fake_device(ordinal);

	if (!id || length < 13)
		return CUDA_ERROR_INVALID_VALUE;
	if (!device)
		return CUDA_ERROR_INVALID_DEVICE;
	snprintf(id, (size_t)length, "%04X:%02X:%02X.0", card_of(device)->pci_domain,
		 card_of(device)->pci_bus, card_of(device)->pci_device);
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetByPCIBusId, FAKE_INIT, (CUdevice * ordinal, const char *id), (ordinal, id))
{
	if (!ordinal || !id)
		return CUDA_ERROR_INVALID_VALUE;
	for (uint32_t i = 0; i < fake.devices; i++) {
		const struct fake_card *card = card_of(&fake.device[i]);
		char forms[3][32];

		snprintf(forms[0], sizeof(forms[0]), "%04x:%02x:%02x.0", card->pci_domain,
			 card->pci_bus, card->pci_device);
		snprintf(forms[1], sizeof(forms[1]), "%08x:%02x:%02x.0", card->pci_domain,
			 card->pci_bus, card->pci_device);
		snprintf(forms[2], sizeof(forms[2]), "%02x:%02x.0", card->pci_bus,
			 card->pci_device);
		for (int form = 0; form < 3; form++) {
			if (vg_strcaseeq(forms[form], id)) {
				*ordinal = (CUdevice)i;
				return CUDA_SUCCESS;
			}
		}
	}
	return CUDA_ERROR_INVALID_DEVICE;
}

FAKE_CUDA(cuDeviceGetLuid, FAKE_INIT, (char *luid, unsigned int *mask, CUdevice ordinal),
	  (luid, mask, ordinal))
{
	if (!luid || !mask)
		return CUDA_ERROR_INVALID_VALUE;
	/* Windows only. */
	return fake_device(ordinal) ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_DEVICE;
}

FAKE_CUDA(cuDeviceGetTexture1DLinearMaxWidth, FAKE_INIT,
	  (size_t * width, CUarray_format format, unsigned int channels, CUdevice ordinal),
	  (width, format, channels, ordinal))
{
	if (!width || !channels)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*width = 1u << 28;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetExecAffinitySupport, FAKE_INIT,
	  (int *supported, CUexecAffinityType type, CUdevice ordinal), (supported, type, ordinal))
{
	if (!supported)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_device(ordinal))
		return CUDA_ERROR_INVALID_DEVICE;
	*supported = 0; /* only under MPS */
	return CUDA_SUCCESS;
}

/* ---- one card to another ---- */

static bool linked(const struct fake_device *a, const struct fake_device *b)
{
	const int *links = card_of(a)->links;

	for (uint32_t i = 0; i < FAKE_LINKS_MAX; i++) {
		if (links[i] == (int)b->card ||
		    (links[i] == FAKE_LINK_SWITCH && card_of(b)->links[0] == FAKE_LINK_SWITCH))
			return true;
	}
	return false;
}

static bool can_access(const struct fake_device *a, const struct fake_device *b)
{
	/* Instances of MIG cards reach nobody; without NVLink it takes a PCIe path that does not
	 * cross between CPUs. */
	if (a == b || a->mig || b->mig || a->card == b->card)
		return false;
	return linked(a, b) || card_of(a)->ancestor[b->card] < 50;
}

FAKE_CUDA(cuDeviceCanAccessPeer, FAKE_INIT, (int *can, CUdevice from, CUdevice to), (can, from, to))
{
	if (!can)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_device(from) || !fake_device(to))
		return CUDA_ERROR_INVALID_DEVICE;
	*can = can_access(fake_device(from), fake_device(to));
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuDeviceGetP2PAttribute, FAKE_INIT,
	  (int *value, CUdevice_P2PAttribute attribute, CUdevice from, CUdevice to),
	  (value, attribute, from, to))
{
	struct fake_device *a = fake_device(from), *b = fake_device(to);

	if (!value || attribute < 1 || attribute > 5)
		return CUDA_ERROR_INVALID_VALUE;
	if (!a || !b || a == b)
		return CUDA_ERROR_INVALID_DEVICE;
	switch (attribute) {
	case 1: /* performance rank: 0 is best */
		*value = linked(a, b) ? 0 : 1;
		break;
	case 3: /* native atomics */
		*value = linked(a, b);
		break;
	case 5: /* only the first pair of each kind */
		*value = 0;
		break;
	default: /* access, arrays */
		*value = can_access(a, b);
		break;
	}
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxEnablePeerAccess, FAKE_CURRENT, (CUcontext peer, unsigned int flags), (peer, flags))
{
	struct CUctx_st *context = fake_current();

	if (flags)
		return CUDA_ERROR_INVALID_VALUE;
	if (!fake_is(peer, FAKE_CONTEXT) || peer == context)
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!can_access(&fake.device[context->device], &fake.device[peer->device]))
		return CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (context->peers >> peer->device & 1)
		return CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	context->peers |= 1ull << peer->device;
	return CUDA_SUCCESS;
}

FAKE_CUDA(cuCtxDisablePeerAccess, FAKE_CURRENT, (CUcontext peer), (peer))
{
	struct CUctx_st *context = fake_current();

	if (!fake_is(peer, FAKE_CONTEXT))
		return CUDA_ERROR_INVALID_CONTEXT;
	if (!(context->peers >> peer->device & 1))
		return CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	context->peers &= ~(1ull << peer->device);
	return CUDA_SUCCESS;
}
