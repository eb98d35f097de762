// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The rules of the loss, one small batch each, with the answer written out.

#include "compare.h"
#include "plugin_fixture.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

TestSuite(loss_rules, .fini = plugin_fixture_end);

enum { MOST = 8 };

// Log-ratios against a behavior policy of 0, all tokens valid.
static rft_batch *batch_of(rft_dtype dtype, int64_t count, const double *log_ratios,
                           const double *advantages)
{
  static const double ones[MOST] = {1, 1, 1, 1, 1, 1, 1, 1};
  return batch_new(tensor_1d(dtype, count, log_ratios), tensor_1d(dtype, count, NULL), NULL,
                   tensor_1d(dtype, count, advantages), tensor_1d(bool8, count, ones), NULL);
}

static evaluation evaluate_one(rft_dtype dtype, double log_ratio, double advantage,
                               const char *config)
{
  const rft_batch *const batch = batch_of(dtype, 1, &log_ratio, &advantage);
  return evaluate_ok(m2po_create(config), batch, NULL, NULL, float64);
}

// ------------------------------------------------------------------------------------ denominators

Test(loss_rules, the_mean_is_over_the_tokens_before_the_selection)
{
  const double d[] = {0.0, 0.0, 0.0, 0.0};
  const double a[] = {1.0, 1.0, 1.0, 1.0};
  const double keep[] = {1, 0, 0, 1};
  const rft_batch *const batch = batch_of(float32, 4, d, a);
  const rft_tensor *const mask = tensor_1d(uint8, 4, keep);
  cr_expect_eq(evaluate_ok(m2po_create("{}"), batch, mask, NULL, float32).loss, -0.5);
  rft_instance *const by_kept = m2po_create("{\"denominator\": \"kept\"}");
  cr_expect_eq(evaluate_ok(by_kept, batch, mask, NULL, float32).loss, -1.0);
  const rft_reduction given = {
      .struct_size = sizeof given, .valid_tokens = 100, .kept_tokens = 10, .sequences = 1000};
  cr_expect_eq(evaluate_ok(m2po_create("{}"), batch, mask, &given, float32).loss, -0.02);
  cr_expect_eq(evaluate_ok(by_kept, batch, mask, &given, float32).loss, -0.2);
}

Test(loss_rules, kept_concerns_token_mean_only)
{
  const double d[] = {0.0, 0.0};
  const double a[] = {1.0, 1.0};
  const double keep[] = {1, 0};
  const rft_batch *const batch = batch_of(float32, 2, d, a);
  const rft_tensor *const mask = tensor_1d(uint8, 2, keep);
  rft_instance *const instance =
      m2po_create("{\"denominator\": \"kept\", \"loss_agg_mode\": \"seq-mean-token-mean\"}");
  cr_expect_eq(evaluate_ok(instance, batch, mask, NULL, float32).loss, -0.5);
}

Test(loss_rules, a_kept_flag_does_not_make_a_position_valid)
{
  const double d[] = {0.0, 0.0};
  const double a[] = {1.0, 1.0};
  const double valid[] = {1, 0};
  const double keep[] = {1, 1};
  rft_batch *const batch = batch_of(float32, 2, d, a);
  batch->mask = tensor_1d(bool8, 2, valid);
  const rft_tensor *const mask = tensor_1d(bool8, 2, keep);
  rft_instance *const by_kept = m2po_create("{\"denominator\": \"kept\"}");
  const evaluation got = evaluate_ok(by_kept, batch, mask, NULL, float32);
  cr_expect_eq(got.loss, -1.0);
  cr_expect(same_bits(tensor_get(got.gradient, 1), 0.0));
}

Test(loss_rules, sum_norm_divides_the_total_by_the_padded_length_or_the_factor)
{
  const double zeros[6] = {0};
  const double ones[6] = {1, 1, 1, 1, 1, 1};
  const rft_tensor *const zero = tensor_2d(float32, 2, 3, zeros);
  const rft_tensor *const one = tensor_2d(float32, 2, 3, ones);
  const rft_batch *const batch = batch_new(zero, zero, NULL, one, one, NULL);
  const char *const by_length = "{\"loss_agg_mode\": \"seq-mean-token-sum-norm\"}";
  const char *const by_factor =
      "{\"loss_agg_mode\": \"seq-mean-token-sum-norm\", \"loss_scale_factor\": 4}";
  cr_expect(
      is_close(evaluate_ok(m2po_create(by_length), batch, NULL, NULL, float32).loss, -2.0, 1e-14));
  cr_expect(
      is_close(evaluate_ok(m2po_create(by_factor), batch, NULL, NULL, float32).loss, -1.5, 1e-14));
}

// ------------------------------------------------------------------------------ exact zeros, clamp

