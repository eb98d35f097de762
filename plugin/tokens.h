// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A block's tokens as vectors, and sums and extremes over them whose bits don't depend on the
// vectors.

#ifndef M2PO_TOKENS_H
#define M2PO_TOKENS_H

#include "kernel.h"
#include "vector.h"

static const int32_t sign_bit = INT32_MIN;

/// A sum in LANES / 2 parts, whatever the vectors of the machine: token i goes to part i % (LANES /
/// 2).
typedef struct part_sums {
  doubles part[VECTORS];
} part_sums;

static inline void add(part_sums *sums, int vector, floats values)
{
  sums->part[2 * vector % VECTORS] += widen_low(values);
  sums->part[(2 * vector + 1) % VECTORS] += widen_high(values);
}

static inline double total(const part_sums *sums)
{
  double part[LANES / 2];
  memcpy(part, sums, sizeof part);
  for (int count = LANES / 4; count > 0; count /= 2) {
    for (int i = 0; i < count; ++i) {
      part[i] += part[i + count];
    }
  }
  return part[0];
}

static inline int32_t largest(words values)
{
  int32_t element[VECTOR_FLOATS];
  memcpy(element, &values, sizeof element);
  int32_t found = element[0];
  for (int i = 1; i < VECTOR_FLOATS; ++i) {
    found = element[i] > found ? element[i] : found;
  }
  return found;
}

static inline int64_t sum_of(words values)
{
  int32_t element[VECTOR_FLOATS];
  memcpy(element, &values, sizeof element);
  int64_t sum = 0;
  for (int i = 0; i < VECTOR_FLOATS; ++i) {
    sum += element[i];
  }
  return sum;
}

/// What tokens are, for a vector of them. 0 where not valid.
typedef struct token_vector {
  words valid;
  floats advantage;
  floats log_ratio;
} token_vector;

static inline token_vector read(const m2po_block *block, int64_t i)
{
  token_vector read;
  read.valid = nonzero_bytes(block->mask + i);
  read.advantage = masked(read.valid, load(block->advantages + i));
  read.log_ratio = masked(read.valid, load(block->policy + i) - load(block->reference + i));
  return read;
}

/// The bits of the sizes of floats, which sort as they do, infinity and NaN last.
static inline words size_bits(floats values)
{
  return (words)values & ~sign_bit;
}

static inline bool all_finite(words sizes)
{
  return largest(sizes) < 0x7F800000; // infinity
}

#endif // M2PO_TOKENS_H
