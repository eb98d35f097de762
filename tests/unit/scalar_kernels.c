// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "scalar_kernels.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { SUM_PARTS = 32, FLOAT_LANES = 16 };

/// A sum in parts, token i going to part i % SUM_PARTS, which are added up in halves.
typedef struct part_sums {
  double part[SUM_PARTS];
} part_sums;

static double total(part_sums *sums)
{
  for (int half = SUM_PARTS / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) {
      sums->part[i] += sums->part[i + half];
    }
  }
  return sums->part[0];
}

/// A token as the block has it; zeros where it is not valid.
typedef struct token {
  bool valid;
  float advantage;
  float log_ratio;
} token;

static token token_at(const m2po_block *block, int64_t i)
{
  if (block->mask[i] == 0) {
    return (token){false, 0.0F, 0.0F};
  }
  return (token){true, block->advantages[i], block->policy[i] - block->reference[i]};
}

static bool squares_finite(const m2po_block *block)
{
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const token it = token_at(block, i);
    if (!isfinite(it.log_ratio * it.log_ratio)) {
      return false;
    }
  }
  return true;
}

static bool advantages_finite(const m2po_block *block)
{
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    if (!isfinite(token_at(block, i).advantage)) {
      return false;
    }
  }
  return true;
}

static bool is_constrained(const token *it, bool all)
{
  const bool along =
      (it->advantage > 0 && it->log_ratio > 0) || (it->advantage < 0 && it->log_ratio < 0);
  return it->valid && (all || along);
}

/// Where a token of T stands to a bracket.
typedef enum standing { BELOW, INSIDE, ABOVE } standing;

static standing stand(float square, const m2po_bracket *bracket)
{
  if (!(square > bracket->low)) {
    return BELOW;
  }
  return bracket->high < FLT_MAX && square > bracket->high ? ABOVE : INSIDE;
}

static void set_bit(uint64_t bits[M2PO_BLOCK_WORDS], int64_t i)
{
  bits[i / M2PO_WORD_BITS] |= UINT64_C(1) << (i % M2PO_WORD_BITS);
}

void scalar_sight(const m2po_block *block, const m2po_bracket *bracket, bool all,
                  m2po_sighting *sighting)
{
  part_sums below = {{0}};
  *sighting = (m2po_sighting){.plain = squares_finite(block) && advantages_finite(block)};
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const token it = token_at(block, i);
    if (it.valid) {
      set_bit(sighting->valid, i);
    }
    if (!is_constrained(&it, all)) {
      continue;
    }
    const float square = it.log_ratio * it.log_ratio;
    ++sighting->glance.constrained;
    switch (stand(square, bracket)) {
    case BELOW:
      sighting->below[i] = square;
      below.part[i % SUM_PARTS] += (double)square;
      if (square > 0 && !(sighting->least_below > 0 && sighting->least_below < square)) {
        sighting->least_below = square;
      }
      break;
    case INSIDE:
      set_bit(sighting->glance.open, i);
      sighting->over[i] = square;
      break;
    case ABOVE:
      sighting->over[i] = square;
      ++sighting->glance.above_count;
      break;
    }
  }
  sighting->glance.below_sum = total(&below);
}

double scalar_sum(const float values[M2PO_BLOCK])
{
  part_sums sums = {{0}};
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    sums.part[i % SUM_PARTS] += (double)values[i];
  }
  return total(&sums);
}

double scalar_take(float values[M2PO_BLOCK], float least, float *largest)
{
  part_sums sums = {{0}};
  *largest = 0.0F;
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    if (values[i] >= least) {
      sums.part[i % SUM_PARTS] += (double)values[i];
      values[i] = 0.0F;
    } else if (values[i] > *largest) {
      *largest = values[i];
    }
  }
  return total(&sums);
}

