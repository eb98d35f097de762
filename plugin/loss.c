// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "loss.h"

#include "fault.h"
#include "instance.h"
#include "metrics.h"
#include "support/error.h"
#include "support/structs.h"
#include "surrogate.h"
#include "weights.h"

#include <float.h>
#include <inttypes.h>
#include <stdlib.h>

// Positions that are summed in order. Chunks are added in order too, so that the sum does not
// depend on which thread took which.
enum { CHUNK = 4 * M2PO_BLOCK };

// Log-ratios are clamped to this in the metrics when log_ratio_clip is wider: their sums stay
// finite.
static const double metric_clip = 80.0;

typedef struct chunk_sums {
  double loss;
  double ratio_sum;
  double k1_sum;
  double k3_sum;
  double log_ratio_abs_max;
  double ratio_max;
  double ratio_min;
  int64_t tokens;
  int64_t clipped;
  int64_t log_ratio_clipped;
  m2po_fault fault;
} chunk_sums;

typedef struct evaluation {
  const m2po_config *config;
  m2po_batch batch;
  m2po_view keep;             ///< absent: all valid tokens are kept
  m2po_view gradient;         ///< absent: not wanted
  const m2po_view *reference; ///< the policy that the ratio is relative to
  const char *reference_name;
  bool wide;
  bool measures; ///< metrics are wanted
  bool writes;   ///< second reading: nothing can fail any more, the gradient is written
  m2po_weights weights;
  chunk_sums *chunks;
} evaluation;

typedef struct token_block {
  double logprob[M2PO_BLOCK];
  double reference[M2PO_BLOCK];
  double advantages[M2PO_BLOCK];
  double mask[M2PO_BLOCK];
  double keep[M2PO_BLOCK];
  double weights[M2PO_BLOCK];
} token_block;

static void load_block(const evaluation *job, int64_t start, int64_t count, token_block *block)
{
  const m2po_batch *const batch = &job->batch;
  m2po_view_load(&batch->logprob, batch->columns, start, count, block->logprob);
  m2po_view_load(job->reference, batch->columns, start, count, block->reference);
  m2po_view_load(&batch->mask, batch->columns, start, count, block->mask);
  m2po_batch_load_advantages(batch, start, count, block->advantages);
  m2po_weights_load(&job->weights, batch, start, count, block->weights);
  if (m2po_view_present(&job->keep)) {
    m2po_view_load(&job->keep, batch->columns, start, count, block->keep);
  }
}

static double clamp(double value, double limit)
{
  return value < -limit ? -limit : value > limit ? limit : value;
}

static m2po_fault_kind check_mask(const evaluation *job, double mask)
{
  const bool fits = !m2po_element_is_float(job->batch.mask.element) || mask == 0 || mask == 1;
  return fits ? M2PO_NO_FAULT : M2PO_NOT_A_MASK;
}

static bool faulty(const evaluation *job, chunk_sums *sums, m2po_fault_kind kind,
                   const char *tensor, int64_t position, double value)
{
  if (kind == M2PO_NO_FAULT) {
    return false;
  }
  sums->fault = (m2po_fault){kind, tensor, position, job->batch.columns, value};
  return true;
}

static m2po_fault_kind check_finite(double value)
{
  return isfinite(value) ? M2PO_NO_FAULT : M2PO_NOT_FINITE;
}

// Is the token's input unusable?
static bool input_faulty(const evaluation *job, chunk_sums *sums, const token_block *block,
                         int64_t i, int64_t position)
{
  return faulty(job, sums, check_finite(block->logprob[i]), "logprob", position,
                block->logprob[i]) ||
         faulty(job, sums, check_finite(block->reference[i]), job->reference_name, position,
                block->reference[i]) ||
         faulty(job, sums, check_finite(block->advantages[i]), "advantages", position,
                block->advantages[i]);
}

static void measure(const evaluation *job, chunk_sums *sums, double d)
{
  const double limit = fmin(job->config->log_ratio_clip, metric_clip);
  const double clamped = clamp(d, limit);
  const double ratio = m2po_exp(clamped);
  sums->ratio_sum += ratio;
  sums->k1_sum -= clamped;
  sums->k3_sum += ratio - 1.0 - clamped;
  sums->log_ratio_clipped += fabs(d) > job->config->log_ratio_clip ? 1 : 0;
  sums->log_ratio_abs_max = fmax(sums->log_ratio_abs_max, fabs(d));
  sums->ratio_max = fmax(sums->ratio_max, ratio);
  sums->ratio_min = fmin(sums->ratio_min, ratio);
}

