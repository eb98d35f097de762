// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "held_out.h"

#include <stdlib.h>

bool held_out_init(train_held_out *self, const train_task *task, policy_shape shape, uint64_t seed,
                   int64_t problems, int64_t blocks, const rft_parallel *parallel)
{
  const int64_t length = task->prompt_length + task->answer_length;
  *self =
      (train_held_out){.problems = problems, .sequences = calloc((size_t)(problems * length), 1)};
  if (self->sequences == NULL ||
      !decoder_init(&self->decoder, task, shape, problems, blocks, parallel)) {
    held_out_free(self);
    return false;
  }
  train_rng generator = rng_make(seed, RNG_HELD_OUT, 0);
  for (int64_t i = 0; i < problems; ++i) {
    task_draw(task, true, &generator, self->sequences + i * length);
  }
  return true;
}

void held_out_free(train_held_out *self)
{
  free(self->sequences);
  decoder_free(&self->decoder);
  *self = (train_held_out){0};
}

double held_out_accuracy(train_held_out *self, const train_policy *policy)
{
  const train_task *const task = &self->decoder.task;
  const int64_t length = task->prompt_length + task->answer_length;
  int64_t right = 0;

  decode(&self->decoder, policy, self->sequences, self->problems, NULL, NULL);
  for (int64_t i = 0; i < self->problems; ++i) {
    const uint8_t *const sequence = self->sequences + i * length;
    right += task_reward(task, sequence, sequence + task->prompt_length) > 0.0F;
  }
  return (double)right / (double)self->problems;
}
