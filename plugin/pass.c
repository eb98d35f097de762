// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "pass.h"

#include "tally.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANGES = 64, LEAST_RANGE = 4 * M2PO_CHUNK };

// Where a batch, of which no metrics are wanted, or open tokens are fewer, all is done before
// another thread has woken up.
enum { LEAST_SHARED = 32 * M2PO_CHUNK, LEAST_SHARED_OPEN = 2048 };

// The part of the micro-batch that one body of parallel_for does: whole chunks.
struct m2po_range {
  int64_t start;
  int64_t end;
  int64_t constrained;
  int64_t above_count;
  int64_t open_count;
  double rounded_below; ///< sum of m below the bracket where it isn't exact, else 0
  m2po_exact below;
  m2po_exact over; ///< inside the bracket and above it
  m2po_exact open;
  m2po_square_list squares; ///< of the open tokens
  const m2po_squares *first;
  bool given_up; ///< this batch is for the general code
};

// Sums of m in progress, which would be much to hold for each range.
typedef struct range_tallies {
  m2po_tally below;
  m2po_tally over;
  m2po_tally open;
} range_tallies;

// ------------------------------------------------------------------------------------- one block

// One block at work.
typedef struct block_job {
  m2po_block block;
  m2po_slopes slopes;
  uint8_t *keep;
  m2po_valuation valuation;
  m2po_sighting sighting; ///< its glance at least
} block_job;

static void step(const m2po_pass *pass, range_tallies *tallies, block_job *job)
{
  const m2po_evaluation *const evaluation = &pass->evaluation;
  const m2po_kernels *const kernels = evaluation->kernels;
  m2po_sighting *const sighting = &job->sighting;
  kernels->step(&job->block, &pass->bracket, &evaluation->formula, pass->all_tokens, &job->slopes,
                job->keep, sighting, &job->valuation);
  if (!sighting->plain) {
    return; // nor is the valuation
  }
  m2po_tally_add_below(&tallies->below, kernels, sighting);
  if (sighting->glance.above_count != 0 || sighting->glance.open_places.count != 0) {
    m2po_tally_add_over(&tallies->over, kernels, pass->bracket.low, sighting);
  }
}

static void glance_at(const m2po_pass *pass, m2po_range *range, block_job *job)
{
  const m2po_evaluation *const evaluation = &pass->evaluation;
  m2po_glance *const glance = &job->sighting.glance;
  if (pass->keeps_all) {
    evaluation->kernels->keep_all(&job->block, &evaluation->formula, &job->slopes, job->keep,
                                  glance, &job->valuation);
  } else {
    evaluation->kernels->sift(&job->block, &pass->bracket, &evaluation->formula, &job->slopes,
                              job->keep, glance, &job->valuation);
  }
  range->rounded_below += glance->below_sum;
}

// Of a block whose m are all finite.
static bool collect_open(m2po_range *range, m2po_tally *tally, const block_job *job)
{
  const m2po_block *const block = &job->block;
  const m2po_places *const open = &job->sighting.glance.open_places;
  const int64_t count = open->count;
  float squares[M2PO_BLOCK];
  bool finite = true;
  for (int64_t i = 0; i < count; ++i) {
    const int16_t at = open->place[i];
    const float d = block->policy[at] - block->reference[at];
    squares[i] = d * d;
    finite = finite && isfinite(block->advantages[at]);
  }
  m2po_tally_add_floats(tally, squares, count);
  range->open_count += count;
  return finite && m2po_squares_append_floats(&range->squares, squares, count);
}

// False: not by this way.
static bool do_block(m2po_pass *pass, m2po_range *range, range_tallies *tallies, int64_t start,
                     int64_t count)
{
  const m2po_evaluation *const evaluation = &pass->evaluation;
  uint8_t *const mask = (uint8_t *)pass->mask.data + start;
  m2po_part *const part = &evaluation->parts[start / M2PO_CHUNK];
  m2po_stage stage;
  float slope_copy[M2PO_BLOCK];
  uint8_t keep_copy[M2PO_BLOCK];
  block_job job;
  job.slopes = m2po_evaluation_place(evaluation, start, count, slope_copy);
  job.keep = count == M2PO_BLOCK ? mask : keep_copy;
  job.slopes.past_caches &= (uintptr_t)mask % M2PO_LINE == 0;
  if (!m2po_stage_load(&evaluation->source, start, count, &stage, &job.block)) {
    return false;
  }
  if (pass->exact) {
    step(pass, tallies, &job);
  } else {
    glance_at(pass, range, &job);
  }
  range->constrained += job.sighting.glance.constrained;
  range->above_count += job.sighting.glance.above_count;
  if (!m2po_evaluation_take(evaluation, &job.block, start, count, job.slopes.to, &job.valuation,
                            part) ||
      !collect_open(range, &tallies->open, &job)) {
    return false;
  }
  if (job.keep == keep_copy) {
    memcpy(mask, keep_copy, (size_t)count);
  }
  part->measures.loss += evaluation->correction * job.valuation.sum;
  memcpy(pass->open + start / M2PO_WORD_BITS, job.sighting.glance.open, M2PO_BLOCK / 8);
  return true;
}

