// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "fused.h"

#include "evaluation.h"
#include "gather.h"
#include "loss.h"
#include "metrics.h"
#include "sample.h"
#include "select.h"
#include "support/error.h"
#include "tally.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// ------------------------------------------------------------------------ by the separate
// functions

// What a selection writes into a report.
static void copy_report(const rft_selection_report *found, rft_selection_report *report)
{
  report->valid_tokens = found->valid_tokens;
  report->kept_tokens = found->kept_tokens;
  report->sequences = found->sequences;
  for (int i = 0; report->metrics != NULL && i < M2PO_MASKED_FRACTION; ++i) {
    report->metrics[i] = found->metrics[i];
  }
}

// `problem`: an argument is wrong, as the other ranks have to be told (P17); code RFT_OK: none is.
static int32_t select_then_evaluate(const rft_instance *instance, const rft_batch *batch,
                                    const rft_collectives *collectives, double scale,
                                    const rft_tensor *mask, const rft_error *problem,
                                    rft_selection_report *report, rft_output *output,
                                    rft_error *error)
{
  // The caller's report stays as it is where the evaluation fails.
  double metrics[M2PO_METRIC_COUNT];
  rft_selection_report found = {
      .struct_size = sizeof found, .metrics = metrics, .metric_count = M2PO_METRIC_COUNT};
  rft_selection *selection = NULL;
  int32_t code = m2po_selection_begin(instance, &selection, error);
  if (code != RFT_OK) {
    m2po_selection_abstain(collectives);
    return code;
  }
  if (problem->code != RFT_OK) {
    m2po_selection_fail(selection, problem);
  } else {
    m2po_selection_add(selection, batch, NULL); // finish says it where this fails
  }
  code = m2po_selection_finish(selection, collectives, &found, error);
  if (code == RFT_OK) {
    code = m2po_selection_mask(selection, 0, mask, error);
  }
  m2po_selection_end(selection);
  if (code != RFT_OK) {
    return code;
  }
  const rft_reduction reduction = {.struct_size = sizeof reduction,
                                   .valid_tokens = found.valid_tokens,
                                   .kept_tokens = found.kept_tokens,
                                   .sequences = found.sequences,
                                   .scale = scale};
  code = m2po_evaluate_once(instance, batch, mask, &reduction, output, error);
  if (code == RFT_OK) {
    copy_report(&found, report);
  }
  return code;
}

// ----------------------------------------------------------------------------------- in one pass

enum { MOST_RANGES = 64, LEAST_RANGE = 4 * M2PO_CHUNK };

// The part of the micro-batch that one body of parallel_for does: whole chunks.
typedef struct token_range {
  int64_t start;
  int64_t end;
  int64_t constrained;
  int64_t above_count;
  int64_t open_count;
  float least; ///< for the next block's bracket
  m2po_tally below;
  m2po_tally above;
  m2po_tally open;
  m2po_square_list squares; ///< of the open tokens
  const m2po_squares *first;
  bool given_up; ///< this batch is for the separate functions
} token_range;

typedef struct one_pass {
  m2po_evaluation evaluation;
  rft_view mask;
  uint8_t *keep; ///< the mask, which is flat
  float *slope;  ///< the gradient, which is flat, too
  m2po_rule rule;
  m2po_bracket bracket;
  bool all_tokens;
  token_range *ranges;
  int64_t range_count;
  uint64_t *open; ///< a bit a position
  m2po_cut cut;
} one_pass;

static bool add_open(token_range *range, float square, float advantage)
{
  m2po_tally_add(&range->open, (double)square, false);
  ++range->open_count;
  return isfinite(square) && isfinite(advantage) &&
         m2po_squares_append(&range->squares, false, (double)square);
}

static bool collect_open(token_range *range, const m2po_block *block, const m2po_sighting *sighting)
{
  for (int64_t first = 0; first < M2PO_BLOCK; first += M2PO_WORD_BITS) {
    uint64_t open = sighting->open[first / M2PO_WORD_BITS];
    for (; open != 0; open &= open - 1) {
      const int64_t i = first + __builtin_ctzll(open);
      const float d = block->policy[i] - block->reference[i];
      if (!add_open(range, d * d, block->advantages[i])) {
        return false;
      }
    }
  }
  return true;
}

