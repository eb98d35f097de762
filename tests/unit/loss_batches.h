// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Padded batches with ratios on both sides of every clip, and every shape of the loss.

#ifndef TEST_LOSS_BATCHES_H
#define TEST_LOSS_BATCHES_H

#include "random_batches.h"
#include "reference_config.h"

#include <criterion/criterion.h>
#include <criterion/parameterized.h>

/// A compact [rows, columns] batch, log-ratios in about (-1, 1); the first row has no valid token.
rft_batch *loss_batch(uint64_t seed, const batch_dtypes *dtypes, int64_t rows, int64_t columns);

/// A surrogate with its settings, an aggregation, and the reference policy.
typedef struct loss_case {
  reference_config config;
  bool proximal; ///< proximal_logprob is given
  char name[96];
} loss_case;

/// Every surrogate (ppo_clip with and without dual clip) in every aggregation, with and without a
/// proximal policy.
struct criterion_test_params loss_cases(void);

#endif // TEST_LOSS_BATCHES_H
