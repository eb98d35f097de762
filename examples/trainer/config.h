// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The trainer's config: a YAML or JSON file, overridden key by key, checked whole before anything
// starts, then one immutable struct.

#ifndef TRAIN_CONFIG_H
#define TRAIN_CONFIG_H

#include "rft/plugin.h"
#include "task.h"

#include <jansson.h>
#include <stdbool.h>

// One override: "trainer.updates" = "100".
typedef struct config_override {
  const char *path;
  const char *value;
  bool literal; // a string as it stands, not YAML
} config_override;

typedef struct train_config {
  json_t *document; // every section and key, defaults filled in; strings below are borrowed from it
  const char *plugins_dir;
  const char *algorithm_type;
  const json_t *policy_loss_fn_args; // an object, checked by the policy loss's own schema

  const char *task_name;
  int64_t digits;
  int64_t steps;
  int64_t held_out;
  int64_t embedding;
  int64_t hidden;

  double warm_start_target;
  int64_t warm_start_batch;
  int64_t warm_start_max_steps;
  double warm_start_learning_rate;
  const char *warm_start_file;

  int64_t updates;
  int64_t prompts;
  int64_t samples;
  int64_t micro_batches;
  double learning_rate;
  double beta1;
  double beta2;
  double weight_decay;
  double grad_clip;
  int64_t seed;
  int64_t threads;

  const char *mode;
  int64_t staleness;
  int64_t rollout_threads;
  int64_t queue;
  int64_t publish_every;

  const char *log;
  const char *checkpoint;
  int64_t checkpoint_every;
  int64_t evaluate_every;
  const char *record;
  int64_t record_update;
} train_config;

// Reads `path` and applies overrides[count] in order. A message names file, section, key, what was
// expected, what came, and the nearest known key.
int32_t config_load(const char *path, const config_override *overrides, int64_t count,
                    train_config *config, rft_error *error);
void config_free(train_config *config);

bool config_is_async(const train_config *config);
train_task config_task(const train_config *config);

#endif // TRAIN_CONFIG_H
