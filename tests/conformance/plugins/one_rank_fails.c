// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Returns at once on a rank that has failed.
// fails: one_rank_fails

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  return selection->state == FAILED
             ? rft_fail(error, RFT_FAILED_PRECONDITION, "selection_finish: an add has failed")
             : finish(FINISH_ARGUMENTS);
}

SPOIL(fixture.selection_finish = finish_wrongly)
