// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Random numbers that are the same on every machine: SplitMix64.

#ifndef RFT_CHECK_RNG_H
#define RFT_CHECK_RNG_H

#include <stdint.h>

typedef struct rng {
  uint64_t state;
} rng;

static inline uint64_t rng_bits(rng *r)
{
  uint64_t z = r->state += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}

/// In [0, count).
static inline int64_t rng_below(rng *r, int64_t count)
{
  return (int64_t)(rng_bits(r) % (uint64_t)count);
}

/// In [low, high).
static inline double rng_between(rng *r, double low, double high)
{
  return low + ((high - low) * ((double)(rng_bits(r) >> 11) / 9007199254740992.0));
}

#endif // RFT_CHECK_RNG_H
