// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Writes an element behind the end of the gradient.
// fails: gradient_is_not_overrun

#include "base.h"

// The number of elements, where the tensor is compact.
static int64_t compact_count(const rft_tensor *tensor)
{
  int64_t count = tensor->strides == NULL && tensor->data != NULL ? 1 : 0;
  for (int32_t i = 0; i < tensor->ndim; ++i) {
    count *= tensor->shape[i];
  }
  return count;
}

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  const rft_tensor *const gradient = output == NULL ? NULL : output->gradient;
  const int64_t count = code == RFT_OK && gradient != NULL ? compact_count(gradient) : 0;
  if (count > 0) {
    volatile unsigned char *const behind =
        (unsigned char *)gradient->data + (count * gradient->dtype.bits / 8);
    behind[0] = behind[0];
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
