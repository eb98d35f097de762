// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "tally.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum { FLOAT32_FRACTION = 23, FLOAT32_BIAS = 150 };

void m2po_tally_add(m2po_tally *tally, double square, bool wide)
{
  if (wide) {
    const m2po_parts parts = m2po_exact_parts(square);
    m2po_exact_add(&tally->sum, parts.mantissa, parts.exponent);
    return;
  }
  const float narrow = (float)square;
  uint32_t bits;
  memcpy(&bits, &narrow, sizeof bits);
  const uint32_t exponent = bits >> FLOAT32_FRACTION;
  const uint32_t fraction = bits & ((1U << FLOAT32_FRACTION) - 1);
  tally->mantissas[exponent] += exponent == 0 ? fraction : fraction | 1U << FLOAT32_FRACTION;
}

// Floats that are at least `least`, a power of two, add up exactly in a double, in any order, as
// long as the sum is below least * 2^30: they are multiples of its last bit, least * 2^-23, and a
// double has 53 bits. A block (2^9) of floats whose exponents differ by at most 20 stays below
// that.
enum { EXACT_RANGE = 30, EXACT_SPAN = 20 };
_Static_assert(M2PO_BLOCK <= 512, "EXACT_SPAN counts on it");

// The power of two below a float > 0, so many binary orders down.
static float power_below(float value, int orders)
{
  int exponent;
  frexpf(value, &exponent);
  const float power = ldexpf(1.0F, exponent - 1 - orders);
  return power > 0 ? power : 0x1p-149F;
}

static void add_exactly(m2po_tally *tally, double sum)
{
  const m2po_parts parts = m2po_exact_parts(sum);
  m2po_exact_add(&tally->sum, parts.mantissa, parts.exponent);
}

float m2po_tally_safe_least(float low)
{
  return low > 0 ? power_below(low < FLT_MAX ? low : FLT_MAX, EXACT_SPAN) : 0x1p-149F;
}

float m2po_tally_next_least(double sum, float safe)
{
  const float least = sum > 0 ? power_below((float)sum, EXACT_RANGE - 2) : safe;
  return least < safe ? least : safe;
}

static bool is_exact(double sum, float least)
{
  return sum < ldexp((double)least, EXACT_RANGE);
}

bool m2po_tally_add_below(m2po_tally *tally, const m2po_kernels *kernels, m2po_sighting *sighting,
                          float least)
{
  if (!is_exact(sighting->below, least)) {
    return false;
  }
  add_exactly(tally, sighting->below);
  for (float top = sighting->largest_left; top > 0;) {
    add_exactly(tally, kernels->take(sighting->left, power_below(top, EXACT_SPAN), &top));
  }
  return true;
}

bool m2po_tally_add_above(m2po_tally *tally, const m2po_kernels *kernels, float squares[M2PO_BLOCK],
                          float floor)
{
  float none;
  const float least = power_below(floor, 0);
  const double sum = kernels->take(squares, least, &none);
  if (!is_exact(sum, least)) {
    return false;
  }
  add_exactly(tally, sum);
  return true;
}

void m2po_tally_fold(const m2po_tally *tally, m2po_exact *sum)
{
  m2po_exact_add_exact(sum, &tally->sum);
  for (int exponent = 0; exponent < M2PO_FLOAT32_EXPONENTS; ++exponent) {
    if (tally->mantissas[exponent] != 0) {
      m2po_exact_add(sum, tally->mantissas[exponent],
                     (exponent == 0 ? 1 : exponent) - FLOAT32_BIAS);
    }
  }
}
