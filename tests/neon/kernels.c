// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// usage: kernels [KIND FUNCTION]
//
// What the baseline kernels make of the same blocks on every machine: a digest for each kind of
// block and each function, or of the one that is named every value, in 32-bit words. No libm, whose
// bits differ between machines.

#include "../unit/rng.h"
#include "target.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const m2po_kernels *const kernels = &m2po_kernels_baseline;

// --------------------------------------------------------------------------------------------
// digest

/// FNV-1a of what is put in, one 32-bit word after the other.
typedef struct digest {
  uint64_t state;
  bool prints; ///< every word
} digest;

static digest digest_begin(bool prints)
{
  return (digest){UINT64_C(0xCBF29CE484222325), prints};
}

static void put(digest *d, const char *what, const void *bytes, size_t size)
{
  for (size_t i = 0; i < size / sizeof(uint32_t); ++i) {
    uint32_t word;
    memcpy(&word, (const uint8_t *)bytes + i * sizeof word, sizeof word);
    d->state = (d->state ^ word) * UINT64_C(0x100000001B3);
    if (d->prints) {
      printf("%s %zu %08" PRIx32 "\n", what, i, word);
    }
  }
}

static void put_flag(digest *d, const char *what, bool flag)
{
  const uint32_t word = flag;
  put(d, what, &word, sizeof word);
}

// --------------------------------------------------------------------------------------------
// blocks

typedef struct tokens {
  float policy[M2PO_BLOCK];
  float reference[M2PO_BLOCK];
  float advantages[M2PO_BLOCK];
  uint8_t mask[M2PO_BLOCK];
  uint8_t keep[M2PO_BLOCK];
} tokens;

static float float_of(uint32_t bits)
{
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t bits_of_float(float value)
{
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float sign(rng *r)
{
  return rng_below(r, 2) == 0 ? 1.0F : -1.0F;
}

// Any of 2^low <= x < 2^high.
static float between_powers(rng *r, int low, int high)
{
  const uint32_t exponent = (uint32_t)(127 + low + (int)rng_below(r, high - low));
  return sign(r) * float_of(exponent << 23 | (uint32_t)(rng_bits(r) >> 41));
}

static float usual(rng *r)
{
  return sign(r) * (float)(rng_bits(r) >> 40) * 0x1.4p-25F;
}

static float tied(rng *r)
{
  return sign(r) * (float)rng_below(r, 4) * 0.125F;
}

static float any_bits(rng *r)
{
  const float value = float_of((uint32_t)rng_bits(r));
  return value - value == 0 ? value : 0.0F;
}

static float tiny(rng *r)
{
  return between_powers(r, -80, -60);
}

static float vast(rng *r)
{
  return between_powers(r, 60, 66);
}

static float zero(rng *r)
{
  return sign(r) * 0.0F;
}

// About the clip of a formula.
static float limit(rng *r)
{
  const float clips[] = {20.0F, 80.0F, 0.25F};
  const uint32_t bits = bits_of_float(clips[rng_below(r, 3)]);
  return sign(r) * float_of(bits + (uint32_t)rng_below(r, 3) - 1);
}

/// Blocks of log-ratios that have something in common.
typedef struct token_kind {
  const char *name;
  float (*log_ratio)(rng *r);
} token_kind;

static const token_kind kinds[] = {{"usual", usual}, {"tied", tied}, {"any", any_bits},
                                   {"tiny", tiny},   {"vast", vast}, {"zero", zero},
                                   {"limit", limit}};

// NaN and infinity where a mask hides them, and now and then where none does.
static void add_junk(rng *r, tokens *memory)
{
  const float junk[] = {float_of(0x7FC00000), float_of(0x7F800000), float_of(0xFF800000), FLT_MAX};
  const bool everywhere = rng_below(r, 8) == 0;
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    float *const places[] = {memory->policy, memory->reference, memory->advantages};
    if (memory->mask[i] == 0 || (everywhere && rng_below(r, 200) == 0)) {
      places[rng_below(r, 3)][i] = junk[rng_below(r, 4)];
    }
  }
}

static void fill(rng *r, const token_kind *kind, tokens *memory)
{
  static const float few[] = {1.0F, -1.0F, 0.0F, -0.0F, 0.5F, 1e-40F, -1e-38F};
  static const uint8_t flags[] = {1, 0, 1, 2, 0x80, 0xFF, 1};
  const bool whole = rng_below(r, 3) == 0; // all are valid, for which kernels have a way of its own
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    memory->reference[i] = kind->log_ratio == usual ? usual(r) - 1.0F : 0.0F;
    memory->policy[i] = memory->reference[i] + kind->log_ratio(r);
    memory->advantages[i] = rng_below(r, 2) == 0 ? few[rng_below(r, 7)] : 5 * usual(r);
    memory->mask[i] = whole ? 1 : flags[rng_below(r, 7)];
    memory->keep[i] = flags[rng_below(r, 7)];
  }
  add_junk(r, memory);
}

