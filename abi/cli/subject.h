// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// What is evaluated: a policy loss and its config.

#ifndef RFT_CLI_SUBJECT_H
#define RFT_CLI_SUBJECT_H

#include "batch.h"
#include "rft/host.h"

#include <stdbool.h>

typedef struct cli_subject {
  const rft_policy_loss *loss;
  const rft_one_pass *one_pass; ///< of the loss's plugin, or NULL
  char *config;                 ///< JSON text, complete
  rft_instance *instance;
  bool never_proximal; ///< its preset says that rollouts have no proximal log-probs
} cli_subject;

/// Makes an instance of the loss that `loss` or `preset` names; with neither, of the only one there
/// is. `config`: JSON text, or "@FILE"; NULL for none. Close it whatever comes back.
int32_t cli_subject_open(const rft_registry *registry, const char *loss, const char *preset,
                         const char *config, cli_subject *subject, rft_error *error);
void cli_subject_close(cli_subject *subject);

/// The batch as a host that follows the subject's preset would give it.
cli_batch cli_subject_batch(const cli_subject *subject, const cli_batch *batch);

#endif // RFT_CLI_SUBJECT_H
