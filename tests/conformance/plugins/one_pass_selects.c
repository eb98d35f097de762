// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Keeps every valid token where it selects and evaluates in one pass.
// fails: one_pass_selects

#include "one_pass.h"

static int32_t keep_all(SELECT_EVALUATE_PARAMETERS)
{
  const rft_instance generous = {.limit = INFINITY, .weight = instance->weight};
  instance = &generous;
  return select_evaluate(SELECT_EVALUATE_ARGUMENTS);
}

SPOIL_ONE_PASS(one_pass.select_evaluate = keep_all)
