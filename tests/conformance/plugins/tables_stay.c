// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Counts its calls in a table.
// fails: tables_stay

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  ++tokens.reserved;
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
