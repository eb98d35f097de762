// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The metrics of the loss: their descriptors, and each value against a plain sum over the tokens.

#include "compare.h"
#include "loss_batches.h"
#include "plugin_fixture.h"

TestSuite(loss_metrics, .fini = plugin_fixture_end);

enum { ROWS = 9, COLUMNS = 8 };

typedef struct expected_metric {
  const char *name;
  int32_t phase;
  int32_t combine;
  const char *numerator; ///< of a ratio
  const char *denominator;
} expected_metric;

static const expected_metric expected_metrics[] = {
    {"valid_tokens", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, NULL, NULL},
    {"trust_region_tokens", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, NULL, NULL},
    {"masked_tokens", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, NULL, NULL},
    {"m2_sum_before", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, NULL, NULL},
    {"m2_sum_after", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, NULL, NULL},
    {"m2_before", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, NULL, NULL},
    {"m2_after", RFT_METRIC_SELECTION, RFT_COMBINE_NONE, NULL, NULL},
    {"masked_fraction", RFT_METRIC_SELECTION, RFT_COMBINE_RATIO, "masked_tokens", "valid_tokens"},
    {"trust_region_fraction", RFT_METRIC_SELECTION, RFT_COMBINE_RATIO, "trust_region_tokens",
     "valid_tokens"},
    {"tokens", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, NULL, NULL},
    {"ratio_sum", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, NULL, NULL},
    {"k1_sum", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, NULL, NULL},
    {"k3_sum", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, NULL, NULL},
    {"clipped_tokens", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, NULL, NULL},
    {"log_ratio_clipped_tokens", RFT_METRIC_EVALUATE, RFT_COMBINE_SUM, NULL, NULL},
    {"log_ratio_abs_max", RFT_METRIC_EVALUATE, RFT_COMBINE_MAX, NULL, NULL},
    {"ratio_max", RFT_METRIC_EVALUATE, RFT_COMBINE_MAX, NULL, NULL},
    {"ratio_min", RFT_METRIC_EVALUATE, RFT_COMBINE_MIN, NULL, NULL},
    {"ratio_mean", RFT_METRIC_EVALUATE, RFT_COMBINE_RATIO, "ratio_sum", "tokens"},
    {"ppo_kl", RFT_METRIC_EVALUATE, RFT_COMBINE_RATIO, "k1_sum", "tokens"},
    {"k3_kl", RFT_METRIC_EVALUATE, RFT_COMBINE_RATIO, "k3_sum", "tokens"},
    {"clip_fraction", RFT_METRIC_EVALUATE, RFT_COMBINE_RATIO, "clipped_tokens", "tokens"},
};
enum { METRICS = sizeof expected_metrics / sizeof expected_metrics[0] };

static const rft_metric *find(const char *name)
{
  for (int64_t i = 0; i < m2po()->metric_count; ++i) {
    if (strcmp(m2po()->metrics[i]->name, name) == 0) {
      return m2po()->metrics[i];
    }
  }
  cr_assert_fail("no metric %s", name);
  return NULL;
}

static void check_ratio(const rft_metric *ratio, const expected_metric *expected)
{
  const rft_metric *const over = m2po()->metrics[ratio->numerator];
  const rft_metric *const under = m2po()->metrics[ratio->denominator];
  cr_expect_str_eq(over->name, expected->numerator);
  cr_expect_str_eq(under->name, expected->denominator);
  cr_expect_eq(over->phase, ratio->phase, "%s", expected->name);
  cr_expect_eq(under->phase, ratio->phase, "%s", expected->name);
}

Test(loss_metrics, descriptors)
{
  cr_expect_eq(m2po()->metric_count, METRICS);
  for (int i = 0; i < METRICS; ++i) {
    const expected_metric *const expected = &expected_metrics[i];
    const rft_metric *const found = find(expected->name);
    cr_expect_eq(found->phase, expected->phase, "%s", expected->name);
    cr_expect_eq(found->combine, expected->combine, "%s", expected->name);
    cr_expect_geq(strlen(found->description), 10, "%s", expected->name);
    if (expected->numerator != NULL) {
      check_ratio(found, expected);
    }
  }
}

