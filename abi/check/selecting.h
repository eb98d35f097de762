// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A whole selection in one call, on one rank or on many.

#ifndef RFT_CHECK_SELECTING_H
#define RFT_CHECK_SELECTING_H

#include "batches.h"

/// What a selection gave, or the first call that failed.
typedef struct check_selected {
  int32_t code;
  const char *function; ///< that failed
  rft_error error;
  rft_selection_report report; ///< its counts are -1 where they weren't written
  double *metrics;             ///< [metric_count]
  int64_t count;
  double *mask; ///< [count], of all batches, row-major
} check_selected;

check_selected check_select(const check_subject *subject, const rft_instance *instance,
                            rft_batch *const *batches, int count,
                            const rft_collectives *collectives);

/// Likewise, and ends the check when a call fails.
check_selected check_select_ok(const char *what, const check_subject *subject,
                               const rft_instance *instance, rft_batch *const *batches, int count,
                               const rft_collectives *collectives);

/// A report to be filled, with `metrics` of the loss's metric_count.
rft_selection_report check_report(const check_subject *subject, double *metrics);

rft_selection *check_begin(const check_subject *subject, const rft_instance *instance);
void check_add(const check_subject *subject, rft_selection *selection, const rft_batch *batch);
void check_finish(const check_subject *subject, rft_selection *selection);

/// A mask of the shape of the batch's logprob, to be filled.
rft_tensor *check_mask_like(const rft_batch *batch, rft_dtype dtype, const check_layout *layout);

/// What a report says about a reduction.
rft_reduction check_reduction_of(const rft_selection_report *report);

/// Values with log-ratios that spread, so that a selection has reason to drop some tokens.
check_values check_values_spread(rng *r, int64_t rows, int64_t columns);

/// Cuts values into `parts` micro-batches of whole rows.
rft_batch **check_split(const check_values *values, int parts, const check_form *form);

// ------------------------------------------------------------------------------------------- ranks

enum { MOST_RANKS = 4, MOST_REDUCTIONS = 4096 };

/// One rank of a group, a thread.
typedef struct check_rank {
  rft_batch *const *batches;
  int count;
  check_selected selected;
  int64_t calls;                   ///< of all_reduce_sum
  int64_t counts[MOST_REDUCTIONS]; ///< of each call
} check_rank;

/// Runs a selection on `size` ranks at once. The `fail_at`-th reduction fails on every rank, 0 for
/// none. Gives what the ranks did wrong together, or NULL.
const char *check_run_ranks(const check_subject *subject, const rft_instance *instance,
                            check_rank *ranks, int size, int64_t fail_at);

#endif // RFT_CHECK_SELECTING_H
