// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "gather.h"

#include "fault.h"
#include "support/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, FLOAT32_EXPONENTS = 256, MOST_RANGES = 64, LEAST_RANGE = 16 * M2PO_BLOCK };

// Sums of m of one range of positions. A float32 adds its mantissa to the bin of its exponent,
// which holds 2^40 of them; a float64 goes straight into the exact sum.
typedef struct tally_bins {
  uint64_t mantissas[FLOAT32_EXPONENTS];
  m2po_exact sum;
} tally_bins;

// The part of a micro-batch that one body of parallel_for reads: whole words of positions.
typedef struct token_range {
  int64_t start;
  int64_t end;
  int64_t constrained;
  int64_t candidates;
  int64_t first_candidate; ///< of the micro-batch: where this range's go
  tally_bins over;         ///< m of candidates
  tally_bins rest;         ///< m of the other constrained tokens
  m2po_fault fault;
} token_range;

typedef struct gathering {
  const m2po_config *config;
  const m2po_rule *rule;
  m2po_batch batch;
  const m2po_view *policy; ///< the one that m compares with the behavior policy
  const char *policy_name;
  bool wide;
  m2po_gathered *gathered;
  void *squares; ///< double or float, by `wide`
  token_range *ranges;
} gathering;

static void tally_add(tally_bins *tally, double square, bool wide)
{
  if (wide) {
    const m2po_parts parts = m2po_exact_parts(square);
    m2po_exact_add(&tally->sum, parts.mantissa, parts.exponent);
    return;
  }
  const float narrow = (float)square;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  const uint32_t exponent = bits >> 23;
  const uint32_t fraction = bits & 0x7FFFFF;
  tally->mantissas[exponent] += exponent == 0 ? fraction : fraction | 0x800000;
}

static void tally_fold(const tally_bins *tally, m2po_exact *sum)
{
  m2po_exact_add_exact(sum, &tally->sum);
  for (int exponent = 0; exponent < FLOAT32_EXPONENTS; ++exponent) {
    if (tally->mantissas[exponent] != 0) {
      m2po_exact_add(sum, tally->mantissas[exponent], (exponent == 0 ? 1 : exponent) - 150);
    }
  }
}

// One multiplication, rounded once.
static double square(double d, bool wide)
{
  return wide ? d * d : (double)((float)d * (float)d);
}

// A block of positions. Past the batch's end `mask` is 0.
typedef struct token_block {
  double policy[M2PO_BLOCK];
  double behavior[M2PO_BLOCK];
  double advantages[M2PO_BLOCK];
  double mask[M2PO_BLOCK];
  double square[M2PO_BLOCK];      ///< m of the tokens of T, 0 elsewhere
  double constrained[M2PO_BLOCK]; ///< 1 for the tokens of T, 0 elsewhere
} token_block;

static void load_block(const gathering *job, int64_t start, int64_t count, token_block *block)
{
  const m2po_batch *const batch = &job->batch;
  m2po_view_load(&batch->mask, batch->columns, start, count, block->mask);
  m2po_view_load(job->policy, batch->columns, start, count, block->policy);
  m2po_view_load(&batch->old_logprob, batch->columns, start, count, block->behavior);
  m2po_batch_load_advantages(batch, start, count, block->advantages);
  for (int64_t i = count; i < M2PO_BLOCK; ++i) {
    block->mask[i] = 0.0;
  }
}

// No branch in the loop, so that it becomes vector instructions.
static void compute_squares(token_block *block, bool wide, bool all_tokens)
{
  const double least = all_tokens ? -1.0 : 0.0; // of `along`, not included
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double d = m2po_log_ratio(block->policy[i], block->behavior[i], wide);
    const double m = square(d, wide);
    // 1 where the ratio moves the way that the advantage pushes.
    const double up = d > 0 ? 1.0 : 0.0;
    const double down = d < 0 ? 1.0 : 0.0;
    const double against = block->advantages[i] < 0 ? down : 0.0;
    const double along = block->advantages[i] > 0 ? up : against;
    const double in = along > least ? 1.0 : 0.0;
    block->constrained[i] = block->mask[i] != 0 ? in : 0.0;
    block->square[i] = block->constrained[i] != 0 ? m : 0.0;
  }
}

static bool is_clean(const token_block *block, bool float_mask)
{
  double dirty = 0.0;
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    // x - x is 0 for finite x only, and NaN is unequal to 0.
    const double nothing =
        (block->policy[i] - block->policy[i]) + (block->behavior[i] - block->behavior[i]) +
        (block->advantages[i] - block->advantages[i]) + (block->square[i] - block->square[i]);
    const double mask = block->mask[i];
    const double other = float_mask && mask != 1 ? 1.0 : 0.0;
    const double unusable = nothing != 0 ? 1.0 : other;
    dirty += mask != 0 ? unusable : 0.0;
  }
  return dirty == 0;
}

