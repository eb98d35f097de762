// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The rules of the selection, one small batch each, with the answer written out.

#include "plugin_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

enum { MOST = 16 };

TestSuite(selection_rules, .fini = plugin_fixture_end);

static rft_batch *batch_of(rft_dtype dtype, int64_t count, const double *log_ratios,
                           const double *advantages)
{
  double ones[MOST];
  for (int i = 0; i < MOST; ++i) {
    ones[i] = 1.0;
  }
  return batch_new(tensor_1d(dtype, count, log_ratios), tensor_1d(dtype, count, NULL), NULL,
                   tensor_1d(dtype, count, advantages == NULL ? ones : advantages),
                   tensor_1d(bool8, count, ones), NULL);
}

// The mask as text: "101" keeps the first and the third token.
static const char *mask_text(const rft_batch *batch, const char *config)
{
  const batch_list list = batch_list_of(batch);
  const selection_result result = select_ok(m2po_create(config), &list);
  char *const text = test_alloc(MOST + 1);
  for (int64_t i = 0; i < batch_count(batch); ++i) {
    text[i] = tensor_get(result.mask[0], i) == 1 ? '1' : '0';
  }
  return text;
}

#define LENGTH(array) ((int64_t)(sizeof(array) / sizeof(array)[0]))
#define EXPECT_MASK(expected, config, ...)                                                         \
  do {                                                                                             \
    const double d[] = __VA_ARGS__;                                                                \
    cr_expect_str_eq(mask_text(batch_of(float32, LENGTH(d), d, NULL), config), expected);          \
    cr_expect_str_eq(mask_text(batch_of(float64, LENGTH(d), d, NULL), config), expected);          \
  } while (0)

Test(selection_rules, an_outlier_is_not_subtracted_from_a_running_sum)
{
  EXPECT_MASK("000", "{\"m2_threshold\": 0.03}", {1e9, 0.2, 0.2});
  EXPECT_MASK("011", "{\"m2_threshold\": 0.041}", {1e9, 0.2, 0.2});
}

Test(selection_rules, a_mean_equal_to_the_threshold_keeps)
{
  EXPECT_MASK("11", "{\"m2_threshold\": 0.25}", {0.5, 0.5});
  EXPECT_MASK("00", "{\"m2_threshold\": 0.25, \"boundary\": \"below\"}", {0.5, 0.5});
  EXPECT_MASK("00", "{\"m2_threshold\": 0.24999999999999997}", {0.5, 0.5});
}

Test(selection_rules, of_equals_the_earliest_go_first)
{
  EXPECT_MASK("0111", "{\"m2_threshold\": 0.17}", {0.5, 0.5, 0.5, 0.0009765625});
  EXPECT_MASK("1001", "{\"m2_threshold\": 0.126}", {0.0009765625, 0.5, 0.5, 0.5});
}

Test(selection_rules, the_trust_region_may_empty)
{
  EXPECT_MASK("0", "{}", {1.0});
  EXPECT_MASK("000", "{}", {0.25, 0.25, 0.25});
}

Test(selection_rules, threshold_zero_drops_what_is_not_zero)
{
  EXPECT_MASK("011", "{\"m2_threshold\": 0}", {0.5, 0.0, -0.5});
  EXPECT_MASK("011", "{\"m2_threshold\": -0.0}", {0.5, 0.0, -0.5});
  // Square 0 in float32, not in float64: the mean of what is left is 0, which is not over 0.
  const double tiny[] = {1e-30, 0.5};
  cr_expect_str_eq(mask_text(batch_of(float32, 2, tiny, NULL), "{\"m2_threshold\": 0}"), "10");
  cr_expect_str_eq(mask_text(batch_of(float64, 2, tiny, NULL), "{\"m2_threshold\": 0}"), "00");
}

Test(selection_rules, threshold_null_drops_nothing)
{
  EXPECT_MASK("111", "{\"m2_threshold\": null}", {1e9, 5.0, -3.0});
  EXPECT_MASK("111",
              "{\"m2_threshold\": null, \"boundary\": \"below\", \"selection\": "
              "\"all_tokens\"}",
              {1e9, 5.0, -3.0});
}

Test(selection_rules, signs_of_advantage_and_log_ratio_decide_membership)
{
  const double d[] = {0.5, -0.5, 0.5, -0.5, 0.5, 0.5, 0.0};
  const double a[] = {1.0, 1.0, -1.0, -1.0, 0.0, -0.0, 1.0};
  cr_expect_str_eq(mask_text(batch_of(float32, 7, d, a), "{}"), "0110111");
  cr_expect_str_eq(mask_text(batch_of(bfloat16, 7, d, a), "{}"), "0110111");
}

Test(selection_rules, all_tokens_constrains_every_valid_one)
{
  const double d[] = {0.5, -0.5, 0.5, 0.125, 0.0};
  const double a[] = {1.0, 1.0, 0.0, -1.0, 1.0};
  const char *const config = "{\"selection\": \"all_tokens\", \"m2_threshold\": 0.01}";
  cr_expect_str_eq(mask_text(batch_of(float32, 5, d, a), config), "00011");
}

Test(selection_rules, min_kept_tokens_stops_the_loop)
{
  EXPECT_MASK("1011", "{\"min_kept_tokens\": 3}", {1.0, 2.0, 1.0, 0.5});
  EXPECT_MASK("1111", "{\"min_kept_tokens\": 4}", {1.0, 2.0, 1.0, 0.5});
  EXPECT_MASK("1111", "{\"min_kept_tokens\": 1000}", {1.0, 2.0, 1.0, 0.5});
  EXPECT_MASK("0001", "{\"min_kept_tokens\": 1}", {1.0, 2.0, 1.0, 0.5});
}

