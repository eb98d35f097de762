// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Leaves a part of the loss behind when a value is wrong.
// fails: outputs_stay_on_late_errors

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OUT_OF_RANGE) {
    output->loss = 0;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