static bool has_fault(const gathering *job, token_range *range, m2po_fault_kind kind,
                      const char *tensor, int64_t position, double value)
{
  range->fault = (m2po_fault){kind, tensor, position, job->batch.columns, value};
  return true;
}

// Finds the first unusable value of a block that has one.
static bool find_fault(const gathering *job, token_range *range, const token_block *block,
                       int64_t i, int64_t position)
{
  const double mask = block->mask[i];
  if (m2po_element_is_float(job->batch.mask.element) && mask != 0 && mask != 1) {
    return has_fault(job, range, M2PO_NOT_A_MASK, "mask", position, mask);
  }
  if (mask == 0) {
    return false;
  }
  if (!isfinite(block->policy[i])) {
    return has_fault(job, range, M2PO_NOT_FINITE, job->policy_name, position, block->policy[i]);
  }
  if (!isfinite(block->behavior[i])) {
    return has_fault(job, range, M2PO_NOT_FINITE, "old_logprob", position, block->behavior[i]);
  }
  if (!isfinite(block->advantages[i])) {
    return has_fault(job, range, M2PO_NOT_FINITE, "advantages", position, block->advantages[i]);
  }
  if (isinf(block->square[i])) {
    const double d = m2po_log_ratio(block->policy[i], block->behavior[i], job->wide);
    return has_fault(job, range, M2PO_SQUARE_OVERFLOW, job->policy_name, position, d);
  }
  return false;
}

// Takes 64 positions, the bits of one word, into the range's sums.
static void take_word(const gathering *job, token_range *range, const token_block *block,
                      int64_t first, int64_t position)
{
  uint64_t valid = 0;
  uint64_t candidates = 0;
  for (int64_t bit = 0; bit < WORD_BITS; ++bit) {
    const int64_t i = first + bit;
    const bool over = block->constrained[i] != 0 && m2po_is_candidate(job->rule, block->square[i]);
    valid |= (uint64_t)(block->mask[i] != 0) << bit;
    candidates |= (uint64_t)over << bit;
    range->constrained += block->constrained[i] != 0;
    tally_add(&range->rest, over ? 0.0 : block->square[i], job->wide);
  }
  job->gathered->valid[position / WORD_BITS] = valid;
  job->gathered->candidate[position / WORD_BITS] = candidates;
  range->candidates += __builtin_popcountll(candidates);
  for (; candidates != 0; candidates &= candidates - 1) {
    tally_add(&range->over, block->square[first + __builtin_ctzll(candidates)], job->wide);
  }
}

// First reading: bits, counts and sums.
static void read_range(void *context, int64_t index)
{
  const gathering *const job = context;
  token_range *const range = &job->ranges[index];
  token_block block;
  memset(&block, 0, sizeof block);
  for (int64_t start = range->start; start < range->end; start += M2PO_BLOCK) {
    const int64_t left = range->end - start;
    const int64_t count = left < M2PO_BLOCK ? left : M2PO_BLOCK;
    load_block(job, start, count, &block);
    compute_squares(&block, job->wide, job->config->selection == M2PO_ALL_TOKENS);
    if (!is_clean(&block, m2po_element_is_float(job->batch.mask.element))) {
      int64_t i = 0;
      while (!find_fault(job, range, &block, i, start + i)) {
        ++i;
      }
      return;
    }
    for (int64_t first = 0; first < count; first += WORD_BITS) {
      take_word(job, range, &block, first, start + first);
    }
  }
}

static double square_at(const gathering *job, int64_t position)
{
  const m2po_view *const behavior = &job->batch.old_logprob;
  const int64_t columns = job->batch.columns;
  const double d = m2po_log_ratio(
      m2po_element_load_one(job->policy->element, m2po_view_at(job->policy, columns, position)),
      m2po_element_load_one(behavior->element, m2po_view_at(behavior, columns, position)),
      job->wide);
  return square(d, job->wide);
}

// Second reading: m of the candidates, now that their number is known.
static void read_candidates(void *context, int64_t index)
{
  const gathering *const job = context;
  const token_range *const range = &job->ranges[index];
  int64_t next = range->first_candidate;
  for (int64_t start = range->start; start < range->end; start += WORD_BITS) {
    uint64_t word = job->gathered->candidate[start / WORD_BITS];
    for (; word != 0; word &= word - 1) {
      const double m = square_at(job, start + __builtin_ctzll(word));
      if (job->wide) {
        ((double *)job->squares)[next++] = m;
      } else {
        ((float *)job->squares)[next++] = (float)m;
      }
    }
  }
}

static int64_t count_sequences(const m2po_batch *batch, const uint64_t *valid)
{
  int64_t sequences = 0;
  for (int64_t i = 0; i < batch->sequences; ++i) {
    const int64_t end = m2po_batch_sequence_start(batch, i + 1);
    int64_t position = m2po_batch_sequence_start(batch, i);
    while (position < end && !m2po_bit(valid, position)) {
      ++position;
    }
    sequences += position < end ? 1 : 0;
  }
  return sequences;
}

