// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reports a selection whose mask it could not write.
// fails: one_pass_errors

#include "one_pass.h"

static int32_t report_first(SELECT_EVALUATE_PARAMETERS)
{
  const int32_t code = select_evaluate(SELECT_EVALUATE_ARGUMENTS);
  if (code != RFT_OK) {
    report->valid_tokens = 0;
  }
  return code;
}

SPOIL_ONE_PASS(one_pass.select_evaluate = report_first)
