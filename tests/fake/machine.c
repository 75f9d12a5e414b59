/* SPDX-License-Identifier: Apache-2.0 */
#include "machine.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/num.h"
#include "base/str.h"

#define MIB                   (1ull << 20)
#define DESCRIPTION_BYTES_MAX (256u << 10)

/* nvmlGpuTopologyLevel_t; written out since the parser shall not need the NVML declarations. */
enum {
	TOPOLOGY_INTERNAL = 0,
	TOPOLOGY_SINGLE = 10,
	TOPOLOGY_MULTIPLE = 20,
	TOPOLOGY_HOSTBRIDGE = 30,
	TOPOLOGY_NODE = 40,
	TOPOLOGY_SYSTEM = 50,
	TOPOLOGY_DEFAULT = 0xffff, /* decided once all cards are known */
};

struct model {
	const char *key;
	const char *name;
	uint64_t mem_bytes, reserved_bytes, context_bytes;
	uint32_t sms, threads_per_sm, cc_major, cc_minor;
	uint32_t pci_id, links, power_limit_mw;
	uint64_t event_types;
	bool mig_capable, no_memory_info;
};

/* The H200 row was read off a real host; the others are the makers' published figures. */
static const struct model models[] = {
	{ "h200", "NVIDIA H200", 150754820096, 644939776, 518 * MIB, 132, 2048, 9, 0, 0x233510de,
	  18, 700000, 65439, true, false },
	{ "h100", "NVIDIA H100 80GB HBM3", 81559 * MIB, 616 * MIB, 518 * MIB, 132, 2048, 9, 0,
	  0x233010de, 18, 700000, 65439, true, false },
	{ "a100", "NVIDIA A100-SXM4-40GB", 40960 * MIB, 448 * MIB, 411 * MIB, 108, 2048, 8, 0,
	  0x20b010de, 12, 400000, 65439, true, false },
	{ "l4", "NVIDIA L4", 23034 * MIB, 485 * MIB, 250 * MIB, 58, 1536, 8, 9, 0x27b810de, 0,
	  72000, 65439, false, false },
	{ "t4", "Tesla T4", 15360 * MIB, 428 * MIB, 103 * MIB, 40, 1024, 7, 5, 0x1eb810de, 0, 70000,
	  65439, false, false },
	/* Memory shared with the host: NVML answers NOT_SUPPORTED. */
	{ "gb10", "NVIDIA GB10", 122570 * MIB, 0, 180 * MIB, 48, 1536, 12, 1, 0x2e1210de, 0, 140000,
	  65439, false, true },
};

struct parser {
	struct fake_machine *machine;
	unsigned line;
	/* Of the card being described. */
	uint32_t count;
	bool named_uuid, named_pci, named_serial;
	struct fake_card *card;
	struct vg_err *err;
};

static int complain(const struct parser *p, const char *what, struct vg_span word)
{
	return vg_fail(p->err, EINVAL, "fake devices: line %u: %s: \"%.*s\"", p->line, what,
		       (int)word.size, word.data);
}

static int number(const struct parser *p, struct vg_span value, uint64_t max, uint64_t *ret)
{
	if (vg_parse_u64(value, 0, max, ret, NULL) < 0)
		return complain(p, "not a number in range", value);
	return 0;
}

static int number32(const struct parser *p, struct vg_span value, uint32_t max, uint32_t *ret)
{
	uint64_t wide = 0;
	int rc = number(p, value, max, &wide);

	if (rc == 0)
		*ret = (uint32_t)wide;
	return rc;
}

static int text_into(const struct parser *p, struct vg_span value, char *target, size_t room)
{
	if (!value.size || value.size >= room)
		return complain(p, "empty or too long", value);
	memcpy(target, value.data, value.size);
	target[value.size] = 0;
	return 0;
}

