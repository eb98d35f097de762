// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Loss, gradient and metrics in every shape of the loss: against the literal formulas, against
// central differences, and against themselves in parts.

#include "compare.h"
#include "loss_batches.h"
#include "outcome.h"
#include "plugin_fixture.h"

TestSuite(loss, .fini = plugin_fixture_end);

enum { ROWS = 7, COLUMNS = 11, POSITIONS = ROWS * COLUMNS };

static rft_batch *batch_for(const loss_case *shape, uint64_t seed, const batch_dtypes *dtypes)
{
  rft_batch *const batch = loss_batch(seed, dtypes, ROWS, COLUMNS);
  if (!shape->proximal) {
    batch->proximal_logprob = NULL;
  }
  return batch;
}

static const bool *keep_of(const rft_tensor *mask)
{
  bool *const keep = test_alloc(tensor_count(mask));
  for (int64_t i = 0; i < tensor_count(mask); ++i) {
    keep[i] = tensor_get(mask, i) != 0;
  }
  return keep;
}

// ----------------------------------------------------------------------------------- the reference

/// The literal answer to one micro-batch that is the whole optimizer batch.
typedef struct literal {
  double loss;
  long double gradient[POSITIONS];
} literal;

static literal literal_answer(const loss_case *shape, const rft_batch *batch, const bool *keep)
{
  literal result;
  const reference_token *const tokens = batch_tokens(batch);
  const reference_denominators by = reference_count(tokens, POSITIONS, keep, COLUMNS);
  result.loss = (double)reference_loss(&shape->config.objective, tokens, POSITIONS, keep, &by,
                                       result.gradient);
  return result;
}

static void check_literal(const loss_case *shape, const batch_dtypes *dtypes, rft_dtype gradient)
{
  const rft_batch *const batch = batch_for(shape, 1, dtypes);
  const batch_list list = batch_list_of(batch);
  rft_instance *const instance = m2po_create(reference_config_text(&shape->config));
  const selection_result selection = select_ok(instance, &list);
  cr_assert_gt(metric(selection.metrics, "masked_tokens"), 0, "nothing is dropped");
  const rft_reduction reduction = reduction_of(&selection.report);
  const evaluation got = evaluate_ok(instance, batch, selection.mask[0], &reduction, gradient);
  const literal expected = literal_answer(shape, batch, keep_of(selection.mask[0]));
  cr_expect(is_close(got.loss, expected.loss, LOSS_TOLERANCE), "%s, %s: loss %.17g, expected %.17g",
            shape->name, dtype_name(dtypes->logprob), got.loss, expected.loss);
  for (int64_t i = 0; i < POSITIONS; ++i) {
    const double value = tensor_get(got.gradient, i);
    cr_expect(is_close(value, (double)expected.gradient[i], LOSS_TOLERANCE),
              "%s, %s: gradient[%d] is %.17g, expected %.17Lg", shape->name,
              dtype_name(dtypes->logprob), (int)i, value, expected.gradient[i]);
  }
}

ParameterizedTestParameters(loss, agrees_with_the_literal_formulas)
{
  return loss_cases();
}

ParameterizedTest(loss_case *shape, loss, agrees_with_the_literal_formulas)
{
  const batch_dtypes sets[] = {all_of(float64),
                               all_of(float32),
                               all_of(float16),
                               all_of(bfloat16),
                               {float32, bfloat16, float64, float16},
                               {float64, float32, float16, bfloat16}};
  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; ++i) {
    check_literal(shape, &sets[i], float32);
    check_literal(shape, &sets[i], float64);
  }
}

// Sizes beside the blocks and vectors that a fast loop works in.
static void check_size(rng *r, int64_t rows, int64_t columns, reference_config *config)
{
  const batch_dtypes dtypes = all_of(float32);
  rft_batch *const batch = loss_batch(rng_bits(r), &dtypes, rows, columns);
  batch->proximal_logprob = NULL;
  const int64_t count = rows * columns;
  const reference_token *const tokens = batch_tokens(batch);
  bool *const keep = test_alloc(count);
  long double *const gradient = test_alloc(count * (int64_t)sizeof *gradient);
  memset(keep, true, (size_t)count);
  const reference_denominators by = reference_count(tokens, count, keep, columns);
  const double loss =
      (double)reference_loss(&config->objective, tokens, count, keep, &by, gradient);
  rft_instance *const instance = m2po_create(reference_config_text(config));
  const evaluation got = evaluate_ok(instance, batch, NULL, NULL, float64);
  cr_expect(is_close(got.loss, loss, LOSS_TOLERANCE), "[%d,%d]: loss %.17g, expected %.17g",
            (int)rows, (int)columns, got.loss, loss);
  cr_expect_eq(metric(got.metrics, "tokens"), (double)by.valid, "[%d,%d]", (int)rows, (int)columns);
  for (int64_t i = 0; i < count; ++i) {
    cr_assert(is_close(tensor_get(got.gradient, i), (double)gradient[i], LOSS_TOLERANCE),
              "[%d,%d]: gradient[%d]", (int)rows, (int)columns, (int)i);
  }
}

