// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Drops a token of every second micro-batch that it is given.
// fails: selection_repeats

#include "base.h"

static int calls;

static int32_t add_wrongly(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  const int32_t code = add(selection, batch, error);
  const int64_t last = selection->count - 1;
  if (code == RFT_OK && batch->logprob->shape[0] == 12 && ++calls % 2 == 0 &&
      selection->batches[last].keep[0] != 0) {
    selection->batches[last].keep[0] = 0;
    --selection->kept;
  }
  return code;
}

SPOIL(fixture.selection_add = add_wrongly)