// Sums that are exact need a bracket whose `least` is not too small; one that is as small as it may
// be leaves the least over.
static bool take_sums(const one_pass *job, token_range *range, const m2po_block *block,
                      m2po_sighting *sighting)
{
  const m2po_kernels *const kernels = job->evaluation.kernels;
  const float safe = m2po_tally_safe_least(job->bracket.low);
  range->constrained += sighting->constrained;
  range->above_count += sighting->above_count;
  if (sighting->above_count != 0 &&
      !m2po_tally_add_above(&range->above, kernels, sighting->above, job->bracket.high)) {
    return false;
  }
  const double below = sighting->below;
  if (!m2po_tally_add_below(&range->below, kernels, sighting, range->least)) {
    const m2po_bracket careful = {job->bracket.low, job->bracket.high, safe};
    kernels->sight(block, &careful, job->all_tokens, sighting);
    if (!m2po_tally_add_below(&range->below, kernels, sighting, safe)) {
      return false;
    }
  }
  range->least = m2po_tally_next_least(below, safe);
  return true;
}

// False: not by this way.
static bool do_block(one_pass *job, token_range *range, int64_t start, int64_t count)
{
  const m2po_evaluation *const evaluation = &job->evaluation;
  m2po_stage stage;
  m2po_block block;
  m2po_sighting sighting;
  m2po_valuation valuation;
  float slope_copy[M2PO_BLOCK];
  uint8_t keep_copy[M2PO_BLOCK];
  float *const slope = m2po_evaluation_place(evaluation, start, count, slope_copy);
  uint8_t *const keep = count == M2PO_BLOCK ? job->keep + start : keep_copy;
  if (!m2po_stage_load(&evaluation->source, start, count, &stage, &block)) {
    return false;
  }
  const m2po_bracket bracket = {job->bracket.low, job->bracket.high, range->least};
  evaluation->kernels->step(&block, &bracket, &evaluation->formula, job->all_tokens, slope, keep,
                            &sighting, &valuation);
  m2po_part *const part = &evaluation->parts[start / M2PO_CHUNK];
  if (!m2po_evaluation_take(evaluation, &block, start, count, slope, &valuation, part) ||
      !take_sums(job, range, &block, &sighting) || !collect_open(range, &block, &sighting)) {
    return false;
  }
  if (keep == keep_copy) {
    memcpy(job->keep + start, keep, (size_t)count);
  }
  part->measures.loss -= evaluation->few ? 0.0 : evaluation->weights.each * valuation.sum;
  memcpy(job->open + start / M2PO_WORD_BITS, sighting.open, sizeof sighting.open);
  return true;
}

static void do_range(void *context, int64_t index)
{
  one_pass *const job = context;
  token_range *const range = &job->ranges[index];
  range->least = m2po_tally_safe_least(job->bracket.low);
  for (int64_t start = range->start; start < range->end; start += M2PO_BLOCK) {
    const int64_t left = range->end - start;
    if (start % M2PO_CHUNK == 0) {
      job->evaluation.parts[start / M2PO_CHUNK] = (m2po_part){.measures = m2po_measures_none()};
    }
    if (!do_block(job, range, start, left < M2PO_BLOCK ? left : M2PO_BLOCK)) {
      range->given_up = true;
      return;
    }
  }
  if (job->evaluation.streams) {
    job->evaluation.kernels->fence();
  }
}

// Settles the open tokens of a block: dropped ones lose their gradient. Gives the loss of the kept
// ones.
static double settle_tokens(const one_pass *job, int64_t start, m2po_cut_reader *reader)
{
  double loss = 0.0;
  for (int64_t word = start; word < start + M2PO_BLOCK; word += M2PO_WORD_BITS) {
    uint64_t open = job->open[word / M2PO_WORD_BITS];
    for (; open != 0; open &= open - 1) {
      const int64_t position = word + __builtin_ctzll(open);
      if (m2po_cut_keeps_next(&job->cut, reader)) {
        loss += (double)job->slope[position];
      } else {
        job->slope[position] = 0.0F;
        job->keep[position] = 0;
      }
    }
  }
  return loss;
}

static bool any_open(const one_pass *job, int64_t start)
{
  uint64_t any = 0;
  for (int64_t word = 0; word < M2PO_BLOCK_WORDS; ++word) {
    any |= job->open[start / M2PO_WORD_BITS + word];
  }
  return any != 0;
}

