// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A tensor as strided rows and columns: checked once, then read and written by position.

#ifndef M2PO_VIEW_H
#define M2PO_VIEW_H

#include "element.h"
#include "rft/plugin.h"

/// Positions are numbered in row-major order. Strides are in bytes.
typedef struct m2po_view {
  unsigned char *data;  ///< element [0,0]
  m2po_element element; ///< M2PO_UNSUPPORTED where an optional tensor is absent
  int64_t rows;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;
} m2po_view;

static inline bool m2po_view_present(const m2po_view *view)
{
  return view->element != M2PO_UNSUPPORTED;
}

/// What a tensor may hold.
typedef enum m2po_content { M2PO_FLOATS, M2PO_NUMBERS, M2PO_INTEGERS } m2po_content;

/// What holds for every tensor: it is there, 1-D or 2-D, of a dtype for its content, and in this
/// memory. `name` is for the message.
int32_t m2po_tensor_check(const rft_tensor *tensor, m2po_content content, const char *name,
                          rft_error *error);

/// The view of a checked tensor: [n] is one row, [B,T] is B rows.
m2po_view m2po_view_of(const rft_tensor *tensor);

/// Checks a tensor that has to have the shape of `logprob`, and gives its view.
int32_t m2po_view_like(const rft_tensor *tensor, const rft_tensor *logprob, m2po_content content,
                       const char *name, m2po_view *view, rft_error *error);

bool m2po_same_shape(const rft_tensor *left, const rft_tensor *right);

enum { M2PO_SHAPE_TEXT_SIZE = 96 };

/// "[2, 3]".
const char *m2po_shape_text(char text[M2PO_SHAPE_TEXT_SIZE], const rft_tensor *tensor);

/// Reads positions [start, start + count).
void m2po_view_load(const m2po_view *view, int64_t start, int64_t count, double *values);

/// Writes positions [start, start + count), each rounded to the view's float element.
void m2po_view_store(const m2po_view *view, int64_t start, int64_t count, const double *values);

/// The address of one position.
unsigned char *m2po_view_at(const m2po_view *view, int64_t position);

/// RFT_INVALID_ARGUMENT where two positions of an output share memory.
int32_t m2po_view_check_output(const m2po_view *view, const char *name, rft_error *error);

/// Do two views share memory? They do where their extents meet, unless they are interleaved like
/// the columns of one table.
bool m2po_views_overlap(const m2po_view *left, const m2po_view *right);

#endif // M2PO_VIEW_H
