// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a selection keeps of one micro-batch.

#ifndef M2PO_GATHER_H
#define M2PO_GATHER_H

#include "algorithm1.h"
#include "instance.h"
#include "support/batch_view.h"

/// The candidates of one micro-batch and where they stand. Bit i of word i / 64 is position i.
typedef struct m2po_gathered {
  int64_t rows;
  int64_t columns;
  int32_t ndim; ///< of logprob
  int64_t count;
  uint64_t *valid;             ///< positions whose mask is non-zero
  uint64_t *candidate;         ///< positions that Algorithm 1 may drop
  const m2po_squares *squares; ///< where its candidates begin in the selection's list
} m2po_gathered;

/// Sums over this rank's micro-batches.
typedef struct m2po_totals {
  int64_t valid;       ///< tokens
  int64_t sequences;   ///< with at least one valid token
  int64_t constrained; ///< |T|
  int64_t candidates;  ///< of T
  m2po_exact sum;      ///< of m over T
  m2po_exact rest;     ///< of m over T without the candidates
} m2po_totals;

/// Reads a micro-batch once. On success the caller owns what `gathered` points at, its candidates
/// are at the end of `squares`, and `totals` has grown; on an error there is nothing to free.
int32_t m2po_gather(const rft_instance *instance, const m2po_rule *rule, const rft_batch *source,
                    m2po_gathered *gathered, m2po_square_list *squares, m2po_totals *totals,
                    rft_error *error);

static inline bool m2po_bit(const uint64_t *words, int64_t position)
{
  return ((words[position / 64] >> (position % 64)) & 1) != 0;
}

#endif // M2PO_GATHER_H
