// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Values that are absent, masked, or no numbers.

#include "batches.h"
#include "check.h"
#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static void expect_nothing(const char *what, const check_outcome *outcome)
{
  EXPECT(outcome->loss == 0, "%s: expected a loss of 0, found %g", what, outcome->loss);
  for (int64_t i = 0; i < outcome->count; ++i) {
    EXPECT(outcome->gradient[i] == 0, "%s: expected a gradient of 0, found %g at position %" PRId64,
           what, outcome->gradient[i], i);
  }
}

static void empty_batches(const check_subject *subject)
{
  static const int64_t shapes[][2] = {{0, 6}, {4, 0}, {0, 0}};
  rng r = {subject->seed};
  const rft_instance *const instance = check_create(subject);
  check_form form = check_form_plain();
  for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; ++i) {
    const check_values values = check_values_exact(&r, shapes[i][0], shapes[i][1]);
    const check_outcome padded = check_evaluate_ok("a batch of no token", subject, instance,
                                                   check_batch(&values, &form), NULL, NULL, NULL);
    expect_nothing("a batch of no token", &padded);
  }
  const check_values none = check_values_exact(&r, 0, 0);
  form.packed = true;
  const check_outcome packed = check_evaluate_ok("a packed batch of no sequence", subject, instance,
                                                 check_batch(&none, &form), NULL, NULL, NULL);
  expect_nothing("a packed batch of no sequence", &packed);
}

// Tensors that have no element need no memory.
static void empty_without_data(const check_subject *subject)
{
  rng r = {subject->seed};
  const rft_instance *const instance = check_create(subject);
  const check_form form = check_form_plain();
  const check_values values = check_values_exact(&r, 0, 6);
  rft_batch *const batch = check_batch(&values, &form);
  const rft_tensor **const tensors[] = {&batch->logprob, &batch->old_logprob,
                                        &batch->proximal_logprob, &batch->advantages, &batch->mask};
  for (size_t i = 0; i < sizeof tensors / sizeof tensors[0]; ++i) {
    rft_tensor *const copy = check_tensor_copy(*tensors[i]);
    copy->data = NULL;
    *tensors[i] = copy;
  }
  const check_outcome outcome =
      check_evaluate_ok("data NULL and no token", subject, instance, batch, NULL, NULL, NULL);
  expect_nothing("data NULL and no token", &outcome);
}

static void all_masked(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_form form = check_form_plain();
  memset(values.mask, 0, (size_t)(values.rows * values.columns) * sizeof(double));
  const check_outcome outcome =
      check_evaluate_ok("a batch without a valid token", subject, check_create(subject),
                        check_batch(&values, &form), NULL, NULL, NULL);
  expect_nothing("a batch without a valid token", &outcome);
}

static void masked_gradient_is_zero(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_form form = check_form_plain();
  const check_outcome outcome = check_evaluate_ok("ordinary batch", subject, check_create(subject),
                                                  check_batch(&values, &form), NULL, NULL, NULL);
  for (int64_t i = 0; i < outcome.count; ++i) {
    EXPECT(values.mask[i] != 0 || outcome.gradient[i] == 0,
           "a masked token at position %" PRId64 " has a gradient of %g", i, outcome.gradient[i]);
  }
}

// Puts junk into every masked slot of every tensor.
static check_values with_junk(const check_values *values)
{
  const double junk[] = {NAN, INFINITY, -INFINITY, 3e38, -3e38, 0.0};
  const check_values spoilt = check_values_copy(values);
  int64_t next = 0;
  for (int64_t i = 0; i < values->rows * values->columns; ++i) {
    if (values->mask[i] == 0) {
      spoilt.logprob[i] = junk[next++ % 6];
      spoilt.old_logprob[i] = junk[next++ % 6];
      spoilt.proximal_logprob[i] = junk[next++ % 6];
      spoilt.advantages[i] = junk[next++ % 6];
    }
  }
  return spoilt;
}

