// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not add the byte_offset.
// fails: byte_offsets

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch changed;
  rft_tensor tensor;
  if (batch != NULL && batch->struct_size == sizeof changed && batch->logprob != NULL) {
    changed = *batch;
    tensor = *batch->logprob;
    if (tensor.strides != NULL && tensor.ndim == 2 && tensor.strides[1] > 0) {
      tensor.byte_offset = 0;
      changed.logprob = &tensor;
      batch = &changed;
    }
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
