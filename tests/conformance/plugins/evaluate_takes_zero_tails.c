// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Refuses structs of a newer minor version even where they ask for nothing.
// fails: evaluate_takes_zero_tails

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  return batch != NULL && batch->struct_size > sizeof *batch
             ? rft_fail(error, RFT_UNIMPLEMENTED, "rft_batch: expected another size")
             : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
