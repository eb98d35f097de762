// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The kernels of each instruction set against the scalar version, bit by bit, and their exponential
// against libm.

#include "rng.h"
#include "scalar_kernels.h"
#include "tally.h"
#include "target.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// NULL: this processor lacks it, or it is none of this architecture's.
static const m2po_kernels *find(const char *name)
{
  const m2po_kernels *found[M2PO_TARGETS + 1];
  m2po_targets(found);
  for (int i = 0; found[i] != NULL; ++i) {
    if (strcmp(found[i]->name, name) == 0) {
      return found[i];
    }
  }
  return NULL;
}

// ----------------------------------------------------------------------------------------- blocks

/// The memory of a block, with room to start off any alignment.
typedef struct tokens {
  float policy[M2PO_BLOCK + 1];
  float reference[M2PO_BLOCK + 1];
  float advantages[M2PO_BLOCK + 1];
  uint8_t mask[M2PO_BLOCK + 1];
  uint8_t keep[M2PO_BLOCK + 1];
} tokens;

typedef enum token_kind {
  USUAL,   ///< log-ratios around 0
  TIES,    ///< few different ones
  WIDE,    ///< of every exponent
  TINY,    ///< squares at and below the smallest normal float
  VAST,    ///< squares at and beyond the largest
  NOTHING, ///< zeros of both signs
  LIMITS,  ///< at the clip
  TOKEN_KINDS
} token_kind;

static float sign(rng *r)
{
  return rng_below(r, 2) == 0 ? 1.0F : -1.0F;
}

static float log_ratio(rng *r, token_kind kind)
{
  switch (kind) {
  case TIES:
    return sign(r) * (float)rng_below(r, 4) * 0.125F;
  case WIDE:
    return sign(r) * (float)exp2(rng_between(r, -149, 128));
  case TINY:
    return sign(r) * (float)exp2(rng_between(r, -80, -60));
  case VAST:
    return sign(r) * (float)exp2(rng_between(r, 60, 66));
  case NOTHING:
    return sign(r) * 0.0F;
  case LIMITS:
    return sign(r) * nextafterf(20.0F, 20.0F + sign(r));
  default:
    return (float)rng_between(r, -0.6, 0.6);
  }
}

static float advantage(rng *r, token_kind kind)
{
  static const float few[] = {1.0F, -1.0F, 0.0F, -0.0F, 0.5F, 1e-40F, -1e-38F};
  if (kind == WIDE && rng_below(r, 4) == 0) {
    return sign(r) * (float)exp2(rng_between(r, -149, 128));
  }
  return rng_below(r, 2) == 0 ? few[rng_below(r, 7)] : (float)rng_between(r, -3, 3);
}

// `masks`: 0 none valid, 1 all valid, 2 any bytes.
static void fill(rng *r, token_kind kind, int64_t masks, tokens *memory)
{
  static const uint8_t bytes[] = {0, 1, 0, 2, 0x80, 0xFF, 1};
  for (int64_t i = 0; i <= M2PO_BLOCK; ++i) {
    memory->reference[i] = kind == USUAL ? (float)-rng_between(r, 0, 5) : 0.0F;
    memory->policy[i] = memory->reference[i] + log_ratio(r, kind);
    memory->advantages[i] = advantage(r, kind);
    memory->mask[i] = masks == 2 ? bytes[rng_below(r, 7)] : (uint8_t)masks;
    memory->keep[i] = bytes[rng_below(r, 7)];
  }
}

// Junk where it may lie, and where it may not.
static void add_junk(rng *r, tokens *memory, bool everywhere)
{
  static const float junk[] = {NAN, INFINITY, -INFINITY, FLT_MAX, -FLT_MAX};
  for (int64_t i = 0; i <= M2PO_BLOCK; ++i) {
    float *const places[] = {memory->policy, memory->reference, memory->advantages};
    if (memory->mask[i] == 0 || (everywhere && rng_below(r, 200) == 0)) {
      places[rng_below(r, 3)][i] = junk[rng_below(r, 5)];
    }
  }
}

static m2po_block block_at(const tokens *memory, int64_t offset)
{
  return (m2po_block){memory->policy + offset, memory->reference + offset,
                      memory->advantages + offset, memory->mask + offset, memory->keep + offset};
}

