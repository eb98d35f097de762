// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Runs and base policies in safetensors files, written whole or not at all.
//
// Each file carries an identity: the part of the config that its numbers depend on. A file of
// another identity is refused by the first key that differs.

#ifndef TRAIN_CHECKPOINT_H
#define TRAIN_CHECKPOINT_H

#include "adamw.h"
#include "config.h"
#include "policy.h"
#include "stale.h"

// Everything that an interrupted run needs besides its config. Random numbers depend on the seed
// and on counters alone, so the update is all their state.
typedef struct checkpoint_state {
  int64_t update; // optimizer steps taken
  train_policy *policy;
  train_adamw *adamw;
  stale_queue *queue; // NULL in mode async
} checkpoint_state;

// The identity of a run: config and resolved preset without what changes no number (paths, threads)
// or only the run's length. NULL where there is no memory.
json_t *checkpoint_run_identity(const train_config *config, const json_t *preset);

// The identity of a base policy: what the warm start depends on.
json_t *checkpoint_base_identity(const train_config *config);

int32_t checkpoint_save(const char *path, const checkpoint_state *state, const json_t *identity,
                        rft_error *error);

// Fills the state's arrays, whose sizes the config has set. On an error some may be overwritten.
int32_t checkpoint_load(const char *path, const json_t *identity, checkpoint_state *state,
                        rft_error *error);

int32_t checkpoint_save_base(const char *path, const train_policy *policy, const json_t *identity,
                             rft_error *error);
int32_t checkpoint_load_base(const char *path, const json_t *identity, train_policy *policy,
                             rft_error *error);

#endif // TRAIN_CHECKPOINT_H
