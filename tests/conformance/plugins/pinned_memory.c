// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Refuses the page-locked memory of a GPU driver.
// fails: pinned_memory

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const bool refused = batch != NULL && batch->struct_size == sizeof *batch &&
                       batch->logprob != NULL &&
                       batch->logprob->device.type == RFT_DEVICE_CUDA_HOST;
  return refused ? rft_fail(error, RFT_INVALID_ARGUMENT, "fixture: that is not taken")
                 : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