// ---------------------------------------------------------------------------- bits of one target

static void check_glance(const char *what, const m2po_glance *got, const m2po_glance *right)
{
  cr_assert_eq(got->constrained, right->constrained, "%s: constrained", what);
  cr_assert_eq(got->above_count, right->above_count, "%s: above_count", what);
  cr_assert(got->below_sum == right->below_sum, "%s: below_sum is %a, expected %a", what,
            got->below_sum, right->below_sum);
  cr_assert_eq(memcmp(got->open, right->open, sizeof got->open), 0, "%s: open", what);
}

static void check_sighting(const char *what, const m2po_sighting *got, const m2po_sighting *right)
{
  cr_assert_eq(got->plain, right->plain, "%s: plain", what);
  if (!right->plain) {
    return; // is done again by other code
  }
  const size_t floats = M2PO_BLOCK * sizeof(float);
  check_glance(what, &got->glance, &right->glance);
  cr_assert(got->least_below == right->least_below, "%s: least_below", what);
  cr_assert_eq(memcmp(got->below, right->below, floats), 0, "%s: below", what);
  cr_assert_eq(memcmp(got->over, right->over, floats), 0, "%s: over", what);
}

static void check_valuation(const char *what, const m2po_valuation *got,
                            const m2po_valuation *right, const float *slope,
                            const float *right_slope)
{
  cr_assert_eq(got->plain, right->plain, "%s: plain of a valuation", what);
  if (!right->plain) {
    return;
  }
  if (!isfinite(right->sum)) {
    cr_assert(!isfinite(got->sum), "%s: sum is %a, expected %a", what, got->sum, right->sum);
    return;
  }
  cr_assert_eq(memcmp(&got->sum, &right->sum, sizeof got->sum), 0, "%s: sum is %a, expected %a",
               what, got->sum, right->sum);
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    cr_assert_eq(memcmp(slope + i, right_slope + i, sizeof slope[i]), 0,
                 "%s: slope[%d] is %a, expected %a", what, (int)i, (double)slope[i],
                 (double)right_slope[i]);
  }
}

static void check_sight(const char *what, const m2po_kernels *kernels, const m2po_block *block,
                        const m2po_bracket *bracket, bool all)
{
  m2po_sighting got;
  m2po_sighting right;
  memset(&got, 0xA5, sizeof got);
  kernels->sight(block, bracket, all, &got);
  scalar_sight(block, bracket, all, &right);
  check_sighting(what, &got, &right);
  cr_assert_eq(memcmp(got.valid, right.valid, sizeof got.valid), 0, "%s: valid", what);
}

// The memory that a kernel writes to, with bytes about the mask that are not for it.
typedef struct results {
  float slope[M2PO_BLOCK] __attribute__((aligned(M2PO_LINE)));
  uint8_t room[M2PO_LINE];
  uint8_t keep[M2PO_BLOCK + 1];
  m2po_valuation valuation;
} results;

static void begin(results *got)
{
  memset(got, 7, sizeof *got);
}

static void check_results(const char *what, const m2po_kernels *kernels, const results *got,
                          const results *right)
{
  kernels->fence();
  check_valuation(what, &got->valuation, &right->valuation, got->slope, right->slope);
  cr_assert(!right->valuation.plain || memcmp(got->keep, right->keep, M2PO_BLOCK) == 0, "%s: keep",
            what);
  cr_assert(got->room[M2PO_LINE - 1] == 7 && got->keep[M2PO_BLOCK] == 7, "%s: keep is overrun",
            what);
}

static void check_evaluate(const char *what, const m2po_kernels *kernels, const m2po_block *block,
                           const m2po_formula *formula, bool past_caches)
{
  results got;
  results right;
  begin(&got);
  begin(&right);
  const m2po_slopes slopes = {got.slope, past_caches};
  kernels->evaluate(block, formula, &slopes, &got.valuation);
  scalar_evaluate(block, formula, right.slope, &right.valuation);
  check_results(what, kernels, &got, &right);
}

