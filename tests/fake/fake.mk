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
FAKE_NVML_SRCS := $(FAKE_COMMON) nvml_device.c nvml_event.c nvml_system.c
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
