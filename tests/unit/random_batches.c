// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "random_batches.h"

const char *const batch_kind_names[BATCH_KINDS] = {
    "plain", "ties", "equal", "large", "sorted", "reversed", "outlier", "exponents", "tiny"};

/// Powers of two between which log-ratios of a dtype lie, so that their squares are finite.
typedef struct exponents {
  double low;
  double high;
  double tiny; ///< where the square is about the least number of the arithmetic
} exponents;

static exponents exponents_of(rft_dtype dtype)
{
  if (dtype_is_wide(dtype)) {
    return (exponents){-500, 500, -537};
  }
  const bool half = dtype.code == RFT_DTYPE_FLOAT && dtype.bits == 16;
  return half ? (exponents){-14, 14, -22} : (exponents){-60, 60, -74};
}

static double power(rng *r, double low, double high)
{
  return exp2(rng_between(r, low, high));
}

// The size of the i-th log-ratio.
static double size_of(rng *r, batch_kind kind, exponents range, int64_t i, int64_t count)
{
  switch (kind) {
  case BATCH_TIES:
    return ldexp((double)rng_below(r, 5), -3);
  case BATCH_EQUAL:
    return 0.25;
  case BATCH_LARGE:
    return rng_between(r, 1.0, 3.0);
  case BATCH_SORTED:
    return (double)(i + 1) / (double)(count + 1);
  case BATCH_REVERSED:
    return (double)(count - i) / (double)(count + 1);
  case BATCH_OUTLIER:
    return i == count / 2 ? exp2(range.high) : 0.2;
  case BATCH_EXPONENTS:
    return power(r, range.low, range.high);
  case BATCH_TINY:
    return power(r, range.tiny - 3, range.tiny + 6);
  default:
    return rng_between(r, 0, 0.5);
  }
}

static bool starts_at_zero(batch_kind kind)
{
  return kind == BATCH_OUTLIER || kind == BATCH_EXPONENTS || kind == BATCH_TINY;
}

static rft_tensor *policy_tensor(rng *r, batch_kind kind, rft_dtype dtype, exponents range,
                                 const rft_tensor *old)
{
  const int64_t count = tensor_count(old);
  rft_tensor *const tensor = tensor_1d(dtype, count, NULL);
  const bool one_sided = kind == BATCH_SORTED || kind == BATCH_REVERSED;
  for (int64_t i = 0; i < count; ++i) {
    const double size = size_of(r, kind, range, i, count);
    const bool up = one_sided || rng_below(r, 2) == 0;
    tensor_set(tensor, i, tensor_get(old, i) + (up ? size : -size));
  }
  return tensor;
}

static rft_tensor *old_tensor(rng *r, batch_kind kind, rft_dtype dtype, int64_t count)
{
  rft_tensor *const tensor = tensor_1d(dtype, count, NULL);
  for (int64_t i = 0; i < count && !starts_at_zero(kind); ++i) {
    // Multiples of 1/8 for ties: the log-ratio is what was meant, whatever the dtype.
    tensor_set(tensor, i,
               kind == BATCH_PLAIN ? -rng_between(r, 0, 5) : -ldexp((double)rng_below(r, 40), -3));
  }
  return tensor;
}

static rft_tensor *advantage_tensor(rng *r, rft_dtype dtype, int64_t count)
{
  static const double values[] = {1.0, 0.5, -0.25, -1.5, 2.0, 0.0};
  rft_tensor *const tensor = tensor_1d(dtype, count, NULL);
  for (int64_t i = 0; i < count; ++i) {
    tensor_set(tensor, i, values[rng_below(r, 6)]);
  }
  return tensor;
}

static rft_tensor *mask_tensor(rng *r, int64_t count)
{
  rft_tensor *const tensor = tensor_1d(bool8, count, NULL);
  for (int64_t i = 0; i < count; ++i) {
    tensor_set(tensor, i, rng_below(r, 8) != 0);
  }
  return tensor;
}

// The range of the narrowest dtype that takes part.
static exponents range_of(const batch_dtypes *dtypes)
{
  const rft_dtype all[] = {dtypes->logprob, dtypes->old_logprob, dtypes->proximal_logprob};
  exponents range = exponents_of(float64);
  for (int i = 0; i < 3; ++i) {
    const exponents other = exponents_of(all[i]);
    range = other.high < range.high ? other : range;
  }
  return range;
}

rft_batch *random_batch(rng *r, batch_kind kind, const batch_dtypes *dtypes, int64_t count)
{
  const exponents range = range_of(dtypes);
  const rft_tensor *const old = old_tensor(r, kind, dtypes->old_logprob, count);
  const rft_tensor *const logprob = policy_tensor(r, kind, dtypes->logprob, range, old);
  const rft_tensor *const proximal = policy_tensor(r, kind, dtypes->proximal_logprob, range, old);
  const rft_tensor *const advantages = advantage_tensor(r, dtypes->advantages, count);
  return batch_new(logprob, old, proximal, advantages, mask_tensor(r, count), NULL);
}

batch_list random_split(rng *r, const rft_batch *batch, int64_t parts)
{
  int64_t *const sizes = test_alloc(parts * (int64_t)sizeof *sizes);
  int64_t left = batch_count(batch);
  for (int64_t k = 0; k < parts; ++k) {
    sizes[k] = k + 1 == parts ? left : rng_below(r, 4) == 0 ? 0 : rng_below(r, left + 1);
    left -= sizes[k];
  }
  return batch_split(batch, parts, sizes);
}
