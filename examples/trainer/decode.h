// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Writes answers: the policy's digits one by one, sampled or greedy.
//
// A sequence is prompt_length + answer_length symbols. Its rows, the policy's inputs, are one for
// each answer digit.

#ifndef TRAIN_DECODE_H
#define TRAIN_DECODE_H

#include "parallel.h"
#include "policy.h"
#include "task.h"

// Shape of a policy for `task`.
policy_shape decode_policy_shape(const train_task *task, int64_t embedding, int64_t hidden);

typedef struct decode_block {
  policy_workspace workspace;
  uint8_t *rows; // [capacity, slots]
} decode_block;

typedef struct train_decoder {
  train_task task;
  int64_t capacity; // sequences of one call
  int64_t blocks;
  decode_block *block; // [blocks]
  const rft_parallel *parallel;
} train_decoder;

bool decoder_init(train_decoder *self, const train_task *task, policy_shape shape, int64_t capacity,
                  int64_t blocks, const rft_parallel *parallel);
void decoder_free(train_decoder *self);

// Completes sequences[count, prompt_length + answer_length], whose prompts are set. `generators`
// [count]: one a sequence, to sample with; NULL: greedy. `logprob` [count, answer_length]: the
// log-probabilities of the digits chosen; NULL: not wanted.
void decode(train_decoder *self, const train_policy *policy, uint8_t *sequences, int64_t count,
            train_rng *generators, float *logprob);

#endif // TRAIN_DECODE_H
