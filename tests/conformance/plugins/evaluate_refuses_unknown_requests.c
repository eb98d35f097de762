// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look at what it does not know of a batch.
// fails: evaluate_refuses_unknown_requests

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch known = {.struct_size = 0};
  if (batch != NULL && batch->struct_size > sizeof known) {
    known = *batch;
    known.struct_size = sizeof known;
    batch = &known;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
