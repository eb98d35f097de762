// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The numbers: gradient, reductions, metrics, and that they come out the same each time.

#include "batches.h"
#include "check.h"
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void gradient_is_the_derivative(const check_subject *subject)
{
  rng r = {subject->seed};
  const double step = 1e-5;
  const check_values values = check_values_real(&r, 3, 5);
  const check_form form = check_form_wide();
  const rft_instance *const instance = check_create(subject);
  const check_outcome at = check_evaluate_ok("ordinary batch", subject, instance,
                                             check_batch(&values, &form), NULL, NULL, NULL);
  for (int64_t i = 0; i < at.count; ++i) {
    const check_values moved = check_values_copy(&values);
    moved.logprob[i] += step;
    const check_outcome above = check_evaluate_ok("ordinary batch", subject, instance,
                                                  check_batch(&moved, &form), NULL, NULL, NULL);
    moved.logprob[i] -= 2 * step;
    const check_outcome below = check_evaluate_ok("ordinary batch", subject, instance,
                                                  check_batch(&moved, &form), NULL, NULL, NULL);
    const double slope = (above.loss - below.loss) / (2 * step);
    EXPECT(fabs(slope - at.gradient[i]) <= 1e-7,
           "at position %" PRId64 " the loss changes by %.9g, the gradient is %.9g", i, slope,
           at.gradient[i]);
  }
}

static void bits_repeat(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_real(&r, 16, 300);
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_batch(&values, &form);
  const check_outcome first =
      check_evaluate_ok("first call", subject, instance, batch, NULL, NULL, NULL);
  const check_outcome second =
      check_evaluate_ok("second call", subject, instance, batch, NULL, NULL, NULL);
  EXPECT(check_same_outcome(&first, &second),
         "the same call gives other bits; the loss is %.17g and %.17g", first.loss, second.loss);
}

static void outputs_are_optional(const check_subject *subject)
{
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_ordinary_batch(subject);
  const check_outcome expected =
      check_evaluate_ok("ordinary batch", subject, instance, batch, NULL, NULL, NULL);
  rft_error error = {.struct_size = sizeof error};
  rft_output output = {.struct_size = RFT_STRUCT_SIZE(rft_output, metric_count), .loss = UNWRITTEN};
  const int32_t code = subject->loss->evaluate(instance, batch, NULL, NULL, &output, &error);
  EXPECT(code == RFT_OK, "without gradient and metrics evaluate returns %d: %.400s", code,
         error.message);
  EXPECT(output.loss == expected.loss,
         "without gradient and metrics the loss is %.17g, with them %.17g", output.loss,
         expected.loss);
}

// -------------------------------------------------------------------------------------- reductions

static rft_reduction counts_of(const check_values *values, double scale)
{
  const int64_t valid = check_values_valid(values);
  return (rft_reduction){.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale),
                         .valid_tokens = valid,
                         .kept_tokens = valid,
                         .sequences = values->rows,
                         .scale = scale};
}

static void zeros_count_the_batch(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_real(&r, 4, 6);
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_batch(&values, &form);
  const rft_reduction zeros = {.struct_size = RFT_STRUCT_SIZE(rft_reduction, scale)};
  const rft_reduction counts = counts_of(&values, 1);
  const check_outcome none =
      check_evaluate_ok("reduction NULL", subject, instance, batch, NULL, NULL, NULL);
  const check_outcome zero =
      check_evaluate_ok("reduction of zeros", subject, instance, batch, NULL, &zeros, NULL);
  const check_outcome own =
      check_evaluate_ok("the batch's own counts", subject, instance, batch, NULL, &counts, NULL);
  EXPECT(check_same_outcome(&none, &zero), "a reduction of zeros is not one that is NULL");
  EXPECT(check_same_outcome(&none, &own), "the batch's own counts give other bits than zeros");
}

static void scale_is_a_factor(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_real(&r, 4, 6);
  const check_form form = check_form_wide();
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_batch(&values, &form);
  const rft_reduction once = counts_of(&values, 1);
  const rft_reduction thrice = counts_of(&values, 3);
  check_outcome expected =
      check_evaluate_ok("scale 1", subject, instance, batch, NULL, &once, NULL);
  const check_outcome found =
      check_evaluate_ok("scale 3", subject, instance, batch, NULL, &thrice, NULL);
  expected.loss *= 3;
  for (int64_t i = 0; i < expected.count; ++i) {
    expected.gradient[i] *= 3;
  }
  check_expect_near("scale 3", &found, &expected, 1e-12);
}

