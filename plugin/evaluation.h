// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Loss, gradient and metrics of a micro-batch, a chunk of positions at a time.

#ifndef M2PO_EVALUATION_H
#define M2PO_EVALUATION_H

#include "fault.h"
#include "instance.h"
#include "stage.h"
#include "terms.h"
#include "weights.h"

/// Positions that are summed in order. Chunks are added in order too, so that a sum does not depend
/// on which thread took which.
enum { M2PO_CHUNK = 8 * M2PO_BLOCK };

/// What came of a chunk.
typedef struct m2po_part {
  m2po_fault fault; ///< the first
  m2po_measures measures;
} m2po_part;

typedef struct m2po_evaluation {
  const m2po_config *config;
  const m2po_kernels *kernels; ///< NULL where they can't compute this
  m2po_formula formula;        ///< for the kernels
  double correction;           ///< of a sum of their slopes: what rounding the weight did
  rft_batch_view batch;
  rft_view keep;      ///< absent: all valid tokens are kept
  rft_view gradient;  ///< absent: not wanted
  float *slopes;      ///< the gradient where it is flat float32, else NULL
  m2po_pair pair;     ///< logprob relative to proximal_logprob or old_logprob
  m2po_source source; ///< of the three, for the kernels
  m2po_weights weights;
  bool measures;    ///< metrics are wanted
  bool rehearsal;   ///< finds faults, writes nothing
  bool few;         ///< tokens in the optimizer batch: the loss is computed in double
  bool streams;     ///< the gradient goes past the caches, which it would fill
  m2po_part *parts; ///< [chunks]
  int64_t chunks;
} m2po_evaluation;

/// Checks the arguments of rft_policy_loss.evaluate. On success as on an error, free with
/// m2po_evaluation_free.
int32_t m2po_evaluation_open(const rft_instance *instance, const rft_batch *batch,
                             const rft_tensor *mask, const rft_reduction *reduction,
                             const rft_output *output, m2po_evaluation *evaluation,
                             rft_error *error);

void m2po_evaluation_free(m2po_evaluation *evaluation);

/// Computes a chunk: a body of parallel_for, whose context is the evaluation.
void m2po_evaluation_chunk(void *evaluation, int64_t chunk);

/// Where kernels may write the slopes of positions [start, start + count): into the gradient, or
/// where that is not laid out for it, or not to be written yet, to `copy` [M2PO_BLOCK].
m2po_slopes m2po_evaluation_place(const m2po_evaluation *evaluation, int64_t start, int64_t count,
                                  float *copy);

/// Takes the gradient and the metrics of positions that kernels have computed, but not the loss.
/// False: something there is for the general code.
bool m2po_evaluation_take(const m2po_evaluation *evaluation, const m2po_block *block, int64_t start,
                          int64_t count, const float *slope, const m2po_valuation *valuation,
                          m2po_part *part);

/// The loss of positions [start, start + count), computed in double.
double m2po_evaluation_loss(const m2po_evaluation *evaluation, int64_t start, int64_t count);

/// Adds the chunks up. RFT_OUT_OF_RANGE: the first fault, or a sum that overflows.
int32_t m2po_evaluation_total(const m2po_evaluation *evaluation, m2po_measures *total,
                              rft_error *error);

/// Fills in what the caller asked for.
void m2po_evaluation_report(const m2po_measures *total, rft_output *output);

#endif // M2PO_EVALUATION_H
