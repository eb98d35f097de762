// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Looks at the mask of kept tokens only to see whether any is left.
// fails: dropped_tokens_are_left_out

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
  const bool some = mask != NULL && keeps_some(mask);
  return evaluate(instance, batch, some ? NULL : mask, reduction, output, error);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
