// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The plugin against every golden case.

#include "compare.h"
#include "golden.h"
#include "plugin_fixture.h"

TestSuite(golden, .fini = plugin_fixture_end);

/// What the plugin says of one optimizer batch, its micro-batches put together again.
typedef struct outcome {
  selection_result selection;
  double loss;
  double *keep;
  double *gradient;
} outcome;

static rft_reduction reduction_for(const golden_case *golden, const rft_selection_report *report)
{
  rft_reduction reduction = reduction_of(report);
  reduction.scale = golden->scale;
  if (golden->token_count > 0) {
    reduction.valid_tokens = golden->token_count;
  }
  return reduction;
}

static rft_dtype gradient_dtype(const rft_batch *batch)
{
  return dtype_is_wide(batch->logprob->dtype) ? float64 : float32;
}

static outcome run(const golden_case *golden, const batch_list *list)
{
  const int64_t size = batch_count(golden->batch) * (int64_t)sizeof(double);
  rft_instance *const instance = m2po_create(golden->config_text);
  outcome result = {select_ok(instance, list), 0, test_alloc(size), test_alloc(size)};
  const rft_reduction reduction = reduction_for(golden, &result.selection.report);
  int64_t done = 0;
  for (int64_t k = 0; k < list->count; ++k) {
    const rft_tensor *const mask = result.selection.mask[k];
    const evaluation part =
        evaluate_ok(instance, list->batch[k], mask, &reduction, gradient_dtype(golden->batch));
    result.loss += part.loss;
    for (int64_t i = 0; i < tensor_count(mask); ++i, ++done) {
      result.keep[done] = tensor_get(mask, i);
      result.gradient[done] = tensor_get(part.gradient, i);
    }
  }
  return result;
}

static void check_metric(const golden_case *golden, const outcome *got, const char *name)
{
  const double value = metric(got->selection.metrics, name);
  cr_expect_eq(value, golden_number(golden, name), "%s: %s is %.17g", golden->name, name, value);
}

static void check_selection(const golden_case *golden, const outcome *got)
{
  int64_t kept = 0;
  for (int64_t i = 0; i < batch_count(golden->batch); ++i) {
    kept += got->keep[i] == 1;
    cr_expect_eq(got->keep[i], golden_element(golden, "keep", i), "%s: keep[%d] is %g",
                 golden->name, (int)i, got->keep[i]);
  }
  check_metric(golden, got, "valid_tokens");
  check_metric(golden, got, "trust_region_tokens");
  check_metric(golden, got, "masked_tokens");
  check_metric(golden, got, "m2_before");
  check_metric(golden, got, "m2_after");
  cr_expect_eq(got->selection.report.valid_tokens, (int64_t)golden_number(golden, "valid_tokens"),
               "%s", golden->name);
  cr_expect_eq(got->selection.report.kept_tokens, kept, "%s", golden->name);
}

static void check_loss(const golden_case *golden, const outcome *got)
{
  cr_expect(is_close(got->loss, golden_number(golden, "loss"), LOSS_TOLERANCE), "%s: loss is %.17g",
            golden->name, got->loss);
  for (int64_t i = 0; i < batch_count(golden->batch); ++i) {
    cr_expect(is_close(got->gradient[i], golden_element(golden, "grad", i), LOSS_TOLERANCE),
              "%s: gradient[%d] is %.17g", golden->name, (int)i, got->gradient[i]);
  }
}

static batch_list split(const golden_case *golden, const json_t *sizes)
{
  const int64_t parts = (int64_t)json_array_size(sizes);
  int64_t *const size = test_alloc(parts * (int64_t)sizeof *size);
  for (int64_t k = 0; k < parts; ++k) {
    size[k] = json_integer_value(json_array_get(sizes, (size_t)k));
  }
  return batch_split(golden->batch, parts, size);
}

static void check_same_tokens(const golden_case *golden, const outcome *whole, const outcome *parts)
{
  for (int64_t i = 0; i < batch_count(golden->batch); ++i) {
    cr_expect(same_bits(whole->gradient[i], parts->gradient[i]),
              "%s: gradient[%d] depends on the split: %a, %a", golden->name, (int)i,
              whole->gradient[i], parts->gradient[i]);
  }
}

ParameterizedTestParameters(golden, answer)
{
  return golden_parameters(false);
}

ParameterizedTest(int *index, golden, answer)
{
  const golden_case golden = golden_open(*index);
  const batch_list list = batch_list_of(golden.batch);
  const outcome whole = run(&golden, &list);
  check_selection(&golden, &whole);
  check_loss(&golden, &whole);
  for (size_t s = 0; s < json_array_size(golden.splits); ++s) {
    const batch_list parts = split(&golden, json_array_get(golden.splits, s));
    const outcome split_outcome = run(&golden, &parts);
    check_selection(&golden, &split_outcome);
    check_loss(&golden, &split_outcome);
    check_same_tokens(&golden, &whole, &split_outcome);
  }
}

// The error of the first call that fails, selection or evaluate.
static int32_t first_error(const golden_case *golden, rft_error *error)
{
  rft_instance *const instance = m2po_create(golden->config_text);
  const batch_list list = batch_list_of(golden->batch);
  selection_result selection;
  const int32_t code = m2po_select(instance, &list, &selection, error);
  if (code != RFT_OK) {
    return code;
  }
  evaluation unused;
  const rft_reduction reduction = reduction_of(&selection.report);
  return m2po_evaluate(instance, golden->batch, selection.mask[0], &reduction, float32, &unused,
                       error);
}

ParameterizedTestParameters(golden, error)
{
  return golden_parameters(true);
}

ParameterizedTest(int *index, golden, error)
{
  const golden_case golden = golden_open(*index);
  rft_error error = error_new();
  const int32_t code = first_error(&golden, &error);
  cr_assert_eq(code, RFT_OUT_OF_RANGE, "%s: code %d, %s", golden.name, code, error.message);
  cr_expect_eq(error.code, code);
  for (const char *part = golden.error; part != NULL;) {
    const char *const comma = strstr(part, ", ");
    const int length = comma == NULL ? (int)strlen(part) : (int)(comma - part);
    char text[64];
    snprintf(text, sizeof text, "%.*s", length, part);
    cr_expect(strstr(error.message, text) != NULL, "%s: no \"%s\" in: %s", golden.name, text,
              error.message);
    part = comma == NULL ? NULL : comma + 2;
  }
}
