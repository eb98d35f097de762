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

/// Adds so many float32 squares.
void m2po_tally_add_floats(m2po_tally *tally, const float *squares, int64_t count);

/// Adds what a block has below a bracket. [plain sightings alone]
void m2po_tally_add_below(m2po_tally *tally, const m2po_kernels *kernels, m2po_sighting *sighting);

/// Adds what it has inside the bracket, whose low end is `low`, and above. Both may leave zeros in
/// the sighting.
void m2po_tally_add_over(m2po_tally *tally, const m2po_kernels *kernels, float low,
                         m2po_sighting *sighting);

/// sum += tally.
void m2po_tally_fold(const m2po_tally *tally, m2po_exact *sum);

#endif // M2PO_TALLY_H
