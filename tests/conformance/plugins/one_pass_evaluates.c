// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Evaluates in float32 where it may do so in one pass.
// fails: one_pass_evaluates

#include "one_pass.h"

static int32_t evaluate_narrowly(EVALUATE_PARAMETERS)
{
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  if (code == RFT_OK) {
    output->loss = (double)(float)output->loss;
  }
  return code;
}

SPOIL_ONE_PASS(one_pass.evaluate = evaluate_narrowly)
