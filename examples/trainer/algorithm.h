// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// From a preset's name to a policy loss ready to use: load the plugins, resolve the preset with the
// config's arguments over it, refuse what this trainer cannot give, make the instance.

#ifndef TRAIN_ALGORITHM_H
#define TRAIN_ALGORITHM_H

#include "config.h"
#include "rft/host.h"

typedef struct train_algorithm {
  rft_registry *registry;
  json_t *preset; // the resolved document
  const rft_policy_loss *loss;
  const rft_one_pass *one_pass; // of the loss's plugin, or NULL
  rft_instance *instance;
} train_algorithm;

// `log` gets what plugins, loader and host have to say, on any thread.
int32_t algorithm_open(train_algorithm *self, const train_config *config,
                       void (*log)(void *log_context, int32_t level, const char *message),
                       void *log_context, rft_error *error);
void algorithm_close(train_algorithm *self);

// The config of the policy loss, every default filled in.
const json_t *algorithm_args(const train_algorithm *self);

// Whether the preset asks for log-probabilities of a proximal policy.
bool algorithm_wants_proximal(const train_algorithm *self);

// The host as plugins see it.
const rft_host *algorithm_host(const train_algorithm *self);

// Refuses a preset document that wants what this trainer does not have, naming preset, key and
// value.
int32_t algorithm_check_preset(const char *name, const json_t *document, rft_error *error);

#endif // TRAIN_ALGORITHM_H
