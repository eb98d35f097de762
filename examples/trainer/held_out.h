// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Accuracy on a fixed set of problems that training never draws, decoded greedily.

#ifndef TRAIN_HELD_OUT_H
#define TRAIN_HELD_OUT_H

#include "decode.h"

typedef struct train_held_out {
  int64_t problems;
  uint8_t *sequences; // [problems, prompt_length + answer_length]
  train_decoder decoder;
} train_held_out;

bool held_out_init(train_held_out *self, const train_task *task, policy_shape shape, uint64_t seed,
                   int64_t problems, int64_t blocks, const rft_parallel *parallel);
void held_out_free(train_held_out *self);

// The share of problems answered right.
double held_out_accuracy(train_held_out *self, const train_policy *policy);

#endif // TRAIN_HELD_OUT_H
