// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Where in their sequences tokens are lost.

#ifndef RFT_CLI_INSPECT_ALONG_H
#define RFT_CLI_INSPECT_ALONG_H

#include "inspect_effect.h"

/// The first to the last valid token of a stretch, counted from 1 in each sequence, over all of
/// them.
typedef struct inspect_stretch {
  int64_t first;
  int64_t last;
  int64_t valid_tokens;
  int64_t masked_tokens;
  int64_t clipped_tokens;
} inspect_stretch;

/// Stretches of one length from first to last token, at most so many.
enum { INSPECT_MOST_STRETCHES = 64 };

/// Fills `stretches` and gives their number.
int inspect_along(const inspect_batch *batch, const inspect_effect *effect,
                  inspect_stretch stretches[INSPECT_MOST_STRETCHES]);

#endif // RFT_CLI_INSPECT_ALONG_H
