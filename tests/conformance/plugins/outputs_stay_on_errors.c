// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Clears the loss before it looks at the tensors.
// fails: outputs_stay_on_errors

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_INVALID_ARGUMENT && output != NULL && output->struct_size == sizeof *output) {
    output->loss = 0;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
