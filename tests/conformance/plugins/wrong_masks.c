// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Gives no mask, and no error, for a dtype that it does not know.
// fails: wrong_masks

#include "base.h"

static int32_t mask_wrongly(const rft_selection *selection, int64_t index, const rft_tensor *mask,
                            rft_error *error)
{
  return mask != NULL && mask->dtype.bits > 8 ? RFT_OK : give_mask(selection, index, mask, error);
}

SPOIL(fixture.selection_mask = mask_wrongly)