Test(loss, batches_of_any_size)
{
  static const int64_t columns[] = {1,   2,   3,    7,    8,    9,    15,   16,   17,  31,
                                    63,  64,  65,   127,  128,  129,  255,  256,  257, 511,
                                    512, 513, 1023, 1024, 1025, 2047, 2048, 2049, 4097};
  rng r = {17};
  for (size_t i = 0; i < sizeof columns / sizeof columns[0]; ++i) {
    reference_config config = reference_config_default();
    config.objective.aggregation = (reference_aggregation)(i % 4);
    config.objective.surrogate = (reference_surrogate)(i % 3);
    check_size(&r, 2, columns[i], &config);
    check_size(&r, columns[i], 2, &config);
    plugin_fixture_end();
  }
}

// ----------------------------------------------------------------------------- central differences

// Where the loss has a corner within a step, or is flat on purpose, no difference tells the slope.
static bool is_smooth(const loss_case *shape, const reference_token *token)
{
  const reference_objective *const objective = &shape->config.objective;
  const double near = 1e-3;
  const double r = exp((double)reference_log_ratio(objective, token));
  return objective->surrogate != REFERENCE_PPO_CLIP ||
         (fabs(r - (1 - objective->clip_low)) > near &&
          fabs(r - (1 + objective->clip_high)) > near && fabs(r - objective->dual_clip) > near);
}

static double loss_with(const rft_instance *instance, const rft_batch *batch,
                        const rft_tensor *mask, int64_t position, double logprob)
{
  const double before = tensor_get(batch->logprob, position);
  tensor_set(batch->logprob, position, logprob);
  const double loss = evaluate_ok(instance, batch, mask, NULL, float64).loss;
  tensor_set(batch->logprob, position, before);
  return loss;
}

ParameterizedTestParameters(loss, the_gradient_is_the_slope_of_the_loss)
{
  return loss_cases();
}

ParameterizedTest(loss_case *shape, loss, the_gradient_is_the_slope_of_the_loss)
{
  const batch_dtypes dtypes = all_of(float64);
  const rft_batch *const batch = batch_for(shape, 2, &dtypes);
  const batch_list list = batch_list_of(batch);
  rft_instance *const instance = m2po_create(reference_config_text(&shape->config));
  const rft_tensor *const mask = select_ok(instance, &list).mask[0];
  const evaluation got = evaluate_ok(instance, batch, mask, NULL, float64);
  const reference_token *const tokens = batch_tokens(batch);
  const double step = 1e-5;
  for (int64_t i = 0; i < POSITIONS; ++i) {
    if (!is_smooth(shape, &tokens[i])) {
      continue;
    }
    const double x = tokens[i].logprob;
    const double slope = (loss_with(instance, batch, mask, i, x + step) -
                          loss_with(instance, batch, mask, i, x - step)) /
                         (2 * step);
    const double gradient = tensor_get(got.gradient, i);
    cr_expect(fabs(gradient - slope) <= 1e-6 * fabs(slope) + 1e-10,
              "%s: gradient[%d] is %.12g, the slope %.12g", shape->name, (int)i, gradient, slope);
  }
}

// ------------------------------------------------------------------------------------------- parts

ParameterizedTestParameters(loss, micro_batches_add_up)
{
  return loss_cases();
}

ParameterizedTest(loss_case *shape, loss, micro_batches_add_up)
{
  static const int64_t sizes[] = {2, 0, 4, 1};
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *const batch = batch_for(shape, 3, &dtypes);
  const batch_list whole = batch_list_of(batch);
  const batch_list parts = batch_split(batch, 4, sizes);
  rft_instance *const instance = m2po_create(reference_config_text(&shape->config));
  const selection_result selection = select_ok(instance, &parts);
  const selection_result whole_selection = select_ok(instance, &whole);
  const rft_reduction reduction = reduction_of(&selection.report);
  const evaluation expected =
      evaluate_ok(instance, batch, whole_selection.mask[0], &reduction, float32);
  double loss = 0;
  int64_t position = 0;
  for (int64_t k = 0; k < parts.count; ++k) {
    const evaluation part =
        evaluate_ok(instance, parts.batch[k], selection.mask[k], &reduction, float32);
    loss += part.loss;
    for (int64_t i = 0; i < batch_count(parts.batch[k]); ++i, ++position) {
      cr_expect(same_bits(tensor_get(part.gradient, i), tensor_get(expected.gradient, position)),
                "%s: gradient[%d]", shape->name, (int)position);
    }
  }
  cr_expect(is_close(loss, expected.loss, 1e-13), "%s: %.17g and %.17g", shape->name, loss,
            expected.loss);
}

// The counts that a host leaves 0 are those of the micro-batch.
ParameterizedTestParameters(loss, counts_that_are_not_given_are_the_own_ones)
{
  return loss_cases();
}

