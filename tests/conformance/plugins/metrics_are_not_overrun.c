// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes for granted that there is room for its metrics.
// fails: metrics_are_not_overrun

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  rft_output changed;
  if (output == NULL || output->struct_size != sizeof changed || output->metrics == NULL) {
    return evaluate(EVALUATE_ARGUMENTS);
  }
  changed = *output;
  changed.metric_count = METRIC_COUNT;
  const int32_t code = evaluate(instance, batch, mask, reduction, &changed, error);
  output->loss = changed.loss;
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
