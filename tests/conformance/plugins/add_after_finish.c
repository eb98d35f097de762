// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Says nothing when a micro-batch comes too late.
// fails: add_after_finish

#include "base.h"

static int32_t add_wrongly(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  return selection->state == FINISHED ? RFT_OK : add(selection, batch, error);
}

SPOIL(fixture.selection_add = add_wrongly)
