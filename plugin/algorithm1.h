// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Algorithm 1 of the paper (arXiv 2510.01161): which tokens to drop.
//
//     while T is not empty and mean of m over T > tau:
//         drop the token of T with the largest m, the earliest among equals
//
// What is left is the longest run of T, sorted by m, whose mean is within tau. It is found without
// sorting and without a rounded sum, by a walk down the bits of m.

#ifndef M2PO_ALGORITHM1_H
#define M2PO_ALGORITHM1_H

#include "exact.h"
#include "rft/plugin.h"

/// When the loop above stops.
typedef struct m2po_rule {
  double threshold; ///< tau, finite
  bool strict;      ///< stop at mean < tau instead of mean <= tau
  int64_t min_kept; ///< never shrink T below this
} m2po_rule;

/// Squared log-ratios m of some tokens, in token order.
typedef struct m2po_squares {
  bool wide; ///< float64, else float32
  int64_t count;
  void *values;          ///< double or float [count], finite, >= 0
  int64_t equals_before; ///< once the cut is found: candidates at it in earlier parts
} m2po_squares;

static inline double m2po_square_at(const m2po_squares *squares, int64_t i)
{
  return squares->wide ? ((const double *)squares->values)[i]
                       : (double)((const float *)squares->values)[i];
}

/// A set of tokens by its sum of m and its size.
typedef struct m2po_kept {
  m2po_exact sum;
  int64_t count;
} m2po_kept;

/// The largest m that is kept, and how the tokens that share it divide.
typedef struct m2po_cut {
  double value;           ///< tokens with a larger m are dropped, with a smaller one kept
  int64_t dropped_equals; ///< of this rank's tokens with m == value, the earliest this many go
} m2po_cut;

/// One bin of a walk step, and its layout on the wire: all sums of integers.
typedef struct m2po_bin {
  uint64_t count;
  uint64_t high; ///< sum of the mantissas' bits from 32 up
  uint64_t low;  ///< sum of the mantissas' low 32 bits
} m2po_bin;

enum { M2PO_BINS = 2048 };

/// May a set stand by the rule?
bool m2po_affordable(const m2po_rule *rule, const m2po_exact *sum, int64_t count);

/// The token's m is so large that the loop may drop it. A dropped token is the largest of a set
/// whose mean is over tau, so it is over tau itself; only candidates need to be remembered.
static inline bool m2po_is_candidate(const m2po_rule *rule, double square)
{
  return rule->strict ? square >= rule->threshold : square > rule->threshold;
}

/// Finds the cut among the candidates `parts` [part_count] of this rank and those of every other
/// rank of `collectives` (or NULL). `kept` comes as the tokens of T that are no candidates, over
/// all ranks, and leaves as all that are kept. `wide`: some rank has float64 squares. `bins` is
/// scratch. Not everything may be affordable. Sets equals_before of the parts. [collective]
int32_t m2po_find_cut(const m2po_rule *rule, m2po_squares *parts, int64_t part_count, bool wide,
                      const rft_collectives *collectives, m2po_bin bins[M2PO_BINS], m2po_kept *kept,
                      m2po_cut *cut, rft_error *error);

#endif // M2PO_ALGORITHM1_H
