// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The metrics of the m2po policy loss: an index each into rft_output.metrics and
// rft_selection_report.metrics.

#ifndef M2PO_METRICS_H
#define M2PO_METRICS_H

#include "rft/plugin.h"

typedef enum m2po_metric {
  // Written by selection_finish: final, over the whole optimizer batch.
  M2PO_VALID_TOKENS,
  M2PO_TRUST_REGION_TOKENS,
  M2PO_MASKED_TOKENS,
  M2PO_M2_SUM_BEFORE,
  M2PO_M2_SUM_AFTER,
  M2PO_M2_BEFORE,
  M2PO_M2_AFTER,
  M2PO_MASKED_FRACTION,
  M2PO_TRUST_REGION_FRACTION,
  // Written by evaluate: parts to combine.
  M2PO_TOKENS,
  M2PO_RATIO_SUM,
  M2PO_K1_SUM,
  M2PO_K3_SUM,
  M2PO_CLIPPED_TOKENS,
  M2PO_LOG_RATIO_CLIPPED_TOKENS,
  M2PO_LOG_RATIO_ABS_MAX,
  M2PO_RATIO_MAX,
  M2PO_RATIO_MIN,
  M2PO_RATIO_MEAN,
  M2PO_PPO_KL,
  M2PO_K3_KL,
  M2PO_CLIP_FRACTION,
  M2PO_METRIC_COUNT
} m2po_metric;

/// Descriptors [M2PO_METRIC_COUNT], in the order above.
extern const rft_metric *const m2po_metrics[M2PO_METRIC_COUNT];

/// Checks that a caller's metrics array, [count] or NULL, has an entry for every descriptor.
/// `name`: its struct, for the message.
int32_t m2po_metrics_check(const double *metrics, int64_t count, const char *name,
                           rft_error *error);

#endif // M2PO_METRICS_H