// The operations of the vector exponential, in their order.
static float exponential(float x)
{
  const float shifted = fmaf(x, 0x1.715476p0F, 0x1.8p23F);
  const float k = shifted - 0x1.8p23F;
  const float r = fmaf(k, -0x1.7f7d1cp-20F, fmaf(k, -0x1.62e400p-1F, x));
  float value = fmaf(r, 0x1.694434p-10F, 0x1.125362p-7F);
  value = fmaf(value, r, 0x1.555a4ap-5F);
  value = fmaf(value, r, 0x1.555466p-3F);
  value = fmaf(value, r, 0x1.fffffap-2F);
  value = fmaf(fmaf(value, r, 1.0F), r, 1.0F);
  return ldexpf(value, (int)k);
}

static float slope_of(const token *it, bool kept, const m2po_formula *formula)
{
  const float clip = formula->log_ratio_clip;
  const float clamped = it->log_ratio > clip ? clip : it->log_ratio < -clip ? -clip : it->log_ratio;
  const float term = it->advantage * (kept ? 1.0F : 0.0F) * exponential(clamped);
  return fmaf(term, -formula->weight, 0.0F);
}

void scalar_evaluate(const m2po_block *block, const m2po_formula *formula, float *slope,
                     m2po_valuation *valuation)
{
  part_sums sums = {{0}};
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const token it = token_at(block, i);
    slope[i] = slope_of(&it, block->keep[i] != 0, formula);
    sums.part[i % SUM_PARTS] += (double)slope[i];
  }
  *valuation = (m2po_valuation){total(&sums), squares_finite(block)};
}

static bool is_at(const token *it, const m2po_bracket *bracket, bool all, standing where)
{
  return is_constrained(it, all) && stand(it->log_ratio * it->log_ratio, bracket) == where;
}

// Writes mask and slopes of the tokens that are not above, and gives the sum of those not inside.
static double keep_up_to(const m2po_block *block, const m2po_bracket *bracket, bool all,
                         const m2po_formula *formula, float *slope, uint8_t *keep)
{
  part_sums sums = {{0}};
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const token it = token_at(block, i);
    const bool above = is_at(&it, bracket, all, ABOVE);
    keep[i] = it.valid && !above ? 1 : 0;
    slope[i] = slope_of(&it, !above, formula);
    const bool inside = is_at(&it, bracket, all, INSIDE);
    sums.part[i % SUM_PARTS] += inside ? 0.0 : (double)slope[i];
  }
  return total(&sums);
}

void scalar_step(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
                 bool all, float *slope, uint8_t *keep, m2po_sighting *sighting,
                 m2po_valuation *valuation)
{
  scalar_sight(block, bracket, all, sighting);
  sighting->plain = squares_finite(block);
  valuation->plain = sighting->plain;
  valuation->sum = keep_up_to(block, bracket, all, formula, slope, keep);
}

void scalar_sift(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
                 float *slope, uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation)
{
  m2po_sighting sighting;
  scalar_sight(block, bracket, false, &sighting);
  *glance = sighting.glance;
  valuation->plain = squares_finite(block);
  valuation->sum = keep_up_to(block, bracket, false, formula, slope, keep);
}

void scalar_keep_all(const m2po_block *block, const m2po_formula *formula, float *slope,
                     uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation)
{
  static const m2po_bracket none = {.low = INFINITY, .high = FLT_MAX};
  float lanes[FLOAT_LANES] = {0};
  part_sums below = {{0}};
  *glance = (m2po_glance){.below_sum = 0};
  valuation->plain = squares_finite(block);
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const token it = token_at(block, i);
    const bool in = is_constrained(&it, false);
    lanes[i % FLOAT_LANES] += in ? it.log_ratio * it.log_ratio : 0.0F;
    glance->constrained += in ? 1 : 0;
  }
  for (int64_t i = 0; i < FLOAT_LANES; ++i) {
    below.part[i] = (double)lanes[i];
  }
  glance->below_sum = total(&below);
  valuation->sum = keep_up_to(block, &none, false, formula, slope, keep);
}
