// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Padded batches in every layout of memory: the same values give the same bits as compact tensors,
// and what lies between the elements of an output is left alone.

#include "outcome.h"
#include "random_batches.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

TestSuite(layouts, .fini = plugin_fixture_end);

enum { ROWS = 6, COLUMNS = 9, POSITIONS = ROWS * COLUMNS };

static const char config[] = "{\"m2_threshold\": 0.01, \"loss_agg_mode\": \"seq-mean-token-mean\"}";

// ------------------------------------------------------------------------------------------ values

static void copy_values(const rft_tensor *tensor, double *values)
{
  for (int64_t i = 0; i < tensor_count(tensor); ++i) {
    values[i] = tensor_get(tensor, i);
  }
}

// A compact [rows, columns] batch.
static rft_batch *compact_batch(int64_t rows, int64_t columns)
{
  rng r = {11};
  const batch_dtypes dtypes = {float32, bfloat16, float32, float16};
  const rft_batch *const flat = random_batch(&r, BATCH_PLAIN, &dtypes, rows * columns);
  const rft_tensor *const source[] = {flat->logprob, flat->old_logprob, flat->advantages,
                                      flat->mask};
  rft_tensor *made[4];
  for (int t = 0; t < 4; ++t) {
    double *const values = test_alloc(rows * columns * (int64_t)sizeof *values);
    copy_values(source[t], values);
    made[t] = tensor_2d(source[t]->dtype, rows, columns, values);
  }
  return batch_new(made[0], made[1], NULL, made[2], made[3], NULL);
}

// The same elements in another layout.
static rft_tensor *relaid(const rft_tensor *tensor, const tensor_layout *layout)
{
  double values[POSITIONS];
  copy_values(tensor, values);
  return tensor_new(tensor->dtype, layout, values);
}

typedef struct named_layout {
  char name[24];
  tensor_layout layout;
} named_layout;

static const named_layout layouts[] = {
    {"strides given", {2, {ROWS, COLUMNS}, {COLUMNS, 1}, false, 0}},
    {"transposed", {2, {ROWS, COLUMNS}, {1, ROWS}, false, 0}},
    {"sliced rows", {2, {ROWS, COLUMNS}, {COLUMNS + 5, 1}, false, 0}},
    {"sliced columns", {2, {ROWS, COLUMNS}, {COLUMNS * 3, 3}, false, 0}},
    {"sliced transposed", {2, {ROWS, COLUMNS}, {2, ROWS * 2 + 1}, false, 0}},
    {"rows reversed", {2, {ROWS, COLUMNS}, {-COLUMNS, 1}, false, 0}},
    {"columns reversed", {2, {ROWS, COLUMNS}, {COLUMNS, -1}, false, 0}},
    {"both reversed", {2, {ROWS, COLUMNS}, {-COLUMNS - 2, -1}, false, 0}},
    {"transposed reversed", {2, {ROWS, COLUMNS}, {-1, ROWS}, false, 0}},
    {"byte offset", {2, {ROWS, COLUMNS}, {0, 0}, true, 16}},
    {"odd byte offset", {2, {ROWS, COLUMNS}, {0, 0}, true, 3}},
    {"offset and strides", {2, {ROWS, COLUMNS}, {COLUMNS * 2, -2}, false, 5}},
};
enum { LAYOUTS = sizeof layouts / sizeof layouts[0] };

static struct criterion_test_params layout_parameters(void)
{
  named_layout *const copy = cr_malloc(sizeof layouts);
  memcpy(copy, layouts, sizeof layouts);
  return cr_make_param_array(named_layout, copy, LAYOUTS);
}

// ------------------------------------------------------------------------------------------ inputs

static void check_batch(const char *what, const rft_batch *batch, const rft_batch *expected)
{
  rft_instance *const instance = m2po_create(config);
  const batch_list a = batch_list_of(batch);
  const batch_list b = batch_list_of(expected);
  const outcome got = outcome_of(instance, &a, float32);
  const outcome wanted = outcome_of(instance, &b, float32);
  cr_assert_gt(metric(wanted.selection.metrics, "masked_tokens"), 0, "nothing is dropped");
  check_same_outcome(what, &got, &wanted, 1);
}

ParameterizedTestParameters(layouts, an_input_in_any_layout)
{
  return layout_parameters();
}

