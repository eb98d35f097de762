// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Outputs in every layout of memory: the elements are written through the strides, and not one
// byte beside them.

#include "outcome.h"
#include "random_batches.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <string.h>

TestSuite(output_layouts, .fini = plugin_fixture_end);

enum { ROWS = 4, COLUMNS = 5, POSITIONS = ROWS * COLUMNS };

static const char config[] = "{\"m2_threshold\": 0.01}";

typedef struct named_layout {
  char name[24];
  tensor_layout layout;
} named_layout;

static struct criterion_test_params layout_parameters(void)
{
  static const named_layout layouts[] = {
      {"compact", {2, {ROWS, COLUMNS}, {0, 0}, true, 0}},
      {"transposed", {2, {ROWS, COLUMNS}, {1, ROWS}, false, 0}},
      {"sliced rows", {2, {ROWS, COLUMNS}, {COLUMNS + 3, 1}, false, 0}},
      {"sliced columns", {2, {ROWS, COLUMNS}, {COLUMNS * 2, 2}, false, 0}},
      {"both reversed", {2, {ROWS, COLUMNS}, {-COLUMNS * 2, -2}, false, 0}},
      {"odd byte offset", {2, {ROWS, COLUMNS}, {COLUMNS + 1, 1}, false, 7}},
      // 0 2 4 6 8, 5 7 9 11 13, 10 ...: no element twice, though the rows run into one another.
      {"interleaved", {2, {ROWS, COLUMNS}, {5, 2}, false, 0}},
  };
  named_layout *const copy = cr_malloc(sizeof layouts);
  memcpy(copy, layouts, sizeof layouts);
  return cr_make_param_array(named_layout, copy, sizeof layouts / sizeof layouts[0]);
}

static rft_batch *batch_2d(void)
{
  rng r = {3};
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *const flat = random_batch(&r, BATCH_PLAIN, &dtypes, POSITIONS);
  const rft_tensor *const source[] = {flat->logprob, flat->old_logprob, flat->advantages,
                                      flat->mask};
  rft_tensor *made[4];
  for (int t = 0; t < 4; ++t) {
    made[t] = tensor_2d(source[t]->dtype, ROWS, COLUMNS, NULL);
    for (int64_t i = 0; i < POSITIONS; ++i) {
      tensor_set(made[t], i, tensor_get(source[t], i));
    }
  }
  return batch_new(made[0], made[1], NULL, made[2], made[3], NULL);
}

// The tensor that an output must be, gaps included: `values` in that layout.
static rft_tensor *expected_bytes(rft_dtype dtype, const tensor_layout *layout,
                                  const rft_tensor *values)
{
  rft_tensor *const tensor = tensor_new(dtype, layout, NULL);
  for (int64_t i = 0; i < POSITIONS; ++i) {
    tensor_set(tensor, i, tensor_get(values, i));
  }
  return tensor;
}

ParameterizedTestParameters(output_layouts, gradient)
{
  return layout_parameters();
}

ParameterizedTest(named_layout *named, output_layouts, gradient)
{
  const rft_dtype dtypes[] = {float16, bfloat16, float32, float64};
  const rft_batch *const batch = batch_2d();
  rft_instance *const instance = m2po_create(config);
  for (int d = 0; d < 4; ++d) {
    const evaluation compact = evaluate_ok(instance, batch, NULL, NULL, dtypes[d]);
    rft_tensor *const gradient = tensor_new(dtypes[d], &named->layout, NULL);
    rft_output output = {.struct_size = sizeof output, .gradient = gradient};
    rft_error error = error_new();
    const int32_t code = m2po()->evaluate(instance, batch, NULL, NULL, &output, &error);
    cr_assert_eq(code, RFT_OK, "%s: %s", named->name, error.message);
    check_same_bytes(named->name, gradient,
                     expected_bytes(dtypes[d], &named->layout, compact.gradient));
  }
}

