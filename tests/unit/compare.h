// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#ifndef TEST_COMPARE_H
#define TEST_COMPARE_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

/// Relative closeness; an expected zero must be exactly zero.
static inline bool is_close(double value, double expected, double relative)
{
  return fabs(value - expected) <= relative * fabs(expected);
}

/// Equal to the last bit: 0.0 and -0.0 differ, a NaN equals itself.
static inline bool same_bits(double a, double b)
{
  return memcmp(&a, &b, sizeof a) == 0;
}

/// Closeness of losses and gradients to the exact answer.
#define LOSS_TOLERANCE 1e-6

#endif // TEST_COMPARE_H
