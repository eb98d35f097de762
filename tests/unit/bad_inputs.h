// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Every way that a batch can be wrong, one at a time, and what the message must name.

#ifndef TEST_BAD_INPUTS_H
#define TEST_BAD_INPUTS_H

#include "batches.h"

/// A good [2,3] batch of float32 with a proximal policy, and a good packed one of 6 positions. The
/// batch and its tensors are writable.
rft_batch *good_batch(void);
rft_batch *good_packed_batch(void);

typedef struct bad_input {
  const char *name;
  bool packed;                     ///< spoils the packed batch
  void (*spoil)(rft_batch *batch); ///< makes the batch wrong
  int32_t code;                    ///< RFT_*
  const char *parts[3];            ///< of the message, which is compared without spaces
} bad_input;

extern const bad_input bad_inputs[];
extern const int bad_input_count;

#endif // TEST_BAD_INPUTS_H