ParameterizedTest(named_layout *named, layouts, an_input_in_any_layout)
{
  const rft_batch *const compact = compact_batch(ROWS, COLUMNS);
  for (int t = 0; t < 5; ++t) { // each tensor alone, then all at once
    rft_batch *const batch = batch_new(compact->logprob, compact->old_logprob, NULL,
                                       compact->advantages, compact->mask, NULL);
    const rft_tensor **const tensor[] = {&batch->logprob, &batch->old_logprob, &batch->advantages,
                                         &batch->mask};
    for (int i = 0; i < 4; ++i) {
      *tensor[i] = t == i || t == 4 ? relaid(*tensor[i], &named->layout) : *tensor[i];
    }
    char what[64];
    snprintf(what, sizeof what, "%s, tensor %d", named->name, t);
    check_batch(what, batch, compact);
  }
}

// Rows and columns that cut through the blocks that a fast loop works in.
Test(layouts, a_large_transposed_batch)
{
  enum { MANY_ROWS = 97, MANY_COLUMNS = 211 };
  const tensor_layout transposed = {2, {MANY_ROWS, MANY_COLUMNS}, {1, MANY_ROWS}, false, 0};
  const rft_batch *const compact = compact_batch(MANY_ROWS, MANY_COLUMNS);
  const rft_tensor *const source[] = {compact->logprob, compact->old_logprob, compact->advantages,
                                      compact->mask};
  rft_tensor *made[4];
  for (int t = 0; t < 4; ++t) {
    made[t] = tensor_new(source[t]->dtype, &transposed, NULL);
    for (int64_t i = 0; i < tensor_count(source[t]); ++i) {
      tensor_set(made[t], i, tensor_get(source[t], i));
    }
  }
  check_batch("large", batch_new(made[0], made[1], NULL, made[2], made[3], NULL), compact);
}

Test(layouts, strides_of_dimensions_of_size_one_mean_nothing)
{
  static const tensor_layout odd[] = {
      {2, {1, COLUMNS}, {12345, 1}, false, 0}, {2, {1, COLUMNS}, {-7, 1}, false, 0},
      {2, {1, COLUMNS}, {0, 1}, false, 0},     {2, {COLUMNS, 1}, {1, 999}, false, 0},
      {2, {COLUMNS, 1}, {1, 0}, false, 0},     {2, {COLUMNS, 1}, {1, -3}, false, 0}};
  for (size_t i = 0; i < sizeof odd / sizeof odd[0]; ++i) {
    const rft_batch *const compact = compact_batch(odd[i].shape[0], odd[i].shape[1]);
    const rft_batch *const batch =
        batch_new(relaid(compact->logprob, &odd[i]), relaid(compact->old_logprob, &odd[i]), NULL,
                  relaid(compact->advantages, &odd[i]), relaid(compact->mask, &odd[i]), NULL);
    check_batch("odd stride", batch, compact);
    const tensor_layout *const layout = &odd[i];
    rft_tensor *const gradient = tensor_new(float32, layout, NULL);
    rft_output output = {.struct_size = sizeof output, .gradient = gradient};
    rft_error error = error_new();
    cr_expect_eq(m2po()->evaluate(m2po_create(config), batch, NULL, NULL, &output, &error), RFT_OK,
                 "%s", error.message);
  }
}

Test(layouts, strides_beyond_two_gibibytes)
{
  const int64_t stride = INT64_C(1) << 30; // float32: 4 GiB a row
  const size_t size = ((size_t)stride + COLUMNS) * sizeof(float);
  void *const memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    cr_skip_test("no address space of %zu bytes", size);
  }
  const rft_batch *const compact = compact_batch(2, COLUMNS);
  rft_tensor *const far =
      tensor_new(float32, &(tensor_layout){2, {2, COLUMNS}, {COLUMNS, 1}, false, 0}, NULL);
  far->data = memory;
  far->strides[0] = stride;
  for (int64_t i = 0; i < 2 * COLUMNS; ++i) {
    tensor_set(far, i, tensor_get(compact->logprob, i));
  }
  check_batch("far rows",
              batch_new(far, compact->old_logprob, NULL, compact->advantages, compact->mask, NULL),
              compact);
  munmap(memory, size);
}

// -------------------------------------------------------------------------------------- advantages

