// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Random and adversarial batches for the selection, the same for the same seed.

#ifndef TEST_RANDOM_BATCHES_H
#define TEST_RANDOM_BATCHES_H

#include "batches.h"
#include "rng.h"

typedef enum batch_kind {
  BATCH_PLAIN,     ///< log-ratios as they come, around 0
  BATCH_TIES,      ///< few different sizes
  BATCH_EQUAL,     ///< all of one size
  BATCH_LARGE,     ///< all of T over any usual threshold
  BATCH_SORTED,    ///< rising
  BATCH_REVERSED,  ///< falling
  BATCH_OUTLIER,   ///< one huge among small ones
  BATCH_EXPONENTS, ///< as far apart as the dtype allows
  BATCH_TINY,      ///< squares at the lower end of the dtype: subnormal, or rounded to 0
  BATCH_KINDS
} batch_kind;

extern const char *const batch_kind_names[BATCH_KINDS];

/// One dtype for each tensor; the mask is bool.
typedef struct batch_dtypes {
  rft_dtype logprob;
  rft_dtype old_logprob;
  rft_dtype proximal_logprob;
  rft_dtype advantages;
} batch_dtypes;

static inline batch_dtypes all_of(rft_dtype dtype)
{
  return (batch_dtypes){dtype, dtype, dtype, dtype};
}

/// A compact [count] batch with every tensor. About one position in eight is not valid, one
/// advantage in six is 0.
rft_batch *random_batch(rng *r, batch_kind kind, const batch_dtypes *dtypes, int64_t count);

/// Cuts a batch at random places; some parts are empty.
batch_list random_split(rng *r, const rft_batch *batch, int64_t parts);

#endif // TEST_RANDOM_BATCHES_H
