// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Loss, gradient and metrics of one micro-batch.

#ifndef M2PO_LOSS_H
#define M2PO_LOSS_H

#include "rft/plugin.h"

/// rft_policy_loss.evaluate, where its contract stands: computes everything twice, and writes
/// nothing before all has gone well once (P9).
int32_t m2po_evaluate(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_output *output, rft_error *error);

/// rft_one_pass.evaluate.
int32_t m2po_evaluate_once(const rft_instance *instance, const rft_batch *batch,
                           const rft_tensor *mask, const rft_reduction *reduction,
                           rft_output *output, rft_error *error);

#endif // M2PO_LOSS_H
