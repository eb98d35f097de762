// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "gather.h"

#include "inputs.h"
#include "stage.h"
#include "support/error.h"
#include "tally.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANGES = 64, LEAST_RANGE = 64 * M2PO_BLOCK };

// The part of a micro-batch that one body of parallel_for reads: whole blocks of positions.
typedef struct token_range {
  int64_t start;
  int64_t end;
  int64_t constrained;
  int64_t candidates;
  m2po_exact over; ///< m of candidates
  m2po_exact rest; ///< m of the other constrained tokens
  m2po_square_list squares;
  m2po_fault fault;
  bool out_of_memory;
} token_range;

// Those sums in progress, which would be much to hold for each range.
typedef struct range_tallies {
  m2po_tally over;
  m2po_tally rest;
} range_tallies;

typedef struct gathering {
  const m2po_config *config;
  const m2po_rule *rule;
  const m2po_kernels *kernels; ///< NULL where the batch does not fit them
  m2po_bracket bracket;        ///< for them: candidates are open
  rft_batch_view batch;
  m2po_pair pair; ///< the policy that m compares, relative to the behavior policy
  m2po_source source;
  m2po_gathered *gathered;
  token_range *ranges;
} gathering;

static const rft_view every_token = {.element = RFT_ELEMENT_UNSUPPORTED};

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

static m2po_fault square_fault(const gathering *job, int64_t position, double log_ratio)
{
  return (m2po_fault){M2PO_SQUARE_OVERFLOW, job->pair.policy_name, position, job->batch.columns,
                      log_ratio};
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
  *fault = square_fault(job, start + i, block->inputs.log_ratio[i]);
  return false;
}

// The 64 flags from `first` on that are not 0, as the bits of a word.
static uint64_t pack(const double flags[M2PO_BLOCK], int64_t first)
{
  uint64_t word = 0;
  for (int bit = 0; bit < M2PO_WORD_BITS; ++bit) {
    word |= (uint64_t)(flags[first + bit] != 0) << bit;
  }
  return word;
}

static bool add_candidate(token_range *range, m2po_tally *over, double square, bool wide)
{
  m2po_tally_add(over, square, wide);
  ++range->candidates;
  range->out_of_memory = !m2po_squares_append(&range->squares, wide, square);
  return !range->out_of_memory;
}

// A block in double, which takes everything and says what is wrong.
static bool read_block(const gathering *job, token_range *range, range_tallies *tallies,
                       int64_t start, int64_t count)
{
  const bool wide = job->pair.wide;
  token_block block;
  m2po_inputs_load(&job->batch, &job->pair, start, count, &block.inputs);
  compute_squares(&block, wide, job->config->selection == M2PO_ALL_TOKENS);
  if (!m2po_inputs_check(&job->batch, &job->pair, start, &block.inputs, &range->fault) ||
      !check_squares(job, &block, start, &range->fault)) {
    return false;
  }
  double candidate[M2PO_BLOCK];
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double over = m2po_is_candidate(job->rule, block.square[i]) ? 1.0 : 0.0;
    candidate[i] = block.constrained[i] != 0 ? over : 0.0;
  }
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    if (candidate[i] == 0) {
      m2po_tally_add(&tallies->rest, block.square[i], wide);
    } else if (!add_candidate(range, &tallies->over, block.square[i], wide)) {
      return false;
    }
  }
  range->constrained += (int64_t)m2po_sum(block.constrained);
  for (int64_t first = 0; first < count; first += M2PO_WORD_BITS) {
    const int64_t word = (start + first) / M2PO_WORD_BITS;
    job->gathered->valid[word] = pack(block.inputs.mask, first);
    job->gathered->candidate[word] = pack(candidate, first);
  }
  return true;
}

// The squares of a block's candidates, in order.
static int64_t list_candidates(const m2po_sighting *sighting, float squares[M2PO_BLOCK])
{
  int64_t count = 0;
  for (int64_t first = 0; first < M2PO_BLOCK; first += M2PO_WORD_BITS) {
    uint64_t open = sighting->glance.open[first / M2PO_WORD_BITS];
    for (; open != 0; open &= open - 1) {
      squares[count++] = sighting->over[first + __builtin_ctzll(open)];
    }
  }
  return count;
}

static bool add_candidates(const gathering *job, token_range *range, m2po_tally *over,
                           m2po_sighting *sighting)
{
  float squares[M2PO_BLOCK];
  const int64_t count = list_candidates(sighting, squares);
  if (count == 0) {
    return true;
  }
  m2po_tally_add_over(over, job->kernels, job->bracket.low, sighting);
  range->candidates += count;
  range->out_of_memory = !m2po_squares_append_floats(&range->squares, squares, count);
  return !range->out_of_memory;
}

