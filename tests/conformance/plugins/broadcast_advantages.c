// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wants an advantage for each token.
// fails: broadcast_advantages

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const bool refused = batch != NULL && batch->struct_size == sizeof *batch &&
                       batch->logprob != NULL && batch->advantages != NULL &&
                       !rft_same_shape(batch->advantages, batch->logprob);
  return refused ? rft_fail(error, RFT_INVALID_ARGUMENT, "fixture: that is not taken")
                 : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
