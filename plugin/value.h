// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Loss and gradient of a block whose log-ratios and advantages lie ready.
//
// Short loops, each over the whole block, with arrays in between that stay in the first cache:
// a loop that does it all keeps a processor waiting for the last result of a long chain.

#ifndef M2PO_VALUE_H
#define M2PO_VALUE_H

#include "tokens.h"

/// What a block's slopes are made of, where it does not lie so in the batch.
typedef struct ready_tokens {
  float log_ratio[M2PO_BLOCK]; ///< finite; 0 where not valid
  float advantage[M2PO_BLOCK]; ///< 0 where not valid or not kept
} ready_tokens;

/// Log-ratios up to this size are in the range of small_exponential.
#define NEAR 0.34F

/// exp(r) for |r| <= ln 2 / 2: 1 + r + r^2 p(r), with the coefficients of p that leave the least
/// error after every rounding, 0.9992 ulp. Summed in pairs, which wait less for each other than
/// Horner's chain.
static inline floats small_exponential(floats r)
{
  const floats r2 = r * r;
  const floats low = multiply_add(r, every(0x1.55546ep-3F), every(0x1.fffffcp-2F));
  const floats middle = multiply_add(r, every(0x1.1258e2p-7F), every(0x1.555a8ap-5F));
  const floats high = multiply_add(r2, every(0x1.694434p-10F), middle);
  return 1.0F + multiply_add(r2, multiply_add(r2, high, low), r);
}

/// x = k ln 2 + r with |r| <= ln 2 / 2, for x clamped to |x| <= clip <= 80.
static inline void reduce(const float x[M2PO_BLOCK], float clip, float r[M2PO_BLOCK],
                          words power[M2PO_BLOCK / VECTOR_FLOATS])
{
  const floats most = every(clip);
  const floats least = every(-clip);
  for (int64_t i = 0; i < M2PO_BLOCK; i += VECTOR_FLOATS) {
    const floats clamped = largest_of(least, smallest_of(most, load(x + i)));
    // Adding 1.5 * 2^23 rounds to an integer, k, and leaves it in the low bits. ln 2 comes in two
    // parts, the first of few bits, so that k times it is exact.
    const floats shifted = multiply_add(clamped, every(0x1.715476p0F), every(0x1.8p23F));
    const floats k = shifted - 0x1.8p23F;
    const floats rest = multiply_add(k, every(-0x1.62e400p-1F), clamped);
    store(r + i, multiply_add(k, every(-0x1.7f7d1cp-20F), rest));
    power[i / VECTOR_FLOATS] = (words)shifted << 23; // k, in the place of the exponent
  }
}

/// Where slopes are put.
typedef struct slope_places {
  float *here; ///< [M2PO_BLOCK], to be summed
  float *past; ///< [M2PO_BLOCK], past the caches, too, or NULL
} slope_places;

/// -weight A r; where A is 0 that is 0, and not -0.
static inline void put_slope(const slope_places *places, int64_t i, floats term,
                             floats minus_weight)
{
  const floats slope = multiply_add(term, minus_weight, every(0.0F));
  store(places->here + i, slope);
  if (places->past != NULL) {
    store_past_caches(places->past + i, slope);
  }
}

/// What a loss is computed from.
typedef struct value_job {
  const float *log_ratio; ///< [M2PO_BLOCK], finite; 0 where not valid
  const float *advantage; ///< [M2PO_BLOCK], 0 where not valid or not kept
  const float *fetched;   ///< [M2PO_BLOCK], of which the next block is fetched
  m2po_formula formula;
} value_job;

static inline void value_near(const value_job *job, const slope_places *places)
{
  const value_job own = *job; // which no store can change
  const slope_places to = *places;
  const floats minus_weight = every(-own.formula.weight);
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_next(own.fetched, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const floats ratio = small_exponential(load(own.log_ratio + at));
      put_slope(&to, at, load(own.advantage + at) * ratio, minus_weight);
    }
  }
}

/// exp within 1 ulp of float32.
static inline void value_far(const value_job *job, const slope_places *places)
{
  const value_job own = *job; // which no store can change
  const slope_places to = *places;
  const floats minus_weight = every(-own.formula.weight);
  float r[M2PO_BLOCK];
  words power[M2PO_BLOCK / VECTOR_FLOATS];
  reduce(own.log_ratio, own.formula.log_ratio_clip, r, power);
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_next(own.fetched, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const words fraction = (words)small_exponential(load(r + at));
      const floats ratio = (floats)(fraction + power[at / VECTOR_FLOATS]);
      put_slope(&to, at, load(own.advantage + at) * ratio, minus_weight);
    }
  }
}

static inline double sum_up(const float slope[M2PO_BLOCK], const float fetched[M2PO_BLOCK])
{
  part_sums sums = {{{0}}};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_next(fetched, i);
    EACH_VECTOR add(&sums, v, load(slope + i + (int64_t)v * VECTOR_FLOATS));
  }
  return total(&sums);
}

/// The same without those that are `open`, which are zero for the while.
static inline double sum_settled(float slope[M2PO_BLOCK], const m2po_places *open,
                                 const float fetched[M2PO_BLOCK])
{
  float kept[M2PO_BLOCK];
  for (int64_t i = 0; i < open->count; ++i) {
    kept[i] = slope[open->place[i]];
    slope[open->place[i]] = 0.0F;
  }
  const double sum = sum_up(slope, fetched);
  for (int64_t i = 0; i < open->count; ++i) {
    slope[open->place[i]] = kept[i];
  }
  return sum;
}

/// Gives the sum of the slopes, which is the loss, without those that are `open`. `sizes`: the
/// largest size bits of the log-ratios. The loops that read a block fetch the next one's policy,
/// these here the rest of it: memory has to be asked for all the time.
static inline double value(const m2po_block *block, const float *log_ratio, const float *advantage,
                           words sizes, const m2po_places *open, const m2po_formula *formula,
                           const m2po_slopes *slopes)
{
  const value_job job = {log_ratio, advantage, block->reference, *formula};
  const float near = formula->log_ratio_clip < NEAR ? formula->log_ratio_clip : NEAR;
  float copy[M2PO_BLOCK];
  const slope_places places = {slopes->past_caches ? copy : slopes->to,
                               slopes->past_caches ? slopes->to : NULL};
  if (any(sizes > size_bits(every(near)))) {
    value_far(&job, &places);
  } else {
    value_near(&job, &places); // the same bits
  }
  return sum_settled(places.here, open, block->advantages);
}

#endif // M2PO_VALUE_H
