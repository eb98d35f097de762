// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes every logprob for a compact one.
// fails: inputs_of_any_strides

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch changed;
  rft_tensor tensor;
  if (batch != NULL && batch->struct_size == sizeof changed && batch->logprob != NULL) {
    changed = *batch;
    tensor = *batch->logprob;
    if (tensor.strides != NULL && tensor.ndim == 2) {
      tensor.strides = NULL;
      changed.logprob = &tensor;
      batch = &changed;
    }
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
