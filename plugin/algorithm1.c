// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "algorithm1.h"

#include "reduce.h"
#include "support/error.h"

#include <math.h>
#include <string.h>

// A non-negative float sorts as its bits do. A walk fixes those bits of the cut from the top: first
// the exponent, so that the mantissas of one bin are integers of one unit, then some bits at a
// time.
enum { FLOAT32_EXPONENT = 8, FLOAT32_FRACTION = 23, FLOAT64_EXPONENT = 11, FLOAT64_FRACTION = 52 };
enum { LOW_BITS = 32 };

// Alone a rank takes as many bits a step as there are bins for, to read its candidates as seldom as
// can be; with others fewer, for less to send.
enum { ALONE_BITS = 11, SHARED_BITS = 8 };
enum { GROUP_BITS = 5 }; // of the bins that are looked at together first
_Static_assert(1 << ALONE_BITS == M2PO_BINS, "a bin for each value of the bits");

_Static_assert(sizeof(m2po_bin[M2PO_BINS]) == M2PO_SUM_SCRATCH * sizeof(uint64_t),
               "the bins are m2po_sum_before's scratch");

typedef struct bit_walk {
  bool wide;
  int fraction; ///< bits of the stored mantissa
  int shift;    ///< bits not yet fixed
  uint64_t top; ///< the fixed bits of the cut
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
    memcpy(&value, &walk->top, sizeof value);
    return value;
  }
  const uint32_t bits = (uint32_t)walk->top;
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

// The unit of the mantissas whose bits start with `top`, `shift` bits being open.
static int unit_exponent(const bit_walk *walk, uint64_t top, int shift)
{
  const int exponent = (int)(top >> (walk->fraction - shift));
  const int bias = walk->wide ? 1075 : 150;
  return (exponent == 0 ? 1 : exponent) - bias;
}

static void fill_wide_bins(const bit_walk *walk, int open, const m2po_squares *part, m2po_bin *bins)
{
  const uint64_t first = walk->top << walk->shift;
  const uint64_t end = (walk->top + 1) << walk->shift;
  for (int64_t i = 0; i < part->count; ++i) {
    const uint64_t bits = bits_of(part, i, true);
    if (bits >= first && bits < end) {
      m2po_bin *const bin = &bins[(bits - first) >> open];
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
  const uint32_t first = (uint32_t)(walk->top << walk->shift);
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

// Counts the tokens that share the fixed bits by those from `open` on.
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

static m2po_kept with_bin(const m2po_kept *kept, const m2po_bin *bin, int exponent)
{
  m2po_kept all = *kept;
  m2po_exact_add(&all.sum, ((m2po_u128)bin->high << LOW_BITS) + bin->low, exponent);
  all.count += (int64_t)bin->count;
  return all;
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

static m2po_bin sum_of_bins(const m2po_bin *bins, int64_t count)
{
  m2po_bin sum = {0};
  for (int64_t i = 0; i < count; ++i) {
    sum.count += bins[i].count;
    sum.high += bins[i].high;
    sum.low += bins[i].low;
  }
  return sum;
}

// Keeps groups of so many bins, from `first` up, while that is affordable. Gives the first group
// that isn't, or the end.
static int64_t keep_groups(const bit_walk *walk, int open, const m2po_rule *rule,
                           const m2po_bin *bins, int64_t first, int64_t end, int64_t group,
                           m2po_kept *kept)
{
  for (; first < end; first += group) {
    const m2po_bin all = sum_of_bins(bins + first, group);
    if (all.count == 0) {
      continue;
    }
    const uint64_t top = (walk->top << (walk->shift - open)) | (uint64_t)first;
    const m2po_kept more = with_bin(kept, &all, unit_exponent(walk, top, open));
    if (!m2po_affordable(rule, &more.sum, more.count)) {
      break;
    }
    *kept = more;
  }
  return first;
}

// Keeps whole bins, smallest first, while that is affordable, and fixes the bits of the first that
// isn't: the cut is in it. Its tokens are counted in *equals.
static bool walk_down(bit_walk *walk, int open, const m2po_rule *rule,
                      const m2po_bin bins[M2PO_BINS], m2po_kept *kept, int64_t *equals)
{
  const int64_t count = (int64_t)1 << (walk->shift - open);
  // The bins of a group share the exponent, and so the unit.
  const int sharing = walk->fraction - open;
  const int64_t group = (int64_t)1 << (sharing < GROUP_BITS ? sharing : GROUP_BITS);
  const int64_t there = keep_groups(walk, open, rule, bins, 0, count, group, kept);
  if (there == count) {
    return false;
  }
  const int64_t bin = keep_groups(walk, open, rule, bins, there, there + group, 1, kept);
  walk->top = (walk->top << (walk->shift - open)) | (uint64_t)bin;
  walk->shift = open;
  *equals = (int64_t)bins[bin].count;
  return true;
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
      count += bits_of(part, i, walk->wide) == walk->top ? 1 : 0;
    }
  }
  return count;
}

static int bits_of_step(const bit_walk *walk, int wanted)
{
  const int exponent = walk->shift - walk->fraction;
  const int least = exponent > wanted ? exponent : wanted;
  return least < walk->shift ? least : walk->shift;
}

int32_t m2po_find_cut(const m2po_rule *rule, m2po_squares *parts, bool wide,
                      const rft_collectives *collectives, m2po_bin bins[M2PO_BINS], m2po_kept *kept,
                      m2po_cut *cut, rft_error *error)
{
  const int fraction = wide ? FLOAT64_FRACTION : FLOAT32_FRACTION;
  const int exponent = wide ? FLOAT64_EXPONENT : FLOAT32_EXPONENT;
  bit_walk walk = {wide, fraction, fraction + exponent, 0};
  int64_t equals = 0;
  while (walk.shift > 0) {
    const int width = bits_of_step(&walk, collectives == NULL ? ALONE_BITS : SHARED_BITS);
    const int open = walk.shift - width;
    fill_bins(&walk, open, parts, bins);
    const int64_t words = ((int64_t)1 << width) * (int64_t)(sizeof bins[0] / sizeof(uint64_t));
    const int32_t code = m2po_reduce(collectives, &bins[0].count, words, error);
    if (code != RFT_OK) {
      return code;
    }
    if (!walk_down(&walk, open, rule, bins, kept, &equals)) {
      return rft_fail(error, RFT_INTERNAL, "m2po: a selection with a cut to find has none");
    }
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
  const int32_t code = m2po_sum_before(collectives, own, &bins[0].count, &before, error);
  const int64_t left = equals - kept_equals - before;
  cut->dropped_equals = left < 0 ? 0 : left < own ? left : own;
  return code;
}
