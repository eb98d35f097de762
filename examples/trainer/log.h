// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The run's log: one JSON object a line, one line an update.

#ifndef TRAIN_LOG_H
#define TRAIN_LOG_H

#include "rft/plugin.h"

#include <stdio.h>

typedef struct train_log {
  const char *path;
  FILE *file; // NULL: nobody wants a log
} train_log;

typedef struct log_entry {
  int64_t update;    // counted from 1
  int64_t staleness; // updates between the weights that sampled the batch and those that learn
  double loss;
  double seconds; // that the update took
  double reward;
  double gradient_norm;
  double accuracy; // NaN: not measured at this update
  const rft_policy_loss *policy_loss;
  const double *metrics; // [policy_loss->metric_count]
} log_entry;

// Opens `path` (NULL: no log) with its first `keep` lines, those of the updates that a resumed run
// has done; what stands after them was written after the checkpoint, and goes.
int32_t log_open(train_log *self, const char *path, int64_t keep, rft_error *error);
void log_close(train_log *self);

// Each line is written whole.
int32_t log_write(train_log *self, const log_entry *entry, rft_error *error);

// Brings the lines so far to disk: a checkpoint counts on them.
int32_t log_sync(train_log *self, rft_error *error);

#endif // TRAIN_LOG_H
