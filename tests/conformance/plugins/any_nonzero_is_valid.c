// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Looks at the lowest byte of an int32 mask only.
// fails: any_nonzero_is_valid

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch changed;
  rft_tensor bytes;
  int64_t strides[2];
  if (batch != NULL && batch->struct_size == sizeof changed && batch->mask != NULL &&
      batch->mask->ndim == 2 && batch->mask->dtype.code == RFT_DTYPE_INT &&
      batch->mask->dtype.bits == 32) {
    changed = *batch;
    bytes = *batch->mask;
    strides[0] = 4 * bytes.shape[1];
    strides[1] = 4;
    bytes.dtype.bits = 8;
    bytes.strides = strides;
    changed.mask = &bytes;
    batch = &changed;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
