// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "rng.h"

// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators", 2014): a Weyl
// sequence through a bijective mixing function.
static const uint64_t golden_gamma = UINT64_C(0x9E3779B97F4A7C15);

uint64_t rng_mix(uint64_t value)
{
  value = (value ^ (value >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  value = (value ^ (value >> 27)) * UINT64_C(0x94D049BB133111EB);
  return value ^ (value >> 31);
}

train_rng rng_make(uint64_t seed, rng_stream stream, int64_t index)
{
  const uint64_t key = rng_mix(seed + golden_gamma) + (uint64_t)stream * golden_gamma;
  return (train_rng){.state = rng_mix(rng_mix(key) + ((uint64_t)index + 1) * golden_gamma)};
}

double rng_uniform(train_rng *generator)
{
  generator->state += golden_gamma;
  return (double)(rng_mix(generator->state) >> 11) * 0x1p-53;
}

int64_t rng_below(train_rng *generator, int64_t limit)
{
  return (int64_t)(rng_uniform(generator) * (double)limit);
}