static int bytes_of_mib(const struct parser *p, struct vg_span value, uint64_t *ret)
{
	uint64_t mib = 0;
	int rc = number(p, value, 64u << 20, &mib);

	if (rc == 0)
		*ret = mib * MIB;
	return rc;
}

/* Colour of a card that nobody named: stable, and different in its first digits, since
 * CUDA_VISIBLE_DEVICES matches prefixes. */
static void default_uuid(char *target, const char *kind, uint32_t card, uint32_t mig)
{
	char seed[64];
	unsigned long long a, b;

	snprintf(seed, sizeof(seed), "fake card %u instance %u", card, mig);
	a = vg_hash(seed, strlen(seed));
	b = vg_hash(seed, strlen(seed) - 1) ^ (a << 7) ^ mig;
	snprintf(target, FAKE_UUID_SIZE, "%s-%08x-%04x-%04x-%04x-%012llx", kind,
		 (unsigned)(a >> 32), (unsigned)(a >> 16) & 0xffffu, (unsigned)a & 0xffffu,
		 (unsigned)(b >> 48) & 0xffffu, b & 0xffffffffffffull);
}

static void set_model(struct fake_card *card, const struct model *model)
{
	vg_copy(card->name, sizeof(card->name), model->name);
	card->mem_bytes = model->mem_bytes;
	card->reserved_bytes = model->reserved_bytes;
	card->context_bytes = model->context_bytes;
	card->sms = model->sms;
	card->threads_per_sm = model->threads_per_sm;
	card->cc_major = model->cc_major;
	card->cc_minor = model->cc_minor;
	card->pci_id = model->pci_id;
	card->power_limit_mw = model->power_limit_mw;
	card->event_types = model->event_types;
	card->mig_capable = model->mig_capable;
	card->no_memory_info = model->no_memory_info;
	for (uint32_t i = 0; i < FAKE_LINKS_MAX; i++)
		card->links[i] = i < model->links ? FAKE_LINK_SWITCH : FAKE_LINK_NONE;
}

static void card_defaults(struct fake_card *card)
{
	*card = (struct fake_card){
		.numa = -1,
		.power_mw = 95000,
		.temperature_c = 36,
		.kernel_ns = 5000,
		.event_ns = 1000, /* measured: a pair costs 2 us of a card's time */
		.slice_ns = 2000000,
		.copy_bytes_per_us = 20000, /* 20 GB/s, PCIe 4 */
	};
	set_model(card, &models[0]);
	for (uint32_t i = 0; i < FAKE_CARDS_MAX; i++)
		card->ancestor[i] = TOPOLOGY_DEFAULT;
}

static int parse_model(struct parser *p, struct vg_span value)
{
	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		if (vg_span_eq(value, models[i].key)) {
			set_model(p->card, &models[i]);
			return 0;
		}
	}
	return complain(p, "no such model (h200 h100 a100 l4 t4 gb10)", value);
}

