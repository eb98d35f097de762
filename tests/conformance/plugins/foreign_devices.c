// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes for granted that the mask is in its memory.
// fails: foreign_devices

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_batch changed;
  rft_tensor tensor;
  if (batch != NULL && batch->struct_size == sizeof changed && batch->mask != NULL) {
    changed = *batch;
    tensor = *batch->mask;
    if (true) {
      tensor.device.type = RFT_DEVICE_CPU;
      changed.mask = &tensor;
      batch = &changed;
    }
  }
  return evaluate(EVALUATE_ARGUMENTS);
}

SPOIL(fixture.evaluate = evaluate_wrongly)
