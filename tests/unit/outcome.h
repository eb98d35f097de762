// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The plugin's whole answer to an optimizer batch, and its comparison bit by bit.

#ifndef TEST_OUTCOME_H
#define TEST_OUTCOME_H

#include "plugin_fixture.h"

/// Everything that the plugin gives for an optimizer batch.
typedef struct outcome {
  selection_result selection;
  evaluation *part; ///< [micro-batches]
} outcome;

/// Selection, then evaluate for each micro-batch; all must succeed.
outcome outcome_of(const rft_instance *instance, const batch_list *list, rft_dtype gradient);

/// Asserts that two answers are the same to the last bit. `what` is for the message.
void check_same_outcome(const char *what, const outcome *a, const outcome *b, int64_t count);
void check_same_bytes(const char *what, const rft_tensor *a, const rft_tensor *b);

#endif // TEST_OUTCOME_H
