// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "rollout.h"

#include <stdlib.h>
#include <string.h>

int64_t rollout_sequences(const rollout_shape *shape)
{
  return shape->prompts * shape->samples;
}

int64_t rollout_all_prompts(const rollout_shape *shape)
{
  return shape->before + shape->prompts + shape->after;
}

int64_t rollout_sequence_length(const rollout_shape *shape)
{
  return shape->task.prompt_length + shape->task.answer_length;
}

bool rollout_batch_init(rollout_batch *self, const rollout_shape *shape)
{
  const int64_t sequences = rollout_sequences(shape);
  *self = (rollout_batch){
      .sequences = calloc((size_t)(sequences * rollout_sequence_length(shape)), 1),
      .logprob = calloc((size_t)(sequences * shape->task.answer_length), sizeof(float)),
      .reward = calloc((size_t)sequences, sizeof(float))};
  if (self->sequences == NULL || self->logprob == NULL || self->reward == NULL) {
    rollout_batch_free(self);
    return false;
  }
  return true;
}

void rollout_batch_free(rollout_batch *self)
{
  free(self->sequences);
  free(self->logprob);
  free(self->reward);
  *self = (rollout_batch){0};
}

bool rollout_sampler_init(rollout_sampler *self, const rollout_shape *shape, policy_shape policy,
                          uint64_t seed, int64_t blocks, const rft_parallel *parallel)
{
  const int64_t sequences = rollout_sequences(shape);
  *self = (rollout_sampler){
      .shape = *shape, .seed = seed, .generators = calloc((size_t)sequences, sizeof(train_rng))};
  if (self->generators == NULL ||
      !decoder_init(&self->decoder, &shape->task, policy, sequences, blocks, parallel)) {
    rollout_sampler_free(self);
    return false;
  }
  return true;
}

void rollout_sampler_free(rollout_sampler *self)
{
  decoder_free(&self->decoder);
  free(self->generators);
  *self = (rollout_sampler){0};
}

void rollout_sample(rollout_sampler *self, const train_policy *policy, int64_t index,
                    int64_t version, rollout_batch *batch)
{
  const train_task *const task = &self->shape.task;
  const int64_t sequences = rollout_sequences(&self->shape);
  const int64_t length = rollout_sequence_length(&self->shape);
  const int64_t first = (index * rollout_all_prompts(&self->shape) + self->shape.before) *
                        self->shape.samples; // of this run's sequences, all ranks together

  train_rng prompts = rng_make(self->seed, RNG_PROMPT, index);
  for (int64_t p = 0; p < self->shape.before; ++p) {
    task_draw(task, false, &prompts, batch->sequences);
  }
  for (int64_t s = 0; s < sequences; ++s) {
    uint8_t *const prompt = batch->sequences + s * length;
    if (s % self->shape.samples == 0) {
      task_draw(task, false, &prompts, prompt);
    } else {
      memcpy(prompt, prompt - length, (size_t)task->prompt_length);
    }
    self->generators[s] = rng_make(self->seed, RNG_SAMPLE, first + s);
  }
  decode(&self->decoder, policy, batch->sequences, sequences, self->generators, batch->logprob);
  for (int64_t s = 0; s < sequences; ++s) {
    const uint8_t *const prompt = batch->sequences + s * length;
    batch->reward[s] = task_reward(task, prompt, prompt + task->prompt_length);
  }
  batch->version = version;
}