static void do_range(void *context, int64_t index)
{
  m2po_pass *const pass = context;
  m2po_range *const range = &pass->ranges[index];
  range_tallies tallies = {.over = {{0}, {{0}}}};
  for (int64_t start = range->start; start < range->end; start += M2PO_BLOCK) {
    const int64_t left = range->end - start;
    if (start % M2PO_CHUNK == 0) {
      pass->evaluation.parts[start / M2PO_CHUNK] = (m2po_part){.measures = m2po_measures_none()};
    }
    if (!do_block(pass, range, &tallies, start, left < M2PO_BLOCK ? left : M2PO_BLOCK)) {
      range->given_up = true;
      return;
    }
  }
  if (pass->exact) {
    m2po_tally_fold(&tallies.below, &range->below);
    m2po_tally_fold(&tallies.over, &range->over);
  }
  m2po_tally_fold(&tallies.open, &range->open);
  m2po_squares_trim(&range->squares);
  if (pass->evaluation.streams) {
    pass->evaluation.kernels->fence();
  }
}

// ------------------------------------------------------------------------------- the open tokens

static double loss_in_double(const m2po_evaluation *evaluation, int64_t start, int64_t end)
{
  double loss = 0.0;
  for (; start < end; start += M2PO_BLOCK) {
    const int64_t count = end - start < M2PO_BLOCK ? end - start : M2PO_BLOCK;
    loss += m2po_evaluation_loss(evaluation, start, count);
  }
  return loss;
}

// The open positions of a chunk.
typedef struct open_chunk {
  int64_t start;
  int64_t end;
  int64_t count;
  int16_t place[M2PO_CHUNK]; ///< [count], from `start` on
} open_chunk;

// Their memory, which later ones have pushed out of the caches, is asked for as they are found.
static void find_open(const m2po_pass *pass, int64_t start, int64_t end, open_chunk *found)
{
  const float *const slopes = pass->evaluation.slopes;
  const uint8_t *const mask = pass->mask.data;
  int64_t count = 0;
  for (int64_t word = start; word < end; word += M2PO_WORD_BITS) {
    uint64_t open = pass->open[word / M2PO_WORD_BITS];
    for (; open != 0; open &= open - 1) {
      const int64_t position = word + __builtin_ctzll(open);
      __builtin_prefetch(slopes + position, 1);
      __builtin_prefetch(mask + position, 1);
      found->place[count++] = (int16_t)(position - start);
    }
  }
  found->start = start;
  found->end = end;
  found->count = count;
}

// Dropped ones lose their gradient. Gives the loss of the kept ones. No branch, which would be
// taken at random.
static double settle_tokens(const m2po_pass *pass, const open_chunk *chunk, m2po_cut_reader *reader)
{
  float *const slopes = pass->evaluation.slopes + chunk->start;
  uint8_t *const mask = (uint8_t *)pass->mask.data + chunk->start;
  double loss = 0.0;
  for (int64_t i = 0; i < chunk->count; ++i) {
    const int16_t at = chunk->place[i];
    const bool stays = m2po_cut_keeps_next(&pass->cut, reader);
    const float choice[2] = {0.0F, slopes[at]};
    slopes[at] = choice[stays];
    mask[at] = stays;
    loss += (double)choice[stays];
  }
  return loss;
}

static int64_t end_of_chunk(const m2po_range *range, int64_t start)
{
  return start + M2PO_CHUNK < range->end ? start + M2PO_CHUNK : range->end;
}

