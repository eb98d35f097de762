// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "inspect_along.h"

int inspect_along(const inspect_batch *batch, const inspect_effect *effect,
                  inspect_stretch stretches[INSPECT_MOST_STRETCHES])
{
  const int64_t length = ((batch->longest - 1) / INSPECT_MOST_STRETCHES) + 1;
  const int count = (int)((batch->longest + length - 1) / length);
  for (int i = 0; i < count; ++i) {
    const int64_t last = (i + 1) * length;
    stretches[i] = (inspect_stretch){.first = (i * length) + 1,
                                     .last = last < batch->longest ? last : batch->longest};
  }
  for (int64_t row = 0; row < batch->source->rows; ++row) {
    const int64_t end = cli_batch_positions(batch->source, row + 1);
    int64_t token = 0;
    for (int64_t i = cli_batch_positions(batch->source, row); i < end; ++i) {
      if (batch->valid[i]) {
        inspect_stretch *const stretch = &stretches[token++ / length];
        stretch->valid_tokens += 1;
        stretch->masked_tokens += effect->states[i] == INSPECT_MASKED;
        stretch->clipped_tokens += effect->states[i] == INSPECT_CLIPPED;
      }
    }
  }
  return count;
}
