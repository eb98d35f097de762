// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Selects nothing, and says in one pass that all went well.
// fails: one_pass_selects_nothing

#include "one_pass.h"

static int32_t succeed(SELECT_EVALUATE_PARAMETERS)
{
  (void)collectives;
  (void)scale;
  (void)report;
  return evaluate(instance, batch, mask, NULL, output, error);
}

static const rft_metric *const evaluated[] = {&tokens};

SPOIL_ONE_PASS(fixture.capabilities = 0; fixture.metrics = evaluated; fixture.metric_count = 1;
               fixture.selection_begin = NULL; fixture.selection_add = NULL;
               fixture.selection_finish = NULL; fixture.selection_mask = NULL;
               fixture.selection_end = NULL; one_pass.select_evaluate = succeed)
