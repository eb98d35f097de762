// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Counts a masked slot that holds no number.
// fails: selected_junk_has_no_influence

#include "base.h"

static int32_t add_wrongly(rft_selection *selection, const rft_batch *batch, rft_error *error)
{
  const int32_t code = add(selection, batch, error);
  rft_batch_view view;
  if (code == RFT_OK && rft_batch_view_open(batch, &view, NULL) == RFT_OK) {
    for (int64_t i = 0; i < view.count; ++i) {
      selection->valid += isnan(value_at(&view.logprob, i)) ? 1 : 0;
    }
  }
  return code;
}

SPOIL(fixture.selection_add = add_wrongly)
