# kube-vgpu: GPU sharing for Kubernetes.
#
# What people run:
#   make             build the programs into build/
#   make demo        install what is missing, build, and show decisions on a saved cluster
#   make run         the same daemon in the foreground
#   make test        everything that needs neither a GPU nor a cluster
#   make e2e         real etcd, kube-apiserver and kube-scheduler (built once, cached)
#   make bench       print the speed figures next to their bars
#   make fuzz        a short run of every fuzz target
#   make gpu-test    on a machine with an NVIDIA GPU: limits against the real driver
#   make install     DESTDIR=, PREFIX=/usr/local
#
# What developers run:
#   make DEV=1       strict warnings as errors
#   make check       unit tests, contract tests and the check scripts
#   make check-integration, check-headers, check-layers, check-format, check-scripts
#   make SAN=address,undefined TARGET   or SAN=thread: a separate build folder
#   make format tidy
#   make help        this text

.DEFAULT_GOAL := all
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DELETE_ON_ERROR:

CC      ?= cc
CLANG   ?= clang
PREFIX  ?= /usr/local
DESTDIR ?=
SAN     ?=
DEV     ?=
comma   := ,
BUILD   ?= build$(if $(SAN),/san-$(subst $(comma),-,$(SAN)))



# ---- compiler -------------------------------------------------------------------------------------

WARN_STRICT := -Werror -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion \
	-Wmissing-prototypes -Wstrict-prototypes -Wold-style-definition -Wvla -Wformat=2 -Wundef \
	-Wpointer-arith -Wcast-qual -Wwrite-strings -Wnull-dereference -Wimplicit-fallthrough
WARN := $(if $(DEV),$(WARN_STRICT),-Wall -Wextra)