static void settle_range(void *context, int64_t index)
{
  const one_pass *const job = context;
  const m2po_evaluation *const evaluation = &job->evaluation;
  const token_range *const range = &job->ranges[index];
  m2po_cut_reader reader = m2po_cut_reader_at(range->first);
  for (int64_t start = range->start; start < range->end; start += M2PO_BLOCK) {
    const int64_t left = range->end - start;
    const int64_t count = left < M2PO_BLOCK ? left : M2PO_BLOCK;
    const double loss = any_open(job, start) ? settle_tokens(job, start, &reader) : 0.0;
    // A term that overflows float32 has spoilt its slope, too: the total tells.
    const bool is_all = !evaluation->few || !isfinite(loss);
    evaluation->parts[start / M2PO_CHUNK].measures.loss +=
        is_all ? loss : m2po_evaluation_loss(evaluation, start, count);
  }
}

// Sums over all ranges.
typedef struct found_sums {
  int64_t constrained;
  int64_t above_count;
  m2po_kept below;
  m2po_kept up_to_high; ///< and the open ones
  m2po_exact all;
} found_sums;

static bool add_ranges(one_pass *job, found_sums *sums, m2po_square_list *squares)
{
  bool given_up = false;
  *sums = (found_sums){.constrained = 0};
  for (int64_t i = 0; i < job->range_count; ++i) {
    token_range *const range = &job->ranges[i];
    given_up = given_up || range->given_up;
    sums->constrained += range->constrained;
    sums->above_count += range->above_count;
    sums->up_to_high.count += range->open_count;
    m2po_tally_fold(&range->below, &sums->below.sum);
    m2po_tally_fold(&range->open, &sums->up_to_high.sum);
    m2po_tally_fold(&range->above, &sums->all);
    m2po_squares_trim(&range->squares);
    range->first = range->squares.first;
    m2po_squares_join(squares, &range->squares);
  }
  sums->below.count = sums->constrained - sums->above_count - sums->up_to_high.count;
  sums->up_to_high.count += sums->below.count;
  m2po_exact_add_exact(&sums->up_to_high.sum, &sums->below.sum);
  m2po_exact_add_exact(&sums->all, &sums->up_to_high.sum);
  return !given_up;
}

// Finds the cut, if it is inside the bracket.
static bool find_cut(one_pass *job, const found_sums *sums, m2po_squares *squares, m2po_kept *kept)
{
  const m2po_rule *const rule = &job->rule;
  job->cut = (m2po_cut){.value = INFINITY};
  if (isinf(rule->threshold) || m2po_affordable(rule, &sums->all, sums->constrained)) {
    *kept = (m2po_kept){sums->all, sums->constrained};
    return sums->above_count == 0;
  }
  if (!m2po_affordable(rule, &sums->below.sum, sums->below.count) ||
      m2po_affordable(rule, &sums->up_to_high.sum, sums->up_to_high.count)) {
    return false;
  }
  m2po_bin *const bins = malloc(M2PO_BINS * sizeof bins[0]);
  *kept = sums->below;
  const bool found = bins != NULL && m2po_find_cut(rule, squares, false, NULL, bins, kept,
                                                   &job->cut, NULL) == RFT_OK;
  free(bins);
  return found;
}

static void divide_ranges(one_pass *job, int64_t most)
{
  const int64_t count = job->evaluation.batch.count;
  const int64_t length = (job->evaluation.chunks + most - 1) / most * M2PO_CHUNK;
  for (int64_t start = 0; start < count; start += length) {
    token_range *const range = &job->ranges[job->range_count++];
    range->start = start;
    range->end = start + length < count ? start + length : count;
  }
}

static bool allocate(one_pass *job, int64_t threads)
{
  const int64_t count = job->evaluation.batch.count;
  const int64_t wanted = 1 + count / LEAST_RANGE;
  const int64_t most = wanted < threads ? wanted : threads;
  job->ranges = calloc((size_t)most, sizeof job->ranges[0]);
  job->open = malloc((size_t)(count / M2PO_BLOCK + 1) * M2PO_BLOCK / 8);
  if (job->ranges == NULL || job->open == NULL) {
    return false;
  }
  divide_ranges(job, most);
  return true;
}

