// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Says what it does on standard output.
// fails: prints_nothing no_forbidden_import

#include "base.h"

#include <stdio.h>

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  puts("evaluating");
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