static void settle_chunk(const m2po_pass *pass, const open_chunk *chunk, m2po_cut_reader *reader)
{
  const m2po_evaluation *const evaluation = &pass->evaluation;
  double *const loss = &evaluation->parts[chunk->start / M2PO_CHUNK].measures.loss;
  *loss += evaluation->correction * settle_tokens(pass, chunk, reader);
  if (evaluation->few && isfinite(*loss)) { // not a term that overflows float32
    *loss = loss_in_double(evaluation, chunk->start, chunk->end);
  }
}

static void settle_range(void *context, int64_t index)
{
  const m2po_pass *const pass = context;
  const m2po_range *const range = &pass->ranges[index];
  if (range->open_count == 0 && !pass->evaluation.few) {
    return;
  }
  m2po_cut_reader reader = m2po_cut_reader_at(range->first);
  open_chunk chunks[2]; // one to settle, and the next, whose memory is on its way
  int current = 0;
  find_open(pass, range->start, end_of_chunk(range, range->start), &chunks[current]);
  for (int64_t next = range->start + M2PO_CHUNK; next < range->end; next += M2PO_CHUNK) {
    find_open(pass, next, end_of_chunk(range, next), &chunks[1 - current]);
    settle_chunk(pass, &chunks[current], &reader);
    current = 1 - current;
  }
  settle_chunk(pass, &chunks[current], &reader);
}

// ------------------------------------------------------------------------------------- all ranges

typedef struct range_sums {
  int64_t constrained;
  int64_t above_count;
  m2po_kept below;
  m2po_kept up_to_high; ///< and the open ones
  double doubt;         ///< by which both sums may be too small
  m2po_exact over;      ///< inside the bracket and above it
} range_sums;

static m2po_exact exact_of(double value)
{
  m2po_exact sum = {{0}};
  const m2po_parts parts = m2po_exact_parts(value);
  m2po_exact_add(&sum, parts.mantissa, parts.exponent);
  return sum;
}

// How far a sum of rounded sums may be off, as part of it: at most what the kernel says of a
// block's, and a rounding for each.
static double error_of(const m2po_pass *pass)
{
  const double blocks = (double)pass->evaluation.batch.count / M2PO_BLOCK;
  return (pass->keeps_all ? 0x1p-18 : 0x1p-46) * 1.01 + (blocks + MOST_RANGES) * 0x1p-52;
}

// False: a range has given up.
static bool add_ranges(m2po_pass *pass, range_sums *sums, m2po_square_list *squares)
{
  bool given_up = false;
  double rounded = 0;
  *sums = (range_sums){.constrained = 0};
  for (int64_t i = 0; i < pass->range_count; ++i) {
    m2po_range *const range = &pass->ranges[i];
    given_up = given_up || range->given_up;
    sums->constrained += range->constrained;
    sums->above_count += range->above_count;
    sums->up_to_high.count += range->open_count;
    rounded += range->rounded_below;
    if (pass->exact) {
      m2po_exact_add_exact(&sums->below.sum, &range->below);
      m2po_exact_add_exact(&sums->over, &range->over);
    }
    m2po_exact_add_exact(&sums->up_to_high.sum, &range->open);
    range->first = range->squares.first;
    m2po_squares_join(squares, &range->squares);
  }
  if (!isfinite(rounded)) {
    return false;
  }
  if (!pass->exact) {
    const double error = error_of(pass) * rounded;
    sums->below.sum = exact_of(rounded - error);
    sums->doubt = 2 * error;
  }
  sums->below.count = sums->constrained - sums->above_count - sums->up_to_high.count;
  sums->up_to_high.count += sums->below.count;
  m2po_exact_add_exact(&sums->up_to_high.sum, &sums->below.sum);
  return !given_up;
}

typedef enum affordable { AFFORDABLE, TOO_DEAR, UNKNOWN } affordable;

// `kept` may be more by what is in doubt.
static affordable judge(const m2po_rule *rule, const m2po_kept *kept, double doubt)
{
  m2po_exact most = exact_of(doubt);
  m2po_exact_add_exact(&most, &kept->sum);
  return m2po_affordable(rule, &most, kept->count)        ? AFFORDABLE
         : m2po_affordable(rule, &kept->sum, kept->count) ? UNKNOWN
                                                          : TOO_DEAR;
}

