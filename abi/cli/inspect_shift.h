// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A mask that stands one position beside the tokens that it is for.

#ifndef RFT_CLI_INSPECT_SHIFT_H
#define RFT_CLI_INSPECT_SHIFT_H

#include "inspect_batch.h"

typedef struct inspect_shift {
  int by;               ///< 1: the mask is late, -1: early, 0: nothing speaks for a shift
  const char *evidence; ///< what speaks for it; a static string
  int64_t votes;        ///< positions, or sequences, that do
  int64_t asked;        ///< of so many
} inspect_shift;

inspect_shift inspect_shift_find(const inspect_batch *batch);

#endif // RFT_CLI_INSPECT_SHIFT_H
