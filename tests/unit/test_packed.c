// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Packed batches, and batches without any position.

#include "compare.h"
#include "outcome.h"
#include "random_batches.h"
#include "reference_config.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>
#include <math.h>

TestSuite(packed, .fini = plugin_fixture_end);

enum { TOKENS = 30, SEQUENCES = 6 };

// Empty sequences at the start, inside and at the end.
static const double starts[SEQUENCES + 1] = {0, 0, 11, 11, 12, 30, 30};
static const double by_sequence[SEQUENCES] = {9.0, 1.0, -9.0, -0.5, 2.0, 9.0};

static rft_batch *packed_batch(const rft_tensor *cu_seqlens)
{
  rng r = {21};
  const batch_dtypes dtypes = all_of(float32);
  rft_batch *const batch = random_batch(&r, BATCH_PLAIN, &dtypes, TOKENS);
  batch->proximal_logprob = NULL;
  batch->cu_seqlens = cu_seqlens;
  return batch;
}

// The plugin's answer to a packed batch, against the literal one.
static outcome check(const char *what, const rft_batch *batch, const reference_config *config)
{
  rft_instance *const instance = m2po_create(reference_config_text(config));
  const batch_list list = batch_list_of(batch);
  const outcome got = outcome_of(instance, &list, float64);
  const int64_t count = batch_count(batch);
  const reference_token *const tokens = batch_tokens(batch);
  bool *const keep = test_alloc(count);
  long double *const gradient = test_alloc(count * (int64_t)sizeof *gradient);
  reference_select(&config->selection, tokens, count, keep);
  const reference_denominators by = reference_count(tokens, count, keep, batch_columns(batch));
  const double loss =
      (double)reference_loss(&config->objective, tokens, count, keep, &by, gradient);
  cr_expect_eq(got.selection.report.sequences, by.sequences, "%s", what);
  cr_expect(is_close(got.part[0].loss, loss, LOSS_TOLERANCE), "%s: loss %.17g, expected %.17g",
            what, got.part[0].loss, loss);
  for (int64_t i = 0; i < count; ++i) {
    cr_expect_eq(tensor_get(got.selection.mask[0], i), keep[i], "%s: mask[%d]", what, (int)i);
    cr_expect(is_close(tensor_get(got.part[0].gradient, i), (double)gradient[i], LOSS_TOLERANCE),
              "%s: gradient[%d]", what, (int)i);
  }
  return got;
}

static reference_config config_of(reference_aggregation aggregation)
{
  reference_config config = reference_config_default();
  config.selection.tau = 0.01;
  config.objective.aggregation = aggregation;
  config.objective.scale_factor = aggregation == REFERENCE_SEQ_MEAN_TOKEN_SUM_NORM ? 12.5 : 0.0;
  return config;
}

ParameterizedTestParameters(packed, every_aggregation_and_offset_dtype)
{
  reference_aggregation *const modes = cr_malloc(4 * sizeof *modes);
  for (int i = 0; i < 4; ++i) {
    modes[i] = (reference_aggregation)i;
  }
  return cr_make_param_array(reference_aggregation, modes, 4);
}

ParameterizedTest(reference_aggregation *mode, packed, every_aggregation_and_offset_dtype)
{
  const reference_config config = config_of(*mode);
  const outcome narrow =
      check("int32", packed_batch(tensor_1d(int32, SEQUENCES + 1, starts)), &config);
  const outcome wide =
      check("int64", packed_batch(tensor_1d(int64, SEQUENCES + 1, starts)), &config);
  check_same_outcome("int32 and int64", &narrow, &wide, 1);
}

Test(packed, one_advantage_a_sequence)
{
  const reference_config config = config_of(REFERENCE_SEQ_MEAN_TOKEN_MEAN);
  rft_batch *const batch = packed_batch(tensor_1d(int64, SEQUENCES + 1, starts));
  rft_tensor *const by_token = tensor_1d(float32, TOKENS, NULL);
  for (int64_t s = 0; s < SEQUENCES; ++s) {
    for (int64_t i = (int64_t)starts[s]; i < (int64_t)starts[s + 1]; ++i) {
      tensor_set(by_token, i, by_sequence[s]);
    }
  }
  batch->advantages = by_token;
  const outcome expected = check("[n]", batch, &config);
  batch->advantages = tensor_1d(float32, SEQUENCES, by_sequence);
  const outcome flat = check("[S]", batch, &config);
  check_same_outcome("[S]", &flat, &expected, 1);
  batch->advantages = tensor_2d(float32, SEQUENCES, 1, by_sequence);
  const outcome column = check("[S,1]", batch, &config);
  check_same_outcome("[S,1]", &column, &expected, 1);
}

