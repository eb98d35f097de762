// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One update's batch in a file, as `rft evaluate` reads it: logprob, old_logprob, advantages, mask.

#ifndef TRAIN_RECORD_H
#define TRAIN_RECORD_H

#include "learner.h"

// After learner_update on `batch`: what the policy loss saw. `update` counts from 1.
int32_t record_write(const char *path, const train_learner *learner, const rollout_batch *batch,
                     int64_t update, rft_error *error);

#endif // TRAIN_RECORD_H
