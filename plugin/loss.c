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
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Positions that are summed in order. Chunks are added in order too, so that the sum does not
// depend on which thread took which.
enum { CHUNK = 4 * M2PO_BLOCK };

// What reading a batch before computing tells: a first fault, and how large things may get.
typedef struct batch_survey {
  m2po_fault fault;
  double log_ratio; ///< largest |d|
  double advantage; ///< largest |A|
  double weight;    ///< largest
} batch_survey;

typedef struct evaluation {
  const m2po_config *config;
  m2po_batch batch;
  m2po_view keep;             ///< absent: all valid tokens are kept
  m2po_view gradient;         ///< absent: not wanted
  const m2po_view *reference; ///< the policy that the ratio is relative to
  const char *reference_name;
  bool wide;
  bool measures; ///< metrics are wanted
  m2po_weights weights;
  batch_survey *surveys; ///< [chunks]
  m2po_measures *parts;  ///< [chunks]
} evaluation;

// -------------------------------------------------------------------------------------- the blocks

static void load_block(const evaluation *job, int64_t start, int64_t count, m2po_terms *terms)
{
  const m2po_batch *const batch = &job->batch;
  m2po_view_load(&batch->logprob, batch->columns, start, count, terms->logprob);
  m2po_view_load(job->reference, batch->columns, start, count, terms->reference);
  m2po_view_load(&batch->mask, batch->columns, start, count, terms->mask);
  m2po_batch_load_advantages(batch, start, count, terms->advantages);
  m2po_weights_load(&job->weights, batch, start, count, terms->weights);
  if (m2po_view_present(&job->keep)) {
    m2po_view_load(&job->keep, batch->columns, start, count, terms->keep);
  } else {
    m2po_terms_fill(terms->keep, 0, 1.0);
  }
  m2po_terms_fill(terms->mask, count, 0.0);
}

// Calls body for each block of a chunk, with its first position and length, until one returns
// false.
static void each_block(const evaluation *job, int64_t chunk,
                       bool (*body)(const evaluation *job, int64_t chunk, m2po_terms *terms,
                                    int64_t start, int64_t count))
{
  const int64_t first = chunk * CHUNK;
  const int64_t left = job->batch.count - first;
  const int64_t end = first + (left < CHUNK ? left : CHUNK);
  m2po_terms terms;
  memset(&terms, 0, sizeof terms);
  for (int64_t start = first; start < end; start += M2PO_BLOCK) {
    const int64_t count = end - start < M2PO_BLOCK ? end - start : M2PO_BLOCK;
    load_block(job, start, count, &terms);
    m2po_terms_log_ratios(&terms, job->wide);
    if (!body(job, chunk, &terms, start, count)) {
      return;
    }
  }
}

// ------------------------------------------------------------------------------- first reading

static bool has_fault(batch_survey *survey, const evaluation *job, m2po_fault_kind kind,
                      const char *tensor, int64_t position, double value)
{
  survey->fault = (m2po_fault){kind, tensor, position, job->batch.columns, value};
  return true;
}

// Finds the first unusable value of a block that has one.
static bool find_fault(const evaluation *job, batch_survey *survey, const m2po_terms *terms,
                       const char *reference_name, int64_t i, int64_t position)
{
  const double mask = terms->mask[i];
  if (m2po_element_is_float(job->batch.mask.element) && mask != 0 && mask != 1) {
    return has_fault(survey, job, M2PO_NOT_A_MASK, "mask", position, mask);
  }
  if (mask == 0) {
    return false;
  }
  if (!isfinite(terms->logprob[i])) {
    return has_fault(survey, job, M2PO_NOT_FINITE, "logprob", position, terms->logprob[i]);
  }
  if (!isfinite(terms->reference[i])) {
    return has_fault(survey, job, M2PO_NOT_FINITE, reference_name, position, terms->reference[i]);
  }
  if (!isfinite(terms->advantages[i])) {
    return has_fault(survey, job, M2PO_NOT_FINITE, "advantages", position, terms->advantages[i]);
  }
  return false;
}

// Is every value of the block usable, its `reference` being the tensor of that name?
static bool is_clean(const evaluation *job, batch_survey *survey, const m2po_terms *terms,
                     const char *reference_name, int64_t start)
{
  if (m2po_terms_are_clean(terms, m2po_element_is_float(job->batch.mask.element))) {
    return true;
  }
  int64_t i = 0;
  while (!find_fault(job, survey, terms, reference_name, i, start + i)) {
    ++i;
  }
  return false;
}