Test(selection_rules, min_kept_tokens_counts_the_trust_region_only)
{
  const double d[] = {2.0, 1.0, -1.0, -1.0};
  cr_expect_str_eq(mask_text(batch_of(float32, 4, d, NULL), "{\"min_kept_tokens\": 1}"), "0111");
}

Test(selection_rules, the_log_ratio_clip_is_no_part_of_the_selection)
{
  EXPECT_MASK("101", "{\"m2_threshold\": 400, \"log_ratio_clip\": 1}", {25, 30, 0.1});
}

Test(selection_rules, proximal_compares_the_proximal_policy)
{
  const double logprob[] = {0.5, 0.0, 0.0};
  const double proximal[] = {0.0, 0.5, -0.5};
  rft_batch *const batch = batch_of(float32, 3, logprob, NULL);
  batch->proximal_logprob = tensor_1d(float32, 3, proximal);
  cr_expect_str_eq(mask_text(batch, "{\"m2_reference\": \"proximal\"}"), "101");
  cr_expect_str_eq(mask_text(batch, "{\"m2_reference\": \"current\"}"), "011");
}

Test(selection_rules, the_mask_is_zero_where_a_token_is_not_valid)
{
  const double d[] = {0.1, 0.1, 0.1};
  const double mask[] = {1, 0, 1};
  rft_batch *const batch = batch_of(float32, 3, d, NULL);
  batch->mask = tensor_1d(uint8, 3, mask);
  cr_expect_str_eq(mask_text(batch, "{}"), "101");
}

Test(selection_rules, squares_are_rounded_once_in_their_own_arithmetic)
{
  // The float32 nearest to 1/3 has a square that float32 and float64 round apart.
  const double third = (double)(1.0F / 3.0F);
  const double rounded = (double)((float)third * (float)third);
  char config[128];
  snprintf(config, sizeof config, "{\"m2_threshold\": %.17g}", rounded);
  const double d[] = {third};
  cr_expect_str_eq(mask_text(batch_of(float32, 1, d, NULL), config), "1");
  cr_expect_str_eq(mask_text(batch_of(float64, 1, d, NULL), config),
                   third * third <= rounded ? "1" : "0");
  cr_expect_neq(third * third, rounded, "the example shows nothing");
}

Test(selection_rules, a_mean_is_rounded_once_from_the_exact_sum)
{
  // The squares 4, 2^-52, 2^-52 have a mean halfway between 1 and the next double, over 4 tokens;
  // the last one tips it.
  const double even[] = {2.0, 0x1p-26, 0x1p-26, 0x1p-600};
  const double above[] = {2.0, 0x1p-26, 0x1p-26, 0x1p-500};
  const double *const cases[] = {even, above};
  const double means[] = {1.0, 1.0 + 0x1p-52};
  for (int i = 0; i < 2; ++i) {
    const batch_list list = batch_list_of(batch_of(float64, 4, cases[i], NULL));
    const selection_result got = select_ok(m2po_create("{\"m2_threshold\": 1e9}"), &list);
    cr_expect_eq(metric(got.metrics, "m2_before"), means[i], "%a",
                 metric(got.metrics, "m2_before"));
  }
}

// A cut inside 100000 equals, spread over many micro-batches: too large for the literal loop, but
// the number to drop is small arithmetic.
Test(selection_rules, a_cut_inside_many_equals_over_many_micro_batches)
{
  enum { PARTS = 40, PART = 5000, LARGE_EACH = 4 }; // every fourth token is large
  const double large = 0.5, small = ldexp(1, -10), tau = ldexp(1, -5);
  rft_tensor *const logprob = tensor_1d(float32, PART, NULL);
  double *const ones = test_alloc(PART * (int64_t)sizeof *ones);
  for (int64_t i = 0; i < PART; ++i) {
    tensor_set(logprob, i, i % LARGE_EACH == 0 ? large : small);
    ones[i] = 1.0;
  }
  const rft_batch *const batch =
      batch_new(logprob, tensor_1d(float32, PART, NULL), NULL, tensor_1d(float32, PART, ones),
                tensor_1d(bool8, PART, ones), NULL);
  const rft_batch *parts[PARTS];
  for (int k = 0; k < PARTS; ++k) {
    parts[k] = batch;
  }
  const int64_t large_count = PARTS * PART / LARGE_EACH;
  const int64_t small_count = PARTS * PART - large_count;
  int64_t dropped = 0; // all of these sums are exact in double
  while ((double)(large_count - dropped) * large * large + (double)small_count * small * small >
         tau * (double)(large_count - dropped + small_count)) {
    ++dropped;
  }
  const batch_list list = {PARTS, parts};
  const selection_result got = select_ok(m2po_create("{\"m2_threshold\": 0.03125}"), &list);
  cr_expect_eq(metric(got.metrics, "masked_tokens"), (double)dropped);
  for (int64_t position = 0; position < PARTS * PART; ++position) {
    const bool goes = position % LARGE_EACH == 0 && position / LARGE_EACH < dropped;
    cr_assert_eq(tensor_get(got.mask[position / PART], position % PART), !goes, "position %d",
                 (int)position);
  }
}
