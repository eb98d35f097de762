// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "batches.h"

#include "verdict.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

// ------------------------------------------------------------------------------------------ values

static check_values make_values(int64_t rows, int64_t columns)
{
  const size_t size = (size_t)(rows * columns) * sizeof(double);
  return (check_values){rows,
                        columns,
                        check_memory(size, PLAIN),
                        check_memory(size, PLAIN),
                        check_memory(size, PLAIN),
                        check_memory(size, PLAIN),
                        check_memory(size, PLAIN)};
}

static void fill_mask(rng *r, check_values *values)
{
  for (int64_t i = 0; i < values->rows * values->columns; ++i) {
    values->mask[i] = rng_below(r, 4) != 0 || i % values->columns == 0 ? 1 : 0;
  }
}

check_values check_values_exact(rng *r, int64_t rows, int64_t columns)
{
  check_values values = make_values(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    const int64_t logprob = 8 + rng_below(r, 64);
    values.logprob[i] = -(double)logprob / 16;
    values.old_logprob[i] = -(double)(logprob + rng_below(r, 13) - 6) / 16;
    values.proximal_logprob[i] = -(double)(logprob + rng_below(r, 7) - 3) / 16;
    values.advantages[i] = (double)(1 + rng_below(r, 12)) / (rng_below(r, 2) == 0 ? 8 : -8);
  }
  fill_mask(r, &values);
  return values;
}

check_values check_values_real(rng *r, int64_t rows, int64_t columns)
{
  check_values values = make_values(rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    values.logprob[i] = rng_between(r, -4, -0.5);
    values.old_logprob[i] = values.logprob[i] + rng_between(r, -0.4, 0.4);
    values.proximal_logprob[i] = values.logprob[i] + rng_between(r, -0.2, 0.2);
    values.advantages[i] = rng_between(r, 0.1, 1.5) * (rng_below(r, 2) == 0 ? 1 : -1);
  }
  fill_mask(r, &values);
  return values;
}

check_values check_values_copy(const check_values *values)
{
  check_values copy = make_values(values->rows, values->columns);
  const size_t size = (size_t)(values->rows * values->columns) * sizeof(double);
  memcpy(copy.logprob, values->logprob, size);
  memcpy(copy.old_logprob, values->old_logprob, size);
  memcpy(copy.proximal_logprob, values->proximal_logprob, size);
  memcpy(copy.advantages, values->advantages, size);
  memcpy(copy.mask, values->mask, size);
  return copy;
}

check_values check_values_rows(const check_values *values, int64_t first, int64_t count)
{
  const int64_t start = first * values->columns;
  return (check_values){count,
                        values->columns,
                        values->logprob + start,
                        values->old_logprob + start,
                        values->proximal_logprob + start,
                        values->advantages + start,
                        values->mask + start};
}

int64_t check_values_valid(const check_values *values)
{
  int64_t valid = 0;
  for (int64_t i = 0; i < values->rows * values->columns; ++i) {
    valid += values->mask[i] != 0;
  }
  return valid;
}

// ----------------------------------------------------------------------------------------- batches

check_form check_form_plain(void)
{
  return (check_form){.logprob = DTYPE_FLOAT32,
                      .old_logprob = DTYPE_FLOAT32,
                      .proximal_logprob = DTYPE_FLOAT32,
                      .advantages = DTYPE_FLOAT32,
                      .mask = DTYPE_BOOL,
                      .cu_seqlens = DTYPE_INT32};
}

check_form check_form_wide(void)
{
  check_form form = check_form_plain();
  form.logprob = form.old_logprob = form.proximal_logprob = form.advantages = DTYPE_FLOAT64;
  return form;
}

static rft_tensor *tensor_of(const check_values *values, const double *content, rft_dtype dtype,
                             const check_form *form)
{
  return form->packed
             ? check_tensor(content, 1, 1, values->rows * values->columns, dtype, &form->layout)
             : check_tensor(content, 2, values->rows, values->columns, dtype, &form->layout);
}

static rft_tensor *cu_seqlens_of(const check_values *values, const check_form *form)
{
  double *const starts = check_memory((size_t)(values->rows + 1) * sizeof *starts, PLAIN);
  for (int64_t i = 0; i <= values->rows; ++i) {
    starts[i] = (double)(i * values->columns);
  }
  return check_tensor(starts, 1, 1, values->rows + 1, form->cu_seqlens, &form->layout);
}

rft_batch *check_batch(const check_values *values, const check_form *form)
{
  rft_batch *const batch = check_memory(sizeof *batch, PLAIN);
  *batch = (rft_batch){
      .struct_size = RFT_STRUCT_SIZE(rft_batch, stream),
      .logprob = tensor_of(values, values->logprob, form->logprob, form),
      .old_logprob = tensor_of(values, values->old_logprob, form->old_logprob, form),
      .proximal_logprob = tensor_of(values, values->proximal_logprob, form->proximal_logprob, form),
      .advantages = tensor_of(values, values->advantages, form->advantages, form),
      .mask = tensor_of(values, values->mask, form->mask, form),
      .cu_seqlens = form->packed ? cu_seqlens_of(values, form) : NULL};
  return batch;
}

