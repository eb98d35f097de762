// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The loss of one micro-batch and its gradient, written down as the papers do, in long double.

#ifndef TEST_REFERENCE_LOSS_H
#define TEST_REFERENCE_LOSS_H

#include "reference.h"

typedef enum reference_surrogate {
  REFERENCE_IMPORTANCE_SAMPLING,
  REFERENCE_PPO_CLIP,
  REFERENCE_SAPO
} reference_surrogate;

typedef enum reference_aggregation {
  REFERENCE_TOKEN_MEAN,
  REFERENCE_SEQ_MEAN_TOKEN_SUM,
  REFERENCE_SEQ_MEAN_TOKEN_MEAN,
  REFERENCE_SEQ_MEAN_TOKEN_SUM_NORM
} reference_aggregation;

/// The config fields that shape the loss. A field that may be null is 0 where it is.
typedef struct reference_objective {
  reference_surrogate surrogate;
  double clip_low;
  double clip_high;
  double dual_clip; ///< clip_ratio_c
  double sapo_positive;
  double sapo_negative;
  reference_aggregation aggregation;
  double scale_factor; ///< loss_scale_factor
  double log_ratio_clip;
  bool divide_by_kept; ///< denominator: kept
} reference_objective;

/// The defaults of the config.
reference_objective reference_objective_default(void);

/// What the means divide by: counts of the whole optimizer batch, and T of the padded layout.
typedef struct reference_denominators {
  int64_t valid;
  int64_t kept;
  int64_t sequences;
  int64_t columns;
  double scale;
} reference_denominators;

/// Loss of the kept tokens; gradient[i] is d loss / d logprob of tokens[i].
long double reference_loss(const reference_objective *objective, const reference_token *tokens,
                           int64_t count, const bool *keep,
                           const reference_denominators *denominators, long double *gradient);

/// log r = logprob - (proximal_logprob where given, else old_logprob), clamped.
long double reference_log_ratio(const reference_objective *objective, const reference_token *token);

/// Counts of these tokens alone, for a micro-batch that is the whole optimizer batch.
reference_denominators reference_count(const reference_token *tokens, int64_t count,
                                       const bool *keep, int64_t columns);

#endif // TEST_REFERENCE_LOSS_H