static void check_step(const char *what, const m2po_kernels *kernels, const m2po_block *block,
                       const m2po_bracket *bracket, const m2po_formula *formula, bool all,
                       bool past_caches)
{
  results got;
  results right;
  m2po_sighting sighting;
  m2po_sighting right_sighting;
  begin(&got);
  const m2po_slopes slopes = {got.slope, past_caches};
  kernels->step(block, bracket, formula, all, &slopes, got.keep, &sighting, &got.valuation);
  scalar_step(block, bracket, formula, all, right.slope, right.keep, &right_sighting,
              &right.valuation);
  check_sighting(what, &sighting, &right_sighting);
  check_results(what, kernels, &got, &right);
}

static void check_sift(const char *what, const m2po_kernels *kernels, const m2po_block *block,
                       const m2po_bracket *bracket, const m2po_formula *formula, bool past_caches)
{
  results got;
  results right;
  m2po_glance glance;
  m2po_glance right_glance;
  begin(&got);
  const m2po_slopes slopes = {got.slope, past_caches};
  kernels->sift(block, bracket, formula, &slopes, got.keep, &glance, &got.valuation);
  scalar_sift(block, bracket, formula, right.slope, right.keep, &right_glance, &right.valuation);
  check_results(what, kernels, &got, &right);
  if (right.valuation.plain && isfinite(right.valuation.sum)) {
    check_glance(what, &glance, &right_glance);
  }
}

static void check_keep_all(const char *what, const m2po_kernels *kernels, const m2po_block *block,
                           const m2po_formula *formula, bool past_caches)
{
  results got;
  results right;
  m2po_glance glance;
  m2po_glance right_glance;
  begin(&got);
  const m2po_slopes slopes = {got.slope, past_caches};
  kernels->keep_all(block, formula, &slopes, got.keep, &glance, &got.valuation);
  scalar_keep_all(block, formula, right.slope, right.keep, &right_glance, &right.valuation);
  check_results(what, kernels, &got, &right);
  if (right.valuation.plain && isfinite(right.valuation.sum)) {
    check_glance(what, &glance, &right_glance);
  }
}

// A square that is in the block, so that a bracket ends on it.
static float some_square(rng *r, const m2po_block *block)
{
  const int64_t i = rng_below(r, M2PO_BLOCK);
  const float d = block->policy[i] - block->reference[i];
  return d * d < FLT_MAX ? d * d : 0.04F;
}

static m2po_bracket some_bracket(rng *r, const m2po_block *block)
{
  const float here = some_square(r, block);
  const float ends[][2] = {
      {0.04F, FLT_MAX},
      {0.0F, FLT_MAX},
      {-0x1p-149F, FLT_MAX}, // below tau = 0
      {INFINITY, FLT_MAX},   // no threshold
      {FLT_MAX, FLT_MAX},
      {0.01F, 0.09F},
      {here, here},
      {here, FLT_MAX},
      {here, fminf(2 * here, FLT_MAX)},
      {nextafterf(here, 0.0F), here},
      {0x1p-149F, 0x1p-126F},
  };
  const int64_t chosen = rng_below(r, sizeof ends / sizeof ends[0]);
  return (m2po_bracket){ends[chosen][0], ends[chosen][1]};
}

static m2po_formula some_formula(rng *r)
{
  static const float clips[] = {20.0F, 80.0F, 0.25F, 0x1p-149F};
  static const float weights[] = {1.0F, 1.0F / 300000, -0.25F, 0.0F, 0x1p-63F};
  return (m2po_formula){clips[rng_below(r, 4)], weights[rng_below(r, 5)]};
}

enum { BLOCKS = 1500 };

