// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Exact sums of non-negative floating-point numbers, and exact comparison with a multiple of one.
//
// The sum is an integer in units of 2^-1074, the smallest double, in base 2^32. It holds 2^63
// doubles of any size, so nothing is ever rounded, and the order of additions never matters.

#ifndef M2PO_EXACT_H
#define M2PO_EXACT_H

#include <stdbool.h>
#include <stdint.h>

// 1074 bits below 1, 1024 above, 64 for the number of terms.
#define M2PO_EXACT_DIGITS 68

__extension__ typedef unsigned __int128 m2po_u128;

typedef struct m2po_exact {
  uint64_t digit[M2PO_EXACT_DIGITS]; ///< least significant first, each below 2^32 unless said
} m2po_exact;

/// value = mantissa * 2^exponent, for a finite value >= 0.
typedef struct m2po_parts {
  uint64_t mantissa; ///< below 2^53
  int exponent;      ///< >= -1074
} m2po_parts;

m2po_parts m2po_exact_parts(double value);

/// sum += mantissa * 2^exponent, for exponent >= -1074.
void m2po_exact_add(m2po_exact *sum, m2po_u128 mantissa, int exponent);

/// sum += term.
void m2po_exact_add_exact(m2po_exact *sum, const m2po_exact *term);

/// Brings digits that were added up elementwise, fewer than 2^31 of each, below 2^32 again.
void m2po_exact_carry(m2po_exact *sum);

/// The sign of sum - factor * count: -1, 0 or 1. factor: finite, >= 0; count >= 0.
int m2po_exact_compare(const m2po_exact *sum, double factor, int64_t count);

/// sum / count rounded once to double; 0 when count is 0.
double m2po_exact_mean(const m2po_exact *sum, int64_t count);

#endif // M2PO_EXACT_H