static int hex_digits(struct vg_span value, uint32_t *ret)
{
	uint32_t sum = 0;

	if (!value.size || value.size > 8)
		return -EINVAL;
	for (size_t i = 0; i < value.size; i++) {
		char c = value.data[i];
		uint32_t digit;

		if (c >= '0' && c <= '9')
			digit = (uint32_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			digit = (uint32_t)(c - 'a') + 10;
		else if (c >= 'A' && c <= 'F')
			digit = (uint32_t)(c - 'A') + 10;
		else
			return -EINVAL;
		sum = sum << 4 | digit;
	}
	*ret = sum;
	return 0;
}

/* domain:bus:device or domain:bus:device.0, hexadecimal */
static int parse_pci(struct parser *p, struct vg_span value)
{
	struct vg_span rest = value, domain, bus, device;

	if (value.size > 2 && memcmp(value.data + value.size - 2, ".0", 2) == 0)
		rest.size -= 2;
	if (!vg_cut(&rest, ':', &domain) || !vg_cut(&rest, ':', &bus) ||
	    !vg_cut(&rest, ':', &device) || rest.data || hex_digits(domain, &p->card->pci_domain) ||
	    hex_digits(bus, &p->card->pci_bus) || hex_digits(device, &p->card->pci_device))
		return complain(p, "not domain:bus:device", value);
	p->named_pci = true;
	return 0;
}

static int parse_cc(struct parser *p, struct vg_span value)
{
	struct vg_span rest = value, major, minor;

	if (!vg_cut(&rest, '.', &major) || !vg_cut(&rest, '.', &minor) || rest.data)
		return complain(p, "not major.minor", value);
	if (number32(p, major, 99, &p->card->cc_major) < 0)
		return -EINVAL;
	return number32(p, minor, 99, &p->card->cc_minor);
}

/* "off", "switch:18", or "1:4,2:4": four links to card 1, four to card 2 */
static int parse_nvlink(struct parser *p, struct vg_span value)
{
	struct vg_span rest = value, item;
	uint32_t next = 0;

	for (uint32_t i = 0; i < FAKE_LINKS_MAX; i++)
		p->card->links[i] = FAKE_LINK_NONE;
	if (vg_span_eq(value, "off"))
		return 0;
	while (vg_cut(&rest, ',', &item)) {
		struct vg_span parts = item, peer, count;
		uint32_t links = 0, card = 0;
		int end = FAKE_LINK_SWITCH;

		if (!vg_cut(&parts, ':', &peer) || !vg_cut(&parts, ':', &count) || parts.data)
			return complain(p, "not peer:links", item);
		if (!vg_span_eq(peer, "switch")) {
			if (number32(p, peer, FAKE_CARDS_MAX - 1, &card) < 0)
				return -EINVAL;
			end = (int)card;
		}
		if (number32(p, count, FAKE_LINKS_MAX, &links) < 0)
			return -EINVAL;
		if (next + links > FAKE_LINKS_MAX)
			return complain(p, "more than 18 links", value);
		while (links--)
			p->card->links[next++] = end;
	}
	return 0;
}

static int topology_level(struct vg_span word, uint32_t *ret)
{
	static const struct {
		const char *word;
		uint32_t level;
	} levels[] = {
		{ "internal", TOPOLOGY_INTERNAL }, { "single", TOPOLOGY_SINGLE },
		{ "multiple", TOPOLOGY_MULTIPLE }, { "hostbridge", TOPOLOGY_HOSTBRIDGE },
		{ "node", TOPOLOGY_NODE },         { "system", TOPOLOGY_SYSTEM },
	};

	for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
		if (vg_span_eq(word, levels[i].word)) {
			*ret = levels[i].level;
			return 0;
		}
	}
	return -EINVAL;
}

/* one level for all other cards, or "1:single,2:system" */
static int parse_ancestor(struct parser *p, struct vg_span value)
{
	struct vg_span rest = value, item;
	uint32_t level;

	if (topology_level(value, &level) == 0) {
		for (uint32_t i = 0; i < FAKE_CARDS_MAX; i++)
			p->card->ancestor[i] = level;
		return 0;
	}
	while (vg_cut(&rest, ',', &item)) {
		struct vg_span parts = item, peer, word;
		uint32_t card = 0;

		if (!vg_cut(&parts, ':', &peer) || !vg_cut(&parts, ':', &word) || parts.data ||
		    topology_level(word, &level))
			return complain(p, "not card:level", item);
		if (number32(p, peer, FAKE_CARDS_MAX - 1, &card) < 0)
			return -EINVAL;
		p->card->ancestor[card] = level;
	}
	return 0;
}

