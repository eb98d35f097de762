// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A whole run: base policy, rollouts, optimizer steps, log, checkpoints.

#ifndef TRAIN_TRAIN_H
#define TRAIN_TRAIN_H

#include "config.h"
#include "group.h"
#include "progress.h"

#include <signal.h>

typedef struct train_result {
  int64_t update;   // optimizer steps taken, those before a resume too
  double accuracy;  // of the policy at the end
  double seconds;   // of this process, warm start and evaluation too
  double staleness; // mean over the updates of this process
} train_result;

// Trains to the end or until *stop is set, which is RFT_CANCELLED and saves the run where the
// config names a checkpoint. `resume`: go on from that checkpoint. Rank 0 of the group reads and
// writes the files and measures accuracy; all ranks give the same code. [collective]
int32_t train(const train_config *config, bool resume, const train_group *group,
              train_progress *progress, const volatile sig_atomic_t *stop, train_result *result,
              rft_error *error);

#endif // TRAIN_TRAIN_H