// Rows of very different lengths and values, over several of any plugin's blocks.
static void parts_add_up(const check_subject *subject)
{
  enum { ROWS = 6, COLUMNS = 900 };
  static const int64_t cuts[] = {0, 1, 4, ROWS};
  rng r = {subject->seed};
  const check_values values = check_values_real(&r, ROWS, COLUMNS);
  const check_form form = check_form_wide();
  const rft_instance *const instance = check_create(subject);
  const rft_reduction counts = counts_of(&values, 1);
  const check_outcome whole = check_evaluate_ok("whole batch", subject, instance,
                                                check_batch(&values, &form), NULL, &counts, NULL);
  double sum = 0;
  for (int i = 0; i < 3; ++i) {
    const check_values part = check_values_rows(&values, cuts[i], cuts[i + 1] - cuts[i]);
    const check_outcome one = check_evaluate_ok("micro-batch", subject, instance,
                                                check_batch(&part, &form), NULL, &counts, NULL);
    sum += one.loss;
    for (int64_t k = 0; k < one.count; ++k) {
      const double expected = whole.gradient[(cuts[i] * COLUMNS) + k];
      EXPECT(fabs(one.gradient[k] - expected) <= 1e-12 * (fabs(expected) + 1e-6),
             "row %" PRId64 ": in a micro-batch the gradient is %.17g, in the whole %.17g",
             cuts[i] + (k / COLUMNS), one.gradient[k], expected);
    }
  }
  EXPECT(check_near(sum, whole.loss, 1e-9),
         "the losses of the micro-batches add up to %.17g, the whole has %.17g", sum, whole.loss);
}

// ------------------------------------------------------------------------------------- kept tokens

static void dropped_tokens_are_left_out(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_layout layout = {.placement = GUARD_AFTER};
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_batch(&values, &form);
  double keep[24];
  for (int i = 0; i < 24; ++i) {
    keep[i] = values.mask[i] != 0 && i % 3 != 0 ? 1 : 0;
  }
  const check_outcome some =
      check_evaluate_ok("tokens dropped", subject, instance, batch,
                        check_tensor(keep, 2, 4, 6, DTYPE_BOOL, &layout), NULL, NULL);
  for (int64_t i = 0; i < some.count; ++i) {
    EXPECT(keep[i] != 0 || some.gradient[i] == 0,
           "a dropped token at position %" PRId64 " has a gradient of %g", i, some.gradient[i]);
  }
  const check_outcome all =
      check_evaluate_ok("mask NULL", subject, instance, batch, NULL, NULL, NULL);
  const check_outcome valid =
      check_evaluate_ok("every valid token kept", subject, instance, batch,
                        check_tensor(values.mask, 2, 4, 6, DTYPE_BOOL, &layout), NULL, NULL);
  EXPECT(check_same_outcome(&all, &valid), "keeping every valid token is not keeping all");
}

static void nothing_kept(const check_subject *subject)
{
  const double none[24] = {0};
  const check_layout layout = {.placement = PLAIN};
  const check_outcome found = check_evaluate_ok(
      "no token kept", subject, check_create(subject), check_ordinary_batch(subject),
      check_tensor(none, 2, 4, 6, DTYPE_BOOL, &layout), NULL, NULL);
  EXPECT(found.loss == 0, "no token is kept, and the loss is %g", found.loss);
  for (int64_t i = 0; i < found.count; ++i) {
    EXPECT(found.gradient[i] == 0, "no token is kept, and the gradient is %g", found.gradient[i]);
  }
}

// ----------------------------------------------------------------------------------------- metrics

static bool is_written_by_evaluate(const rft_metric *metric)
{
  return metric->phase == RFT_METRIC_EVALUATE && metric->combine != RFT_COMBINE_RATIO;
}

static void metrics_of_the_phase(const check_subject *subject)
{
  const check_outcome outcome = check_evaluate_ok("ordinary batch", subject, check_create(subject),
                                                  check_ordinary_batch(subject), NULL, NULL, NULL);
  for (int64_t i = 0; i < outcome.metric_count; ++i) {
    const rft_metric *const metric = subject->loss->metrics[i];
    const bool written = outcome.metrics[i] != UNWRITTEN;
    EXPECT(written == is_written_by_evaluate(metric), "metric \"%.64s\" is %s by evaluate",
           metric->name, written ? "written" : "not written");
    EXPECT(!written || isfinite(outcome.metrics[i]), "metric \"%.64s\" is %g", metric->name,
           outcome.metrics[i]);
  }
}

