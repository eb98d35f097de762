// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "evaluation.h"

#include "exponential.h"
#include "metrics.h"
#include "support/error.h"
#include "support/structs.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// --------------------------------------------------------------- a block in double, for everything

// One block at work.
typedef struct token_block {
  m2po_inputs inputs;
  m2po_terms terms;
} token_block;

static void load_block(const m2po_evaluation *job, int64_t start, int64_t count, token_block *block)
{
  const rft_batch_view *const batch = &job->batch;
  m2po_inputs_load(batch, &job->pair, start, count, &block->inputs);
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    block->terms.keep[i] = 1.0;
    block->terms.weights[i] = 0.0;
  }
  m2po_weights_load(&job->weights, batch, start, count, block->terms.weights);
  if (rft_view_present(&job->keep)) {
    rft_view_load(&job->keep, start, count, block->terms.keep);
  }
}

// Is every value that is read finite?
static bool check_block(const m2po_evaluation *job, int64_t start, int64_t count,
                        const m2po_inputs *inputs, m2po_fault *fault)
{
  const rft_batch_view *const batch = &job->batch;
  if (!m2po_inputs_check(batch, &job->pair, start, inputs, fault)) {
    return false;
  }
  if (job->pair.reference == &batch->old_logprob) {
    return true;
  }
  // Not used beside a proximal policy, but it has to be a log-prob all the same.
  const m2po_pair stale =
      m2po_pair_of(&batch->logprob, "logprob", &batch->old_logprob, "old_logprob");
  m2po_inputs other;
  m2po_inputs_load(batch, &stale, start, count, &other);
  return m2po_inputs_check(batch, &stale, start, &other, fault);
}

static double largest_size(const m2po_inputs *inputs, const double values[M2PO_BLOCK])
{
  double sizes[M2PO_BLOCK];
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double size = fabs(values[i]);
    sizes[i] = inputs->mask[i] != 0 ? size : 0.0;
  }
  return m2po_largest(sizes);
}

// The largest ratio that the loss may use: of the type that it is computed in.
static double largest_ratio(const m2po_evaluation *job)
{
  return job->pair.wide ? DBL_MAX : (double)FLT_MAX;
}

// Might a term overflow? Every surrogate's loss and slope is at most A r, A c or 4 A / t in size.
static bool may_overflow(const m2po_evaluation *job, const token_block *block)
{
  const m2po_config *const config = job->config;
  const m2po_inputs *const inputs = &block->inputs;
  const double ratio =
      m2po_exp(fmin(largest_size(inputs, inputs->log_ratio), config->log_ratio_clip));
  const double gate = 4.0 / fmin(config->sapo_tau_pos, config->sapo_tau_neg);
  const double cap = fmax(1.0 + config->clip_range_high, gate);
  const double weighted =
      largest_size(inputs, block->terms.weights) * largest_size(inputs, inputs->advantages);
  const double slope = rft_element_round(job->gradient.element, 2.0 * weighted * fmax(ratio, cap));
  return !(ratio < largest_ratio(job) / 2 && isfinite(slope));
}

// Finds the first term that overflows.
static bool check_terms(const m2po_evaluation *job, const token_block *block, int64_t start,
                        m2po_fault *fault)
{
  const m2po_terms *const terms = &block->terms;
  const double largest = largest_ratio(job);
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double slope = rft_element_round(job->gradient.element, terms->slope[i]);
    const m2po_fault_kind kind = terms->ratio[i] > largest   ? M2PO_RATIO_OVERFLOW
                                 : !isfinite(terms->loss[i]) ? M2PO_LOSS_OVERFLOW
                                 : !isfinite(slope)          ? M2PO_GRADIENT_OVERFLOW
                                                             : M2PO_NO_FAULT;
    if (kind != M2PO_NO_FAULT) {
      *fault =
          (m2po_fault){kind, "logprob", start + i, job->batch.columns, block->inputs.log_ratio[i]};
      return false;
    }
  }
  return true;
}

