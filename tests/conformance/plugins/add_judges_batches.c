// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Refuses to select from batches of a newer minor version.
// fails: add_judges_batches

#include "base.h"

static int32_t add_wrongly(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  return batch != NULL && batch->struct_size > sizeof *batch
             ? rft_fail(error, RFT_UNIMPLEMENTED, "rft_batch: expected another size")
             : add(selection, batch, error);
}

SPOIL(fixture.selection_add = add_wrongly)