static int64_t divide_ranges(gathering *job, int64_t count, int64_t ranges)
{
  const int64_t words = (count + WORD_BITS - 1) / WORD_BITS;
  const int64_t length = (words + ranges - 1) / ranges * WORD_BITS;
  int64_t used = 0;
  for (int64_t start = 0; start < count; start += length) {
    job->ranges[used].start = start;
    job->ranges[used].end = start + length < count ? start + length : count;
    ++used;
  }
  return used;
}

// What both readings found, once all memory that is kept is there.
static void add_totals(const gathering *job, int64_t ranges, m2po_totals *totals)
{
  const int64_t words = (job->gathered->count + WORD_BITS - 1) / WORD_BITS;
  for (int64_t i = 0; i < words; ++i) {
    totals->valid += __builtin_popcountll(job->gathered->valid[i]);
  }
  totals->sequences += count_sequences(&job->batch, job->gathered->valid);
  for (int64_t i = 0; i < ranges; ++i) {
    totals->constrained += job->ranges[i].constrained;
    totals->candidates += job->ranges[i].candidates;
    tally_fold(&job->ranges[i].over, &totals->sum);
    tally_fold(&job->ranges[i].rest, &totals->sum);
    tally_fold(&job->ranges[i].rest, &totals->rest);
  }
}

static int32_t out_of_memory(rft_error *error)
{
  return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in selection_add");
}

static int32_t gather(const rft_instance *instance, gathering *job, m2po_squares *squares,
                      m2po_totals *totals, rft_error *error)
{
  const int64_t count = job->batch.count;
  const int64_t threads = instance->parallel == NULL ? 1 : MOST_RANGES;
  const int64_t most = 1 + (count / LEAST_RANGE);
  const int64_t wanted = most < threads ? most : threads;
  job->ranges = calloc((size_t)wanted, sizeof job->ranges[0]);
  if (job->ranges == NULL) {
    return out_of_memory(error);
  }
  const int64_t ranges = divide_ranges(job, count, wanted);
  m2po_parallel_for(instance, ranges, read_range, job);
  int64_t candidates = 0;
  for (int64_t i = 0; i < ranges; ++i) {
    if (job->ranges[i].fault.kind != M2PO_NO_FAULT) {
      return m2po_fault_report(&job->ranges[i].fault, error);
    }
    job->ranges[i].first_candidate = candidates;
    candidates += job->ranges[i].candidates;
  }
  if (candidates > 0) {
    job->squares = malloc((size_t)candidates * (job->wide ? sizeof(double) : sizeof(float)));
    if (job->squares == NULL) {
      return out_of_memory(error);
    }
    m2po_parallel_for(instance, ranges, read_candidates, job);
  }
  add_totals(job, ranges, totals);
  *squares = (m2po_squares){job->wide, candidates, job->squares};
  return RFT_OK;
}

static int32_t choose_policy(gathering *job, rft_error *error)
{
  const bool proximal = job->config->m2_reference == M2PO_PROXIMAL;
  if (proximal && !m2po_view_present(&job->batch.proximal_logprob)) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "proximal_logprob: expected a tensor, because m2_reference is \"proximal\", "
                    "found NULL");
  }
  job->policy = proximal ? &job->batch.proximal_logprob : &job->batch.logprob;
  job->policy_name = proximal ? "proximal_logprob" : "logprob";
  job->wide = m2po_is_wide(job->policy, &job->batch.old_logprob);
  return RFT_OK;
}

int32_t m2po_gather(const rft_instance *instance, const m2po_rule *rule, const rft_batch *source,
                    m2po_gathered *gathered, m2po_squares *squares, m2po_totals *totals,
                    rft_error *error)
{
  gathering job = {.config = &instance->config, .rule = rule};
  int32_t code = m2po_batch_open(source, &job.batch, error);
  if (code == RFT_OK) {
    code = choose_policy(&job, error);
  }
  if (code != RFT_OK) {
    return code;
  }
  const size_t words = (size_t)(job.batch.count / WORD_BITS) + 1;
  *gathered = (m2po_gathered){.rows = job.batch.rows,
                              .columns = job.batch.columns,
                              .ndim = source->logprob->ndim,
                              .count = job.batch.count,
                              .valid = calloc(words, sizeof(uint64_t)),
                              .candidate = calloc(words, sizeof(uint64_t))};
  job.gathered = gathered;
  code = gathered->valid == NULL || gathered->candidate == NULL
             ? out_of_memory(error)
             : gather(instance, &job, squares, totals, error);
  free(job.ranges);
  if (code != RFT_OK) {
    free(job.squares);
    free(gathered->valid);
    free(gathered->candidate);
  }
  return code;
}