Test(packed, cu_seqlens_in_any_layout)
{
  const reference_config config = config_of(REFERENCE_SEQ_MEAN_TOKEN_MEAN);
  const tensor_layout layouts[] = {{1, {SEQUENCES + 1, 0}, {3, 0}, false, 0},
                                   {1, {SEQUENCES + 1, 0}, {-1, 0}, false, 0},
                                   {1, {SEQUENCES + 1, 0}, {0, 0}, true, 4},
                                   {1, {SEQUENCES + 1, 0}, {-2, 0}, false, 1}};
  for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; ++i) {
    check("cu_seqlens", packed_batch(tensor_new(int32, &layouts[i], starts)), &config);
  }
}

Test(packed, one_row_without_cu_seqlens_is_one_sequence)
{
  static const double whole[] = {0, TOKENS};
  const reference_config config = config_of(REFERENCE_SEQ_MEAN_TOKEN_MEAN);
  const outcome packed = check("cu_seqlens", packed_batch(tensor_1d(int32, 2, whole)), &config);
  const outcome plain = check("none", packed_batch(NULL), &config);
  check_same_outcome("one sequence", &packed, &plain, 1);
  rft_batch *const single = packed_batch(NULL);
  single->advantages = tensor_1d(float32, 1, by_sequence);
  check("advantages [1]", single, &config);
}

Test(packed, the_padded_and_the_packed_form_of_a_batch_agree)
{
  // Three rows of 10 as one row of 30: the same tokens in the same sequences.
  static const double thirds[] = {0, 10, 20, 30};
  const reference_config config = config_of(REFERENCE_SEQ_MEAN_TOKEN_MEAN);
  const rft_batch *const flat = packed_batch(tensor_1d(int32, 4, thirds));
  const rft_tensor *const source[] = {flat->logprob, flat->old_logprob, flat->advantages,
                                      flat->mask};
  rft_tensor *padded[4];
  for (int t = 0; t < 4; ++t) {
    padded[t] = tensor_2d(source[t]->dtype, 3, 10, NULL);
    for (int64_t i = 0; i < TOKENS; ++i) {
      tensor_set(padded[t], i, tensor_get(source[t], i));
    }
  }
  const outcome a = check("packed", flat, &config);
  const outcome b =
      check("padded", batch_new(padded[0], padded[1], NULL, padded[2], padded[3], NULL), &config);
  check_same_outcome("packed and padded", &a, &b, 1);
}

Test(packed, the_padded_length_is_unknown_without_loss_scale_factor)
{
  rft_instance *const instance = m2po_create("{\"loss_agg_mode\": \"seq-mean-token-sum-norm\"}");
  evaluation unused;
  rft_error error = error_new();
  const int32_t code =
      m2po_evaluate(instance, packed_batch(tensor_1d(int32, SEQUENCES + 1, starts)), NULL, NULL,
                    float32, &unused, &error);
  cr_expect_eq(code, RFT_INVALID_ARGUMENT);
  cr_expect(strstr(error.message, "loss_scale_factor") != NULL, "%s", error.message);
}

// ------------------------------------------------------------------------------------ no positions

