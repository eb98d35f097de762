// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What is measured of tokens: sums and extremes over positions, and how they combine.

#ifndef M2PO_MEASURES_H
#define M2PO_MEASURES_H

#include "lanes.h"

#include <math.h>

/// Log-ratios are clamped to this in the metrics where log_ratio_clip is wider, so that their sums
/// stay finite.
#define M2PO_METRIC_CLIP 80.0

typedef struct m2po_measures {
  double loss;
  double tokens;
  double clipped;
  double ratio_sum;
  double k1_sum;
  double k3_sum;
  double log_ratio_clipped;
  double log_ratio_abs_max;
  double ratio_max;
  double ratio_min;
} m2po_measures;

/// The measures of no token.
static inline m2po_measures m2po_measures_none(void)
{
  return (m2po_measures){
      .log_ratio_abs_max = -INFINITY, .ratio_max = -INFINITY, .ratio_min = INFINITY};
}

/// Adds what comes later in token order.
static inline void m2po_measures_add(m2po_measures *total, const m2po_measures *part)
{
  total->loss += part->loss;
  total->tokens += part->tokens;
  total->clipped += part->clipped;
  total->ratio_sum += part->ratio_sum;
  total->k1_sum += part->k1_sum;
  total->k3_sum += part->k3_sum;
  total->log_ratio_clipped += part->log_ratio_clipped;
  total->log_ratio_abs_max = m2po_larger(total->log_ratio_abs_max, part->log_ratio_abs_max);
  total->ratio_max = m2po_larger(total->ratio_max, part->ratio_max);
  total->ratio_min = m2po_smaller(total->ratio_min, part->ratio_min);
}

#endif // M2PO_MEASURES_H
