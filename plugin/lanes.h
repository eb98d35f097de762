// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Sums and extremes of a block of numbers, whose bits do not depend on the machine's vectors.

#ifndef M2PO_LANES_H
#define M2PO_LANES_H

/// Positions that are loaded at a time into buffers on the stack.
enum { M2PO_BLOCK = 512 };

double m2po_sum(const double values[M2PO_BLOCK]);
double m2po_largest(const double values[M2PO_BLOCK]);

static inline double m2po_larger(double left, double right)
{
  return left > right ? left : right;
}

static inline double m2po_smaller(double left, double right)
{
  return left < right ? left : right;
}

static inline double m2po_clamp(double value, double limit)
{
  return m2po_smaller(m2po_larger(value, -limit), limit);
}

#endif // M2PO_LANES_H
