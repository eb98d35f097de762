// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Losses and slopes of a block of tokens.
//
// Everything here is loops over arrays without a branch inside, which the compiler turns into
// vector instructions. What they compute does not depend on the vectors' width.

#ifndef M2PO_TERMS_H
#define M2PO_TERMS_H

#include "config.h"
#include "inputs.h"
#include "measures.h"

typedef struct m2po_terms {
  double keep[M2PO_BLOCK];    ///< in: non-zero where the token is kept
  double weights[M2PO_BLOCK]; ///< in: of the token's loss
  double ratio[M2PO_BLOCK];   ///< exp of the clamped d; 1 where the token has no term
  double loss[M2PO_BLOCK];    ///< weighted; 0 where the token has no term
  double slope[M2PO_BLOCK];   ///< weighted; 0 where the token has no term
  double clipped[M2PO_BLOCK]; ///< 1 where the surrogate's clip holds
} m2po_terms;

/// Computes ratio, loss, slope and clipped of the tokens that have a term: valid, kept, A != 0.
void m2po_terms_compute(const m2po_inputs *inputs, m2po_terms *terms, const m2po_config *config);

/// Adds what the metrics tell of the ratios of the valid tokens to `measures`.
void m2po_measure_ratios(const m2po_inputs *inputs, const m2po_config *config,
                         m2po_measures *measures);

#endif // M2PO_TERMS_H
