// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Looks at the micro-batch again when the selection finishes.
// fails: batches_are_borrowed

#include "base.h"

static const volatile unsigned char *borrowed;

static int32_t add_wrongly(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  const int32_t code = add(selection, batch, error);
  borrowed = code == RFT_OK ? batch->logprob->data : NULL;
  return code;
}

static int32_t finish_wrongly(FINISH_PARAMETERS)
{
  if (borrowed != NULL) {
    (void)*borrowed;
  }
  return finish(FINISH_ARGUMENTS);
}

SPOIL(fixture.selection_add = add_wrongly; fixture.selection_finish = finish_wrongly)
