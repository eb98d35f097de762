// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Random numbers that depend on their place alone: a generator is made from (seed, stream, index),
// so that any thread can draw any sequence, in any order, and a resumed run needs no saved state.

#ifndef TRAIN_RNG_H
#define TRAIN_RNG_H

#include <stdint.h>

// What the numbers are for. Streams of one seed are independent.
typedef enum rng_stream {
  RNG_INIT = 1,   // index: none
  RNG_WARM_START, // index: step
  RNG_HELD_OUT,   // index: none
  RNG_PROMPT,     // index: rollout batch
  RNG_SAMPLE      // index: rollout sequence
} rng_stream;

typedef struct train_rng {
  uint64_t state;
} train_rng;

train_rng rng_make(uint64_t seed, rng_stream stream, int64_t index);

// Uniform in [0, 1), a multiple of 2^-53.
double rng_uniform(train_rng *generator);

// Uniform in [0, limit), for a limit far below 2^53.
int64_t rng_below(train_rng *generator, int64_t limit);

// A well mixed hash of `value`.
uint64_t rng_mix(uint64_t value);

#endif // TRAIN_RNG_H