// Finds the cut among the open tokens, where it is known to be.
static m2po_outcome find_cut_inside(m2po_pass *pass, const range_sums *sums, m2po_squares *squares,
                                    m2po_kept *kept)
{
  m2po_bin *const bins = malloc(M2PO_BINS * sizeof bins[0]);
  *kept = sums->below;
  const bool found = bins != NULL && m2po_find_cut(&pass->rule, squares, false, NULL, bins, kept,
                                                   &pass->cut, NULL) == RFT_OK;
  free(bins);
  // By the least that the sums may be, no more can be kept; by the most, not even this, perhaps.
  return !found                                                ? M2PO_NO_PASS
         : judge(&pass->rule, kept, sums->doubt) == AFFORDABLE ? M2PO_PASSED
                                                               : M2PO_UNDECIDED;
}

static m2po_outcome find_cut(m2po_pass *pass, const range_sums *sums, m2po_squares *squares,
                             m2po_kept *kept)
{
  const m2po_rule *const rule = &pass->rule;
  const affordable all =
      isinf(rule->threshold) ? AFFORDABLE : judge(rule, &sums->up_to_high, sums->doubt);
  const affordable least = judge(rule, &sums->below, sums->doubt);
  pass->cut = (m2po_cut){.value = INFINITY};
  *kept = sums->up_to_high;
  if (all == AFFORDABLE) {
    return sums->above_count == 0 ? M2PO_PASSED : M2PO_CUT_ELSEWHERE;
  }
  if (all == UNKNOWN || least == UNKNOWN) {
    return M2PO_UNDECIDED;
  }
  return least == TOO_DEAR ? M2PO_CUT_ELSEWHERE : find_cut_inside(pass, sums, squares, kept);
}

static bool divide(const rft_instance *instance, m2po_pass *pass)
{
  const int64_t count = pass->evaluation.batch.count;
  const int64_t wanted = 1 + count / LEAST_RANGE;
  const bool shared = instance->parallel != NULL && (pass->exact || count >= LEAST_SHARED);
  const int64_t useful = shared ? MOST_RANGES : 1;
  const int64_t most = wanted < useful ? wanted : useful;
  const int64_t length = (pass->evaluation.chunks + most - 1) / most * M2PO_CHUNK;
  pass->ranges = calloc((size_t)most, sizeof pass->ranges[0]);
  pass->open = malloc((size_t)(count / M2PO_BLOCK + 1) * M2PO_BLOCK / 8);
  if (pass->ranges == NULL || pass->open == NULL) {
    return false;
  }
  pass->range_count = 0;
  for (int64_t start = 0; start < count; start += length) {
    m2po_range *const range = &pass->ranges[pass->range_count++];
    range->start = start;
    range->end = start + length < count ? start + length : count;
    range->squares = m2po_squares_begin(m2po_threads(instance));
  }
  return true;
}

static void settle(const rft_instance *instance, m2po_pass *pass, int64_t open_count)
{
  if (open_count >= LEAST_SHARED_OPEN || pass->evaluation.few) {
    m2po_parallel_for(instance, pass->range_count, settle_range, pass);
  } else {
    m2po_serial_for(pass->range_count, settle_range, pass);
  }
}

static m2po_outcome run(const rft_instance *instance, m2po_pass *pass, m2po_square_list *squares,
                        m2po_found *found)
{
  range_sums sums;
  m2po_parallel_for(instance, pass->range_count, do_range, pass);
  if (!add_ranges(pass, &sums, squares)) {
    return M2PO_NO_PASS;
  }
  const m2po_outcome outcome = find_cut(pass, &sums, squares->first, &found->kept);
  if (outcome != M2PO_PASSED) {
    return outcome;
  }
  pass->evaluation.keep = pass->mask; // written by now, but for the open tokens of a range
  settle(instance, pass, sums.up_to_high.count - sums.below.count);
  found->constrained = sums.constrained;
  found->sum = sums.below.sum;
  m2po_exact_add_exact(&found->sum, &sums.over);
  return M2PO_PASSED;
}

m2po_outcome m2po_pass_run(const rft_instance *instance, m2po_pass *pass, m2po_found *found)
{
  m2po_square_list squares = m2po_squares_begin(1);
  const m2po_outcome outcome =
      divide(instance, pass) ? run(instance, pass, &squares, found) : M2PO_NO_PASS;
  m2po_squares_free(&squares);
  free(pass->ranges);
  free(pass->open);
  return outcome;
}