// The loss and gradient of a kept token with A != 0; `*gradient` is 0 where it is unusable.
static bool term_faulty(const evaluation *job, chunk_sums *sums, double advantage, double d,
                        double weight, int64_t position, double *gradient)
{
  const double ratio = m2po_exp(clamp(d, job->config->log_ratio_clip));
  const double largest = job->wide ? DBL_MAX : (double)FLT_MAX;
  if (faulty(job, sums, ratio > largest ? M2PO_RATIO_OVERFLOW : M2PO_NO_FAULT, "logprob", position,
             d)) {
    return true;
  }
  const m2po_term term = m2po_surrogate_term(job->config, advantage, ratio);
  const double loss = weight * term.loss;
  const double slope = m2po_element_round(job->gradient.element, weight * term.slope);
  if (faulty(job, sums, isfinite(loss) ? M2PO_NO_FAULT : M2PO_LOSS_OVERFLOW, "logprob", position,
             d) ||
      faulty(job, sums, isfinite(slope) ? M2PO_NO_FAULT : M2PO_GRADIENT_OVERFLOW, "logprob",
             position, d)) {
    return true;
  }
  sums->loss += loss;
  sums->clipped += term.clipped ? 1 : 0;
  *gradient = slope;
  return false;
}

// One position. Masked, dropped and A = 0 positions get a gradient of exactly 0.
static bool take_position(const evaluation *job, chunk_sums *sums, const token_block *block,
                          int64_t i, int64_t position)
{
  double gradient = 0.0;
  if (faulty(job, sums, check_mask(job, block->mask[i]), "mask", position, block->mask[i])) {
    return false;
  }
  if (block->mask[i] != 0) {
    if (input_faulty(job, sums, block, i, position)) {
      return false;
    }
    const double d = m2po_log_ratio(block->logprob[i], block->reference[i], job->wide);
    ++sums->tokens;
    if (job->measures) {
      measure(job, sums, d);
    }
    const bool kept = !m2po_view_present(&job->keep) || block->keep[i] != 0;
    if (kept && block->advantages[i] != 0 &&
        term_faulty(job, sums, block->advantages[i], d, block->weights[i], position, &gradient)) {
      return false;
    }
  }
  if (job->writes) {
    m2po_element_store(job->gradient.element,
                       m2po_view_at(&job->gradient, job->batch.columns, position), gradient);
  }
  return true;
}

static void take_chunk(void *context, int64_t index)
{
  const evaluation *const job = context;
  chunk_sums *const sums = &job->chunks[index];
  *sums =
      (chunk_sums){.ratio_max = -INFINITY, .log_ratio_abs_max = -INFINITY, .ratio_min = INFINITY};
  const int64_t first = index * CHUNK;
  const int64_t left = job->batch.count - first;
  const int64_t end = first + (left < CHUNK ? left : CHUNK);
  token_block block;
  for (int64_t start = first; start < end; start += M2PO_BLOCK) {
    const int64_t count = end - start < M2PO_BLOCK ? end - start : M2PO_BLOCK;
    load_block(job, start, count, &block);
    for (int64_t i = 0; i < count; ++i) {
      if (!take_position(job, sums, &block, i, start + i)) {
        return;
      }
    }
  }
}

static chunk_sums add_chunks(const evaluation *job, int64_t chunks)
{
  chunk_sums total = {
      .ratio_max = -INFINITY, .log_ratio_abs_max = -INFINITY, .ratio_min = INFINITY};
  for (int64_t i = 0; i < chunks && total.fault.kind == M2PO_NO_FAULT; ++i) {
    const chunk_sums *const part = &job->chunks[i];
    total.fault = part->fault;
    total.loss += part->loss;
    total.ratio_sum += part->ratio_sum;
    total.k1_sum += part->k1_sum;
    total.k3_sum += part->k3_sum;
    total.log_ratio_abs_max = fmax(total.log_ratio_abs_max, part->log_ratio_abs_max);
    total.ratio_max = fmax(total.ratio_max, part->ratio_max);
    total.ratio_min = fmin(total.ratio_min, part->ratio_min);
    total.tokens += part->tokens;
    total.clipped += part->clipped;
    total.log_ratio_clipped += part->log_ratio_clipped;
  }
  return total;
}

static void fill_output(const chunk_sums *total, rft_output *output)
{
  output->loss = total->loss;
  double *const metrics = output->metrics;
  if (metrics == NULL) {
    return;
  }
  metrics[M2PO_TOKENS] = (double)total->tokens;
  metrics[M2PO_RATIO_SUM] = total->ratio_sum;
  metrics[M2PO_K1_SUM] = total->k1_sum;
  metrics[M2PO_K3_SUM] = total->k3_sum;
  metrics[M2PO_CLIPPED_TOKENS] = (double)total->clipped;
  metrics[M2PO_LOG_RATIO_CLIPPED_TOKENS] = (double)total->log_ratio_clipped;
  metrics[M2PO_LOG_RATIO_ABS_MAX] = total->log_ratio_abs_max;
  metrics[M2PO_RATIO_MAX] = total->ratio_max;
  metrics[M2PO_RATIO_MIN] = total->ratio_min;
}

