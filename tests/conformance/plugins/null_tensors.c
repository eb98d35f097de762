// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes a mask that is missing for one of ones.
// fails: null_tensors

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch changed;
  rft_tensor ones;
  static unsigned char bytes[24] = {1};
  if (batch != NULL && batch->struct_size == sizeof changed && batch->logprob != NULL &&
      batch->mask == NULL) {
    changed = *batch;
    ones = *batch->logprob;
    ones.data = bytes;
    ones.dtype = (rft_dtype){RFT_DTYPE_BOOL, 8, 1};
    changed.mask = &ones;
    batch = &changed;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
