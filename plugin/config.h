// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The config of the m2po policy loss: JSON text to one immutable struct.

#ifndef M2PO_CONFIG_H
#define M2PO_CONFIG_H

#include "rft/plugin.h"

#include <stdbool.h>

typedef enum m2po_constrained { M2PO_TRUST_REGION, M2PO_ALL_TOKENS } m2po_constrained;
typedef enum m2po_reference { M2PO_CURRENT, M2PO_PROXIMAL } m2po_reference;
typedef enum m2po_boundary { M2PO_AT_MOST, M2PO_BELOW } m2po_boundary;
typedef enum m2po_denominator { M2PO_VALID, M2PO_KEPT } m2po_denominator;
typedef enum m2po_surrogate { M2PO_IMPORTANCE_SAMPLING, M2PO_PPO_CLIP, M2PO_SAPO } m2po_surrogate;
typedef enum m2po_aggregation {
  M2PO_TOKEN_MEAN,
  M2PO_SEQ_MEAN_TOKEN_SUM,
  M2PO_SEQ_MEAN_TOKEN_MEAN,
  M2PO_SEQ_MEAN_TOKEN_SUM_NORM
} m2po_aggregation;

/// One field a key of config.schema.json, which says what each means. A null is INFINITY where it
/// stands for no bound, and 0 in loss_scale_factor.
typedef struct m2po_config {
  double m2_threshold;
  m2po_constrained selection;
  m2po_reference m2_reference;
  m2po_boundary boundary;
  int64_t min_kept_tokens;
  m2po_denominator denominator;
  m2po_surrogate surrogate;
  double clip_range_low;
  double clip_range_high;
  double clip_ratio_c;
  double sapo_tau_pos;
  double sapo_tau_neg;
  m2po_aggregation loss_agg_mode;
  double loss_scale_factor;
  double log_ratio_clip;
  uint64_t digest; ///< equal on two ranks whose configs are equal
} m2po_config;

/// Reads and checks `text`, `length` bytes of JSON. Keys that are given but have no effect are
/// warnings to `log` (may be NULL). RFT_INVALID_ARGUMENT names the key.
int32_t m2po_config_parse(const char *text, int64_t length, const rft_log *log, m2po_config *config,
                          rft_error *error);

#endif // M2PO_CONFIG_H