/* "off", "capable", "on" (no instance yet), or "1g.18gb,2g.35gb" with "*n" for n of a kind */
static int parse_mig(struct parser *p, struct vg_span value)
{
	struct vg_span rest = value, item;
	struct fake_card *card = p->card;
	uint32_t placement = 0;

	card->mig_capable = !vg_span_eq(value, "off");
	card->mig_enabled = false;
	card->migs = 0;
	if (vg_span_eq(value, "off") || vg_span_eq(value, "capable"))
		return 0;
	card->mig_enabled = true;
	if (vg_span_eq(value, "on"))
		return 0;
	while (vg_cut(&rest, ',', &item)) {
		struct vg_span parts = item, profile, repeat, shape, slices, size;
		uint32_t copies = 1, slice_count = 0;
		uint64_t gib = 0;

		vg_cut(&parts, '*', &profile);
		if (vg_cut(&parts, '*', &repeat) && number32(p, repeat, FAKE_MIG_MAX, &copies) < 0)
			return -EINVAL;
		shape = profile;
		if (!vg_cut(&shape, '.', &slices) || !vg_cut(&shape, '.', &size) ||
		    slices.size < 2 || slices.data[slices.size - 1] != 'g' || size.size < 3 ||
		    memcmp(size.data + size.size - 2, "gb", 2) != 0)
			return complain(p, "not a profile such as 1g.18gb", profile);
		slices.size--;
		size.size -= 2;
		if (number32(p, slices, FAKE_MIG_MAX, &slice_count) < 0 ||
		    number(p, size, 1024, &gib) < 0)
			return -EINVAL;
		while (copies--) {
			struct fake_mig *mig = &card->mig[card->migs];

			if (card->migs == FAKE_MIG_MAX || placement + slice_count > FAKE_MIG_MAX)
				return complain(p, "more than seven slices", value);
			*mig = (struct fake_mig){
				.mem_bytes = gib << 30,
				.slices = slice_count,
				.gpu_instance = card->migs + 1,
				.placement = placement,
			};
			if (text_into(p, profile, mig->profile, sizeof(mig->profile)) < 0)
				return -EINVAL;
			placement += slice_count;
			card->migs++;
		}
	}
	return 0;
}

static int parse_xid(struct parser *p, struct vg_span value)
{
	struct vg_span rest = value, item;

	p->card->xids = 0;
	while (vg_cut(&rest, ',', &item)) {
		if (p->card->xids == FAKE_XID_MAX)
			return complain(p, "too many XIDs", value);
		if (number(p, item, 1000, &p->card->xid[p->card->xids]) < 0)
			return -EINVAL;
		p->card->xids++;
	}
	return 0;
}

static int on_off(const struct parser *p, struct vg_span value, bool *ret)
{
	if (vg_span_eq(value, "on") || vg_span_eq(value, "1"))
		*ret = true;
	else if (vg_span_eq(value, "off") || vg_span_eq(value, "0"))
		*ret = false;
	else
		return complain(p, "not on or off", value);
	return 0;
}

static int parse_numa(struct parser *p, struct vg_span value)
{
	int64_t node;

	if (vg_parse_i64(value, -1, 255, &node, NULL) < 0)
		return complain(p, "not a NUMA node", value);
	p->card->numa = (int)node;
	return 0;
}

