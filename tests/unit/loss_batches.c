// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "loss_batches.h"

#include <stdio.h>

enum { AGGREGATIONS = 4, SURROGATES = 4, REFERENCES = 2, CASES = 32 };

static rft_tensor *padded(const rft_tensor *flat, int64_t rows, int64_t columns)
{
  rft_tensor *const tensor = tensor_2d(flat->dtype, rows, columns, NULL);
  for (int64_t i = 0; i < rows * columns; ++i) {
    tensor_set(tensor, i, tensor_get(flat, i));
  }
  return tensor;
}

// A policy's log-probs around the behavior policy's.
static rft_tensor *policy_around(rng *r, rft_dtype dtype, const rft_tensor *old)
{
  rft_tensor *const tensor = tensor_1d(dtype, tensor_count(old), NULL);
  for (int64_t i = 0; i < tensor_count(old); ++i) {
    tensor_set(tensor, i, tensor_get(old, i) + rng_between(r, -0.5, 0.5));
  }
  return tensor;
}

rft_batch *loss_batch(uint64_t seed, const batch_dtypes *dtypes, int64_t rows, int64_t columns)
{
  rng r = {seed};
  const rft_batch *const flat = random_batch(&r, BATCH_PLAIN, dtypes, rows * columns);
  rft_tensor *const mask = padded(flat->mask, rows, columns);
  for (int64_t i = 0; i < columns; ++i) {
    tensor_set(mask, i, 0);
  }
  const rft_tensor *const logprob = policy_around(&r, dtypes->logprob, flat->old_logprob);
  const rft_tensor *const proximal = policy_around(&r, dtypes->proximal_logprob, flat->old_logprob);
  return batch_new(padded(logprob, rows, columns), padded(flat->old_logprob, rows, columns),
                   padded(proximal, rows, columns), padded(flat->advantages, rows, columns), mask,
                   NULL);
}

static loss_case make_case(int surrogate, int aggregation, int reference)
{
  static const char *const surrogates[] = {"importance_sampling", "ppo_clip", "sapo", "dual clip"};
  static const char *const aggregations[] = {"token-mean", "seq-mean-token-sum",
                                             "seq-mean-token-mean", "seq-mean-token-sum-norm"};
  loss_case made = {.config = reference_config_default(), .proximal = reference == 1};
  reference_objective *const objective = &made.config.objective;
  made.config.selection.tau = 0.02;
  objective->surrogate = surrogate == 3 ? REFERENCE_PPO_CLIP : (reference_surrogate)surrogate;
  objective->clip_high = 0.28;
  objective->dual_clip = surrogate == 3 ? 1.4 : 0.0;
  objective->sapo_negative = 1.2;
  objective->aggregation = (reference_aggregation)aggregation;
  objective->scale_factor = reference == 1 && aggregation == 3 ? 7.5 : 0.0;
  objective->divide_by_kept = reference == 1 && aggregation == 0;
  snprintf(made.name, sizeof made.name, "%s, %s%s", surrogates[surrogate],
           aggregations[aggregation], made.proximal ? ", proximal" : "");
  return made;
}

struct criterion_test_params loss_cases(void)
{
  loss_case *const cases = cr_malloc(CASES * sizeof *cases);
  size_t count = 0;
  for (int s = 0; s < SURROGATES; ++s) {
    for (int a = 0; a < AGGREGATIONS; ++a) {
      for (int p = 0; p < REFERENCES; ++p) {
        cases[count++] = make_case(s, a, p);
      }
    }
  }
  return cr_make_param_array(loss_case, cases, count);
}
