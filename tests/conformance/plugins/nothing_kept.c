// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Divides by the number of kept tokens even when there is none.
// fails: nothing_kept

#include "base.h"

static bool keeps_some(const rft_tensor *mask)
{
  bool some = false;
  for (int64_t i = 0; i < mask->shape[0] * mask->shape[1]; ++i) {
    some = some || ((const unsigned char *)mask->data)[i] != 0;
  }
  return some;
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && mask != NULL && !keeps_some(mask)) {
    output->loss = (double)NAN;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