// Everything but the report. False: not by this way.
static bool run(const rft_instance *instance, one_pass *job, found_sums *sums, m2po_kept *kept,
                m2po_measures *total)
{
  if (!allocate(job, instance->parallel == NULL ? 1 : MOST_RANGES)) {
    return false;
  }
  job->keep = job->mask.data;
  job->slope = (float *)(void *)job->evaluation.gradient.data;
  job->bracket =
      m2po_guess_bracket(instance, &job->rule, &job->evaluation.batch, &job->evaluation.pair);
  m2po_parallel_for(instance, job->range_count, do_range, job);
  m2po_square_list squares = {NULL, NULL};
  const bool done = add_ranges(job, sums, &squares) && find_cut(job, sums, squares.first, kept);
  if (done) {
    job->evaluation.keep = job->mask; // written by now, but for the open tokens of a range
    m2po_parallel_for(instance, job->range_count, settle_range, job);
  }
  m2po_squares_free(&squares);
  return done && m2po_evaluation_total(&job->evaluation, total, NULL) == RFT_OK;
}

static int32_t open_mask(one_pass *job, const rft_batch *batch, const rft_tensor *mask,
                         rft_error *error)
{
  int32_t code = m2po_selection_open_mask(mask, batch->logprob, &job->mask, error);
  if (code == RFT_OK) {
    code = rft_batch_view_check_overlap(&job->evaluation.batch, &job->mask, "mask", error);
  }
  if (code == RFT_OK && rft_view_present(&job->evaluation.gradient) &&
      rft_views_overlap(&job->mask, &job->evaluation.gradient)) {
    code = rft_fail(error, RFT_INVALID_ARGUMENT,
                    "mask: expected memory apart from the gradient, found it to overlap it");
  }
  return code;
}

// Can it be one pass? Selection and loss have to see the same log-ratios, and what the loss divides
// by may not wait for the selection or another rank. (The other modes than these two have not
// counted.)
static bool suits_one_pass(const rft_instance *instance, const one_pass *job,
                           const rft_collectives *collectives)
{
  const m2po_config *const config = &instance->config;
  const m2po_evaluation *const evaluation = &job->evaluation;
  return evaluation->kernels != NULL && config->denominator == M2PO_VALID &&
         (config->loss_agg_mode == M2PO_TOKEN_MEAN ||
          config->loss_agg_mode == M2PO_SEQ_MEAN_TOKEN_SUM) &&
         config->m2_reference == M2PO_CURRENT &&
         evaluation->gradient.element == RFT_ELEMENT_FLOAT32 &&
         m2po_stage_is_flat(&evaluation->gradient) && m2po_stage_is_flat(&job->mask) &&
         (collectives == NULL ||
          (RFT_HAS_FIELD(collectives, rft_collectives, all_reduce_sum) && collectives->size == 1));
}

int32_t m2po_select_evaluate(const rft_instance *instance, const rft_batch *batch,
                             const rft_collectives *collectives, double scale,
                             const rft_tensor *mask, rft_selection_report *report,
                             rft_output *output, rft_error *error)
{
  one_pass job = {.rule = m2po_rule_of(&instance->config),
                  .all_tokens = instance->config.selection == M2PO_ALL_TOKENS};
  const rft_reduction reduction = {.struct_size = sizeof reduction, .scale = scale};
  rft_error problem = {.struct_size = sizeof problem, .code = RFT_OK};
  found_sums sums;
  m2po_kept kept;
  m2po_measures total;
  int32_t code =
      m2po_evaluation_open(instance, batch, NULL, &reduction, output, &job.evaluation, &problem);
  if (code == RFT_OK) {
    code = open_mask(&job, batch, mask, &problem);
  }
  if (code == RFT_OK) {
    code = m2po_selection_check_report(report, &problem);
  }
  const bool done = code == RFT_OK && suits_one_pass(instance, &job, collectives) &&
                    run(instance, &job, &sums, &kept, &total);
  if (done) {
    const m2po_counts counts = {job.evaluation.weights.valid, job.evaluation.weights.sequences};
    m2po_selection_fill_report(&counts, sums.constrained, &sums.all, &kept, report);
    m2po_evaluation_report(&total, output);
  }
  free(job.ranges);
  free(job.open);
  m2po_evaluation_free(&job.evaluation);
  return done ? RFT_OK
              : select_then_evaluate(instance, batch, collectives, scale, mask, &problem, report,
                                     output, error);
}
