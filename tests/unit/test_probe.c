// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Files are tried in a child process before they are loaded (H14).

#include "rft/host.h"
#include "scratch.h"

#include <criterion/criterion.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

TestSuite(probe, .init = scratch_begin, .fini = scratch_end, .timeout = 60);

enum { PATIENT_MS = 30000, HASTY_MS = 200 };

static rft_registry *registry_new(int32_t threads, int32_t probe_timeout_ms)
{
  const rft_registry_options options = {.struct_size =
                                            RFT_STRUCT_SIZE(rft_registry_options, reserved),
                                        .threads = threads,
                                        .probe_timeout_ms = probe_timeout_ms};
  rft_registry *registry = NULL;
  cr_assert_eq(rft_registry_create(&options, &registry, NULL), RFT_OK);
  return registry;
}

// A fixture for hosts, under the same name.
static const char *place(const char *name)
{
  char source[1024];
  snprintf(source, sizeof source, "%s/conformance/host/%s", RFT_TEST_BUILD_DIR, name);
  return scratch_copy(source, name);
}

// Beside the fixture lies a good plugin, which comes after it.
static void expect_refused(rft_registry *registry, const char *name, int32_t code)
{
  const char *const path = place(name);
  scratch_fixture("good", "zz.so");
  cr_assert_eq(rft_registry_scan(registry, scratch_directory(), NULL), RFT_OK);
  cr_expect_eq(rft_registry_plugin_count(registry), 1);
  cr_assert_eq(rft_registry_refusal_count(registry), 1);
  const rft_refusal *const refusal = rft_registry_refusal(registry, 0);
  cr_expect_str_eq(refusal->path, path);
  cr_expect_eq(refusal->code, code, "%s", refusal->reason);
  rft_registry_destroy(registry);
}

Test(probe, a_crash_is_a_refusal)
{
  expect_refused(registry_new(1, PATIENT_MS), "constructor_crashes.so", RFT_INTERNAL);
}

Test(probe, a_hang_is_a_refusal)
{
  expect_refused(registry_new(1, HASTY_MS), "constructor_hangs.so", RFT_DEADLINE_EXCEEDED);
}

Test(probe, a_host_with_threads_can_try_files)
{
  expect_refused(registry_new(4, PATIENT_MS), "entry_exits.so", RFT_INTERNAL);
}

Test(probe, a_host_that_ignores_its_children_can_try_files)
{
  signal(SIGCHLD, SIG_IGN);
  expect_refused(registry_new(1, PATIENT_MS), "entry_aborts.so", RFT_INTERNAL);
}

static void expect_options_refused(int32_t probe_timeout_ms, uint32_t reserved)
{
  const rft_registry_options options = {.struct_size =
                                            RFT_STRUCT_SIZE(rft_registry_options, reserved),
                                        .probe_timeout_ms = probe_timeout_ms,
                                        .reserved = reserved};
  rft_registry *registry = NULL;
  rft_error error = {.struct_size = sizeof error};
  cr_expect_eq(rft_registry_create(&options, &registry, &error), RFT_INVALID_ARGUMENT);
  cr_expect_not_null(strstr(error.message, "probe_timeout_ms"), "%s", error.message);
  cr_expect_null(registry);
}

Test(probe, refuses_options_that_mean_nothing)
{
  expect_options_refused(-1, 0);
  expect_options_refused(0, 1);
}
