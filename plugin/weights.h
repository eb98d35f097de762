// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What a token's loss is multiplied by: the scale, over the denominator of the aggregation mode.

#ifndef M2PO_WEIGHTS_H
#define M2PO_WEIGHTS_H

#include "instance.h"
#include "support/batch_view.h"

typedef struct m2po_weights {
  double each;   ///< of every token, or with `sequence_tokens` of a sequence's tokens
  int64_t valid; ///< tokens of the optimizer batch, where the mode divides by tokens or sequences
  int64_t sequences; ///< likewise: sequences with at least one valid token
  int64_t
      *sequence_tokens; ///< [sequences] valid tokens, where tokens share their sequence's weight
} m2po_weights;

/// Computes the weights of a micro-batch; counts that `reduction` leaves 0 are the micro-batch's
/// own. `keep`: the mask of kept tokens, absent for all. Free with m2po_weights_free.
int32_t m2po_weights_open(const rft_instance *instance, const rft_batch_view *batch,
                          const rft_view *keep, const rft_reduction *reduction,
                          m2po_weights *weights, rft_error *error);

void m2po_weights_free(m2po_weights *weights);

/// Gives the weights of positions [start, start + count).
void m2po_weights_load(const m2po_weights *weights, const rft_batch_view *batch, int64_t start,
                       int64_t count, double *values);

#endif // M2PO_WEIGHTS_H
