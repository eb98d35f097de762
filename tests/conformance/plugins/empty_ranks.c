// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Leaves out the reduction on a rank that has no token.
// fails: empty_ranks

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  return finish(selection, selection->state == ADDING && selection->count == 0 ? NULL : collectives,
                report, error);
}

SPOIL(fixture.selection_finish = finish_wrongly)
