// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reads behind the end of the batch of version 1.0.
// fails: evaluate_reads_no_further

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK && batch->struct_size == sizeof *batch) {
    (void)*((const volatile unsigned char *)batch + sizeof *batch);
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
