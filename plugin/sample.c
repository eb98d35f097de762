// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "sample.h"

#include <float.h>
#include <math.h>
#include <string.h>

// The sample: blocks of runs of tokens (a run is two cache lines of float32), a run in each stretch
// of the batch at a place of its own, so that no pattern hides from it.
enum {
  RUN = 32,
  RUNS = M2PO_BLOCK / RUN, // of a block
  LEAST_COUNT = 32 * M2PO_BLOCK,
  FIRST_LOOK = 2 // blocks
};

// Squares over the bound are counted by size: 64 bins from one power of two to the next.
enum { BIN_SHIFT = 17, BINS = 1024 };

typedef struct square_bin {
  double count;
  double sum;
  double sum_of_squares;
} square_bin;

typedef struct square_sample {
  square_bin bins[BINS]; ///< the first: up to the bound, which are kept whatever comes
  int32_t bound;         ///< as bits, which sort as the floats do
} square_sample;

static int32_t bits_of(float value)
{
  int32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

// The largest float of a bin.
static float top_of(const square_sample *sample, int64_t bin)
{
  const int64_t bits = sample->bound + (bin << BIN_SHIFT);
  const int32_t capped = bits < bits_of(FLT_MAX) ? (int32_t)bits : bits_of(FLT_MAX);
  float value;
  memcpy(&value, &capped, sizeof value);
  return value;
}

static void add_square(square_sample *sample, float square)
{
  const int64_t bin = 1 + ((bits_of(square) - sample->bound - 1) >> BIN_SHIFT);
  square_bin *const at = &sample->bins[bin < BINS ? bin : BINS - 1];
  const double m = (double)square;
  at->count += 1;
  at->sum += m;
  at->sum_of_squares += m * m;
}

// What kernels saw of a block: all of T, and that m is over the bound where the bit says so.
static void add_block(square_sample *sample, const m2po_sighting *sighting)
{
  int64_t over = 0;
  for (int64_t word = 0; word < M2PO_BLOCK_WORDS; ++word) {
    for (uint64_t open = sighting->glance.open[word]; open != 0; open &= open - 1) {
      add_square(sample, sighting->over[word * M2PO_WORD_BITS + __builtin_ctzll(open)]);
      ++over;
    }
  }
  sample->bins[0].count += (double)(sighting->glance.constrained - over);
  sample->bins[0].sum += sighting->glance.below_sum;
}

// A number in [0, bound) that depends on `index` in no simple way.
static int64_t scatter(int64_t index, int64_t bound)
{
  const uint64_t mixed = ((uint64_t)index + 1) * UINT64_C(0x9E3779B97F4A7C15);
  return (int64_t)((mixed >> 32) % (uint64_t)bound);
}

// Is the mean so small that nothing will have to go, so that more of a sample tells nothing more?
static bool is_far_below(const square_sample *sample, double threshold)
{
  double count = 0;
  double sum = 0;
  for (int64_t i = 0; i < BINS; ++i) {
    count += sample->bins[i].count;
    sum += sample->bins[i].sum;
  }
  return sum < threshold / 4 * count;
}

// What is wrong in a block is found later: here it is only left out.
static void read_sample(const rft_instance *instance, const m2po_source *source, float bound,
                        square_sample *sample)
{
  const bool all = instance->config.selection == M2PO_ALL_TOKENS;
  const m2po_bracket bracket = {bound, FLT_MAX};
  const int64_t count = source->batch->count;
  // A larger sample leaves fewer tokens open: the square root balances what the two cost.
  const int64_t all_blocks = count / M2PO_BLOCK;
  const int64_t blocks = (int64_t)sqrt((double)all_blocks);
  const int64_t stretch = count / (blocks * RUNS);
  m2po_stage stage;
  m2po_sighting sighting;
  for (int64_t b = 0; b < blocks; ++b) {
    bool good = true;
    for (int64_t r = 0; r < RUNS; ++r) {
      const int64_t index = r * blocks + b; // every block has runs from all over the batch
      const int64_t start = index * stretch + scatter(index, stretch - RUN);
      good = m2po_stage_copy(source, start, RUN, r * RUN, &stage) && good;
    }
    const m2po_block block = m2po_stage_block(&stage);
    instance->kernels->sight(&block, &bracket, all, &sighting);
    if (good && sighting.plain) {
      add_block(sample, &sighting);
    }
    if (b + 1 == FIRST_LOOK && is_far_below(sample, instance->config.m2_threshold)) {
      break;
    }
  }
  // At most: what no square is above.
  sample->bins[0].sum_of_squares = sample->bins[0].sum * (double)bound;
}

// By how much the mean of so many more could differ from theirs: four standard errors, and a little
// for what tokens of one sequence have in common.
static double doubt(const square_bin *all, double threshold)
{
  const double mean = all->sum / all->count;
  const double variance = all->sum_of_squares / all->count - mean * mean;
  return 4.0 * sqrt(fmax(variance, 0.0) / all->count) + threshold / 512;
}

m2po_guess m2po_guess_cut(const rft_instance *instance, const m2po_rule *rule,
                          const m2po_source *source)
{
  const float bound = m2po_candidate_bound(rule);
  m2po_guess guess = {isinf(rule->threshold), {.low = bound, .high = FLT_MAX}};
  if (source->batch->count < LEAST_COUNT || !(bound >= 0) || isinf(bound)) {
    return guess;
  }
  m2po_bracket *const bracket = &guess.bracket;
  square_sample sample = {.bound = bits_of(bound)};
  read_sample(instance, source, bound, &sample);
  square_bin all = {0};
  for (int64_t i = 0; i < BINS; ++i) {
    const square_bin *const bin = &sample.bins[i];
    if (bin->count == 0) {
      continue;
    }
    all = (square_bin){all.count + bin->count, all.sum + bin->sum,
                       all.sum_of_squares + bin->sum_of_squares};
    const double mean = all.sum / all.count;
    const double margin = doubt(&all, rule->threshold);
    guess.keeps_all = mean + margin <= rule->threshold;
    if (guess.keeps_all) {
      bracket->low = top_of(&sample, i);
    } else if (mean - margin > rule->threshold) {
      bracket->high = top_of(&sample, i);
      break;
    }
  }
  return guess;
}
