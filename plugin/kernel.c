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
  running_totals totals = no_totals();
  for (int64_t i = 0; i < M2PO_BLOCK; i += PACK) {
    flags valid[PACK_VECTORS];
    flags open[PACK_VECTORS];
    EACH_PACKED
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      if (v % VECTORS == 0) {
        fetch_floats(own.policy, at);
        fetch_rest(&own, at);
      }
      const token_vector tokens = read(&own, at);
      const standing found = stand(&tokens, &bounds, all, cuts);
      note(sighting, &totals, &found, at, cuts);
      totals.sizes = larger(totals.sizes, (words)found.square);
      totals.sizes = larger(totals.sizes, size_bits(tokens.advantage));
      valid[v] = tokens.valid;
      open[v] = but_not(found.above_low, found.above_high);
    }
    put_bits(sighting->valid, i, valid);
    put_bits(sighting->glance.open, i, open);
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

static double sum(const float values[M2PO_BLOCK])
{
  return sum_up(values);
}

static double take(float values[M2PO_BLOCK], float least, float *largest_left)
{
  part_sums sums = {{{0}}};
  words most = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += SUM_PARTS) {
    for (int v = 0; v < SUM_PARTS / VECTOR_FLOATS; ++v) {
      float *const address = values + i + (int64_t)v * VECTOR_FLOATS;
      const floats value = load(address);
      const flags taken = up_to(every(least), value);
      const floats left = unless(taken, value);
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
  const float *const output = output_of(slopes, &ready);
  words squares = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_floats(own.policy, i);
    fetch_flags(own.keep, i);
    fetch_output(output, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = read(&own, at);
      squares = larger(squares, (words)(tokens.log_ratio * tokens.log_ratio));
      store(ready.log_ratio + at, tokens.log_ratio);
      store(ready.advantage + at, times_flag(tokens.advantage, nonzero_bytes(own.keep + at)));
    }
  }
  valuation->plain = all_finite(squares);
  valuation->sum = value(block, &ready, squares, &none_open, formula, slopes);
}

// ------------------------------------------------------------------------------ metrics, in double

typedef int64_t longs __attribute__((vector_size(VECTOR_BYTES)));

enum { WIDE_VECTORS = M2PO_BLOCK / VECTOR_DOUBLES }; // of a block in double

/// Ratios of a block, as they come about: rests, then their exponentials, with the powers of two.
typedef struct wide_ratios {
  doubles value[WIDE_VECTORS];
  longs power[WIDE_VECTORS];
} wide_ratios;

/// As m2po_exp, for |x| <= 80, in short loops (value.h says why).
static void find_wide_ratios(const float x[M2PO_BLOCK], wide_ratios *ratios)
{
  for (int64_t i = 0; i < WIDE_VECTORS; ++i) {
    const doubles wide = widen(x + i * VECTOR_DOUBLES);
    M2PO_EXP_REDUCE(doubles, wide);
    ratios->value[i] = r;
    ratios->power[i] = (longs)shifted << 52;
  }
  for (int64_t i = 0; i < WIDE_VECTORS; ++i) {
    const doubles r = ratios->value[i];
    M2PO_EXP_OF_REST(doubles, r);
    ratios->value[i] = (doubles)((longs)fraction + ratios->power[i]);
  }
}

/// What is measured of a block in float32, in each element.
typedef struct running_measures {
  flag_count valid;
  flag_count beyond; ///< log-ratios that are clamped
  words sizes;
  floats largest;  ///< d
  floats smallest; ///< d
} running_measures;

/// What is measured of it in double.
typedef struct wide_sums {
  double ratio;
  double k1;
  double k3;
} wide_sums;

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

static void conclude_measures(const running_measures *all, const wide_sums *sums,
                              m2po_measures *measures)
{
  const int64_t tokens = counted(all->valid);
  if (tokens == 0) {
    return; // no token has an extreme
  }
  const int32_t size_bits_found = largest(all->sizes);
  float size;
  memcpy(&size, &size_bits_found, sizeof size);
  const m2po_measures found = {.tokens = (double)tokens,
                               .ratio_sum = sums->ratio,
                               .k1_sum = sums->k1,
                               .k3_sum = sums->k3,
                               .log_ratio_clipped = (double)counted(all->beyond),
                               .log_ratio_abs_max = (double)size,
                               .ratio_max = m2po_exp((double)extreme(all->largest, 1.0F)),
                               .ratio_min = m2po_exp((double)extreme(all->smallest, -1.0F))};
  m2po_measures_add(measures, &found);
}

// Log-ratios as they are measured: 0 where not valid.
typedef struct clamped_tokens {
  float log_ratio[M2PO_BLOCK];
  float valid[M2PO_BLOCK]; ///< 1 or 0
} clamped_tokens;

static running_measures clamp_tokens(const m2po_block *block, float clip, clamped_tokens *clamped)
{
  const m2po_block own = *block; // which no store can change
  const floats most = every(clip);
  const floats least = every(-clip);
  running_measures all = {.largest = least, .smallest = most};
  for (int64_t i = 0; i < M2PO_BLOCK; i += VECTOR_FLOATS) {
    const token_vector tokens = read(&own, i);
    const words size = size_bits(tokens.log_ratio);
    const floats d = smallest_of(most, largest_of(least, tokens.log_ratio));
    count_flags(&all.valid, tokens.valid);
    count_flags(&all.beyond, above((floats)size, most));
    all.sizes = larger(all.sizes, size);
    all.largest = largest_of(all.largest, d + unless(tokens.valid, least));
    all.smallest = smallest_of(all.smallest, d + unless(tokens.valid, most));
    store(clamped->log_ratio + i, d);
    store(clamped->valid + i, masked(tokens.valid, every(1.0F)));
  }
  return all;
}

static wide_sums add_wide(const clamped_tokens *clamped, const wide_ratios *ratios)
{
  part_sums ratio = {{{0}}};
  part_sums k1 = {{{0}}};
  part_sums k3 = {{{0}}};
  for (int64_t i = 0; i < WIDE_VECTORS; i += SUM_VECTORS) {
    for (int v = 0; v < SUM_VECTORS; ++v) {
      const int64_t at = (i + v) * VECTOR_DOUBLES;
      const doubles d = widen(clamped->log_ratio + at);
      const doubles r = ratios->value[i + v];
      ratio.part[v] += r * widen(clamped->valid + at);
      k1.part[v] -= d;
      k3.part[v] += r - 1.0 - d; // 0 where not valid, as d is
    }
  }
  return (wide_sums){total(&ratio), total(&k1), total(&k3)};
}

static void measure(const m2po_block *block, double clip, m2po_measures *measures)
{
  clamped_tokens clamped;
  wide_ratios ratios;
  const running_measures all = clamp_tokens(block, (float)clip, &clamped);
  find_wide_ratios(clamped.log_ratio, &ratios);
  const wide_sums sums = add_wide(&clamped, &ratios);
  conclude_measures(&all, &sums, measures);
}

#define QUOTED(name) #name
#define NAME_OF(target) QUOTED(target)

const m2po_kernels M2PO_OF_TARGET(m2po_kernels_) = {.name = NAME_OF(M2PO_TARGET),
                                                    .sight = sight,
                                                    .sum = sum,
                                                    .take = take,
                                                    .evaluate = evaluate,
                                                    .measure = measure,
                                                    .fence = order_stores,
                                                    .step = m2po_step,
                                                    .sift = m2po_sift,
                                                    .keep_all = m2po_keep_all};
