// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a loss that depends on how often it was asked for.
// fails: bits_repeat

#include "base.h"

static int calls;

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && batch->logprob->shape[0] == 16) {
    output->loss *= 1.0 + (1e-15 * (double)++calls);
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