static double combined(const rft_metric *metric, double left, double right)
{
  return metric->combine == RFT_COMBINE_SUM   ? left + right
         : metric->combine == RFT_COMBINE_MAX ? fmax(left, right)
                                              : fmin(left, right);
}

static void metrics_combine(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_real(&r, 6, 20);
  const check_values parts[] = {check_values_rows(&values, 0, 2), check_values_rows(&values, 2, 4)};
  const check_form form = check_form_wide();
  const rft_instance *const instance = check_create(subject);
  const rft_reduction counts = counts_of(&values, 1);
  check_outcome outcomes[3];
  outcomes[0] = check_evaluate_ok("whole batch", subject, instance, check_batch(&values, &form),
                                  NULL, &counts, NULL);
  for (int i = 0; i < 2; ++i) {
    outcomes[i + 1] = check_evaluate_ok("micro-batch", subject, instance,
                                        check_batch(&parts[i], &form), NULL, &counts, NULL);
  }
  for (int64_t i = 0; i < outcomes[0].metric_count; ++i) {
    const rft_metric *const metric = subject->loss->metrics[i];
    if (!is_written_by_evaluate(metric) || metric->combine == RFT_COMBINE_NONE) {
      continue;
    }
    const double found = combined(metric, outcomes[1].metrics[i], outcomes[2].metrics[i]);
    EXPECT(check_near(found, outcomes[0].metrics[i], 1e-9),
           "metric \"%.64s\": over two micro-batches %.17g, over the whole %.17g", metric->name,
           found, outcomes[0].metrics[i]);
  }
}

// An array that is too short is refused, or written as far as it reaches.
static void metrics_are_not_overrun(const check_subject *subject)
{
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_ordinary_batch(subject);
  for (int64_t count = subject->loss->metric_count; count >= 0; --count) {
    const size_t size = (size_t)count * sizeof(double);
    rft_output output = {.struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
                         .metrics = check_memory(size, GUARD_AFTER),
                         .metric_count = count};
    rft_error error = {.struct_size = sizeof error};
    const int32_t code = subject->loss->evaluate(instance, batch, NULL, NULL, &output, &error);
    EXPECT(code == RFT_OK || count < subject->loss->metric_count,
           "metrics before a guard page: evaluate returns %d: %.400s", code, error.message);
  }
}

static const check CHECKS[] = {
    {701, "gradient_is_the_derivative", "P13", CHECK_CONFIG, true, "every_float_dtype",
     "The gradient is what finite differences of the loss say.", gradient_is_the_derivative},
    {702, "bits_repeat", "P14", CHECK_CONFIG, true, "evaluates",
     "The same call gives the same bits.", bits_repeat},
    {703, "outputs_are_optional", "P8", CHECK_CONFIG, true, "evaluates",
     "Without gradient and metrics the loss is the same.", outputs_are_optional},
    {704, "zeros_count_the_batch", "P4", CHECK_CONFIG, true, "evaluates",
     "A reduction that is NULL or zero counts the micro-batch.", zeros_count_the_batch},
    {705, "scale_is_a_factor", "P4", CHECK_CONFIG, true, "evaluates",
     "scale multiplies loss and gradient.", scale_is_a_factor},
    {706, "parts_add_up", "P4", CHECK_CONFIG, true, "every_float_dtype",
     "With the counts of the whole, micro-batches add up to it.", parts_add_up},
    {707, "dropped_tokens_are_left_out", "P13", CHECK_CONFIG, true, "evaluates",
     "A token that is not kept has gradient 0; to keep every valid one is to keep all.",
     dropped_tokens_are_left_out},
    {708, "nothing_kept", "P13", CHECK_CONFIG, true, "evaluates",
     "When no token is kept, loss and gradient are 0.", nothing_kept},
    {709, "metrics_of_the_phase", "P13", CHECK_CONFIG, true, "evaluates",
     "evaluate writes the metrics of its phase that are no ratios, and no other.",
     metrics_of_the_phase},
    {710, "metrics_combine", "P13", CHECK_CONFIG, true, "metrics_of_the_phase",
     "Metrics of micro-batches combine to those of the whole as their descriptors say.",
     metrics_combine},
    {711, "metrics_are_not_overrun", "P2, P13", CHECK_CONFIG, true, "evaluates",
     "Nothing is written behind metric_count metrics.", metrics_are_not_overrun},
};

const check_area numeric_checks = CHECK_AREA(CHECKS);
