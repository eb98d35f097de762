// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A block of a micro-batch as kernels read it: in place where a tensor's values lie there as a
// kernel wants them, else copied.

#ifndef M2PO_STAGE_H
#define M2PO_STAGE_H

#include "inputs.h"
#include "kernel.h"

/// The copies of one block.
typedef struct m2po_stage {
  M2PO_ALIGNED float policy[M2PO_BLOCK];
  M2PO_ALIGNED float reference[M2PO_BLOCK];
  M2PO_ALIGNED float advantages[M2PO_BLOCK];
  M2PO_ALIGNED uint8_t mask[M2PO_BLOCK];
  M2PO_ALIGNED uint8_t keep[M2PO_BLOCK];
} m2po_stage;

/// Do the values of a batch fit float32, and is d computed in it?
bool m2po_stage_fits(const rft_batch_view *batch, const m2po_pair *pair);

/// Where a batch's blocks come from: what lies flat, as kernels want it, is read in place.
typedef struct m2po_source {
  const rft_batch_view *batch;
  const m2po_pair *pair;
  const rft_view *keep; ///< the mask of kept tokens, absent where every valid one is
  const float *policy;  ///< [positions], these too; NULL: to be copied
  const float *reference;
  const float *advantages;
  const uint8_t *mask;
  const uint8_t *kept;
} m2po_source;

/// Of a batch that fits. What it points to has to stay.
m2po_source m2po_source_of(const rft_batch_view *batch, const m2po_pair *pair,
                           const rft_view *keep);

/// Loads positions [start, start + count), count <= M2PO_BLOCK; beyond them the block has mask 0.
/// False: the mask holds what no mask may.
bool m2po_stage_load(const m2po_source *source, int64_t start, int64_t count, m2po_stage *stage,
                     m2po_block *block);

/// Copies positions [start, start + count) to places [at, at + count) of a stage, as
/// m2po_stage_load would.
bool m2po_stage_copy(const m2po_source *source, int64_t start, int64_t count, int64_t at,
                     m2po_stage *stage);

/// Asks for the memory of such positions, where a stage can be loaded from memory that lies flat.
void m2po_stage_fetch(const m2po_source *source, int64_t start, int64_t count);

/// The block that was copied to a stage.
m2po_block m2po_stage_block(const m2po_stage *stage);

/// Do a view's values lie side by side, aligned, in row-major order?
bool m2po_stage_is_flat(const rft_view *view);

/// The values of a flat view of float32; NULL: it is another.
float *m2po_flat_floats(const rft_view *view);

#endif // M2PO_STAGE_H
