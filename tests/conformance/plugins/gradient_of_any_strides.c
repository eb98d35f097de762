// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes every gradient for a compact one.
// fails: gradient_of_any_strides

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_tensor tensor;
  rft_output changed;
  if (output == NULL || output->struct_size != sizeof changed || output->gradient == NULL) {
    return evaluate(EVALUATE_ARGUMENTS);
  }
  tensor = *output->gradient;
  tensor.strides = NULL;
  changed = *output;
  changed.gradient = &tensor;
  const int32_t code = evaluate(instance, batch, mask, reduction, &changed, error);
  output->loss = changed.loss;
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