Test(loss_rules, dropped_masked_and_zero_advantage_positions_have_gradient_zero)
{
  const double d[] = {1e4, 1e4, 1e4, 0.0, -1e4};
  const double a[] = {1.0, 0.0, 1.0, 1.0, -0.0};
  const double valid[] = {0, 1, 1, 1, 1};
  const double keep[] = {0, 1, 0, 1, 1};
  static const char *const configs[] = {
      "{\"log_ratio_clip\": null}", "{\"log_ratio_clip\": null, \"surrogate\": \"ppo_clip\"}",
      "{\"log_ratio_clip\": null, \"surrogate\": \"sapo\"}", "{}"};
  for (int c = 0; c < 4; ++c) {
    for (int wide = 0; wide < 2; ++wide) {
      rft_batch *const batch = batch_of(wide ? float64 : float32, 5, d, a);
      batch->mask = tensor_1d(bool8, 5, valid);
      const evaluation got =
          evaluate_ok(m2po_create(configs[c]), batch, tensor_1d(uint8, 5, keep), NULL, float32);
      cr_expect(isfinite(got.loss), "%s", configs[c]);
      for (int64_t i = 0; i < 5; ++i) {
        const double gradient = tensor_get(got.gradient, i);
        cr_expect(i == 3 ? gradient != 0 : same_bits(gradient, 0.0), "%s: gradient[%d] is %a",
                  configs[c], (int)i, gradient);
      }
    }
  }
}

Test(loss_rules, the_clamp_passes_the_gradient_through)
{
  const evaluation high = evaluate_one(float64, 25.0, -1.0, "{}");
  cr_expect(is_close(high.loss, exp(20), 1e-12));
  cr_expect(is_close(tensor_get(high.gradient, 0), exp(20), 1e-12));
  const evaluation low = evaluate_one(float64, -3.0, 2.0, "{\"log_ratio_clip\": 0.5}");
  cr_expect(is_close(low.loss, -2 * exp(-0.5), 1e-12));
  cr_expect(is_close(tensor_get(low.gradient, 0), -2 * exp(-0.5), 1e-12));
  const evaluation none = evaluate_one(float64, 25.0, -1.0, "{\"log_ratio_clip\": null}");
  cr_expect(is_close(none.loss, exp(25), 1e-12));
}

// A times the weight is less than any normal float32, but not so the gradient.
Test(loss_rules, a_small_weight_costs_no_bits_of_the_gradient)
{
  const rft_reduction tiny = {.struct_size = sizeof tiny, .valid_tokens = 1, .scale = 0x1p-13};
  const double d = 20.0;
  const double a = 0x1.234566p-120;
  const rft_batch *const batch = batch_of(float32, 1, &d, &a);
  const evaluation got = evaluate_ok(m2po_create("{}"), batch, NULL, &tiny, float32);
  cr_expect(is_close(tensor_get(got.gradient, 0), -exp(20.0) * a * 0x1p-13, LOSS_TOLERANCE));
}

// ---------------------------------------------------------------------------------------- overflow

static rft_error error_of(const rft_batch *batch, const char *config, rft_dtype gradient)
{
  evaluation unused;
  rft_error error = error_new();
  const int32_t code =
      m2po_evaluate(m2po_create(config), batch, NULL, NULL, gradient, &unused, &error);
  cr_assert_eq(code, RFT_OUT_OF_RANGE, "%s: code %d, %s", config, code, error.message);
  return error;
}

static void expect_parts(const rft_error *error, const char *a, const char *b)
{
  cr_expect(strstr(error->message, a) != NULL, "no \"%s\" in: %s", a, error->message);
  cr_expect(strstr(error->message, b) != NULL, "no \"%s\" in: %s", b, error->message);
}

Test(loss_rules, a_ratio_that_overflows_is_an_error_naming_the_token)
{
  const double a[] = {1.0, -1.0, 1.0};
  const double narrow[] = {0.0, 89.0, 0.0};
  const double wide[] = {0.0, 0.0, 710.0};
  const char *const config = "{\"log_ratio_clip\": null}";
  rft_error error = error_of(batch_of(float32, 3, narrow, a), config, float32);
  expect_parts(&error, "overflow", "index 1");
  error = error_of(batch_of(float64, 3, wide, a), config, float64);
  expect_parts(&error, "overflow", "index 2");
  const rft_batch *const fits = batch_of(float64, 3, narrow, a);
  cr_expect(is_close(evaluate_ok(m2po_create(config), fits, NULL, NULL, float64).loss,
                     (exp(89) - 2) / 3, 1e-12));
}

