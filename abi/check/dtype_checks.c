// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Every dtype that the contract names, and some that it doesn't.

#include "batches.h"
#include "check.h"
#include "provoke.h"
#include "verdict.h"

#include <math.h>
#include <stdio.h>

static void every_float_dtype(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_layout layout = {.placement = PLAIN};
  const rft_instance *const instance = check_create(subject);
  check_form form = check_form_wide();
  const rft_tensor *const gradient = check_tensor(NULL, 2, 4, 6, DTYPE_FLOAT64, &layout);
  const check_outcome expected = check_evaluate_ok(
      "float64", subject, instance, check_batch(&values, &form), NULL, NULL, gradient);
  for (int i = 0; i < FLOAT_DTYPES * FLOAT_DTYPES * FLOAT_DTYPES * FLOAT_DTYPES; ++i) {
    char what[4 * DTYPE_TEXT_SIZE];
    char names[4][DTYPE_TEXT_SIZE];
    form.logprob = *check_float_dtypes[i % 4];
    form.old_logprob = *check_float_dtypes[i / 4 % 4];
    form.advantages = *check_float_dtypes[i / 16 % 4];
    form.proximal_logprob = *check_float_dtypes[i / 64];
    snprintf(what, sizeof what, "logprob %s, old_logprob %s, advantages %s, proximal_logprob %s",
             check_dtype_text(names[0], form.logprob), check_dtype_text(names[1], form.old_logprob),
             check_dtype_text(names[2], form.advantages),
             check_dtype_text(names[3], form.proximal_logprob));
    const check_outcome found = check_evaluate_ok(
        what, subject, instance, check_batch(&values, &form), NULL, NULL, gradient);
    check_expect_near(what, &found, &expected, 1e-5);
  }
}

static void every_mask_dtype(const check_subject *subject)
{
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const rft_instance *const instance = check_create(subject);
  check_form form = check_form_plain();
  const check_outcome expected =
      check_evaluate_ok("bool", subject, instance, check_batch(&values, &form), NULL, NULL, NULL);
  for (int i = 0; i < MASK_DTYPES; ++i) {
    char name[DTYPE_TEXT_SIZE];
    form.mask = *check_mask_dtypes[i];
    check_dtype_text(name, form.mask);
    const check_outcome found =
        check_evaluate_ok(name, subject, instance, check_batch(&values, &form), NULL, NULL, NULL);
    EXPECT(check_same_outcome(&found, &expected), "a mask of %s: other bits than for bool", name);
  }
}

// Values whose lowest byte is 0, or that are negative, are not zero.
static void any_nonzero_is_valid(const check_subject *subject)
{
  static const struct {
    double value;
    const rft_dtype *dtype;
  } ways[] = {{128, &DTYPE_BOOL},
              {2, &DTYPE_UINT8},
              {-1, &DTYPE_INT8},
              {256, &DTYPE_INT32},
              {4294967296.0, &DTYPE_INT64}};
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const rft_instance *const instance = check_create(subject);
  check_form form = check_form_plain();
  const check_outcome expected =
      check_evaluate_ok("bool", subject, instance, check_batch(&values, &form), NULL, NULL, NULL);
  for (size_t i = 0; i < sizeof ways / sizeof ways[0]; ++i) {
    char what[96];
    char name[DTYPE_TEXT_SIZE];
    const check_values other = check_values_copy(&values);
    for (int64_t k = 0; k < other.rows * other.columns; ++k) {
      other.mask[k] *= ways[i].value;
    }
    form.mask = *ways[i].dtype;
    snprintf(what, sizeof what, "%.0f in a mask of %s", ways[i].value,
             check_dtype_text(name, form.mask));
    const check_outcome found =
        check_evaluate_ok(what, subject, instance, check_batch(&other, &form), NULL, NULL, NULL);
    EXPECT(check_same_outcome(&found, &expected), "%s: other bits than for 1", what);
  }
}

static void every_gradient_dtype(const check_subject *subject)
{
  static const double precision[FLOAT_DTYPES] = {1e-3, 8e-3, 1e-6, 1e-12};
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_layout layout = {.placement = PLAIN};
  const rft_instance *const instance = check_create(subject);
  const check_form form = check_form_wide();
  const rft_batch *const batch = check_batch(&values, &form);
  const check_outcome expected =
      check_evaluate_ok("float64", subject, instance, batch, NULL, NULL, NULL);
  for (int i = 0; i < FLOAT_DTYPES; ++i) {
    char what[96];
    char name[DTYPE_TEXT_SIZE];
    snprintf(what, sizeof what, "a gradient of %s", check_dtype_text(name, *check_float_dtypes[i]));
    const check_outcome found =
        check_evaluate_ok(what, subject, instance, batch, NULL, NULL,
                          check_tensor(NULL, 2, 4, 6, *check_float_dtypes[i], &layout));
    check_expect_near(what, &found, &expected, precision[i]);
  }
}

static void every_keep_dtype(const check_subject *subject)
{
  static const rft_dtype *const dtypes[] = {&DTYPE_BOOL, &DTYPE_INT8, &DTYPE_UINT8};
  rng r = {subject->seed};
  const check_values values = check_values_exact(&r, 4, 6);
  const check_layout layout = {.placement = PLAIN};
  const check_form form = check_form_plain();
  const rft_instance *const instance = check_create(subject);
  const rft_batch *const batch = check_batch(&values, &form);
  double keep[24];
  for (int i = 0; i < 24; ++i) {
    keep[i] = values.mask[i] != 0 && i % 5 != 1 ? 1 : 0;
  }
  check_outcome expected = {.loss = 0};
  for (int i = 0; i < 3; ++i) {
    char name[DTYPE_TEXT_SIZE];
    check_dtype_text(name, *dtypes[i]);
    const check_outcome found =
        check_evaluate_ok(name, subject, instance, batch,
                          check_tensor(keep, 2, 4, 6, *dtypes[i], &layout), NULL, NULL);
    if (i == 0) {
      expected = found;
    }
    EXPECT(check_same_outcome(&found, &expected),
           "a mask of kept tokens of %s: other bits than for bool", name);
  }
}

static void expect_refused(const provocation *made)
{
  EXPECT(!made->must_fail || made->code != RFT_OK, "%s: evaluate returns OK", made->what);
}

static void unknown_dtypes(const check_subject *subject)
{
  check_provoke(subject, WRONG_DTYPES, true, expect_refused);
}

static const check CHECKS[] = {
    {631, "every_float_dtype", "P13", CHECK_CONFIG, true, "evaluates",
     "float16, bfloat16, float32 and float64 may be mixed freely.", every_float_dtype},
    {632, "every_mask_dtype", "P13", CHECK_CONFIG, true, "evaluates",
     "A mask of any dtype of the contract gives the same bits.", every_mask_dtype},
    {633, "any_nonzero_is_valid", "P13", CHECK_CONFIG, true, "every_mask_dtype",
     "Any non-zero in a mask is a valid token.", any_nonzero_is_valid},
    {634, "every_gradient_dtype", "P13", CHECK_CONFIG, true, "evaluates",
     "The gradient may be of any float dtype.", every_gradient_dtype},
    {635, "every_keep_dtype", "P13", CHECK_CONFIG, true, "evaluates",
     "The mask of kept tokens may be bool, int8 or uint8.", every_keep_dtype},
    {636, "unknown_dtypes", "P8", CHECK_LOSS, true, "evaluates",
     "A tensor of a dtype that is not known, or not allowed for it, is refused.", unknown_dtypes},
};

const check_area dtype_checks = CHECK_AREA(CHECKS);
