// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wants data even where there is no token.
// fails: empty_without_data

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const bool refused = batch != NULL && batch->struct_size == sizeof *batch &&
                       batch->logprob != NULL && batch->logprob->ndim == 2 &&
                       batch->logprob->shape[0] == 0 && batch->logprob->data == NULL;
  return refused ? rft_fail(error, RFT_INVALID_ARGUMENT, "fixture: that is not taken")
                 : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
