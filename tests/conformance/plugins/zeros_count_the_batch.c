// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Computes a bit differently when it is told the counts.
// fails: zeros_count_the_batch

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && reduction != NULL && reduction->valid_tokens > 0) {
    output->loss *= 1.0 + 0x1p-52;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