static m2po_block block_of(const tokens *memory)
{
  return (m2po_block){memory->policy, memory->reference, memory->advantages, memory->mask,
                      memory->keep};
}

// Ends of a bracket that squares of the block are, too.
static m2po_bracket some_bracket(rng *r, const tokens *memory)
{
  const int64_t i = rng_below(r, M2PO_BLOCK);
  const float d = memory->policy[i] - memory->reference[i];
  const float here = d * d < FLT_MAX ? d * d : 0.04F; // also where it is NaN
  const m2po_bracket brackets[] = {
      {.low = 0.04F, .high = FLT_MAX}, {.low = 0.01F, .high = 0.09F},
      {.low = here, .high = here},     {.low = here, .high = FLT_MAX},
      {.low = 0.0F, .high = here},     {.low = FLT_MAX, .high = FLT_MAX}};
  return brackets[rng_below(r, sizeof brackets / sizeof brackets[0])];
}

static m2po_formula some_formula(rng *r)
{
  static const float clips[] = {20.0F, 80.0F, 0.25F};
  static const float weights[] = {1.0F, 1.0F / 300000, -0.25F, 0x1p-63F};
  return (m2po_formula){clips[rng_below(r, 3)], weights[rng_below(r, 4)]};
}

// ------------------------------------------------------------------------------------------
// functions

// What is not plain, or has a sum that is not finite, is done again by other code: nothing else of
// it is looked at, and the sign of a NaN is the machine's own.
static void put_sighting(digest *d, const m2po_sighting *sighting)
{
  put_flag(d, "plain", sighting->plain);
  if (sighting->plain) {
    put(d, "sighting", sighting, sizeof *sighting);
  }
}

static void put_valuation(digest *d, const m2po_valuation *valuation, const float slope[M2PO_BLOCK])
{
  const bool good = valuation->plain && isfinite(valuation->sum);
  put_flag(d, "good", good);
  if (good) {
    put(d, "sum", &valuation->sum, sizeof valuation->sum);
    put(d, "slope", slope, M2PO_BLOCK * sizeof slope[0]);
  }
}

static void sight(rng *r, const tokens *memory, digest *d)
{
  const m2po_block block = block_of(memory);
  const m2po_bracket bracket = some_bracket(r, memory);
  m2po_sighting sighting;
  memset(&sighting, 0, sizeof sighting); // padding, and what it leaves alone
  kernels->sight(&block, &bracket, rng_below(r, 2) == 0, &sighting);
  put_sighting(d, &sighting);
}

static void evaluate(rng *r, const tokens *memory, digest *d)
{
  const m2po_block block = block_of(memory);
  const m2po_formula formula = some_formula(r);
  m2po_valuation valuation;
  float slope[M2PO_BLOCK];
  kernels->evaluate(&block, &formula, &(m2po_slopes){slope, false}, &valuation);
  put_valuation(d, &valuation, slope);
}

static void step(rng *r, const tokens *memory, digest *d)
{
  const m2po_block block = block_of(memory);
  const m2po_bracket bracket = some_bracket(r, memory);
  const m2po_formula formula = some_formula(r);
  m2po_sighting sighting;
  m2po_valuation valuation;
  float slope[M2PO_BLOCK];
  uint8_t keep[M2PO_BLOCK];
  memset(&sighting, 0, sizeof sighting);
  kernels->step(&block, &bracket, &formula, rng_below(r, 2) == 0, &(m2po_slopes){slope, false},
                keep, &sighting, &valuation);
  put_sighting(d, &sighting);
  put_valuation(d, &valuation, slope);
  if (valuation.plain) {
    put(d, "keep", keep, sizeof keep);
  }
}

static void put_glance(digest *d, const m2po_glance *glance, const m2po_valuation *valuation,
                       const float slope[M2PO_BLOCK], const uint8_t keep[M2PO_BLOCK])
{
  put_valuation(d, valuation, slope);
  if (valuation->plain && isfinite(valuation->sum)) {
    put(d, "glance", glance, sizeof *glance);
    put(d, "keep", keep, M2PO_BLOCK);
  }
}

static void sift(rng *r, const tokens *memory, digest *d)
{
  const m2po_block block = block_of(memory);
  const m2po_bracket bracket = some_bracket(r, memory);
  const m2po_formula formula = some_formula(r);
  m2po_glance glance;
  m2po_valuation valuation;
  float slope[M2PO_BLOCK];
  uint8_t keep[M2PO_BLOCK];
  memset(&glance, 0, sizeof glance);
  kernels->sift(&block, &bracket, &formula, &(m2po_slopes){slope, false}, keep, &glance,
                &valuation);
  put_glance(d, &glance, &valuation, slope, keep);
}

