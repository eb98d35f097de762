// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Selects from what is left when a micro-batch was refused.
// fails: finish_after_a_failed_add

#include "base.h"

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  if (collectives == NULL && selection->state == FAILED) {
    selection->state = ADDING;
  }
  return finish(FINISH_ARGUMENTS);
}

SPOIL(fixture.selection_finish = finish_wrongly)
