// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Cannot end a selection after a micro-batch was refused.
// fails: end_at_any_point

#include "base.h"

static void end_wrongly(rft_selection *selection)
{
  if (selection != NULL && selection->state == FAILED && selection->count > 0 &&
      selection->failure == RFT_INVALID_ARGUMENT) {
    __builtin_trap();
  }
  end(selection);
}

SPOIL(fixture.selection_end = end_wrongly)
