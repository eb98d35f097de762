// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Multiplies by the mask where it should skip.
// fails: masked_values_have_no_influence

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
  const bool ordinary = code == RFT_OK && output->metrics != NULL && count_valid(batch) > 0 &&
                        batch->logprob->dtype.bits == 32 && batch->logprob->strides == NULL;
  const int64_t count = ordinary ? batch->mask->shape[0] * batch->mask->shape[1] : 0;
  for (int64_t i = 0; i < count; ++i) {
    output->metrics[TOKENS] += 0.0 * (double)((const float *)batch->logprob->data)[i];
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
