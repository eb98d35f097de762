// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Does not look whether the loss has overflowed.
// fails: extreme_values

#include "base.h"

static bool says(const rft_error *error, const char *text)
{
  return error != NULL && error->struct_size == sizeof *error &&
         strstr(error->message, text) != NULL;
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OUT_OF_RANGE && says(error, "overflow")) {
    output->loss = (double)INFINITY;
    return RFT_OK;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
