// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "lanes.h"

#include <math.h>
#include <stdint.h>

// Sums are made in this many interleaved parts, whatever the vectors of the machine, and the parts
// are added in one order.
enum { LANES = 8 };

double m2po_sum(const double values[M2PO_BLOCK])
{
  double lanes[LANES] = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    for (int lane = 0; lane < LANES; ++lane) {
      lanes[lane] += values[i + lane];
    }
  }
  return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
         ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

double m2po_largest(const double values[M2PO_BLOCK])
{
  double lanes[LANES];
  for (int lane = 0; lane < LANES; ++lane) {
    lanes[lane] = -INFINITY;
  }
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    for (int lane = 0; lane < LANES; ++lane) {
      lanes[lane] = m2po_larger(values[i + lane], lanes[lane]);
    }
  }
  double found = lanes[0];
  for (int lane = 1; lane < LANES; ++lane) {
    found = m2po_larger(lanes[lane], found);
  }
  return found;
}
