// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "large_batches.h"

#include "rng.h"

#include <math.h>
#include <string.h>

const char *const large_kind_names[LARGE_KINDS] = {
    "fresh",    "stale",     "very stale", "sorted",   "reversed",  "equal",
    "ties",     "over tau",  "outlier",    "outliers", "a cluster", "halves",
    "periodic", "alternate", "against",    "masked",   "zeros",     "tiny"};

static double normal(rng *r)
{
  const double size = sqrt(-2.0 * log(1.0 - rng_uniform(r)));
  return size * cos(6.283185307179586 * rng_uniform(r));
}

static double student(rng *r)
{
  double squares = 0.0;
  for (int i = 0; i < 3; ++i) {
    const double x = normal(r);
    squares += x * x;
  }
  return normal(r) / sqrt(squares / 3.0);
}

static double size_of(rng *r, large_kind kind, int64_t i, int64_t count)
{
  const double fresh = 0.05 * fabs(normal(r));
  switch (kind) {
  case LARGE_STALE:
    return 0.15 * fabs(student(r));
  case LARGE_VERY_STALE:
    return 0.5 * fabs(student(r));
  case LARGE_SORTED:
    return (double)(i + 1) / (double)count;
  case LARGE_REVERSED:
    return (double)(count - i) / (double)count;
  case LARGE_EQUAL:
    return 0.25;
  case LARGE_TIES:
    return ldexp((double)rng_below(r, 8), -4);
  case LARGE_OVER:
    return rng_between(r, 0.3, 2.0);
  case LARGE_OUTLIER:
    return i == count / 3 ? 100.0 : fresh;
  case LARGE_OUTLIERS:
    return rng_below(r, 4000) == 0 ? 30.0 : fresh;
  case LARGE_CLUSTER:
    return i >= count / 2 && i < count / 2 + 200 ? 8.0 : fresh;
  case LARGE_HALVES:
    return i < count / 2 ? fresh : 0.5 * fabs(student(r));
  case LARGE_PERIODIC:
    return i % 512 < 16 ? 1.0 : fresh;
  case LARGE_ALTERNATE:
    return 0.3 * fabs(student(r));
  case LARGE_ZEROS:
    return rng_below(r, 1000) == 0 ? 2.0 : 0.0;
  case LARGE_TINY:
    return exp2(rng_between(r, -76, -62));
  default:
    return fresh;
  }
}

static bool in_trust_region(rng *r, large_kind kind, int64_t i)
{
  switch (kind) {
  case LARGE_AGAINST:
    return false;
  case LARGE_ALTERNATE:
    return i % 2 == 0;
  case LARGE_OUTLIER:
  case LARGE_EQUAL:
    return true;
  default:
    return rng_below(r, 2) == 0;
  }
}

static bool is_valid(rng *r, large_kind kind, int64_t i, int64_t count)
{
  if (kind == LARGE_OUTLIER && i == count / 3) {
    return true;
  }
  return kind != LARGE_MASKED && rng_below(r, 10) != 0;
}

rft_batch *large_batch(uint64_t seed, large_kind kind, int64_t count)
{
  rng r = {seed};
  rft_tensor *const logprob = tensor_1d(float32, count, NULL);
  rft_tensor *const old = tensor_1d(float32, count, NULL);
  rft_tensor *const advantages = tensor_1d(float32, count, NULL);
  rft_tensor *const mask = tensor_1d(bool8, count, NULL);
  float *const policy = logprob->data;
  float *const behavior = old->data;
  float *const advantage = advantages->data;
  for (int64_t i = 0; i < count; ++i) {
    const double d =
        rng_below(&r, 2) == 0 ? size_of(&r, kind, i, count) : -size_of(&r, kind, i, count);
    const double a = rng_between(&r, 0.1, 2.0);
    const bool along = in_trust_region(&r, kind, i);
    // From 0 where a log-ratio of a sum would be rounded to another one.
    behavior[i] = kind == LARGE_TINY || kind == LARGE_EQUAL || kind == LARGE_TIES
                      ? 0.0F
                      : (float)-rng_between(&r, 0, 4);
    policy[i] = behavior[i] + (float)d;
    advantage[i] = (float)((d > 0) == along ? a : -a);
    if (!is_valid(&r, kind, i, count)) {
      policy[i] = NAN;
      behavior[i] = -INFINITY;
      advantage[i] = 3e38F;
      continue;
    }
    ((unsigned char *)mask->data)[i] = 1;
  }
  return batch_new(logprob, old, NULL, advantages, mask, NULL);
}

static rft_tensor *reshaped(const rft_tensor *flat, int64_t rows)
{
  const int64_t columns = tensor_count(flat) / rows;
  rft_tensor *const tensor = tensor_2d(flat->dtype, rows, columns, NULL);
  memcpy(tensor->data, flat->data, (size_t)(rows * columns * dtype_size(flat->dtype)));
  return tensor;
}

static rft_tensor *some_advantages(uint64_t seed, int64_t count)
{
  rng r = {seed};
  rft_tensor *const tensor = tensor_1d(float32, count, NULL);
  for (int64_t i = 0; i < count; ++i) {
    tensor_set(tensor, i, rng_between(&r, -1.0, 1.0));
  }
  return tensor;
}

rft_batch *large_padded(const rft_batch *flat, int64_t rows)
{
  return batch_new(reshaped(flat->logprob, rows), reshaped(flat->old_logprob, rows), NULL,
                   some_advantages(1, rows), reshaped(flat->mask, rows), NULL);
}

rft_batch *large_packed(uint64_t seed, const rft_batch *flat, int64_t sequences)
{
  rng r = {seed};
  const int64_t count = batch_count(flat);
  rft_tensor *const offsets = tensor_1d(int32, sequences + 1, NULL);
  int64_t start = 0;
  for (int64_t s = 1; s < sequences; ++s) {
    const int64_t longest = 2 * (count - start) / (sequences - s + 1);
    start += rng_below(&r, 5) == 0 ? 0 : rng_below(&r, longest + 1);
    tensor_set(offsets, s, (double)start);
  }
  tensor_set(offsets, sequences, (double)count);
  return batch_new(flat->logprob, flat->old_logprob, NULL, some_advantages(seed, sequences),
                   flat->mask, offsets);
}
