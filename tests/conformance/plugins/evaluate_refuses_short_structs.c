// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does without the last field of a batch.
// fails: evaluate_refuses_short_structs

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch known = {.struct_size = 0};
  if (batch != NULL && batch->struct_size < sizeof known) {
    memcpy(&known, batch, batch->struct_size);
    known.struct_size = sizeof known;
    batch = &known;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