// Selects, and writes the mask into a tensor of that dtype and layout.
static void check_mask(const named_layout *named, rft_dtype dtype)
{
  const rft_batch *const batch = batch_2d();
  const batch_list list = batch_list_of(batch);
  rft_instance *const instance = m2po_create(config);
  const selection_result compact = select_ok(instance, &list);
  rft_tensor *const mask = tensor_new(dtype, &named->layout, NULL);
  rft_selection *selection = NULL;
  rft_selection_report report = {.struct_size = sizeof report};
  rft_error error = error_new();
  cr_assert_eq(m2po()->selection_begin(instance, &selection, &error), RFT_OK);
  cr_assert_eq(m2po()->selection_add(selection, batch, &error), RFT_OK);
  cr_assert_eq(m2po()->selection_finish(selection, NULL, &report, &error), RFT_OK);
  const int32_t code = m2po()->selection_mask(selection, 0, mask, &error);
  m2po()->selection_end(selection);
  cr_assert_eq(code, RFT_OK, "%s: %s", named->name, error.message);
  check_same_bytes(named->name, mask, expected_bytes(dtype, &named->layout, compact.mask[0]));
}

ParameterizedTestParameters(output_layouts, selection_mask)
{
  return layout_parameters();
}

ParameterizedTest(named_layout *named, output_layouts, selection_mask)
{
  check_mask(named, uint8);
  check_mask(named, bool8);
}

// The mask that evaluate reads, in the dtypes and layouts that a host may give it.
ParameterizedTestParameters(output_layouts, evaluated_mask)
{
  return layout_parameters();
}

ParameterizedTest(named_layout *named, output_layouts, evaluated_mask)
{
  const rft_dtype dtypes[] = {bool8, int8, uint8};
  const rft_batch *const batch = batch_2d();
  const batch_list list = batch_list_of(batch);
  rft_instance *const instance = m2po_create(config);
  const selection_result selection = select_ok(instance, &list);
  const evaluation expected = evaluate_ok(instance, batch, selection.mask[0], NULL, float32);
  for (int d = 0; d < 3; ++d) {
    const rft_tensor *const mask = expected_bytes(dtypes[d], &named->layout, selection.mask[0]);
    const evaluation got = evaluate_ok(instance, batch, mask, NULL, float32);
    cr_expect_eq(got.loss, expected.loss, "%s", named->name);
    check_same_bytes(named->name, got.gradient, expected.gradient);
  }
}

// logprob in the even columns and its gradient in the odd ones of one allocation.
Test(output_layouts, a_gradient_between_the_elements_of_an_input_overlaps_nothing)
{
  rft_batch *const batch = batch_2d();
  const tensor_layout even = {2, {ROWS, COLUMNS}, {COLUMNS * 2, 2}, false, 0};
  const tensor_layout all = {2, {ROWS, COLUMNS * 2}, {0, 0}, true, 0};
  rft_tensor *const shared = tensor_new(float32, &all, NULL);
  rft_tensor *const logprob = tensor_new(float32, &even, NULL);
  rft_tensor *const gradient = tensor_new(float32, &even, NULL);
  logprob->data = shared->data;
  gradient->data = shared->data;
  gradient->byte_offset = sizeof(float);
  for (int64_t i = 0; i < POSITIONS; ++i) {
    tensor_set(logprob, i, tensor_get(batch->logprob, i));
  }
  rft_instance *const instance = m2po_create(config);
  const evaluation expected = evaluate_ok(instance, batch, NULL, NULL, float32);
  batch->logprob = logprob;
  rft_output output = {.struct_size = sizeof output, .gradient = gradient};
  rft_error error = error_new();
  const int32_t code = m2po()->evaluate(instance, batch, NULL, NULL, &output, &error);
  cr_assert_eq(code, RFT_OK, "%s", error.message);
  for (int64_t i = 0; i < POSITIONS; ++i) {
    cr_expect_eq(tensor_get(gradient, i), tensor_get(expected.gradient, i), "gradient[%d]", (int)i);
  }
}

Test(output_layouts, outputs_that_are_not_wanted_may_be_null)
{
  const rft_batch *const batch = batch_2d();
  rft_instance *const instance = m2po_create(config);
  const evaluation expected = evaluate_ok(instance, batch, NULL, NULL, float32);
  rft_output output = {.struct_size = sizeof output};
  cr_assert_eq(m2po()->evaluate(instance, batch, NULL, NULL, &output, NULL), RFT_OK);
  cr_expect_eq(output.loss, expected.loss);
}
