// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// exp, the same bits on every machine: libm's differs with the processor's instructions.

#ifndef M2PO_EXPONENTIAL_H
#define M2PO_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

/// x = k ln 2 + r with |r| <= ln 2 / 2, for a double or a vector of them: declares `r`, and
/// `shifted`, whose low bits are k. Adding 1.5 * 2^52 rounds to an integer, k, and leaves it in the
/// low bits. ln 2 comes in two parts, the first of few bits, so that k times it is exact.
#define M2PO_EXP_REDUCE(type, x)                                                                   \
  const type shifted = (x)*0x1.71547652b82fep0 + 0x1.8p52;                                         \
  const type k = shifted - 0x1.8p52;                                                               \
  const type r = ((x)-k * 0x1.62e42fee00000p-1) - k * 0x1.a39ef35793c76p-33

/// Declares `fraction`, exp(r): Taylor's series to r^13 / 13!, whose remainder is below 2^-57,
/// summed in pairs, which wait less for each other than Horner's chain.
#define M2PO_EXP_OF_REST(type, r)                                                                  \
  const type r2 = (r) * (r);                                                                       \
  const type r4 = r2 * r2;                                                                         \
  const type low = (1.0 / 6 + (r) * (1.0 / 24)) + r2 * (1.0 / 120 + (r) * (1.0 / 720));            \
  const type middle =                                                                              \
      (1.0 / 5040 + (r) * (1.0 / 40320)) + r2 * (1.0 / 362880 + (r) * (1.0 / 3628800));            \
  const type high = (1.0 / 39916800 + (r) * (1.0 / 479001600)) + r2 * (1.0 / 6227020800);          \
  const type rest = low + r4 * (middle + r4 * high);                                               \
  const type fraction = 1.0 + ((r) + r2 * (1.0 / 2 + (r)*rest))

/// exp(x) within 1 ulp of float64 for x from -708 up; below, where it is less than 4e-308, 0. No
/// branch, so that a loop over it becomes vector instructions. Not to be compiled with fast-math or
/// with contraction to fused multiply-add.
static inline double m2po_exp(double x)
{
  M2PO_EXP_REDUCE(double, x);
  M2PO_EXP_OF_REST(double, r);
  // Times 2^k, by adding k to the exponent field.
  uint64_t bits;
  uint64_t power;
  memcpy(&bits, &fraction, sizeof bits);
  memcpy(&power, &shifted, sizeof power);
  bits += power << 52;
  double value;
  memcpy(&value, &bits, sizeof value);
  value = x < -708.0 ? 0.0 : value;
  return x > 709.78 ? INFINITY : value;
}

#endif // M2PO_EXPONENTIAL_H
