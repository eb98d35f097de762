// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wrong calls: out of order, with outputs that can't be written, with structs of another size.

#include "bad_inputs.h"
#include "plugin_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

TestSuite(call_errors, .fini = plugin_fixture_end);

static void expect_error(const char *what, int32_t code, int32_t expected, const rft_error *error,
                         const char *part)
{
  cr_expect_eq(code, expected, "%s: code %d, %s", what, code, error->message);
  cr_expect_eq(error->code, expected, "%s", what);
  cr_expect(strstr(error->message, part) != NULL, "%s: no \"%s\" in: %s", what, part,
            error->message);
}

// -------------------------------------------------------------------------------------- call order

static rft_selection *begin(const char *config)
{
  rft_selection *selection = NULL;
  cr_assert_eq(m2po()->selection_begin(m2po_create(config), &selection, NULL), RFT_OK);
  return selection;
}

static rft_selection *finished(void)
{
  rft_selection *const selection = begin("{}");
  rft_selection_report report = {.struct_size = sizeof report};
  cr_assert_eq(m2po()->selection_add(selection, good_batch(), NULL), RFT_OK);
  cr_assert_eq(m2po()->selection_finish(selection, NULL, &report, NULL), RFT_OK);
  return selection;
}

// A report whose every value is known.
static rft_selection_report marked_report(void)
{
  return (rft_selection_report){.struct_size = sizeof(rft_selection_report),
                                .valid_tokens = -1,
                                .kept_tokens = -2,
                                .sequences = -3,
                                .metrics = metrics_new(),
                                .metric_count = m2po()->metric_count};
}

static void expect_untouched_report(const rft_selection_report *report)
{
  cr_expect_eq(report->valid_tokens, -1);
  cr_expect_eq(report->kept_tokens, -2);
  cr_expect_eq(report->sequences, -3);
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    cr_expect_eq(report->metrics[i], METRIC_UNWRITTEN);
  }
}

static rft_tensor *marked_mask(void)
{
  static const double sevens[] = {7, 7, 7, 7, 7, 7};
  return tensor_2d(uint8, 2, 3, sevens);
}

static void expect_untouched_mask(const rft_tensor *mask)
{
  for (int64_t i = 0; i < tensor_count(mask); ++i) {
    cr_expect_eq(tensor_get(mask, i), 7, "mask[%d] is written", (int)i);
  }
}

Test(call_errors, add_after_finish)
{
  rft_selection *const selection = finished();
  rft_error error = error_new();
  const int32_t code = m2po()->selection_add(selection, good_batch(), &error);
  expect_error("add", code, RFT_FAILED_PRECONDITION, &error, "selection_finish");
  rft_tensor *const mask = marked_mask();
  cr_expect_eq(m2po()->selection_mask(selection, 0, mask, NULL), RFT_OK,
               "the failed add has broken the selection");
  m2po()->selection_end(selection);
}

Test(call_errors, mask_before_finish)
{
  rft_selection *const selection = begin("{}");
  cr_assert_eq(m2po()->selection_add(selection, good_batch(), NULL), RFT_OK);
  rft_tensor *const mask = marked_mask();
  rft_error error = error_new();
  const int32_t code = m2po()->selection_mask(selection, 0, mask, &error);
  expect_error("mask", code, RFT_FAILED_PRECONDITION, &error, "selection_finish");
  expect_untouched_mask(mask);
  m2po()->selection_end(selection);
}

Test(call_errors, finish_twice)
{
  rft_selection *const selection = finished();
  rft_selection_report report = marked_report();
  rft_error error = error_new();
  const int32_t code = m2po()->selection_finish(selection, NULL, &report, &error);
  expect_error("finish", code, RFT_FAILED_PRECONDITION, &error, "selection_finish");
  expect_untouched_report(&report);
  cr_expect_eq(m2po()->selection_mask(selection, 0, marked_mask(), NULL), RFT_OK);
  m2po()->selection_end(selection);
}

Test(call_errors, batch_index_out_of_range)
{
  rft_selection *const selection = finished();
  static const int64_t wrong[] = {-1, 1, 2, INT64_MAX, INT64_MIN};
  for (int i = 0; i < 5; ++i) {
    rft_tensor *const mask = marked_mask();
    rft_error error = error_new();
    const int32_t code = m2po()->selection_mask(selection, wrong[i], mask, &error);
    cr_expect(code == RFT_INVALID_ARGUMENT || code == RFT_OUT_OF_RANGE, "code %d", code);
    cr_expect(strstr(error.message, "batch_index") != NULL, "%s", error.message);
    expect_untouched_mask(mask);
  }
  m2po()->selection_end(selection);
}