static void check_blocks(const m2po_kernels *kernels)
{
  tokens *const memory = malloc(sizeof *memory);
  for (uint64_t seed = 0; seed < BLOCKS; ++seed) {
    rng r = {seed};
    const token_kind kind = (token_kind)rng_below(&r, TOKEN_KINDS);
    fill(&r, kind, rng_below(&r, 8) < 6 ? 2 : rng_below(&r, 2), memory);
    add_junk(&r, memory, rng_below(&r, 8) == 0);
    const m2po_block block = block_at(memory, rng_below(&r, 2));
    const m2po_bracket bracket = some_bracket(&r, &block);
    const m2po_formula formula = some_formula(&r);
    const bool all = rng_below(&r, 2) == 0;
    char what[128];
    snprintf(what, sizeof what, "%s, seed %d, kind %d, bracket %a to %a, %s", kernels->name,
             (int)seed, (int)kind, (double)bracket.low, (double)bracket.high,
             all ? "all tokens" : "trust region");
    check_sight(what, kernels, &block, &bracket, all);
    const bool past_caches = rng_below(&r, 4) == 0;
    check_evaluate(what, kernels, &block, &formula, past_caches);
    check_step(what, kernels, &block, &bracket, &formula, all, past_caches);
    check_keep_all(what, kernels, &block, &formula, past_caches);
    if (bracket.low >= 0) {
      check_sift(what, kernels, &block, &bracket, &formula, past_caches);
    }
  }
  free(memory);
}

static void check_sums(const m2po_kernels *kernels)
{
  for (uint64_t seed = 0; seed < BLOCKS; ++seed) {
    rng r = {seed};
    const token_kind kind = (token_kind)rng_below(&r, TOKEN_KINDS);
    float values[M2PO_BLOCK];
    float right[M2PO_BLOCK];
    for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
      const float d = log_ratio(&r, kind);
      values[i] = right[i] = rng_below(&r, 3) == 0 ? 0.0F : d * d;
    }
    const float picked = values[rng_below(&r, M2PO_BLOCK)];
    const float least = picked > 0 ? picked : 0x1p-149F;
    cr_assert(kernels->sum(values) == scalar_sum(values), "%s, seed %d: sum of all", kernels->name,
              (int)seed);
    float left;
    float right_left;
    const double sum = kernels->take(values, least, &left);
    const double right_sum = scalar_take(right, least, &right_left);
    cr_assert(sum == right_sum, "%s, seed %d: sum is %a, expected %a", kernels->name, (int)seed,
              sum, right_sum);
    cr_assert(left == right_left, "%s, seed %d: largest left", kernels->name, (int)seed);
    cr_assert_eq(memcmp(values, right, sizeof values), 0, "%s, seed %d: what is left",
                 kernels->name, (int)seed);
  }
}

// What a tally of single squares adds up to, of those below a bracket or of the others.
static m2po_exact add_one_by_one(const float squares[M2PO_BLOCK], const m2po_bracket *bracket,
                                 bool below)
{
  m2po_tally tally = {.sum = {{0}}};
  m2po_exact sum = {{0}};
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    if ((squares[i] <= bracket->low) == below) {
      m2po_tally_add(&tally, (double)squares[i], false);
    }
  }
  m2po_tally_fold(&tally, &sum);
  return sum;
}

static void check_exact(const char *what, const m2po_tally *tally, const m2po_exact *right)
{
  m2po_exact sum = {{0}};
  m2po_tally_fold(tally, &sum);
  cr_assert_eq(memcmp(&sum, right, sizeof sum), 0, "%s is not exact", what);
}

// A tally of blocks is exact.
static void check_tally(const m2po_kernels *kernels)
{
  static const float zeros[M2PO_BLOCK];
  static uint8_t valid[M2PO_BLOCK];
  memset(valid, 1, sizeof valid);
  for (uint64_t seed = 0; seed < BLOCKS; ++seed) {
    rng r = {seed};
    const token_kind kind = (token_kind)rng_below(&r, TOKEN_KINDS);
    float policy[M2PO_BLOCK];
    float squares[M2PO_BLOCK];
    for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
      policy[i] = log_ratio(&r, kind);
      squares[i] = policy[i] * policy[i];
    }
    const m2po_block block = {policy, zeros, zeros, valid, valid};
    const m2po_bracket bracket = some_bracket(&r, &block);
    const m2po_exact below = add_one_by_one(squares, &bracket, true);
    const m2po_exact over = add_one_by_one(squares, &bracket, false);
    m2po_tally tally_below = {.sum = {{0}}};
    m2po_tally tally_over = {.sum = {{0}}};
    m2po_sighting sighting;
    char what[64];
    snprintf(what, sizeof what, "%s, seed %d, kind %d", kernels->name, (int)seed, (int)kind);
    kernels->sight(&block, &bracket, true, &sighting);
    if (sighting.plain) {
      m2po_tally_add_below(&tally_below, kernels, &sighting);
      m2po_tally_add_over(&tally_over, kernels, bracket.low, &sighting);
      check_exact(what, &tally_below, &below);
      check_exact(what, &tally_over, &over);
    }
  }
}

