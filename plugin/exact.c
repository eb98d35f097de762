// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "exact.h"

#include <math.h>
#include <string.h>

enum {
  DIGIT_BITS = 32,
  UNIT_EXPONENT = -1074, // of the smallest double, the unit of a sum
  FRACTION_BITS = 52,    // stored bits of a double's mantissa
  EXPONENT_MASK = 0x7FF,
  // A quotient is rounded from two digits below the unit, so that the smallest doubles round right.
  GUARD_DIGITS = 2,
  QUOTIENT_DIGITS = M2PO_EXACT_DIGITS + GUARD_DIGITS
};

static const uint64_t digit_mask = UINT64_C(0xFFFFFFFF);

m2po_parts m2po_exact_parts(double value)
{
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  const uint64_t fraction = bits & ((UINT64_C(1) << FRACTION_BITS) - 1);
  const int biased = (int)((bits >> FRACTION_BITS) & EXPONENT_MASK);
  if (biased == 0) {
    return (m2po_parts){fraction, UNIT_EXPONENT};
  }
  return (m2po_parts){fraction | (UINT64_C(1) << FRACTION_BITS), UNIT_EXPONENT + biased - 1};
}

void m2po_exact_add(m2po_exact *sum, m2po_u128 mantissa, int exponent)
{
  const int position = exponent - UNIT_EXPONENT;
  const int shift = position % DIGIT_BITS;
  // The lowest digit takes what the shift leaves of it; the rest moves up digit by digit.
  uint64_t part = (uint64_t)(mantissa << shift) & digit_mask;
  m2po_u128 rest = mantissa >> (DIGIT_BITS - shift);
  uint64_t carry = 0;
  for (int i = position / DIGIT_BITS; i < M2PO_EXACT_DIGITS; ++i) {
    const uint64_t digit = sum->digit[i] + part + carry;
    sum->digit[i] = digit & digit_mask;
    carry = digit >> DIGIT_BITS;
    part = (uint64_t)rest & digit_mask;
    rest >>= DIGIT_BITS;
    if (part == 0 && carry == 0 && rest == 0) {
      break;
    }
  }
}

void m2po_exact_add_exact(m2po_exact *sum, const m2po_exact *term)
{
  for (int i = 0; i < M2PO_EXACT_DIGITS; ++i) {
    sum->digit[i] += term->digit[i];
  }
  m2po_exact_carry(sum);
}

void m2po_exact_carry(m2po_exact *sum)
{
  uint64_t carry = 0;
  for (int i = 0; i < M2PO_EXACT_DIGITS; ++i) {
    const uint64_t digit = sum->digit[i] + carry;
    sum->digit[i] = digit & digit_mask;
    carry = digit >> DIGIT_BITS;
  }
}

int m2po_exact_compare(const m2po_exact *sum, double factor, int64_t count)
{
  const m2po_parts parts = m2po_exact_parts(factor);
  m2po_exact product = {{0}};
  m2po_exact_add(&product, (m2po_u128)parts.mantissa * (uint64_t)count, parts.exponent);
  for (int i = M2PO_EXACT_DIGITS - 1; i >= 0; --i) {
    if (sum->digit[i] != product.digit[i]) {
      return sum->digit[i] < product.digit[i] ? -1 : 1;
    }
  }
  return 0;
}

// quotient = sum / count in units of 2^(-1074 - 64), most significant digit last; returns whether a
// remainder is left.
static bool divide(const m2po_exact *sum, uint64_t count, uint64_t quotient[QUOTIENT_DIGITS])
{
  m2po_u128 remainder = 0;
  for (int i = QUOTIENT_DIGITS - 1; i >= 0; --i) {
    const uint64_t digit = i >= GUARD_DIGITS ? sum->digit[i - GUARD_DIGITS] : 0;
    remainder = (remainder << DIGIT_BITS) | digit;
    quotient[i] = (uint64_t)(remainder / count);
    remainder %= count;
  }
  return remainder != 0;
}

static uint64_t bit(const uint64_t digits[QUOTIENT_DIGITS], int position)
{
  return (digits[position / DIGIT_BITS] >> (position % DIGIT_BITS)) & 1;
}

static int highest_bit(const uint64_t digits[QUOTIENT_DIGITS])
{
  int position = (QUOTIENT_DIGITS * DIGIT_BITS) - 1;
  while (position >= 0 && bit(digits, position) == 0) {
    --position;
  }
  return position;
}

static bool any_bit_below(const uint64_t digits[QUOTIENT_DIGITS], int position)
{
  for (int i = 0; i < position; ++i) {
    if (bit(digits, i) != 0) {
      return true;
    }
  }
  return false;
}

double m2po_exact_mean(const m2po_exact *sum, int64_t count)
{
  if (count == 0) {
    return 0.0;
  }
  uint64_t quotient[QUOTIENT_DIGITS];
  const bool remainder = divide(sum, (uint64_t)count, quotient);
  const int guard_bits = GUARD_DIGITS * DIGIT_BITS;
  const int top = highest_bit(quotient);
  // The last bit that is kept: 53 bits below the top, but nothing below the smallest double.
  const int last = top - FRACTION_BITS > guard_bits ? top - FRACTION_BITS : guard_bits;
  uint64_t mantissa = 0;
  for (int i = top; i >= last; --i) {
    mantissa = (mantissa << 1) | bit(quotient, i);
  }
  const bool half = bit(quotient, last - 1) != 0;
  const bool beyond = remainder || any_bit_below(quotient, last - 1);
  if (half && (beyond || (mantissa & 1) != 0)) { // round to nearest, ties to even
    ++mantissa;
  }
  return ldexp((double)mantissa, last - guard_bits + UNIT_EXPONENT);
}
