// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

#include "reference.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include <gmp.h>

// Every finite double is an integer multiple of 2^-1074.
enum { UNIT_EXPONENT = DBL_MIN_EXP - DBL_MANT_DIG };

/// T, the tokens that the algorithm constrains, with their second-moment terms.
typedef struct trust_region {
  int64_t *token; ///< index of the token
  double *m;
  mpz_t *exact_m; ///< m in units of 2^-1074
  bool *dropped;
  int64_t count; ///< before any drop
  int64_t left;  ///< not dropped
} trust_region;

static void to_units(mpz_t units, double value)
{
  int exponent;
  const double mantissa = frexp(value, &exponent); // value = mantissa * 2^exponent
  const int shift = exponent - DBL_MANT_DIG - UNIT_EXPONENT;
  mpz_set_d(units, ldexp(mantissa, DBL_MANT_DIG));
  if (shift >= 0) {
    mpz_mul_2exp(units, units, (mp_bitcnt_t)shift);
  } else {
    mpz_tdiv_q_2exp(units, units, (mp_bitcnt_t)-shift); // exact: the value is a double
  }
}

// units / (divisor * 2^1074), rounded once, to nearest, ties to even.
static double to_double(const mpz_t units, int64_t divisor)
{
  mpz_t denominator, quotient, rest;
  mpz_init_set_si(denominator, divisor);
  mpz_init(quotient);
  mpz_init(rest);
  mpz_tdiv_q(quotient, units, denominator);
  const size_t bits = mpz_sizeinbase(quotient, 2);
  const mp_bitcnt_t excess = bits > DBL_MANT_DIG ? bits - DBL_MANT_DIG : 0;
  mpz_mul_2exp(denominator, denominator, excess);
  mpz_tdiv_qr(quotient, rest, units, denominator);
  mpz_mul_2exp(rest, rest, 1);
  const int half = mpz_cmp(rest, denominator);
  if (half > 0 || (half == 0 && mpz_odd_p(quotient))) {
    mpz_add_ui(quotient, quotient, 1);
  }
  const double result = ldexp(mpz_get_d(quotient), (int)excess + UNIT_EXPONENT);
  mpz_clears(denominator, quotient, rest, NULL);
  return result;
}

double reference_difference(double policy, double behavior, bool wide)
{
  return wide ? policy - behavior : (double)((float)policy - (float)behavior);
}

static bool is_wide(const reference_selection *config, const reference_token *token)
{
  return token->old_is_wide ||
         (config->proximal ? token->proximal_is_wide : token->logprob_is_wide);
}

static double log_ratio(const reference_selection *config, const reference_token *token)
{
  const double policy = config->proximal ? token->proximal_logprob : token->logprob;
  return reference_difference(policy, token->old_logprob, is_wide(config, token));
}

static double second_moment(const reference_selection *config, const reference_token *token)
{
  const double d = log_ratio(config, token);
  return is_wide(config, token) ? d * d : (double)((float)d * (float)d);
}

static bool in_trust_region(const reference_selection *config, const reference_token *token)
{
  if (!token->valid) {
    return false;
  }
  const double a = token->advantage;
  const double d = log_ratio(config, token);
  return config->all_tokens || (a > 0 && d > 0) || (a < 0 && d < 0);
}

static trust_region trust_region_of(const reference_selection *config,
                                    const reference_token *tokens, int64_t count)
{
  const size_t size = (size_t)count + 1;
  trust_region t = {calloc(size, sizeof *t.token),
                    calloc(size, sizeof *t.m),
                    calloc(size, sizeof *t.exact_m),
                    calloc(size, sizeof *t.dropped),
                    0,
                    0};
  assert(t.token != NULL && t.m != NULL && t.exact_m != NULL && t.dropped != NULL);
  for (int64_t i = 0; i < count; ++i) {
    if (in_trust_region(config, &tokens[i])) {
      t.token[t.count] = i;
      t.m[t.count] = second_moment(config, &tokens[i]);
      mpz_init(t.exact_m[t.count]);
      to_units(t.exact_m[t.count], t.m[t.count]);
      ++t.count;
    }
  }
  t.left = t.count;
  return t;
}

static void free_trust_region(trust_region *t)
{
  for (int64_t i = 0; i < t->count; ++i) {
    mpz_clear(t->exact_m[i]);
  }
  free(t->token);
  free(t->m);
  free(t->exact_m);
  free(t->dropped);
}

// The sum of m over T, in units of 2^-1074.
static void sum_of(const trust_region *t, mpz_t sum)
{
  mpz_set_ui(sum, 0);
  for (int64_t i = 0; i < t->count; ++i) {
    if (!t->dropped[i]) {
      mpz_add(sum, sum, t->exact_m[i]);
    }
  }
}

// mean of m over T > tau, or >= tau where the boundary is "below"; T is not empty.
static bool mean_is_over(const reference_selection *config, const trust_region *t)
{
  mpz_t sum, bound;
  mpz_init(sum);
  mpz_init(bound);
  sum_of(t, sum);
  to_units(bound, config->tau);
  mpz_mul_si(bound, bound, t->left); // mean > tau is sum > tau * |T|
  const int order = mpz_cmp(sum, bound);
  mpz_clears(sum, bound, NULL);
  return config->below ? order >= 0 : order > 0;
}

static int64_t first_largest(const trust_region *t)
{
  int64_t largest = -1;
  for (int64_t i = 0; i < t->count; ++i) {
    if (!t->dropped[i] && (largest < 0 || t->m[i] > t->m[largest])) {
      largest = i;
    }
  }
  return largest;
}

static void measure(const trust_region *t, double *sum, double *mean)
{
  mpz_t exact;
  mpz_init(exact);
  sum_of(t, exact);
  *sum = to_double(exact, 1);
  *mean = t->left == 0 ? 0.0 : to_double(exact, t->left);
  mpz_clear(exact);
}

reference_counts reference_select(const reference_selection *config, const reference_token *tokens,
                                  int64_t count, bool *keep)
{
  reference_counts counts = {0};
  for (int64_t i = 0; i < count; ++i) {
    keep[i] = tokens[i].valid;
    counts.valid += tokens[i].valid;
  }
  trust_region t = trust_region_of(config, tokens, count);
  counts.trust_region = t.count;
  measure(&t, &counts.sum_before, &counts.m2_before);

  while (!config->off && t.left > 0 && t.left > config->min_kept && mean_is_over(config, &t)) {
    const int64_t j = first_largest(&t);
    keep[t.token[j]] = false;
    t.dropped[j] = true;
    --t.left;
  }

  counts.masked = t.count - t.left;
  measure(&t, &counts.sum_after, &counts.m2_after);
  free_trust_region(&t);
  return counts;
}
