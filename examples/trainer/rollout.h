// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Rollouts: batches of prompts x samples, answered by the policy and rewarded.

#ifndef TRAIN_ROLLOUT_H
#define TRAIN_ROLLOUT_H

#include "decode.h"

typedef struct rollout_shape {
  train_task task;
  int64_t prompts; // problems of a batch
  int64_t samples; // answers to each problem
  int64_t before;  // problems of the same batch that lower ranks of the group have
  int64_t after;   // and higher ones
} rollout_shape;

// One batch; sequence s answers prompt s / samples. Memory is the owner's.
typedef struct rollout_batch {
  int64_t version;    // optimizer steps taken by the weights that sampled it
  uint8_t *sequences; // [sequences, prompt_length + answer_length]
  float *logprob;     // [sequences, answer_length], under the sampling weights
  float *reward;      // [sequences]
} rollout_batch;

int64_t rollout_sequences(const rollout_shape *shape);

// Problems of the whole group's batch.
int64_t rollout_all_prompts(const rollout_shape *shape);
int64_t rollout_sequence_length(const rollout_shape *shape);

bool rollout_batch_init(rollout_batch *self, const rollout_shape *shape);
void rollout_batch_free(rollout_batch *self);

typedef struct rollout_sampler {
  rollout_shape shape;
  uint64_t seed;
  train_decoder decoder;
  train_rng *generators; // [sequences]
} rollout_sampler;

bool rollout_sampler_init(rollout_sampler *self, const rollout_shape *shape, policy_shape policy,
                          uint64_t seed, int64_t blocks, const rft_parallel *parallel);
void rollout_sampler_free(rollout_sampler *self);

// Fills `batch`, the index-th of the run, with answers of `policy`, whose version is `version`.
void rollout_sample(rollout_sampler *self, const train_policy *policy, int64_t index,
                    int64_t version, rollout_batch *batch);

#endif // TRAIN_ROLLOUT_H
