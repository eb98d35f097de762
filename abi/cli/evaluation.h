// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// One optimizer batch through a policy loss, as a trainer would do it.

#ifndef RFT_CLI_EVALUATION_H
#define RFT_CLI_EVALUATION_H

#include "batch.h"
#include "group.h"
#include "rft/host.h"

typedef struct cli_evaluation {
  double loss;
  rft_reduction counts; ///< over the whole batch
  double *metrics;      ///< [metric_count], finished
  unsigned char *mask;  ///< 1: a valid token that was kept; as many as logprob has elements
  void *gradient;       ///< likewise, of gradient_dtype
  rft_dtype gradient_dtype;
  cli_traffic *traffic; ///< [size of the group]; NULL without one
} cli_evaluation;

/// Selects once over the batch, then evaluates its micro-batches; with the functions of `one_pass`
/// where it is not NULL. Each rank of `group` (or NULL)
/// has nearly as many rows, split into `micro_batches` of nearly as many, or fewer where it has
/// fewer rows. Rank 0 gets everything; on the others only `counts` is whole. Every rank gives the
/// same code. Free with cli_evaluation_free. [collective]
int32_t cli_evaluation_run(const rft_policy_loss *loss, const rft_one_pass *one_pass,
                           const rft_instance *instance, const cli_batch *batch,
                           int64_t micro_batches, const cli_group *group,
                           cli_evaluation *evaluation, rft_error *error);
void cli_evaluation_free(cli_evaluation *evaluation);

#endif // RFT_CLI_EVALUATION_H
