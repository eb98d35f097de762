// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "algorithm1.h"

#include "reduce.h"
#include "support/error.h"

#include <math.h>
#include <string.h>

// A non-negative float sorts as its bits do. A walk narrows those of the cut down, to one of equal
// bins at a time. The first bins are no larger than what has one exponent, so that the mantissas of
// a bin are integers of one unit.
enum { FLOAT32_EXPONENT = 8, FLOAT32_FRACTION = 23, FLOAT64_EXPONENT = 11, FLOAT64_FRACTION = 52 };
enum { LOW_BITS = 32 };

// Alone a rank takes as many bits a step as there are bins for, to read its candidates as seldom as
// can be, or half of what is left where two steps do; with others fewer, for less to send.
enum { ALONE_BITS = 11, SHARED_BITS = 8 };
_Static_assert(1 << ALONE_BITS == M2PO_BINS, "a bin for each value of the bits");

_Static_assert(sizeof(m2po_bin[M2PO_BINS]) == M2PO_SUM_SCRATCH * sizeof(uint64_t),
               "the bins are m2po_sum_before's scratch");

/// The cut's bits are in [first, first + 2^shift).
typedef struct bit_walk {
  bool wide;
  int fraction; ///< bits of the stored mantissa
  uint64_t first;
  int shift;
} bit_walk;

static uint64_t bits_of(const m2po_squares *part, int64_t i, bool wide)
{
  uint64_t bits = 0;
  if (part->wide || wide) {
    const double value = m2po_square_at(part, i);
    memcpy(&bits, &value, sizeof value);
  } else {
    uint32_t narrow;
    memcpy(&narrow, m2po_squares_narrow(part) + i, sizeof narrow);
    bits = narrow;
  }
  return bits;
}

