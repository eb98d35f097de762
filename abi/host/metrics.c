// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "rft/host.h"

#include <math.h>
#include <stdbool.h>

void rft_metrics_reset(const rft_policy_loss *loss, double *total)
{
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    const int32_t combine = loss->metrics[i]->combine;
    total[i] = combine == RFT_COMBINE_MAX   ? -(double)INFINITY
               : combine == RFT_COMBINE_MIN ? (double)INFINITY
                                            : 0.0;
  }
}

void rft_metrics_combine(const rft_policy_loss *loss, int32_t phase, double *total,
                         const double *part)
{
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    const rft_metric *const metric = loss->metrics[i];
    if (metric->phase != phase) {
      continue;
    }
    switch (metric->combine) {
    case RFT_COMBINE_NONE:
      total[i] = part[i];
      break;
    case RFT_COMBINE_SUM:
      total[i] += part[i];
      break;
    case RFT_COMBINE_MAX:
      total[i] = part[i] > total[i] ? part[i] : total[i];
      break;
    case RFT_COMBINE_MIN:
      total[i] = part[i] < total[i] ? part[i] : total[i];
      break;
    default: // a ratio has no parts
      break;
    }
  }
}

// The neutral value is still there where there was no token.
static bool is_untouched(const rft_metric *metric, double total)
{
  return (metric->combine == RFT_COMBINE_MAX && total == -INFINITY) ||
         (metric->combine == RFT_COMBINE_MIN && total == INFINITY);
}

void rft_metrics_finish(const rft_policy_loss *loss, double *total)
{
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    if (is_untouched(loss->metrics[i], total[i])) {
      total[i] = 0.0;
    }
  }
  for (int64_t i = 0; i < loss->metric_count; ++i) {
    const rft_metric *const metric = loss->metrics[i];
    if (metric->combine == RFT_COMBINE_RATIO) {
      const double numerator = total[metric->numerator];
      const double denominator = total[metric->denominator];
      total[i] = numerator == 0 && denominator == 0 ? 0.0 : numerator / denominator;
    }
  }
}
