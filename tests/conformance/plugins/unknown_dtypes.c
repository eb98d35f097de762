// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes every advantage for float32.
// fails: unknown_dtypes

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch changed;
  rft_tensor tensor;
  if (batch != NULL && batch->struct_size == sizeof changed && batch->advantages != NULL) {
    changed = *batch;
    tensor = *batch->advantages;
    if (tensor.dtype.code > RFT_DTYPE_BOOL) {
      tensor.dtype = (rft_dtype){RFT_DTYPE_FLOAT, 32, 1};
      changed.advantages = &tensor;
      batch = &changed;
    }
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
