# SPDX-License-Identifier: Apache-2.0
# libvgpu.so: preloaded into containers. Compiled apart from the daemons: hidden symbols, the oldest
# versions of libc's symbols, no library of ours but src/region.

SRCS_libvgpu := resolve.c driver.c start.c log.c table.c memory.c array_size.c pool.c context.c graph.c \
	launch.c limiter.c limiter_budget.c tenancy.c nvml.c

GUEST_DIR := $(BUILD)/obj-guest
GUEST_OBJS := $(SRCS_libvgpu:%.c=$(GUEST_DIR)/libvgpu/%.o) $(SRCS_region:%.c=$(GUEST_DIR)/region/%.o)
# Frames stay walkable for the host program's profilers; initial-exec: a preloaded library's thread
# variables need no call.
GUEST_CFLAGS := -fvisibility=hidden -ftls-model=initial-exec -fno-omit-frame-pointer -fno-semantic-interposition \
	-include src/libvgpu/glibc_floor.h
GUEST_LDFLAGS := -shared -Wl,-soname,libvgpu.so -Wl,-z,defs -Wl,-z,relro -Wl,-z,now -Wl,-Bsymbolic \
	-Wl,--version-script=$(BUILD)/libvgpu.map -Wl,--hash-style=gnu
# Before glibc 2.34 these two held dlopen and the mutexes; since then they are empty but always there.
GUEST_LIBS := -Wl,--no-as-needed -l:libdl.so.2 -l:libpthread.so.0

$(GUEST_DIR)/%.o: src/%.c Makefile src/libvgpu/libvgpu.mk
	@mkdir -p $(@D)
	@echo "  CC      $< (guest)"
	@$(CC) $(GUEST_CFLAGS) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# Called by a sanitizer's own start, before its memory is laid out.
$(GUEST_DIR)/libvgpu/resolve.o: CFLAGS += -fno-builtin $(if $(SAN),-fno-sanitize=all)

$(BUILD)/libvgpu.map: src/libvgpu/exports.map.in src/libvgpu/cuda_symbols.def src/libvgpu/nvml_symbols.def
	@mkdir -p $(@D)
	@$(CC) -E -P -x c -Isrc $< | sed '/^$$/d' > $@

$(BUILD)/libvgpu.so: $(GUEST_OBJS) $(BUILD)/libvgpu.map
	@echo "  LINK    $@"
	@$(CC) $(GUEST_LDFLAGS) $(SANFLAGS) -o $@ $(GUEST_OBJS) $(GUEST_LIBS)

.PHONY: libvgpu
libvgpu: $(BUILD)/libvgpu.so

# The exports are exactly the list, and nothing newer than glibc 2.17 is needed.
.PHONY: check-exports
check-exports: $(BUILD)/libvgpu.so
	@src/libvgpu/check-exports.sh $(BUILD)/libvgpu.so $(BUILD)/libvgpu.map
	@src/libvgpu/symbols-doc.sh | diff docs/libvgpu-symbols.md - || \
		{ echo "docs/libvgpu-symbols.md is old: run make docs-symbols" >&2; exit 1; }

.PHONY: docs-symbols
docs-symbols:
	@src/libvgpu/symbols-doc.sh > docs/libvgpu-symbols.md

PROGRAMS_EXTRA += $(BUILD)/libvgpu.so
TEST_EXTRA += check-exports

# ---- tests over the fake driver ------------------------------------------------------------------------

GUEST_TESTS := $(BUILD)/guest-tests
GUEST_UNIT := limiter_budget limiter_simulation tenancy array_size
GUEST_PROGRAMS := $(addprefix $(GUEST_TESTS)/,test_lookup test_guest ask paths race share cost paths-linked)
# Sources that need nothing of the rest, linked into their unit tests.
GUEST_PURE := $(addprefix $(GUEST_DIR)/libvgpu/,limiter_budget.o tenancy.o array_size.o)
GUEST_TEST_CC = $(CC) $(CPPFLAGS) -Itests $(BASE_CFLAGS) -Wno-missing-prototypes

$(GUEST_TESTS)/unit/test_%: tests/unit/libvgpu/test_%.c $(GUEST_PURE)
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(GUEST_TEST_CC) -o $@ $< $(GUEST_PURE) $(SANFLAGS) -lcmocka -lm
$(GUEST_TESTS)/paths-linked: tests/gpu/paths.c tests/gpu/gpu.h $(BUILD)/fake/libcuda.so.1
	@mkdir -p $(@D)
	@$(GUEST_TEST_CC) -DLINKED -o $@ $< $(FAKE_DIR)/libcuda.so.1 $(SANFLAGS) -ldl
$(GUEST_TESTS)/%: tests/unit/libvgpu/%.c tests/gpu/gpu.h
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(GUEST_TEST_CC) -o $@ $< $(SANFLAGS) -ldl -lcmocka -lpthread
$(GUEST_TESTS)/%: tests/gpu/%.c tests/gpu/gpu.h
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(GUEST_TEST_CC) -o $@ $< $(SANFLAGS) -ldl -lm

.PHONY: test-libvgpu gpu-test gpu-bench
test-libvgpu: $(BUILD)/libvgpu.so fake $(GUEST_UNIT:%=$(GUEST_TESTS)/unit/test_%) $(GUEST_PROGRAMS)
	@scripts/run-tests.sh $(GUEST_UNIT:%=$(GUEST_TESTS)/unit/test_%)
	@tests/unit/libvgpu/run.sh $(BUILD)/libvgpu.so $(FAKE_DIR) $(GUEST_TESTS)

# On a machine with an NVIDIA GPU.
gpu-test: $(BUILD)/libvgpu.so
	@BUILD=$(BUILD) tests/gpu/run.sh paths race torch
gpu-bench: $(BUILD)/libvgpu.so
	@BUILD=$(BUILD) tests/gpu/run.sh cost share tenants torch

TEST_EXTRA += test-libvgpu
