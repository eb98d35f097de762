// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Micro-batches that any policy loss accepts, and what its functions make of them.

#ifndef RFT_CHECK_BATCHES_H
#define RFT_CHECK_BATCHES_H

#include "check.h"
#include "rng.h"
#include "tensors.h"

/// The content of a micro-batch, row-major [rows, columns]; a row is a sequence. Every row has a
/// valid token, the first is valid, and no advantage is 0.
typedef struct check_values {
  int64_t rows;
  int64_t columns;
  double *logprob;
  double *old_logprob;
  double *proximal_logprob;
  double *advantages;
  double *mask;
} check_values;

/// Values that every float dtype holds exactly.
check_values check_values_exact(rng *r, int64_t rows, int64_t columns);

/// Any values.
check_values check_values_real(rng *r, int64_t rows, int64_t columns);

check_values check_values_copy(const check_values *values);

/// Rows [first, first + count) of the same memory.
check_values check_values_rows(const check_values *values, int64_t first, int64_t count);

int64_t check_values_valid(const check_values *values);

/// How values become tensors.
typedef struct check_form {
  bool packed; ///< [n] with cu_seqlens, int32 or int64
  rft_dtype logprob, old_logprob, proximal_logprob, advantages, mask, cu_seqlens;
  check_layout layout;
} check_form;

/// Padded, float32, bool, compact.
check_form check_form_plain(void);

/// Likewise float64.
check_form check_form_wide(void);

rft_batch *check_batch(const check_values *values, const check_form *form);

/// A batch of 4 sequences in the plain form, the same for the same seed.
rft_batch *check_ordinary_batch(const check_subject *subject);

// --------------------------------------------------------------------------------- calls

/// An instance of the subject's config; ends the check where there is none.
rft_instance *check_create(const check_subject *subject);

#define UNWRITTEN (-777.25)

/// What evaluate did.
typedef struct check_outcome {
  int32_t code;
  rft_error error;
  double loss; ///< UNWRITTEN where it wasn't written
  int64_t count;
  double *gradient; ///< [count]
  int64_t metric_count;
  double *metrics; ///< [metric_count]
} check_outcome;

/// Evaluates; `keep` and `reduction` may be NULL. `gradient` NULL: a compact tensor in the dtype of
/// logprob.
check_outcome check_evaluate(const check_subject *subject, const rft_instance *instance,
                             const rft_batch *batch, const rft_tensor *keep,
                             const rft_reduction *reduction, const rft_tensor *gradient);

/// Likewise, and ends the check when it is refused. `what` is for the message.
check_outcome check_evaluate_ok(const char *what, const check_subject *subject,
                                const rft_instance *instance, const rft_batch *batch,
                                const rft_tensor *keep, const rft_reduction *reduction,
                                const rft_tensor *gradient);

/// Are loss, gradient and metrics the same, bit for bit?
bool check_same_outcome(const check_outcome *left, const check_outcome *right);

/// Is |left - right| at most `tolerance` of the larger, or of 1 where both are smaller?
bool check_near(double left, double right, double tolerance);

/// Fails the check where loss or gradient differ by more. `what` is for the message.
void check_expect_near(const char *what, const check_outcome *found, const check_outcome *expected,
                       double tolerance);

/// Does evaluate read this tensor? Tries other values of it. `old`: old_logprob, else
/// proximal_logprob.
bool check_reads(const check_subject *subject, const rft_instance *instance, bool old);

#endif // RFT_CHECK_BATCHES_H
