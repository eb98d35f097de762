// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "loss.h"

#include "exponential.h"
#include "fault.h"
#include "instance.h"
#include "metrics.h"
#include "support/error.h"
#include "support/structs.h"
#include "terms.h"
#include "weights.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

// Positions that are summed in order. Chunks are added in order too, so that the sum does not
// depend on which thread took which.
enum { CHUNK = 16 * M2PO_BLOCK };

// What reading a batch before computing tells: a first fault, and how large things may get.
typedef struct batch_survey {
  m2po_fault fault;
  double log_ratio; ///< largest |d|
  double advantage; ///< largest |A|
  double weight;    ///< largest
} batch_survey;

typedef struct evaluation {
  const m2po_config *config;
  rft_batch_view batch;
  rft_view keep;     ///< absent: all valid tokens are kept
  rft_view gradient; ///< absent: not wanted
  m2po_pair pair;    ///< logprob relative to proximal_logprob or old_logprob
  bool measures;     ///< metrics are wanted
  m2po_weights weights;
  batch_survey *surveys; ///< [chunks]
  m2po_measures *parts;  ///< [chunks]
} evaluation;

// -------------------------------------------------------------------------------------- the blocks

// One block at work.
typedef struct token_block {
  m2po_inputs inputs;
  m2po_terms terms;
} token_block;

static void load_block(const evaluation *job, int64_t start, int64_t count, token_block *block)
{
  const rft_batch_view *const batch = &job->batch;
  m2po_inputs_load(batch, &job->pair, start, count, &block->inputs);
  m2po_weights_load(&job->weights, batch, start, count, block->terms.weights);
  if (rft_view_present(&job->keep)) {
    rft_view_load(&job->keep, start, count, block->terms.keep);
  }
}

// Calls body for each block of a chunk, with its first position and length, until one returns
// false.
static void each_block(const evaluation *job, int64_t chunk,
                       bool (*body)(const evaluation *job, int64_t chunk, token_block *block,
                                    int64_t start, int64_t count))
{
  const int64_t first = chunk * CHUNK;
  const int64_t left = job->batch.count - first;
  const int64_t end = first + (left < CHUNK ? left : CHUNK);
  token_block block;
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    block.terms.keep[i] = 1.0;
    block.terms.weights[i] = 0.0;
  }
  for (int64_t start = first; start < end; start += M2PO_BLOCK) {
    const int64_t count = end - start < M2PO_BLOCK ? end - start : M2PO_BLOCK;
    load_block(job, start, count, &block);
    if (!body(job, chunk, &block, start, count)) {
      return;
    }
  }
}

// ----------------------------------------------------------------------------------- first reading

static double largest_size(const m2po_inputs *inputs, const double values[M2PO_BLOCK])
{
  double sizes[M2PO_BLOCK];
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double size = fabs(values[i]);
    sizes[i] = inputs->mask[i] != 0 ? size : 0.0;
  }
  return m2po_largest(sizes);
}

static bool survey_block(const evaluation *job, int64_t chunk, token_block *block, int64_t start,
                         int64_t count)
{
  const rft_batch_view *const batch = &job->batch;
  batch_survey *const survey = &job->surveys[chunk];
  m2po_inputs *const inputs = &block->inputs;
  if (!m2po_inputs_check(batch, &job->pair, start, inputs, &survey->fault)) {
    return false;
  }
  survey->log_ratio = fmax(survey->log_ratio, largest_size(inputs, inputs->log_ratio));
  survey->advantage = fmax(survey->advantage, largest_size(inputs, inputs->advantages));
  survey->weight = fmax(survey->weight, largest_size(inputs, block->terms.weights));
  if (job->pair.reference == &batch->old_logprob) {
    return true;
  }
  // Not used beside a proximal policy, but it has to be a log-prob all the same.
  const m2po_pair stale =
      m2po_pair_of(&batch->logprob, "logprob", &batch->old_logprob, "old_logprob");
  m2po_inputs_load(batch, &stale, start, count, inputs);
  return m2po_inputs_check(batch, &stale, start, inputs, &survey->fault);
}

static void survey_chunk(void *context, int64_t chunk)
{
  const evaluation *const job = context;
  job->surveys[chunk] = (batch_survey){.log_ratio = 0};
  each_block(job, chunk, survey_block);
}

static batch_survey add_surveys(const evaluation *job, int64_t chunks)
{
  batch_survey all = {.log_ratio = 0};
  for (int64_t i = 0; i < chunks && all.fault.kind == M2PO_NO_FAULT; ++i) {
    const batch_survey *const part = &job->surveys[i];
    all.fault = part->fault;
    all.log_ratio = fmax(all.log_ratio, part->log_ratio);
    all.advantage = fmax(all.advantage, part->advantage);
    all.weight = fmax(all.weight, part->weight);
  }
  return all;
}

// The largest ratio that the loss may use: of the type that it is computed in.
static double largest_ratio(const evaluation *job)
{
  return job->pair.wide ? DBL_MAX : (double)FLT_MAX;
}

