// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Takes every mask for a compact one.
// fails: masks_of_any_layout

#include "base.h"

static int32_t mask_wrongly(const rft_selection *selection, int64_t index, const rft_tensor *mask,
                            rft_error *error)
{
  rft_tensor compact;
  if (mask != NULL) {
    compact = *mask;
    compact.strides = NULL;
    mask = &compact;
  }
  return give_mask(selection, index, mask, error);
}

SPOIL(fixture.selection_mask = mask_wrongly)
