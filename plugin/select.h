// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The selection of one optimizer batch: micro-batches in, one mask a micro-batch out.
//
// The five functions are those of rft_policy_loss, where their contract stands. Between them a
// selection remembers two bits a position (valid, candidate) and m of each candidate, and nothing
// of the tensors.

#ifndef M2PO_SELECT_H
#define M2PO_SELECT_H

#include "algorithm1.h"
#include "support/view.h"

int32_t m2po_selection_begin(const rft_instance *instance, rft_selection **selection,
                             rft_error *error);
int32_t m2po_selection_add(rft_selection *selection, const rft_batch *batch, rft_error *error);
int32_t m2po_selection_finish(rft_selection *selection, const rft_collectives *collectives,
                              rft_selection_report *report, rft_error *error);
int32_t m2po_selection_mask(const rft_selection *selection, int64_t batch_index,
                            const rft_tensor *mask, rft_error *error);
void m2po_selection_end(rft_selection *selection);

// What select_evaluate shares with them.

/// Over the whole optimizer batch.
typedef struct m2po_counts {
  int64_t valid;     ///< tokens
  int64_t sequences; ///< with at least one valid token
} m2po_counts;

/// Makes a selection one that has failed, as an add that fails does.
void m2po_selection_fail(rft_selection *selection, const rft_error *failure);

/// The part in the reductions of a rank that can't even begin a selection, but has others wait for
/// it. `collectives`: NULL where there are none.
void m2po_selection_abstain(const rft_collectives *collectives);

/// Checks the caller's report.
int32_t m2po_selection_check_report(const rft_selection_report *report, rft_error *error);

/// Fills it in. `sum`: of m over T, which has `constrained` tokens; `kept`: what is left of T.
void m2po_selection_fill_report(const m2po_counts *counts, int64_t constrained,
                                const m2po_exact *sum, const m2po_kept *kept,
                                rft_selection_report *report);

/// Checks a mask to be written, and gives its view.
int32_t m2po_selection_open_mask(const rft_tensor *mask, const rft_tensor *logprob, rft_view *view,
                                 rft_error *error);

#endif // M2PO_SELECT_H