Test(loss_metrics, each_phase_writes_its_own_entries_and_no_ratio)
{
  const batch_dtypes dtypes = all_of(float32);
  const rft_batch *const batch = loss_batch(1, &dtypes, ROWS, COLUMNS);
  const batch_list list = batch_list_of(batch);
  rft_instance *const instance = m2po_create("{}");
  const selection_result selection = select_ok(instance, &list);
  const evaluation evaluated = evaluate_ok(instance, batch, NULL, NULL, float32);
  for (int i = 0; i < METRICS; ++i) {
    const expected_metric *const expected = &expected_metrics[i];
    const bool ratio = expected->combine == RFT_COMBINE_RATIO;
    const bool selected = metric(selection.metrics, expected->name) != METRIC_UNWRITTEN;
    const bool measured = metric(evaluated.metrics, expected->name) != METRIC_UNWRITTEN;
    cr_expect_eq(selected, !ratio && expected->phase == RFT_METRIC_SELECTION, "%s", expected->name);
    cr_expect_eq(measured, !ratio && expected->phase == RFT_METRIC_EVALUATE, "%s", expected->name);
  }
}

/// The sums that evaluate reports, token by token. Log-ratios are clamped to log_ratio_clip, to 80
/// without one.
typedef struct sums {
  long double ratio, k1, k3;
  double ratio_max, ratio_min, log_ratio_abs_max;
  int64_t tokens, clipped, log_ratio_clipped;
} sums;

static bool clip_stops(const reference_objective *objective, const reference_token *token)
{
  const reference_denominators one = {1, 1, 1, 1, 1.0};
  const bool keep = true;
  long double slope;
  reference_loss(objective, token, 1, &keep, &one, &slope);
  return slope == 0 && token->advantage != 0;
}

static void add_token(sums *total, const reference_objective *objective,
                      const reference_token *token, bool keep)
{
  reference_objective clamped = *objective;
  clamped.log_ratio_clip = objective->log_ratio_clip == 0 ? 80 : objective->log_ratio_clip;
  reference_objective open = *objective;
  open.log_ratio_clip = 0;
  const long double d = reference_log_ratio(&clamped, token);
  const double unclamped = fabs((double)reference_log_ratio(&open, token));
  const long double r = expl(d);
  ++total->tokens;
  total->ratio += r;
  total->k1 -= d;
  total->k3 += r - 1 - d;
  total->ratio_max = fmax(total->ratio_max, (double)r);
  total->ratio_min = fmin(total->ratio_min, (double)r);
  total->log_ratio_abs_max = fmax(total->log_ratio_abs_max, unclamped);
  total->log_ratio_clipped +=
      objective->log_ratio_clip > 0 && unclamped > objective->log_ratio_clip;
  total->clipped +=
      objective->surrogate == REFERENCE_PPO_CLIP && keep && clip_stops(objective, token);
}

static sums literal_sums(const reference_objective *objective, const rft_batch *batch,
                         const rft_tensor *mask)
{
  sums total = {.ratio_max = -INFINITY, .ratio_min = INFINITY, .log_ratio_abs_max = -INFINITY};
  const reference_token *const tokens = batch_tokens(batch);
  for (int64_t i = 0; i < batch_count(batch); ++i) {
    if (tokens[i].valid) {
      add_token(&total, objective, &tokens[i], tensor_get(mask, i) != 0);
    }
  }
  return total;
}

static void check_value(const loss_case *shape, const double *metrics, const char *name,
                        double expected)
{
  const double value = metric(metrics, name);
  cr_expect(is_close(value, expected, 1e-9), "%s: %s is %.17g, expected %.17g", shape->name, name,
            value, expected);
}

static void check_values(const loss_case *shape, const double *metrics, const sums *expected)
{
  check_value(shape, metrics, "tokens", (double)expected->tokens);
  check_value(shape, metrics, "ratio_sum", (double)expected->ratio);
  check_value(shape, metrics, "k1_sum", (double)expected->k1);
  check_value(shape, metrics, "k3_sum", (double)expected->k3);
  check_value(shape, metrics, "clipped_tokens", (double)expected->clipped);
  check_value(shape, metrics, "log_ratio_clipped_tokens", (double)expected->log_ratio_clipped);
  check_value(shape, metrics, "log_ratio_abs_max", expected->log_ratio_abs_max);
  check_value(shape, metrics, "ratio_max", expected->ratio_max);
  check_value(shape, metrics, "ratio_min", expected->ratio_min);
}

