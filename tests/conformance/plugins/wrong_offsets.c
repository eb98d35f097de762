// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look at cu_seqlens, for it counts tokens only.
// fails: wrong_offsets

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch changed;
  if (batch != NULL && batch->struct_size == sizeof changed && batch->logprob != NULL &&
      batch->cu_seqlens != NULL && batch->logprob->shape[0] > 0) {
    changed = *batch;
    changed.cu_seqlens = NULL;
    batch = &changed;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