static void masked_values_have_no_influence(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 6, 40);
  const check_values spoilt = with_junk(&values);
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const check_outcome expected = check_evaluate_ok("ordinary batch", subject, instance,
                                                   check_batch(&values, &form), NULL, NULL, NULL);
  const check_outcome found = check_evaluate_ok("junk in masked slots", subject, instance,
                                                check_batch(&spoilt, &form), NULL, NULL, NULL);
  EXPECT(check_same_outcome(&found, &expected),
         "junk in masked slots changes the outputs; the loss is %.17g and %.17g", found.loss,
         expected.loss);
}

// Refused, or without influence where the loss doesn't read it.
static void expect_harmless(const char *what, const check_subject *subject,
                            const rft_instance *instance, const check_values *values,
                            const check_outcome *expected)
{
  const check_form form = check_form_plain();
  const check_outcome found =
      check_evaluate(subject, instance, check_batch(values, &form), NULL, NULL, NULL);
  EXPECT(found.code != RFT_OK || check_same_outcome(&found, expected),
         "%s at a valid token is accepted; the loss is %g", what, found.loss);
}

static void non_finite_values(const check_subject *subject)
{
  static const char *const names[][3] = {{"logprob nan", "logprob inf", "logprob -inf"},
                                         {"old_logprob nan", "old_logprob inf", "old_logprob -inf"},
                                         {"advantages nan", "advantages inf", "advantages -inf"}};
  const double bad[] = {NAN, INFINITY, -INFINITY};
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const check_outcome expected = check_evaluate_ok("ordinary batch", subject, instance,
                                                   check_batch(&values, &form), NULL, NULL, NULL);
  for (int tensor = 0; tensor < 3; ++tensor) {
    for (int i = 0; i < 3; ++i) {
      const check_values spoilt = check_values_copy(&values);
      double *const tensors[] = {spoilt.logprob, spoilt.old_logprob, spoilt.advantages};
      tensors[tensor][12] = bad[i]; // the first token of a row is valid
      expect_harmless(names[tensor][i], subject, instance, &spoilt, &expected);
    }
  }
}

static void extreme_values(const check_subject *subject)
{
  static const double gaps[] = {80, -80, 700, -700, 1e4, -1e4, 1e30, -1e30};
  rng r = {subject->seed};
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  for (size_t i = 0; i < sizeof gaps / sizeof gaps[0]; ++i) {
    const check_values values = check_values_exact(&r, 4, 6);
    values.old_logprob[0] = values.logprob[0] - gaps[i];
    const check_outcome found =
        check_evaluate(subject, instance, check_batch(&values, &form), NULL, NULL, NULL);
    EXPECT(found.code != RFT_OK || isfinite(found.loss),
           "a log-ratio of %g: evaluate returns OK and a loss of %g", gaps[i], found.loss);
    for (int64_t k = 0; found.code == RFT_OK && k < found.count; ++k) {
      EXPECT(isfinite(found.gradient[k]),
             "a log-ratio of %g: evaluate returns OK and a gradient of %g", gaps[i],
             found.gradient[k]);
    }
  }
}

static const check CHECKS[] = {
    {651, "empty_batches", "P13", CHECK_CONFIG, true, "evaluates",
     "A batch of no token has loss 0.", empty_batches},
    {652, "empty_without_data", "P13", CHECK_CONFIG, true, "empty_batches",
     "Tensors without an element need no data.", empty_without_data},
    {653, "all_masked", "P13", CHECK_CONFIG, true, "evaluates",
     "A batch without a valid token has loss 0 and gradient 0.", all_masked},
    {654, "masked_gradient_is_zero", "P13", CHECK_CONFIG, true, "evaluates",
     "A masked token has gradient 0.", masked_gradient_is_zero},
    {655, "masked_values_have_no_influence", "P13", CHECK_CONFIG, true, "evaluates",
     "Nothing in a masked slot changes a bit of any output.", masked_values_have_no_influence},
    {656, "non_finite_values", "P8, P9", CHECK_CONFIG, true, "evaluates",
     "NaN and infinity at a valid token are refused, or not read.", non_finite_values},
    {657, "extreme_values", "P8, P9", CHECK_CONFIG, true, "evaluates",
     "Log-ratios of any size give finite results or an error.", extreme_values},
};

const check_area value_checks = CHECK_AREA(CHECKS);
