// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Says nothing about some errors.
// fails: messages_are_complete

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_INVALID_ARGUMENT && error != NULL) {
    error->message[0] = '\0';
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
