// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Has a large array on the stack.
// fails: small_stacks

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  volatile char work[1 << 20];
  for (size_t i = sizeof work; i > 0; i -= 1024) {
    work[i - 1] = 0;
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