ParameterizedTestParameters(loss_metrics, evaluate_sums_over_the_valid_tokens)
{
  return loss_cases();
}

ParameterizedTest(loss_case *shape, loss_metrics, evaluate_sums_over_the_valid_tokens)
{
  const double clips[] = {20.0, 0.3, 0.0};
  const batch_dtypes dtypes = all_of(float64);
  rft_batch *const batch = loss_batch(8, &dtypes, ROWS, COLUMNS);
  batch->proximal_logprob = shape->proximal ? batch->proximal_logprob : NULL;
  const batch_list list = batch_list_of(batch);
  for (int c = 0; c < 3; ++c) {
    loss_case other = *shape;
    other.config.objective.log_ratio_clip = clips[c];
    rft_instance *const instance = m2po_create(reference_config_text(&other.config));
    const rft_tensor *const mask = select_ok(instance, &list).mask[0];
    const evaluation got = evaluate_ok(instance, batch, mask, NULL, float64);
    const sums expected = literal_sums(&other.config.objective, batch, mask);
    check_values(shape, got.metrics, &expected);
  }
}

Test(loss_metrics, without_a_clip_log_ratios_are_clamped_to_80_in_the_sums)
{
  const double d[] = {-200.0, 0.0}, a[] = {1.0, 1.0}, ones[] = {1, 1};
  const rft_batch *const batch =
      batch_new(tensor_1d(float64, 2, d), tensor_1d(float64, 2, NULL), NULL,
                tensor_1d(float64, 2, a), tensor_1d(bool8, 2, ones), NULL);
  rft_instance *const instance = m2po_create("{\"log_ratio_clip\": null}");
  const evaluation got = evaluate_ok(instance, batch, NULL, NULL, float64);
  cr_expect_eq(metric(got.metrics, "k1_sum"), 80.0);
  cr_expect_eq(metric(got.metrics, "log_ratio_clipped_tokens"), 0.0);
  cr_expect(is_close(metric(got.metrics, "ratio_min"), exp(-80), 1e-14));
}

Test(loss_metrics, a_log_ratio_at_the_clip_is_not_beyond_it)
{
  const double d[] = {0.5, -0.5, 0.75, -0.75}, a[] = {1, 1, 1, 1};
  const rft_batch *const batch =
      batch_new(tensor_1d(float64, 4, d), tensor_1d(float64, 4, NULL), NULL,
                tensor_1d(float64, 4, a), tensor_1d(bool8, 4, a), NULL);
  const evaluation got =
      evaluate_ok(m2po_create("{\"log_ratio_clip\": 0.5}"), batch, NULL, NULL, float64);
  cr_expect_eq(metric(got.metrics, "log_ratio_clipped_tokens"), 2.0);
  cr_expect_eq(metric(got.metrics, "log_ratio_abs_max"), 0.75);
}

// 0.3 is less than its float32, which a log-ratio can be; how they are computed must not tell.
Test(loss_metrics, a_clip_that_is_no_float32_is_the_same_for_all_dtypes)
{
  rft_instance *const instance = m2po_create("{\"log_ratio_clip\": 0.3}");
  const double beyond = (double)0.3F;
  const double one = 1.0;
  const rft_dtype dtypes[] = {float32, float64};
  for (int i = 0; i < 2; ++i) {
    const rft_batch *const batch =
        batch_new(tensor_1d(float32, 1, &beyond), tensor_1d(float32, 1, NULL), NULL,
                  tensor_1d(dtypes[i], 1, &one), tensor_1d(bool8, 1, &one), NULL);
    const double *const metrics = evaluate_ok(instance, batch, NULL, NULL, float32).metrics;
    cr_expect_eq(metric(metrics, "log_ratio_clipped_tokens"), 1.0);
    cr_expect(is_close(metric(metrics, "ratio_max"), exp(0.3), 1e-15));
  }
}