ParameterizedTest(loss_case *shape, loss, counts_that_are_not_given_are_the_own_ones)
{
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *const batch = batch_for(shape, 4, &dtypes);
  const batch_list list = batch_list_of(batch);
  rft_instance *const instance = m2po_create(reference_config_text(&shape->config));
  const selection_result selection = select_ok(instance, &list);
  const rft_reduction given = reduction_of(&selection.report);
  const rft_reduction zero = {.struct_size = sizeof zero};
  const rft_tensor *const mask = selection.mask[0];
  const double expected = evaluate_ok(instance, batch, mask, &given, float32).loss;
  cr_expect(same_bits(evaluate_ok(instance, batch, mask, &zero, float32).loss, expected));
  cr_expect(same_bits(evaluate_ok(instance, batch, mask, NULL, float32).loss, expected));
}

enum { MANY_ROWS = 2051, MANY_COLUMNS = 131, MANY_PARTS = 3 };

// A host's threads count the sequences of a large batch in parts.
Test(loss, counts_of_many_sequences)
{
  static const int64_t sizes[MANY_PARTS] = {683, 684, 684};
  const batch_dtypes dtypes = all_of(float32);
  const rft_host *const host = host_new(HOST_THREADED, 4);
  rft_batch *const batch = loss_batch(18, &dtypes, MANY_ROWS, MANY_COLUMNS);
  batch->proximal_logprob = NULL;
  const reference_denominators by =
      reference_count(batch_tokens(batch), batch_count(batch), keep_of(batch->mask), MANY_COLUMNS);
  const rft_reduction counts = {.struct_size = sizeof counts,
                                .valid_tokens = by.valid,
                                .kept_tokens = by.kept,
                                .sequences = by.sequences};
  const batch_list parts = batch_split(batch, MANY_PARTS, sizes);
  for (int aggregation = 0; aggregation < 4; ++aggregation) {
    reference_config config = reference_config_default();
    config.objective.aggregation = (reference_aggregation)aggregation;
    const char *const text = reference_config_text(&config);
    const evaluation whole = evaluate_ok(m2po_create_on(host, text), batch, NULL, NULL, float32);
    for (int64_t k = 0, start = 0; k < MANY_PARTS; start += sizes[k++]) {
      const evaluation part =
          evaluate_ok(m2po_create(text), parts.batch[k], NULL, &counts, float32);
      check_same_bytes(text, tensor_slice(whole.gradient, start, sizes[k]), part.gradient);
    }
  }
}

// ----------------------------------------------------------------------------------- scale, dtypes

ParameterizedTestParameters(loss, scale_multiplies_loss_and_gradient)
{
  return loss_cases();
}

ParameterizedTest(loss_case *shape, loss, scale_multiplies_loss_and_gradient)
{
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *const batch = batch_for(shape, 5, &dtypes);
  rft_instance *const instance = m2po_create(reference_config_text(&shape->config));
  const rft_reduction four = {.struct_size = sizeof four, .scale = 4.0};
  const evaluation once = evaluate_ok(instance, batch, NULL, NULL, float64);
  const evaluation scaled = evaluate_ok(instance, batch, NULL, &four, float64);
  cr_expect(is_close(scaled.loss, 4 * once.loss, 1e-14), "%s", shape->name);
  for (int64_t i = 0; i < POSITIONS; ++i) {
    cr_expect(is_close(tensor_get(scaled.gradient, i), 4 * tensor_get(once.gradient, i), 1e-14),
              "%s: gradient[%d]", shape->name, (int)i);
  }
  for (int64_t m = 0; m < m2po()->metric_count; ++m) {
    cr_expect(same_bits(once.metrics[m], scaled.metrics[m]), "%s: metric %s is scaled", shape->name,
              m2po()->metrics[m]->name);
  }
}

ParameterizedTestParameters(loss, a_narrow_gradient_is_the_wide_one_rounded_once)
{
  return loss_cases();
}

ParameterizedTest(loss_case *shape, loss, a_narrow_gradient_is_the_wide_one_rounded_once)
{
  const rft_dtype narrow[] = {float16, bfloat16, float32};
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *const batch = batch_for(shape, 6, &dtypes);
  rft_instance *const instance = m2po_create(reference_config_text(&shape->config));
  const evaluation wide = evaluate_ok(instance, batch, NULL, NULL, float64);
  for (int d = 0; d < 3; ++d) {
    const evaluation got = evaluate_ok(instance, batch, NULL, NULL, narrow[d]);
    cr_expect(same_bits(got.loss, wide.loss), "%s: the loss depends on the gradient's dtype",
              shape->name);
    for (int64_t i = 0; i < POSITIONS; ++i) {
      const double expected = dtype_round(narrow[d], tensor_get(wide.gradient, i));
      cr_expect(same_bits(tensor_get(got.gradient, i), expected),
                "%s, %s: gradient[%d] is %a, not %a", shape->name, dtype_name(narrow[d]), (int)i,
                tensor_get(got.gradient, i), expected);
    }
  }
}
