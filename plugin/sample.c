// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "sample.h"

#include <float.h>
#include <math.h>
#include <string.h>

// The sample: runs of tokens (a run is a cache line of float32), one in so many positions, each at a
// place of its own within its stretch, so that no pattern of the batch hides from it.
enum { RUN = 16, STRETCH = 1024, LEAST_COUNT = 16 * STRETCH, MOST_RUNS = 1024 };

// Squares over the bound are counted by size: bins of a sixteenth of a power of two.
enum { BIN_SHIFT = 19, BINS = 512 };

typedef struct square_bin {
  double count;
  double sum;
  double sum_of_squares;
} square_bin;

typedef struct square_sample {
  square_bin under; ///< the bound, which are kept whatever comes
  square_bin bins[BINS];
  int32_t bound; ///< as bits, which sort as the floats do
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
  const int64_t bits = sample->bound + ((bin + 1) << BIN_SHIFT);
  const int32_t capped = bits < bits_of(FLT_MAX) ? (int32_t)bits : bits_of(FLT_MAX);
  float value;
  memcpy(&value, &capped, sizeof value);
  return value;
}

static void add_square(square_sample *sample, float square)
{
  const int64_t above = (int64_t)bits_of(square) - sample->bound - 1;
  const int64_t bin = above >> BIN_SHIFT;
  square_bin *const counted =
      above < 0 ? &sample->under : &sample->bins[bin < BINS ? bin : BINS - 1];
  const double m = (double)square;
  counted->count += 1;
  counted->sum += m;
  counted->sum_of_squares += m * m;
}

static void read_run(const m2po_config *config, const rft_batch_view *batch, const m2po_pair *pair,
                     int64_t start, square_sample *sample)
{
  double policy[RUN];
  double reference[RUN];
  double advantages[RUN];
  double mask[RUN];
  rft_view_load(pair->policy, start, RUN, policy);
  rft_view_load(pair->reference, start, RUN, reference);
  rft_view_load(&batch->mask, start, RUN, mask);
  rft_batch_view_load_advantages(batch, start, RUN, advantages);
  for (int i = 0; i < RUN; ++i) {
    const float d = (float)policy[i] - (float)reference[i];
    const float square = d * d;
    const bool along = (advantages[i] > 0 && d > 0) || (advantages[i] < 0 && d < 0);
    const bool in = mask[i] != 0 && (along || config->selection == M2PO_ALL_TOKENS);
    if (in && square <= FLT_MAX) { // what is wrong here is found later
      add_square(sample, square);
    }
  }
}

// A number in [0, bound) that depends on `index` in no simple way.
static int64_t scatter(int64_t index, int64_t bound)
{
  const uint64_t mixed = ((uint64_t)index + 1) * UINT64_C(0x9E3779B97F4A7C15);
  return (int64_t)((mixed >> 32) % (uint64_t)bound);
}

static void read_sample(const m2po_config *config, const rft_batch_view *batch,
                        const m2po_pair *pair, square_sample *sample)
{
  const int64_t stretches = batch->count / STRETCH;
  const int64_t runs = stretches < MOST_RUNS ? stretches : MOST_RUNS;
  const int64_t stretch = batch->count / runs;
  for (int64_t i = 0; i < runs; ++i) {
    read_run(config, batch, pair, i * stretch + scatter(i, stretch - RUN), sample);
  }
}

// By how much the mean of so many more could differ from theirs: six standard errors, and a little for
// what tokens of one sequence have in common.
static double doubt(const square_bin *all, double threshold)
{
  const double mean = all->sum / all->count;
  const double variance = all->sum_of_squares / all->count - mean * mean;
  return 6.0 * sqrt(fmax(variance, 0.0) / all->count) + threshold / 64;
}

m2po_bracket m2po_guess_bracket(const m2po_config *config, const m2po_rule *rule,
                                const rft_batch_view *batch, const m2po_pair *pair)
{
  const float bound = m2po_candidate_bound(rule);
  m2po_bracket bracket = {bound, FLT_MAX};
  if (batch->count < LEAST_COUNT || !(bound >= 0) || isinf(bound)) {
    return bracket;
  }
  square_sample sample = {.bound = bits_of(bound)};
  read_sample(config, batch, pair, &sample);
  square_bin all = sample.under;
  for (int64_t i = 0; i < BINS; ++i) {
    const square_bin *const bin = &sample.bins[i];
    if (bin->count == 0) {
      continue;
    }
    all = (square_bin){all.count + bin->count, all.sum + bin->sum,
                       all.sum_of_squares + bin->sum_of_squares};
    const double mean = all.sum / all.count;
    const double margin = doubt(&all, rule->threshold);
    if (mean + margin <= rule->threshold) {
      bracket.low = top_of(&sample, i);
    } else if (mean - margin > rule->threshold) {
      bracket.high = top_of(&sample, i);
      break;
    }
  }
  return bracket;
}
