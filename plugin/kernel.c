// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Compiled once for each instruction set; M2PO_TARGET names it.

#include "kernel.h"

#include "exponential.h"
#include "target.h"
#include "tokens.h"

#include <float.h>
#include <math.h>

// Compiled anew for each constant argument.
#define SPECIALIZED __attribute__((always_inline)) static inline

/// Does the bracket have a high end? (Only infinity is above FLT_MAX.)
static inline bool cuts_at(const m2po_bracket *bracket)
{
  return bracket->high < FLT_MAX;
}

/// The same for a loop that compares with the high end in any case: where there is none, not even
/// an infinite m is above it.
static inline m2po_bracket bounds_of(const m2po_bracket *bracket)
{
  return (m2po_bracket){bracket->low, cuts_at(bracket) ? bracket->high : INFINITY, bracket->least};
}

/// Where tokens of T stand.
typedef struct standing {
  words in; ///< of T
  words above_low;
  words above_high;
  floats square;
} standing;

SPECIALIZED standing stand(const token_vector *tokens, const m2po_bracket *bracket, bool all,
                           bool cuts)
{
  // d where the advantage is positive, -d where it is negative: T has the tokens whose ratio moves
  // the way that the advantage pushes.
  const words along = (words)tokens->log_ratio ^ ((words)tokens->advantage & sign_bit);
  standing found;
  found.in = all ? tokens->valid : ((floats)along > 0) & (tokens->advantage != 0);
  found.square = tokens->log_ratio * tokens->log_ratio;
  found.above_low = found.in & (found.square > bracket->low);
  found.above_high = cuts ? found.in & (found.square > bracket->high) : (words){0};
  return found;
}

/// A sighting in progress: sums, and in each element counts and the largest so far.
typedef struct running_totals {
  part_sums below;
  words left;
  words constrained;
  words above;
  words sizes;
} running_totals;

SPECIALIZED void note(m2po_sighting *sighting, running_totals *totals, const token_vector *tokens,
                      const standing *found, const m2po_bracket *bracket, int64_t i, int v,
                      bool cuts)
{
  const floats below = masked(found->in & ~found->above_low, found->square);
  const words taken = below >= bracket->least;
  const floats left = masked(~taken, below);
  add(&totals->below, v, masked(taken, below));
  store(sighting->left + i, left);
  totals->left = larger(totals->left, (words)left);
  totals->constrained -= found->in;
  if (cuts) {
    const floats dropped = masked(found->above_high, tokens->advantage);
    store(sighting->above + i, masked(found->above_high, found->square));
    totals->above -= found->above_high;
    totals->sizes = larger(totals->sizes, size_bits(dropped));
  }
}

static inline void conclude(m2po_sighting *sighting, const running_totals *totals)
{
  const int32_t left = largest(totals->left);
  memcpy(&sighting->largest_left, &left, sizeof left);
  sighting->below = total(&totals->below);
  sighting->constrained = sum_of(totals->constrained);
  sighting->above_count = sum_of(totals->above);
  sighting->plain = all_finite(totals->sizes);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first bits of a word come first");

static inline void put_bits(uint64_t bits[M2PO_BLOCK_WORDS], int64_t i, const words flags[VECTORS])
{
  const uint16_t found = (uint16_t)bits_of(flags);
  memcpy((uint8_t *)bits + i / 8, &found, sizeof found);
}

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

/// As many vectors as a sum has lanes. Steps that each do all of them, one after the other, keep
/// the processor from waiting for the last one's result.
typedef struct lanes {
  floats vector[VECTORS];
} lanes;

/// exp(r) for |r| <= ln 2 / 2, in place: 1 + r + r^2 p(r), p having the least relative error of its
/// degree, 2^-28. Summed in pairs, which wait less for each other than Horner's chain.
static inline void small_exponential(lanes *r)
{
  floats r2[VECTORS];
  floats low[VECTORS];
  floats high[VECTORS];
  EACH_VECTOR r2[v] = r->vector[v] * r->vector[v];
  EACH_VECTOR low[v] = 0x1.fffffcp-2F + r->vector[v] * 0x1.555492p-3F;
  EACH_VECTOR high[v] = 0x1.5558f2p-5F + r->vector[v] * 0x1.1239e2p-7F;
  EACH_VECTOR high[v] = high[v] + r2[v] * 0x1.6a2434p-10F;
  EACH_VECTOR low[v] = low[v] + r2[v] * high[v];
  EACH_VECTOR r->vector[v] = 1.0F + (r->vector[v] + r2[v] * low[v]);
}

/// exp(x) within 1 ulp of float32 for |x| <= 80, in place.
static inline void exponential(lanes *x)
{
  // x = k ln 2 + r with |r| <= ln 2 / 2. Adding 1.5 * 2^23 rounds to an integer, k, and leaves it
  // in the low bits. ln 2 comes in two parts, the first of few bits, so that k times it is exact.
  floats shifted[VECTORS];
  floats k[VECTORS];
  EACH_VECTOR shifted[v] = x->vector[v] * 0x1.715476p0F + 0x1.8p23F;
  EACH_VECTOR k[v] = shifted[v] - 0x1.8p23F;
  EACH_VECTOR x->vector[v] = x->vector[v] - k[v] * 0x1.62e400p-1F;
  EACH_VECTOR x->vector[v] = x->vector[v] - k[v] * 0x1.7f7d1cp-20F;
  small_exponential(x);
  // Times 2^k, by adding k to the exponent field.
  EACH_VECTOR x->vector[v] = (floats)((words)x->vector[v] + ((words)shifted[v] << 23));
}

/// A formula, in every element.
typedef struct formula_vector {
  floats most;
  floats least;
  floats weight;
  words small; ///< size bits up to which k is 0 and nothing is clamped
} formula_vector;

static inline formula_vector constants_of(const m2po_formula *formula)
{
  const float clip = formula->log_ratio_clip;
  return (formula_vector){every(clip), every(-clip), every(formula->weight),
                          size_bits(every(clip < 0.34F ? clip : 0.34F))};
}

/// A r of the kept tokens. `sizes`: the largest size bits of their d, in each element.
static inline void value_tokens(const lanes *kept_advantage, const lanes *log_ratio, words sizes,
                                const formula_vector *constants, lanes *term)
{
  *term = *log_ratio;
  if (any(sizes > constants->small)) {
    EACH_VECTOR
    {
      const floats capped = smallest_of(constants->most, term->vector[v]);
      term->vector[v] = largest_of(constants->least, capped);
    }
    exponential(term);
  } else {
    small_exponential(term); // the same bits
  }
  EACH_VECTOR term->vector[v] = kept_advantage->vector[v] * term->vector[v];
}

static inline void store_slope(float *slope, floats term, const formula_vector *constants)
{
  store(slope, 0.0F - term * constants->weight); // never -0
}

static void evaluate(const m2po_block *block, const m2po_formula *formula, float *slope,
                     m2po_valuation *valuation)
{
  const m2po_block own = *block; // which no store can change
  const formula_vector constants = constants_of(formula);
  part_sums sums = {{{0}}};
  words sizes = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    lanes advantage;
    lanes log_ratio;
    lanes term;
    words moved = {0};
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = read(&own, at);
      moved = larger(moved, size_bits(tokens.log_ratio));
      sizes = larger(sizes, size_bits(tokens.advantage));
      advantage.vector[v] = masked(nonzero_bytes(own.keep + at), tokens.advantage);
      log_ratio.vector[v] = tokens.log_ratio;
    }
    sizes = larger(sizes, moved);
    value_tokens(&advantage, &log_ratio, moved, &constants, &term);
    EACH_VECTOR
    {
      add(&sums, v, term.vector[v]);
      store_slope(slope + i + (int64_t)v * VECTOR_FLOATS, term.vector[v], &constants);
    }
  }
  valuation->sum = total(&sums);
  valuation->plain = all_finite(sizes);
}

