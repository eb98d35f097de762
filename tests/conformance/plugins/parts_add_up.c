// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Divides by the tokens of the micro-batch, whatever it is told.
// fails: parts_add_up

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_reduction changed;
  if (reduction != NULL && reduction->struct_size == sizeof changed) {
    changed = *reduction;
    changed.valid_tokens = 0;
    reduction = &changed;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
