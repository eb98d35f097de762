// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The evaluate of a loss that is a mean, over the valid tokens of the optimizer batch, of something
// that each token says alone: L = (scale / N) * sum of loss(token) over the tokens that are kept.

#ifndef RFT_SUPPORT_TOKEN_MEAN_H
#define RFT_SUPPORT_TOKEN_MEAN_H

#include "rft/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/// A valid token that is kept. All three are finite.
typedef struct rft_token {
  double logprob;
  double old_logprob;
  double advantage;
} rft_token;

typedef struct rft_token_term {
  double loss;
  double slope; ///< d loss / d logprob
} rft_token_term;

/// What one token adds to the sum. `metrics`: the loss's sums, to add to; NULL: not wanted. The
/// same token gets the same answer, in any order and on any thread; it is asked twice.
typedef rft_token_term (*rft_token_loss)(const void *context, const rft_token *token,
                                         double *metrics);

/// Checks everything that evaluate is given, then computes, then writes loss, gradient and metrics:
/// on an error nothing has been written (P9). The loss has `metric_count` metrics, all of them sums
/// of phase RFT_METRIC_EVALUATE. A value that is not finite at a valid position, or that overflows,
/// is RFT_OUT_OF_RANGE naming tensor, index and value. [thread-safe]
int32_t rft_evaluate_token_mean(rft_token_loss of_token, const void *context, int64_t metric_count,
                                const rft_batch *batch, const rft_tensor *mask,
                                const rft_reduction *reduction, rft_output *output,
                                rft_error *error);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_TOKEN_MEAN_H
