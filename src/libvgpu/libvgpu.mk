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

PROGRAMS_EXTRA += $(BUILD)/libvgpu.so
TEST_EXTRA += check-exports
