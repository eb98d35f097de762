// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Structs that are too short, longer with and without a meaning, or hold values that mean nothing
// (rules P1 to P4).

#include "bad_inputs.h"
#include "plugin_fixture.h"

#include <criterion/criterion.h>
#include <dlfcn.h>
#include <math.h>
#include <string.h>

TestSuite(struct_errors, .fini = plugin_fixture_end);

enum { TAIL = 16 };

// A copy that is TAIL bytes longer, and says so; the last byte is `tail`.
static void *longer(const void *object, uint32_t size, unsigned char tail)
{
  unsigned char *const copy = test_alloc(size + TAIL);
  const uint32_t new_size = size + TAIL;
  memcpy(copy, object, size);
  memcpy(copy, &new_size, sizeof new_size);
  copy[new_size - 1] = tail;
  return copy;
}

static int32_t evaluate_with(const rft_batch *batch, const rft_reduction *reduction,
                             rft_output *output, rft_error *error)
{
  return m2po()->evaluate(m2po_create("{}"), batch, NULL, reduction, output, error);
}

static void expect_code(const char *what, int32_t code, int32_t expected, const rft_error *error,
                        const char *part)
{
  cr_expect_eq(code, expected, "%s: code %d, %s", what, code, error->message);
  cr_expect(expected == RFT_OK || strstr(error->message, part) != NULL, "%s: no \"%s\" in: %s",
            what, part, error->message);
}

static rft_output output_new(void)
{
  return (rft_output){.struct_size = sizeof(rft_output), .loss = -777};
}

Test(struct_errors, a_longer_batch)
{
  rft_output output = output_new();
  rft_error error = error_new();
  const rft_batch *const batch = good_batch();
  int32_t code = evaluate_with(longer(batch, sizeof *batch, 0), NULL, &output, &error);
  expect_code("zero tail", code, RFT_OK, &error, "");
  output = output_new();
  code = evaluate_with(longer(batch, sizeof *batch, 1), NULL, &output, &error);
  expect_code("tail", code, RFT_UNIMPLEMENTED, &error, "rft_batch");
  cr_expect_eq(output.loss, -777.0);
}

Test(struct_errors, a_longer_reduction)
{
  const rft_reduction reduction = {.struct_size = sizeof reduction};
  rft_output output = output_new();
  rft_error error = error_new();
  int32_t code =
      evaluate_with(good_batch(), longer(&reduction, sizeof reduction, 0), &output, &error);
  expect_code("zero tail", code, RFT_OK, &error, "");
  output = output_new();
  code = evaluate_with(good_batch(), longer(&reduction, sizeof reduction, 9), &output, &error);
  expect_code("tail", code, RFT_UNIMPLEMENTED, &error, "rft_reduction");
  cr_expect_eq(output.loss, -777.0);
}

Test(struct_errors, a_longer_output)
{
  const rft_output output = output_new();
  rft_error error = error_new();
  rft_output *const zero = longer(&output, sizeof output, 0);
  expect_code("zero tail", evaluate_with(good_batch(), NULL, zero, &error), RFT_OK, &error, "");
  rft_output *const set = longer(&output, sizeof output, 1);
  expect_code("tail", evaluate_with(good_batch(), NULL, set, &error), RFT_UNIMPLEMENTED, &error,
              "rft_output");
  cr_expect_eq(set->loss, -777.0);
}

static int32_t finish_with(rft_selection_report *report, rft_error *error)
{
  rft_selection *selection = NULL;
  cr_assert_eq(m2po()->selection_begin(m2po_create("{}"), &selection, NULL), RFT_OK);
  cr_assert_eq(m2po()->selection_add(selection, good_batch(), NULL), RFT_OK);
  const int32_t code = m2po()->selection_finish(selection, NULL, report, error);
  m2po()->selection_end(selection);
  return code;
}

Test(struct_errors, a_longer_report)
{
  const rft_selection_report report = {.struct_size = sizeof report, .valid_tokens = -1};
  rft_error error = error_new();
  rft_selection_report *const zero = longer(&report, sizeof report, 0);
  expect_code("zero tail", finish_with(zero, &error), RFT_OK, &error, "");
  cr_expect_eq(zero->valid_tokens, 6);
  rft_selection_report *const set = longer(&report, sizeof report, 1);
  expect_code("tail", finish_with(set, &error), RFT_UNIMPLEMENTED, &error, "rft_selection_report");
  cr_expect_eq(set->valid_tokens, -1);
}

Test(struct_errors, a_struct_that_is_too_short)
{
  rft_error error = error_new();
  rft_output output = output_new();
  const rft_reduction reduction = {.struct_size = RFT_STRUCT_SIZE(rft_reduction, sequences)};
  expect_code("reduction", evaluate_with(good_batch(), &reduction, &output, &error),
              RFT_INVALID_ARGUMENT, &error, "rft_reduction");
  output.struct_size = RFT_STRUCT_SIZE(rft_output, metrics);
  expect_code("output", evaluate_with(good_batch(), NULL, &output, &error), RFT_INVALID_ARGUMENT,
              &error, "rft_output");
  cr_expect_eq(output.loss, -777.0);
  rft_selection_report report = {.struct_size = RFT_STRUCT_SIZE(rft_selection_report, metrics)};
  expect_code("report", finish_with(&report, &error), RFT_INVALID_ARGUMENT, &error,
              "rft_selection_report");
}

