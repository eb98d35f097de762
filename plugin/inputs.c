// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "inputs.h"

#include <math.h>

m2po_pair m2po_pair_of(const rft_view *policy, const char *policy_name, const rft_view *reference,
                       const char *reference_name)
{
  const bool wide =
      policy->element == RFT_ELEMENT_FLOAT64 || reference->element == RFT_ELEMENT_FLOAT64;
  return (m2po_pair){policy, policy_name, reference, reference_name, wide};
}

// The loops below have no branch inside, so that they become vector instructions.

static void compute_log_ratios(m2po_inputs *inputs, bool wide)
{
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double d = m2po_log_ratio(inputs->policy[i], inputs->reference[i], wide);
    inputs->log_ratio[i] = inputs->mask[i] != 0 ? d : 0.0;
  }
}

void m2po_inputs_load(const rft_batch_view *batch, const m2po_pair *pair, int64_t start,
                      int64_t count, m2po_inputs *inputs)
{
  rft_view_load(pair->policy, start, count, inputs->policy);
  rft_view_load(pair->reference, start, count, inputs->reference);
  rft_view_load(&batch->mask, start, count, inputs->mask);
  rft_batch_view_load_advantages(batch, start, count, inputs->advantages);
  for (int64_t i = count; i < M2PO_BLOCK; ++i) {
    inputs->policy[i] = 0.0;
    inputs->reference[i] = 0.0;
    inputs->advantages[i] = 0.0;
    inputs->mask[i] = 0.0;
  }
  compute_log_ratios(inputs, pair->wide);
}

// Counts positions that m2po_inputs_check has something against.
static double count_unusable(const m2po_inputs *inputs, bool float_mask)
{
  double unusable[M2PO_BLOCK];
  const double any_mask = float_mask ? 1.0 : 0.0;
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    // x - x is 0 for finite x only, and NaN is unequal to 0.
    const double nothing = (inputs->policy[i] - inputs->policy[i]) +
                           (inputs->reference[i] - inputs->reference[i]) +
                           (inputs->advantages[i] - inputs->advantages[i]);
    const double no_mask = inputs->mask[i] != 1 ? any_mask : 0.0;
    const double wrong = nothing != 0 ? 1.0 : no_mask;
    unusable[i] = inputs->mask[i] != 0 ? wrong : 0.0;
  }
  return m2po_sum(unusable);
}

static m2po_fault first_fault(const m2po_pair *pair, const m2po_inputs *inputs, bool float_mask,
                              int64_t i)
{
  const double mask = inputs->mask[i];
  if (float_mask && mask != 0 && mask != 1) {
    return (m2po_fault){.kind = M2PO_NOT_A_MASK, .tensor = "mask", .value = mask};
  }
  const struct {
    const char *tensor;
    double value;
  } read[] = {{pair->policy_name, inputs->policy[i]},
              {pair->reference_name, inputs->reference[i]},
              {"advantages", inputs->advantages[i]}};
  for (int t = 0; mask != 0 && t < 3; ++t) {
    if (!isfinite(read[t].value)) {
      return (m2po_fault){
          .kind = M2PO_NOT_FINITE, .tensor = read[t].tensor, .value = read[t].value};
    }
  }
  return (m2po_fault){.kind = M2PO_NO_FAULT};
}

bool m2po_inputs_check(const rft_batch_view *batch, const m2po_pair *pair, int64_t start,
                       const m2po_inputs *inputs, m2po_fault *fault)
{
  const bool float_mask = rft_element_is_float(batch->mask.element);
  if (count_unusable(inputs, float_mask) == 0) {
    return true;
  }
  int64_t i = 0;
  do {
    *fault = first_fault(pair, inputs, float_mask, i);
    ++i;
  } while (fault->kind == M2PO_NO_FAULT);
  fault->index = start + i - 1;
  fault->columns = batch->columns;
  return false;
}
