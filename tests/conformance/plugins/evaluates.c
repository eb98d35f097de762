// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a loss that is no number.
// fails: evaluates

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK) {
    output->loss = (double)NAN;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