rft_batch *check_ordinary_batch(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_form form = check_form_plain();
  return check_batch(&values, &form);
}

// ------------------------------------------------------------------------------------------- calls

rft_instance *check_create(const check_subject *subject)
{
  rft_instance *instance = NULL;
  rft_error error = {.struct_size = sizeof error};
  const int32_t code = subject->loss->create(subject->loss, subject->host, subject->config,
                                             (int64_t)strlen(subject->config), &instance, &error);
  EXPECT(code == RFT_OK, "create refuses %.200s: %s", subject->config, error.message);
  EXPECT(instance != NULL, "create returns OK and no instance");
  return instance;
}

check_outcome check_evaluate(const check_subject *subject, const rft_instance *instance,
                             const rft_batch *batch, const rft_tensor *keep,
                             const rft_reduction *reduction, const rft_tensor *gradient)
{
  check_outcome outcome = {.error.struct_size = sizeof(rft_error),
                           .metric_count = subject->loss->metric_count};
  const rft_tensor *const logprob = batch->logprob;
  if (gradient == NULL) {
    const bool flat = logprob->ndim == 1;
    const check_layout layout = {.placement = PLAIN};
    gradient = check_tensor(NULL, logprob->ndim, flat ? 1 : logprob->shape[0],
                            logprob->shape[flat ? 0 : 1], logprob->dtype, &layout);
  }
  outcome.metrics = check_memory((size_t)outcome.metric_count * sizeof(double), PLAIN);
  for (int64_t i = 0; i < outcome.metric_count; ++i) {
    outcome.metrics[i] = UNWRITTEN;
  }
  rft_output output = {.struct_size = RFT_STRUCT_SIZE(rft_output, metric_count),
                       .loss = UNWRITTEN,
                       .gradient = gradient,
                       .metrics = outcome.metrics,
                       .metric_count = outcome.metric_count};
  outcome.code = subject->loss->evaluate(instance, batch, keep, reduction, &output, &outcome.error);
  outcome.loss = output.loss;
  outcome.count = check_tensor_count(gradient);
  outcome.gradient = check_tensor_values(gradient);
  return outcome;
}

check_outcome check_evaluate_ok(const char *what, const check_subject *subject,
                                const rft_instance *instance, const rft_batch *batch,
                                const rft_tensor *keep, const rft_reduction *reduction,
                                const rft_tensor *gradient)
{
  const check_outcome outcome = check_evaluate(subject, instance, batch, keep, reduction, gradient);
  EXPECT(outcome.code == RFT_OK, "%s: evaluate returns %d: %.400s", what, outcome.code,
         outcome.error.message);
  return outcome;
}

// --------------------------------------------------------------------------------------- comparing

static bool same_bits(const double *left, const double *right, int64_t count)
{
  return count == 0 || memcmp(left, right, (size_t)count * sizeof *left) == 0;
}

bool check_same_outcome(const check_outcome *left, const check_outcome *right)
{
  return left->code == right->code && left->count == right->count &&
         same_bits(&left->loss, &right->loss, 1) &&
         same_bits(left->gradient, right->gradient, left->count) &&
         same_bits(left->metrics, right->metrics, left->metric_count);
}

bool check_near(double left, double right, double tolerance)
{
  return fabs(left - right) <= tolerance * fmax(1.0, fmax(fabs(left), fabs(right)));
}

void check_expect_near(const char *what, const check_outcome *found, const check_outcome *expected,
                       double tolerance)
{
  EXPECT(check_near(found->loss, expected->loss, tolerance),
         "%s: expected a loss of %.17g, found %.17g", what, expected->loss, found->loss);
  for (int64_t i = 0; i < expected->count; ++i) {
    EXPECT(check_near(found->gradient[i], expected->gradient[i], tolerance),
           "%s: expected a gradient of %.17g at position %" PRId64 ", found %.17g", what,
           expected->gradient[i], i, found->gradient[i]);
  }
}

bool check_reads(const check_subject *subject, const rft_instance *instance, bool old)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  check_values other = check_values_copy(&values);
  double *const changed = old ? other.old_logprob : other.proximal_logprob;
  for (int64_t i = 0; i < other.rows * other.columns; ++i) {
    changed[i] -= i % 2 == 0 ? 0.25 : 1.5;
  }
  const check_form form = check_form_plain();
  const check_outcome before = check_evaluate_ok("ordinary batch", subject, instance,
                                                 check_batch(&values, &form), NULL, NULL, NULL);
  const check_outcome after =
      check_evaluate(subject, instance, check_batch(&other, &form), NULL, NULL, NULL);
  return !check_same_outcome(&before, &after);
}
