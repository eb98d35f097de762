// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not know masks of int64.
// fails: every_mask_dtype

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const bool refused = batch != NULL && batch->struct_size == sizeof *batch &&
                       batch->logprob != NULL && batch->mask != NULL &&
                       batch->mask->dtype.code == RFT_DTYPE_INT && batch->mask->dtype.bits == 64;
  return refused ? rft_fail(error, RFT_INVALID_ARGUMENT, "fixture: that is not taken")
                 : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
