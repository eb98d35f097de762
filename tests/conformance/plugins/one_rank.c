// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Wants more than one rank.
// fails: one_rank

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  return collectives != NULL && collectives->size == 1
             ? rft_fail(error, RFT_INVALID_ARGUMENT, "rft_collectives: expected several ranks")
             : finish(FINISH_ARGUMENTS);
}

SPOIL(fixture.selection_finish = finish_wrongly)
