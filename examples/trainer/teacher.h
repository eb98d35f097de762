// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Teacher-forced passes over a batch of whole sequences, split into micro-batches: log-probability
// of every answer digit, and the gradient of a scalar that depends on them.

#ifndef TRAIN_TEACHER_H
#define TRAIN_TEACHER_H

#include "decode.h"

typedef struct teacher_block {
  int64_t first; // its sequences are [first, first + count)
  int64_t count;
  policy_workspace workspace;
  uint8_t *rows;   // [count, answer_length, slots]
  uint8_t *chosen; // [count, answer_length]
  float *gradient; // [parameters]
} teacher_block;

typedef struct train_teacher {
  train_task task;
  int64_t sequences;
  int64_t parameters;
  int64_t blocks;
  teacher_block *block; // [blocks]
  float *logprob;       // [sequences, answer_length]
  float *dlogprob;      // [sequences, answer_length], set between forward and backward
  float *gradient;      // [parameters]
  const rft_parallel *parallel;
} train_teacher;

bool teacher_init(train_teacher *self, const train_task *task, const train_policy *policy,
                  int64_t sequences, int64_t blocks, const rft_parallel *parallel);
void teacher_free(train_teacher *self);

// Fills `logprob` from sequences[sequences, prompt_length + answer_length].
void teacher_forward(train_teacher *self, const train_policy *policy, const uint8_t *sequences);

// Fills the blocks' gradients from `dlogprob`, and sets `gradient` to 0.
void teacher_backward(train_teacher *self, const train_policy *policy);

// Adds the blocks' gradients to `gradient`, in order, whatever thread filled them.
void teacher_add_gradients(train_teacher *self);

#endif // TRAIN_TEACHER_H
