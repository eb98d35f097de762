// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Divides by the number of valid tokens even when there is none.
// fails: all_masked

#include "base.h"

// The valid tokens of a batch whose mask is a compact one of bytes; -1 where it isn't.
static int64_t count_valid(const rft_batch *batch)
{
  const rft_tensor *const mask = batch->mask;
  int64_t valid = 0;
  if (mask->dtype.bits != 8 || mask->ndim != 2 || mask->strides != NULL) {
    return -1;
  }
  for (int64_t i = 0; i < mask->shape[0] * mask->shape[1]; ++i) {
    valid += ((const unsigned char *)mask->data)[i] != 0;
  }
  return mask->shape[0] * mask->shape[1] == 0 ? -1 : valid;
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && count_valid(batch) == 0) {
    output->loss = (double)NAN;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
