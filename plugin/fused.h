// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Selection, loss and gradient of an optimizer batch that is one micro-batch: one pass over memory
// where a sample tells well enough where the cut will be, three where it doesn't.

#ifndef M2PO_FUSED_H
#define M2PO_FUSED_H

#include "rft/plugin.h"

/// rft_one_pass.select_evaluate, where its contract stands.
int32_t m2po_select_evaluate(const rft_instance *instance, const rft_batch *batch,
                             const rft_collectives *collectives, double scale,
                             const rft_tensor *mask, rft_selection_report *report,
                             rft_output *output, rft_error *error);

#endif // M2PO_FUSED_H
