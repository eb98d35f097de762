// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "reference_loss.h"

#include <math.h>

/// A token's loss and its derivative by logprob.
typedef struct term {
  long double loss;
  long double slope;
} term;

reference_objective reference_objective_default(void)
{
  return (reference_objective){
      .surrogate = REFERENCE_IMPORTANCE_SAMPLING,
      .clip_low = 0.2,
      .clip_high = 0.2,
      .sapo_positive = 1.0,
      .sapo_negative = 1.05,
      .aggregation = REFERENCE_TOKEN_MEAN,
      .log_ratio_clip = 20.0,
  };
}

static long double clamp(long double value, long double low, long double high)
{
  return value < low ? low : value > high ? high : value;
}

long double reference_log_ratio(const reference_objective *objective, const reference_token *token)
{
  const bool decoupled = token->has_proximal;
  const double behavior = decoupled ? token->proximal_logprob : token->old_logprob;
  const bool wide =
      token->logprob_is_wide || (decoupled ? token->proximal_is_wide : token->old_is_wide);
  const long double d = reference_difference(token->logprob, behavior, wide);
  const long double c = objective->log_ratio_clip;
  return c > 0 ? clamp(d, -c, c) : d;
}

// -r A, whose derivative by logprob is itself.
static term importance_sampling(long double r, long double a)
{
  return (term){-r * a, -r * a};
}

// max(-A r, -A clamp(r, 1-low, 1+high)), then for A < 0 min(that, -A c). On equality the unclipped
// branch's derivative.
static term ppo_clip(const reference_objective *objective, long double r, long double a)
{
  const long double low = 1.0L - objective->clip_low;
  const long double high = 1.0L + objective->clip_high;
  const long double unclipped = -a * r;
  const long double clipped = -a * clamp(r, low, high);
  term result = unclipped >= clipped ? (term){unclipped, unclipped} : (term){clipped, 0};
  const long double bound = -a * objective->dual_clip;
  if (a < 0 && objective->dual_clip > 0 && bound < result.loss) {
    result = (term){bound, 0};
  }
  return result;
}

// -A f(r), f(r) = (4/t) sigmoid(t (r-1)); df/dr = 4 s (1-s), dr/dlogprob = r.
static term sapo(const reference_objective *objective, long double r, long double a)
{
  const long double t = a > 0 ? objective->sapo_positive : objective->sapo_negative;
  const long double s = 1.0L / (1.0L + expl(-t * (r - 1.0L)));
  return (term){-a * (4.0L / t) * s, -a * 4.0L * s * (1.0L - s) * r};
}

static term token_term(const reference_objective *objective, const reference_token *token)
{
  const long double r = expl(reference_log_ratio(objective, token));
  const long double a = token->advantage;
  switch (objective->surrogate) {
  case REFERENCE_PPO_CLIP:
    return ppo_clip(objective, r, a);
  case REFERENCE_SAPO:
    return sapo(objective, r, a);
  default:
    return importance_sampling(r, a);
  }
}

static int64_t valid_tokens_of(const reference_token *tokens, int64_t count, int64_t sequence)
{
  int64_t valid = 0;
  for (int64_t i = 0; i < count; ++i) {
    valid += tokens[i].valid && tokens[i].sequence == sequence;
  }
  return valid;
}

// What one token's loss is multiplied with.
static long double weight_of(const reference_objective *objective, const reference_token *tokens,
                             int64_t count, int64_t sequence, const reference_denominators *by)
{
  const long double sequences = (long double)by->sequences;
  switch (objective->aggregation) {
  case REFERENCE_SEQ_MEAN_TOKEN_SUM:
    return by->scale / sequences;
  case REFERENCE_SEQ_MEAN_TOKEN_MEAN:
    return by->scale / sequences / (long double)valid_tokens_of(tokens, count, sequence);
  case REFERENCE_SEQ_MEAN_TOKEN_SUM_NORM:
    return by->scale / (objective->scale_factor > 0 ? (long double)objective->scale_factor
                                                    : (long double)by->columns);
  default:
    return by->scale / (long double)(objective->divide_by_kept ? by->kept : by->valid);
  }
}

long double reference_loss(const reference_objective *objective, const reference_token *tokens,
                           int64_t count, const bool *keep,
                           const reference_denominators *denominators, long double *gradient)
{
  long double loss = 0;
  for (int64_t i = 0; i < count; ++i) {
    gradient[i] = 0;
    if (!tokens[i].valid || !keep[i] || tokens[i].advantage == 0) {
      continue;
    }
    const term t = token_term(objective, &tokens[i]);
    const long double weight =
        weight_of(objective, tokens, count, tokens[i].sequence, denominators);
    loss += weight * t.loss;
    gradient[i] = weight * t.slope;
  }
  return loss;
}

reference_denominators reference_count(const reference_token *tokens, int64_t count,
                                       const bool *keep, int64_t columns)
{
  reference_denominators result = {.columns = columns, .scale = 1.0};
  int64_t last = -1; // a sequence's tokens stand side by side
  for (int64_t i = 0; i < count; ++i) {
    if (tokens[i].valid) {
      ++result.valid;
      result.kept += keep[i];
      result.sequences += tokens[i].sequence != last;
      last = tokens[i].sequence;
    }
  }
  return result;
}
