// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// The loops over tokens whose values fit float32, compiled once for each instruction set.
//
// A kernel works on one block and judges nothing: whoever calls it does a block that is not plain
// again with the general code (inputs.h, terms.h), which says what is wrong, if anything is. Every
// instruction set gives the same bits: each operation is rounded once, a multiply-add as one where
// the code says so and nowhere else, none is reordered, and sums have a fixed number of lanes.

#ifndef M2PO_KERNEL_H
#define M2PO_KERNEL_H

#include "measures.h"

#include <stdbool.h>
#include <stdint.h>

enum { M2PO_LINE = 64 }; // bytes of a cache line

/// Of arrays that code for smaller vectors makes for kernels: so that no vector lies across lines.
#define M2PO_ALIGNED _Alignas(M2PO_LINE)

enum { M2PO_WORD_BITS = 64, M2PO_BLOCK_WORDS = M2PO_BLOCK / M2PO_WORD_BITS };

/// Where tokens stand that are few.
typedef struct m2po_places {
  int64_t count;
  int16_t place[M2PO_BLOCK]; ///< [count], rising
} m2po_places;

/// A whole block of float32 values.
typedef struct m2po_block {
  const float *policy; ///< [M2PO_BLOCK], these too
  const float *reference;
  const float *advantages;
  const uint8_t *mask; ///< valid where it is not 0
  const uint8_t *keep; ///< kept where it is not 0; `mask` itself where every valid token is
} m2po_block;

/// Where Algorithm 1 may cut: tokens of T with m <= low stay, those with m > high go, and between
/// them it is to be decided. high is FLT_MAX where none goes yet; then an infinite m is between,
/// too.
typedef struct m2po_bracket {
  float low;
  float high;
} m2po_bracket;

/// What decides a selection, of one block.
typedef struct m2po_glance {
  uint64_t open[M2PO_BLOCK_WORDS]; ///< a bit a position: of T, inside the bracket
  m2po_places open_places;         ///< the same; sight alone does not set them
  double below_sum;                ///< of m of the tokens of T below the bracket, rounded
  int64_t constrained;             ///< |T|
  int64_t above_count;             ///< of T, above the bracket
} m2po_glance;

/// All that a selection may want to know.
typedef struct m2po_sighting {
  M2PO_ALIGNED float below[M2PO_BLOCK]; ///< m of the tokens of T below the bracket, 0 elsewhere
  M2PO_ALIGNED float over[M2PO_BLOCK];  ///< m of the others of T, 0 elsewhere
  uint64_t valid[M2PO_BLOCK_WORDS];     ///< a bit a position; step alone does not set them
  m2po_glance glance;
  float least_below; ///< the smallest that is not 0; 0 where none is
  bool plain;        ///< m and A of every valid token are finite; of step: as in a valuation
} m2po_sighting;

/// What turns a ratio into loss and gradient: the importance sampling surrogate.
typedef struct m2po_formula {
  float log_ratio_clip; ///< at most 80, so that the ratio is a normal float32
  float weight;         ///< of every token
} m2po_formula;

/// Loss and gradient of a block.
typedef struct m2po_valuation {
  double sum; ///< of the slopes, which is the loss: without those of open tokens
  bool plain; ///< m of every valid token is finite. An A that is not makes `sum` so, but for open
              ///< tokens.
} m2po_valuation;

/// Where the slopes of a block go.
typedef struct m2po_slopes {
  float *to;        ///< [M2PO_BLOCK]: -weight A r of valid, kept tokens; 0 elsewhere
  bool past_caches; ///< it is M2PO_LINE aligned, a mask that is written beside it, too, and neither
                    ///< to be read by another thread before `fence` has been called
} m2po_slopes;

typedef struct m2po_kernels {
  const char *name; ///< of the instruction set
  /// Which tokens are of T (`all`: every valid one), and where they stand to the bracket.
  void (*sight)(const m2po_block *block, const m2po_bracket *bracket, bool all,
                m2po_sighting *sighting);
  /// Adds up values in double, in any order: exact where every such sum is a double.
  double (*sum)(const float values[M2PO_BLOCK]);
  /// Adds up the values that are at least `least` > 0 and leaves the others; *largest is theirs.
  double (*take)(float values[M2PO_BLOCK], float least, float *largest);
  void (*evaluate)(const m2po_block *block, const m2po_formula *formula, const m2po_slopes *slopes,
                   m2po_valuation *valuation);
  /// Measures the ratios of the valid tokens, in double. `clip`: log_ratio_clip, at most 80.
  void (*measure)(const m2po_block *block, double clip, m2po_measures *measures);
  /// Orders what was stored past the caches before what is stored later.
  void (*fence)(void);
  /// sight and evaluate at once, where `keep` is what the bracket says: tokens up to its high end
  /// stay, and 1 is written for them.
  void (*step)(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               bool all, const m2po_slopes *slopes, uint8_t *keep, m2po_sighting *sighting,
               m2po_valuation *valuation);
  /// step with what decides a selection of trust-region tokens, and no more. The bracket's low end
  /// is at least 0; glance->below_sum is within 2^-46 of itself.
  void (*sift)(const m2po_block *block, const m2po_bracket *bracket, const m2po_formula *formula,
               const m2po_slopes *slopes, uint8_t *keep, m2po_glance *glance,
               m2po_valuation *valuation);
  /// sift with all of T below the bracket; glance->below_sum is within 2^-18 of itself.
  void (*keep_all)(const m2po_block *block, const m2po_formula *formula, const m2po_slopes *slopes,
                   uint8_t *keep, m2po_glance *glance, m2po_valuation *valuation);
} m2po_kernels;

#endif // M2PO_KERNEL_H