SPECIALIZED void step_tokens(const m2po_block *block, const m2po_bracket *bracket,
                             const m2po_formula *formula, bool all, bool cuts, float *slope,
                             uint8_t *keep, m2po_sighting *sighting, m2po_valuation *valuation)
{
  const m2po_block own = *block; // which no store can change
  const m2po_bracket bounds = bounds_of(bracket);
  const formula_vector constants = constants_of(formula);
  part_sums sums = {{{0}}};
  running_totals totals = {{{{0}}}, {0}, {0}, {0}, {0}};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    lanes advantage;
    lanes log_ratio;
    lanes term;
    words open[VECTORS];
    words stays[VECTORS];
    words moved = {0};
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = read(&own, at);
      const standing found = stand(&tokens, &bounds, all, cuts);
      note(sighting, &totals, &tokens, &found, &bounds, at, v, cuts);
      moved = larger(moved, size_bits(tokens.log_ratio));
      open[v] = found.above_low & ~found.above_high;
      stays[v] = tokens.valid & ~found.above_high;
      advantage.vector[v] = masked(~found.above_high, tokens.advantage);
      log_ratio.vector[v] = tokens.log_ratio;
    }
    put_bits(sighting->open, i, open);
    if (cuts) {
      store_flags(keep + i, stays);
    } else {
      store_nonzero(keep + i, own.mask + i);
    }
    totals.sizes = larger(totals.sizes, moved);
    value_tokens(&advantage, &log_ratio, moved, &constants, &term);
    EACH_VECTOR
    {
      store_slope(slope + i + (int64_t)v * VECTOR_FLOATS, term.vector[v], &constants);
      add(&sums, v, masked(~open[v], term.vector[v]));
    }
  }
  conclude(sighting, &totals);
  valuation->sum = total(&sums);
  valuation->plain = sighting->plain;
}

static void step(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
                 bool all, float *slope, uint8_t *keep, m2po_sighting *sighting,
                 m2po_valuation *valuation)
{
  if (all) {
    step_tokens(block, bracket, formula, true, true, slope, keep, sighting, valuation);
  } else if (cuts_at(bracket)) {
    step_tokens(block, bracket, formula, false, true, slope, keep, sighting, valuation);
  } else {
    step_tokens(block, bracket, formula, false, false, slope, keep, sighting, valuation);
  }
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

static void stream(float *to, const float from[M2PO_BLOCK])
{
  for (int64_t i = 0; i < M2PO_BLOCK; i += VECTOR_FLOATS) {
    store_past_caches(to + i, load(from + i));
  }
}

static void fence(void)
{
  order_stores();
}

#define QUOTED(name) #name
#define NAME_OF(target) QUOTED(target)
#define JOINED(left, right) left##right
#define TABLE_OF(target) JOINED(m2po_kernels_, target)

const m2po_kernels TABLE_OF(M2PO_TARGET) = {.name = NAME_OF(M2PO_TARGET),
                                            .sight = sight,
                                            .take = take,
                                            .evaluate = evaluate,
                                            .measure = measure,
                                            .stream = stream,
                                            .fence = fence,
                                            .step = step};