static void check_nothing(const char *what, const rft_batch *batch, const char *config)
{
  const batch_list list = batch_list_of(batch);
  const outcome got = outcome_of(m2po_create(config), &list, float32);
  static const char *const sums[] = {"tokens", "ratio_sum",      "k1_sum",
                                     "k3_sum", "clipped_tokens", "log_ratio_clipped_tokens"};
  static const char *const selected[] = {"valid_tokens",  "trust_region_tokens", "masked_tokens",
                                         "m2_sum_before", "m2_sum_after",        "m2_before",
                                         "m2_after"};
  cr_expect(same_bits(got.part[0].loss, 0.0), "%s: loss %a", what, got.part[0].loss);
  for (size_t i = 0; i < sizeof sums / sizeof sums[0]; ++i) {
    cr_expect_eq(metric(got.part[0].metrics, sums[i]), 0.0, "%s: %s", what, sums[i]);
  }
  for (size_t i = 0; i < sizeof selected / sizeof selected[0]; ++i) {
    cr_expect_eq(metric(got.selection.metrics, selected[i]), 0.0, "%s: %s", what, selected[i]);
  }
  cr_expect_eq(metric(got.part[0].metrics, "ratio_max"), -INFINITY, "%s", what);
  cr_expect_eq(metric(got.part[0].metrics, "ratio_min"), INFINITY, "%s", what);
  cr_expect_eq(metric(got.part[0].metrics, "log_ratio_abs_max"), -INFINITY, "%s", what);
  cr_expect_eq(got.selection.report.sequences, 0, "%s", what);
  for (int64_t i = 0; i < batch_count(batch); ++i) {
    cr_expect(same_bits(tensor_get(got.part[0].gradient, i), 0.0), "%s: gradient", what);
    cr_expect_eq(tensor_get(got.selection.mask[0], i), 0, "%s: mask", what);
  }
}

static rft_tensor *empty(rft_dtype dtype, int32_t ndim, int64_t rows, int64_t columns)
{
  return tensor_new(dtype, &(tensor_layout){ndim, {rows, columns}, {0, 0}, true, 0}, NULL);
}

static rft_batch *empty_batch(int32_t ndim, int64_t rows, int64_t columns)
{
  return batch_new(empty(float32, ndim, rows, columns), empty(float32, ndim, rows, columns), NULL,
                   empty(float32, ndim, rows, columns), empty(bool8, ndim, rows, columns), NULL);
}

static const char *const modes[] = {
    "{}",
    "{\"denominator\": \"kept\", \"surrogate\": \"ppo_clip\"}",
    "{\"loss_agg_mode\": \"seq-mean-token-sum\"}",
    "{\"loss_agg_mode\": \"seq-mean-token-mean\", \"surrogate\": \"sapo\"}",
    "{\"loss_agg_mode\": \"seq-mean-token-sum-norm\", \"loss_scale_factor\": 3}",
    "{\"selection\": \"all_tokens\", \"boundary\": \"below\", \"m2_threshold\": 0}",
};
enum { MODES = sizeof modes / sizeof modes[0] };

Test(packed, tensors_without_elements)
{
  for (int m = 0; m < MODES; ++m) {
    check_nothing("[0]", empty_batch(1, 0, 0), modes[m]);
    check_nothing("[0,5]", empty_batch(2, 0, 5), modes[m]);
    check_nothing("[5,0]", empty_batch(2, 5, 0), modes[m]);
    check_nothing("[0,0]", empty_batch(2, 0, 0), modes[m]);
    rft_batch *const by_row = empty_batch(2, 5, 0);
    by_row->advantages = tensor_1d(float32, 5, NULL);
    check_nothing("[5,0] with [5]", by_row, modes[m]);
    rft_batch *const sequences = empty_batch(1, 0, 0);
    sequences->cu_seqlens = tensor_1d(int32, 3, NULL);
    sequences->advantages = tensor_1d(float32, 2, by_sequence);
    check_nothing("two empty sequences", sequences, modes[m]);
    sequences->cu_seqlens = tensor_1d(int64, 1, NULL);
    sequences->advantages = empty(float32, 1, 0, 0);
    check_nothing("no sequence", sequences, modes[m]);
  }
}

Test(packed, no_valid_token)
{
  rft_batch *const batch = packed_batch(NULL);
  batch->mask = tensor_1d(bool8, TOKENS, NULL);
  for (int m = 0; m < MODES; ++m) {
    check_nothing("all masked", batch, modes[m]);
  }
}

Test(packed, a_selection_of_no_micro_batch)
{
  const batch_list none = {0, NULL};
  const selection_result got = select_ok(m2po_create("{}"), &none);
  cr_expect_eq(got.report.valid_tokens, 0);
  cr_expect_eq(metric(got.metrics, "m2_after"), 0.0);
}