// Might a term overflow? Every surrogate's loss and slope is at most A r, A c or 4 A / t in size.
static bool may_overflow(const evaluation *job, const batch_survey *all)
{
  const m2po_config *const config = job->config;
  const double ratio = m2po_exp(fmin(all->log_ratio, config->log_ratio_clip));
  const double gate = 4.0 / fmin(config->sapo_tau_pos, config->sapo_tau_neg);
  const double cap = fmax(1.0 + config->clip_range_high, gate);
  const double term = all->weight * all->advantage * fmax(ratio, cap);
  const double slope = rft_element_round(job->gradient.element, 2.0 * term);
  return !(ratio < largest_ratio(job) / 2 && isfinite(slope) &&
           isfinite(term * (double)job->batch.count));
}

// Computes without writing, and finds the first term that overflows.
static bool rehearse_block(const evaluation *job, int64_t chunk, token_block *block, int64_t start,
                           int64_t count)
{
  const m2po_terms *const terms = &block->terms;
  m2po_terms_compute(&block->inputs, &block->terms, job->config);
  const double largest = largest_ratio(job);
  for (int64_t i = 0; i < count; ++i) {
    const double slope = rft_element_round(job->gradient.element, terms->slope[i]);
    const m2po_fault_kind kind = terms->ratio[i] > largest   ? M2PO_RATIO_OVERFLOW
                                 : !isfinite(terms->loss[i]) ? M2PO_LOSS_OVERFLOW
                                 : !isfinite(slope)          ? M2PO_GRADIENT_OVERFLOW
                                                             : M2PO_NO_FAULT;
    if (kind != M2PO_NO_FAULT) {
      job->surveys[chunk].fault =
          (m2po_fault){kind, "logprob", start + i, job->batch.columns, block->inputs.log_ratio[i]};
      return false;
    }
  }
  const m2po_measures part = m2po_terms_measure(&block->inputs, terms, job->config, false);
  m2po_measures_add(&job->parts[chunk], &part);
  return true;
}

static void rehearse_chunk(void *context, int64_t chunk)
{
  const evaluation *const job = context;
  job->parts[chunk] = m2po_measures_none();
  each_block(job, chunk, rehearse_block);
}

// ------------------------------------------------------------------------------ second reading

static bool compute_block(const evaluation *job, int64_t chunk, token_block *block, int64_t start,
                          int64_t count)
{
  m2po_terms_compute(&block->inputs, &block->terms, job->config);
  const m2po_measures part =
      m2po_terms_measure(&block->inputs, &block->terms, job->config, job->measures);
  m2po_measures_add(&job->parts[chunk], &part);
  if (rft_view_present(&job->gradient)) {
    rft_view_store(&job->gradient, start, count, block->terms.slope);
  }
  return true;
}

static void compute_chunk(void *context, int64_t chunk)
{
  const evaluation *const job = context;
  job->parts[chunk] = m2po_measures_none();
  each_block(job, chunk, compute_block);
}

static void fill_output(const m2po_measures *total, rft_output *output)
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

static m2po_measures add_parts(const evaluation *job, int64_t chunks)
{
  m2po_measures total = m2po_measures_none();
  for (int64_t i = 0; i < chunks; ++i) {
    m2po_measures_add(&total, &job->parts[i]);
  }
  return total;
}

// Nothing is written before everything has been read once and nothing can fail any more (P9).
static int32_t survey_batch(const rft_instance *instance, evaluation *job, int64_t chunks,
                            rft_error *error)
{
  m2po_parallel_for(instance, chunks, survey_chunk, job);
  batch_survey all = add_surveys(job, chunks);
  if (all.fault.kind != M2PO_NO_FAULT || !may_overflow(job, &all)) {
    return m2po_fault_report(&all.fault, error);
  }
  m2po_parallel_for(instance, chunks, rehearse_chunk, job);
  all = add_surveys(job, chunks);
  if (all.fault.kind == M2PO_NO_FAULT && !isfinite(add_parts(job, chunks).loss)) {
    return rft_fail(error, RFT_OUT_OF_RANGE, "loss: expected a finite sum, found overflow");
  }
  return m2po_fault_report(&all.fault, error);
}

static int32_t evaluate(const rft_instance *instance, evaluation *job, rft_output *output,
                        rft_error *error)
{
  const int64_t chunks = (job->batch.count + CHUNK - 1) / CHUNK;
  job->surveys = malloc((size_t)(chunks + 1) * sizeof job->surveys[0]);
  job->parts = malloc((size_t)(chunks + 1) * sizeof job->parts[0]);
  if (job->surveys == NULL || job->parts == NULL) {
    return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in evaluate");
  }
  const int32_t code = survey_batch(instance, job, chunks, error);
  if (code != RFT_OK) {
    return code;
  }
  m2po_parallel_for(instance, chunks, compute_chunk, job);
  const m2po_measures total = add_parts(job, chunks);
  fill_output(&total, output);
  return RFT_OK;
}

// --------------------------------------------------------------------------------- the call

static int32_t open_gradient(evaluation *job, const rft_batch *source, const rft_tensor *gradient,
                             rft_error *error)
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

static int32_t open_keep(evaluation *job, const rft_batch *source, const rft_tensor *mask,
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

static int32_t open_evaluation(evaluation *job, const rft_batch *source, const rft_tensor *mask,
                               const rft_output *output, rft_error *error)
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
  free(job.surveys);
  free(job.parts);
  m2po_weights_free(&job.weights);
  return code;
}