static double value_of(const bit_walk *walk)
{
  if (walk->wide) {
    double value;
    memcpy(&value, &walk->first, sizeof value);
    return value;
  }
  const uint32_t bits = (uint32_t)walk->first;
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint64_t mantissa_of(const bit_walk *walk, uint64_t bits)
{
  const uint64_t lead = UINT64_C(1) << walk->fraction;
  const uint64_t fraction = bits & (lead - 1);
  return bits >= lead ? fraction | lead : fraction; // below `lead`: a subnormal
}

// The unit of the mantissa of such bits.
static int unit_exponent(const bit_walk *walk, uint64_t bits)
{
  const int exponent = (int)(bits >> walk->fraction);
  const int bias = walk->wide ? 1075 : 150;
  return (exponent == 0 ? 1 : exponent) - bias;
}

static void fill_wide_bins(const bit_walk *walk, int open, const m2po_squares *part, m2po_bin *bins)
{
  const uint64_t length = UINT64_C(1) << walk->shift;
  for (int64_t i = 0; i < part->count; ++i) {
    const uint64_t bits = bits_of(part, i, true);
    if (bits - walk->first < length) {
      m2po_bin *const bin = &bins[(bits - walk->first) >> open];
      const uint64_t mantissa = mantissa_of(walk, bits);
      bin->count += 1;
      bin->high += mantissa >> LOW_BITS;
      bin->low += mantissa & UINT32_MAX;
    }
  }
}

// No bits above the low ones: a float32 has a mantissa of 24.
static void fill_narrow_bins(const bit_walk *walk, int open, const m2po_squares *part,
                             m2po_bin *bins)
{
  const float *const squares = m2po_squares_narrow(part);
  const int64_t count = part->count;
  const uint32_t first = (uint32_t)walk->first;
  const uint32_t length = UINT32_C(1) << walk->shift;
  const uint32_t lead = UINT32_C(1) << FLOAT32_FRACTION;
  for (int64_t i = 0; i < count; ++i) {
    uint32_t bits;
    memcpy(&bits, squares + i, sizeof bits);
    if (bits - first < length) {
      m2po_bin *const bin = &bins[(bits - first) >> open];
      bin->count += 1;
      bin->low += bits < lead ? bits : (bits & (lead - 1)) | lead; // less: a subnormal
    }
  }
}

// Counts the tokens that may be at the cut, in bins of 2^open.
static void fill_bins(const bit_walk *walk, int open, const m2po_squares *parts,
                      m2po_bin bins[M2PO_BINS])
{
  memset(bins, 0, ((size_t)1 << (walk->shift - open)) * sizeof bins[0]);
  for (const m2po_squares *part = parts; part != NULL; part = part->next) {
    m2po_squares_fetch(part->next);
    if (walk->wide) {
      fill_wide_bins(walk, open, part, bins);
    } else {
      fill_narrow_bins(walk, open, part, bins);
    }
  }
}

m2po_rule m2po_rule_of(const m2po_config *config)
{
  return (m2po_rule){config->m2_threshold, config->boundary == M2PO_BELOW, config->min_kept_tokens};
}

bool m2po_affordable(const m2po_rule *rule, const m2po_exact *sum, int64_t count)
{
  if (count <= rule->min_kept || count == 0) {
    return true;
  }
  const int sign = m2po_exact_compare(sum, rule->threshold, count);
  return rule->strict ? sign < 0 : sign <= 0;
}

// How many bins from one on have its exponent.
static int64_t bins_of_unit(const bit_walk *walk, int open, uint64_t bits)
{
  const uint64_t next = ((bits >> walk->fraction) + 1) << walk->fraction;
  return (int64_t)((next - bits) >> open);
}

// `kept` and what is in bins [first, end).
static m2po_kept with_bins(const bit_walk *walk, int open, const m2po_bin *bins, int64_t first,
                           int64_t end, const m2po_kept *kept)
{
  m2po_kept all = *kept;
  while (first < end) {
    const uint64_t bits = walk->first + ((uint64_t)first << open);
    const int64_t sharing = bins_of_unit(walk, open, bits);
    const int64_t stop = sharing < end - first ? first + sharing : end;
    m2po_bin sum = {0};
    for (; first < stop; ++first) {
      sum.count += bins[first].count;
      sum.high += bins[first].high;
      sum.low += bins[first].low;
    }
    const m2po_u128 mantissas = ((m2po_u128)sum.high << LOW_BITS) + sum.low;
    m2po_exact_add(&all.sum, mantissas, unit_exponent(walk, bits));
    all.count += (int64_t)sum.count;
  }
  return all;
}

// Keeps whole bins, smallest first, while that is affordable: the cut is in the first that isn't.
// Its tokens are counted in *equals. The mean grows with every bin, so that halves can be tried in
// place of each. False: all are affordable.
static bool walk_down(bit_walk *walk, int open, const m2po_rule *rule,
                      const m2po_bin bins[M2PO_BINS], m2po_kept *kept, int64_t *equals)
{
  int64_t bin = 0;
  for (int64_t half = (int64_t)1 << (walk->shift - open) >> 1; half > 0; half >>= 1) {
    const m2po_kept more = with_bins(walk, open, bins, bin, bin + half, kept);
    if (m2po_affordable(rule, &more.sum, more.count)) {
      *kept = more;
      bin += half;
    }
  }
  const m2po_kept more = with_bins(walk, open, bins, bin, bin + 1, kept);
  walk->first += (uint64_t)bin << open;
  walk->shift = open;
  *equals = (int64_t)bins[bin].count;
  return !m2po_affordable(rule, &more.sum, more.count);
}

float m2po_candidate_bound(const m2po_rule *rule)
{
  const float near = (float)rule->threshold;
  return m2po_is_candidate(rule, (double)near) ? nextafterf(near, -INFINITY) : near;
}

static m2po_kept with_equals(const m2po_kept *kept, double value, int64_t equals)
{
  m2po_kept all = *kept;
  const m2po_parts parts = m2po_exact_parts(value);
  m2po_exact_add(&all.sum, (m2po_u128)parts.mantissa * (uint64_t)equals, parts.exponent);
  all.count += equals;
  return all;
}

// Of `equals` tokens with the same m, not all of which are affordable: how many are.
static int64_t affordable_equals(const m2po_rule *rule, const m2po_kept *kept, double value,
                                 int64_t equals)
{
  int64_t low = 0;
  int64_t high = equals;
  while (high - low > 1) {
    const int64_t middle = low + ((high - low) / 2);
    const m2po_kept more = with_equals(kept, value, middle);
    if (m2po_affordable(rule, &more.sum, more.count)) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

// Counts this rank's tokens at the cut, and tells each part how many come before it.
static int64_t count_equals(const bit_walk *walk, m2po_squares *parts)
{
  int64_t count = 0;
  for (m2po_squares *part = parts; part != NULL; part = part->next) {
    part->equals_before = count;
    for (int64_t i = 0; i < part->count; ++i) {
      count += bits_of(part, i, walk->wide) == walk->first ? 1 : 0;
    }
  }
  return count;
}

// By how many bits a step narrows down. Alone the last two share what is left.
static int bits_of_step(const bit_walk *walk, bool shared)
{
  const int half = (walk->shift + 1) / 2;
  const int alone = walk->shift > ALONE_BITS && half < ALONE_BITS ? half : ALONE_BITS;
  const int wanted = shared ? SHARED_BITS : alone;
  const int exponent = walk->shift - walk->fraction;
  const int least = exponent > wanted ? exponent : wanted;
  return least < walk->shift ? least : walk->shift;
}

static bit_walk walk_over_all(bool wide)
{
  const int fraction = wide ? FLOAT64_FRACTION : FLOAT32_FRACTION;
  const int exponent = wide ? FLOAT64_EXPONENT : FLOAT32_EXPONENT;
  return (bit_walk){wide, fraction, 0, fraction + exponent};
}

typedef struct bit_extent {
  uint64_t lowest;
  uint64_t highest;
} bit_extent;

static bit_extent extent_of_wide(const m2po_squares *part)
{
  bit_extent found = {UINT64_MAX, 0};
  for (int64_t i = 0; i < part->count; ++i) {
    const uint64_t bits = bits_of(part, i, true);
    found.lowest = bits < found.lowest ? bits : found.lowest;
    found.highest = bits > found.highest ? bits : found.highest;
  }
  return found;
}

// As signed numbers, which all vector instructions compare.
static bit_extent extent_of_narrow(const m2po_squares *part)
{
  const float *const squares = m2po_squares_narrow(part);
  const int64_t count = part->count;
  int32_t lowest = INT32_MAX;
  int32_t highest = 0;
  for (int64_t i = 0; i < count; ++i) {
    int32_t bits;
    memcpy(&bits, squares + i, sizeof bits);
    lowest = bits < lowest ? bits : lowest;
    highest = bits > highest ? bits : highest;
  }
  return (bit_extent){(uint64_t)lowest, (uint64_t)highest};
}

// Over no more than the candidates, which are not so different from each other.
static bit_walk walk_over(const m2po_squares *parts, bool wide)
{
  bit_extent all = {UINT64_MAX, 0};
  for (const m2po_squares *part = parts; part != NULL; part = part->next) {
    const bit_extent own = wide ? extent_of_wide(part) : extent_of_narrow(part);
    all.lowest = own.lowest < all.lowest ? own.lowest : all.lowest;
    all.highest = own.highest > all.highest ? own.highest : all.highest;
  }
  bit_walk walk = walk_over_all(wide);
  walk.shift = -1;
  do { // the first bins begin where bins of their size do, so that each has one exponent
    ++walk.shift;
    const int open = walk.shift - bits_of_step(&walk, false);
    walk.first = all.lowest >> open << open;
  } while ((all.highest - walk.first) >> walk.shift != 0);
  return walk;
}

static int64_t count_all(const m2po_squares *parts)
{
  int64_t count = 0;
  for (; parts != NULL; parts = parts->next) {
    count += parts->count;
  }
  return count;
}

// Takes the walk down to one value. Its tokens are counted in *equals.
static int32_t walk_to_end(bit_walk *walk, const m2po_rule *rule, const m2po_squares *parts,
                           const rft_collectives *collectives, m2po_bin bins[M2PO_BINS],
                           m2po_kept *kept, int64_t *equals, rft_error *error)
{
  while (walk->shift > 0) {
    const int width = bits_of_step(walk, collectives != NULL);
    const int open = walk->shift - width;
    fill_bins(walk, open, parts, bins);
    const int64_t words = ((int64_t)1 << width) * (int64_t)(sizeof bins[0] / sizeof(uint64_t));
    const int32_t code = m2po_reduce(collectives, &bins[0].count, words, error);
    if (code != RFT_OK) {
      return code;
    }
    if (!walk_down(walk, open, rule, bins, kept, equals)) {
      return rft_fail(error, RFT_INTERNAL, "m2po: a selection with a cut to find has none");
    }
  }
  return RFT_OK;
}

int32_t m2po_find_cut(const m2po_rule *rule, m2po_squares *parts, bool wide,
                      const rft_collectives *collectives, m2po_bin bins[M2PO_BINS], m2po_kept *kept,
                      m2po_cut *cut, rft_error *error)
{
  bit_walk walk = collectives == NULL ? walk_over(parts, wide) : walk_over_all(wide);
  int64_t equals = count_all(parts); // alone, with no more than one value, there is nothing to walk
  int32_t code = walk_to_end(&walk, rule, parts, collectives, bins, kept, &equals, error);
  if (code != RFT_OK) {
    return code;
  }
  cut->value = value_of(&walk);
  const int64_t kept_equals = affordable_equals(rule, kept, cut->value, equals);
  *kept = with_equals(kept, cut->value, kept_equals);
  if (kept_equals == 0) {
    cut->dropped_equals = equals; // this rank's, too, however many it has
    return RFT_OK;
  }
  const int64_t own = count_equals(&walk, parts);
  // The earliest go: those of lower ranks before this rank's.
  int64_t before = 0;
  code = m2po_sum_before(collectives, own, &bins[0].count, &before, error);
  const int64_t left = equals - kept_equals - before;
  cut->dropped_equals = left < 0 ? 0 : left < own ? left : own;
  return code;
}
