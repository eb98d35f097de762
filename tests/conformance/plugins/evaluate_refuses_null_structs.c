// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes no batch for an empty one.
// fails: evaluate_refuses_null_structs

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  return batch == NULL ? RFT_OK : evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
