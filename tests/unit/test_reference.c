// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The reference itself against the golden cases: what the plugin is judged by is judged first.

#include "compare.h"
#include "golden.h"

TestSuite(reference, .fini = test_free_all);

ParameterizedTestParameters(reference, gives_the_golden_answer)
{
  return golden_parameters(false);
}

static void check_selection(const golden_case *golden, const reference_counts *counts,
                            const bool *keep)
{
  for (int64_t i = 0; i < batch_count(golden->batch); ++i) {
    cr_expect_eq(keep[i], golden_element(golden, "keep", i) != 0, "%s: keep[%d]", golden->name,
                 (int)i);
  }
  cr_expect_eq(counts->valid, (int64_t)golden_number(golden, "valid_tokens"), "%s", golden->name);
  cr_expect_eq(counts->trust_region, (int64_t)golden_number(golden, "trust_region_tokens"), "%s",
               golden->name);
  cr_expect_eq(counts->masked, (int64_t)golden_number(golden, "masked_tokens"), "%s", golden->name);
  cr_expect_eq(counts->m2_before, golden_number(golden, "m2_before"), "%s", golden->name);
  cr_expect_eq(counts->m2_after, golden_number(golden, "m2_after"), "%s", golden->name);
}

static void check_loss(const golden_case *golden, const reference_token *tokens, const bool *keep)
{
  const int64_t count = batch_count(golden->batch);
  reference_denominators by = reference_count(tokens, count, keep, batch_columns(golden->batch));
  by.valid = golden->token_count > 0 ? golden->token_count : by.valid;
  by.scale = golden->scale > 0 ? golden->scale : by.scale;
  long double *const gradient = test_alloc(count * (int64_t)sizeof *gradient);
  const double loss =
      (double)reference_loss(&golden->config.objective, tokens, count, keep, &by, gradient);
  cr_expect(is_close(loss, golden_number(golden, "loss"), LOSS_TOLERANCE), "%s: loss %.17g",
            golden->name, loss);
  for (int64_t i = 0; i < count; ++i) {
    cr_expect(is_close((double)gradient[i], golden_element(golden, "grad", i), LOSS_TOLERANCE),
              "%s: gradient[%d] is %.17Lg", golden->name, (int)i, gradient[i]);
  }
}

ParameterizedTest(int *index, reference, gives_the_golden_answer)
{
  const golden_case golden = golden_open(*index);
  const int64_t count = batch_count(golden.batch);
  const reference_token *const tokens = batch_tokens(golden.batch);
  bool *const keep = test_alloc(count);
  const reference_counts counts = reference_select(&golden.config.selection, tokens, count, keep);
  check_selection(&golden, &counts, keep);
  check_loss(&golden, tokens, keep);
}
