// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "gather.h"

#include "inputs.h"
#include "support/error.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_BITS = 64, FLOAT32_EXPONENTS = 256, MOST_RANGES = 64, LEAST_RANGE = 64 * M2PO_BLOCK };

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
  rft_batch_view batch;
  m2po_pair pair; ///< the policy that m compares, relative to the behavior policy
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

// One block at work.
typedef struct token_block {
  m2po_inputs inputs;
  double square[M2PO_BLOCK];      ///< m of the tokens of T, 0 elsewhere
  double constrained[M2PO_BLOCK]; ///< 1 for the tokens of T, 0 elsewhere
} token_block;

// No branch in the loop, so that it becomes vector instructions.
static void compute_squares(token_block *block, bool wide, bool all_tokens)
{
  const m2po_inputs *const inputs = &block->inputs;
  const double least = all_tokens ? -1.0 : 0.0; // of `along`, not included
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double d = inputs->log_ratio[i];
    const double m = square(d, wide);
    // 1 where the ratio moves the way that the advantage pushes.
    const double up = d > 0 ? 1.0 : 0.0;
    const double down = d < 0 ? 1.0 : 0.0;
    const double against = inputs->advantages[i] < 0 ? down : 0.0;
    const double along = inputs->advantages[i] > 0 ? up : against;
    const double in = along > least ? 1.0 : 0.0;
    const double constrained = inputs->mask[i] != 0 ? in : 0.0;
    block->constrained[i] = constrained;
    block->square[i] = constrained != 0 ? m : 0.0;
  }
}

// Is every square finite? If not, *fault is the first that isn't.
static bool check_squares(const gathering *job, const token_block *block, int64_t start,
                          m2po_fault *fault)
{
  if (!isinf(m2po_largest(block->square))) {
    return true;
  }
  int64_t i = 0;
  while (!isinf(block->square[i])) {
    ++i;
  }
  *fault = (m2po_fault){M2PO_SQUARE_OVERFLOW, job->pair.policy_name, start + i, job->batch.columns,
                        block->inputs.log_ratio[i]};
  return false;
}

// The 64 flags from `first` on that are not 0, as the bits of a word.
static uint64_t pack(const double flags[M2PO_BLOCK], int64_t first)
{
  uint64_t word = 0;
  for (int bit = 0; bit < WORD_BITS; ++bit) {
    word |= (uint64_t)(flags[first + bit] != 0) << bit;
  }
  return word;
}

// Takes the squares of T into the range's sums, and says where the candidates are: their squares
// move from `square` to the sum of candidates.
static void take_squares(const gathering *job, token_range *range, token_block *block,
                         double candidate[M2PO_BLOCK])
{
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double over = m2po_is_candidate(job->rule, block->square[i]) ? 1.0 : 0.0;
    candidate[i] = block->constrained[i] != 0 ? over : 0.0;
  }
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    if (candidate[i] != 0) { // rare
      tally_add(&range->over, block->square[i], job->pair.wide);
      block->square[i] = 0.0;
    }
  }
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    tally_add(&range->rest, block->square[i], job->pair.wide);
  }
  range->candidates += (int64_t)m2po_sum(candidate);
  range->constrained += (int64_t)m2po_sum(block->constrained);
}

// First reading: bits, counts and sums.
static void read_range(void *context, int64_t index)
{
  const gathering *const job = context;
  token_range *const range = &job->ranges[index];
  token_block block;
  for (int64_t start = range->start; start < range->end; start += M2PO_BLOCK) {
    const int64_t left = range->end - start;
    const int64_t count = left < M2PO_BLOCK ? left : M2PO_BLOCK;
    m2po_inputs_load(&job->batch, &job->pair, start, count, &block.inputs);
    compute_squares(&block, job->pair.wide, job->config->selection == M2PO_ALL_TOKENS);
    if (!m2po_inputs_check(&job->batch, &job->pair, start, &block.inputs, &range->fault) ||
        !check_squares(job, &block, start, &range->fault)) {
      return;
    }
    double candidate[M2PO_BLOCK];
    take_squares(job, range, &block, candidate);
    for (int64_t first = 0; first < count; first += WORD_BITS) {
      const int64_t word = (start + first) / WORD_BITS;
      job->gathered->valid[word] = pack(block.inputs.mask, first);
      job->gathered->candidate[word] = pack(candidate, first);
    }
  }
}

static double square_at(const gathering *job, int64_t position)
{
  const m2po_pair *const pair = &job->pair;
  double policy;
  double behavior;
  rft_view_load(pair->policy, position, 1, &policy);
  rft_view_load(pair->reference, position, 1, &behavior);
  return square(m2po_log_ratio(policy, behavior, pair->wide), pair->wide);
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
      if (job->pair.wide) {
        ((double *)job->squares)[next++] = m;
      } else {
        ((float *)job->squares)[next++] = (float)m;
      }
    }
  }
}

static int64_t count_sequences(const rft_batch_view *batch, const uint64_t *valid)
{
  int64_t sequences = 0;
  for (int64_t i = 0; i < batch->sequences; ++i) {
    const int64_t end = rft_batch_view_sequence_start(batch, i + 1);
    int64_t position = rft_batch_view_sequence_start(batch, i);
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
    job->squares = malloc((size_t)candidates * (job->pair.wide ? sizeof(double) : sizeof(float)));
    if (job->squares == NULL) {
      return out_of_memory(error);
    }
    m2po_parallel_for(instance, ranges, read_candidates, job);
  }
  add_totals(job, ranges, totals);
  *squares = (m2po_squares){job->pair.wide, candidates, job->squares, 0};
  return RFT_OK;
}

static int32_t choose_pair(gathering *job, rft_error *error)
{
  const bool proximal = job->config->m2_reference == M2PO_PROXIMAL;
  if (proximal && !rft_view_present(&job->batch.proximal_logprob)) {
    return rft_fail(error, RFT_INVALID_ARGUMENT,
                    "proximal_logprob: expected a tensor, because m2_reference is \"proximal\", "
                    "found NULL");
  }
  job->pair = m2po_pair_of(proximal ? &job->batch.proximal_logprob : &job->batch.logprob,
                           proximal ? "proximal_logprob" : "logprob", &job->batch.old_logprob,
                           "old_logprob");
  return RFT_OK;
}

int32_t m2po_gather(const rft_instance *instance, const m2po_rule *rule, const rft_batch *source,
                    m2po_gathered *gathered, m2po_squares *squares, m2po_totals *totals,
                    rft_error *error)
{
  gathering job = {.config = &instance->config, .rule = rule};
  int32_t code = rft_batch_view_open(source, &job.batch, error);
  if (code == RFT_OK) {
    code = choose_pair(&job, error);
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
