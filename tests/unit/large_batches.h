// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Batches of float32 that are large enough to be sampled, and patterns that a sample may miss.

#ifndef TEST_LARGE_BATCHES_H
#define TEST_LARGE_BATCHES_H

#include "batches.h"

typedef enum large_kind {
  LARGE_FRESH,      ///< log-ratios of a normal distribution, deviation 0.05
  LARGE_STALE,      ///< 0.15 of Student's t, three degrees of freedom
  LARGE_VERY_STALE, ///< 0.5 of it
  LARGE_SORTED,
  LARGE_REVERSED,
  LARGE_EQUAL,     ///< all of one size, over tau = 0.04
  LARGE_TIES,      ///< of eight sizes
  LARGE_OVER,      ///< all of T over tau
  LARGE_OUTLIER,   ///< fresh, but for one token that alone brings the mean over tau
  LARGE_OUTLIERS,  ///< fresh, but for a huge one in a few thousand
  LARGE_CLUSTER,   ///< fresh, but for one run in the middle
  LARGE_HALVES,    ///< a fresh half, then a very stale one
  LARGE_PERIODIC,  ///< large ones at every 32nd token of every 512
  LARGE_ALTERNATE, ///< every second token is in T
  LARGE_AGAINST,   ///< T is empty
  LARGE_MASKED,    ///< no token is valid
  LARGE_ZEROS,     ///< nearly all log-ratios are 0
  LARGE_TINY,      ///< squares below the smallest normal float
  LARGE_KINDS
} large_kind;

extern const char *const large_kind_names[LARGE_KINDS];

/// A compact [count] batch without a proximal policy. Masked positions hold junk.
rft_batch *large_batch(uint64_t seed, large_kind kind, int64_t count);

/// The same tokens as [rows, count / rows] with an advantage a row, or packed in sequences of
/// uneven lengths, some empty, with an advantage each.
rft_batch *large_padded(const rft_batch *flat, int64_t rows);
rft_batch *large_packed(uint64_t seed, const rft_batch *flat, int64_t sequences);

#endif // TEST_LARGE_BATCHES_H