static int card_key(struct parser *p, struct vg_span key, struct vg_span value)
{
	struct fake_card *card = p->card;
	bool on;
	int rc;

	if (vg_span_eq(key, "model"))
		return parse_model(p, value);
	if (vg_span_eq(key, "count"))
		return number32(p, value, FAKE_CARDS_MAX, &p->count);
	if (vg_span_eq(key, "name"))
		return text_into(p, value, card->name, sizeof(card->name));
	if (vg_span_eq(key, "uuid")) {
		p->named_uuid = true;
		return text_into(p, value, card->uuid, sizeof(card->uuid));
	}
	if (vg_span_eq(key, "serial")) {
		p->named_serial = true;
		return text_into(p, value, card->serial, sizeof(card->serial));
	}
	if (vg_span_eq(key, "pci"))
		return parse_pci(p, value);
	if (vg_span_eq(key, "mem_mib"))
		return bytes_of_mib(p, value, &card->mem_bytes);
	if (vg_span_eq(key, "reserved_mib"))
		return bytes_of_mib(p, value, &card->reserved_bytes);
	if (vg_span_eq(key, "context_mib"))
		return bytes_of_mib(p, value, &card->context_bytes);
	if (vg_span_eq(key, "unlisted_mib"))
		return bytes_of_mib(p, value, &card->unlisted_bytes);
	if (vg_span_eq(key, "sms"))
		return number32(p, value, 1024, &card->sms);
	if (vg_span_eq(key, "threads_per_sm"))
		return number32(p, value, 4096, &card->threads_per_sm);
	if (vg_span_eq(key, "cc"))
		return parse_cc(p, value);
	if (vg_span_eq(key, "numa"))
		return parse_numa(p, value);
	if (vg_span_eq(key, "nvlink"))
		return parse_nvlink(p, value);
	if (vg_span_eq(key, "ancestor"))
		return parse_ancestor(p, value);
	if (vg_span_eq(key, "mig"))
		return parse_mig(p, value);
	if (vg_span_eq(key, "xid"))
		return parse_xid(p, value);
	if (vg_span_eq(key, "event_types"))
		return number(p, value, UINT64_MAX, &card->event_types);
	if (vg_span_eq(key, "power_mw"))
		return number32(p, value, UINT32_MAX, &card->power_mw);
	if (vg_span_eq(key, "power_limit_mw"))
		return number32(p, value, UINT32_MAX, &card->power_limit_mw);
	if (vg_span_eq(key, "temperature_c"))
		return number32(p, value, 200, &card->temperature_c);
	if (vg_span_eq(key, "lost"))
		return on_off(p, value, &card->lost);
	if (vg_span_eq(key, "memory_info")) {
		rc = on_off(p, value, &on);
		card->no_memory_info = rc == 0 && !on;
		return rc;
	}
	if (vg_span_eq(key, "process_samples")) {
		rc = on_off(p, value, &on);
		card->no_process_samples = rc == 0 && !on;
		return rc;
	}
	if (vg_span_eq(key, "kernel_ns"))
		return number(p, value, UINT32_MAX, &card->kernel_ns);
	if (vg_span_eq(key, "event_ns"))
		return number(p, value, UINT32_MAX, &card->event_ns);
	if (vg_span_eq(key, "switch_ns"))
		return number(p, value, UINT32_MAX, &card->switch_ns);
	if (vg_span_eq(key, "slice_us")) {
		rc = number(p, value, 1000000, &card->slice_ns);
		card->slice_ns *= 1000;
		return rc;
	}
	if (vg_span_eq(key, "copy_mb_per_s"))
		return number(p, value, UINT32_MAX, &card->copy_bytes_per_us);
	return complain(p, "no such key for a gpu", key);
}

static int host_key(struct parser *p, struct vg_span key, struct vg_span value)
{
	struct fake_machine *machine = p->machine;
	uint64_t version = 0;

	if (vg_span_eq(key, "driver"))
		return text_into(p, value, machine->driver_version,
				 sizeof(machine->driver_version));
	if (vg_span_eq(key, "nvml"))
		return text_into(p, value, machine->nvml_version, sizeof(machine->nvml_version));
	if (vg_span_eq(key, "cuda")) {
		if (number(p, value, 99999, &version) < 0)
			return -EINVAL;
		machine->cuda_version = (int)version;
		return 0;
	}
	if (vg_span_eq(key, "pids")) {
		struct vg_span rest = value, kind, offset;

		vg_cut(&rest, ':', &kind);
		if (vg_span_eq(kind, "own") && !rest.data)
			machine->pids = FAKE_PIDS_OWN;
		else if (vg_span_eq(kind, "none") && !rest.data)
			machine->pids = FAKE_PIDS_NONE;
		else if (vg_span_eq(kind, "offset") && vg_cut(&rest, ':', &offset) && !rest.data) {
			machine->pids = FAKE_PIDS_OFFSET;
			return number32(p, offset, 1u << 30, &machine->pid_offset);
		} else {
			return complain(p, "not own, none or offset:N", value);
		}
		return 0;
	}
	return complain(p, "no such key for the host", key);
}

