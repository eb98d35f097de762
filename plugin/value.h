// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Loss and gradient of a block whose log-ratios and advantages lie ready.
//
// Short loops, each over the whole block, with arrays in between that stay in the first cache:
// a loop that does it all keeps a processor waiting for the last result of a long chain.

#ifndef M2PO_VALUE_H
#define M2PO_VALUE_H

#include "tokens.h"

/// What a block's slopes are made of.
typedef struct ready_tokens {
  float log_ratio[M2PO_BLOCK]; ///< finite; 0 where not valid
  float advantage[M2PO_BLOCK]; ///< 0 or -0 where not valid or not kept
} ready_tokens;

/// Log-ratios up to this size are in the range of small_exponential.
#define NEAR 0.34F

/// exp(r) for |r| <= ln 2 / 2, within 0.71 ulp: 1 + r (1 + r p(r)), with the coefficients of p that
/// leave the least error after every rounding.
static inline floats small_exponential(floats r)
{
  floats sum = multiply_add(r, every(0x1.694434p-10F), every(0x1.125362p-7F));
  sum = multiply_add(sum, r, every(0x1.555a4ap-5F));
  sum = multiply_add(sum, r, every(0x1.555466p-3F));
  sum = multiply_add(sum, r, every(0x1.fffffap-2F));
  sum = multiply_add(sum, r, every(1.0F));
  return multiply_add(sum, r, every(1.0F));
}

/// Numbers as k ln 2 + r with |r| <= ln 2 / 2.
typedef struct reduced {
  float r[M2PO_BLOCK];
  float power[M2PO_BLOCK]; ///< bits to add to those of a float, for 2^k times it
} reduced;

/// Of x, clamped to |x| <= clip <= 80 where it is not known to be.
SPECIALIZED void reduce(const float x[M2PO_BLOCK], float clip, bool clamps, reduced *rests)
{
  const floats most = every(clip);
  const floats least = every(-clip);
  for (int64_t i = 0; i < M2PO_BLOCK; i += PACK) {
    EACH_PACKED
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const floats any_size = load(x + at);
      const floats clamped = clamps ? largest_of(least, smallest_of(most, any_size)) : any_size;
      // Adding 1.5 * 2^23 rounds to an integer, k, and leaves it in the low bits. ln 2 comes in two
      // parts, the first of few bits, so that k times it is exact.
      const floats shifted = multiply_add(clamped, every(0x1.715476p0F), every(0x1.8p23F));
      const floats k = shifted - 0x1.8p23F;
      const floats rest = multiply_add(k, every(-0x1.62e400p-1F), clamped);
      store(rests->r + at, multiply_add(k, every(-0x1.7f7d1cp-20F), rest));
      store(rests->power + at, (floats)((words)shifted << 23)); // k, in the place of the exponent
    }
  }
}

/// The memory of slopes that are to be written to it, for the loops before to ask for; past the
/// caches none is needed: something that they have.
static inline const float *output_of(const m2po_slopes *slopes, const ready_tokens *ready)
{
  return slopes->past_caches ? ready->log_ratio : slopes->to;
}

/// Where slopes are put.
typedef struct slope_places {
  float *here; ///< [M2PO_BLOCK], to be summed
  float *past; ///< [M2PO_BLOCK], past the caches, too, or NULL
} slope_places;

/// -weight A r, in the order in which a small weight costs no bits of it; where A is 0 or -0 that
/// is 0, and not -0.
SPECIALIZED void put_slope(const slope_places *places, bool past, int64_t i, floats term,
                           floats minus_weight)
{
  const floats slope = multiply_add(term, minus_weight, every(0.0F));
  store(places->here + i, slope);
  if (past) {
    store_past_caches(places->past + i, slope);
  }
}

/// All but the policy's log-probs, which the loops that read a block ask for.
static inline void fetch_rest(const m2po_block *block, int64_t i)
{
  fetch_floats(block->reference, i);
  fetch_floats(block->advantages, i);
  fetch_flags(block->mask, i);
}

SPECIALIZED void value_near(const ready_tokens *ready, float weight, const slope_places *places,
                            bool past, const m2po_block *block)
{
  const slope_places to = *places; // which no store can change
  const m2po_block own = *block;
  const floats minus_weight = every(-weight);
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_rest(&own, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const floats ratio = small_exponential(load(ready->log_ratio + at));
      put_slope(&to, past, at, load(ready->advantage + at) * ratio, minus_weight);
    }
  }
}

/// exp within 1 ulp of float32.
SPECIALIZED void value_far(const ready_tokens *ready, const reduced *rests, float weight,
                           const slope_places *places, bool past, const m2po_block *block)
{
  const slope_places to = *places; // which no store can change
  const m2po_block own = *block;
  const floats minus_weight = every(-weight);
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_rest(&own, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const words fraction = (words)small_exponential(load(rests->r + at));
      const floats ratio = (floats)(fraction + (words)load(rests->power + at));
      put_slope(&to, past, at, load(ready->advantage + at) * ratio, minus_weight);
    }
  }
}

/// A sum without those that are `open`, which are zero for the while.
static inline double sum_settled(float slope[M2PO_BLOCK], const m2po_places *open)
{
  float kept[M2PO_BLOCK];
  for (int64_t i = 0; i < open->count; ++i) {
    kept[i] = slope[open->place[i]];
    slope[open->place[i]] = 0.0F;
  }
  const double sum = sum_up(slope);
  for (int64_t i = 0; i < open->count; ++i) {
    slope[open->place[i]] = kept[i];
  }
  return sum;
}

SPECIALIZED void put_slopes(const m2po_block *block, const ready_tokens *ready, words squares,
                            const m2po_formula *formula, const slope_places *places, bool past)
{
  const float clip = formula->log_ratio_clip;
  const float near = clip < NEAR ? clip : NEAR;
  if (!any(squares >= (words)every(near * near))) {
    value_near(ready, formula->weight, places, past, block); // the same bits
    return;
  }
  reduced rests;
  if (any(squares >= (words)every(clip * clip))) {
    reduce(ready->log_ratio, clip, true, &rests);
  } else {
    reduce(ready->log_ratio, clip, false, &rests);
  }
  value_far(ready, &rests, formula->weight, places, past, block);
}

/// Gives the sum of the slopes, which is the loss, without those that are `open`. `squares`: the
/// bits of the largest squared log-ratios.
SPECIALIZED double value(const m2po_block *block, const ready_tokens *ready, words squares,
                         const m2po_places *open, const m2po_formula *formula,
                         const m2po_slopes *slopes)
{
  if (slopes->past_caches) {
    float copy[M2PO_BLOCK];
    const slope_places both = {copy, slopes->to};
    put_slopes(block, ready, squares, formula, &both, true);
    return sum_settled(copy, open);
  }
  const slope_places here = {slopes->to, NULL};
  put_slopes(block, ready, squares, formula, &here, false);
  return sum_settled(slopes->to, open);
}

#endif // M2PO_VALUE_H
