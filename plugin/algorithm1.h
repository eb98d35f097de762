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

#include "config.h"
#include "exact.h"
#include "rft/plugin.h"
#include "squares.h"

/// When the loop above stops.
typedef struct m2po_rule {
  double threshold; ///< tau, finite
  bool strict;      ///< stop at mean < tau instead of mean <= tau
  int64_t min_kept; ///< never shrink T below this
} m2po_rule;

/// A set of tokens by its sum of m and its size.
typedef struct m2po_kept {
  m2po_exact sum;
  int64_t count;
} m2po_kept;

/// The largest m that is kept, and how the tokens that share it divide.
typedef struct m2po_cut {
  double value;           ///< tokens with a larger m are dropped, with a smaller one kept
  int64_t dropped_equals; ///< of this rank's tokens with m == value, the earliest this many go, or
                          ///< as many as there are
} m2po_cut;

/// One bin of a walk step, and its layout on the wire: all sums of integers.
typedef struct m2po_bin {
  uint64_t count;
  uint64_t high; ///< sum of the mantissas' bits from 32 up
  uint64_t low;  ///< sum of the mantissas' low 32 bits
} m2po_bin;

enum { M2PO_BINS = 2048 };

m2po_rule m2po_rule_of(const m2po_config *config);

/// May a set stand by the rule?
bool m2po_affordable(const m2po_rule *rule, const m2po_exact *sum, int64_t count);

/// The token's m is so large that the loop may drop it. A dropped token is the largest of a set
/// whose mean is over tau, so it is over tau itself; only candidates need to be remembered.
static inline bool m2po_is_candidate(const m2po_rule *rule, double square)
{
  return rule->strict ? square >= rule->threshold : square > rule->threshold;
}

/// The largest float32 that is no candidate.
float m2po_candidate_bound(const m2po_rule *rule);

/// Finds the cut among the candidates `parts` (NULL: none) of this rank and those of every other
/// rank of `collectives` (or NULL). `kept` comes as the tokens of T that are no candidates, over
/// all ranks, and leaves as all that are kept. `wide`: some rank has float64 squares. `bins` is
/// scratch. Not everything may be affordable. Sets equals_before of the parts, where that matters.
/// [collective]
int32_t m2po_find_cut(const m2po_rule *rule, m2po_squares *parts, bool wide,
                      const rft_collectives *collectives, m2po_bin bins[M2PO_BINS], m2po_kept *kept,
                      m2po_cut *cut, rft_error *error);

/// Reads candidates in token order, and counts those at the cut.
typedef struct m2po_cut_reader {
  m2po_square_cursor squares;
  int64_t equals;
} m2po_cut_reader;

/// A reader from the first candidate of a part on (NULL: there is none to read).
static inline m2po_cut_reader m2po_cut_reader_at(const m2po_squares *part)
{
  return (m2po_cut_reader){{part, 0}, part == NULL ? 0 : part->equals_before};
}

/// Is the next candidate kept? No branch that is taken at random.
static inline bool m2po_cut_keeps_next(const m2po_cut *cut, m2po_cut_reader *reader)
{
  const double square = m2po_square_next(&reader->squares);
  if (square == cut->value) {
    return ++reader->equals > cut->dropped_equals;
  }
  return square < cut->value;
}

/// Those of the next candidates, a bit for each, that are kept.
static inline uint64_t m2po_cut_keeps(const m2po_cut *cut, uint64_t candidates,
                                      m2po_cut_reader *reader)
{
  uint64_t kept = 0;
  for (; candidates != 0; candidates &= candidates - 1) {
    const uint64_t stays = m2po_cut_keeps_next(cut, reader) ? 1 : 0;
    kept |= (candidates & -candidates) & -stays;
  }
  return kept;
}

#endif // M2PO_ALGORITHM1_H
