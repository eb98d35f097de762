// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wants a gradient or metrics to be asked for.
// fails: outputs_are_optional

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const bool refused = output != NULL && output->struct_size == sizeof *output &&
                       output->gradient == NULL && output->metrics == NULL;
  return refused ? rft_fail(error, RFT_INVALID_ARGUMENT, "fixture: that is not taken")
                 : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
