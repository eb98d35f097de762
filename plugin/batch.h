// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A micro-batch as the plugin reads it: checked, and every tensor a strided [rows, columns] view.

#ifndef M2PO_BATCH_H
#define M2PO_BATCH_H

#include "view.h"

/// Positions are numbered in row-major order: padded [B,T] has B rows, packed [n] has one.
typedef struct m2po_batch {
  int64_t rows;
  int64_t columns;
  int64_t count;     ///< rows * columns
  int64_t sequences; ///< padded: rows; packed: as cu_seqlens says
  m2po_view logprob;
  m2po_view old_logprob;
  m2po_view proximal_logprob;
  m2po_view advantages;
  m2po_view mask;
  m2po_view cu_seqlens;        ///< one row of `sequences` + 1
  bool advantages_by_sequence; ///< packed: `advantages` has one row a sequence
} m2po_batch;

/// Checks shapes, dtypes, devices and cu_seqlens; values are checked as they are read.
int32_t m2po_batch_open(const rft_batch *source, m2po_batch *batch, rft_error *error);

/// RFT_INVALID_ARGUMENT where an output shares memory with an input. `name` is for the message.
int32_t m2po_batch_check_overlap(const m2po_batch *batch, const m2po_view *output, const char *name,
                                 rft_error *error);

/// Reads positions [start, start + count) of the advantages, one a position.
void m2po_batch_load_advantages(const m2po_batch *batch, int64_t start, int64_t count,
                                double *values);

/// The first position of a sequence; of `sequences`: the batch's count.
int64_t m2po_batch_sequence_start(const m2po_batch *batch, int64_t sequence);

/// The sequence that a position belongs to.
int64_t m2po_batch_sequence_at(const m2po_batch *batch, int64_t position);

#endif // M2PO_BATCH_H
