// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Rollout threads beside the learner. They sample from the weights published last and put batches
// into a bounded queue; how stale a batch is when it is used comes from the timing, and is
// measured.

#ifndef TRAIN_ASYNC_H
#define TRAIN_ASYNC_H

#include "rollout.h"

typedef struct async_rollouts async_rollouts;

typedef struct async_options {
  int64_t threads;
  int64_t queue; // batches being sampled, waiting, or learnt from
  int64_t first; // index of the first batch
  int64_t version;
  uint64_t seed;
} async_options;

// Starts the threads with `policy` as the weights of options->version.
int32_t async_start(async_rollouts **self, const async_options *options, const rollout_shape *shape,
                    const train_policy *policy, rft_error *error);

// Stops the threads; NULL is ignored.
void async_stop(async_rollouts *self);

// Waits for the next batch. It is valid until the next call.
const rollout_batch *async_next(async_rollouts *self);

// Gives the threads new weights; batches under way keep the old ones.
void async_publish(async_rollouts *self, const train_policy *policy, int64_t version);

#endif // TRAIN_ASYNC_H
