// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Writes the error without looking whether there is one.
// fails: error_may_be_null

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code != RFT_OK) {
    *(volatile int32_t *)&error->code = code;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
