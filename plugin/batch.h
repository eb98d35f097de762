// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A micro-batch as the plugin reads it: checked, and every tensor a strided [rows, columns] view.

#ifndef M2PO_BATCH_H
#define M2PO_BATCH_H

#include "element.h"
#include "rft/plugin.h"

/// Positions that are loaded at a time into buffers on the stack.
enum { M2PO_BLOCK = 1024 };

/// A tensor's memory. Strides are in bytes.
typedef struct m2po_view {
  unsigned char *data;  ///< element [0,0]
  m2po_element element; ///< M2PO_UNSUPPORTED where an optional tensor is absent
  int64_t row_stride;
  int64_t column_stride;
} m2po_view;

static inline bool m2po_view_present(const m2po_view *view)
{
  return view->element != M2PO_UNSUPPORTED;
}

/// Positions are numbered in row-major order: padded [B,T] has B rows, packed [n] has one.
typedef struct m2po_batch {
  int64_t rows;
  int64_t columns;
  int64_t count;     ///< rows * columns
  int64_t sequences; ///< padded: rows; packed: as cu_seqlens says
  m2po_view logprob;
  m2po_view old_logprob;
  m2po_view proximal_logprob;
  m2po_view advantages;
  m2po_view mask;
  m2po_view cu_seqlens;        ///< one row of sequences + 1
  bool advantages_by_sequence; ///< packed: `advantages` is one row of `sequences`
} m2po_batch;

/// Checks shapes, dtypes, devices and cu_seqlens; values are checked as they are read.
int32_t m2po_batch_open(const rft_batch *source, m2po_batch *batch, rft_error *error);

/// A tensor that goes with `logprob`, of the same shape, as a view. `name` is for the message.
int32_t m2po_view_like(const rft_tensor *tensor, const rft_tensor *logprob, const char *name,
                       m2po_view *view, rft_error *error);

/// RFT_INVALID_ARGUMENT where two positions of an output share memory.
int32_t m2po_view_check_output(const m2po_view *view, int64_t rows, int64_t columns,
                               const char *name, rft_error *error);

/// RFT_INVALID_ARGUMENT where an output's memory meets that of an input or of the mask `keep`:
/// where their extents do, and they are not columns of one table.
int32_t m2po_batch_check_overlap(const m2po_batch *batch, const m2po_view *keep,
                                 const m2po_view *output, const char *name, rft_error *error);

/// Reads positions [start, start + count) of a view that has `columns` columns.
void m2po_view_load(const m2po_view *view, int64_t columns, int64_t start, int64_t count,
                    double *values);

/// Writes positions [start, start + count), each rounded to the view's float element.
void m2po_view_store(const m2po_view *view, int64_t columns, int64_t start, int64_t count,
                     const double *values);

/// The address of one position.
unsigned char *m2po_view_at(const m2po_view *view, int64_t columns, int64_t position);

/// Reads positions [start, start + count) of the advantages, one a position.
void m2po_batch_load_advantages(const m2po_batch *batch, int64_t start, int64_t count,
                                double *values);

/// The first position of a sequence; of `sequences`: the batch's count.
int64_t m2po_batch_sequence_start(const m2po_batch *batch, int64_t sequence);

/// The sequence that a position belongs to.
int64_t m2po_batch_sequence_at(const m2po_batch *batch, int64_t position);

/// Is d computed in float64, as it is where an input is? Else in float32.
bool m2po_is_wide(const m2po_view *policy, const m2po_view *behavior);

/// d: one subtraction, rounded once. Float32 inputs are exact in the doubles that carry them.
static inline double m2po_log_ratio(double policy, double behavior, bool wide)
{
  return wide ? policy - behavior : (double)((float)policy - (float)behavior);
}

#endif // M2PO_BATCH_H