Test(loss_rules, a_gradient_that_overflows_its_dtype_is_an_error_naming_the_token)
{
  const double d[] = {0.0, 0.0, 0.0, 15.0}; // exp(15) / 4 is over 65504
  const double a[] = {1.0, 1.0, 1.0, -1.0};
  const rft_batch *const batch = batch_of(float32, 4, d, a);
  const rft_error error = error_of(batch, "{}", float16);
  expect_parts(&error, "overflow", "index 3");
  cr_expect(isfinite(evaluate_ok(m2po_create("{}"), batch, NULL, NULL, bfloat16).loss));
}

Test(loss_rules, a_loss_that_overflows_is_an_error)
{
  const double d[] = {600.0, 600.0};
  const double a[] = {-1e60, 1.0};
  const rft_error error =
      error_of(batch_of(float64, 2, d, a), "{\"log_ratio_clip\": null}", float64);
  expect_parts(&error, "overflow", "index 0");
}

Test(loss_rules, a_sum_that_overflows_is_an_error)
{
  const double d[] = {0.0, 0.0, 0.0, 0.0};
  const double a[] = {-1e308, -1e308, -1e308, -1e308};
  const rft_reduction one = {.struct_size = sizeof one, .valid_tokens = 1};
  evaluation got = {.loss = -777};
  rft_error error = error_new();
  const int32_t code = m2po_evaluate(m2po_create("{}"), batch_of(float64, 4, d, a), NULL, &one,
                                     float64, &got, &error);
  cr_expect_eq(code, RFT_OUT_OF_RANGE, "code %d, loss %g", code, got.loss);
  cr_expect(strstr(error.message, "overflow") != NULL, "%s", error.message);
}

// ----------------------------------------------------------------------------- corners of ppo_clip

// The ratio as the plugin computes it, so that a clip can be put on it to the last bit.
static double ratio_of(double log_ratio)
{
  return metric(evaluate_one(float64, log_ratio, 1.0, "{}").metrics, "ratio_max");
}

static void check_corner(double log_ratio, double advantage, const char *format, double clip,
                         bool clipped)
{
  char config[160];
  snprintf(config, sizeof config, format, clip);
  const evaluation got = evaluate_one(float64, log_ratio, advantage, config);
  const double expected = clipped ? 0.0 : -advantage * ratio_of(log_ratio);
  cr_expect_eq(tensor_get(got.gradient, 0), expected, "%s: gradient %a, expected %a", config,
               tensor_get(got.gradient, 0), expected);
  cr_expect_eq(metric(got.metrics, "clipped_tokens"), clipped ? 1.0 : 0.0, "%s", config);
}

Test(loss_rules, at_a_corner_of_ppo_clip_the_unclipped_gradient_holds)
{
  const char *const high = "{\"surrogate\": \"ppo_clip\", \"clip_range_high\": %.17g}";
  const double above = ratio_of(0.25) - 1; // exact, and so is adding 1 again
  check_corner(0.25, 1.0, high, above, false);
  check_corner(0.25, 1.0, high, nextafter(above, 0) - 1e-15, true);
  const char *const low = "{\"surrogate\": \"ppo_clip\", \"clip_range_low\": %.17g}";
  const double below = 1 - ratio_of(-0.25);
  check_corner(-0.25, -1.0, low, below, false);
  check_corner(-0.25, -1.0, low, below - 1e-15, true);
  const char *const dual = "{\"surrogate\": \"ppo_clip\", \"clip_ratio_c\": %.17g}";
  const double bound = ratio_of(1.0);
  check_corner(1.0, -1.0, dual, bound, false);
  check_corner(1.0, -1.0, dual, nextafter(bound, 0), true);
}

Test(loss_rules, a_clip_range_of_zero_keeps_the_gradient_at_ratio_one)
{
  const char *const config =
      "{\"surrogate\": \"ppo_clip\", \"clip_range_low\": 0, \"clip_range_high\": 0}";
  cr_expect_eq(tensor_get(evaluate_one(float32, 0.0, 2.0, config).gradient, 0), -2.0);
  cr_expect_eq(tensor_get(evaluate_one(float32, 0.0, -2.0, config).gradient, 0), 2.0);
  cr_expect_eq(tensor_get(evaluate_one(float32, 0.1, 2.0, config).gradient, 0), 0.0);
  cr_expect_neq(tensor_get(evaluate_one(float32, -0.1, 2.0, config).gradient, 0), 0.0);
}

Test(loss_rules, the_ratio_is_relative_to_the_proximal_policy_where_given)
{
  const double d = 1.0, a = 1.0, proximal = 0.5;
  rft_batch *const batch = batch_of(float64, 1, &d, &a);
  batch->proximal_logprob = tensor_1d(float64, 1, &proximal);
  const evaluation got = evaluate_ok(m2po_create("{}"), batch, NULL, NULL, float64);
  cr_expect(is_close(got.loss, -exp(0.5), 1e-14));
  cr_expect(is_close(metric(got.metrics, "ratio_sum"), exp(0.5), 1e-14));
}
