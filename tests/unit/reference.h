// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Algorithm 1 of the paper (arXiv 2510.01161) in integers, without any rounding: the literal
// version that the plugin is tested against. Slow, and meant to be read beside the paper.

#ifndef TEST_REFERENCE_H
#define TEST_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>

/// The config fields that decide which tokens are dropped.
typedef struct reference_selection {
  bool off;         ///< m2_threshold is null
  double tau;       ///< m2_threshold
  bool all_tokens;  ///< selection: all_tokens, else trust_region
  bool proximal;    ///< m2_reference: proximal, else current
  bool below;       ///< boundary: below, else at_most
  int64_t min_kept; ///< min_kept_tokens
} reference_selection;

/// One position of the optimizer batch, its values as the tensors hold them.
typedef struct reference_token {
  double logprob;
  double old_logprob;
  double proximal_logprob; ///< where has_proximal
  double advantage;
  bool has_proximal;
  bool valid;            ///< the response mask
  bool logprob_is_wide;  ///< is float64
  bool old_is_wide;      ///< likewise
  bool proximal_is_wide; ///< likewise
  int64_t sequence;      ///< of its micro-batch
} reference_token;

/// What Algorithm 1 counts. The means are exact values rounded once to double, 0 of no token.
typedef struct reference_counts {
  int64_t valid;
  int64_t trust_region;
  int64_t masked;
  double m2_before;
  double m2_after;
  double sum_before;
  double sum_after;
} reference_counts;

/// keep[i] is true for a valid token that is not dropped. `tokens` are in token order.
reference_counts reference_select(const reference_selection *config, const reference_token *tokens,
                                  int64_t count, bool *keep);

/// policy - behavior, rounded once: to float64 where one of the two is, else to float32.
double reference_difference(double policy, double behavior, bool wide);

#endif // TEST_REFERENCE_H
