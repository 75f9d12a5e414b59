# Programs that the integration tests run besides the daemons, and fresh from the same build.
INTEGRATION_BINS := $(BUILD)/tests/integration/kube_driver

$(BUILD)/tests/integration/kube_driver: tests/integration/kube_driver.c Makefile \
		$$(call archives,$$(BELOW_kube))
	@mkdir -p $(@D)
	@echo "  TESTCC  $<"
	@$(CC) $(TEST_CPPFLAGS) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< \
		$(call archives,$(BELOW_kube)) $(ALL_LDFLAGS) $(call libs_of,$(BELOW_kube))

check-integration: $(INTEGRATION_BINS)
