// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One optimizer step, as any host of the plugin ABI takes it.

#ifndef TRAIN_LEARNER_H
#define TRAIN_LEARNER_H

#include "adamw.h"
#include "algorithm.h"
#include "group.h"
#include "rollout.h"
#include "teacher.h"

typedef struct learner_part learner_part; // a micro-batch as the policy loss sees it

typedef struct train_learner {
  const train_algorithm *algorithm;
  const train_group *group;
  rollout_shape shape; // this rank's share
  adamw_options options;
  train_adamw adamw;
  train_teacher teacher;     // its blocks are the micro-batches
  learner_part *part;        // [micro-batches]
  float *advantages;         // [sequences]
  uint8_t *mask;             // [sequences, answer_length]: every answer digit is valid
  uint8_t *keep;             // [sequences, answer_length]: what the selection keeps of them
  double *selection_metrics; // [metric_count], of the last step
  double *part_metrics;      // [micro-batches, metric_count], likewise
  double *totals;            // [LEARNER_METRICS + metric_count], likewise, over all ranks
} train_learner;

// Where in `totals`: the loss, the groups' mean rewards, then the metrics of the policy loss.
enum { LEARNER_LOSS, LEARNER_REWARDS, LEARNER_METRICS };

typedef struct learner_step {
  double loss;
  double gradient_norm; // before clipping
  double reward;        // mean over the batch
} learner_step;

int32_t learner_init(train_learner *self, const train_algorithm *algorithm,
                     const train_group *group, const rollout_shape *shape,
                     const adamw_options *options, int64_t micro_batches,
                     const train_policy *policy, rft_error *error);
void learner_free(train_learner *self);

// Improves the policy with one batch: this rank's share of it. On an error the policy is as it was,
// and all ranks give the same code. [collective]
int32_t learner_update(train_learner *self, train_policy *policy, const rollout_batch *batch,
                       learner_step *step, rft_error *error);

#endif // TRAIN_LEARNER_H