static void check_target(const char *name)
{
  const m2po_kernels *const kernels = find(name);
  if (kernels == NULL) {
    cr_skip_test("this processor has no %s", name);
  }
  check_blocks(kernels);
  check_sums(kernels);
  check_tally(kernels);
}

Test(kernels, baseline_gives_the_bits_of_the_scalar_version)
{
  check_target("baseline");
}

Test(kernels, avx2_gives_the_bits_of_the_scalar_version)
{
  check_target("avx2");
}

Test(kernels, avx512_gives_the_bits_of_the_scalar_version)
{
  check_target("avx512");
}

Test(kernels, the_best_target_comes_first_and_every_processor_has_the_baseline)
{
  const m2po_kernels *found[M2PO_TARGETS + 1];
  m2po_targets(found);
  int count = 0;
  while (found[count] != NULL) {
    ++count;
  }
  cr_assert(count >= 1 && count <= M2PO_TARGETS);
  cr_expect_str_eq(found[count - 1]->name, "baseline");
  const m2po_kernels *chosen = NULL;
  cr_expect_eq(m2po_choose_target(&chosen, NULL), RFT_OK);
  cr_expect_str_eq(chosen->name, found[0]->name);
}

// ------------------------------------------------------------------------------------ exponential

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED
#endif
#endif

static uint32_t float_bits(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float float_of(uint32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

// The distance of two neighbouring float32 about exp(x), which is a normal one for |x| <= 80.
static double ulp_at(double value)
{
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  bits = (bits >> 52) - 23;
  bits <<= 52;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static void check_exponentials(const m2po_kernels *kernels, const float x[M2PO_BLOCK])
{
  static const float zeros[M2PO_BLOCK];
  static float ones[M2PO_BLOCK];
  static uint8_t valid[M2PO_BLOCK];
  for (int64_t i = 0; i < M2PO_BLOCK && valid[M2PO_BLOCK - 1] == 0; ++i) {
    ones[i] = 1.0F;
    valid[i] = 1;
  }
  const m2po_block block = {x, zeros, ones, valid, valid};
  const m2po_formula formula = {80.0F, -1.0F};
  float ratio[M2PO_BLOCK];
  m2po_valuation valuation;
  const m2po_slopes slopes = {ratio, false};
  kernels->evaluate(&block, &formula, &slopes, &valuation);
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const double right = fabsf(x[i]) < 0x1p-30F ? 1.0 : exp((double)x[i]);
    if (!(fabs((double)ratio[i] - right) <= ulp_at(right))) {
      cr_assert_fail("%s: exp(%a) is %a, expected %a", kernels->name, (double)x[i],
                     (double)ratio[i], right);
    }
  }
}

// Every `stride`-th float32 in [-80, 80].
static void check_range(const m2po_kernels *kernels, uint32_t stride)
{
  const uint32_t signs[] = {0, UINT32_C(1) << 31};
  const uint32_t last = float_bits(80.0F);
  float x[M2PO_BLOCK];
  for (int s = 0; s < 2; ++s) {
    for (uint32_t bits = 0; bits <= last;) {
      for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
        x[i] = float_of((bits < last ? bits : last) | signs[s]);
        bits += stride;
      }
      check_exponentials(kernels, x);
    }
  }
}

static void check_ranges(uint32_t stride_of_best, uint32_t stride_of_others)
{
  const m2po_kernels *found[M2PO_TARGETS + 1];
  m2po_targets(found);
  for (int i = 0; found[i] != NULL; ++i) {
    check_range(found[i], i == 0 ? stride_of_best : stride_of_others);
  }
}

#ifdef SANITIZED
Test(kernels, exp_is_within_1_ulp_at_every_10007th_float32)
{
  check_ranges(10007, 10007);
}
#else
Test(kernels, exp_is_within_1_ulp_at_every_float32_and_at_every_101st_on_lesser_targets)
{
  check_ranges(1, 101);
}
#endif