/* The next word of a directive; a value may be quoted: name="NVIDIA H200". */
static bool next_word(struct vg_span *rest, struct vg_span *ret_key, struct vg_span *ret_value)
{
	const char *at = rest->data, *end = at + rest->size, *start;

	while (at < end && (*at == ' ' || *at == '\t' || *at == '\r'))
		at++;
	if (at == end)
		return false;
	start = at;
	while (at < end && *at != ' ' && *at != '\t' && *at != '\r' && *at != '=')
		at++;
	*ret_key = (struct vg_span){ start, (size_t)(at - start) };
	*ret_value = (struct vg_span){ NULL, 0 };
	if (at < end && *at == '=') {
		bool quoted = ++at < end && *at == '"';

		start = quoted ? ++at : at;
		while (at < end && (quoted ? *at != '"' : *at != ' ' && *at != '\t' && *at != '\r'))
			at++;
		*ret_value = (struct vg_span){ start, (size_t)(at - start) };
		if (quoted && at < end)
			at++;
	}
	*rest = (struct vg_span){ at, (size_t)(end - at) };
	return true;
}

static void mig_finish(struct fake_card *card, uint32_t index)
{
	for (uint32_t i = 0; i < card->migs; i++) {
		struct fake_mig *mig = &card->mig[i];

		default_uuid(mig->uuid, "MIG", index, i + 1);
		/* An H200 has 132 SMs and gives 16 to a slice, 60 to 3g, all to 7g. */
		mig->sms = mig->slices == 7   ? card->sms
			   : mig->slices == 3 ? card->sms * 60 / 132
					      : card->sms * 16 / 132 * mig->slices;
	}
}

static int add_cards(struct parser *p, const struct fake_card *described)
{
	struct fake_machine *machine = p->machine;

	if (p->count > 1 && (p->named_uuid || p->named_pci))
		return vg_fail(
			p->err, EINVAL,
			"fake devices: line %u: uuid= and pci= name one card: use a line each",
			p->line);
	for (uint32_t i = 0; i < p->count; i++) {
		uint32_t index = machine->cards;
		struct fake_card *card = &machine->card[index];

		if (index == FAKE_CARDS_MAX)
			return vg_fail(p->err, EINVAL, "fake devices: line %u: more than %u cards",
				       p->line, FAKE_CARDS_MAX);
		*card = *described;
		if (!p->named_uuid)
			default_uuid(card->uuid, "GPU", index, 0);
		if (!p->named_serial)
			snprintf(card->serial, sizeof(card->serial), "16530241%05u", index);
		if (!p->named_pci)
			card->pci_device = 6 + index;
		mig_finish(card, index);
		machine->cards++;
	}
	return 0;
}

static int parse_line(struct parser *p, struct vg_span line)
{
	struct fake_card card;
	struct vg_span rest = line, key, value, kind;
	bool host = false;
	int rc;

	rest = vg_trim(rest);
	if (!rest.size)
		return 0;
	card_defaults(&card);
	p->card = &card;
	p->count = 1;
	p->named_uuid = p->named_pci = p->named_serial = false;

	/* "gpu" may be left out, so that VGPU_FAKE_DEVICES="count=2 model=h100" reads well. */
	kind = rest;
	if (next_word(&kind, &key, &value) && !value.data) {
		if (vg_span_eq(key, "host"))
			host = true;
		else if (!vg_span_eq(key, "gpu"))
			return complain(p, "not \"host\", \"gpu\" or key=value", key);
		rest = kind;
	}
	while (next_word(&rest, &key, &value)) {
		if (!value.data)
			return complain(p, "not key=value", key);
		rc = host ? host_key(p, key, value) : card_key(p, key, value);
		if (rc < 0)
			return rc;
	}
	return host ? 0 : add_cards(p, &card);
}

