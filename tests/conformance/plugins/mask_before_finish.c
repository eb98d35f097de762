// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes every token for kept as long as nothing is selected.
// fails: mask_before_finish

#include "base.h"

static int32_t mask_wrongly(const rft_selection *selection, int64_t index, const rft_tensor *mask,
                            rft_error *error)
{
  return selection->state == ADDING ? RFT_OK : give_mask(selection, index, mask, error);
}

SPOIL(fixture.selection_mask = mask_wrongly)
