// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not give gradients of float16.
// fails: every_gradient_dtype

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const bool refused = output != NULL && output->struct_size == sizeof *output &&
                       output->gradient != NULL && output->gradient->dtype.bits == 16 &&
                       output->gradient->dtype.code == RFT_DTYPE_FLOAT &&
                       batch->logprob->dtype.bits == 64;
  return refused ? rft_fail(error, RFT_INVALID_ARGUMENT, "fixture: that is not taken")
                 : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