static void keep_all(rng *r, const tokens *memory, digest *d)
{
  const m2po_block block = block_of(memory);
  const m2po_formula formula = some_formula(r);
  m2po_glance glance;
  m2po_valuation valuation;
  float slope[M2PO_BLOCK];
  uint8_t keep[M2PO_BLOCK];
  memset(&glance, 0, sizeof glance);
  kernels->keep_all(&block, &formula, &(m2po_slopes){slope, false}, keep, &glance, &valuation);
  put_glance(d, &glance, &valuation, slope, keep);
}

static void take(rng *r, const tokens *memory, digest *d)
{
  float values[M2PO_BLOCK];
  for (int64_t i = 0; i < M2PO_BLOCK; ++i) {
    const float ratio = memory->policy[i] - memory->reference[i];
    const float square = ratio * ratio;
    values[i] = square <= FLT_MAX ? square : 0.0F;
  }
  const float least = float_of((uint32_t)(1 + rng_below(r, 254)) << 23);
  const double all = kernels->sum(values);
  put(d, "all", &all, sizeof all);
  float largest;
  const double sum = kernels->take(values, least, &largest);
  put(d, "sum", &sum, sizeof sum);
  put(d, "largest", &largest, sizeof largest);
  put(d, "values", values, sizeof values);
}

// Only what evaluate finds plain is measured.
static void measure(rng *r, const tokens *memory, digest *d)
{
  const m2po_block block = block_of(memory);
  const m2po_formula formula = some_formula(r);
  m2po_valuation valuation;
  float slope[M2PO_BLOCK];
  m2po_measures measures = m2po_measures_none();
  kernels->evaluate(&block, &formula, &(m2po_slopes){slope, false}, &valuation);
  put_flag(d, "plain", valuation.plain);
  if (valuation.plain) {
    kernels->measure(&block, (double)formula.log_ratio_clip, &measures);
    put(d, "measures", &measures, sizeof measures);
  }
}

/// A kernel, called on one block.
typedef struct kernel {
  const char *name;
  void (*run)(rng *r, const tokens *memory, digest *d);
} kernel;

static const kernel functions[] = {{"sight", sight},    {"take", take}, {"evaluate", evaluate},
                                   {"step", step},      {"sift", sift}, {"keep_all", keep_all},
                                   {"measure", measure}};

static void run(const token_kind *kind, const kernel *function, bool prints)
{
  enum { BLOCKS = 300 };
  tokens memory;
  rng r = {UINT64_C(5)};
  digest d = digest_begin(prints);
  for (int i = 0; i < BLOCKS; ++i) {
    fill(&r, kind, &memory);
    function->run(&r, &memory, &d);
  }
  printf("%s %s %016" PRIx64 "\n", kind->name, function->name, d.state);
}

// exp of every 499th float32 up to 80, of both signs, as slopes.
static void run_exponential(bool prints)
{
  const m2po_formula formula = {80.0F, -1.0F};
  const uint32_t end = bits_of_float(80.0F);
  tokens memory;
  memset(&memory, 0, sizeof memory);
  memset(memory.mask, 1, sizeof memory.mask);
  memset(memory.keep, 1, sizeof memory.keep);
  digest d = digest_begin(prints);
  for (uint32_t bits = 0; bits < end;) {
    for (int64_t i = 0; i < M2PO_BLOCK; i += 2, bits += 499) {
      memory.policy[i] = float_of(bits < end ? bits : end);
      memory.policy[i + 1] = -memory.policy[i];
      memory.advantages[i] = memory.advantages[i + 1] = 1.0F;
    }
    const m2po_block block = block_of(&memory);
    m2po_valuation valuation;
    float slope[M2PO_BLOCK];
    kernels->evaluate(&block, &formula, &(m2po_slopes){slope, false}, &valuation);
    put_valuation(&d, &valuation, slope);
  }
  printf("exponential evaluate %016" PRIx64 "\n", d.state);
}

int main(int argc, char **argv)
{
  const bool all = argc != 3;
  for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; ++k) {
    for (size_t f = 0; f < sizeof functions / sizeof functions[0]; ++f) {
      if (all || (strcmp(argv[1], kinds[k].name) == 0 && strcmp(argv[2], functions[f].name) == 0)) {
        run(&kinds[k], &functions[f], !all);
      }
    }
  }
  if (all || strcmp(argv[1], "exponential") == 0) {
    run_exponential(!all);
  }
  return 0;
}