Test(call_errors, finish_after_a_failed_add_fails_with_its_reason)
{
  rft_selection *const selection = begin("{}");
  rft_batch *const batch = good_batch();
  cr_assert_eq(m2po()->selection_add(selection, batch, NULL), RFT_OK);
  tensor_set(batch->logprob, 2, NAN);
  cr_assert_eq(m2po()->selection_add(selection, batch, NULL), RFT_OUT_OF_RANGE);
  rft_selection_report report = marked_report();
  rft_error error = error_new();
  const int32_t code = m2po()->selection_finish(selection, NULL, &report, &error);
  cr_expect_neq(code, RFT_OK);
  cr_expect(strstr(error.message, "index 2") != NULL, "%s", error.message);
  expect_untouched_report(&report);
  rft_tensor *const mask = marked_mask();
  cr_expect_neq(m2po()->selection_mask(selection, 0, mask, NULL), RFT_OK);
  expect_untouched_mask(mask);
  m2po()->selection_end(selection);
}

Test(call_errors, a_selection_ends_at_any_point)
{
  m2po()->selection_end(NULL);
  m2po()->destroy(NULL);
  m2po()->selection_end(begin("{}"));
  rft_selection *const added = begin("{}");
  cr_assert_eq(m2po()->selection_add(added, good_batch(), NULL), RFT_OK);
  m2po()->selection_end(added);
  m2po()->selection_end(finished());
}

Test(call_errors, m2_reference_proximal_needs_the_proximal_policy)
{
  rft_selection *const selection = begin("{\"m2_reference\": \"proximal\"}");
  rft_batch *const batch = good_batch();
  batch->proximal_logprob = NULL;
  rft_error error = error_new();
  const int32_t code = m2po()->selection_add(selection, batch, &error);
  expect_error("add", code, RFT_INVALID_ARGUMENT, &error, "proximal_logprob");
  cr_expect(strstr(error.message, "m2_reference") != NULL, "%s", error.message);
  m2po()->selection_end(selection);
}

// ----------------------------------------------------------------------------------- mask to write

Test(call_errors, a_mask_that_can_not_be_written)
{
  rft_selection *const selection = finished();
  const tensor_layout twice = {2, {2, 3}, {0, 1}, false, 0};
  rft_tensor *const on_cuda = marked_mask();
  on_cuda->device.type = RFT_DEVICE_CUDA;
  rft_tensor *const no_data = marked_mask();
  no_data->data = NULL;
  const struct {
    const char *what;
    const rft_tensor *mask;
    const char *part;
  } masks[] = {
      {"NULL", NULL, "NULL"},
      {"shape", tensor_2d(uint8, 3, 2, NULL), "[2, 3]"},
      {"dimensions", tensor_1d(uint8, 6, NULL), "[2, 3]"},
      {"float32", tensor_2d(float32, 2, 3, NULL), "uint8"},
      {"int64", tensor_2d(int64, 2, 3, NULL), "uint8"},
      {"device", on_cuda, "device"},
      {"no data", no_data, "NULL"},
      {"stride 0", tensor_new(uint8, &twice, NULL), "stride"},
  };
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; ++i) {
    rft_error error = error_new();
    const int32_t code = m2po()->selection_mask(selection, 0, masks[i].mask, &error);
    expect_error(masks[i].what, code, RFT_INVALID_ARGUMENT, &error, masks[i].part);
  }
  m2po()->selection_end(selection);
}

// ----------------------------------------------------------------------------- outputs of evaluate

// Evaluates the good batch with this gradient; no byte of it or of the loss may change.
static void expect_bad_gradient(const char *what, const rft_batch *batch,
                                const rft_tensor *gradient, const char *part)
{
  int64_t size;
  const unsigned char *const bytes = tensor_bytes(gradient, &size);
  unsigned char *const before = test_alloc(size);
  if (gradient->data != NULL) {
    memcpy(before, bytes, (size_t)size);
  }
  rft_output output = {.struct_size = sizeof output, .loss = -777, .gradient = gradient};
  rft_error error = error_new();
  const int32_t code = m2po()->evaluate(m2po_create("{}"), batch, NULL, NULL, &output, &error);
  expect_error(what, code, RFT_INVALID_ARGUMENT, &error, part);
  cr_expect(strstr(error.message, "gradient") != NULL, "%s: %s", what, error.message);
  cr_expect_eq(output.loss, -777.0, "%s", what);
  cr_expect(gradient->data == NULL || memcmp(before, bytes, (size_t)size) == 0,
            "%s: the gradient is written", what);
}

