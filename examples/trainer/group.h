// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The processes that train one policy together, each on its share of the prompts of every batch.
// Each has the whole policy and takes the same optimizer steps.
//
// Sums go from rank to rank in token order: each rank takes what the ranks before it have added up,
// adds its own micro-batches one by one, and gives it on. The additions are those of one process,
// so where the micro-batches are the same, too, any number of ranks ends with the same bits.

#ifndef TRAIN_GROUP_H
#define TRAIN_GROUP_H

#include "rft/plugin.h"

#include <stdbool.h>

typedef struct train_group train_group;
typedef struct train_selected train_selected;

struct train_group {
  int64_t rank;
  int64_t size;
  const rft_collectives *collectives; // for selection_finish; NULL: this process alone

  // RFT_OK where every rank says so; else code and error of one that failed, on all. [collective]
  int32_t (*agree)(const train_group *group, int32_t code, rft_error *error);

  // Rank 0's `bytes` bytes for all. [collective]
  int32_t (*share)(const train_group *group, void *data, int64_t bytes, rft_error *error);

  // A running sum: what the rank before gave; rank 0 keeps what it has. Then the own, given to the
  // next rank; when the last has given, all have its. Both [collective], always as a pair.
  int32_t (*take)(const train_group *group, void *data, int64_t bytes, rft_error *error);
  int32_t (*give)(const train_group *group, void *data, int64_t bytes, rft_error *error);

  // Looks at each selection of the group; NULL: nobody does. [collective]
  int32_t (*check)(const train_group *group, const train_selected *selected, rft_error *error);
};

// A rank's part of an optimizer batch and what the selection said of it.
struct train_selected {
  const rft_policy_loss *loss;
  const rft_instance *instance;
  int64_t sequences;
  int64_t tokens;           // of each sequence
  const float *logprob;     // [sequences, tokens]
  const float *old_logprob; // likewise
  bool is_proximal;         // `logprob` is that of the proximal policy, too
  const float *advantages;  // [sequences]
  const uint8_t *keep;      // [sequences, tokens]
  const rft_reduction *counts;
  const double *metrics; // [metric_count], those of selection_finish
};

// This process alone.
extern const train_group group_alone;

#endif // TRAIN_GROUP_H