// Reads everything once to know that nothing fails, and only then writes.
static int32_t evaluate(const rft_instance *instance, evaluation *job, rft_output *output,
                        rft_error *error)
{
  const int64_t chunks = (job->batch.count + CHUNK - 1) / CHUNK;
  job->chunks = calloc((size_t)chunks + 1, sizeof job->chunks[0]);
  if (job->chunks == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in evaluate");
  }
  m2po_parallel_for(instance, chunks, take_chunk, job);
  const chunk_sums total = add_chunks(job, chunks);
  const int32_t code = m2po_fault_report(&total.fault, error);
  if (code != RFT_OK) {
    return code;
  }
  if (!isfinite(total.loss)) {
    return rft_fail(error, RFT_OUT_OF_RANGE, "loss: expected a finite sum, found overflow");
  }
  if (m2po_view_present(&job->gradient)) {
    job->writes = true;
    m2po_parallel_for(instance, chunks, take_chunk, job);
  }
  fill_output(&total, output);
  return RFT_OK;
}

static int32_t open_gradient(evaluation *job, const rft_batch *source, const rft_tensor *gradient,
                             rft_error *error)
{
  const m2po_batch *const batch = &job->batch;
  int32_t code = m2po_view_like(gradient, source->logprob, "gradient", &job->gradient, error);
  if (code == RFT_OK && !m2po_element_is_float(job->gradient.element)) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "gradient: expected a float dtype, found type code %d with %d bits",
                    gradient->dtype.code, gradient->dtype.bits);
  }
  if (code == RFT_OK) {
    code = m2po_view_check_output(&job->gradient, batch->rows, batch->columns, "gradient", error);
  }
  if (code == RFT_OK) {
    code = m2po_batch_check_overlap(batch, &job->keep, &job->gradient, "gradient", error);
  }
  return code;
}

static int32_t open_keep(evaluation *job, const rft_batch *source, const rft_tensor *mask,
                         rft_error *error)
{
  int32_t code = m2po_view_like(mask, source->logprob, "mask of kept tokens", &job->keep, error);
  if (code == RFT_OK && job->keep.element > M2PO_UINT8) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "mask of kept tokens: expected dtype bool, int8 or uint8, found type code %d "
                    "with %d bits",
                    mask->dtype.code, mask->dtype.bits);
  }
  return code;
}

static int32_t open_output(const rft_output *output, rft_error *error)
{
  const int32_t code =
      rft_check_request(output, RFT_STRUCT_SIZE(rft_output, metric_count), "rft_output", error);
  if (code == RFT_OK && output->metrics != NULL && output->metric_count < M2PO_METRIC_COUNT) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "rft_output: expected metric_count of at least %d, found %" PRId64,
                    M2PO_METRIC_COUNT, output->metric_count);
  }
  return code;
}

static int32_t open_evaluation(evaluation *job, const rft_batch *source, const rft_tensor *mask,
                               const rft_output *output, rft_error *error)
{
  int32_t code = m2po_batch_open(source, &job->batch, error);
  if (code == RFT_OK) {
    code = open_output(output, error);
  }
  if (code == RFT_OK && mask != NULL) {
    code = open_keep(job, source, mask, error);
  }
  if (code == RFT_OK && output->gradient != NULL) {
    code = open_gradient(job, source, output->gradient, error);
  }
  if (code != RFT_OK) {
    return code;
  }
  const bool proximal = m2po_view_present(&job->batch.proximal_logprob);
  job->reference = proximal ? &job->batch.proximal_logprob : &job->batch.old_logprob;
  job->reference_name = proximal ? "proximal_logprob" : "old_logprob";
  job->wide = m2po_is_wide(&job->batch.logprob, job->reference);
  job->measures = output->metrics != NULL;
  return RFT_OK;
}

int32_t m2po_evaluate(const rft_instance *instance, const rft_batch *batch, const rft_tensor *mask,
                      const rft_reduction *reduction, rft_output *output, rft_error *error)
{
  evaluation job = {.config = &instance->config};
  int32_t code = open_evaluation(&job, batch, mask, output, error);
  if (code == RFT_OK) {
    code = m2po_weights_open(job.config, &job.batch, &job.keep, reduction, &job.weights, error);
  }
  if (code == RFT_OK) {
    code = evaluate(instance, &job, output, error);
  }
  free(job.chunks);
  m2po_weights_free(&job.weights);
  return code;
}
