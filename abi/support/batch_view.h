// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A micro-batch as the plugin reads it: checked, and every tensor a strided [rows, columns] view.

#ifndef RFT_SUPPORT_BATCH_VIEW_H
#define RFT_SUPPORT_BATCH_VIEW_H

#include "view.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Positions are numbered in row-major order: padded [B,T] has B rows, packed [n] has one.
typedef struct rft_batch_view {
  int64_t rows;
  int64_t columns;
  int64_t count;     ///< rows * columns
  int64_t sequences; ///< padded: rows; packed: as cu_seqlens says
  rft_view logprob;
  rft_view old_logprob;
  rft_view proximal_logprob;
  rft_view advantages;
  rft_view mask;
  rft_view cu_seqlens;         ///< one row of `sequences` + 1
  bool advantages_by_sequence; ///< packed: `advantages` has one row a sequence
} rft_batch_view;

/// Checks shapes, dtypes, devices and cu_seqlens; values are checked as they are read.
int32_t rft_batch_view_open(const rft_batch *source, rft_batch_view *batch, rft_error *error);

/// RFT_INVALID_ARGUMENT where an output shares memory with an input. `name` is for the message.
int32_t rft_batch_view_check_overlap(const rft_batch_view *batch, const rft_view *output,
                                     const char *name, rft_error *error);

/// Reads positions [start, start + count) of the advantages, one a position.
void rft_batch_view_load_advantages(const rft_batch_view *batch, int64_t start, int64_t count,
                                    double *values);

/// The first position of a sequence; of `sequences`: the batch's count.
int64_t rft_batch_view_sequence_start(const rft_batch_view *batch, int64_t sequence);

/// The sequence that a position belongs to.
int64_t rft_batch_view_sequence_at(const rft_batch_view *batch, int64_t position);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_BATCH_VIEW_H
