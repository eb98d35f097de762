// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Compiled once for each instruction set; M2PO_TARGET names it.

#include "kernel_step.h"

#include "standing.h"
#include "value.h"

// ------------------------------------------------------------------ with all that metrics tell

SPECIALIZED words step_tokens(const m2po_block *block, const m2po_bracket *bracket, bool all,
                              bool cuts, const float *output, uint8_t *keep, ready_tokens *ready,
                              m2po_sighting *sighting)
{
  const m2po_block own = *block; // which no store can change
  const m2po_bracket bounds = bounds_of(bracket);
  running_totals totals = no_totals();
  for (int64_t i = 0; i < M2PO_BLOCK; i += PACK) {
    flags open[PACK_VECTORS];
    flags stays[PACK_VECTORS];
    EACH_PACKED
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      if (v % VECTORS == 0) {
        fetch_floats(own.policy, at);
        fetch_output(output, at);
      }
      const token_vector tokens = read(&own, at);
      const standing found = stand(&tokens, &bounds, all, cuts);
      note(sighting, &totals, &found, at, cuts);
      totals.sizes = larger(totals.sizes, (words)found.square);
      open[v] = but_not(found.above_low, found.above_high);
      stays[v] = but_not(tokens.valid, found.above_high);
      store(ready->log_ratio + at, tokens.log_ratio);
      store(ready->advantage + at, times_flag(tokens.advantage, (flags)~found.above_high));
    }
    put_bits(sighting->glance.open, i, open);
    store_flags(keep + i, stays);
  }
  find_places(sighting->glance.open, &sighting->glance.open_places);
  conclude(sighting, &totals);
  return totals.sizes;
}

void m2po_step(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               bool all, const m2po_slopes *slopes, uint8_t *keep, m2po_sighting *sighting,
               m2po_valuation *valuation)
{
  ready_tokens ready;
  const float *const output = output_of(slopes, &ready);
  words squares;
  if (all) {
    squares = step_tokens(block, bracket, true, true, output, keep, &ready, sighting);
  } else if (cuts_at(bracket)) {
    squares = step_tokens(block, bracket, false, true, output, keep, &ready, sighting);
  } else {
    squares = step_tokens(block, bracket, false, false, output, keep, &ready, sighting);
  }
  valuation->plain = sighting->plain;
  valuation->sum = value(block, &ready, squares, &sighting->glance.open_places, formula, slopes);
}

// ----------------------------------------------------------------- with what decides, no more

SPECIALIZED words sift_tokens(const m2po_block *block, const m2po_bracket *bracket, bool whole,
                              const float *output, uint8_t *keep, ready_tokens *ready,
                              m2po_glance *glance)
{
  const m2po_block own = *block; // which no store can change
  const m2po_bracket bounds = bounds_of(bracket);
  float below[M2PO_BLOCK];
  flag_count constrained = {0};
  flag_count stay = {0};
  words squares = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += PACK) {
    flags open[PACK_VECTORS];
    flags stays[PACK_VECTORS];
    EACH_PACKED
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      if (v % VECTORS == 0) {
        fetch_floats(own.policy, at);
        fetch_output(output, at);
      }
      const token_vector tokens = whole ? read_whole(&own, at) : read(&own, at);
      const flags in = along(tokens.log_ratio, tokens.advantage);
      const floats square = tokens.log_ratio * tokens.log_ratio;
      const floats constrained_square = masked(in, square);
      const flags above_low = above(constrained_square, every(bounds.low));
      const flags up_to_high = up_to(constrained_square, every(bounds.high));
      count_flags(&constrained, in);
      count_flags(&stay, up_to_high);
      squares = larger(squares, (words)square);
      open[v] = both(above_low, up_to_high);
      stays[v] = both(tokens.valid, up_to_high);
      store(below + at, unless(above_low, constrained_square));
      store(ready->log_ratio + at, tokens.log_ratio);
      store(ready->advantage + at, times_flag(tokens.advantage, up_to_high));
    }
    put_bits(glance->open, i, open);
    store_flags(keep + i, stays);
  }
  find_places(glance->open, &glance->open_places);
  glance->below_sum = sum_up(below);
  glance->constrained = counted(constrained);
  glance->above_count = M2PO_BLOCK - counted(stay);
  return squares;
}

void m2po_sift(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               const m2po_slopes *slopes, uint8_t *keep, m2po_glance *glance,
               m2po_valuation *valuation)
{
  ready_tokens ready;
  const float *const output = output_of(slopes, &ready);
  const words squares = all_valid(block->mask)
                            ? sift_tokens(block, bracket, true, output, keep, &ready, glance)
                            : sift_tokens(block, bracket, false, output, keep, &ready, glance);
  valuation->plain = all_finite(squares);
  valuation->sum = value(block, &ready, squares, &glance->open_places, formula, slopes);
}

// --------------------------------------------------------------- where nothing seems to have to go

/// Gives the bits of the largest squared log-ratios.
SPECIALIZED words keep_tokens(const m2po_block *block, bool whole, const float *output,
                              ready_tokens *ready, m2po_glance *glance)
{
  const m2po_block own = *block; // which no store can change
  floats below[VECTORS] = {{0}};
  flag_count constrained = {0};
  words squares = {0};
  for (int64_t i = 0; i < M2PO_BLOCK; i += LANES) {
    fetch_floats(own.policy, i);
    fetch_output(output, i);
    EACH_VECTOR
    {
      const int64_t at = i + (int64_t)v * VECTOR_FLOATS;
      const token_vector tokens = whole ? read_whole(&own, at) : read(&own, at);
      const flags in = along(tokens.log_ratio, tokens.advantage);
      const floats square = tokens.log_ratio * tokens.log_ratio;
      below[v] += masked(in, square);
      count_flags(&constrained, in);
      squares = larger(squares, (words)square);
      store(ready->log_ratio + at, tokens.log_ratio);
      store(ready->advantage + at, tokens.advantage);
    }
  }
  part_sums sums = {{{0}}};
  EACH_VECTOR add(&sums, v, below[v]);
  memset(glance->open, 0, sizeof glance->open);
  glance->open_places.count = 0;
  glance->below_sum = total(&sums);
  glance->constrained = counted(constrained);
  glance->above_count = 0;
  return squares;
}

void m2po_keep_all(const m2po_block *block, const m2po_formula *formula, const m2po_slopes *slopes,
                   uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation)
{
  ready_tokens ready;
  const float *const output = output_of(slopes, &ready);
  const words squares = all_valid(block->mask) ? keep_tokens(block, true, output, &ready, glance)
                                               : keep_tokens(block, false, output, &ready, glance);
  keep_valid(block->mask, slopes->past_caches, keep);
  valuation->plain = all_finite(squares);
  valuation->sum = value(block, &ready, squares, &glance->open_places, formula, slopes);
}