static bool compute_block(const m2po_evaluation *job, int64_t start, int64_t count, m2po_part *part)
{
  token_block block;
  load_block(job, start, count, &block);
  if (!check_block(job, start, count, &block.inputs, &part->fault)) {
    return false;
  }
  m2po_terms_compute(&block.inputs, &block.terms, job->config);
  if (may_overflow(job, &block) && !check_terms(job, &block, start, &part->fault)) {
    return false;
  }
  part->measures.loss += m2po_sum(block.terms.loss);
  part->measures.clipped += m2po_sum(block.terms.clipped);
  if (job->rehearsal) {
    return true;
  }
  if (job->measures) {
    m2po_measure_ratios(&block.inputs, job->config, &part->measures);
  }
  if (rft_view_present(&job->gradient)) {
    rft_view_store(&job->gradient, start, count, block.terms.slope);
  }
  return true;
}

// ----------------------------------------------------------------------------- a block by kernels

// Can the gradient's dtype hold them all?
static bool fits_gradient(const rft_view *gradient, const float slope[M2PO_BLOCK])
{
  const double overflow = rft_element_overflow(gradient->element);
  bool all = true;
  for (int64_t i = 0; gradient->element < RFT_ELEMENT_FLOAT32 && i < M2PO_BLOCK; ++i) {
    all = all && fabs((double)slope[i]) < overflow;
  }
  return all;
}

m2po_slopes m2po_evaluation_place(const m2po_evaluation *evaluation, int64_t start, int64_t count,
                                  float *copy)
{
  if (evaluation->rehearsal || evaluation->slopes == NULL || count < M2PO_BLOCK) {
    return (m2po_slopes){copy, false};
  }
  float *const to = evaluation->slopes + start;
  return (m2po_slopes){to, evaluation->streams && (uintptr_t)to % M2PO_LINE == 0};
}

static void store_slopes(const m2po_evaluation *job, int64_t start, int64_t count,
                         const float slopes[M2PO_BLOCK])
{
  double values[M2PO_BLOCK];
  for (int64_t i = 0; i < count; ++i) {
    values[i] = (double)slopes[i];
  }
  rft_view_store(&job->gradient, start, count, values);
}

bool m2po_evaluation_take(const m2po_evaluation *evaluation, const m2po_block *block, int64_t start,
                          int64_t count, const float *slope, const m2po_valuation *valuation,
                          m2po_part *part)
{
  const rft_view *const gradient = &evaluation->gradient;
  const bool wanted = rft_view_present(gradient);
  if (!valuation->plain || !isfinite(valuation->sum) ||
      (wanted && !fits_gradient(gradient, slope))) {
    return false;
  }
  if (evaluation->rehearsal) {
    return true;
  }
  if (evaluation->measures) {
    evaluation->kernels->measure(block, evaluation->config->log_ratio_clip, &part->measures);
  }
  if (wanted && (evaluation->slopes == NULL || slope != evaluation->slopes + start)) {
    store_slopes(evaluation, start, count, slope);
  }
  return true;
}

double m2po_evaluation_loss(const m2po_evaluation *evaluation, int64_t start, int64_t count)
{
  token_block block;
  load_block(evaluation, start, count, &block);
  m2po_terms_compute(&block.inputs, &block.terms, evaluation->config);
  return m2po_sum(block.terms.loss);
}

// False: the block is for compute_block.
static bool compute_fast(const m2po_evaluation *job, int64_t start, int64_t count, m2po_part *part)
{
  m2po_stage stage;
  m2po_block block;
  if (!m2po_stage_load(&job->source, start, count, &stage, &block)) {
    return false;
  }
  float copy[M2PO_BLOCK];
  const m2po_slopes slopes = m2po_evaluation_place(job, start, count, copy);
  m2po_valuation valuation;
  job->kernels->evaluate(&block, &job->formula, &slopes, &valuation);
  if (!m2po_evaluation_take(job, &block, start, count, slopes.to, &valuation, part)) {
    return false;
  }
  part->measures.loss +=
      job->few ? m2po_evaluation_loss(job, start, count) : job->correction * valuation.sum;
  return true;
}

