// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "tally.h"

#include <math.h>
#include <string.h>

enum { FLOAT32_FRACTION = 23, FLOAT32_BIAS = 150 };

static void add_narrow(m2po_tally *tally, float square)
{
  uint32_t bits;
  memcpy(&bits, &square, sizeof bits);
  const uint32_t exponent = bits >> FLOAT32_FRACTION;
  const uint32_t fraction = bits & ((1U << FLOAT32_FRACTION) - 1);
  tally->mantissas[exponent] += exponent == 0 ? fraction : fraction | 1U << FLOAT32_FRACTION;
}

void m2po_tally_add(m2po_tally *tally, double square, bool wide)
{
  if (wide) {
    const m2po_parts parts = m2po_exact_parts(square);
    m2po_exact_add(&tally->sum, parts.mantissa, parts.exponent);
  } else {
    add_narrow(tally, (float)square);
  }
}

void m2po_tally_add_floats(m2po_tally *tally, const float *squares, int64_t count)
{
  for (int64_t i = 0; i < count; ++i) {
    add_narrow(tally, squares[i]);
  }
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

static float largest_of(const float squares[M2PO_BLOCK])
{
  enum { LANES = 16 };
  float lane[LANES] = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    for (int k = 0; k < LANES; ++k) {
      lane[k] = squares[i + k] > lane[k] ? squares[i + k] : lane[k];
    }
  }
  float largest = 0.0F;
  for (int k = 0; k < LANES; ++k) {
    largest = lane[k] > largest ? lane[k] : largest;
  }
  return largest;
}

// The largest first, as many at once as add up exactly.
static void add_in_spans(m2po_tally *tally, const m2po_kernels *kernels, float squares[M2PO_BLOCK])
{
  for (float top = largest_of(squares); top > 0;) {
    add_exactly(tally, kernels->take(squares, power_below(top, EXACT_SPAN), &top));
  }
}

// `sum`: of the squares, as it came about in a double. None is below `least` but 0.
static void add_squares(m2po_tally *tally, const m2po_kernels *kernels, double sum, float least,
                        float squares[M2PO_BLOCK])
{
  if (least > 0 && sum < ldexp((double)power_below(least, 0), EXACT_RANGE)) {
    add_exactly(tally, sum);
  } else {
    add_in_spans(tally, kernels, squares);
  }
}

void m2po_tally_add_below(m2po_tally *tally, const m2po_kernels *kernels, m2po_sighting *sighting)
{
  add_squares(tally, kernels, sighting->glance.below_sum, sighting->least_below, sighting->below);
}

void m2po_tally_add_over(m2po_tally *tally, const m2po_kernels *kernels, float low,
                         m2po_sighting *sighting)
{
  add_squares(tally, kernels, kernels->sum(sighting->over), low, sighting->over);
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
