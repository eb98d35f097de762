// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A block's tokens as vectors, and sums and extremes over them whose bits don't depend on the
// vectors.

#ifndef M2PO_TOKENS_H
#define M2PO_TOKENS_H

#include "kernel.h"
#include "vector.h"

// Compiled anew for each constant argument.
#define SPECIALIZED __attribute__((always_inline)) static inline

/// A sum in so many parts, whatever the vectors of the machine: token i goes to part i % SUM_PARTS.
/// So many that an addition need not wait for the last one.
enum { SUM_PARTS = 32, SUM_VECTORS = SUM_PARTS / VECTOR_DOUBLES };

typedef struct part_sums {
  doubles part[SUM_VECTORS];
} part_sums;

static inline void add(part_sums *sums, int vector, floats values)
{
  doubles *const part = sums->part + (int64_t)vector * 2;
  part[0] += widen_low(values);
  part[1] += widen_high(values);
}

static inline double total(const part_sums *sums)
{
  part_sums all = *sums;
  for (int count = SUM_VECTORS / 2; count > 0; count /= 2) {
    for (int v = 0; v < count; ++v) {
      all.part[v] += all.part[v + count];
    }
  }
  double part[VECTOR_DOUBLES];
  memcpy(part, all.part, sizeof part);
  for (int count = VECTOR_DOUBLES / 2; count > 0; count /= 2) {
    for (int i = 0; i < count; ++i) {
      part[i] += part[i + count];
    }
  }
  return part[0];
}

/// Asks for the memory behind a block, which most often is the next one's. Its address is a number:
/// there may be nothing.
static inline void fetch(const void *block, int64_t offset)
{
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  __builtin_prefetch((const void *)((uintptr_t)block + (uintptr_t)offset));
}

/// What follows token `i` of these by a block: memory is asked for in the loops that compute most,
/// a line now and then, so that it comes all the time.
static inline void fetch_floats(const float block[M2PO_BLOCK], int64_t i)
{
  fetch(block, (M2PO_BLOCK + i) * (int64_t)sizeof(float));
}

static inline void fetch_flags(const uint8_t block[M2PO_BLOCK], int64_t i)
{
  if (i % M2PO_LINE == 0) {
    fetch(block, M2PO_BLOCK + i);
  }
}

/// What will be written for token `i` of a block and those after it.
static inline void fetch_output(const float output[M2PO_BLOCK], int64_t i)
{
  fetch(output, i * (int64_t)sizeof(float));
}

static inline double sum_up(const float values[M2PO_BLOCK])
{
  part_sums sums = {{{0}}};
#pragma GCC unroll 2 // not wholly, for which there are too few registers
  for (int64_t i = 0; i < M2PO_BLOCK; i += SUM_PARTS) {
    for (int64_t v = 0; v < SUM_VECTORS; ++v) {
      sums.part[v] += widen(values + i + v * VECTOR_DOUBLES);
    }
  }
  return total(&sums);
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

/// The smallest one, as unsigned numbers.
static inline uint32_t smallest(words values)
{
  uint32_t element[VECTOR_FLOATS];
  memcpy(element, &values, sizeof element);
  uint32_t found = element[0];
  for (int i = 1; i < VECTOR_FLOATS; ++i) {
    found = element[i] < found ? element[i] : found;
  }
  return found;
}

/// What tokens are, for a vector of them. 0 where not valid.
typedef struct token_vector {
  flags valid;
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

/// The same of tokens that are all valid.
static inline token_vector read_whole(const m2po_block *block, int64_t i)
{
  return (token_vector){(flags) ~(flags){0}, load(block->advantages + i),
                        load(block->policy + i) - load(block->reference + i)};
}

/// The bits of the sizes of floats, which sort as they do, infinity and NaN last.
static inline words size_bits(floats values)
{
  return (words)values & INT32_MAX;
}

static inline bool all_finite(words sizes)
{
  return !any((sizes & INT32_MAX) >= 0x7F800000); // infinity
}

static inline bool all_valid(const uint8_t mask[M2PO_BLOCK])
{
  bytes zero = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += VECTOR_BYTES) {
    zero |= (bytes)(load_bytes(mask + i) == 0);
  }
  return !any((words)zero != 0);
}

static inline void keep_valid(const uint8_t mask[M2PO_BLOCK], bool past_caches,
                              uint8_t keep[M2PO_BLOCK])
{
  for (int64_t i = 0; i < M2PO_BLOCK; i += VECTOR_BYTES) {
    const bytes kept = (bytes)(load_bytes(mask + i) != 0) & 1;
    if (past_caches) {
      store_past_caches((float *)(void *)(keep + i), (floats)kept);
    } else {
      memcpy(keep + i, &kept, sizeof kept);
    }
  }
}

#endif // M2PO_TOKENS_H