void m2po_evaluation_chunk(void *evaluation, int64_t chunk)
{
  const m2po_evaluation *const job = evaluation;
  m2po_part *const part = &job->parts[chunk];
  *part = (m2po_part){.measures = m2po_measures_none()};
  const int64_t first = chunk * M2PO_CHUNK;
  const int64_t left = job->batch.count - first;
  const int64_t end = first + (left < M2PO_CHUNK ? left : M2PO_CHUNK);
  for (int64_t start = first; start < end; start += M2PO_BLOCK) {
    const int64_t count = end - start < M2PO_BLOCK ? end - start : M2PO_BLOCK;
    const bool done = job->kernels != NULL && compute_fast(job, start, count, part);
    if (!done && !compute_block(job, start, count, part)) {
      return;
    }
  }
  if (job->kernels != NULL && job->streams) {
    job->kernels->fence();
  }
}

int32_t m2po_evaluation_total(const m2po_evaluation *evaluation, m2po_measures *total,
                              rft_error *error)
{
  *total = m2po_measures_none();
  for (int64_t i = 0; i < evaluation->chunks; ++i) {
    const m2po_part *const part = &evaluation->parts[i];
    if (part->fault.kind != M2PO_NO_FAULT) {
      return m2po_fault_report(&part->fault, error);
    }
    m2po_measures_add(total, &part->measures);
  }
  return isfinite(total->loss)
             ? RFT_OK
             : rft_fail(error, RFT_OUT_OF_RANGE, "loss: expected a finite sum, found overflow");
}

void m2po_evaluation_report(const m2po_measures *total, rft_output *output)
{
  output->loss = total->loss;
  double *const metrics = output->metrics;
  if (metrics == NULL) {
    return;
  }
  metrics[M2PO_TOKENS] = total->tokens;
  metrics[M2PO_RATIO_SUM] = total->ratio_sum;
  metrics[M2PO_K1_SUM] = total->k1_sum;
  metrics[M2PO_K3_SUM] = total->k3_sum;
  metrics[M2PO_CLIPPED_TOKENS] = total->clipped;
  metrics[M2PO_LOG_RATIO_CLIPPED_TOKENS] = total->log_ratio_clipped;
  metrics[M2PO_LOG_RATIO_ABS_MAX] = total->log_ratio_abs_max;
  metrics[M2PO_RATIO_MAX] = total->ratio_max;
  metrics[M2PO_RATIO_MIN] = total->ratio_min;
}

// ---------------------------------------------------------------------------------- the arguments

static int32_t open_gradient(m2po_evaluation *job, const rft_batch *source,
                             const rft_tensor *gradient, rft_error *error)
{
  int32_t code = rft_view_like(gradient, source->logprob, RFT_CONTENT_FLOATS, "gradient",
                               &job->gradient, error);
  if (code == RFT_OK) {
    code = rft_view_check_output(&job->gradient, "gradient", error);
  }
  if (code == RFT_OK) {
    code = rft_batch_view_check_overlap(&job->batch, &job->gradient, "gradient", error);
  }
  if (code == RFT_OK && rft_view_present(&job->keep) &&
      rft_views_overlap(&job->gradient, &job->keep)) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "gradient: expected memory apart from the inputs, found it to overlap the mask "
                    "of kept tokens");
  }
  return code;
}

