// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Drops the first token of every micro-batch but the first.
// fails: splits_change_nothing

#include "base.h"

static int32_t add_wrongly(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  const int32_t code = add(selection, batch, error);
  const int64_t last = selection->count - 1;
  if (code == RFT_OK && last > 0 && selection->batches[last].keep[0] != 0) {
    selection->batches[last].keep[0] = 0;
    --selection->kept;
  }
  return code;
}

SPOIL(fixture.selection_add = add_wrongly)