Test(struct_errors, a_missing_output)
{
  rft_error error = error_new();
  expect_code("output", evaluate_with(good_batch(), NULL, NULL, &error), RFT_INVALID_ARGUMENT,
              &error, "rft_output");
  expect_code("report", finish_with(NULL, &error), RFT_INVALID_ARGUMENT, &error,
              "rft_selection_report");
}

Test(struct_errors, a_missing_batch)
{
  rft_error error = error_new();
  rft_output output = output_new();
  expect_code("batch", evaluate_with(NULL, NULL, &output, &error), RFT_INVALID_ARGUMENT, &error,
              "rft_batch");
}

Test(struct_errors, a_reserved_field_that_is_set)
{
  rft_error error = error_new();
  rft_output output = output_new();
  rft_batch *const batch = good_batch();
  batch->reserved = 1;
  expect_code("batch", evaluate_with(batch, NULL, &output, &error), RFT_UNIMPLEMENTED, &error,
              "reserved");
  const rft_reduction reduction = {.struct_size = sizeof reduction, .reserved = 2};
  expect_code("reduction", evaluate_with(good_batch(), &reduction, &output, &error),
              RFT_UNIMPLEMENTED, &error, "reserved");
  cr_expect_eq(output.loss, -777.0);
}

Test(struct_errors, a_metrics_array_that_is_too_short)
{
  rft_error error = error_new();
  rft_output output = output_new();
  output.metrics = metrics_new();
  output.metric_count = m2po()->metric_count - 1;
  expect_code("output", evaluate_with(good_batch(), NULL, &output, &error), RFT_INVALID_ARGUMENT,
              &error, "metric_count");
  cr_expect_eq(output.loss, -777.0);
  rft_selection_report report = {.struct_size = sizeof report,
                                 .metrics = output.metrics,
                                 .metric_count = m2po()->metric_count - 1};
  expect_code("report", finish_with(&report, &error), RFT_INVALID_ARGUMENT, &error, "metric_count");
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    cr_expect_eq(output.metrics[i], METRIC_UNWRITTEN);
  }
}

Test(struct_errors, a_reduction_that_means_nothing)
{
  const rft_reduction wrong[] = {
      {.struct_size = sizeof wrong[0], .valid_tokens = -1},
      {.struct_size = sizeof wrong[0], .kept_tokens = -5},
      {.struct_size = sizeof wrong[0], .sequences = INT64_MIN},
      {.struct_size = sizeof wrong[0], .scale = NAN},
      {.struct_size = sizeof wrong[0], .scale = INFINITY},
  };
  for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; ++i) {
    rft_error error = error_new();
    rft_output output = output_new();
    expect_code("reduction", evaluate_with(good_batch(), &wrong[i], &output, &error),
                RFT_INVALID_ARGUMENT, &error, "rft_reduction");
    cr_expect_eq(output.loss, -777.0);
  }
}

Test(struct_errors, an_error_is_written_as_far_as_it_reaches)
{
  struct {
    rft_error error;
    unsigned char guard[8];
  } guarded;
  memset(&guarded, 0x5A, sizeof guarded);
  guarded.error.struct_size = 4;
  cr_expect_neq(evaluate_with(NULL, NULL, NULL, &guarded.error), RFT_OK);
  cr_expect_eq(guarded.error.code, 0x5A5A5A5A);
  guarded.error.struct_size = sizeof guarded.error;
  cr_expect_neq(evaluate_with(NULL, NULL, NULL, &guarded.error), RFT_OK);
  cr_expect_eq(guarded.error.code, RFT_INVALID_ARGUMENT);
  cr_expect_lt(strnlen(guarded.error.message, RFT_ERROR_MESSAGE_SIZE), RFT_ERROR_MESSAGE_SIZE);
  for (int i = 0; i < 8; ++i) {
    cr_expect_eq(guarded.guard[i], 0x5A);
  }
}

Test(struct_errors, an_error_is_not_written_on_success)
{
  rft_error error = error_new();
  error.code = 77;
  rft_output output = output_new();
  cr_expect_eq(evaluate_with(good_batch(), NULL, &output, &error), RFT_OK);
  cr_expect_eq(error.code, 77);
  cr_expect_eq(error.message[0], '\0');
}

// A host of a newer minor version offers more than the plugin knows; an older one less.
Test(struct_errors, hosts_of_other_minor_versions)
{
  void *const object = dlopen(RFT_TEST_PLUGIN_DIR "/libm2po_plugin.so", RTLD_NOW | RTLD_LOCAL);
  rft_plugin_entry entry;
  *(void **)&entry = dlsym(object, RFT_PLUGIN_ENTRY_SYMBOL);
  const rft_plugin *plugin = NULL;
  rft_host *const newer = longer(host_new(HOST_SERIAL, 1), sizeof(rft_host), 1);
  newer->abi_minor = 99;
  cr_expect_eq(entry(newer, &plugin, NULL), RFT_OK);
  cr_expect_eq(plugin, m2po_plugin(), "a second entry gives other tables");
  rft_host older = *host_new(HOST_SERIAL, 1);
  older.struct_size = RFT_STRUCT_SIZE(rft_host, host_data);
  const rft_plugin *untouched = NULL;
  rft_error error = error_new();
  cr_expect_eq(entry(&older, &untouched, &error), RFT_INVALID_ARGUMENT);
  cr_expect(strstr(error.message, "rft_host") != NULL, "%s", error.message);
  cr_expect_null(untouched);
}