// One block by the kernels. *done: they took it, and all that is left to do is in the result.
static bool read_fast(const gathering *job, token_range *range, range_tallies *tallies,
                      int64_t start, int64_t count, bool *done)
{
  m2po_stage stage;
  m2po_block block;
  m2po_sighting sighting;
  *done = false;
  if (!m2po_stage_load(&job->source, start, count, &stage, &block)) {
    return true;
  }
  job->kernels->sight(&block, &job->bracket, job->config->selection == M2PO_ALL_TOKENS, &sighting);
  if (!sighting.plain) {
    return true;
  }
  *done = true;
  range->constrained += sighting.glance.constrained;
  m2po_tally_add_below(&tallies->rest, job->kernels, &sighting);
  const int64_t word = start / M2PO_WORD_BITS;
  const size_t bytes = (size_t)((count + M2PO_WORD_BITS - 1) / M2PO_WORD_BITS) * sizeof(uint64_t);
  memcpy(job->gathered->valid + word, sighting.valid, bytes);
  memcpy(job->gathered->candidate + word, sighting.glance.open, bytes);
  return add_candidates(job, range, &tallies->over, &sighting);
}

static void read_range(void *context, int64_t index)
{
  const gathering *const job = context;
  token_range *const range = &job->ranges[index];
  range_tallies tallies = {.over = {{0}, {{0}}}};
  for (int64_t start = range->start; start < range->end; start += M2PO_BLOCK) {
    const int64_t left = range->end - start;
    const int64_t count = left < M2PO_BLOCK ? left : M2PO_BLOCK;
    bool done = false;
    if (job->kernels != NULL && !read_fast(job, range, &tallies, start, count, &done)) {
      return;
    }
    if (!done && !read_block(job, range, &tallies, start, count)) {
      return;
    }
  }
  m2po_tally_fold(&tallies.over, &range->over);
  m2po_tally_fold(&tallies.rest, &range->rest);
  m2po_squares_trim(&range->squares);
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

static int64_t divide_ranges(gathering *job, int64_t count, int64_t ranges, int64_t at_once)
{
  const int64_t blocks = (count + M2PO_BLOCK - 1) / M2PO_BLOCK;
  const int64_t length = (blocks + ranges - 1) / ranges * M2PO_BLOCK;
  int64_t used = 0;
  for (int64_t start = 0; start < count; start += length) {
    job->ranges[used].start = start;
    job->ranges[used].end = start + length < count ? start + length : count;
    job->ranges[used].squares = m2po_squares_begin(at_once);
    ++used;
  }
  return used;
}

// What was found, once all memory that is kept is there.
static void add_totals(const gathering *job, int64_t ranges, m2po_totals *totals)
{
  const int64_t words = (job->gathered->count + M2PO_WORD_BITS - 1) / M2PO_WORD_BITS;
  for (int64_t i = 0; i < words; ++i) {
    totals->valid += __builtin_popcountll(job->gathered->valid[i]);
  }
  totals->sequences += count_sequences(&job->batch, job->gathered->valid);
  for (int64_t i = 0; i < ranges; ++i) {
    totals->constrained += job->ranges[i].constrained;
    totals->candidates += job->ranges[i].candidates;
    m2po_exact_add_exact(&totals->sum, &job->ranges[i].over);
    m2po_exact_add_exact(&totals->sum, &job->ranges[i].rest);
    m2po_exact_add_exact(&totals->rest, &job->ranges[i].rest);
  }
}

static int32_t out_of_memory(rft_error *error)
{
  return rft_fail(error, RFT_RESOURCE_EXHAUSTED, "m2po: out of memory in selection_add");
}

// The first thing that went wrong, in token order.
static int32_t check_ranges(const gathering *job, int64_t ranges, rft_error *error)
{
  for (int64_t i = 0; i < ranges; ++i) {
    if (job->ranges[i].out_of_memory) {
      return out_of_memory(error);
    }
    if (job->ranges[i].fault.kind != M2PO_NO_FAULT) {
      return m2po_fault_report(&job->ranges[i].fault, error);
    }
  }
  return RFT_OK;
}

static int32_t gather(const rft_instance *instance, gathering *job, m2po_square_list *squares,
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
  const int64_t ranges = divide_ranges(job, count, wanted, m2po_threads(instance));
  m2po_parallel_for(instance, ranges, read_range, job);
  m2po_square_list found = m2po_squares_begin(1);
  for (int64_t i = 0; i < ranges; ++i) {
    m2po_squares_join(&found, &job->ranges[i].squares);
  }
  const int32_t code = check_ranges(job, ranges, error);
  if (code != RFT_OK) {
    m2po_squares_free(&found);
    return code;
  }
  add_totals(job, ranges, totals);
  job->gathered->squares = found.first;
  m2po_squares_join(squares, &found);
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
                    m2po_gathered *gathered, m2po_square_list *squares, m2po_totals *totals,
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
  const float bound = m2po_candidate_bound(rule);
  job.bracket = (m2po_bracket){bound, FLT_MAX};
  job.kernels = m2po_stage_fits(&job.batch, &job.pair) ? instance->kernels : NULL;
  job.source = m2po_source_of(&job.batch, &job.pair, &every_token);
  const size_t words = (size_t)(job.batch.count / M2PO_WORD_BITS) + 1;
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
    free(gathered->valid);
    free(gathered->candidate);
  }
  return code;
}