OPT     ?= -O2 -g
CFLAGS  ?=
# CLANG and gcc both understand these; _FORTIFY_SOURCE is off under sanitizers, which replace it.
HARDEN  := -fstack-protector-strong $(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
CPPFLAGS += -Isrc -Iinclude -D_GNU_SOURCE -include src/base/banned.h

pkg_cflags = $(shell pkg-config --cflags $(1) 2>/dev/null)
pkg_libs   = $(shell pkg-config --libs $(1) 2>/dev/null)

BASE_CFLAGS := -std=gnu17 -fPIC -pthread $(OPT) $(HARDEN) $(WARN) $(SANFLAGS)
ALL_CFLAGS   = $(BASE_CFLAGS) $(CFLAGS)
ALL_LDFLAGS  = -pthread $(SANFLAGS) -Wl,-z,relro,-z,now,--as-needed $(LDFLAGS)

# ---- folders --------------------------------------------------------------------------------------

# Link order, top to bottom; who depends on whom comes from scripts/layers.txt.
DAEMON_FOLDERS := server http snapshot kube cluster scheduler config device yaml base

LIBS_yaml     := $(call pkg_libs,yaml-0.1 jansson)
LIBS_device   := $(call pkg_libs,jansson)
LIBS_kube     := $(call pkg_libs,libcurl jansson)
LIBS_snapshot := $(call pkg_libs,jansson)
LIBS_http     := $(call pkg_libs,libmicrohttpd gnutls)
LIBS_server   := $(call pkg_libs,jansson)
LIBS_base     := -lm

FOLDERS := $(DAEMON_FOLDERS) region
-include $(foreach f,$(FOLDERS),$(wildcard src/$(f)/sources.mk))

$(foreach f,$(FOLDERS),$(eval OBJS_$(f) := $(patsubst %.c,$(BUILD)/obj/$(f)/%.o,$(SRCS_$(f)))))

define folder_archive
$(BUILD)/lib$(1).a: $(OBJS_$(1))
	@rm -f $$@
	@$(AR) rcs $$@ $$^
endef
$(foreach f,$(FOLDERS),$(eval $(call folder_archive,$(f))))

# Below: everything a folder may use, itself first, in link order.
row = $(shell sed -n 's/^$(1):\([^;]*\);.*/\1/p' scripts/layers.txt)
ORDER := $(DAEMON_FOLDERS) region
below = $(filter $(1) $(call row,$(1)) $(foreach d,$(call row,$(1)),$(call row,$(d))),$(ORDER))
$(foreach f,$(FOLDERS),$(eval BELOW_$(f) := $(call below,$(f))))
archives = $(foreach f,$(1),$(BUILD)/lib$(f).a)
libs_of  = $(foreach f,$(1),$(LIBS_$(f)))

$(BUILD)/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# ---- programs -------------------------------------------------------------------------------------

PROGRAMS := $(BUILD)/vgpu-scheduler

$(BUILD)/vgpu-scheduler: $(BUILD)/obj/cmd/vgpu_scheduler.o $(BUILD)/obj/cmd/scheduler_flags.o $(call archives,$(DAEMON_FOLDERS))
	@echo "  LINK    $@"
	@$(CC) $(ALL_LDFLAGS) -o $@ $^ $(call libs_of,$(DAEMON_FOLDERS))

-include $(wildcard src/libvgpu/libvgpu.mk) $(wildcard tests/fake/fake.mk)

.PHONY: all
all: $(PROGRAMS) $(PROGRAMS_EXTRA)

.PHONY: install
install: all
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin/

.PHONY: help
help:
	@sed -n 's/^# \{0,1\}//p;/^$$/q' Makefile

.PHONY: bootstrap
bootstrap:
	@scripts/bootstrap.sh build

.PHONY: clean
clean:
	rm -rf build

# ---- people ---------------------------------------------------------------------------------------

.PHONY: demo run
demo: bootstrap
	@$(MAKE) --no-print-directory all
	@scripts/demo.sh $(BUILD)/vgpu-scheduler

run: bootstrap
	@$(MAKE) --no-print-directory all
	$(BUILD)/vgpu-scheduler --config config/device-config.yaml --snapshot config/demo-cluster.yaml \
		--extender-listen 127.0.0.1:8080 --metrics-listen 127.0.0.1:9395

# ---- tests ----------------------------------------------------------------------------------------

UNIT_SRCS := $(sort $(wildcard tests/unit/*/test_*.c))
# libvgpu and the fake driver bring their own rules (their tests preload and interpose).
UNIT_SRCS := $(filter-out tests/unit/libvgpu/% tests/unit/fake/%,$(UNIT_SRCS))
UNIT_BINS := $(patsubst tests/%.c,$(BUILD)/tests/%,$(UNIT_SRCS))
TEST_LIBS := $(call pkg_libs,cmocka)
TEST_CPPFLAGS = $(CPPFLAGS) -Itests

# Secondary expansion: the folder in the test's path decides what it is linked with.
.SECONDEXPANSION:
folder_of = $(word 2,$(subst /, ,$(patsubst $(BUILD)/tests/%,%,$(1))))
$(UNIT_BINS): $(BUILD)/tests/%: tests/%.c Makefile $$(call archives,$$(BELOW_$$(call folder_of,$$@)))
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(CC) $(TEST_CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -MMD -MP -MF $@.d -o $@ $< \
		$(call archives,$(BELOW_$(call folder_of,$@))) $(ALL_LDFLAGS) $(TEST_LIBS) \
		$(call libs_of,$(BELOW_$(call folder_of,$@)))

.PHONY: unit unit-programs
unit-programs: $(UNIT_BINS)
unit: $(UNIT_BINS)
	@scripts/run-tests.sh $(UNIT_BINS)

-include tests/integration/integration.mk

.PHONY: check-integration
check-integration: all
	@VGPU_BUILD=$(BUILD) tests/integration/run.sh

.PHONY: check-headers check-layers check-format check-scripts check-spelling
check-layers:
	@scripts/check-layers.sh
check-headers:
	@CC="$(CC)" CPPFLAGS='$(CPPFLAGS)' scripts/check-headers.sh
check-format:
	@scripts/check-format.sh
check-scripts:
	@scripts/check-scripts.sh

.PHONY: check
check: unit check-layers check-headers check-format check-scripts $(TEST_EXTRA)

.PHONY: test
test:
	@scripts/bootstrap.sh test
	@scripts/test.sh

.PHONY: e2e
e2e:
	@scripts/bootstrap.sh e2e
	@$(MAKE) --no-print-directory all
	@VGPU_SCHEDULER=$(BUILD)/vgpu-scheduler tests/e2e/run.sh

.PHONY: format tidy
format:
	@scripts/check-format.sh --fix
tidy:
	@scripts/tidy.sh

# ---- fuzz -----------------------------------------------------------------------------------------

FUZZ_SECONDS ?= 10
FUZZ_SRCS := $(sort $(wildcard tests/fuzz/fuzz_*.c))
FUZZ_BINS := $(patsubst tests/fuzz/%.c,$(BUILD)/fuzz/%,$(FUZZ_SRCS))
FUZZ_LIB_SRCS = $(foreach f,$(DAEMON_FOLDERS) region,$(addprefix src/$(f)/,$(notdir $(SRCS_$(f)))))
FUZZ_OBJS = $(patsubst src/%.c,$(BUILD)/fuzz/obj/%.o,$(FUZZ_LIB_SRCS))
FUZZ_FLAGS := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -O1 -g

$(BUILD)/fuzz/obj/%.o: src/%.c Makefile
	@mkdir -p $(@D)
	@$(CLANG) $(CPPFLAGS) -std=gnu17 -pthread $(FUZZ_FLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/fuzz/libvgpu-fuzz.a: $$(FUZZ_OBJS)
	@rm -f $@
	@$(AR) rcs $@ $^
$(FUZZ_BINS): $(BUILD)/fuzz/%: tests/fuzz/%.c $(BUILD)/fuzz/libvgpu-fuzz.a
	@echo "  FUZZ    $<"
	@$(CLANG) $(CPPFLAGS) -std=gnu17 -pthread -fsanitize=fuzzer,address,undefined \
		-fno-sanitize-recover=all -O1 -g -o $@ $< $(BUILD)/fuzz/libvgpu-fuzz.a $(call libs_of,$(DAEMON_FOLDERS))

.PHONY: fuzz fuzz-build
fuzz-build: $(FUZZ_BINS)
fuzz: fuzz-build
	@scripts/fuzz.sh $(FUZZ_SECONDS) $(FUZZ_BINS)

# ---- bench ----------------------------------------------------------------------------------------

BENCH_SRCS := $(sort $(wildcard tests/bench/bench_*.c))
BENCH_BINS := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(BENCH_SRCS))
$(BENCH_BINS): $(BUILD)/bench/%: tests/bench/%.c $(call archives,$(DAEMON_FOLDERS))
	@mkdir -p $(@D)
	@$(CC) $(TEST_CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -MMD -MP -MF $@.d -o $@ $< \
		$(call archives,$(DAEMON_FOLDERS)) $(ALL_LDFLAGS) $(call libs_of,$(DAEMON_FOLDERS))
.PHONY: bench
bench: bootstrap
	@$(MAKE) --no-print-directory all bench-programs
	@VGPU_BUILD=$(BUILD) tests/bench/run.sh
.PHONY: bench-programs
bench-programs: $(BENCH_BINS)

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
