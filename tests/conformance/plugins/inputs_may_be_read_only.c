// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Writes an input, even if nothing changes.
// fails: inputs_may_be_read_only

#include "base.h"

// The number of elements, where the tensor is compact.
static int64_t compact_count(const rft_tensor *tensor)
{
  int64_t count = tensor->strides == NULL && tensor->data != NULL ? 1 : 0;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    count *= tensor->shape[i];
  }
  return count;
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && compact_count(batch->logprob) > 0) {
    volatile unsigned char *const first = batch->logprob->data;
    first[0] = first[0];
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
