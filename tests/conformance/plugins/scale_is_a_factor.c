// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look at the scale.
// fails: scale_is_a_factor

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_reduction changed;
  if (reduction != NULL && reduction->struct_size == sizeof changed) {
    changed = *reduction;
    changed.scale = 0;
    reduction = &changed;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
