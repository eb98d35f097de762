// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Gives a mean where its descriptor says a sum.
// fails: metrics_combine

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && output->metrics != NULL && batch->logprob->ndim == 2 &&
      batch->logprob->shape[0] > 0) {
    output->metrics[TOKENS] /= (double)batch->logprob->shape[0];
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
