// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reduces a value for each token of the group.
// fails: traffic_does_not_grow

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  rft_selection_report known = {.struct_size = 0};
  if (collectives == NULL || report == NULL) {
    return finish(FINISH_ARGUMENTS);
  }
  known = *report;
  int32_t code = finish(selection, collectives, &known, error);
  uint64_t *const zeros =
      code == RFT_OK ? calloc((size_t)known.valid_tokens + 1, sizeof *zeros) : NULL;
  if (zeros != NULL) {
    code = collectives->all_reduce_sum(collectives, zeros, known.valid_tokens + 1, error);
  }
  free(zeros);
  if (code == RFT_OK) {
    *report = known;
  }
  return code;
}

SPOIL(fixture.selection_finish = finish_wrongly)
