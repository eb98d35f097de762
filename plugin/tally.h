// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Exact sums of many squared log-ratios, faster than one exact addition each.

#ifndef M2PO_TALLY_H
#define M2PO_TALLY_H

#include "exact.h"
#include "kernel.h"

enum { M2PO_FLOAT32_EXPONENTS = 256 };

/// A sum in progress. Zero-initialized: nothing yet.
typedef struct m2po_tally {
  uint64_t mantissas[M2PO_FLOAT32_EXPONENTS]; ///< by exponent; each holds 2^40 of them
  m2po_exact sum;
} m2po_tally;

/// Adds one square, finite and >= 0. `wide`: a float64, which goes straight into the exact sum.
void m2po_tally_add(m2po_tally *tally, double square, bool wide);

/// The `least` of a bracket with which every block's squares up to `low` add up exactly.
float m2po_tally_safe_least(float low);

/// A smaller one, that a block whose squares add up to `sum` would have done with, with room to
/// spare; `safe` at most.
float m2po_tally_next_least(double sum, float safe);

/// Adds what a block has below a bracket, and leaves zeros behind. False, and nothing is added: the
/// bracket's `least` was too small, or a square is infinite.
bool m2po_tally_add_below(m2po_tally *tally, const m2po_kernels *kernels, m2po_sighting *sighting,
                          float least);

/// Adds a block of them that are 0 or above `floor` > 0. False, and nothing is added: one is
/// infinite, or very much larger than the others.
bool m2po_tally_add_above(m2po_tally *tally, const m2po_kernels *kernels, float squares[M2PO_BLOCK],
                          float floor);

/// sum += tally.
void m2po_tally_fold(const m2po_tally *tally, m2po_exact *sum);

#endif // M2PO_TALLY_H
