// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Compiled once for each instruction set; M2PO_TARGET names it.

#include "exponential.h"
#include "kernel_step.h"
#include "standing.h"
#include "target.h"
#include "value.h"

SPECIALIZED void sight_tokens(const m2po_block *block, const m2po_bracket *bracket, bool all,
                              bool cuts, m2po_sighting *sighting)
{
  const m2po_block own = *block; // which no store can change
  const m2po_bracket bounds = bounds_of(bracket);
  running_totals totals = {{{{0}}}, {0}, {0}, {0}, {0}};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    words valid[VECTORS];
    words open[VECTORS];
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = read(&own, at);
      const standing found = stand(&tokens, &bounds, all, cuts);
      note(sighting, &totals, &tokens, &found, &bounds, at, v, cuts);
      totals.sizes = larger(totals.sizes, size_bits(tokens.log_ratio));
      totals.sizes = larger(totals.sizes, size_bits(tokens.advantage));
      valid[v] = tokens.valid;
      open[v] = found.above_low & ~found.above_high;
    }
    put_bits(sighting->valid, i, valid);
    put_bits(sighting->open, i, open);
  }
  conclude(sighting, &totals);
}

static void sight(const m2po_block *block, const m2po_bracket *bracket, bool all,
                  m2po_sighting *sighting)
{
  if (all) {
    sight_tokens(block, bracket, true, true, sighting);
  } else if (cuts_at(bracket)) {
    sight_tokens(block, bracket, false, true, sighting);
  } else {
    sight_tokens(block, bracket, false, false, sighting);
  }
}

static double take(float values[M2PO_BLOCK], float least, float *largest_left)
{
  part_sums sums = {{{0}}};
  words most = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    EACH_VECTOR
    {
      float *const address = values + i + (int64_t)v * VECTOR_FLOATS;
      const floats value = load(address);
      const words taken = value >= least;
      const floats left = masked(~taken, value);
      add(&sums, v, masked(taken, value));
      store(address, left);
      most = larger(most, (words)left);
    }
  }
  const int32_t bits = largest(most);
  memcpy(largest_left, &bits, sizeof bits);
  return total(&sums);
}

static void evaluate(const m2po_block *block, const m2po_formula *formula,
                     const m2po_slopes *slopes, m2po_valuation *valuation)
{
  static const m2po_places none_open = {.count = 0};
  const m2po_block own = *block; // which no store can change
  ready_tokens ready;
  spread found = {{0}, {0}};
  for (int64_t i = 0; i < M2PO_BLOCK; i += VECTOR_FLOATS) {
    const token_vector tokens = read(&own, i);
    widen_spread(&found, &tokens);
    store(ready.log_ratio + i, tokens.log_ratio);
    store(ready.advantage + i, masked(nonzero_bytes(own.keep + i), tokens.advantage));
  }
  valuation->plain = is_finite(&found);
  valuation->sum =
      value(block, ready.log_ratio, ready.advantage, found.log_ratio, &none_open, formula, slopes);
}

// -------------------------------------------------------------------------------- metrics, in
// double

typedef int64_t longs __attribute__((vector_size(VECTOR_BYTES)));

static inline doubles each(double value)
{
  return (doubles){0} + value;
}

/// As m2po_exp, for |x| <= 80.
static inline doubles wide_exponential(doubles x)
{
  M2PO_EXP_REDUCED(doubles, x);
  return (doubles)((longs)reduced + ((longs)shifted << 52));
}

/// What is measured of a block: sums in double, the rest in each element.
typedef struct running_measures {
  part_sums ratio;
  part_sums k1;
  part_sums k3;
  words valid;
  words beyond; ///< log-ratios that are clamped
  words sizes;
  floats largest;  ///< d
  floats smallest; ///< d
} running_measures;

static inline void measure_half(running_measures *so_far, int half, doubles d, doubles valid)
{
  const doubles ratio = wide_exponential(d);
  so_far->ratio.part[half % VECTORS] += ratio * valid;
  so_far->k1.part[half % VECTORS] -= d;
  so_far->k3.part[half % VECTORS] += ratio - 1.0 - d; // 0 where not valid, as d is
}

/// exp(d) as the sums have it.
static inline double ratio_of(float d)
{
  doubles ratio = wide_exponential(each((double)d));
  double first;
  memcpy(&first, &ratio, sizeof first);
  return first;
}

static float extreme(floats values, float sign)
{
  float element[VECTOR_FLOATS];
  memcpy(element, &values, sizeof element);
  float found = element[0];
  for (int i = 1; i < VECTOR_FLOATS; ++i) {
    found = sign * element[i] > sign * found ? element[i] : found;
  }
  return found;
}

static void conclude_measures(const running_measures *all, m2po_measures *measures)
{
  const int64_t tokens = sum_of(all->valid);
  if (tokens == 0) {
    return; // no token has an extreme
  }
  const int32_t size_bits_found = largest(all->sizes);
  float size;
  memcpy(&size, &size_bits_found, sizeof size);
  const m2po_measures found = {.tokens = (double)tokens,
                               .ratio_sum = total(&all->ratio),
                               .k1_sum = total(&all->k1),
                               .k3_sum = total(&all->k3),
                               .log_ratio_clipped = (double)sum_of(all->beyond),
                               .log_ratio_abs_max = (double)size,
                               .ratio_max = ratio_of(extreme(all->largest, 1.0F)),
                               .ratio_min = ratio_of(extreme(all->smallest, -1.0F))};
  m2po_measures_add(measures, &found);
}

static void measure(const m2po_block *block, double clip, m2po_measures *measures)
{
  const m2po_block own = *block; // which no store can change
  const floats most = every((float)clip);
  const floats least = every(-(float)clip);
  const words bound = size_bits(most);
  running_measures all = {.largest = least, .smallest = most};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    EACH_VECTOR
    {
      const token_vector tokens = read(&own, i + (int64_t)v * VECTOR_FLOATS);
      const words size = size_bits(tokens.log_ratio);
      const floats d = smallest_of(most, largest_of(least, tokens.log_ratio));
      const floats valid = masked(tokens.valid, every(1.0F));
      all.valid -= tokens.valid;
      all.beyond -= size > bound;
      all.sizes = larger(all.sizes, size);
      all.largest = largest_of(all.largest, d + masked(~tokens.valid, least));
      all.smallest = smallest_of(all.smallest, d + masked(~tokens.valid, most));
      measure_half(&all, 2 * v, widen_low(d), widen_low(valid));
      measure_half(&all, 2 * v + 1, widen_high(d), widen_high(valid));
    }
  }
  conclude_measures(&all, measures);
}

// -------------------------------------------------------------------------------------------
// stores

static void fence(void)
{
  order_stores();
}

#define QUOTED(name) #name
#define NAME_OF(target) QUOTED(target)

const m2po_kernels M2PO_OF_TARGET(m2po_kernels_) = {.name = NAME_OF(M2PO_TARGET),
                                                    .sight = sight,
                                                    .take = take,
                                                    .evaluate = evaluate,
                                                    .measure = measure,

                                                    .fence = fence,
                                                    .step = m2po_step,
                                                    .sift = m2po_sift,
                                                    .keep_all = m2po_keep_all};
