# The fake driver: libcuda.so.1 and libnvidia-ml.so.1 that simulate cards. See tests/fake/README.md.
#
#   make fake        both libraries, in $(BUILD)/fake
#   make fake-test   their own tests

FAKE_DIR := $(BUILD)/fake
FAKE_COMMON := machine.c state.c trace.c
FAKE_CUDA_SRCS := $(FAKE_COMMON) arena.c cuda_array.c cuda_capture.c cuda_context.c cuda_copy.c \
	cuda_device.c cuda_driver.c cuda_event.c cuda_graph.c cuda_graph_exec.c cuda_ipc.c \
	cuda_launch.c cuda_lookup.c cuda_memory.c cuda_misc.c cuda_module.c cuda_object.c \
	cuda_pool.c cuda_stream.c cuda_virtual.c heap.c
FAKE_NVML_SRCS := $(FAKE_COMMON) nvml_device.c nvml_event.c nvml_stubs.c nvml_system.c
FAKE_LIBS := $(FAKE_DIR)/libcuda.so.1 $(FAKE_DIR)/libnvidia-ml.so.1 \
	$(FAKE_DIR)/libcuda.so $(FAKE_DIR)/libnvidia-ml.so

# Parameters that an interface has and a simulation does not look at are no mistake here.
FAKE_CFLAGS = $(ALL_CFLAGS) -fvisibility=hidden -Wno-unused-parameter

$(FAKE_DIR)/obj/%.o: tests/fake/%.c Makefile tests/fake/fake.mk
	@mkdir -p $(@D)
	@echo "  CC      $<"
	@$(CC) $(CPPFLAGS) $(FAKE_CFLAGS) -MMD -MP -c -o $@ $<

fake_objs = $(patsubst %.c,$(FAKE_DIR)/obj/%.o,$(1))

# Bound to themselves: whatever is preloaded must not get between the parts of one library.
FAKE_LDFLAGS = $(ALL_LDFLAGS) -shared -Wl,-Bsymbolic -Wl,--exclude-libs,ALL

$(FAKE_DIR)/libcuda.so.1: $(call fake_objs,$(FAKE_CUDA_SRCS)) $(BUILD)/libbase.a
	@echo "  LINK    $@"
	@$(CC) $(FAKE_LDFLAGS) -Wl,-soname,libcuda.so.1 -o $@ $^

$(FAKE_DIR)/libnvidia-ml.so.1: $(call fake_objs,$(FAKE_NVML_SRCS)) $(BUILD)/libbase.a
	@echo "  LINK    $@"
	@$(CC) $(FAKE_LDFLAGS) -Wl,-soname,libnvidia-ml.so.1 -o $@ $^

$(FAKE_DIR)/libcuda.so $(FAKE_DIR)/libnvidia-ml.so: %.so: %.so.1
	@ln -sf $(notdir $<) $@

.PHONY: fake
fake: $(FAKE_LIBS)

# ---- the programs of tests/gpu/programs, over the fake ------------------------------------------------

FAKE_PROGRAM_NAMES := facts take many busy child watch
FAKE_PROGRAMS := $(FAKE_PROGRAM_NAMES:%=$(FAKE_DIR)/programs/%) \
	$(FAKE_PROGRAM_NAMES:%=$(FAKE_DIR)/programs/%-linked)
FAKE_PROGRAM_FLAGS = $(CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes -Wno-unused-function -Wno-pedantic

$(FAKE_DIR)/programs/%-linked: tests/gpu/programs/%.c $(FAKE_LIBS)
	@mkdir -p $(@D)
	@echo "  TESTCC  $< (linked)"
	@$(CC) $(FAKE_PROGRAM_FLAGS) -DPROGRAM_LINKED -MMD -MP -MF $@.d -o $@ $< $(ALL_LDFLAGS) \
		-L$(FAKE_DIR) -l:libcuda.so.1 -ldl

$(FAKE_DIR)/programs/%: tests/gpu/programs/%.c
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(CC) $(FAKE_PROGRAM_FLAGS) -MMD -MP -MF $@.d -o $@ $< $(ALL_LDFLAGS) -ldl

.PHONY: fake-programs
fake-programs: fake $(FAKE_PROGRAMS)

# ---- tests of the fake itself ---------------------------------------------------------------------------

# Of its parts, linked with them; and of the libraries, as a program sees them.
FAKE_PART_TESTS := machine heap state
FAKE_API_TESTS := cuda nvml facts
FAKE_PART_BINS := $(FAKE_PART_TESTS:%=$(BUILD)/tests/unit/fake/test_%)
FAKE_API_BINS := $(FAKE_API_TESTS:%=$(BUILD)/tests/unit/fake/test_%)
FAKE_TEST_FLAGS = $(TEST_CPPFLAGS) $(ALL_CFLAGS) -Wno-missing-prototypes

$(FAKE_PART_BINS): $(BUILD)/tests/unit/fake/%: tests/unit/fake/%.c Makefile \
		$(call fake_objs,machine.c state.c arena.c heap.c) $(BUILD)/libbase.a
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(CC) $(FAKE_TEST_FLAGS) -MMD -MP -MF $@.d -o $@ $< \
		$(call fake_objs,machine.c state.c arena.c heap.c) $(BUILD)/libbase.a $(ALL_LDFLAGS) \
		$(TEST_LIBS)

$(FAKE_API_BINS): $(BUILD)/tests/unit/fake/%: tests/unit/fake/%.c Makefile $(FAKE_LIBS)
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(CC) $(FAKE_TEST_FLAGS) -DFAKE_DIR='"$(abspath $(FAKE_DIR))"' -MMD -MP -MF $@.d -o $@ $< \
		-Wl,--no-as-needed -L$(FAKE_DIR) -l:libcuda.so.1 -l:libnvidia-ml.so.1 \
		-Wl,-rpath,$(abspath $(FAKE_DIR)) $(ALL_LDFLAGS) $(TEST_LIBS) -ldl

.PHONY: fake-test
fake-test: $(FAKE_PART_BINS) $(FAKE_API_BINS) fake-programs
	@scripts/run-tests.sh $(FAKE_PART_BINS) $(FAKE_API_BINS)

TEST_EXTRA += fake-test