static bool survey_block(const evaluation *job, int64_t chunk, m2po_terms *terms, int64_t start,
                         int64_t count)
{
  batch_survey *const survey = &job->surveys[chunk];
  if (!is_clean(job, survey, terms, job->reference_name, start)) {
    return false;
  }
  survey->log_ratio = fmax(survey->log_ratio, m2po_terms_largest(terms, terms->log_ratio));
  survey->advantage = fmax(survey->advantage, m2po_terms_largest(terms, terms->advantages));
  survey->weight = fmax(survey->weight, m2po_terms_largest(terms, terms->weights));
  if (job->reference == &job->batch.old_logprob) {
    return true;
  }
  // Not used beside a proximal policy, but no number all the same where it isn't one.
  m2po_view_load(&job->batch.old_logprob, job->batch.columns, start, count, terms->reference);
  return is_clean(job, survey, terms, "old_logprob", start);
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
  return job->wide ? DBL_MAX : (double)FLT_MAX;
}

// Might a term overflow? Every surrogate's loss and slope is at most A r, A c or 4 A / t in size.
static bool may_overflow(const evaluation *job, const batch_survey *all)
{
  const m2po_config *const config = job->config;
  const double ratio = m2po_exp(fmin(all->log_ratio, config->log_ratio_clip));
  const double gate = 4.0 / fmin(config->sapo_tau_pos, config->sapo_tau_neg);
  const double cap = fmax(1.0 + config->clip_range_high, gate);
  const double term = all->weight * all->advantage * fmax(ratio, cap);
  const double slope = m2po_element_round(job->gradient.element, 2.0 * term);
  return !(ratio < largest_ratio(job) / 2 && isfinite(slope) &&
           isfinite(term * (double)job->batch.count));
}

// Computes without writing, and finds the first term that overflows.
static bool rehearse_block(const evaluation *job, int64_t chunk, m2po_terms *terms, int64_t start,
                           int64_t count)
{
  m2po_terms_compute(terms, job->config);
  const double largest = largest_ratio(job);
  batch_survey *const survey = &job->surveys[chunk];
  for (int64_t i = 0; i < count; ++i) {
    const double slope = m2po_element_round(job->gradient.element, terms->slope[i]);
    const m2po_fault_kind kind = terms->ratio[i] > largest   ? M2PO_RATIO_OVERFLOW
                                 : !isfinite(terms->loss[i]) ? M2PO_LOSS_OVERFLOW
                                 : !isfinite(slope)          ? M2PO_GRADIENT_OVERFLOW
                                                             : M2PO_NO_FAULT;
    if (kind != M2PO_NO_FAULT) {
      return !has_fault(survey, job, kind, "logprob", start + i, terms->log_ratio[i]);
    }
  }
  return true;
}

static void rehearse_chunk(void *context, int64_t chunk)
{
  const evaluation *const job = context;
  each_block(job, chunk, rehearse_block);
}

// ------------------------------------------------------------------------------ second reading

static bool compute_block(const evaluation *job, int64_t chunk, m2po_terms *terms, int64_t start,
                          int64_t count)
{
  m2po_terms_compute(terms, job->config);
  const m2po_measures part = m2po_terms_measure(terms, job->config, job->measures);
  m2po_measures_add(&job->parts[chunk], &part);
  if (m2po_view_present(&job->gradient)) {
    m2po_view_store(&job->gradient, job->batch.columns, start, count, terms->slope);
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

// Nothing is written before everything has been read once and nothing can fail any more (P9).
static int32_t survey_batch(const rft_instance *instance, evaluation *job, int64_t chunks,
                            rft_error *error)
{
  m2po_parallel_for(instance, chunks, survey_chunk, job);
  batch_survey all = add_surveys(job, chunks);
  if (all.fault.kind == M2PO_NO_FAULT && may_overflow(job, &all)) {
    m2po_parallel_for(instance, chunks, rehearse_chunk, job);
    all = add_surveys(job, chunks);
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
  m2po_measures total = m2po_measures_none();
  for (int64_t i = 0; i < chunks; ++i) {
    m2po_measures_add(&total, &job->parts[i]);
  }
  fill_output(&total, output);
  return RFT_OK;
}

// --------------------------------------------------------------------------------- the call

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
  free(job.surveys);
  free(job.parts);
  m2po_weights_free(&job.weights);
  return code;
}
