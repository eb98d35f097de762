// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A block of a micro-batch's values, as the selection and the loss read them.

#ifndef M2PO_INPUTS_H
#define M2PO_INPUTS_H

#include "fault.h"
#include "lanes.h"
#include "support/batch_view.h"

/// The two policies that a log-ratio compares.
typedef struct m2po_pair {
  const rft_view *policy;
  const char *policy_name;
  const rft_view *reference;
  const char *reference_name;
  bool wide; ///< d is computed in float64, as it is where a policy is; else in float32
} m2po_pair;

/// Numerator and denominator of a ratio, by tensor names of rft_batch.
m2po_pair m2po_pair_of(const rft_view *policy, const char *policy_name, const rft_view *reference,
                       const char *reference_name);

/// d: one subtraction, rounded once. Float32 values are exact in the doubles that carry them.
static inline double m2po_log_ratio(double policy, double reference, bool wide)
{
  return wide ? policy - reference : (double)((float)policy - (float)reference);
}

/// A block is always whole: positions past the batch's end have mask 0.
typedef struct m2po_inputs {
  double policy[M2PO_BLOCK];
  double reference[M2PO_BLOCK];
  double advantages[M2PO_BLOCK];
  double mask[M2PO_BLOCK];      ///< valid where it is not 0
  double log_ratio[M2PO_BLOCK]; ///< d; 0 where not valid
} m2po_inputs;

/// Reads positions [start, start + count), count <= M2PO_BLOCK.
void m2po_inputs_load(const rft_batch_view *batch, const m2po_pair *pair, int64_t start,
                      int64_t count, m2po_inputs *inputs);

/// Is the mask a mask, and every value at a valid position finite? If not, *fault is the first that
/// isn't. What is loaded starts at position `start`.
bool m2po_inputs_check(const rft_batch_view *batch, const m2po_pair *pair, int64_t start,
                       const m2po_inputs *inputs, m2po_fault *fault);

#endif // M2PO_INPUTS_H
