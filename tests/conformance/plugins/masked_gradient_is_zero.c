// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Gives masked tokens a small gradient.
// fails: masked_gradient_is_zero dropped_tokens_are_left_out

#include "base.h"

static int32_t evaluate_wrongly(EVALUATE_PARAMETERS)
{
  const double small = 1e-14;
  const int32_t code = evaluate(EVALUATE_ARGUMENTS);
  rft_batch_view view;
  if (code != RFT_OK || mask != NULL || output->gradient == NULL || output->loss == 0 ||
      rft_batch_view_open(batch, &view, NULL) != RFT_OK) {
    return code;
  }
  const rft_view gradient = rft_view_of(output->gradient);
  for (int64_t i = 0; i < view.count; ++i) {
    if (value_at(&view.mask, i) == 0) {
      rft_view_store(&gradient, i, 1, &small);
    }
  }
  return code;
}

SPOIL(fixture.evaluate = evaluate_wrongly)
