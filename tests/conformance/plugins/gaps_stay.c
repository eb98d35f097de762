// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Writes three elements for one when there is room between them.
// fails: gaps_stay

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  const rft_tensor *const gradient = output == NULL ? NULL : output->gradient;
  if (code == RFT_OK && gradient != NULL && gradient->strides != NULL && gradient->ndim == 2 &&
      gradient->strides[1] == 3) {
    memset((float *)gradient->data + 1, 0, 2 * sizeof(float));
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
