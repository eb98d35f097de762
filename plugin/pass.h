// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One pass over a micro-batch that writes mask and gradient as if the cut were inside a bracket,
// and then settles the tokens that are inside it.

#ifndef M2PO_PASS_H
#define M2PO_PASS_H

#include "algorithm1.h"
#include "evaluation.h"

typedef struct m2po_range m2po_range;

typedef struct m2po_pass {
  m2po_evaluation evaluation;
  rft_view mask; ///< flat, as the gradient of the evaluation
  m2po_rule rule;
  bool all_tokens; ///< are constrained, not only those of the trust region
  bool exact;      ///< the sums of m are wanted
  m2po_bracket bracket;
  bool keeps_all; ///< the whole of T is expected to stay: it is below the bracket
  m2po_range *ranges;
  int64_t range_count;
  uint64_t *open; ///< a bit a position: of T, inside the bracket
  m2po_cut cut;
} m2po_pass;

/// What a pass finds. The sums are exact where that is wanted.
typedef struct m2po_found {
  int64_t constrained;
  m2po_exact sum; ///< of m over T
  m2po_kept kept;
} m2po_found;

typedef enum m2po_outcome {
  M2PO_PASSED,
  M2PO_CUT_ELSEWHERE, ///< outside the bracket
  M2PO_UNDECIDED,     ///< for sums that are not exact
  M2PO_NO_PASS        ///< something is for the general code
} m2po_outcome;

m2po_outcome m2po_pass_run(const rft_instance *instance, m2po_pass *pass, m2po_found *found);

#endif // M2PO_PASS_H
