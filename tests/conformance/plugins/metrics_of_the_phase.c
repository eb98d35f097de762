// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Writes a metric of the selection when it evaluates.
// fails: metrics_of_the_phase

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && output->metrics != NULL && output->metric_count > KEPT_TOKENS) {
    output->metrics[KEPT_TOKENS] = 0;
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
