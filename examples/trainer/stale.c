// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "stale.h"

#include <stdlib.h>

bool stale_init(stale_queue *self, int64_t staleness, const rollout_shape *shape,
                policy_shape policy, uint64_t seed, int64_t blocks, const rft_parallel *parallel)
{
  const int64_t slots = staleness + 1;
  const int64_t sequences = slots * rollout_sequences(shape);
  *self = (stale_queue){
      .staleness = staleness,
      .slots = slots,
      .version = calloc((size_t)slots, sizeof(int64_t)),
      .sequences = calloc((size_t)(sequences * rollout_sequence_length(shape)), 1),
      .logprob = calloc((size_t)(sequences * shape->task.answer_length), sizeof(float)),
      .reward = calloc((size_t)sequences, sizeof(float))};
  if (self->version == NULL || self->sequences == NULL || self->logprob == NULL ||
      self->reward == NULL ||
      !rollout_sampler_init(&self->sampler, shape, policy, seed, blocks, parallel)) {
    stale_free(self);
    return false;
  }
  return true;
}

void stale_free(stale_queue *self)
{
  rollout_sampler_free(&self->sampler);
  free(self->version);
  free(self->sequences);
  free(self->logprob);
  free(self->reward);
  *self = (stale_queue){0};
}

static rollout_batch batch_at(const stale_queue *self, int64_t index)
{
  const rollout_shape *const shape = &self->sampler.shape;
  const int64_t slot = index % self->slots;
  const int64_t first = slot * rollout_sequences(shape);
  return (rollout_batch){.version = self->version[slot],
                         .sequences = self->sequences + first * rollout_sequence_length(shape),
                         .logprob = self->logprob + first * shape->task.answer_length,
                         .reward = self->reward + first};
}

static void sample(stale_queue *self, const train_policy *policy, int64_t index, int64_t version)
{
  rollout_batch batch = batch_at(self, index);
  rollout_sample(&self->sampler, policy, index, version, &batch);
  self->version[index % self->slots] = version;
}

void stale_begin(stale_queue *self, const train_policy *base)
{
  for (int64_t i = 0; i < self->staleness; ++i) {
    sample(self, base, i, 0);
  }
}

rollout_batch stale_next(stale_queue *self, const train_policy *policy, int64_t update)
{
  sample(self, policy, update + self->staleness, update);
  return batch_at(self, update);
}
