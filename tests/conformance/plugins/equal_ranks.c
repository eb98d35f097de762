// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Selects on each rank alone.
// fails: equal_ranks

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  (void)collectives;
  return finish(selection, NULL, report, error);
}

SPOIL(fixture.selection_finish = finish_wrongly)
