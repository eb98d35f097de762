// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// Where tokens stand: in T or not, and there below, inside or above a bracket.

#ifndef M2PO_STANDING_H
#define M2PO_STANDING_H

#include "tokens.h"

#include <float.h>
#include <math.h>

/// Does the bracket have a high end? (Only infinity is above FLT_MAX.)
static inline bool cuts_at(const m2po_bracket *bracket)
{
  return bracket->high < FLT_MAX;
}

/// The same for a loop that compares with the high end in any case: where there is none, not even
/// an infinite m is above it.
static inline m2po_bracket bounds_of(const m2po_bracket *bracket)
{
  return (m2po_bracket){bracket->low, cuts_at(bracket) ? bracket->high : INFINITY};
}

/// Where tokens of T stand.
typedef struct standing {
  flags in; ///< of T
  flags above_low;
  flags above_high;
  floats square;
} standing;

SPECIALIZED standing stand(const token_vector *tokens, const m2po_bracket *bracket, bool all,
                           bool cuts)
{
  standing found;
  // T has the tokens whose ratio moves the way that the advantage pushes.
  found.in = all ? tokens->valid : along(tokens->log_ratio, tokens->advantage);
  found.square = tokens->log_ratio * tokens->log_ratio;
  found.above_low = both(found.in, above(found.square, every(bracket->low)));
  found.above_high = cuts ? both(found.in, above(found.square, every(bracket->high))) : (flags){0};
  return found;
}

/// A sighting in progress, in each element.
typedef struct running_totals {
  words least_below; ///< the smallest bits of m, minus 1: so those of 0 are larger than any
  flag_count constrained;
  flag_count above;
  words sizes; ///< the largest bits of m, in sight also of the size of A
} running_totals;

static inline running_totals no_totals(void)
{
  return (running_totals){.least_below = ~(words){0}};
}

SPECIALIZED void note(m2po_sighting *sighting, running_totals *totals, const standing *found,
                      int64_t i, bool cuts)
{
  const floats below = masked(but_not(found->in, found->above_low), found->square);
  store(sighting->below + i, below);
  store(sighting->over + i, masked(found->above_low, found->square));
  totals->least_below = smaller(totals->least_below, (words)below - 1);
  count_flags(&totals->constrained, found->in);
  if (cuts) {
    count_flags(&totals->above, found->above_high);
  }
}

static inline void conclude(m2po_sighting *sighting, const running_totals *totals)
{
  const uint32_t least = smallest(totals->least_below) + 1;
  memcpy(&sighting->least_below, &least, sizeof least);
  sighting->glance.below_sum = sum_up(sighting->below);
  sighting->glance.constrained = counted(totals->constrained);
  sighting->glance.above_count = counted(totals->above);
  sighting->plain = all_finite(totals->sizes);
}

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the first bits of a word come first");

static inline void put_bits(uint64_t bits[M2PO_BLOCK_WORDS], int64_t i,
                            const flags where[PACK_VECTORS])
{
  const uint32_t found = bits_of(where);
  memcpy((uint8_t *)bits + i / 8, &found, PACK / 8);
}

/// Few bits of a word are set, most often: the first few are looked for in any case, so that there
/// is no branch to guess. (Before a word there are at most as many places as positions.)
static inline void find_places(const uint64_t bits[M2PO_BLOCK_WORDS], m2po_places *found)
{
  enum { AT_ONCE = 2 };
  int64_t before = 0;
  for (int64_t word = 0; word < M2PO_BLOCK_WORDS; ++word) {
    const int first = (int)word * M2PO_WORD_BITS;
    const int count = __builtin_popcountll(bits[word]);
    int16_t *const place = found->place + before;
    uint64_t left = bits[word];
    for (int i = 0; i < AT_ONCE; ++i, left &= left - 1) {
      place[i] = (int16_t)(first + __builtin_ctzll(left | UINT64_C(1) << (M2PO_WORD_BITS - 1)));
    }
    for (int i = AT_ONCE; i < count; ++i, left &= left - 1) {
      place[i] = (int16_t)(first + __builtin_ctzll(left));
    }
    before += count;
  }
  found->count = before;
}

#endif // M2PO_STANDING_H