static void topology_finish(struct fake_machine *machine)
{
	for (uint32_t i = 0; i < machine->cards; i++) {
		struct fake_card *card = &machine->card[i];

		for (uint32_t j = 0; j < machine->cards; j++) {
			if (card->ancestor[j] != TOPOLOGY_DEFAULT)
				continue;
			card->ancestor[j] = card->numa == machine->card[j].numa
						    ? TOPOLOGY_HOSTBRIDGE
						    : TOPOLOGY_SYSTEM;
		}
	}
}

int fake_machine_parse(struct fake_machine *machine, const char *text, struct vg_err *err)
{
	vg_autofree struct fake_machine *next = calloc(1, sizeof(*next));
	struct parser p = { .machine = next, .err = err };
	struct vg_span rest = VG_SPAN(text), line;

	if (!next)
		return vg_fail(err, ENOMEM, "fake devices: out of memory");
	vg_copy(next->driver_version, sizeof(next->driver_version), "580.159.04");
	vg_copy(next->nvml_version, sizeof(next->nvml_version), "13.580.159.04");
	next->cuda_version = 13000;

	while (vg_cut(&rest, '\n', &line)) {
		struct vg_span directive, before_comment;

		p.line++;
		vg_cut(&line, '#', &before_comment);
		while (vg_cut(&before_comment, ';', &directive)) {
			int rc = parse_line(&p, directive);

			if (rc < 0)
				return rc;
		}
	}
	topology_finish(next);
	*machine = *next;
	return 0;
}

static int read_description(const char *path, char **ret_text, struct vg_err *err)
{
	vg_autofclose FILE *file = fopen(path, "re");
	vg_autofree char *text = calloc(1, DESCRIPTION_BYTES_MAX + 1);
	size_t got;

	if (!text)
		return vg_fail(err, ENOMEM, "fake devices: out of memory");
	if (!file)
		return vg_fail(err, errno, "fake devices: cannot open %s: %s", path,
			       strerror(errno));
	got = fread(text, 1, DESCRIPTION_BYTES_MAX + 1, file);
	if (ferror(file) || got > DESCRIPTION_BYTES_MAX)
		return vg_fail(err, EFBIG, "fake devices: %s: unreadable or over %u bytes", path,
			       DESCRIPTION_BYTES_MAX);
	text[got] = 0;
	*ret_text = vg_steal(text);
	return 0;
}

int fake_machine_load(struct fake_machine *machine, struct vg_err *err)
{
	const char *setting = getenv("VGPU_FAKE_DEVICES");
	vg_autofree char *text = NULL;
	int rc;

	if (!setting)
		return fake_machine_parse(machine, "gpu model=h200", err);
	/* A path has a slash and no '='; a description has an '='. */
	if (!strchr(setting, '/') || strchr(setting, '='))
		return fake_machine_parse(machine, setting, err);
	rc = read_description(setting, &text, err);
	if (rc < 0)
		return rc;
	return fake_machine_parse(machine, text, err);
}

uint64_t fake_unit_capacity(const struct fake_machine *machine, uint32_t unit)
{
	const struct fake_card *card = fake_unit_card(machine, unit);
	uint32_t mig = unit % (FAKE_MIG_MAX + 1u);

	if (mig)
		return card->mig[mig - 1].mem_bytes;
	return card->mem_bytes > card->reserved_bytes ? card->mem_bytes - card->reserved_bytes : 0;
}

uint32_t fake_unit_sms(const struct fake_machine *machine, uint32_t unit)
{
	const struct fake_card *card = fake_unit_card(machine, unit);
	uint32_t mig = unit % (FAKE_MIG_MAX + 1u);

	return mig ? card->mig[mig - 1].sms : card->sms;
}
