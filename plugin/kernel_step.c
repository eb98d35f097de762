// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Compiled once for each instruction set; M2PO_TARGET names it.

#include "kernel_step.h"

#include "standing.h"
#include "value.h"

// ------------------------------------------------------------------ with all that metrics tell

SPECIALIZED words step_tokens(const m2po_block *block, const m2po_bracket *bracket, bool all,
                              bool cuts, uint8_t *keep, ready_tokens *ready,
                              m2po_sighting *sighting)
{
  const m2po_block own = *block; // which no store can change
  const m2po_bracket bounds = bounds_of(bracket);
  running_totals totals = {{{{0}}}, {0}, {0}, {0}, {0}};
  words sizes = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    words open[VECTORS];
    words stays[VECTORS];
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = read(&own, at);
      const standing found = stand(&tokens, &bounds, all, cuts);
      note(sighting, &totals, &tokens, &found, &bounds, at, v, cuts);
      sizes = larger(sizes, size_bits(tokens.log_ratio));
      open[v] = found.above_low & ~found.above_high;
      stays[v] = tokens.valid & ~found.above_high;
      store(ready->log_ratio + at, tokens.log_ratio);
      store(ready->advantage + at, unless(found.above_high, tokens.advantage));
    }
    put_bits(sighting->open, i, open);
    store_flags(keep + i, stays);
  }
  find_places(sighting->open, &sighting->open_places);
  totals.sizes = larger(totals.sizes, sizes);
  conclude(sighting, &totals);
  return sizes;
}

void m2po_step(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               bool all, const m2po_slopes *slopes, uint8_t *keep, m2po_sighting *sighting,
               m2po_valuation *valuation)
{
  ready_tokens ready;
  words sizes;
  if (all) {
    sizes = step_tokens(block, bracket, true, true, keep, &ready, sighting);
  } else if (cuts_at(bracket)) {
    sizes = step_tokens(block, bracket, false, true, keep, &ready, sighting);
  } else {
    sizes = step_tokens(block, bracket, false, false, keep, &ready, sighting);
  }
  valuation->plain = sighting->plain;
  valuation->sum = value(block, ready.log_ratio, ready.advantage, sizes, &sighting->open_places,
                         formula, slopes);
}

// ----------------------------------------------------------------- with what decides, no more

SPECIALIZED spread sift_tokens(const m2po_block *block, const m2po_bracket *bracket, bool whole,
                               uint8_t *keep, ready_tokens *ready, m2po_glance *glance)
{
  const m2po_block own = *block; // which no store can change
  const m2po_bracket bounds = bounds_of(bracket);
  part_sums below = {{{0}}};
  words constrained = {0};
  words above = {0};
  spread found = {{0}, {0}};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    words open[VECTORS];
    words stays[VECTORS];
    fetch_next(own.policy, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = whole ? read_whole(&own, at) : read(&own, at);
      const words in = along(tokens.log_ratio, tokens.advantage);
      const floats square = masked(in, tokens.log_ratio * tokens.log_ratio);
      const words above_low = square > bounds.low;
      const words gone = square > bounds.high;
      add(&below, v, unless(above_low, square));
      constrained -= in;
      above -= gone;
      widen_spread(&found, &tokens);
      open[v] = (words)unless(gone, (floats)above_low);
      stays[v] = (words)unless(gone, (floats)tokens.valid);
      store(ready->log_ratio + at, tokens.log_ratio);
      store(ready->advantage + at, unless(gone, tokens.advantage));
    }
    put_bits(glance->open, i, open);
    store_flags(keep + i, stays);
  }
  find_places(glance->open, &glance->open_places);
  glance->below = total(&below);
  glance->constrained = sum_of(constrained);
  glance->above_count = sum_of(above);
  return found;
}

void m2po_sift(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               const m2po_slopes *slopes, uint8_t *keep, m2po_glance *glance,
               m2po_valuation *valuation)
{
  ready_tokens ready;
  const spread found = all_valid(block->mask)
                           ? sift_tokens(block, bracket, true, keep, &ready, glance)
                           : sift_tokens(block, bracket, false, keep, &ready, glance);
  valuation->plain = is_finite(&found);
  valuation->sum = value(block, ready.log_ratio, ready.advantage, found.log_ratio,
                         &glance->open_places, formula, slopes);
}

// --------------------------------------------------------------- where nothing seems to have to go

/// Gives the largest size bits of the log-ratios. The advantages of a whole block stay where they
/// are.
SPECIALIZED words keep_tokens(const m2po_block *block, bool whole, ready_tokens *ready,
                              m2po_glance *glance)
{
  const m2po_block own = *block; // which no store can change
  floats squares[VECTORS] = {{0}};
  words constrained = {0};
  words sizes = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_next(own.policy, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = whole ? read_whole(&own, at) : read(&own, at);
      const words in = along(tokens.log_ratio, tokens.advantage);
      squares[v] += masked(in, tokens.log_ratio * tokens.log_ratio);
      constrained -= in;
      sizes = larger(sizes, size_bits(tokens.log_ratio));
      store(ready->log_ratio + at, tokens.log_ratio);
      if (!whole) {
        store(ready->advantage + at, tokens.advantage);
      }
    }
  }
  part_sums below = {{{0}}};
  EACH_VECTOR add(&below, v, squares[v]);
  memset(glance->open, 0, sizeof glance->open);
  glance->open_places.count = 0;
  glance->below = total(&below);
  glance->constrained = sum_of(constrained);
  glance->above_count = 0;
  return sizes;
}

void m2po_keep_all(const m2po_block *block, const m2po_formula *formula, const m2po_slopes *slopes,
                   uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation)
{
  ready_tokens ready;
  const bool whole = all_valid(block->mask);
  const words sizes =
      whole ? keep_tokens(block, true, &ready, glance) : keep_tokens(block, false, &ready, glance);
  keep_valid(block->mask, slopes->past_caches, keep);
  valuation->plain = all_finite(sizes);
  valuation->sum = value(block, ready.log_ratio, whole ? block->advantages : ready.advantage, sizes,
                         &glance->open_places, formula, slopes);
}
