/* SPDX-License-Identifier: Apache-2.0 */
#include "unit/fake/child.h"

#include <errno.h>

#include "fake/machine.h"

static void test_accepted(void **state)
{
	static const struct {
		const char *text;
		uint32_t cards;
		const char *name; /* of the last */
		uint64_t mem_mib;
		uint32_t sms;
	} rows[] = {
		{ "", 0, NULL, 0, 0 },
		{ "# nothing\n\n", 0, NULL, 0, 0 },
		{ "gpu", 1, "NVIDIA H200", 143771, 132 },
		{ "count=3", 3, "NVIDIA H200", 143771, 132 },
		{ "count=0", 0, NULL, 0, 0 },
		{ "gpu model=t4", 1, "Tesla T4", 15360, 40 },
		{ "model=t4; model=a100 sms=7 # comment; gpu", 2, "NVIDIA A100-SXM4-40GB", 40960,
		  7 },
		{ "host driver=1.2\ngpu name=\"A B\" mem_mib=16\n", 1, "A B", 16, 132 },
		{ "\tgpu\tcount=16\r\n", 16, "NVIDIA H200", 143771, 132 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_machine machine;
		struct vg_err err = { 0 };
		const struct fake_card *last;

		if (fake_machine_parse(&machine, rows[i].text, &err) < 0)
			fail_msg("\"%s\": %s", rows[i].text, err.msg);
		assert_int_equal(machine.cards, rows[i].cards);
		if (!rows[i].cards)
			continue;
		last = &machine.card[machine.cards - 1];
		assert_string_equal(last->name, rows[i].name);
		assert_int_equal(last->mem_bytes >> 20, rows[i].mem_mib);
		assert_int_equal(last->sms, rows[i].sms);
	}
}

/* The message names the line and the word. */
static void test_refused(void **state)
{
	static const struct {
		const char *text, *message;
	} rows[] = {
		{ "gpu\ncard", "line 2: not \"host\", \"gpu\" or key=value: \"card\"" },
		{ "gpu size=3", "line 1: no such key for a gpu: \"size\"" },
		{ "host size=3", "line 1: no such key for the host: \"size\"" },
		{ "gpu model=h300", "no such model" },
		{ "gpu sms", "line 1: not key=value: \"sms\"" },
		{ "gpu sms=many", "not a number in range: \"many\"" },
		{ "gpu sms=-1", "not a number in range: \"-1\"" },
		{ "gpu sms=1025", "not a number in range" },
		{ "gpu count=17", "not a number in range: \"17\"" },
		{ "count=16\ncount=1", "line 2: more than 16 cards" },
		{ "gpu count=2 uuid=GPU-1", "name one card" },
		{ "gpu uuid=", "empty or too long" },
		{ "gpu pci=1:2", "not domain:bus:device" },
		{ "gpu pci=0:0:xx", "not domain:bus:device" },
		{ "gpu cc=9", "not major.minor" },
		{ "gpu nvlink=switch", "not peer:links" },
		{ "gpu nvlink=switch:19", "not a number in range" },
		{ "gpu nvlink=1:10,2:10", "more than 18 links" },
		{ "gpu ancestor=near", "not card:level" },
		{ "gpu mig=1g", "not a profile" },
		{ "gpu mig=1g.10gb*8", "not a number in range" },
		{ "gpu mig=4g.40gb,4g.40gb", "more than seven slices" },
		{ "gpu xid=1,x", "not a number in range: \"x\"" },
		{ "gpu lost=maybe", "not on or off" },
		{ "host pids=some", "not own, none or offset:N" },
		{ "host pids=own:1", "not own, none or offset:N" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct fake_machine machine = { .cards = 99 };
		struct vg_err err = { 0 };

		assert_int_equal(fake_machine_parse(&machine, rows[i].text, &err), -EINVAL);
		if (!strstr(err.msg, rows[i].message))
			fail_msg("\"%s\": %s", rows[i].text, err.msg);
		assert_int_equal(machine.cards, 99);
	}
}

static void test_topology(void **state)
{
	struct fake_machine machine;

	(void)state;
	assert_int_equal(fake_machine_parse(&machine,
					    "gpu numa=0 nvlink=1:2,switch:1\n"
					    "gpu numa=0 ancestor=0:single nvlink=off\n"
					    "gpu numa=1 ancestor=internal pci=0001:3b:00.0\n",
					    NULL),
			 0);
	assert_int_equal(machine.card[0].ancestor[1], 30); /* the same node */
	assert_int_equal(machine.card[0].ancestor[2], 50); /* another */
	assert_int_equal(machine.card[1].ancestor[0], 10);
	assert_int_equal(machine.card[2].ancestor[0], 0);
	assert_int_equal(machine.card[0].links[0], 1);
	assert_int_equal(machine.card[0].links[1], 1);
	assert_int_equal(machine.card[0].links[2], FAKE_LINK_SWITCH);
	assert_int_equal(machine.card[0].links[3], FAKE_LINK_NONE);
	assert_int_equal(machine.card[1].links[0], FAKE_LINK_NONE);
	assert_int_equal(machine.card[2].pci_domain, 1);
	assert_int_equal(machine.card[2].pci_bus, 0x3b);
	/* CUDA_VISIBLE_DEVICES tells cards apart by the first digits. */
	assert_string_not_equal(machine.card[0].uuid, machine.card[1].uuid);
	assert_memory_not_equal(machine.card[0].uuid, machine.card[1].uuid, 12);
}

static void test_mig(void **state)
{
	static const struct {
		const char *mig;
		bool capable, enabled;
		uint32_t migs;
	} rows[] = {
		{ "off", false, false, 0 },     { "capable", true, false, 0 },
		{ "on", true, true, 0 },        { "1g.18gb", true, true, 1 },
		{ "1g.18gb*7", true, true, 7 }, { "3g.71gb,4g.71gb", true, true, 2 },
		{ "7g.141gb", true, true, 1 },
	};
	struct fake_machine machine;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char text[64];

		snprintf(text, sizeof(text), "mig=%s", rows[i].mig);
		assert_int_equal(fake_machine_parse(&machine, text, NULL), 0);
		assert_int_equal(machine.card[0].mig_capable, rows[i].capable);
		assert_int_equal(machine.card[0].mig_enabled, rows[i].enabled);
		assert_int_equal(machine.card[0].migs, rows[i].migs);
	}
	/* An H200 gives 16 SMs to a slice, 60 to three, 132 to seven. */
	assert_int_equal(machine.card[0].mig[0].sms, 132);
	assert_int_equal(fake_machine_parse(&machine, "mig=1g.18gb,3g.71gb,1g.18gb", NULL), 0);
	assert_int_equal(machine.card[0].mig[0].sms, 16);
	assert_int_equal(machine.card[0].mig[1].sms, 60);
	assert_int_equal(machine.card[0].mig[1].placement, 1);
	assert_int_equal(machine.card[0].mig[2].placement, 4);
	assert_int_equal(fake_unit_capacity(&machine, fake_unit_of(0, 2)), 71ull << 30);
	assert_int_equal(fake_unit_sms(&machine, fake_unit_of(0, 0)), 132);
}

static void test_load(void **state)
{
	char path[] = "/tmp/vgpu-fake-devices-XXXXXX";
	int fd = mkstemp(path);
	struct fake_machine machine;
	struct vg_err err = { 0 };

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "gpu model=l4 count=2\n", 21), 21);
	setenv("VGPU_FAKE_DEVICES", path, 1);
	assert_int_equal(fake_machine_load(&machine, &err), 0);
	assert_int_equal(machine.cards, 2);
	unlink(path);
	close(fd);
	assert_int_equal(fake_machine_load(&machine, &err), -ENOENT);
	assert_non_null(strstr(err.msg, path));
	/* A description may hold slashes. */
	setenv("VGPU_FAKE_DEVICES", "name=a/b", 1);
	assert_int_equal(fake_machine_load(&machine, &err), 0);
	assert_string_equal(machine.card[0].name, "a/b");
	unsetenv("VGPU_FAKE_DEVICES");
	assert_int_equal(fake_machine_load(&machine, &err), 0);
	assert_int_equal(machine.cards, 1);
	/* What the recorded host says of its cards. */
	assert_int_equal(machine.card[0].mem_bytes, 150754820096);
	assert_int_equal(machine.card[0].mem_bytes - machine.card[0].reserved_bytes, 150109880320);
	assert_int_equal(machine.card[0].event_types, 65439);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_accepted), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_topology), cmocka_unit_test(test_mig),
		cmocka_unit_test(test_load),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