static int32_t open_keep(m2po_evaluation *job, const rft_batch *source, const rft_tensor *mask,
                         rft_error *error)
{
  int32_t code = rft_view_like(mask, source->logprob, RFT_CONTENT_NUMBERS, "mask of kept tokens",
                               &job->keep, error);
  if (code == RFT_OK && job->keep.element > RFT_ELEMENT_UINT8) {
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
  return code == RFT_OK
             ? m2po_metrics_check(output->metrics, output->metric_count, "rft_output", error)
             : code;
}

static int32_t open_tensors(const rft_batch *source, const rft_tensor *mask,
                            const rft_output *output, m2po_evaluation *job, rft_error *error)
{
  int32_t code = rft_batch_view_open(source, &job->batch, error);
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
  const rft_batch_view *const batch = &job->batch;
  const bool proximal = rft_view_present(&batch->proximal_logprob);
  job->pair = m2po_pair_of(&batch->logprob, "logprob",
                           proximal ? &batch->proximal_logprob : &batch->old_logprob,
                           proximal ? "proximal_logprob" : "old_logprob");
  job->measures = output->metrics != NULL;
  job->slopes = m2po_flat_floats(&job->gradient);
  return RFT_OK;
}

// Kernels add up terms that are rounded to float32. Among many the errors average out; few may
// cancel to less than that. The number is the optimizer batch's, so that its parts add up however
// it is split.
enum { FEW_TOKENS = 4096 };

// Positions from which on a gradient, 16 MiB here, is more than caches hold for whoever reads it
// next.
enum { LEAST_STREAMED = 1 << 22 };

// Kernels compute one surrogate, with one weight for all tokens, where nothing leaves the range of
// normal float32 unless an advantage does; they know the clip as a float32, and don't read a second
// reference.
static bool suits_kernels(const m2po_evaluation *job)
{
  const m2po_config *const config = job->config;
  const double weight = fabs(job->weights.each);
  return config->surrogate == M2PO_IMPORTANCE_SAMPLING &&
         config->log_ratio_clip <= M2PO_METRIC_CLIP &&
         config->log_ratio_clip == (double)(float)config->log_ratio_clip &&
         job->weights.sequence_tokens == NULL && (weight == 0 || weight > 0x1p-64) && weight <= 1 &&
         job->pair.reference == &job->batch.old_logprob && m2po_stage_fits(&job->batch, &job->pair);
}

static int32_t out_of_memory(rft_error *error)
{
  return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in evaluate");
}

int32_t m2po_evaluation_open(const rft_instance *instance, const rft_batch *batch,
                             const rft_tensor *mask, const rft_reduction *reduction,
                             const rft_output *output, m2po_evaluation *evaluation,
                             rft_error *error)
{
  m2po_evaluation *const job = evaluation;
  *job = (m2po_evaluation){.config = &instance->config};
  int32_t code = open_tensors(batch, mask, output, job, error);
  if (code == RFT_OK) {
    code = m2po_weights_open(instance, &job->batch, &job->keep, reduction, &job->weights, error);
  }
  if (code != RFT_OK) {
    return code;
  }
  if (suits_kernels(job)) {
    job->kernels = instance->kernels;
    job->source = m2po_source_of(&job->batch, &job->pair, &job->keep);
    const float weight = (float)job->weights.each;
    job->formula = (m2po_formula){(float)job->config->log_ratio_clip, weight};
    job->correction = weight != 0 ? job->weights.each / (double)weight : 1.0;
  }
  const int64_t tokens = job->weights.valid != 0 ? job->weights.valid : job->batch.count;
  job->few = tokens < FEW_TOKENS;
  job->streams = job->kernels != NULL && job->batch.count >= LEAST_STREAMED;
  job->chunks = (job->batch.count + M2PO_CHUNK - 1) / M2PO_CHUNK;
  job->parts = malloc((size_t)(job->chunks + 1) * sizeof job->parts[0]);
  return job->parts == NULL ? out_of_memory(error) : RFT_OK;
}

void m2po_evaluation_free(m2po_evaluation *evaluation)
{
  free(evaluation->parts);
  m2po_weights_free(&evaluation->weights);
}