// A [ROWS, COLUMNS] tensor of one value a row.
static rft_tensor *row_values(const double *row)
{
  double values[POSITIONS];
  for (int i = 0; i < POSITIONS; ++i) {
    values[i] = row[i / COLUMNS];
  }
  return tensor_2d(float32, ROWS, COLUMNS, values);
}

Test(layouts, one_advantage_a_sequence_in_every_form)
{
  static const double row[ROWS] = {1.0, -0.5, 0.0, 2.0, -1.5, 0.25};
  const tensor_layout broadcast = {2, {ROWS, COLUMNS}, {1, 0}, false, 0};
  const tensor_layout strided = {1, {ROWS, 0}, {3, 0}, false, 4};
  const tensor_layout reversed = {2, {ROWS, 1}, {-2, 77}, false, 0};
  const rft_tensor *const expected = row_values(row);
  const struct {
    const char *name;
    const rft_tensor *tensor;
  } forms[] = {
      {"[B]", tensor_1d(float32, ROWS, row)},
      {"[B,1]", tensor_2d(float32, ROWS, 1, row)},
      {"[B,T] with stride 0", relaid(expected, &broadcast)},
      {"[B] strided", tensor_new(float32, &strided, row)},
      {"[B,1] reversed", tensor_new(float32, &reversed, row)},
      {"[B] float64", tensor_1d(float64, ROWS, row)},
      {"[B,1] bfloat16", tensor_2d(bfloat16, ROWS, 1, row)},
  };
  rft_batch *const compact = compact_batch(ROWS, COLUMNS);
  compact->advantages = expected;
  for (size_t i = 0; i < sizeof forms / sizeof forms[0]; ++i) {
    check_batch(forms[i].name,
                batch_new(compact->logprob, compact->old_logprob, NULL, forms[i].tensor,
                          compact->mask, NULL),
                compact);
  }
}

Test(layouts, one_advantage_for_everything_by_strides_of_zero)
{
  static const double ones[POSITIONS] = {[POSITIONS - 1] = 0.5};
  const tensor_layout single = {2, {ROWS, COLUMNS}, {0, 0}, false, 0};
  const rft_tensor *const broadcast = tensor_new(float32, &single, ones);
  static const double halves[ROWS] = {0.5, 0.5, 0.5, 0.5, 0.5, 0.5};
  rft_batch *const compact = compact_batch(ROWS, COLUMNS);
  compact->advantages = row_values(halves);
  check_batch(
      "stride 0",
      batch_new(compact->logprob, compact->old_logprob, NULL, broadcast, compact->mask, NULL),
      compact);
}

// ------------------------------------------------------------------------------------------- masks

// The mask's values turned into others that mean the same.
static rft_tensor *mask_like(const rft_tensor *mask, rft_dtype dtype, double valid)
{
  double values[POSITIONS];
  copy_values(mask, values);
  for (int i = 0; i < POSITIONS; ++i) {
    values[i] *= valid;
  }
  return tensor_2d(dtype, ROWS, COLUMNS, values);
}

Test(layouts, every_mask_dtype)
{
  const struct {
    rft_dtype dtype;
    double valid;
  } masks[] = {{bool8, 1},      {bool8, 255},  {int8, -1},     {int8, 2},   {uint8, 128},
               {int32, -70000}, {int32, 1},    {int32, 65536}, {int64, 1},  {int64, 4294967296.0},
               {float16, 1},    {bfloat16, 1}, {float32, 1},   {float64, 1}};
  const rft_batch *const compact = compact_batch(ROWS, COLUMNS);
  for (size_t i = 0; i < sizeof masks / sizeof masks[0]; ++i) {
    const rft_tensor *const mask = mask_like(compact->mask, masks[i].dtype, masks[i].valid);
    check_batch(
        dtype_name(masks[i].dtype),
        batch_new(compact->logprob, compact->old_logprob, NULL, compact->advantages, mask, NULL),
        compact);
  }
}

Test(layouts, a_negative_zero_in_a_float_mask_is_not_valid)
{
  const rft_batch *const compact = compact_batch(ROWS, COLUMNS);
  rft_tensor *const mask = mask_like(compact->mask, float32, 1);
  for (int64_t i = 0; i < POSITIONS; ++i) {
    tensor_set(mask, i, tensor_get(mask, i) == 0 ? -0.0 : 1.0);
  }
  check_batch(
      "-0.0",
      batch_new(compact->logprob, compact->old_logprob, NULL, compact->advantages, mask, NULL),
      compact);
}
