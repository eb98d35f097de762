// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Rollouts that are exactly `staleness` updates old, deterministic for a seed. The first
// `staleness` updates learn from rollouts of the base policy (arXiv 2510.01161).

#ifndef TRAIN_STALE_H
#define TRAIN_STALE_H

#include "rollout.h"

// A ring of batches: the i-th of the run is in slot i % slots.
typedef struct stale_queue {
  int64_t staleness;
  int64_t slots; // staleness + 1
  rollout_sampler sampler;
  int64_t *version;   // [slots]
  uint8_t *sequences; // [slots, sequences, prompt_length + answer_length]
  float *logprob;     // [slots, sequences, answer_length]
  float *reward;      // [slots, sequences]
} stale_queue;

bool stale_init(stale_queue *self, int64_t staleness, const rollout_shape *shape,
                policy_shape policy, uint64_t seed, int64_t blocks, const rft_parallel *parallel);
void stale_free(stale_queue *self);

// Fills the queue with rollouts of the base policy.
void stale_begin(stale_queue *self, const train_policy *base);

// Samples a batch from `policy`, which has taken `update` optimizer steps, and gives the one to
// learn from now. It is valid until the next call.
rollout_batch stale_next(stale_queue *self, const train_policy *policy, int64_t update);

#endif // TRAIN_STALE_H