Test(call_errors, a_gradient_that_can_not_be_written)
{
  const tensor_layout row_twice = {2, {2, 3}, {0, 1}, false, 0};
  const tensor_layout column_twice = {2, {2, 3}, {3, 0}, false, 0};
  const tensor_layout crossing = {2, {2, 3}, {2, 1}, false, 0};
  rft_tensor *const on_cuda = tensor_2d(float32, 2, 3, NULL);
  on_cuda->device.type = RFT_DEVICE_CUDA;
  rft_tensor *const no_data = tensor_2d(float32, 2, 3, NULL);
  no_data->data = NULL;
  expect_bad_gradient("shape", good_batch(), tensor_2d(float32, 2, 4, NULL), "[2, 4]");
  expect_bad_gradient("dimensions", good_batch(), tensor_1d(float32, 6, NULL), "[6]");
  expect_bad_gradient("dtype", good_batch(), tensor_2d(int32, 2, 3, NULL), "dtype");
  expect_bad_gradient("device", good_batch(), on_cuda, "device");
  expect_bad_gradient("no data", good_batch(), no_data, "NULL");
  expect_bad_gradient("row stride 0", good_batch(), tensor_new(float32, &row_twice, NULL),
                      "stride");
  expect_bad_gradient("column stride 0", good_batch(), tensor_new(float32, &column_twice, NULL),
                      "stride");
  expect_bad_gradient("crossing rows", good_batch(), tensor_new(float32, &crossing, NULL),
                      "stride");
}

Test(call_errors, a_gradient_over_an_input)
{
  rft_batch *const batch = good_batch();
  const struct {
    const char *name;
    const rft_tensor *tensor;
  } inputs[] = {{"old_logprob", batch->old_logprob},
                {"proximal_logprob", batch->proximal_logprob},
                {"advantages", batch->advantages},
                {"mask", batch->mask},
                {"logprob", batch->logprob}};
  for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; ++i) {
    rft_tensor *const whole = tensor_2d(float32, 2, 3, NULL);
    whole->data = inputs[i].tensor->data;
    expect_bad_gradient("whole", batch, whole, inputs[i].name);
  }
  // Half of the gradient lies on the end of logprob.
  const tensor_layout behind = {2, {2, 3}, {0, 0}, true, 12};
  rft_tensor *const half = tensor_new(float32, &behind, NULL);
  rft_tensor *const logprob = tensor_2d(float32, 2, 3, NULL);
  logprob->data = half->data;
  batch->logprob = logprob;
  half->byte_offset = 12;
  logprob->byte_offset = 0;
  expect_bad_gradient("half", batch, half, "logprob");
}

Test(call_errors, a_gradient_over_the_mask_of_kept_tokens)
{
  unsigned char *const memory = test_alloc(64);
  rft_tensor *const gradient = tensor_2d(float32, 2, 3, NULL);
  rft_tensor *const mask = tensor_2d(uint8, 2, 3, NULL);
  gradient->data = memory;
  mask->data = memory + 8;
  rft_output output = {.struct_size = sizeof output, .loss = -777, .gradient = gradient};
  rft_error error = error_new();
  const int32_t code =
      m2po()->evaluate(m2po_create("{}"), good_batch(), mask, NULL, &output, &error);
  expect_error("mask", code, RFT_INVALID_ARGUMENT, &error, "mask");
}

Test(call_errors, a_mask_of_kept_tokens_that_can_not_be_read)
{
  rft_tensor *const on_cuda = tensor_2d(uint8, 2, 3, NULL);
  on_cuda->device.type = RFT_DEVICE_CUDA;
  const rft_tensor *const masks[] = {tensor_2d(uint8, 3, 2, NULL), tensor_1d(uint8, 6, NULL),
                                     tensor_2d(float32, 2, 3, NULL), tensor_2d(int32, 2, 3, NULL),
                                     on_cuda};
  for (int i = 0; i < 5; ++i) {
    evaluation unused;
    rft_error error = error_new();
    const int32_t code =
        m2po_evaluate(m2po_create("{}"), good_batch(), masks[i], NULL, float32, &unused, &error);
    expect_error("mask", code, RFT_INVALID_ARGUMENT, &error, "mask");
  }
}
