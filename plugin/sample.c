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

#define STANDARD_ERRORS 3.0

// Squares over the bound are counted by size: 64 bins from one power of two to the next. What is
// over all bins is counted in the last as if it were not.
enum { BIN_SHIFT = 17, BINS = 1024 };

typedef struct square_sample {
  int32_t bound;          ///< as bits, which sort as the floats do
  int32_t counts[BINS];   ///< the first: up to the bound, which are kept whatever comes
  double sum_up_to_bound; ///< of the first
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

// What kernels saw of a block: all of T, and that m is over the bound where the bit says so.
static void add_block(square_sample *sample, const m2po_sighting *sighting)
{
  int32_t over = 0;
  for (int64_t word = 0; word < M2PO_BLOCK_WORDS; ++word) {
    for (uint64_t open = sighting->glance.open[word]; open != 0; open &= open - 1) {
      const float square = sighting->over[word * M2PO_WORD_BITS + __builtin_ctzll(open)];
      const int32_t bin = 1 + ((bits_of(square) - sample->bound - 1) >> BIN_SHIFT);
      ++sample->counts[bin < BINS ? bin : BINS - 1];
      ++over;
    }
  }
  sample->counts[0] += (int32_t)sighting->glance.constrained - over;
  sample->sum_up_to_bound += sighting->glance.below_sum;
}

// Of the smallest squares of a sample.
typedef struct square_moments {
  double count;
  double sum;
  double sum_of_squares; ///< at most
} square_moments;

static void add_bin(square_moments *all, const square_sample *sample, int64_t bin)
{
  const double count = (double)sample->counts[bin];
  const double top = (double)top_of(sample, bin);
  const double sum =
      bin == 0 ? sample->sum_up_to_bound : count * (((double)top_of(sample, bin - 1) + top) / 2);
  all->count += count;
  all->sum += sum;
  all->sum_of_squares += sum * top;
}

// Is the mean so small that nothing will have to go, so that more of a sample tells nothing more?
static bool is_far_below(const square_sample *sample, double threshold)
{
  square_moments all = {0};
  for (int64_t bin = 0; bin < BINS; ++bin) {
    if (sample->counts[bin] != 0) {
      add_bin(&all, sample, bin);
    }
  }
  return all.sum < threshold / 4 * all.count;
}

// A number in [0, bound), bound < 2^32, that depends on `index` in no simple way.
static int64_t scatter(int64_t index, int64_t bound)
{
  const uint64_t mixed = ((uint64_t)index + 1) * UINT64_C(0x9E3779B97F4A7C15);
  return (int64_t)((mixed >> 32) * (uint64_t)bound >> 32);
}

// Where runs are: a multiple of RUN, so that one takes no more cache lines than it has to.
static int64_t start_of_run(int64_t index, int64_t stretch)
{
  const int64_t start = index * stretch + scatter(index, stretch - RUN);
  return start - start % RUN;
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
      if (b + 1 < blocks) {
        m2po_stage_fetch(source, start_of_run(index + 1, stretch), RUN);
      }
      good = m2po_stage_copy(source, start_of_run(index, stretch), RUN, r * RUN, &stage) && good;
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
}

// Would so many more surely be on the same side of the budget, their sum of m being this far from
// it? Surely: by some standard errors, and a little for the width of a bin and for what tokens of
// one sequence have in common. More of them leave more tokens open; fewer, and the cut is missed
// more often, for a second pass.
static bool is_sure(const square_moments *all, double distance, double budget)
{
  const double left = distance - budget / 128;
  const double spread = all->sum_of_squares - all->sum * all->sum / all->count; // n times variance
  return left >= 0 && left * left >= STANDARD_ERRORS * STANDARD_ERRORS * spread;
}

m2po_guess m2po_guess_cut(const rft_instance *instance, const m2po_rule *rule,
                          const m2po_source *source)
{
  const float bound = m2po_candidate_bound(rule);
  m2po_guess guess = {isinf(rule->threshold), {.low = bound, .high = FLT_MAX}};
  if (guess.keeps_all || source->batch->count < LEAST_COUNT || !(bound >= 0)) {
    return guess;
  }
  square_sample sample = {.bound = bits_of(bound)};
  read_sample(instance, source, bound, &sample);
  square_moments all = {0};
  for (int64_t bin = 0; bin < BINS; ++bin) {
    if (sample.counts[bin] == 0) {
      continue;
    }
    add_bin(&all, &sample, bin);
    const double budget = rule->threshold * all.count;
    guess.keeps_all = is_sure(&all, budget - all.sum, budget);
    if (guess.keeps_all) {
      guess.bracket.low = top_of(&sample, bin);
    } else if (is_sure(&all, all.sum - budget, budget)) {
      guess.bracket.high = top_of(&sample, bin);
      break;
    }
  }
  return guess;
}
