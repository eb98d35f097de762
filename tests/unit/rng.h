// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Reproducible random numbers: SplitMix64 (Steele, Lea, Flood 2014). Every test prints its seed.

#ifndef TEST_RNG_H
#define TEST_RNG_H

#include <math.h>
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

/// In [0, 1).
static inline double rng_uniform(rng *r)
{
  return ldexp((double)(rng_bits(r) >> 11), -53);
}

/// In [low, high).
static inline double rng_between(rng *r, double low, double high)
{
  return low + (high - low) * rng_uniform(r);
}

/// In [0, count).
static inline int64_t rng_below(rng *r, int64_t count)
{
  return (int64_t)(rng_bits(r) % (uint64_t)count);
}

#endif // TEST_RNG_H
