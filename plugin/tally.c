// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "tally.h"

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

// Floats whose exponents differ by at most this much add up exactly in a double, in any order, a
// block of them (2^8) at a time: 24 bits of the smallest one, 20 up to the largest, 8 for the
// number and 1 more make 53.
enum { EXACT_SPAN = 20 };
_Static_assert(M2PO_BLOCK == 256, "EXACT_SPAN counts on it");

// The least power of two that is within the span below `top` > 0.
static float span_below(float top)
{
  int exponent;
  frexpf(top, &exponent);
  const float least = ldexpf(1.0F, exponent - 1 - EXACT_SPAN);
  return least > 0 ? least : 0x1p-149F;
}

bool m2po_tally_add_block(m2po_tally *tally, const m2po_kernels *kernels, float squares[M2PO_BLOCK],
                          float ceiling)
{
  float top = ceiling;
  if (isinf(top) && isinf(kernels->take(squares, INFINITY, &top))) {
    return false;
  }
  while (top > 0) {
    const m2po_parts parts = m2po_exact_parts(kernels->take(squares, span_below(top), &top));
    m2po_exact_add(&tally->sum, parts.mantissa, parts.exponent);
  }
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
