// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reads an element behind the end of an input.
// fails: inputs_are_not_overrun

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
  const int64_t count = code == RFT_OK ? compact_count(batch->logprob) : 0;
  if (count > 0) {
    (void)((const volatile unsigned char *)
               batch->logprob->data)[count * batch->logprob->dtype.bits / 8];
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
