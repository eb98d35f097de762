// Copyright 2026 The M2PO plugin authors
// SPDX-License-Identifier: Apache-2.0

// A tensor as strided rows and columns: checked once, then read and written by position.

#ifndef RFT_SUPPORT_VIEW_H
#define RFT_SUPPORT_VIEW_H

#include "element.h"
#include "rft/plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

/// Positions are numbered in row-major order. Strides are in bytes.
typedef struct rft_view {
  unsigned char *data; ///< element [0,0]
  rft_element element; ///< RFT_ELEMENT_UNSUPPORTED where an optional tensor is absent
  int64_t rows;
  int64_t columns;
  int64_t row_stride;
  int64_t column_stride;
} rft_view;

static inline bool rft_view_present(const rft_view *view)
{
  return view->element != RFT_ELEMENT_UNSUPPORTED;
}

/// What a tensor may hold.
typedef enum rft_content {
  RFT_CONTENT_FLOATS,
  RFT_CONTENT_NUMBERS,
  RFT_CONTENT_INTEGERS
} rft_content;

/// What holds for every tensor: it is there, 1-D or 2-D, of a dtype for its content, and in this
/// memory. `name` is for the message.
int32_t rft_tensor_check(const rft_tensor *tensor, rft_content content, const char *name,
                         rft_error *error);

/// The view of a checked tensor: [n] is one row, [B,T] is B rows.
rft_view rft_view_of(const rft_tensor *tensor);

/// Checks a tensor that has to have the shape of `logprob`, and gives its view.
int32_t rft_view_like(const rft_tensor *tensor, const rft_tensor *logprob, rft_content content,
                      const char *name, rft_view *view, rft_error *error);

bool rft_same_shape(const rft_tensor *left, const rft_tensor *right);

enum { RFT_SHAPE_TEXT_SIZE = 96 };

/// "[2, 3]".
const char *rft_shape_text(char text[RFT_SHAPE_TEXT_SIZE], const rft_tensor *tensor);

/// Reads positions [start, start + count).
void rft_view_load(const rft_view *view, int64_t start, int64_t count, double *values);

/// Writes positions [start, start + count), each rounded to the view's float element.
void rft_view_store(const rft_view *view, int64_t start, int64_t count, const double *values);

/// Writes the lowest `count` <= 64 bits, lowest first, to positions [start, start + count) of a
/// view of bytes: 1 or 0.
void rft_view_store_bits(const rft_view *view, int64_t start, int64_t count, uint64_t bits);

/// The address of one position.
unsigned char *rft_view_at(const rft_view *view, int64_t position);

/// RFT_INVALID_ARGUMENT where two positions of an output share memory.
int32_t rft_view_check_output(const rft_view *view, const char *name, rft_error *error);

/// Do two views share memory? They do where their extents meet, unless they are interleaved like
/// the columns of one table.
bool rft_views_overlap(const rft_view *left, const rft_view *right);

#ifdef __cplusplus
}
#endif

#endif // RFT_SUPPORT_VIEW_H
