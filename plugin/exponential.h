// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// exp, the same bits on every machine: libm's differs with the processor's instructions.

#ifndef M2PO_EXPONENTIAL_H
#define M2PO_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/// 2^power for -1022 <= power <= 1023.
static inline double m2po_power_of_two(int power)
{
  const uint64_t bits = (uint64_t)(power + 1023) << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

/// exp(x) within 1 ulp of float64, for every x but NaN. Not to be compiled with fast-math or with
/// contraction to fused multiply-add.
static inline double m2po_exp(double x)
{
  if (x > 709.8) {
    return INFINITY;
  }
  if (x < -745.2) {
    return 0.0;
  }
  // x = k ln 2 + r with |r| <= ln 2 / 2; ln 2 in two parts, the first of few bits, so that k times
  // it is exact.
  const double k = nearbyint(x * 0x1.71547652b82fep0);
  const double r = (x - k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33;
  // Taylor's series to r^13 / 13!, whose remainder is below 2^-57.
  static const double inverse_factorial[] = {
      1.0 / 6227020800, 1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320,
      1.0 / 5040,       1.0 / 720,       1.0 / 120,      1.0 / 24,      1.0 / 6,      1.0 / 2};
  double tail = inverse_factorial[0];
  for (int i = 1; i < 12; ++i) {
    tail = tail * r + inverse_factorial[i];
  }
  const double value = 1.0 + (r + r * r * tail);
  // In two steps, so that a result below the normal numbers is rounded once.
  const int half = (int)k / 2;
  return value * m2po_power_of_two(half) * m2po_power_of_two((int)k - half);
}

#endif // M2PO_EXPONENTIAL_H
