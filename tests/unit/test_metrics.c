// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Metrics put together over micro-batches.

#include "rft/host.h"

#include <criterion/criterion.h>
#include <math.h>

enum { FINAL, SUM, LARGEST, SMALLEST, RATIO, COUNT };

static const rft_metric descriptors[COUNT] = {
    [FINAL] = {.phase = RFT_METRIC_SELECTION, .combine = RFT_COMBINE_NONE},
    [SUM] = {.phase = RFT_METRIC_EVALUATE, .combine = RFT_COMBINE_SUM},
    [LARGEST] = {.phase = RFT_METRIC_EVALUATE, .combine = RFT_COMBINE_MAX},
    [SMALLEST] = {.phase = RFT_METRIC_EVALUATE, .combine = RFT_COMBINE_MIN},
    [RATIO] = {.phase = RFT_METRIC_EVALUATE,
               .combine = RFT_COMBINE_RATIO,
               .numerator = SUM,
               .denominator = FINAL},
};
static const rft_metric *const metrics[COUNT] = {&descriptors[FINAL], &descriptors[SUM],
                                                 &descriptors[LARGEST], &descriptors[SMALLEST],
                                                 &descriptors[RATIO]};
static const rft_policy_loss loss = {.metrics = metrics, .metric_count = COUNT};

Test(metrics, start_at_values_that_change_nothing)
{
  double total[COUNT] = {1, 1, 1, 1, 1};
  rft_metrics_reset(&loss, total);
  cr_expect_eq(total[SUM], 0);
  cr_expect_eq(total[LARGEST], -INFINITY);
  cr_expect_eq(total[SMALLEST], INFINITY);
}

Test(metrics, are_added_or_compared_and_divided_once)
{
  double total[COUNT];
  rft_metrics_reset(&loss, total);
  rft_metrics_combine(&loss, RFT_METRIC_SELECTION, total, (double[COUNT]){8, 77, 77, 77, 77});
  rft_metrics_combine(&loss, RFT_METRIC_EVALUATE, total, (double[COUNT]){77, 1, -3, 5, 77});
  rft_metrics_combine(&loss, RFT_METRIC_EVALUATE, total, (double[COUNT]){77, 3, -9, 2, 77});
  rft_metrics_finish(&loss, total);
  const double expected[COUNT] = {8, 4, -3, 2, 0.5};
  for (int i = 0; i < COUNT; ++i) {
    cr_expect_eq(total[i], expected[i], "metric %d is %g", i, total[i]);
  }
}

Test(metrics, nothing_over_nothing_is_zero)
{
  double total[COUNT];
  rft_metrics_reset(&loss, total);
  rft_metrics_finish(&loss, total);
  cr_expect_eq(total[RATIO], 0);
}

Test(metrics, extremes_of_no_token_are_zero)
{
  double total[COUNT];
  rft_metrics_reset(&loss, total);
  rft_metrics_finish(&loss, total);
  cr_expect_eq(total[LARGEST], 0);
  cr_expect_eq(total[SMALLEST], 0);
}

Test(metrics, codes_have_names)
{
  cr_expect_str_eq(rft_code_name(RFT_INVALID_ARGUMENT), "INVALID_ARGUMENT");
  cr_expect_str_eq(rft_code_name(RFT_DATA_LOSS), "DATA_LOSS");
  cr_expect_str_eq(rft_code_name(99), "UNKNOWN");
  cr_expect_str_eq(rft_code_name(-1), "UNKNOWN");
}
