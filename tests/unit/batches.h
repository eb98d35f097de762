// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Micro-batches: made of tensors, cut in parts, and read back token by token for the reference.

#ifndef TEST_BATCHES_H
#define TEST_BATCHES_H

#include "reference.h"
#include "rft/plugin.h"
#include "tensors.h"

/// A batch of these tensors; `proximal_logprob` and `cu_seqlens` may be NULL.
rft_batch *batch_new(const rft_tensor *logprob, const rft_tensor *old_logprob,
                     const rft_tensor *proximal_logprob, const rft_tensor *advantages,
                     const rft_tensor *mask, const rft_tensor *cu_seqlens);

/// Number of positions, and of columns (T; of [n]: n).
int64_t batch_count(const rft_batch *batch);
int64_t batch_columns(const rft_batch *batch);

/// The batch's positions as the reference reads them, whatever its layout and dtypes.
reference_token *batch_tokens(const rft_batch *batch);

/// An optimizer batch: micro-batches in the order that they are added in.
typedef struct batch_list {
  int64_t count;
  const rft_batch **batch;
} batch_list;

batch_list batch_list_of(const rft_batch *batch);
int64_t batch_list_positions(const batch_list *list);
reference_token *batch_list_tokens(const batch_list *list);

/// Cuts a batch without cu_seqlens into parts of these sizes along its first dimension.
batch_list batch_split(const rft_batch *batch, int64_t parts, const int64_t *sizes);

#endif // TEST_BATCHES_H
